//! Sliding-window parity: lost packets are rebuilt from later ones, without waiting for a retransmission.
//!
//! Serves the latency classes *balanced* and *fast* of reliable channels; acknowledgements and channels keep their
//! promises with or without it. What is protected is the *protected section* of a packet: its frames of channels
//! that chose one of these classes, concatenated. The [`Encoder`] remembers the last sections sent and writes parity
//! frames over them, each a linear combination over GF(256); the [`Decoder`] remembers the last sections
//! received and solves for the missing ones as soon as any is determined. Both live inside the AEAD: what they read
//! was written by the authenticated peer, which may still be hostile, so nothing here panics or grows past its limits.
//!
//! The format, the coefficients and a worked example are in `docs/decisions/0003-parity-over-packet-sections.md`.
//! The body of a parity frame is
//!
//! | bytes | field |
//! | --- | --- |
//! | 1 | distance, 1 to 63: the newest covered packet is the carrier's number less this |
//! | 1, 2, 4, 8 | varint mask: bit *i* says that the packet *i* + 1 before the newest is covered too |
//! | rest | the sum over the covered packets of coefficient times symbol |
//!
//! where a packet's symbol is its section's length (2 bytes) and its section, padded with zeros.

mod decoder;
mod elimination;
mod encoder;
mod gf256;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;

use thiserror::Error;

/// The reason for which the body of a parity frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub(crate) enum Malformed {
    #[error("the parity frame ends within its header or holds no symbol")]
    Truncated,
    #[error("the parity frame covers a packet that cannot precede its carrier")]
    Distance,
    #[error("the parity frame covers more than {WINDOW_MAX} packets")]
    Window,
    #[error("the parity symbol is longer than {SYMBOL_MAX} bytes or shorter than what it covers")]
    Length,
}

/// The coefficient of packet `source` in the parity that packet `carrier` holds.
///
/// An element of a Cauchy matrix, 1 / (x + y) with x = 128 + `carrier` mod 128 and y = `source` mod 128: every square
/// part of such a matrix is invertible while its x and its y are distinct. They are, since a packet carries at most one
/// parity frame and equations reach back fewer than 128 packets.
const fn coefficient(carrier: u64, source: u64) -> u8 {
    gf256::inverse((0x80 | (carrier & 0x7f) as u8) ^ (source & 0x7f) as u8)
}

