//! Bodies that all move on smooth paths, as in the workload N1, coded row by row without anything around it.

use std::time::Duration;

use anyhow::ensure;
use fastrand::Rng;
use muse_bench_workload::bodies;
pub(crate) use muse_bench_workload::bodies::TICKS_PER_SECOND;
use muse_netcode::coder::{Models, References, RowCoder};
use muse_schema::{Columns, RowWriter, State};
use muse_wire::range::{Decoder, Encoder};
use serde::Serialize;

use super::time_since;
use crate::counters::cpu_time;

/// Size and cost of a row whose baseline is of one age.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) baseline_age_ticks: usize,
    pub(crate) bytes_per_row: f64,
    pub(crate) encode_us_per_row: f64,
    pub(crate) decode_us_per_row: f64,
}

impl Figures {
    pub(crate) fn line(&self) -> String {
        format!(
            "n1, baseline {} ticks old: {:.2} bytes a row, encoding {:.3} us, decoding {:.3} us a row",
            self.baseline_age_ticks,
            self.bytes_per_row,
            self.encode_us_per_row,
            self.decode_us_per_row
        )
    }
}

/// A body of N1: 1 mm, 1 cm/s, a rotation of 32 bits.
#[derive(State, Clone)]
pub(crate) struct Body {
    #[field(range = -1000.0..=1000.0, step = 0.001, velocity = velocity)]
    position: [f32; 3],
    #[field(rotation = 10)]
    rotation: [f32; 4],
    #[field(range = -100.0..=100.0, step = 0.01)]
    velocity: [f32; 3],
}

type Row = [i32; 10];

/// Codes all bodies for some ticks with baselines of each age.
pub(crate) fn run(quick: bool) -> anyhow::Result<Vec<Figures>> {
    let coder = RowCoder::new(&Columns::of::<Body>(), TICKS_PER_SECOND);
    let history = history(if quick { 40 } else { 120 });
    (1..=4).map(|age| measure(&coder, &history, age)).collect()
}

fn measure(coder: &RowCoder, history: &[Vec<Row>], age: usize) -> anyhow::Result<Figures> {
    let ticks = age + OLDER_MAX..history.len();
    let mut models = coder.models();
    let mut buffer = vec![0; 1 << 16];
    let mut packets = Vec::new();
    let mut rows = 0;
    let start = cpu_time(std::process::id())?;
    for tick in ticks.clone() {
        for bodies in chunks() {
            models.start_packet();
            let mut encoder = Encoder::new(&mut buffer);
            for body in bodies {
                let references = references(history, tick, body, age);
                coder.encode_row(&mut encoder, &mut models, &references, &history[tick][body])?;
                rows += 1;
            }
            let len = encoder.finish()?;
            packets.push(buffer[..len].to_vec());
        }
    }
    let encoding = time_since(start)?;

    let mut models: Models = coder.models();
    let mut row: Row = [0; 10];
    let mut rest = packets.iter();
    let start = cpu_time(std::process::id())?;
    for tick in ticks {
        for (bodies, packet) in chunks().zip(rest.by_ref()) {
            models.start_packet();
            let mut decoder = Decoder::new(packet);
            for body in bodies {
                let references = references(history, tick, body, age);
                coder.decode_row(&mut decoder, &mut models, &references, &mut row)?;
                ensure!(
                    row == history[tick][body],
                    "body {body} of tick {tick} differs"
                );
            }
        }
    }
    let decoding = time_since(start)?;
    let bytes: usize = packets.iter().map(Vec::len).sum();
    let per_row = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(rows);
    Ok(Figures {
        baseline_age_ticks: age,
        bytes_per_row: bytes as f64 / f64::from(rows),
        encode_us_per_row: per_row(encoding),
        decode_us_per_row: per_row(decoding),
    })
}

/// Bodies by packets of about a thousand bytes.
fn chunks() -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..BODIES)
        .step_by(ROWS_PER_PACKET)
        .map(|start| start..(start + ROWS_PER_PACKET).min(BODIES))
}

fn references(history: &[Vec<Row>], tick: usize, body: usize, age: usize) -> References<'_> {
    [0, 1, 2, OLDER_MAX]
        .into_iter()
        .fold(References::new(), |references, older| {
            references.with((age + older) as u32, &history[tick - age - older][body])
        })
}

/// The rows of all bodies at each tick.
fn history(ticks: usize) -> Vec<Vec<Row>> {
    let mut rng = Rng::with_seed(1);
    let mut bodies: Vec<Moving> = (0..BODIES).map(|_| Moving::new(&mut rng)).collect();
    (0..ticks)
        .map(|_| {
            bodies
                .iter_mut()
                .map(|body| {
                    body.step(&mut rng);
                    body.row()
                })
                .collect()
        })
        .collect()
}

/// A body of the workload, as state.
pub(crate) struct Moving {
    pub(crate) body: Body,
    path: bodies::Moving,
}

impl Moving {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let path = bodies::Moving::new(rng);
        Self {
            body: Body::from(path.body),
            path,
        }
    }

    /// A tick.
    pub(crate) fn step(&mut self, rng: &mut Rng) {
        self.path.step(rng);
        self.body = Body::from(self.path.body);
    }

    fn row(&self) -> Row {
        let mut row = [0; 10];
        self.body.store(&mut RowWriter::new(&mut row));
        row
    }
}

impl From<bodies::Body> for Body {
    fn from(body: bodies::Body) -> Self {
        Self {
            position: body.position,
            rotation: body.rotation,
            velocity: body.velocity,
        }
    }
}

const BODIES: usize = 1_000;
const ROWS_PER_PACKET: usize = 200;
/// Frames by which the oldest reference is older than the baseline.
const OLDER_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_move_cost_a_few_bytes() {
        let coder = RowCoder::new(&Columns::of::<Body>(), TICKS_PER_SECOND);
        let history = history(16);
        let moved = (0..BODIES).filter(|&body| history[14][body] != history[15][body]);
        assert!(moved.count() > BODIES * 9 / 10);
        for age in [1, 4] {
            let figures = measure(&coder, &history, age).expect("exact rows");
            assert!(figures.bytes_per_row < 5.5, "{figures:?}");
        }
    }
}
