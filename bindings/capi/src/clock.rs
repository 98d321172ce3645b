//! The client's clock with the inputs that it paces, and the server's buffer of them.
//!
//! An input is up to [`MUSE_INPUT_MAX`] bytes that mean something to the game alone. What the client's clock writes goes to the server's buffer;
//! the buffer's report goes back with each snapshot and steers the clock.

use muse::netcode::Tick;
use muse::netcode::clock::{ClientClock, ClockConfig, Due};
use muse::netcode::inputs::{
    InputBuffer, InputBufferConfig, InputForTick, InputReport, InputSender,
};
use muse::schema::{BitReader, BitWriter, Options, Schema};
use muse::{Duration, Instant};

use crate::context::{Muse, run};
use crate::memory;
use crate::status::{Failure, MuseStatus};

/// Longest input of a tick, in bytes.
pub const MUSE_INPUT_MAX: usize = 60;

/// The task that a clock asks for.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseDue {
    /// Write a packet without an input: the way to the server is still being measured.
    Probe = 1,
    /// Simulate this tick and write a packet with its input.
    Tick = 2,
    /// Write a packet once more, without a new input.
    Copy = 3,
}

/// The origin of a player's input for a tick.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MuseInputKind {
    /// It came in time.
    Received = 1,
    /// It did not, so the last one counts again.
    Repeated = 2,
    /// None came for so long that nothing is assumed; its length is 0.
    Missing = 3,
}

/// The state of a clock.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MuseClockState {
    /// The server's time in ticks; less than 0 before the first snapshot.
    pub server_ticks: f64,
    /// The instant that is being played, in ticks; less than 0 before it plays.
    pub play_ticks: f64,
    /// Speed of the clock against time; 1 when it is where it should be.
    pub rate: f64,
    /// Time by which the client plays ahead of the server, in microseconds.
    pub ahead_us: u64,
    /// The mean of the last round trips, in microseconds; 0 before the first.
    pub round_trip_us: u64,
    /// Ticks that were never simulated because the program stood still.
    pub skipped: u64,
}

/// An input as the game's bytes.
#[derive(Schema, Clone, Debug, Default, PartialEq)]
pub(crate) struct InputBytes {
    #[field(max = 60)]
    bytes: Vec<u8>,
}

/// A client's clock, and the sender of the inputs that it paces.
pub(crate) struct PacedClock {
    clock: ClientClock,
    sender: InputSender<InputBytes>,
}

/// Makes a client's clock for ticks of this length, the same as the server's, and the sender of its inputs.
///
/// # Safety
/// `muse` is null or a living Muse; `clock` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_clock_new(
    muse: *mut Muse,
    tick_us: u64,
    clock: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(clock)?;
        let clock = PacedClock {
            clock: ClientClock::new(ClockConfig::new(tick(tick_us)?)),
            sender: InputSender::new(),
        };
        place.put(inner.insert(clock)?);
        Ok(())
    })
}

/// Handles a snapshot that arrived at `now_us` and that the server made in `tick`, with the report that `muse_inputs_report` wrote there; null for none.
///
/// # Safety
/// `muse` is null or a living Muse; `len` bytes can be read at `report`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_clock_snapshot(
    muse: *mut Muse,
    clock: u64,
    now_us: u64,
    tick: u32,
    report: *const u8,
    len: usize,
) -> MuseStatus {
    run!(muse, |inner| {
        let bytes = memory::bytes(report, len)?;
        let clock = inner.clock(clock)?;
        let report = match bytes {
            [] => None,
            bytes => Some(read_report(bytes)?),
        };
        let now = Instant::from_micros(now_us);
        clock
            .clock
            .handle_snapshot(now, Tick(tick), report.as_ref());
        if let Some(report) = &report {
            clock.sender.handle_report(report);
        }
        Ok(())
    })
}

