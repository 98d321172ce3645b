//! Rows of any columns decode to exactly what was encoded, and any bytes decode to legal rows or to an error.

use fastrand::Rng;
use muse_netcode::coder::{Models, References, RowCoder};
use muse_schema::{Column, ColumnKind, Guard, Predict};
use muse_wire::range::{Decoder, Encoder};

/// Columns of every kind, with guards and velocities, and rotations whole and broken.
fn random_columns(rng: &mut Rng) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for field in 0..rng.u16(1..8) {
        let guard = random_guard(rng, &columns);
        let kind = [
            ColumnKind::Number,
            ColumnKind::Number,
            ColumnKind::Flag,
            ColumnKind::Choice,
            ColumnKind::Bits,
            ColumnKind::Angle,
            ColumnKind::Reference,
            ColumnKind::Raw,
            ColumnKind::RotationLargest,
            ColumnKind::RotationPart,
        ][draw(rng, 0..10)];
        let predict = [Predict::Hold, Predict::Linear, Predict::Quadratic][draw(rng, 0..3)];
        let (min, max) = random_bounds(rng, kind);
        let start = columns.len();
        for index in 0..draw(rng, 1..4) {
            let mut column = Column::new(format!("{field}.{index}"), kind, min, max);
            column.predict = predict;
            column.field = field;
            column.guard = guard;
            column.step = [1.0, 0.01, 0.001][draw(rng, 0..3)];
            column.velocity = rng.bool().then(|| rng.u16(0..12));
            columns.push(column);
        }
        if kind == ColumnKind::RotationLargest {
            columns.truncate(start + 1);
            let span = rng.i32(1..3_000);
            for index in 0..3 {
                let mut column = Column::new(
                    format!("{field}.{index}"),
                    ColumnKind::RotationPart,
                    0,
                    span,
                );
                column.field = field;
                column.guard = guard;
                columns.push(column);
            }
        }
    }
    columns
}

fn random_guard(rng: &mut Rng, columns: &[Column]) -> Option<Guard> {
    if columns.is_empty() || rng.u8(0..3) > 0 {
        return None;
    }
    let column = rng.u16(0..columns.len() as u16);
    let decider = &columns[usize::from(column)];
    let value = if rng.bool() { decider.min } else { 0 };
    Some(if rng.bool() {
        Guard::Equals { column, value }
    } else {
        Guard::Above { column, value }
    })
}

fn random_bounds(rng: &mut Rng, kind: ColumnKind) -> (i32, i32) {
    match kind {
        ColumnKind::Flag => (0, 1),
        ColumnKind::RotationLargest => (0, 3),
        _ => match rng.u8(0..4) {
            0 => (i32::MIN, i32::MAX),
            1 => (-5, 5),
            2 => (0, rng.i32(0..i32::MAX)),
            _ => (rng.i32(-2_000_000_000..0), rng.i32(0..2_000_000_000)),
        },
    }
}

/// The row after `before`: much stays, some moves a little, some jumps, also to the ends.
fn random_row(rng: &mut Rng, columns: &[Column], before: &[i32]) -> Vec<i32> {
    let mut row = before.to_vec();
    let still = rng.u8(0..3) == 0;
    for (value, column) in row.iter_mut().zip(columns) {
        *value = match rng.u8(0..16) {
            _ if still => *value,
            0 => column.min,
            1 => column.max,
            2 => rng.i32(column.min..=column.max),
            3..8 => value.saturating_add(rng.i32(-9..9)),
            _ => *value,
        }
        .clamp(column.min, column.max);
    }
    clear_absent(columns, row)
}

fn clear_absent(columns: &[Column], mut row: Vec<i32>) -> Vec<i32> {
    let mut exists = vec![true; row.len()];
    for (index, column) in columns.iter().enumerate() {
        exists[index] = column.guard.is_none_or(|guard| {
            let decider = usize::from(guard.column());
            exists[decider] && guard.admits(row[decider])
        });
        if !exists[index] {
            row[index] = 0;
        }
    }
    row
}

/// References of a row at `tick`, chosen at random but alike on both sides.
fn references<'a>(rng: &mut Rng, history: &'a [Vec<i32>], tick: usize) -> References<'a> {
    let mut references = References::new();
    let mut age = draw(rng, 1..4);
    for _ in 0..draw(rng, 0..5) {
        if age > tick {
            break;
        }
        references = references.with(age as u32, &history[tick - age]);
        age += draw(rng, 1..4);
    }
    references
}

