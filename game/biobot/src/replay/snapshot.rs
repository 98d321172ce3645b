//! The world at a tick, for watching: whole every five seconds, and what has changed in between.
//!
//! ```text
//! whole 1, gone: count and entities, rows: count and each: entity, kind 1, mask of columns, changes (zig-zag);
//! messages: count and each: length, bytes; figures: count and each: slot, round trip in ms, ticks without their input
//! ```
//! Numbers are varints (LEB128) unless said otherwise.

use std::collections::BTreeMap;

use muse::schema::State;

use crate::messages::ToPlayer;
use crate::stage::Stage;
use crate::states::{Ball, Bolt, Device, Enemy, Robot, Round};

/// Rows by entity, with their kind.
pub(super) type Rows = BTreeMap<u32, (u8, Vec<i32>)>;

/// The server's knowledge of a player's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub slot: u8,
    pub rtt_ms: u32,
    /// Ticks without their input, so far.
    pub late: u32,
}

/// The additions of a snapshot to the rows.
#[derive(Clone, Debug, Default)]
pub(super) struct News {
    pub messages: Vec<ToPlayer>,
    pub figures: Vec<Figures>,
}

/// Writes snapshots, each against the one before.
#[derive(Debug, Default)]
pub(super) struct Writer {
    rows: Rows,
    count: u32,
}

impl Writer {
    pub(super) fn snapshot(
        &mut self,
        stage: &Stage,
        messages: &[ToPlayer],
        figures: &[Figures],
    ) -> Vec<u8> {
        let whole = self.count.is_multiple_of(WHOLE_EVERY);
        self.count += 1;
        let now = rows_of(stage);
        let before = match whole {
            true => Rows::new(),
            false => std::mem::take(&mut self.rows),
        };
        let mut bytes = vec![u8::from(whole)];
        let gone: Vec<u32> = before
            .keys()
            .filter(|entity| !now.contains_key(entity))
            .copied()
            .collect();
        put(&mut bytes, gone.len() as u64);
        gone.iter()
            .for_each(|entity| put(&mut bytes, u64::from(*entity)));
        let changed: Vec<_> = now
            .iter()
            .filter(|(entity, row)| before.get(entity) != Some(row))
            .collect();
        put(&mut bytes, changed.len() as u64);
        for (entity, (kind, row)) in changed {
            let old = before.get(entity).filter(|(old, _)| old == kind);
            put_row(
                &mut bytes,
                *entity,
                *kind,
                row,
                old.map(|(_, row)| row.as_slice()),
            );
        }
        put(&mut bytes, messages.len() as u64);
        for message in messages {
            let encoded = message.encode();
            put(&mut bytes, encoded.len() as u64);
            bytes.extend(encoded);
        }
        put(&mut bytes, figures.len() as u64);
        for figure in figures {
            put(&mut bytes, u64::from(figure.slot));
            put(&mut bytes, u64::from(figure.rtt_ms));
            put(&mut bytes, u64::from(figure.late));
        }
        self.rows = now;
        bytes
    }
}

/// True if a snapshot stands alone.
pub(super) fn is_whole(bytes: &[u8]) -> bool {
    bytes.first() == Some(&1)
}

/// Takes a snapshot into the rows; `None` when it makes no sense.
pub(super) fn apply(bytes: &[u8], rows: &mut Rows) -> Option<News> {
    let (whole, mut rest) = bytes.split_first()?;
    if *whole == 1 {
        rows.clear();
    }
    for _ in 0..take_count(&mut rest)? {
        rows.remove(&(take(&mut rest)? as u32));
    }
    for _ in 0..take_count(&mut rest)? {
        let entity = take(&mut rest)? as u32;
        let (kind, after) = rest.split_first()?;
        rest = after;
        let width = width(*kind)?;
        let old = rows.remove(&entity).filter(|(old, _)| old == kind);
        let mut row = old.map_or_else(|| vec![0; width], |(_, row)| row);
        let (mask, after) = rest.split_at_checked(width.div_ceil(8))?;
        rest = after;
        for (column, value) in row.iter_mut().enumerate() {
            if mask[column / 8] >> (column % 8) & 1 == 1 {
                let change = take(&mut rest)? as u32;
                let change = (change >> 1) as i32 ^ -((change & 1) as i32);
                *value = value.wrapping_add(change);
            }
        }
        rows.insert(entity, (*kind, row));
    }
    take_news(&mut rest)
}

