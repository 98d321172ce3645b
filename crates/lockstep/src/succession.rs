//! Going on under another orderer, when the one there was is lost.
//!
//! Every session knows all the inputs that were final, but for the last packets, of which each may have got other ones. The machine that takes over begins a
//! [`Recovery`]: the others say how far each knows the match, and hand in what its own session lacks. What the lost orderer had told anybody is
//! final then as well, so no session has to take anything back. After that an [`Orderer`] goes on from the session.

use muse_wire::bytes::{EndOfBytes, Reader, Writer};
use muse_wire::{Duration, Instant};

use crate::frame::{Frame, SEATS_MAX, Seat};
use crate::game::DeterministicGame;
use crate::orderer::{LinkId, Orderer};
use crate::packet::Kind;
use crate::session::Session;

/// The extent to which a machine knows the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) controls: u16,
    /// By seat: the first frame whose input is not final.
    pub(crate) ends: [Frame; SEATS_MAX],
}

impl Known {
    /// True if nothing in `other` goes beyond this.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mut ends = self.ends.iter().zip(&other.ends);
        self.controls >= other.controls && ends.all(|(ours, theirs)| ours >= theirs)
    }

    fn emit(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        writer.u16(self.controls)?;
        self.ends.iter().try_for_each(|end| writer.u32(end.0))
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Self, EndOfBytes> {
        let controls = reader.u16()?;
        let mut ends = [Frame(0); SEATS_MAX];
        for end in &mut ends {
            *end = Frame(reader.u32()?);
        }
        Ok(Self { controls, ends })
    }
}

/// The first packet of a session to another orderer than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Resume {
    pub(crate) contract: u64,
    pub(crate) nonce: u32,
    pub(crate) known: Known,
}

impl Resume {
    pub(crate) fn emit(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = Writer::new(buffer);
        writer.u8(Kind::Resume.byte())?;
        writer.u64(self.contract)?;
        writer.u32(self.nonce)?;
        self.known.emit(&mut writer)?;
        Ok(writer.len())
    }

    /// Reads it, and says what follows: inputs.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), EndOfBytes> {
        let mut reader = Reader::new(bytes);
        let resume = Self {
            contract: reader.u64()?,
            nonce: reader.u32()?,
            known: Known::parse(&mut reader)?,
        };
        Ok((resume, reader.rest()))
    }
}

/// Asks a session for what it knows beyond this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recall {
    pub(crate) nonce: u32,
    pub(crate) known: Known,
}

impl Recall {
    pub(crate) fn emit(&self, buffer: &mut [u8]) -> Result<usize, EndOfBytes> {
        let mut writer = Writer::new(buffer);
        writer.u8(Kind::Recall.byte())?;
        writer.u32(self.nonce)?;
        self.known.emit(&mut writer)?;
        Ok(writer.len())
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, EndOfBytes> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            nonce: reader.u32()?,
            known: Known::parse(&mut reader)?,
        })
    }
}

/// Puts together what the machines that are left know, on the one that takes over.
///
/// Say which seat's player is behind a link with [`vouch`](Self::vouch), give it what arrives with [`handle_packet`](Self::handle_packet), send what
/// [`poll_packet`](Self::poll_packet) gives, and [`finish`](Self::finish) when [`is_complete`](Self::is_complete), or when that takes too long.
#[derive(Debug, Default)]
pub struct Recovery {
    /// By link.
    survivors: Vec<Option<Survivor>>,
}

#[derive(Debug)]
struct Survivor {
    seat: Option<Seat>,
    resume: Option<Resume>,
    /// Its inputs that are not final.
    inputs: Vec<u8>,
    asked_at: Option<Instant>,
}

impl Recovery {
    /// Says whose player is behind a link; `None` for one who watches. Packets of other links are dropped.
    pub fn vouch(&mut self, link: LinkId, seat: Option<Seat>) {
        if link.0 >= LINKS_MAX {
            return;
        }
        if self.survivors.len() <= link.0 {
            self.survivors.resize_with(link.0 + 1, || None);
        }
        self.survivors[link.0] = Some(Survivor {
            seat,
            resume: None,
            inputs: Vec::new(),
            asked_at: None,
        });
    }

