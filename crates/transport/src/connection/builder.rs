//! One packet being put together.
//!
//! Frames go behind the header as they come. Messages that parity protects stand together in a section at the end, so they are
//! collected beside the packet and moved behind the rest when it is finished. What a [`PacketBuilder`] is told to write fits or leaves
//! the packet as it was.

use muse_wire::Instant;
use muse_wire::bytes::{EndOfBytes, Writer};

use super::redundancy::PROTECTED_MAX;
use crate::channel::send::{PacketSpace, Put, SendChannel};
use crate::config::{ChannelConfig, Repair};
use crate::packet::{AckBlock, LastMessage, emit, strip_last_length};
use crate::sent::SentFrame;

/// The plaintext of a packet, written part by part: acknowledgements, control frames, parity, messages.
pub(super) struct PacketBuilder<'a> {
    now: Instant,
    pub(super) number: u64,
    /// The bytes behind the header.
    body: &'a mut [u8],
    /// The protected section.
    section: &'a mut [u8],
    /// Frames that must be sent again if the packet is lost.
    frames: &'a mut Vec<SentFrame>,
    layout: Layout,
}

/// The positions of a packet's parts, and what follows from them.
#[derive(Default)]
pub(super) struct Layout {
    /// The peer should acknowledge it.
    pub(super) eliciting: bool,
    /// Something in it is sent again if it is lost.
    pub(super) reliable: bool,
    /// A message waits that did not fit.
    pub(super) full: bool,
    /// A message is in it that was not sent before.
    pub(super) fresh: bool,
    /// Bytes of the protected section.
    pub(super) section: usize,
    /// The most that a channel pays for what is in the section.
    pub(super) level: Repair,
    /// Bytes of the acknowledgement block.
    ack: usize,
    /// Bytes written so far without the section.
    main: usize,
    main_last: Option<LastMessage>,
    section_last: Option<LastMessage>,
}

impl Layout {
    /// True if a protected section is all there is behind the acknowledgements, so that it needs no marker.
    pub(super) fn is_section_only(&self) -> bool {
        self.section > 0 && self.main == self.ack
    }
}

impl<'a> PacketBuilder<'a> {
    /// An empty packet with room for `body`. `section` and `frames` are scratch space that keeps what was put into it.
    pub(super) fn new(
        now: Instant,
        number: u64,
        body: &'a mut [u8],
        section: &'a mut Vec<u8>,
        frames: &'a mut Vec<SentFrame>,
    ) -> Self {
        if section.len() < body.len() {
            section.resize(body.len(), 0);
        }
        frames.clear();
        Self {
            now,
            number,
            body,
            section,
            frames,
            layout: Layout::default(),
        }
    }

    /// Writes the acknowledgements, which come first; `false` if they do not fit.
    pub(super) fn acks(&mut self, block: &AckBlock) -> bool {
        let fits = self.frame(|writer| block.emit(writer));
        self.layout.ack = self.layout.main;
        fits
    }

