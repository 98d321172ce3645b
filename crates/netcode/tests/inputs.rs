//! One client's inputs on the server: nothing it sends can do harm, and what is missing is told.

use muse_netcode::Tick;
use muse_netcode::clock::PacketHeader;
use muse_netcode::inputs::{
    InputBuffer, InputBufferConfig, InputError, InputForTick, InputSender, Stamp,
};
use muse_schema::{BitReader, BitWriter};
use muse_wire::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);

/// A packet with these inputs, the last for `tick`.
fn packet(number: u16, sent: Instant, tick: u32, inputs: &[u8]) -> Vec<u8> {
    let mut sender = InputSender::new().with_redundancy(8, 8);
    for (input, tick) in inputs.iter().zip(tick + 1 - inputs.len() as u32..) {
        sender.push(Tick(tick), *input);
    }
    sender.handle_report(&Default::default());
    let header = PacketHeader {
        number,
        stamp: Stamp::of(sent),
        doubled: false,
    };
    let mut bytes = vec![0; 256];
    let mut writer = BitWriter::new(&mut bytes);
    sender.write(header, &mut writer).expect("room");
    let len = writer.finish();
    bytes.truncate(len);
    bytes
}

fn give(buffer: &mut InputBuffer<u8>, now: Instant, packet: &[u8]) -> Result<(), InputError> {
    buffer.handle_packet(now, &mut BitReader::new(packet))
}

fn buffer(config: InputBufferConfig) -> InputBuffer<u8> {
    InputBuffer::new(config, Tick(100))
}

#[test]
fn missing_inputs_are_repeated_then_missing_and_come_too_late() {
    let mut buffer = buffer(InputBufferConfig::new(TICK).repeat_max(2));
    let now = Instant::from_secs(1);
    give(&mut buffer, now, &packet(1, now, 101, &[7, 8])).expect("valid");
    let repeated = |times| InputForTick::Repeated { input: 8, times };
    let expected = [
        InputForTick::Received(7),
        InputForTick::Received(8),
        repeated(1),
        repeated(2),
        InputForTick::Missing,
    ];
    for (tick, expected) in (100..).zip(expected) {
        assert_eq!(buffer.take(Tick(tick), now), expected, "{tick}");
    }
    // Three that are late, two that are known, and one that is in time.
    give(&mut buffer, now, &packet(2, now, 105, &[7, 8, 1, 2, 3, 4])).expect("valid");
    assert_eq!(buffer.take(Tick(105), now), InputForTick::Received(4));
    let counters = *buffer.counters();
    assert_eq!(
        (counters.received, counters.repeated, counters.missing),
        (3, 2, 1)
    );
    assert_eq!((counters.late, counters.duplicates), (3, 2));
    // The first of the late ones was due as the others were: all at this instant, though a tick apart by the schedule.
    let margin = buffer.report(now, now).margin_ticks();
    assert!((-3.0..=-1.0).contains(&margin), "{margin}");
    // Late ones are counted once.
    give(&mut buffer, now, &packet(3, now, 105, &[1, 2, 3, 4])).expect("valid");
    assert_eq!(buffer.counters().late, 3);
}

#[test]
fn nobody_changes_his_mind_after_the_fact() {
    let mut buffer = buffer(InputBufferConfig::new(TICK));
    let now = Instant::from_secs(1);
    give(&mut buffer, now, &packet(1, now, 100, &[7])).expect("valid");
    give(&mut buffer, now, &packet(2, now, 100, &[9])).expect("valid");
    assert_eq!(buffer.take(Tick(100), now), InputForTick::Received(7));
    assert_eq!(buffer.counters().duplicates, 1);
}

#[test]
fn inputs_from_far_ahead_are_refused_and_the_client_is_told_to_slow_down() {
    let mut buffer = buffer(InputBufferConfig::new(TICK).ahead_max(15));
    let mut now = Instant::from_secs(1);
    for number in 0..40_u32 {
        // The client plays 25 ticks ahead, and its packets take no time at all.
        let bytes = packet(number as u16, now, 125 + number, &[1, 2, 3]);
        give(&mut buffer, now, &bytes).expect("within twice the reach");
        buffer.take(Tick(100 + number), now);
        assert!(buffer.depth() <= 15);
        now += TICK;
    }
    assert_eq!(buffer.counters().too_early, 120);
    let far = packet(41, now, 10_000, &[1]);
    assert_eq!(give(&mut buffer, now, &far), Err(InputError::OutOfReach));
    // The input of a tick that is due now should be sent now, or less than two ticks before.
    let aim = buffer
        .report(now, now)
        .aim
        .expect("forty packets were measured");
    let early = Stamp::of(now).since(aim);
    assert!((0..40_000).contains(&early), "{early}");
}

#[test]
fn garbage_does_no_harm() {
    let mut random = fastrand::Rng::with_seed(9);
    let mut buffer = buffer(InputBufferConfig::new(TICK));
    let mut now = Instant::from_secs(1);
    let mut refused = 0;
    for round in 0..30_000_u32 {
        let mut bytes = match random.bool() {
            true => packet(
                random.u16(..),
                Instant::from_micros(random.u64(..)),
                random.u32(10..),
                &[1, 2],
            ),
            false => (0..random.u8(..)).map(|_| random.u8(..)).collect(),
        };
        if let Some(byte) = bytes.first_mut()
            && random.bool()
        {
            *byte ^= 1 << random.u32(0..8);
        }
        refused += u32::from(give(&mut buffer, now, &bytes).is_err());
        if round % 5 == 0 {
            now += TICK;
            buffer.take(Tick(100 + round / 5), now);
            buffer.report(now, now);
        }
        assert!(buffer.depth() <= 32);
    }
    assert!(refused > 20_000 && refused < 30_000, "{refused}");
    assert_eq!(u64::from(refused), buffer.counters().refused);
}
