//! The transactions of the store, written once for every database that speaks SQL.
//!
//! They are plain functions over [`Sql`]: a statement and its values go in, rows come out. What differs between the databases (how
//! a connection is had, what a commit costs) stands in `sqlite.rs` and `postgres.rs`; what is the same, the thread that owns the connection and
//! shares commits, in `worker.rs`.

pub(super) mod accounts;
pub(super) mod leading;
pub(super) mod operators;
pub(super) mod queue;
pub(super) mod retention;
pub(super) mod servers;
pub(super) mod several;
pub(super) mod social;

use muse_master_client::{AccountId, MatchId, ServerId, TicketId};
use muse_wire::Instant;

use super::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Inside a transaction. Statements name their values `?1`, `?2`; the text is part of the program, never of what somebody sent. A value that
/// holds many is an array of JSON, whose elements `json_each(?1)` makes to rows with one column, `value`.
pub(super) trait Sql {
    /// Changes rows; how many.
    fn execute(&mut self, sql: &'static str, values: &[Value]) -> Result<usize>;
    /// Changes rows, one statement after the other, for whom it does not matter how many. With a database at a distance all of them cost one
    /// round trip.
    fn execute_all(&mut self, writes: &[Write]) -> Result<()>;
    /// As [`execute_all`](Self::execute_all), for writes that nothing can refuse, because what they need was looked at before: whether they
    /// succeeded is known at the commit, which fails as a whole if one did not. With a database at a distance they cost no round trip.
    fn execute_later(&mut self, writes: Vec<Write>) -> Result<()>;
    /// Reads rows.
    fn rows(&mut self, sql: &'static str, values: &[Value]) -> Result<Vec<Row>>;

    /// The first row.
    fn row(&mut self, sql: &'static str, values: &[Value]) -> Result<Option<Row>> {
        Ok(self.rows(sql, values)?.into_iter().next())
    }

    /// True if there is a row.
    fn exists(&mut self, sql: &'static str, values: &[Value]) -> Result<bool> {
        Ok(self.row(sql, values)?.is_some())
    }
}

/// A statement that changes rows, and its values.
pub(super) type Write = (&'static str, Vec<Value>);

/// The value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
}

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Row(pub(super) Vec<Value>);

impl Row {
    /// A number of ours: an id, a time, a count.
    pub(super) fn number(&self, column: usize) -> Result<u64> {
        Ok(u64::try_from(self.integer(column)?).unwrap_or(0))
    }

    pub(super) fn integer(&self, column: usize) -> Result<i64> {
        match self.0.get(column) {
            Some(Value::Integer(number)) => Ok(*number),
            other => Err(unexpected(other)),
        }
    }

    pub(super) fn optional_integer(&self, column: usize) -> Result<Option<i64>> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            _ => self.integer(column).map(Some),
        }
    }

    pub(super) fn small(&self, column: usize) -> Result<u8> {
        Ok(u8::try_from(self.integer(column)?).unwrap_or(u8::MAX))
    }

    pub(super) fn real(&self, column: usize) -> Result<f64> {
        match self.0.get(column) {
            Some(Value::Real(number)) => Ok(*number),
            Some(Value::Integer(number)) => Ok(*number as f64),
            other => Err(unexpected(other)),
        }
    }

    pub(super) fn text(&self, column: usize) -> Result<String> {
        match self.0.get(column) {
            Some(Value::Text(text)) => Ok(text.clone()),
            other => Err(unexpected(other)),
        }
    }

    pub(super) fn optional_text(&self, column: usize) -> Result<Option<String>> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            _ => self.text(column).map(Some),
        }
    }

    pub(super) fn instant(&self, column: usize) -> Result<Instant> {
        Ok(Instant::from_micros(self.number(column)?))
    }

    pub(super) fn optional_instant(&self, column: usize) -> Result<Option<Instant>> {
        let micros = self.optional_integer(column)?;
        Ok(micros.map(|micros| Instant::from_micros(u64::try_from(micros).unwrap_or(0))))
    }

    pub(super) fn parsed<T: serde::de::DeserializeOwned>(&self, column: usize) -> Result<T> {
        serde_json::from_str(&self.text(column)?).map_err(broken)
    }
}

fn unexpected(found: Option<&Value>) -> StoreError {
    StoreError::Unavailable(format!("a column holds {found:?}"))
}

/// Something that should not happen did; the transaction does not.
fn broken(error: impl ToString) -> StoreError {
    StoreError::Unavailable(error.to_string())
}

/// The values of a statement.
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::store::sql::Value::from($value)),*] };
}
use values;

/// Many numbers as one value, for `json_each`.
fn each(numbers: impl Iterator<Item = u64>) -> Result<Value> {
    let numbers: Vec<i64> = numbers.map(whole).collect();
    json(&numbers).map(Value::Text)
}

/// Ids stay below 2^53; what is larger came from outside and is nobody's.
fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

macro_rules! from {
    ($($kind:ty, $value:ident => $make:expr;)*) => {
        $(impl From<$kind> for Value {
            fn from($value: $kind) -> Self { $make }
        })*
    };
}

from! {
    i64, number => Self::Integer(number);
    u64, number => Self::Integer(whole(number));
    u8, number => Self::Integer(i64::from(number));
    f64, number => Self::Real(number);
    String, text => Self::Text(text);
    &str, text => Self::Text(text.to_owned());
    &String, text => Self::Text(text.clone());
    Option<String>, text => text.map_or(Self::Null, Self::Text);
    Instant, at => Self::from(at.as_micros());
    AccountId, id => Self::from(id.0);
    TicketId, id => Self::from(id.0);
    MatchId, id => Self::from(id.0);
    ServerId, id => Self::from(id.0);
}

fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(broken)
}

/// A fresh name for something.
fn fresh_id() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(broken)?;
    // Below 2^53, and never 0.
    Ok((u64::from_le_bytes(bytes) >> 11).max(1))
}
