//! The sender's side: remembers the last protected sections and writes parity over them.
//!
//! Buffers are allocated when first needed and reused for ever after, so that a connection which sends nothing
//! protected costs nothing and a busy one does not allocate.

use muse_wire::bytes::{Writer, varint_len};

use super::{DISTANCE_MAX, LENGTH_LEN, SECTION_MAX, SPAN_MAX, WINDOW_MAX, coefficient, gf256};

/// Remembers the newest [`WINDOW_MAX`] sections and codes over them.
///
/// For each packet built: [`emit`](Self::emit) first, if the packet shall carry parity, then
/// [`push`](Self::push) with the packet's own section. Packet numbers rise.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// A ring: the newest section stands before `next`.
    slots: Vec<Slot>,
    next: usize,
}

#[derive(Debug)]
struct Slot {
    packet: u64,
    section: Vec<u8>,
}

/// The sections that one parity frame will cover.
struct Cover {
    newest: u64,
    /// Bit *i*: the packet *i* + 1 before `newest`.
    mask: u64,
    longest: usize,
}

impl Encoder {
    /// Remembers what was in `packet`. An empty section, or one longer than [`SECTION_MAX`], stays unprotected.
    pub(crate) fn push(&mut self, packet: u64, section: &[u8]) {
        if section.is_empty() || section.len() > SECTION_MAX {
            return;
        }
        if self.slots.len() < WINDOW_MAX {
            self.slots.push(Slot {
                packet,
                section: Vec::new(),
            });
            self.next = self.slots.len() - 1;
        }
        let slot = &mut self.slots[self.next];
        slot.packet = packet;
        slot.section.clear();
        slot.section.extend_from_slice(section);
        self.next = (self.next + 1) % WINDOW_MAX;
    }

    /// Returns the length of a frame body over the newest `window` sections; 0 if there is nothing to cover.
    pub(crate) fn symbol_len(&self, window: usize) -> usize {
        self.cover(u64::MAX, window, usize::MAX)
            .map_or(0, |cover| cover.len())
    }

    /// Writes the body of a parity frame that packet `carrier` will hold and returns its length.
    ///
    /// It covers the newest `window` remembered sections older than `carrier`, leaving out those too long for `out`.
    /// `None` if that leaves nothing.
    pub(crate) fn emit(&mut self, carrier: u64, window: usize, out: &mut [u8]) -> Option<usize> {
        let cover = self.cover(carrier, window, out.len())?;
        let distance = carrier.checked_sub(cover.newest)?;
        if distance > DISTANCE_MAX {
            return None;
        }
        let out = out.get_mut(..cover.len())?;
        let mut writer = Writer::new(out);
        writer.u8(distance as u8).ok()?;
        writer.varint(cover.mask).ok()?;
        let symbol = writer.spare();
        symbol.fill(0);
        for slot in &self.slots {
            if cover.includes(slot) {
                let factor = coefficient(carrier, slot.packet);
                let length = (slot.section.len() as u16).to_le_bytes();
                symbol[0] ^= gf256::mul(factor, length[0]);
                symbol[1] ^= gf256::mul(factor, length[1]);
                gf256::mul_add(&mut symbol[LENGTH_LEN..], &slot.section, factor);
            }
        }
        Some(cover.len())
    }

    /// Chooses the newest `window` sections before `carrier` whose parity fits into `room`.
    fn cover(&self, carrier: u64, window: usize, room: usize) -> Option<Cover> {
        let mut cover: Option<Cover> = None;
        let mut left = window.min(WINDOW_MAX);
        for slot in self.newest_first() {
            if left == 0 {
                break;
            }
            if slot.section.is_empty() || slot.packet >= carrier {
                continue;
            }
            let wider = match &cover {
                None => Cover {
                    newest: slot.packet,
                    mask: 0,
                    longest: slot.section.len(),
                },
                Some(cover) => match cover.newest.saturating_sub(slot.packet) {
                    back @ 1..=SPAN_MAX => Cover {
                        newest: cover.newest,
                        mask: cover.mask | 1 << (back - 1),
                        longest: cover.longest.max(slot.section.len()),
                    },
                    _ => break,
                },
            };
            if wider.len() <= room {
                cover = Some(wider);
                left -= 1;
            }
        }
        cover
    }