fn take_news(rest: &mut &[u8]) -> Option<News> {
    let mut news = News::default();
    for _ in 0..take_count(rest)? {
        let len = take(rest)? as usize;
        let (bytes, after) = rest.split_at_checked(len)?;
        *rest = after;
        news.messages.push(ToPlayer::decode(bytes).ok()?);
    }
    for _ in 0..take_count(rest)? {
        news.figures.push(Figures {
            slot: take(rest)? as u8,
            rtt_ms: take(rest)? as u32,
            late: take(rest)? as u32,
        });
    }
    Some(news)
}

fn put_row(bytes: &mut Vec<u8>, entity: u32, kind: u8, row: &[i32], old: Option<&[i32]>) {
    put(bytes, u64::from(entity));
    bytes.push(kind);
    let mask_at = bytes.len();
    bytes.resize(mask_at + row.len().div_ceil(8), 0);
    for (column, value) in row.iter().enumerate() {
        let before = old.map_or(0, |old| old[column]);
        let change = value.wrapping_sub(before);
        if change != 0 {
            bytes[mask_at + column / 8] |= 1 << (column % 8);
            let zigzag = (change << 1) as u32 ^ (change >> 31) as u32;
            put(bytes, u64::from(zigzag));
        }
    }
}

fn rows_of(stage: &Stage) -> Rows {
    let (world, kinds) = (stage.server().world(), stage.kinds());
    let ids = [
        kinds.robot.id(),
        kinds.enemy.id(),
        kinds.device.id(),
        kinds.bolt.id(),
        kinds.round.id(),
        kinds.ball.id(),
    ];
    let mut rows = Rows::new();
    for entity in world.entities() {
        for (place, id) in ids.into_iter().enumerate() {
            if let Some(row) = world.row(id, entity) {
                rows.insert(entity.bits(), (place as u8 + 1, row.to_vec()));
            }
        }
    }
    rows
}

fn width(kind: u8) -> Option<usize> {
    Some(match kind {
        1 => Robot::width(),
        2 => Enemy::width(),
        3 => Device::width(),
        4 => Bolt::width(),
        5 => Round::width(),
        6 => Ball::width(),
        _ => return None,
    })
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number of things that follow, each of at least a byte.
fn take_count(rest: &mut &[u8]) -> Option<u64> {
    take(rest).filter(|count| *count <= rest.len() as u64)
}

/// Snapshots from one that stands alone to the next: five seconds.
const WHOLE_EVERY: u32 = 125;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_travel() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(take(&mut bytes.as_slice()), Some(number));
        }
        assert_eq!(take(&mut [128; 20].as_slice()), None);
    }

    #[test]
    fn rows_travel() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut before: Option<Vec<i32>> = None;
        let mut rows = Rows::new();
        for _ in 0..50 {
            let row: Vec<i32> = (0..Robot::width())
                .map(|column| match before.as_ref().filter(|_| rng.bool()) {
                    Some(before) => before[column],
                    None => rng.i32(..),
                })
                .collect();
            let mut bytes = vec![0, 0, 1];
            put_row(&mut bytes, 77, 1, &row, before.as_deref());
            bytes.extend([0, 0]);
            apply(&bytes, &mut rows).expect("whole");
            assert_eq!(rows.get(&77), Some(&(1, row.clone())));
            before = Some(row);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let mut rng = fastrand::Rng::with_seed(4);
        for _ in 0..2_000 {
            let len = rng.u8(..) as usize;
            let mut bytes = vec![0; len];
            rng.fill(&mut bytes);
            let mut rows = Rows::new();
            let _ = apply(&bytes, &mut rows);
            assert!(rows.len() <= 256);
        }
    }
}
