//! Gaussian elimination, one equation at a time, with missing packets as the unknowns.
//!
//! Rows are kept in reduced echelon form: each has a pivot, the oldest packet in it, that occurs in no other row.
//! So a packet is determined exactly when its row holds nothing else; and when rows must be dropped (too many, or
//! too old), dropping the one with the oldest pivot loses nothing about younger packets.

use super::{LENGTH_LEN, SYMBOL_MAX, gf256};

/// The equations that wait for more.
#[derive(Debug, Default)]
pub(super) struct Elimination {
    rows: Vec<Row>,
    /// Rows out of use whose buffers are kept.
    spare: Vec<Row>,
    /// The newest packet seen; unknowns lie within [`COLUMNS`] of it.
    newest: u64,
}

/// An equation: the sum of coefficient times symbol over the unknown packets equals `symbol`.
#[derive(Debug)]
pub(super) struct Row {
    /// By packet number modulo [`COLUMNS`].
    coefficients: [u8; COLUMNS as usize],
    /// One bit for each coefficient that is not zero.
    columns: u64,
    pivot: u64,
    symbol: Vec<u8>,
}

impl Elimination {
    /// Moves on to `packet` if it is the newest yet, dropping equations about packets that are now too old.
    pub(super) fn advance(&mut self, packet: u64) {
        let step = packet.saturating_sub(self.newest);
        if step == 0 {
            return;
        }
        let expired = if step >= COLUMNS {
            u64::MAX
        } else {
            ((1 << step) - 1_u64).rotate_left(column(self.newest.wrapping_add(1)))
        };
        self.newest = packet;
        let mut index = 0;
        while let Some(row) = self.rows.get(index) {
            if row.columns & expired != 0 {
                self.drop_row(index);
            } else {
                index += 1;
            }
        }
    }

    /// True if `packet` is near enough to the newest one to be an unknown.
    pub(super) fn reaches(&self, packet: u64) -> bool {
        packet <= self.newest && self.newest - packet < COLUMNS
    }

    /// An equation without unknowns, to be filled in and given to [`insert`](Self::insert).
    pub(super) fn blank(&mut self, symbol: &[u8]) -> Row {
        let mut row = self.spare.pop().unwrap_or_else(Row::new);
        row.coefficients.fill(0);
        row.columns = 0;
        row.symbol.clear();
        row.symbol.extend_from_slice(symbol);
        row
    }

    /// Takes back a row for its buffer.
    pub(super) fn recycle(&mut self, row: Row) {
        self.spare.push(row);
    }

    /// Adds an equation, keeping the echelon form. `false` if it contradicts what is known.
    pub(super) fn insert(&mut self, mut row: Row) -> bool {
        for other in &self.rows {
            // A pivot occurs in one row only, so no step disturbs the others.
            let factor = row.coefficient(other.pivot);
            if factor != 0 {
                row.add(other, factor);
            }
        }
        let Some(pivot) = self.oldest(row.columns) else {
            let consistent = row.symbol.iter().all(|byte| *byte == 0);
            self.recycle(row);
            return consistent;
        };
        row.pivot = pivot;
        row.scale(gf256::inverse(row.coefficient(pivot)));
        for other in &mut self.rows {
            let factor = other.coefficient(pivot);
            if factor != 0 {
                other.add(&row, factor);
            }
        }
        self.rows.push(row);
        if self.rows.len() > ROWS_MAX {
            let oldest = (0..self.rows.len()).min_by_key(|index| self.rows[*index].pivot);
            oldest.into_iter().for_each(|index| self.drop_row(index));
        }
        true
    }

    /// `packet` is no longer unknown: takes it out of every equation. Returns how many it contradicted.
    pub(super) fn learn(&mut self, packet: u64, section: &[u8]) -> u64 {
        let mut contradicted = 0;
        if !self.reaches(packet) {
            return contradicted;
        }
        let mut pivotless = None;
        let mut index = 0;
        while let Some(row) = self.rows.get_mut(index) {
            let factor = row.coefficient(packet);
            if factor != 0 && !row.subtract(packet, section, factor) {
                self.drop_row(index);
                contradicted += 1;
            } else if factor != 0 && row.pivot == packet {
                pivotless = Some(self.rows.swap_remove(index));
            } else {
                index += 1;
            }
        }
        if let Some(row) = pivotless {
            contradicted += u64::from(!self.insert(row));
        }
        contradicted
    }

    /// Takes out a row that determines its packet.
    pub(super) fn take_solved(&mut self) -> Option<Row> {
        let index = self
            .rows
            .iter()
            .position(|row| row.columns.is_power_of_two())?;
        Some(self.rows.swap_remove(index))
    }

    /// True if no equation is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn drop_row(&mut self, index: usize) {
        let row = self.rows.swap_remove(index);
        self.spare.push(row);
    }

    /// The oldest of the packets that stand in `columns`.
    fn oldest(&self, columns: u64) -> Option<u64> {
        let first = self.newest.wrapping_sub(COLUMNS - 1);
        let ahead = columns.rotate_right(column(first)).trailing_zeros();
        (columns != 0).then(|| first.wrapping_add(u64::from(ahead)))
    }

    /// Memory held, in bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        let rows = self.rows.iter().chain(&self.spare);
        (self.rows.capacity() + self.spare.capacity()) * size_of::<Row>()
            + rows.map(|row| row.symbol.capacity()).sum::<usize>()
    }
}

impl Row {
    fn new() -> Self {
        Self {
            coefficients: [0; COLUMNS as usize],
            columns: 0,
            pivot: 0,
            symbol: Vec::new(),
        }
    }