    /// Forgets a link that has ended.
    pub fn disconnect(&mut self, link: LinkId) {
        if let Some(survivor) = self.survivors.get_mut(link.0) {
            *survivor = None;
        }
    }

    /// A packet arrived over this link. What is not understood is dropped.
    pub fn handle_packet<G: DeterministicGame>(
        &mut self,
        now: Instant,
        session: &mut Session<G>,
        link: LinkId,
        packet: &[u8],
    ) {
        let Some(Some(survivor)) = self.survivors.get_mut(link.0) else {
            return;
        };
        match Kind::of(packet) {
            Some((Kind::Resume, rest)) => {
                let resume = Resume::parse(rest).ok();
                survivor.resume = resume
                    .filter(|(it, _)| it.contract == session.contract())
                    .map(|(it, inputs)| {
                        survivor.inputs.clear();
                        survivor.inputs.extend_from_slice(inputs);
                        it
                    });
            }
            Some((Kind::Report, rest)) => {
                // Of a report that ends too soon, what could be read counts.
                if let Some(resume) = &survivor.resume {
                    let _ = session.take_report(now, &resume.known, rest);
                }
                survivor.asked_at = None;
            }
            _ => {}
        }
    }

    /// Writes the next packet into `buffer`, which holds at least [`PACKET_BYTES_MAX`](crate::PACKET_BYTES_MAX) bytes, and says over which link it goes.
    pub fn poll_packet<G: DeterministicGame>(
        &mut self,
        now: Instant,
        session: &Session<G>,
        buffer: &mut [u8],
    ) -> Option<(LinkId, usize)> {
        let known = session.known();
        for (index, survivor) in self.survivors.iter_mut().enumerate() {
            let Some(survivor) = survivor else { continue };
            let due = survivor.asked_at.is_none_or(|at| at + ASK_EVERY <= now);
            let Some(resume) = survivor.resume.filter(|it| due && !known.covers(&it.known)) else {
                continue;
            };
            survivor.asked_at = Some(now);
            let recall = Recall {
                nonce: resume.nonce,
                known,
            };
            return Some((LinkId(index), recall.emit(buffer).ok()?));
        }
        None
    }

    /// Returns true if all who play have come, but for those in `gone`, and none of them knows anything that the session does not.
    pub fn is_complete<G: DeterministicGame>(&self, session: &Session<G>, gone: &[Seat]) -> bool {
        let known = session.known();
        let missing = session.seats_playing().any(|seat| {
            let mut survivors = self.survivors.iter().flatten();
            Some(seat) != session.seat()
                && !gone.contains(&seat)
                && !survivors.any(|one| one.seat == Some(seat) && one.resume.is_some())
        });
        let mut survivors = self.survivors.iter().flatten();
        let resumes = survivors.all(|survivor| {
            let resume = survivor.resume.as_ref();
            resume.is_none_or(|resume| known.covers(&resume.known))
        });
        !missing && resumes
    }

    /// Returns the orderer that goes on. The players of `gone` leave at once; others of whom nothing has come have a moment to do so. `own` is the link
    /// of this machine's session, which goes on by [`Session::resume`] as the others do.
    pub fn finish<G: DeterministicGame>(
        self,
        now: Instant,
        session: &Session<G>,
        own: LinkId,
        gone: &[Seat],
    ) -> Orderer {
        let mut orderer = Orderer::inherit(now, session, gone);
        orderer.vouch(own, session.seat());
        for (index, survivor) in self.survivors.into_iter().enumerate() {
            let Some(survivor) = survivor else { continue };
            let link = LinkId(index);
            orderer.vouch(link, survivor.seat);
            if let Some(resume) = survivor.resume {
                orderer.handle_resume(now, link, &resume, &survivor.inputs);
            }
        }
        orderer
    }
}

/// Links that may come back.
const LINKS_MAX: usize = 1_024;
/// Time after which a recall is repeated.
const ASK_EVERY: Duration = Duration::from_millis(100);
