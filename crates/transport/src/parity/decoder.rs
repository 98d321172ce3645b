//! The receiver's side: remembers the last protected sections and rebuilds those that are missing.
//!
//! Memory is bounded by [`HISTORY`] sections and the pending equations of [`Elimination`], allocated when first
//! needed and reused; each call does bounded work whatever the body holds.

use muse_wire::bytes::Reader;

use super::elimination::{COLUMNS, Elimination};
use super::{
    DISTANCE_MAX, LENGTH_LEN, Malformed, SECTION_MAX, SYMBOL_MAX, WINDOW_MAX, coefficient,
};

/// Rebuilds lost sections.
///
/// For each packet that arrived: [`on_section`](Self::on_section) if it has a protected section, then
/// [`on_parity`](Self::on_parity) if it has a parity frame, then [`poll_recovered`](Self::poll_recovered) until `None`.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The known sections, in the order in which they came: a ring once it is full.
    history: Vec<Known>,
    next: usize,
    /// The place in `history` to look for a packet, by its number modulo [`COLUMNS`].
    places: [u8; COLUMNS as usize],
    /// Bit *i*: `history[i]` was rebuilt and not handed out yet.
    unread: u32,
    /// Packets below this that are not in `history` may have been seen and forgotten: they are not rebuilt.
    floor: u64,
    elimination: Elimination,
    rejected: u64,
}

#[derive(Debug)]
struct Known {
    packet: u64,
    section: Vec<u8>,
}

/// The header of a parity frame.
struct Header {
    newest: u64,
    /// Bit *i*: the packet *i* before `newest` is covered.
    covered: u64,
}

impl Decoder {
    /// A decoder that rebuilds packets from number `first` on. One that is made when the first parity arrives must
    /// not rebuild what arrived before it was there.
    pub(crate) fn new(first: u64) -> Self {
        Self {
            history: Vec::new(),
            next: 0,
            places: [0; COLUMNS as usize],
            unread: 0,
            floor: first,
            elimination: Elimination::default(),
            rejected: 0,
        }
    }

    /// `packet` arrived with this protected section.
    pub(crate) fn on_section(&mut self, packet: u64, section: &[u8]) {
        if section.is_empty() || section.len() > SECTION_MAX {
            return;
        }
        self.elimination.advance(packet);
        if !self.elimination.reaches(packet) {
            return; // Too old to be of use, and to be rebuilt.
        }
        if let Some(place) = self.place(packet) {
            // If it was rebuilt, the packet itself was faster than the one who asks.
            self.unread &= !(1 << place);
            return;
        }
        self.rejected += self.elimination.learn(packet, section);
        self.remember(packet, section, false);
        self.collect();
    }

    /// `carrier` arrived with a parity frame of this body.
    pub(crate) fn on_parity(&mut self, carrier: u64, body: &[u8]) -> Result<(), Malformed> {
        let (header, symbol) = Header::parse(carrier, body)?;
        self.elimination.advance(header.newest);
        // Most parity brings nothing new; that is found out before any arithmetic.
        let mut oldest_unknown = None;
        for packet in header.packets() {
            if self.place(packet).is_none() {
                oldest_unknown = Some(packet);
            }
        }
        match oldest_unknown {
            None => return Ok(()),
            // Too late to tell whether that packet is missing.
            Some(oldest) if oldest < self.floor || !self.elimination.reaches(oldest) => {
                return Ok(());
            }
            Some(_) => {}
        }
        let mut row = self.elimination.blank(symbol);
        for packet in header.packets() {
            let factor = coefficient(carrier, packet);
            match self.place(packet) {
                None => row.set(packet, factor),
                Some(place) => {
                    if !row.subtract(packet, &self.history[place].section, factor) {
                        self.elimination.recycle(row);
                        return Err(Malformed::Length);
                    }
                }
            }
        }
        self.rejected += u64::from(!self.elimination.insert(row));
        self.collect();
        Ok(())
    }

    /// Puts the oldest rebuilt section that was not handed out yet into `out` and returns its packet's number.
    ///
    /// Each packet appears at most once, and none that has arrived.
    pub(crate) fn poll_recovered(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        if self.unread == 0 {
            return None;
        }
        let unread = (0..self.history.len()).filter(|place| self.unread & (1 << place) != 0);
        let place = unread.min_by_key(|place| self.history[*place].packet)?;
        self.unread &= !(1 << place);
        out.clear();
        out.extend_from_slice(&self.history[place].section);
        Some(self.history[place].packet)
    }

