//! `muse bench cubes`: how small the snapshot coder makes a recorded physics scene, and what that costs.
//!
//! The file holds frames of 901 cubes at 60 frames a second, eight integers each: largest, a, b, c (a rotation by the three
//! smaller parts of its quaternion, 9 bits each), x, y, z (1/512 m), interacting. Frame i is coded against frames that are at
//! least six older, as over a round trip of 100 ms, and with the models as they were after frame i - 6. All of these are
//! frames that the receiver has acknowledged, so it does not matter which others were lost.
//!
//! This file only declares what a cube is; the coder sees columns. The same coder then codes the moving bodies of
//! [`motion`].

pub(crate) mod motion;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use muse_netcode::coder::{Models, References, RowCoder};
use muse_schema::{Columns, State};
use muse_wire::range::{Decoder, Encoder};
use serde::Serialize;

use super::counters::cpu_time;
use super::results::Output;
use muse_program::bars::Bar;

/// The recording to encode.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench cubes cubes_mix_test.bin\n\nThe file is unpacked: 901 cubes a frame, eight little-endian 32-bit integers a cube. Times are CPU time of a release build."
)]
pub(crate) struct Arguments {
    /// The recorded frames.
    file: PathBuf,
    /// Train the models with this file first; by default they start untrained.
    #[arg(long, value_name = "FILE")]
    train: Option<PathBuf>,
    /// Encode the first 600 frames only.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// A cube, as a game would declare it. The file's integers are its columns.
#[derive(State, Clone)]
struct Cube {
    interacting: bool,
    #[field(range = -512.0..=511.998_046_875, step = 0.001_953_125, predict = linear)]
    position: [f32; 3],
    #[field(rotation = 9)]
    rotation: [f32; 4],
}

/// The results.
#[derive(Clone, Debug, Serialize)]
struct Report {
    frames: usize,
    trained: bool,
    bytes_per_frame: f64,
    kbit_per_second: f64,
    encode_us_per_cube: f64,
    decode_us_per_cube: f64,
    models_bytes: usize,
    motion: Vec<motion::Figures>,
}

/// Codes, decodes, compares and prints.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let frames_max = if arguments.quick { 600 } else { usize::MAX };
    let scene = Scene::read(&arguments.file, frames_max)?;
    let coder = RowCoder::new(&Columns::of::<Cube>(), FRAMES_PER_SECOND);
    let prior = match &arguments.train {
        Some(path) => train(&coder, &Scene::read(path, frames_max)?)?,
        None => coder.models(),
    };
    let (packets, encoding, models_bytes) = encode(&coder, &scene, &prior)?;
    let decoding = decode(&coder, &scene, &prior, &packets)?;
    let report = report(
        arguments,
        &scene,
        &packets,
        (encoding, decoding),
        models_bytes,
    )?;
    print(&report);
    arguments.output.finish(&report, &bars(&report))
}

fn report(
    arguments: &Arguments,
    scene: &Scene,
    packets: &[Vec<u8>],
    (encoding, decoding): (Duration, Duration),
    models_bytes: usize,
) -> anyhow::Result<Report> {
    let bytes: usize = packets.iter().map(Vec::len).sum();
    let bytes_per_frame = bytes as f64 / packets.len() as f64;
    let cubes = (packets.len() * CUBES) as f64;
    let per_cube = |time: Duration| time.as_secs_f64() * 1e6 / cubes;
    Ok(Report {
        frames: scene.frames(),
        trained: arguments.train.is_some(),
        bytes_per_frame,
        kbit_per_second: bytes_per_frame * FRAMES_PER_SECOND * 8.0 / 1_000.0,
        encode_us_per_cube: per_cube(encoding),
        decode_us_per_cube: per_cube(decoding),
        models_bytes,
        motion: motion::run(arguments.quick)?,
    })
}

fn print(report: &Report) {
    for figures in &report.motion {
        println!("{}", figures.line());
    }
    let Report {
        frames,
        bytes_per_frame,
        models_bytes,
        encode_us_per_cube,
        decode_us_per_cube,
        kbit_per_second,
        ..
    } = report;
    let how = if report.trained {
        "trained"
    } else {
        "from nothing"
    };
    println!(
        "cubes: {frames} frames decoded exactly, {bytes_per_frame:.1} bytes a frame, models {how} and of {models_bytes} bytes"
    );
    println!(
        "cubes: encoding {encode_us_per_cube:.3} us a cube, decoding {decode_us_per_cube:.3} us a cube; {kbit_per_second:.1} kbit/s"
    );
}

