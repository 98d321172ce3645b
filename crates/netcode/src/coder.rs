//! Rows of a state to bits and back: the entropy coder of snapshots.
//!
//! A [`RowCoder`] is made from the columns of a kind of entity and knows nothing else of the game. A row is coded against
//! [`References`], older rows of the same entity that the receiver has for certain, with what the [`Models`] have learnt from
//! the rows before it. Both sides give the same references and models, and then the decoder ends up with exactly the row
//! that was encoded. Arithmetic is in integers, or of the kind that IEEE 754 rounds alike everywhere, so this holds between any two platforms.
//!
//! Per row it costs one decision to say that nothing changed. If something did, each column is predicted in several ways
//! (as it was, along a line or a curve, by its declared velocity, as a turning rotation), and the error of the best is
//! coded. How thoroughly, depends on how much there is to do: see `docs/decisions/0005-snapshot-coder.md`.

mod coding;
mod dense;
mod lanes;
mod mix;
mod models;
mod plan;
mod references;
mod rotation;
mod row;
mod sparse;

pub use models::Models;
pub use references::References;

use muse_schema::Column;
use muse_wire::range::{Decoder, Encoder};
use thiserror::Error;

use plan::Plan;

/// A row or its bits are not what this coder's columns allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RowError {
    /// A row or a reference has another number of columns than the coder.
    #[error("the row has another number of columns")]
    Width,
    /// A value lies outside of its column's bounds.
    #[error("a value lies outside of its column's bounds")]
    OutOfRange,
}

/// Codes rows of one kind of entity.
///
/// ```
/// use muse_netcode::coder::{References, RowCoder};
/// use muse_schema::{Column, ColumnKind, Predict};
/// use muse_wire::range::{Decoder, Encoder};
///
/// let mut x = Column::new("x", ColumnKind::Number, 0, 100_000);
/// x.predict = Predict::Linear;
/// let coder = RowCoder::new(&[x], 60.0);
///
/// // The receiver has acknowledged the states of three and of two ticks ago.
/// let references = References::new().with(2, &[5_200]).with(3, &[5_100]);
/// let mut buffer = [0; 100];
/// let mut encoder = Encoder::new(&mut buffer);
/// let mut models = coder.models();
/// coder.encode_row(&mut encoder, &mut models, &references, &[5_401])?;
/// let len = encoder.finish().expect("room enough");
/// assert_eq!(len, 1);
///
/// let mut decoder = Decoder::new(&buffer[..len]);
/// let mut models = coder.models();
/// let mut row = [0];
/// coder.decode_row(&mut decoder, &mut models, &references, &mut row)?;
/// assert_eq!(row, [5_401]);
/// # Ok::<(), muse_netcode::coder::RowError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowCoder {
    plan: Plan,
}

impl RowCoder {
    /// A coder of rows with these columns, in a game of so many ticks a second: velocities are per second, ages in ticks.
    pub fn new(columns: &[Column], ticks_per_second: f64) -> Self {
        Self {
            plan: Plan::new(columns, ticks_per_second),
        }
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.plan.width
    }

    /// Models that know nothing, for this coder. This allocates; see [`Models`] for how they are used again.
    pub fn models(&self) -> Models {
        Models::new(&self.plan)
    }

    /// Makes models of this coder forget everything, without allocating.
    pub fn reset(&self, models: &mut Models) {
        models.reset(&self.plan);
    }

    /// Encodes a row.
    ///
    /// Columns that do not exist ([`Column::guard`]) are not looked at and decode as 0. On an error nothing has been encoded
    /// and nothing learnt.
    pub fn encode_row(
        &self,
        encoder: &mut Encoder<'_>,
        models: &mut Models,
        references: &References<'_>,
        row: &[i32],
    ) -> Result<(), RowError> {
        if row.len() != self.plan.width || !references.has_width(self.plan.width) {
            return Err(RowError::Width);
        }
        self.plan.check(models, row)?;
        let has_changed = references.differs_from(&models.row);
        row::code(&self.plan, encoder, models, references, has_changed)
    }

    /// As [`encode_row`](Self::encode_row), for rows that are known to be legal, absent columns 0, because it costs less.
    /// Another row is nothing worse than a packet that is refused.
    #[inline]
    pub(crate) fn encode_legal_row(
        &self,
        encoder: &mut Encoder<'_>,
        models: &mut Models,
        references: &References<'_>,
        row: &[i32],
    ) -> Result<(), RowError> {
        if row.len() != self.plan.width || !references.has_width(self.plan.width) {
            return Err(RowError::Width);
        }
        let has_changed = references.differs_from(row);
        models.take(row);
        row::code(&self.plan, encoder, models, references, has_changed)
    }

    /// Decodes a row.
    ///
    /// Any bytes give either a row that is within its columns' bounds, or an error; after an error the rest of the packet
    /// cannot be decoded, and `row` is as it was.
    pub fn decode_row(
        &self,
        decoder: &mut Decoder<'_>,
        models: &mut Models,
        references: &References<'_>,
        row: &mut [i32],
    ) -> Result<(), RowError> {
        if row.len() != self.plan.width || !references.has_width(self.plan.width) {
            return Err(RowError::Width);
        }
        row::code(&self.plan, decoder, models, references, false)?;
        row.copy_from_slice(models.last());
        Ok(())
    }
}