/// Gives the next task that is due by `now_us`: a MuseDue, and the tick of one. MUSE_STATUS_NONE when nothing is. Each asks for a packet by
/// `muse_clock_write`.
///
/// # Safety
/// `muse` is null or a living Muse; `due` and `tick` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_clock_poll(
    muse: *mut Muse,
    clock: u64,
    now_us: u64,
    due: *mut u8,
    tick: *mut u32,
) -> MuseStatus {
    run!(muse, |inner| {
        let (due, tick) = (memory::place(due)?, memory::place(tick)?);
        let clock = &mut inner.clock(clock)?.clock;
        clock.advance(Instant::from_micros(now_us));
        let (kind, number) = match clock.poll() {
            None => return Ok(false),
            Some(Due::Probe) => (MuseDue::Probe, 0),
            Some(Due::Copy) => (MuseDue::Copy, 0),
            Some(Due::Tick(tick)) => (MuseDue::Tick, tick.0),
        };
        due.put(kind as u8);
        tick.put(number);
        Ok(true)
    })
}

/// Writes the packet that the last `muse_clock_poll` asked for, for an unreliable channel. For a tick, `input` is what the player does in it,
/// at most MUSE_INPUT_MAX bytes; otherwise null. 1,024 bytes of buffer are always enough; with fewer than that nothing is done.
///
/// # Safety
/// `muse` is null or a living Muse; `input_len` bytes can be read at `input`; `capacity` bytes can be written at `buffer`; `len` is null or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_clock_write(
    muse: *mut Muse,
    clock: u64,
    now_us: u64,
    tick: u32,
    input: *const u8,
    input_len: usize,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(len)?;
        let bytes = memory::bytes(input, input_len)?;
        let clock = inner.clock(clock)?;
        if bytes.len() > MUSE_INPUT_MAX {
            return Err(Failure::argument("an input has at most 60 bytes"));
        }
        if capacity < PACKET_MAX {
            place.put(PACKET_MAX);
            let text = "the buffer is too short for every packet";
            return Err(Failure::new(MuseStatus::ErrorShortBuffer, text));
        }
        if !input.is_null() {
            let bytes = bytes.to_vec();
            clock.sender.push(Tick(tick), InputBytes { bytes });
        }
        let header = clock.clock.header(Instant::from_micros(now_us));
        let mut packet = [0; PACKET_MAX];
        let written = written(&mut packet, |writer| clock.sender.write(header, writer))?;
        memory::copy_out(written, buffer, capacity, &place)
    })
}

/// Gives the state of a clock, as of its last poll.
///
/// # Safety
/// `muse` is null or a living Muse; `state` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_clock_read(
    muse: *mut Muse,
    clock: u64,
    state: *mut MuseClockState,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(state)?;
        let clock = &inner.clock(clock)?.clock;
        let micros = |time: Option<Duration>| time.map_or(0, Duration::as_micros);
        place.put(MuseClockState {
            server_ticks: clock.server_time().map_or(-1.0, |time| time.ticks()),
            play_ticks: clock.play_time().map_or(-1.0, |time| time.ticks()),
            rate: clock.rate(),
            ahead_us: micros(clock.ahead()),
            round_trip_us: micros(clock.round_trip()),
            skipped: clock.skipped(),
        });
        Ok(())
    })
}

/// Makes the buffer of one client's inputs on the server, which simulates `next_tick` next.
///
/// # Safety
/// `muse` is null or a living Muse; `inputs` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_inputs_new(
    muse: *mut Muse,
    tick_us: u64,
    next_tick: u32,
    inputs: *mut u64,
) -> MuseStatus {
    run!(muse, |inner| {
        let place = memory::place(inputs)?;
        let config = InputBufferConfig::new(tick(tick_us)?);
        place.put(inner.insert(InputBuffer::new(config, Tick(next_tick)))?);
        Ok(())
    })
}

