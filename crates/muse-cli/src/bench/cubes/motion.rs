//! Bodies that all move on smooth paths, as in the workload N1, coded row by row without anything around it.
//!
//! The motion is made by additions, multiplications, divisions and roots only, so every machine makes the same.

use std::time::Duration;

use anyhow::ensure;
use fastrand::Rng;
use muse_netcode::coder::{Models, References, RowCoder};
use muse_schema::{Columns, RowWriter, State};
use muse_wire::range::{Decoder, Encoder};
use serde::Serialize;

use super::time_since;
use crate::bench::counters::cpu_time;

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

/// A body that is steered at random, but smoothly.
pub(crate) struct Moving {
    pub(crate) body: Body,
    acceleration: [f32; 3],
    wanted: [f32; 3],
    turn: [f32; 3],
    turn_wanted: [f32; 3],
}

impl Moving {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            body: Body {
                position: [0.0; 3].map(|_: f32| (rng.f32() - 0.5) * 400.0),
                rotation: [0.0, 0.0, 0.0, 1.0],
                velocity: [0.0; 3].map(|_: f32| (rng.f32() - 0.5) * 8.0),
            },
            acceleration: [0.0; 3],
            wanted: [0.0; 3],
            turn: [0.0; 3].map(|_: f32| rng.f32() - 0.5),
            turn_wanted: [0.0; 3].map(|_: f32| rng.f32() - 0.5),
        }
    }

    /// A tick, in finer steps so that the path has no corners.
    pub(crate) fn step(&mut self, rng: &mut Rng) {
        if rng.u32(0..20) == 0 {
            // Towards the middle, or anywhere.
            let centre = self.body.position.map(|place| -place * 0.01);
            self.wanted = centre.map(|pull| pull + (rng.f32() - 0.5) * 8.0);
            self.turn_wanted = [0.0; 3].map(|_: f32| (rng.f32() - 0.5) * 3.0);
        }
        let seconds = 1.0 / (TICKS_PER_SECOND as f32 * STEPS as f32);
        for _ in 0..STEPS {
            for axis in 0..3 {
                let wish = self.wanted[axis] - self.body.velocity[axis] * 0.2;
                self.acceleration[axis] += (wish - self.acceleration[axis]) * seconds * 3.0;
                self.body.velocity[axis] += self.acceleration[axis] * seconds;
                self.body.position[axis] += self.body.velocity[axis] * seconds;
                self.turn[axis] += (self.turn_wanted[axis] - self.turn[axis]) * seconds * 2.0;
            }
            self.rotate(seconds);
        }
    }

    fn rotate(&mut self, seconds: f32) {
        let [x, y, z, w] = self.body.rotation;
        let [a, b, c] = self.turn.map(|turn| turn * seconds / 2.0);
        let turned = [
            x + a * w + b * z - c * y,
            y + b * w + c * x - a * z,
            z + c * w + a * y - b * x,
            w - a * x - b * y - c * z,
        ];
        let length = turned.iter().map(|part| part * part).sum::<f32>().sqrt();
        self.body.rotation = turned.map(|part| part / length);
    }

    fn row(&self) -> Row {
        let mut row = [0; 10];
        self.body.store(&mut RowWriter::new(&mut row));
        row
    }
}

const BODIES: usize = 1_000;
const ROWS_PER_PACKET: usize = 200;
pub(crate) const TICKS_PER_SECOND: f64 = 20.0;
/// Steps of the motion in a tick.
const STEPS: usize = 4;
/// How much older the oldest reference is than the baseline.
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