    /// True if something is missing that the parity received so far does not suffice to rebuild.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.elimination.is_empty()
    }

    /// Equations that contradicted what arrived, or whose solution was no section: the peer's mistakes.
    pub(crate) fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Moves what the equations now determine into the history.
    fn collect(&mut self) {
        while let Some(row) = self.elimination.take_solved() {
            match row.section() {
                Some(section) => self.remember(row.packet(), section, true),
                None => self.rejected += 1,
            }
            self.elimination.recycle(row);
        }
    }

    /// Keeps a section in place of the one that has been there longest.
    fn remember(&mut self, packet: u64, section: &[u8], rebuilt: bool) {
        if self.history.len() < HISTORY {
            self.history.push(Known {
                packet,
                section: Vec::new(),
            });
            self.next = self.history.len() - 1;
        } else {
            // Packets that leave the history must not be taken for missing, and rebuilt, later on.
            self.floor = self
                .floor
                .max(self.history[self.next].packet.saturating_add(1));
        }
        let known = &mut self.history[self.next];
        known.packet = packet;
        known.section.clear();
        known.section.extend_from_slice(section);
        self.places[(packet % COLUMNS) as usize] = self.next as u8;
        self.unread = self.unread & !(1 << self.next) | u32::from(rebuilt) << self.next;
        self.next = (self.next + 1) % HISTORY;
    }

    /// Returns the place of `packet` in the history.
    fn place(&self, packet: u64) -> Option<usize> {
        let place = usize::from(self.places[(packet % COLUMNS) as usize]);
        self.history
            .get(place)
            .is_some_and(|known| known.packet == packet)
            .then_some(place)
    }

    /// Memory held, in bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.history.capacity() * size_of::<Known>()
            + self
                .history
                .iter()
                .map(|known| known.section.capacity())
                .sum::<usize>()
            + self.elimination.capacity()
    }
}

impl Header {
    fn parse(carrier: u64, body: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(body);
        let distance = u64::from(reader.u8().map_err(|_| Malformed::Truncated)?);
        let mask = reader.varint().map_err(|_| Malformed::Truncated)?;
        let symbol = reader.rest();
        if distance == 0 || distance > DISTANCE_MAX {
            return Err(Malformed::Distance);
        }
        let newest = carrier.checked_sub(distance).ok_or(Malformed::Distance)?;
        let covered = mask << 1 | 1; // A varint has 62 bits, so none is lost.
        if u64::from(covered.ilog2()) > newest {
            return Err(Malformed::Distance);
        }
        if covered.count_ones() as usize > WINDOW_MAX {
            return Err(Malformed::Window);
        }
        if symbol.len() <= LENGTH_LEN {
            return Err(Malformed::Truncated);
        }
        if symbol.len() > SYMBOL_MAX {
            return Err(Malformed::Length);
        }
        Ok((Self { newest, covered }, symbol))
    }

    /// The covered packets, newest first.
    fn packets(&self) -> impl Iterator<Item = u64> + use<> {
        let (newest, mut left) = (self.newest, self.covered);
        std::iter::from_fn(move || {
            let back = left.trailing_zeros();
            left &= left.checked_sub(1)?;
            Some(newest - u64::from(back))
        })
    }
}

/// Sections kept.
const HISTORY: usize = u32::BITS as usize;

#[cfg(test)]
mod tests {
    use super::super::{Encoder, gf256};
    use super::*;

    /// A body over the one packet before `carrier` whose symbol is `symbol`.
    fn forge(carrier: u64, symbol: &[u8]) -> Vec<u8> {
        let mut body = vec![1, 0];
        body.extend(
            symbol
                .iter()
                .map(|byte| gf256::mul(*byte, coefficient(carrier, carrier - 1))),
        );
        body
    }

    #[test]
    fn headers_that_make_no_sense_are_refused() {
        let mut decoder = Decoder::new(0);
        let cases: [(u64, &[u8], Malformed); 9] = [
            (9, &[], Malformed::Truncated),
            (9, &[1], Malformed::Truncated),
            (9, &[1, 3, 0, 0], Malformed::Truncated),
            (9, &[1, 0, 1, 0], Malformed::Truncated),
            (9, &[0, 0, 1, 0, 5], Malformed::Distance),
            (99, &[64, 0, 1, 0, 5], Malformed::Distance),
            (0, &[1, 0, 1, 0, 5], Malformed::Distance),
            (2, &[1, 0b1000, 1, 0, 5], Malformed::Distance),
            (99, &[1, 0xfe, 0xff, 3, 0, 1, 0, 5], Malformed::Window),
        ];
        for (carrier, body, error) in cases {
            assert_eq!(
                decoder.on_parity(carrier, body),
                Err(error),
                "{carrier} {body:?}"
            );
        }
        let mut long = vec![1, 0];
        long.resize(2 + SYMBOL_MAX + 1, 0);
        assert_eq!(decoder.on_parity(9, &long), Err(Malformed::Length));
        assert_eq!(decoder.capacity(), 0, "what is refused takes no memory");
    }