fn play(seed: u64) -> (RowCoder, Vec<Column>, Vec<Vec<i32>>) {
    let mut rng = Rng::with_seed(seed);
    let columns = random_columns(&mut rng);
    let coder = RowCoder::new(&columns, 20.0);
    let mut history = vec![random_row(&mut rng, &columns, &vec![0; columns.len()])];
    for _ in 0..300 {
        let last = history.last().expect("not empty");
        history.push(random_row(&mut rng, &columns, last));
    }
    (coder, columns, history)
}

#[test]
fn rows_of_any_columns_decode_to_what_was_encoded() {
    for seed in 0..seeds() {
        let (coder, _, history) = play(seed);
        let mut buffer = vec![0; 200_000];
        let mut encoder = Encoder::new(&mut buffer);
        let mut models = coder.models();
        let mut rng = Rng::with_seed(seed);
        for (tick, row) in history.iter().enumerate() {
            let references = references(&mut rng, &history, tick);
            if tick % 100 == 50 {
                // A row that is taken back leaves no trace.
                let (kept, checkpoint) = (models.clone(), encoder.checkpoint());
                let other = &history[tick / 2];
                coder
                    .encode_row(&mut encoder, &mut models, &references, other)
                    .expect("a legal row");
                encoder.restore(checkpoint);
                models.copy_from(&kept);
            }
            coder
                .encode_row(&mut encoder, &mut models, &references, row)
                .expect("a legal row");
        }
        let len = encoder.finish().expect("room for all");

        let mut decoder = Decoder::new(&buffer[..len]);
        let mut models = coder.models();
        let mut rng = Rng::with_seed(seed);
        let mut decoded = vec![0; coder.width()];
        for (tick, row) in history.iter().enumerate() {
            let references = references(&mut rng, &history, tick);
            coder
                .decode_row(&mut decoder, &mut models, &references, &mut decoded)
                .expect("what was encoded");
            assert_eq!(&decoded, row, "seed {seed}, tick {tick}");
        }
        assert!(!decoder.is_overrun());
    }
}

#[test]
fn any_bytes_decode_to_legal_rows_or_an_error() {
    let (mut legal, mut refused) = (0, 0);
    for seed in 0..seeds() {
        let (coder, columns, history) = play(seed);
        let mut rng = Rng::with_seed(!seed);
        let mut models = coder.models();
        let mut bytes = vec![0; 2_000];
        rng.fill(&mut bytes);
        let mut decoder = Decoder::new(&bytes);
        let mut row = vec![0; coder.width()];
        for tick in 0..300 {
            let references = references(&mut rng, &history, tick);
            if coder
                .decode_row(&mut decoder, &mut models, &references, &mut row)
                .is_err()
            {
                refused += 1;
                continue;
            }
            legal += 1;
            assert_eq!(row, clear_absent(&columns, row.clone()), "seed {seed}");
            for (value, column) in row.iter().zip(&columns) {
                let is_legal = (column.min..=column.max).contains(value);
                assert!(
                    is_legal || *value == 0 && column.guard.is_some(),
                    "seed {seed}: {column:?} {value}"
                );
            }
        }
    }
    assert!(legal > 0 && refused > 0, "{legal} {refused}");
}

#[test]
fn forgetting_everything_is_starting_anew() {
    let (coder, _, history) = play(3);
    let encode = |models: &mut Models| {
        let mut buffer = vec![0; 50_000];
        let mut encoder = Encoder::new(&mut buffer);
        for tick in 2..history.len() {
            let references = References::new()
                .with(1, &history[tick - 1])
                .with(2, &history[tick - 2]);
            coder
                .encode_row(&mut encoder, models, &references, &history[tick])
                .expect("a legal row");
        }
        let len = encoder.finish().expect("room for all");
        buffer[..len].to_vec()
    };
    let mut models = coder.models();
    let first = encode(&mut models);
    models.start_packet();
    assert_ne!(encode(&mut models), first, "nothing was learnt");
    coder.reset(&mut models);
    assert_eq!(encode(&mut models), first);
}

/// A number that is the same on every machine.
fn draw(rng: &mut Rng, range: std::ops::Range<u32>) -> usize {
    rng.u32(range) as usize
}

/// More by the environment, for long runs.
fn seeds() -> u64 {
    std::env::var("MUSE_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(200)
}