fn bars(report: &Report) -> Vec<Bar> {
    let mean = |value: fn(&motion::Figures) -> f64| {
        let sum: f64 = report.motion.iter().map(value).sum();
        Some(sum / report.motion.len() as f64)
    };
    vec![
        Bar::at_most("cubes_kbit_per_second", report.kbit_per_second, 137.0),
        Bar::at_most("cubes_encode_us", report.encode_us_per_cube, 0.5),
        Bar::at_most("n1_row_bytes", mean(|it| it.bytes_per_row), 5.5),
        Bar::at_most("n1_row_encode_us", mean(|it| it.encode_us_per_row), 0.25),
    ]
}

/// All rows of a file.
struct Scene {
    rows: Vec<[i32; 8]>,
}

impl Scene {
    fn read(path: &Path, frames_max: usize) -> anyhow::Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(
            bytes.len().is_multiple_of(FRAME_BYTES) && bytes.len() > DELAY * FRAME_BYTES,
            "{} is no file of frames of {FRAME_BYTES} bytes (if it is packed: zstd -d --long=27)",
            path.display()
        );
        let words: Vec<i32> = bytes
            .chunks_exact(4)
            .take(frames_max.saturating_mul(CUBES * 8))
            .map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let rows = words
            .chunks_exact(8)
            .map(|cube| {
                let [largest, a, b, c, x, y, z, interacting] = cube else {
                    unreachable!("chunks of eight");
                };
                // A rotation's parts are around zero in a row.
                [
                    *interacting,
                    *x,
                    *y,
                    *z,
                    *largest,
                    a - 256,
                    b - 256,
                    c - 256,
                ]
            })
            .collect();
        Ok(Self { rows })
    }

    /// Encodes a frame as a packet; returns its length.
    fn encode(
        &self,
        frame: usize,
        coder: &RowCoder,
        models: &mut Models,
        buffer: &mut [u8],
    ) -> anyhow::Result<usize> {
        models.start_packet();
        let mut encoder = Encoder::new(buffer);
        for cube in 0..CUBES {
            let references = self.references(frame, cube);
            coder
                .encode_row(&mut encoder, models, &references, self.row(frame, cube))
                .with_context(|| format!("cube {cube} of frame {frame} is not valid"))?;
        }
        Ok(encoder.finish()?)
    }

    fn frames(&self) -> usize {
        self.rows.len() / CUBES
    }

    fn row(&self, frame: usize, cube: usize) -> &[i32; 8] {
        &self.rows[frame * CUBES + cube]
    }

    /// Returns what the receiver has acknowledged of a cube when this frame is sent.
    fn references(&self, frame: usize, cube: usize) -> References<'_> {
        AGES.iter()
            .filter(|&&age| age <= frame)
            .fold(References::new(), |references, &age| {
                references.with(age as u32, self.row(frame - age, cube))
            })
    }
}

/// All packets, the CPU time they took, and the memory of the models after one.
fn encode(
    coder: &RowCoder,
    scene: &Scene,
    prior: &Models,
) -> anyhow::Result<(Vec<Vec<u8>>, Duration, usize)> {
    // Models as they were after each of the last six packets; the next one goes on from the oldest.
    let mut stored = vec![prior.clone(); DELAY];
    let mut buffer = vec![0; FRAME_BYTES];
    let mut packets = Vec::with_capacity(scene.frames());
    let start = cpu_time(std::process::id())?;
    for frame in DELAY..scene.frames() {
        let models = &mut stored[frame % DELAY];
        let len = scene.encode(frame, coder, models, &mut buffer)?;
        packets.push(buffer[..len].to_vec());
    }
    let time = time_since(start)?;
    Ok((packets, time, stored[0].bytes()))
}