    #[test]
    fn solutions_that_are_no_sections_are_counted_and_dropped() {
        let mut decoder = Decoder::new(0);
        let mut out = Vec::new();
        for (carrier, symbol) in [
            (1, [4, 0, 1, 2, 3]),
            (3, [0, 0, 0, 0, 0]),
            (5, [2, 0, 1, 2, 3]),
            (7, [0, 1, 1, 2, 3]),
        ] {
            decoder
                .on_parity(carrier, &forge(carrier, &symbol))
                .expect("well-formed");
            assert_eq!(decoder.poll_recovered(&mut out), None, "{symbol:?}");
        }
        assert_eq!(decoder.rejected(), 4);
        decoder
            .on_parity(9, &forge(9, &[2, 0, 1, 2, 0]))
            .expect("well-formed");
        assert_eq!(
            (decoder.poll_recovered(&mut out), &out[..]),
            (Some(8), &[1, 2][..])
        );
    }

    #[test]
    fn sections_longer_than_their_parity_contradict_it() {
        let mut decoder = Decoder::new(0);
        decoder.on_section(20, &[1; 9]);
        let over_two = [1, 0b100, 1, 2, 3];
        assert_eq!(
            decoder.on_parity(21, &over_two),
            Err(Malformed::Length),
            "20 is known"
        );
        assert_eq!(
            decoder.on_parity(31, &over_two),
            Ok(()),
            "29 and 30 are not"
        );
        assert_eq!(decoder.rejected(), 0);
        decoder.on_section(29, &[1; 9]);
        assert_eq!(
            (decoder.rejected(), decoder.poll_recovered(&mut Vec::new())),
            (1, None)
        );
        // The same equation twice over, with another sum: at most one of them is true.
        assert_eq!(decoder.on_parity(41, &[1, 0b100, 1, 2, 3]), Ok(()));
        assert_eq!(decoder.on_parity(41, &[1, 0b100, 1, 2, 4]), Ok(()));
        assert_eq!(
            (decoder.rejected(), decoder.poll_recovered(&mut Vec::new())),
            (2, None)
        );
    }

    /// Bytes of a hostile peer: any numbers, any bodies, mixed with true sections.
    #[test]
    fn forged_bodies_neither_panic_nor_grow() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut decoder = Decoder::new(random.u64(..) >> random.u32(0..64));
            let mut carrier = random.u64(..) >> random.u32(0..64);
            let mut out = Vec::new();
            for _ in 0..600 {
                carrier = match random.u8(..) {
                    0 => random.u64(..) >> random.u32(0..64),
                    1..=40 => carrier.saturating_sub(random.u64(0..80)),
                    _ => carrier.saturating_add(random.u64(0..4)),
                };
                let len = if random.u8(..) < 16 {
                    random.usize(0..2_000)
                } else {
                    random.usize(0..30)
                };
                let mut body: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
                if random.bool() && len > 4 {
                    body[0] = random.u8(1..6);
                    body[1] &= 0xfc;
                }
                if random.u8(..) < 100 {
                    decoder.on_section(carrier, &body);
                } else {
                    decoder.on_parity(carrier, &body).ok();
                }
                if random.bool() {
                    decoder.poll_recovered(&mut out);
                }
                let limit = 2 * (HISTORY + 17) * SYMBOL_MAX;
                assert!(
                    decoder.capacity() < limit,
                    "seed {seed}: {} bytes",
                    decoder.capacity()
                );
            }
        }
    }

    #[test]
    fn buffers_are_reused_and_modest() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut encoder = Encoder::default();
        let mut decoder = Decoder::new(0);
        assert_eq!(decoder.capacity(), 0, "nothing arrived, nothing held");
        let (mut body, mut out) = ([0; 200], Vec::new());
        let (mut warm, mut rebuilt) = (0, 0);
        for packet in 0..20_000_u64 {
            let len = encoder.emit(packet, 8, &mut body);
            encoder.push(packet, &[packet as u8; 100]);
            if random.u8(..) < 50 {
                continue;
            }
            decoder.on_section(packet, &[packet as u8; 100]);
            if let Some(len) = len.filter(|_| packet % 2 == 0) {
                decoder
                    .on_parity(packet, &body[..len])
                    .expect("well-formed");
            }
            while decoder.poll_recovered(&mut out).is_some() {
                rebuilt += 1;
            }
            if packet < 10_000 {
                warm = decoder.capacity();
            }
        }
        assert!(rebuilt > 2_000, "only {rebuilt} rebuilt");
        assert_eq!(decoder.capacity(), warm, "no allocation once warm");
        assert!(warm < 12_000, "{warm} bytes");
    }
}