/// Handles a packet that `muse_clock_write` wrote. Any other is refused and does no harm.
///
/// # Safety
/// `muse` is null or a living Muse; `len` bytes can be read at `packet`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_inputs_packet(
    muse: *mut Muse,
    inputs: u64,
    now_us: u64,
    packet: *const u8,
    len: usize,
) -> MuseStatus {
    run!(muse, |inner| {
        let bytes = memory::bytes(packet, len)?;
        let now = Instant::from_micros(now_us);
        inner
            .inputs(inputs)?
            .handle_packet(now, &mut BitReader::new(bytes))
            .map_err(Failure::of(MuseStatus::ErrorMalformed))?;
        Ok(())
    })
}

/// Takes the input of `tick`, which was due at `due_us`: a MuseInputKind and its bytes. The buffer has at least MUSE_INPUT_MAX bytes.
///
/// # Safety
/// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer`; `len` and `kind` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_inputs_take(
    muse: *mut Muse,
    inputs: u64,
    tick: u32,
    due_us: u64,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
    kind: *mut u8,
) -> MuseStatus {
    run!(muse, |inner| {
        let (len, kind) = (memory::place(len)?, memory::place(kind)?);
        let inputs = inner.inputs(inputs)?;
        if capacity < MUSE_INPUT_MAX {
            len.put(MUSE_INPUT_MAX);
            let text = "the buffer is too short for every input";
            return Err(Failure::new(MuseStatus::ErrorShortBuffer, text));
        }
        let taken = inputs.take(Tick(tick), Instant::from_micros(due_us));
        kind.put(match &taken {
            InputForTick::Received(_) => MuseInputKind::Received,
            InputForTick::Repeated { .. } => MuseInputKind::Repeated,
            InputForTick::Missing => MuseInputKind::Missing,
        } as u8);
        memory::copy_out(&taken.input().bytes, buffer, capacity, &len)
    })
}

/// Writes the report for the client at `now_us`, in the snapshot of the tick that was due at `due_us`: at most 32 bytes, for `muse_clock_snapshot`.
///
/// # Safety
/// `muse` is null or a living Muse; `capacity` bytes can be written at `buffer`; `len` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn muse_inputs_report(
    muse: *mut Muse,
    inputs: u64,
    now_us: u64,
    due_us: u64,
    buffer: *mut u8,
    capacity: usize,
    len: *mut usize,
) -> MuseStatus {
    run!(muse, |inner| {
        let len = memory::place(len)?;
        let (now, due) = (Instant::from_micros(now_us), Instant::from_micros(due_us));
        let report = inner.inputs(inputs)?.report(now, due);
        let mut bytes = [0; REPORT_MAX];
        let written = written(&mut bytes, |writer| report.write(&Options::NONE, writer))?;
        memory::copy_out(written, buffer, capacity, &len)
    })
}

fn read_report(bytes: &[u8]) -> Result<InputReport, Failure> {
    InputReport::read(&Options::NONE, &mut BitReader::new(bytes))
        .map_err(Failure::of(MuseStatus::ErrorMalformed))
}

/// Returns the bytes that `write` puts into a buffer.
fn written<E: ToString>(
    buffer: &mut [u8],
    write: impl FnOnce(&mut BitWriter<'_>) -> Result<(), E>,
) -> Result<&[u8], Failure> {
    let mut writer = BitWriter::new(buffer);
    write(&mut writer).map_err(Failure::of(MuseStatus::ErrorArgument))?;
    let len = writer.finish();
    Ok(&buffer[..len])
}

/// The length of a tick, if there can be one of that length.
pub(crate) fn tick(tick_us: u64) -> Result<Duration, Failure> {
    match tick_us {
        1_000..=1_000_000 => Ok(Duration::from_micros(tick_us)),
        _ => Err(Failure::argument("a tick lasts 1 ms to 1 s")),
    }
}

/// Room for the longest packet: 15 inputs.
const PACKET_MAX: usize = 1_024;
const REPORT_MAX: usize = 32;