/// Most sections that one parity frame covers.
pub(crate) const WINDOW_MAX: usize = 16;
/// Longest section that can be protected; longer ones go without.
pub(crate) const SECTION_MAX: usize = 1_150;
/// A symbol begins with the length of its section.
const LENGTH_LEN: usize = 2;
const SYMBOL_MAX: usize = LENGTH_LEN + SECTION_MAX;
/// The largest distance from the carrier to the newest covered packet.
const DISTANCE_MAX: u64 = 63;
/// The largest distance from the newest covered packet to the oldest: the bits of a varint.
const SPAN_MAX: u64 = 62;

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that puts parity over the last `window` sections into every `every`-th packet, and what it sent.
    struct Sender {
        encoder: Encoder,
        every: u64,
        window: usize,
    }

    struct Packet {
        number: u64,
        section: Vec<u8>,
        parity: Option<Vec<u8>>,
    }

    impl Sender {
        fn new(every: u64, window: usize) -> Self {
            Self {
                encoder: Encoder::default(),
                every,
                window,
            }
        }

        fn send(&mut self, number: u64, section: Vec<u8>) -> Packet {
            let mut body = [0; SYMBOL_MAX + 9];
            let planned = self.encoder.symbol_len(self.window);
            let due = number.is_multiple_of(self.every);
            let len = if due {
                self.encoder.emit(number, self.window, &mut body)
            } else {
                None
            };
            assert!(
                len.is_none_or(|len| len <= planned),
                "{len:?} bytes, {planned} planned"
            );
            self.encoder.push(number, &section);
            Packet {
                number,
                section,
                parity: len.map(|len| body[..len].to_vec()),
            }
        }
    }

    fn arrive(decoder: &mut Decoder, packet: &Packet) -> Vec<(u64, Vec<u8>)> {
        if !packet.section.is_empty() {
            decoder.on_section(packet.number, &packet.section);
        }
        if let Some(body) = &packet.parity {
            decoder
                .on_parity(packet.number, body)
                .expect("the encoder writes well-formed bodies");
        }
        let mut section = Vec::new();
        std::iter::from_fn(|| {
            decoder
                .poll_recovered(&mut section)
                .map(|packet| (packet, section.clone()))
        })
        .collect()
    }

    /// Finds the columns that the rows determine, by plain Gaussian elimination over everything.
    fn determined(mut rows: Vec<Vec<u8>>, columns: usize) -> Vec<bool> {
        let mut rank = 0;
        for column in 0..columns {
            let Some(found) = (rank..rows.len()).find(|row| rows[*row][column] != 0) else {
                continue;
            };
            rows.swap(rank, found);
            let pivot = rows[rank].clone();
            for (index, row) in rows.iter_mut().enumerate() {
                let factor = gf256::mul(row[column], gf256::inverse(pivot[column]));
                for (target, source) in row.iter_mut().zip(&pivot) {
                    *target ^= if index == rank {
                        0
                    } else {
                        gf256::mul(factor, *source)
                    };
                }
            }
            rank += 1;
        }
        let alone = |row: &Vec<u8>, column| {
            row.iter()
                .enumerate()
                .all(|(at, value)| (*value != 0) == (at == column))
        };
        (0..columns)
            .map(|column| rows.iter().any(|row| alone(row, column)))
            .collect()
    }

    /// Every pattern of losses among `COUNT` packets: after each arrival exactly what is determined has been rebuilt.
    #[test]
    fn whatever_the_rank_permits_is_rebuilt_at_once() {
        const COUNT: usize = 11;
        for (every, window, first) in [
            (1, 8, 124),
            (2, 8, 1_000),
            (3, 8, 60),
            (1, 5, 250),
            (3, 6, 127),
            (1, 3, 0),
        ] {
            let mut sender = Sender::new(every, window);
            let packets: Vec<Packet> = (0..COUNT as u64)
                .map(|index| {
                    sender.send(first + index, vec![index as u8 + 1; index as usize % 4 + 1])
                })
                .collect();
            for lost in 0..1_u32 << COUNT {
                let mut decoder = Decoder::new(0);
                let mut rebuilt = [false; COUNT];
                let mut equations: Vec<Vec<u8>> = Vec::new();
                for (index, packet) in packets
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| lost & (1 << index) == 0)
                {
                    for (number, section) in arrive(&mut decoder, packet) {
                        let at = (number - first) as usize;
                        assert_eq!(
                            section, packets[at].section,
                            "packet {number}, losses {lost:b}"
                        );
                        assert!(
                            !std::mem::replace(&mut rebuilt[at], true),
                            "twice: {number}, losses {lost:b}"
                        );
                    }
                    if packet.parity.is_some() {
                        let covered = index.saturating_sub(window)..index;
                        let missing = |at: usize| covered.contains(&at) && lost & (1 << at) != 0;
                        let value = |at| {
                            coefficient(packet.number, first + at as u64) * u8::from(missing(at))
                        };
                        equations.push((0..COUNT).map(value).collect());
                    }
                    let expected = determined(equations.clone(), COUNT);
                    assert_eq!(
                        rebuilt[..],
                        expected[..],
                        "every {every} over {window}, {lost:b} at {index}"
                    );
                }
            }
        }
    }

    #[test]
    fn square_parts_of_the_coefficients_are_invertible() {
        let mut random = fastrand::Rng::with_seed(3);
        for size in 2..=8 {
            for _ in 0..2_000 {
                let base = random.u64(0..1 << 40);
                let mut numbers: Vec<u64> = (base..base + 128).collect();
                random.shuffle(&mut numbers);
                let (carriers, sources) = (&numbers[..size], &numbers[size..2 * size]);
                let row = |carrier: &u64| {
                    sources
                        .iter()
                        .map(|source| coefficient(*carrier, *source))
                        .collect()
                };
                let rows = carriers.iter().map(row).collect();
                assert!(
                    determined(rows, size).iter().all(|found| *found),
                    "{carriers:?} {sources:?}"
                );
            }
        }
    }

    /// Sizes, gaps between numbers, order, duplicates and losses at random, over the wrap of the coefficients.
    #[test]
    fn random_streams_rebuild_only_what_was_sent_and_never_twice() {
        let mut total = 0;
        for seed in 0..400 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut sender = Sender::new(random.u64(1..4), random.usize(1..=WINDOW_MAX));
            let mut number = random.u64(0..1 << 50);
            let (loss, gap, shuffle) = (random.f64() * 0.4, random.u64(1..5), random.u64(0..12));
            let first = number;
            let mut sent = std::collections::BTreeMap::new();
            let mut arrivals = Vec::new();
            for index in 0..300_u64 {
                number += random.u64(1..=gap);
                let len = if random.u8(..) < 20 {
                    0
                } else {
                    random.usize(1..600)
                };
                let packet = sender.send(number, (0..len).map(|_| random.u8(..)).collect());
                sent.insert(number, packet.section.clone());
                let copies = if random.f64() < loss {
                    0
                } else {
                    1 + usize::from(random.u8(..) < 10)
                };
                let packet = std::rc::Rc::new(packet);
                arrivals
                    .extend((0..copies).map(|_| (index + random.u64(0..=shuffle), packet.clone())));
            }
            arrivals.sort_by_key(|(at, _)| *at);
            let mut decoder = Decoder::new(first);
            let mut seen = std::collections::BTreeSet::new();
            for (_, packet) in &arrivals {
                seen.insert(packet.number);
                for (number, section) in arrive(&mut decoder, packet) {
                    assert_eq!(
                        Some(&section),
                        sent.get(&number),
                        "seed {seed}, packet {number}"
                    );
                    assert!(
                        seen.insert(number),
                        "seed {seed}: {number} had arrived or been rebuilt"
                    );
                    total += 1;
                }
            }
            assert_eq!(decoder.rejected(), 0, "seed {seed}");
        }
        assert!(total > 5_000, "only {total} rebuilt");
    }

    #[test]
    fn a_rebuilt_packet_helps_with_the_next() {
        let mut sender = Sender::new(2, 3);
        let packets: Vec<Packet> = (1..=8)
            .map(|number| sender.send(number, vec![number as u8; 40]))
            .collect();
        let mut decoder = Decoder::new(0);
        let mut rebuilt = Vec::new();
        // 4 (over 1 to 3) gives back 3; so 6 (over 3 to 5), which would have two unknowns, gives back 5.
        for number in [1, 2, 4, 6] {
            rebuilt.extend(
                arrive(&mut decoder, &packets[number - 1])
                    .into_iter()
                    .map(|(packet, _)| packet),
            );
        }
        assert_eq!(rebuilt, [3, 5]);
    }

    #[test]
    fn a_late_packet_is_neither_rebuilt_nor_repeated() {
        let mut sender = Sender::new(1, 4);
        let packets: Vec<Packet> = (0..4)
            .map(|number| sender.send(number, vec![7; 10]))
            .collect();
        let mut decoder = Decoder::new(0);
        // The parity in 2 covers 0 and 1; 0 arrives after it, which leaves 1 to be rebuilt; then 1 arrives as well.
        assert!(arrive(&mut decoder, &packets[2]).is_empty());
        decoder.on_section(0, &packets[0].section);
        decoder.on_section(1, &packets[1].section);
        assert_eq!(
            decoder.poll_recovered(&mut Vec::new()),
            None,
            "packet 1 came before anyone asked"
        );
        assert!(arrive(&mut decoder, &packets[3]).is_empty());
        // Made when 2 arrived, a decoder cannot know whether 0 and 1 did.
        let mut late = Decoder::new(2);
        assert!(arrive(&mut late, &packets[2]).is_empty());
        assert!(arrive(&mut late, &packets[3]).is_empty());
    }

    /// The worked example of the decision page, computed there by other means.
    #[test]
    fn the_documented_example_holds() {
        let sections: [(u64, &[u8]); 3] = [(1_000, b"muse"), (1_001, b"parity"), (1_003, b"ok")];
        let mut encoder = Encoder::default();
        sections
            .iter()
            .for_each(|(packet, section)| encoder.push(*packet, section));
        let golden: [(u64, [u8; 3], [u8; 10]); 2] = [
            (
                1_005,
                [204, 124, 228],
                [2, 24, 215, 0, 101, 79, 230, 248, 51, 101],
            ),
            (
                1_006,
                [228, 176, 204],
                [3, 24, 181, 0, 188, 65, 147, 252, 173, 14],
            ),
        ];
        let mut decoder = Decoder::new(0);
        decoder.on_section(1_003, b"ok");
        for (carrier, coefficients, expected) in golden {
            let mut body = [0; 64];
            let len = encoder.emit(carrier, 3, &mut body).expect("three sections");
            assert_eq!(body[..len], expected);
            assert_eq!(
                sections.map(|(packet, _)| coefficient(carrier, packet)),
                coefficients
            );
            decoder.on_parity(carrier, &expected).expect("well-formed");
        }
        let mut out = Vec::new();
        assert_eq!(
            (decoder.poll_recovered(&mut out), &out[..]),
            (Some(1_000), &b"muse"[..])
        );
        assert_eq!(
            (decoder.poll_recovered(&mut out), &out[..]),
            (Some(1_001), &b"parity"[..])
        );
        assert_eq!(decoder.poll_recovered(&mut out), None);
    }
}