/// Decodes all packets, compares every cube, and says what CPU time it took.
fn decode(
    coder: &RowCoder,
    scene: &Scene,
    prior: &Models,
    packets: &[Vec<u8>],
) -> anyhow::Result<Duration> {
    let mut stored = vec![prior.clone(); DELAY];
    let mut row = [0; 8];
    let start = cpu_time(std::process::id())?;
    for (packet, frame) in packets.iter().zip(DELAY..) {
        let models = &mut stored[frame % DELAY];
        models.start_packet();
        let mut decoder = Decoder::new(packet);
        for cube in 0..CUBES {
            let references = scene.references(frame, cube);
            coder.decode_row(&mut decoder, models, &references, &mut row)?;
            ensure!(
                row == *scene.row(frame, cube),
                "cube {cube} of frame {frame} was not decoded to what it was"
            );
        }
    }
    time_since(start)
}

/// CPU time of this process since an earlier reading; threads that ended in between may have taken theirs along.
pub(crate) fn time_since(start: Duration) -> anyhow::Result<Duration> {
    Ok(cpu_time(std::process::id())?.saturating_sub(start))
}

/// Models that have seen a whole scene.
fn train(coder: &RowCoder, scene: &Scene) -> anyhow::Result<Models> {
    let mut models = coder.models();
    let mut buffer = vec![0; FRAME_BYTES];
    for frame in DELAY..scene.frames() {
        scene.encode(frame, coder, &mut models, &mut buffer)?;
    }
    Ok(models)
}

const CUBES: usize = 901;
const FRAME_BYTES: usize = CUBES * 8 * 4;
const FRAMES_PER_SECOND: f64 = 60.0;
/// Frames until an acknowledgement is back: 100 ms.
const DELAY: usize = 6;
/// Ages of the references in frames: the newest, the one before it for the speed, and two older ones.
const AGES: [usize; 4] = [6, 7, 9, 12];

#[cfg(test)]
mod tests {
    use super::*;

    /// A few bodies fly, turn and come to rest among many that lie still.
    fn scene(frames: usize) -> Scene {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut cubes: Vec<([i32; 8], [i32; 6])> = (0..CUBES)
            .map(|cube| {
                let row = [
                    0,
                    cube as i32 % 30 * 700,
                    cube as i32 / 30 * 700,
                    250,
                    3,
                    0,
                    0,
                    0,
                ];
                (row, [0; 6])
            })
            .collect();
        let mut rows = Vec::new();
        for frame in 0..frames {
            for (row, speed) in &mut cubes {
                if rng.u32(0..2_000) == 0 {
                    *speed = [0; 6].map(|_: i32| rng.i32(-12..=12));
                }
                row[0] = i32::from(speed.iter().any(|speed| *speed != 0));
                for (value, speed) in row[1..4].iter_mut().zip(speed[..3].iter()) {
                    *value += speed;
                }
                for (value, speed) in row[5..8].iter_mut().zip(speed[3..].iter()) {
                    *value = (*value + speed).clamp(-100, 100);
                }
                for speed in speed.iter_mut().filter(|_| frame % 4 == 0) {
                    *speed -= speed.signum();
                }
                rows.push(*row);
            }
        }
        Scene { rows }
    }

    #[test]
    fn every_frame_decodes_exactly_and_is_small() {
        let scene = scene(60);
        let coder = RowCoder::new(&Columns::of::<Cube>(), FRAMES_PER_SECOND);
        let prior = coder.models();
        let (packets, ..) = encode(&coder, &scene, &prior).expect("legal rows");
        decode(&coder, &scene, &prior, &packets).expect("exact rows");
        let bytes: usize = packets.iter().map(Vec::len).sum();
        let changed = (DELAY..scene.frames())
            .flat_map(|frame| (0..CUBES).map(move |cube| (frame, cube)))
            .filter(|&(frame, cube)| scene.row(frame, cube) != scene.row(frame - DELAY, cube))
            .count();
        assert!(changed > 200, "{changed}");
        assert!(
            bytes < changed * 4,
            "{bytes} bytes for {changed} changed cubes"
        );
    }

    #[test]
    fn training_makes_the_first_packets_smaller() {
        let scene = scene(40);
        let coder = RowCoder::new(&Columns::of::<Cube>(), FRAMES_PER_SECOND);
        let len = |prior: &Models| -> usize {
            let (packets, ..) = encode(&coder, &scene, prior).expect("legal rows");
            packets.iter().map(Vec::len).sum()
        };
        let trained = train(&coder, &scene).expect("legal rows");
        assert!(len(&trained) < len(&coder.models()));
    }
}