    fn newest_first(&self) -> impl Iterator<Item = &Slot> {
        let (before, after) = self.slots.split_at(self.next.min(self.slots.len()));
        before.iter().rev().chain(after.iter().rev())
    }
}

impl Cover {
    fn includes(&self, slot: &Slot) -> bool {
        let back = self.newest.wrapping_sub(slot.packet);
        let covered = back == 0 || (back <= SPAN_MAX && self.mask & (1 << (back - 1)) != 0);
        covered && !slot.section.is_empty()
    }

    fn len(&self) -> usize {
        1 + varint_len(self.mask) + LENGTH_LEN + self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance and mask of the frame that `encoder` writes.
    fn header(
        encoder: &mut Encoder,
        carrier: u64,
        window: usize,
        room: usize,
    ) -> Option<(u8, u64, usize)> {
        let mut out = vec![0; room];
        let len = encoder.emit(carrier, window, &mut out)?;
        let mut reader = muse_wire::bytes::Reader::new(&out[..len]);
        Some((reader.u8().ok()?, reader.varint().ok()?, len))
    }

    #[test]
    fn covers_the_newest_sections_that_are_wanted_and_fit() {
        let mut encoder = Encoder::default();
        assert_eq!(
            (encoder.symbol_len(6), header(&mut encoder, 9, 6, 1_000)),
            (0, None)
        );
        for packet in 0..40 {
            encoder.push(packet, &[1; 20]);
        }
        assert_eq!(
            header(&mut encoder, 40, 6, 1_000),
            Some((1, 0b1_1111, 1 + 1 + 2 + 20))
        );
        assert_eq!(encoder.symbol_len(6), 24);
        assert_eq!(
            header(&mut encoder, 50, 99, 1_000),
            Some((11, (1 << 15) - 1, 1 + 4 + 2 + 20))
        );
        assert_eq!(
            header(&mut encoder, 38, 2, 1_000),
            Some((1, 0b1, 24)),
            "only what is older"
        );
        assert_eq!(
            header(&mut encoder, 39 + 64, 2, 1_000),
            None,
            "too far behind"
        );
        assert_eq!(header(&mut encoder, 40, 6, 23), None, "no room");
        encoder.push(40, &[1; 400]);
        assert_eq!(
            header(&mut encoder, 41, 3, 100),
            Some((2, 0b11, 24)),
            "the long one is left out"
        );
        assert_eq!(header(&mut encoder, 41, 3, 500), Some((1, 0b11, 404)));
        encoder.push(200, &[1; 20]);
        assert_eq!(
            header(&mut encoder, 201, 3, 500),
            Some((1, 0, 24)),
            "the others are out of reach"
        );
    }

    #[test]
    fn what_cannot_be_protected_is_passed_over() {
        let mut encoder = Encoder::default();
        encoder.push(1, &[]);
        encoder.push(2, &[0; SECTION_MAX + 1]);
        assert_eq!(encoder.symbol_len(4), 0);
        encoder.push(3, &[9; SECTION_MAX]);
        assert_eq!(encoder.symbol_len(4), 1 + 1 + 2 + SECTION_MAX);
    }

    #[test]
    fn buffers_are_reused() {
        let capacity = |encoder: &Encoder| {
            let sections = encoder.slots.iter().map(|slot| slot.section.capacity());
            encoder.slots.capacity() * size_of::<Slot>() + sections.sum::<usize>()
        };
        let mut encoder = Encoder::default();
        assert_eq!(capacity(&encoder), 0, "nothing sent, nothing held");
        (0..16).for_each(|packet| encoder.push(packet, &[3; 100]));
        let warm = capacity(&encoder);
        assert!(warm <= 16 * (100 + size_of::<Slot>()), "{warm} bytes");
        let pointers: Vec<_> = encoder
            .slots
            .iter()
            .map(|slot| slot.section.as_ptr())
            .collect();
        (16..1_000).for_each(|packet| encoder.push(packet, &[4; 100]));
        assert!(
            encoder
                .slots
                .iter()
                .map(|slot| slot.section.as_ptr())
                .eq(pointers)
        );
        assert_eq!(capacity(&encoder), warm);
    }
}
