//! Inputs of a hostile client: whatever arrives in whatever order, the server keeps a bounded number of them and goes on.

use muse_netcode::Tick;
use muse_netcode::inputs::{InputBuffer, InputBufferConfig, InputReport};
use muse_schema::{BitReader, BitWriter, Options, Schema};
use muse_wire::{Duration, Instant};

use crate::{Bound, Target, no_setup};

/// Packets of inputs.
pub const TARGET: Target = Target {
    name: "netcode_inputs",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 65_536,
        per_byte: 16,
    },
    steps: Bound {
        base: 50_000,
        per_byte: 400,
    },
};

/// An input with a little of everything.
#[derive(Schema, Clone, PartialEq, Default)]
struct Keys {
    #[field(range = -1..=1)]
    forward: i8,
    #[field(range = -180.0..=180.0, step = 0.01)]
    yaw: f32,
    #[field(max = 4)]
    words: Vec<u16>,
}

/// Runs the bytes.
fn run(data: &[u8]) {
    let tick = Duration::from_millis(20);
    let config = InputBufferConfig::new(tick).ahead_max(16);
    let mut buffer = InputBuffer::<Keys>::new(config, Tick(0));
    let mut now = Instant::ZERO;
    for (number, packet) in data.chunks(23).enumerate() {
        // It may accept or refuse it; it must not panic.
        let _ = buffer.handle_packet(now, &mut BitReader::new(packet));
        assert!(buffer.depth() <= 16);
        let next = Tick(number as u32);
        let _ = buffer.take(next, now);
        let report = buffer.report(now, now);
        let mut bytes = [0; 32];
        let mut writer = BitWriter::new(&mut bytes);
        report
            .write(&Options::NONE, &mut writer)
            .expect("a report is small");
        let len = writer.finish();
        let read = InputReport::read(&Options::NONE, &mut BitReader::new(&bytes[..len]));
        assert_eq!(read, Ok(report));
        now += tick;
    }
}