    /// Writes a frame; `false` if it does not fit.
    pub(super) fn frame(
        &mut self,
        emit: impl FnOnce(&mut Writer<'_>) -> Result<(), EndOfBytes>,
    ) -> bool {
        let mut writer = Writer::new(&mut self.body[self.layout.main..]);
        let fits = emit(&mut writer).is_ok();
        if fits {
            self.layout.main += writer.len();
        }
        fits
    }

    /// Writes that messages of a channel are skipped up to `number`; `false` if it does not fit.
    pub(super) fn skip(&mut self, channel: u8, number: u64) -> bool {
        let fits = self.frame(|writer| emit::skip(writer, channel, number));
        if fits {
            self.elicit(true);
            self.frames.push(SentFrame::Skip { channel, number });
        }
        fits
    }

    /// The peer should acknowledge the packet; `reliable` if what is in it matters after a loss.
    pub(super) fn elicit(&mut self, reliable: bool) {
        self.layout.eliciting = true;
        self.layout.reliable |= reliable;
    }

    pub(super) fn is_eliciting(&self) -> bool {
        self.layout.eliciting
    }

    /// Bytes that frames may still take, before any message is in it.
    pub(super) fn room(&self) -> usize {
        self.body.len() - self.layout.main
    }

    /// A message waits that does not fit.
    pub(super) fn set_full(&mut self) {
        self.layout.full = true;
    }

    /// Puts one piece of a channel into the packet, into the protected section if `protecting` and it belongs there; or only a second
    /// `copy` of one. Says how many bytes that took.
    pub(super) fn put(
        &mut self,
        half: &mut SendChannel,
        channel: &ChannelConfig,
        protecting: bool,
        copy: bool,
    ) -> (Put, usize) {
        let reliable = channel.delivery.is_reliable();
        // A retransmission beside new messages would double the length of every parity over them.
        let fresh = !copy && !half.next_is_resend();
        let protected = protecting && fresh && reliable && channel.repair != Repair::Frugal;
        let mut result = (Put::TooLong, 0);
        if protected {
            result = self.put_protected(half);
        }
        // A long section makes long parity: what does not fit goes unprotected into the main part.
        let moves = result.0 == Put::TooLong && (!protected || self.free(true) > 0);
        if moves {
            result = self.put_plain(half, copy);
        }
        if result.0 == Put::Written {
            self.elicit(reliable);
            self.layout.fresh |= fresh;
            if protected && !moves {
                self.layout.level = self.layout.level.max(channel.repair);
            }
        }
        result
    }

    /// Puts the parts together, leaves out the last length, fills up with padding if `padded`; returns the length of the plaintext.
    pub(super) fn finish(self, padded: bool) -> (Layout, usize) {
        let Self {
            body,
            section,
            mut layout,
            ..
        } = self;
        let mut plain = layout.main;
        if layout.section > 0 {
            if let Some(last) = layout.section_last {
                layout.section = strip_last_length(section, layout.section, last);
            }
            let mut writer = Writer::new(&mut body[plain..]);
            let marked = if layout.is_section_only() {
                Ok(())
            } else {
                emit::section(&mut writer)
            };
            let fits = marked.and_then(|()| writer.slice(&section[..layout.section]));
            debug_assert!(fits.is_ok(), "room for the section was kept");
            plain += writer.len();
        } else if let Some(last) = layout.main_last {
            plain = strip_last_length(body, plain, last);
        }
        if padded {
            body[plain..].fill(0);
            plain = body.len();
        }
        (layout, plain)
    }

    /// Bytes that messages may still take, with the marker of a section if there is one or is to be one.
    fn free(&self, protected: bool) -> usize {
        let marker = usize::from(self.layout.section > 0 || protected);
        let taken = self.layout.main + self.layout.section + marker;
        self.body.len().saturating_sub(taken)
    }

    fn put_protected(&mut self, half: &mut SendChannel) -> (Put, usize) {
        let start = self.layout.section;
        let most = PROTECTED_MAX.saturating_sub(start).min(self.free(true));
        let mut writer = Writer::new(&mut self.section[start..start + most]);
        let mut last = None;
        let put = half.put(&mut PacketSpace {
            number: self.number,
            now: self.now,
            protected: true,
            writer: &mut writer,
            frames: self.frames,
            last: &mut last,
        });
        let written = writer.len();
        if put == Put::Written {
            self.layout.section += written;
            self.layout.section_last = last.map(|at| at.behind(start));
        }
        (put, written)
    }

    fn put_plain(&mut self, half: &mut SendChannel, copy: bool) -> (Put, usize) {
        let (start, free) = (self.layout.main, self.free(false));
        let mut writer = Writer::new(&mut self.body[start..start + free]);
        let mut last = None;
        let mut space = PacketSpace {
            number: self.number,
            now: self.now,
            protected: false,
            writer: &mut writer,
            frames: self.frames,
            last: &mut last,
        };
        let put = if copy {
            half.put_copy(&mut space)
        } else {
            half.put(&mut space)
        };
        let written = writer.len();
        if put == Put::Written {
            self.layout.main += written;
            self.layout.main_last = last.map(|at| at.behind(start));
        }
        (put, written)
    }
}