    /// The packet that a solved row determines.
    pub(super) fn packet(&self) -> u64 {
        self.pivot
    }

    /// The section that a solved row determines, unless the symbol is none: a length that does not fit, or padding
    /// that is not zero.
    pub(super) fn section(&self) -> Option<&[u8]> {
        let (length, rest) = self.symbol.split_first_chunk::<LENGTH_LEN>()?;
        let (section, padding) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        (!section.is_empty() && padding.iter().all(|byte| *byte == 0)).then_some(section)
    }

    /// Puts the unknown `packet` into the equation.
    pub(super) fn set(&mut self, packet: u64, coefficient: u8) {
        let column = column(packet);
        self.coefficients[column as usize] = coefficient;
        self.columns = self.columns & !(1 << column) | u64::from(coefficient != 0) << column;
    }

    /// Moves a known packet to the right-hand side. `false` if its section is longer than the equation allows.
    pub(super) fn subtract(&mut self, packet: u64, section: &[u8], factor: u8) -> bool {
        let Some((length, rest)) = self.symbol.split_first_chunk_mut::<LENGTH_LEN>() else {
            return false;
        };
        if section.len() > rest.len() {
            return false;
        }
        for (target, source) in length.iter_mut().zip((section.len() as u16).to_le_bytes()) {
            *target ^= gf256::mul(factor, source);
        }
        gf256::mul_add(rest, section, factor);
        self.set(packet, 0);
        true
    }

    fn coefficient(&self, packet: u64) -> u8 {
        self.coefficients[column(packet) as usize]
    }

    /// Adds `factor` times `other`. A shorter symbol is continued by zeros, which is what its sections are padded with.
    fn add(&mut self, other: &Self, factor: u8) {
        if self.symbol.len() < other.symbol.len() {
            debug_assert!(
                other.symbol.len() <= SYMBOL_MAX,
                "symbols are checked on arrival"
            );
            self.symbol.resize(other.symbol.len(), 0);
        }
        gf256::mul_add(&mut self.symbol, &other.symbol, factor);
        gf256::mul_add(&mut self.coefficients, &other.coefficients, factor);
        let mut touched = other.columns;
        while touched != 0 {
            let column = touched.trailing_zeros();
            let present = u64::from(self.coefficients[column as usize] != 0);
            self.columns = self.columns & !(1 << column) | present << column;
            touched &= touched - 1;
        }
    }

    fn scale(&mut self, factor: u8) {
        gf256::scale(&mut self.symbol, factor);
        gf256::scale(&mut self.coefficients, factor);
    }
}

fn column(packet: u64) -> u32 {
    (packet % COLUMNS) as u32
}

/// Unknown packets lie within this many of the newest, so that a packet's number modulo this names it.
pub(super) const COLUMNS: u64 = u64::BITS as u64;
/// Equations kept; beyond, the one about the oldest packet goes.
const ROWS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_reduced(elimination: &Elimination, context: &str) {
        let rows = &elimination.rows;
        assert!(rows.len() <= ROWS_MAX, "{context}: {} rows", rows.len());
        assert!(
            rows.len() + elimination.spare.len() <= ROWS_MAX + 1,
            "{context}: buffers leak"
        );
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(
                elimination.oldest(row.columns),
                Some(row.pivot),
                "{context}"
            );
            assert_eq!(row.coefficient(row.pivot), 1, "{context}");
            for (column, coefficient) in row.coefficients.iter().enumerate() {
                assert_eq!(
                    row.columns & (1 << column) != 0,
                    *coefficient != 0,
                    "{context}"
                );
            }
            for (other, row_other) in rows.iter().enumerate() {
                assert!(
                    other == index || row_other.coefficient(row.pivot) == 0,
                    "{context}: {}",
                    row.pivot
                );
            }
        }
    }

    #[test]
    fn rows_stay_reduced_and_bounded_whatever_comes() {
        let mut most = 0;
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut elimination = Elimination::default();
            let mut newest = random.u64(0..1 << 40);
            for step in 0..400 {
                newest += if random.u8(..) == 0 {
                    random.u64(0..100)
                } else {
                    random.u64(0..3)
                };
                elimination.advance(newest);
                let recent = |random: &mut fastrand::Rng| newest.saturating_sub(random.u64(0..60));
                if random.bool() {
                    let mut row = elimination.blank(&[random.u8(..), 0, 0, 0]);
                    for _ in 0..random.u8(1..9) {
                        row.set(recent(&mut random), random.u8(..));
                    }
                    elimination.insert(row);
                } else {
                    elimination.learn(recent(&mut random), &[random.u8(..)]);
                }
                assert_reduced(&elimination, &format!("seed {seed}, step {step}"));
                most = most.max(elimination.rows.len());
                while let Some(row) = elimination.take_solved() {
                    assert_eq!(row.columns.count_ones(), 1);
                    elimination.recycle(row);
                }
            }
        }
        assert_eq!(most, ROWS_MAX, "the limit was reached");
    }

    #[test]
    fn what_falls_behind_is_dropped_and_the_rest_stays() {
        let mut elimination = Elimination::default();
        elimination.advance(100);
        for packets in [[40, 90], [95, 99]] {
            let mut row = elimination.blank(&[1, 0, 7]);
            packets.iter().for_each(|packet| row.set(*packet, 1));
            assert!(elimination.insert(row));
        }
        elimination.advance(103);
        assert_eq!(elimination.rows.len(), 2, "40 is 63 behind");
        elimination.advance(104);
        assert!(elimination.rows.iter().map(|row| row.pivot).eq([95]));
        elimination.advance(1 << 50);
        assert!(elimination.rows.is_empty());
    }
}
