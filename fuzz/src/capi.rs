//! The C interface: calls in any order, with stale handles, nulls and nonsense among them, over real sockets of this machine. Nothing
//! panics at the border, and a handle that was destroyed is never anything else.

use std::ffi::CString;
use std::ptr::{null, null_mut};

use arbitrary::{Arbitrary, Unstructured};
use muse_capi::*;

use crate::{Bound, Target, no_setup};

/// Calls of a program in C.
pub const TARGET: Target = Target {
    name: "capi",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 16_000_000,
        per_byte: 4_096,
    },
    steps: Bound {
        base: 5_000_000,
        per_byte: 50_000,
    },
};

#[derive(Arbitrary)]
enum Call<'a> {
    Server {
        channels: Vec<(u8, u8, u8)>,
        asks: bool,
        message_max: u16,
    },
    Client {
        channels: Vec<(u8, u8, u8)>,
        trust: u8,
        hello: &'a [u8],
    },
    Turn {
        handle: u8,
    },
    Send {
        handle: u8,
        connection: u8,
        channel: u8,
        bytes: &'a [u8],
        deadline_us: u64,
        priority: u8,
    },
    Broadcast {
        handle: u8,
        channel: u8,
        bytes: &'a [u8],
    },
    Close {
        handle: u8,
        connection: u8,
        finish: bool,
        text: &'a [u8],
    },
    Decide {
        handle: u8,
        connection: u8,
        admit: bool,
    },
    Receive {
        handle: u8,
        capacity: u8,
    },
    Destroy {
        handle: u8,
    },
    Clock {
        tick_us: u32,
    },
    ClockPacket {
        handle: u8,
        now_us: u64,
        tick: u32,
        bytes: &'a [u8],
    },
    Inputs {
        tick_us: u32,
        next: u32,
    },
    InputsPacket {
        handle: u8,
        now_us: u64,
        tick: u32,
        bytes: &'a [u8],
    },
    Playback {
        tick_us: u32,
    },
    Snapshot {
        handle: u8,
        now_us: u64,
        tick: u32,
        number: u16,
    },
    Interpolation {
        tick_us: u32,
        curved: u8,
        beyond_us: u32,
    },
    Push {
        handle: u8,
        tick: u32,
        pose: [f32; 10],
    },
    Show {
        handle: u8,
        ticks: f64,
    },
    Token {
        text: &'a [u8],
    },
}

/// The bytes choose calls.
fn run(data: &[u8]) {
    let mut program = Program {
        muse: muse_new(),
        handles: vec![0],
        dead: Vec::new(),
        connections: vec![0],
        sockets: 0,
        address: c"127.0.0.1:9".to_owned(),
    };
    let mut choices = Unstructured::new(data);
    for _ in 0..CALLS_MAX {
        if choices.is_empty() {
            break;
        }
        let Ok(call) = Call::arbitrary(&mut choices) else {
            break;
        };
        let status = program.call(call);
        assert_ne!(status, MuseStatus::ErrorPanic);
        program.check();
    }
    // SAFETY: it came from `muse_new`, and nothing uses it any more.
    unsafe { muse_free(program.muse) };
}

/// A program in C, with what it was given so far.
struct Program {
    muse: *mut Muse,
    handles: Vec<u64>,
    dead: Vec<u64>,
    connections: Vec<u64>,
    sockets: usize,
    /// Of the newest server.
    address: CString,
}

impl Program {
    fn call(&mut self, call: Call<'_>) -> MuseStatus {
        match call {
            Call::Server { .. } | Call::Client { .. } if self.sockets >= SOCKETS_MAX => {
                MuseStatus::None
            }
            Call::Server {
                channels,
                asks,
                message_max,
            } => self.serve(&channels, asks, message_max),
            Call::Client {
                channels,
                trust,
                hello,
            } => self.connect(&channels, trust, hello),
            Call::Destroy { handle } => {
                let handle = self.handle(handle);
                // SAFETY: the Muse lives.
                let status = unsafe { muse_destroy(self.muse, handle) };
                if status == MuseStatus::Ok {
                    self.dead.push(handle);
                }
                status
            }
            Call::Clock { .. }
            | Call::ClockPacket { .. }
            | Call::Inputs { .. }
            | Call::InputsPacket { .. }
            | Call::Playback { .. }
            | Call::Snapshot { .. }
            | Call::Interpolation { .. }
            | Call::Push { .. }
            | Call::Show { .. }
            | Call::Token { .. } => self.time(call),
            other => self.talk(other),
        }
    }

    fn serve(&mut self, channels: &[(u8, u8, u8)], asks: bool, message_max: u16) -> MuseStatus {
        let channels = channels_of(channels);
        let options = MuseServerOptions {
            key: KEY.as_ptr(),
            token_keys: null(),
            token_key_count: 0,
            danger_allow_insecure: 1,
            asks: asks.into(),
            reserved: [0; 2],
            pending_max: 0,
            decision_timeout_us: 0,
        };
        let mut handle = 0;
        // SAFETY: every pointer is null or points to what lives until the call returns.
        let status = unsafe {
            let config = config(&channels, u64::from(message_max));
            muse_server_new(
                self.muse,
                c"127.0.0.1:0".as_ptr(),
                &config,
                &options,
                &mut handle,
            )
        };
        self.keep(status, handle);
        self.sockets += 1;
        let (mut text, mut len) = ([0; 64], 0);
        // SAFETY: the Muse lives, and so do the places.
        let told = unsafe {
            muse_local_address(self.muse, handle, text.as_mut_ptr(), text.len(), &mut len)
        };
        if status == MuseStatus::Ok {
            assert_eq!(told, MuseStatus::Ok);
            let letters = text[..len]
                .iter()
                .map(|letter| *letter as u8)
                .collect::<Vec<_>>();
            self.address = CString::new(letters).expect("an address has no zero");
        }
        status
    }

    fn connect(&mut self, channels: &[(u8, u8, u8)], trust: u8, hello: &[u8]) -> MuseStatus {
        let channels = channels_of(channels);
        let (mut handle, mut connection) = (0, 0);
        // SAFETY: every pointer is null or points to what lives until the call returns.
        let status = unsafe {
            let mut public = [0; 32];
            muse_key_public(self.muse, KEY.as_ptr(), public.as_mut_ptr());
            let connect = MuseConnect {
                trust,
                reserved: [0; 7],
                server_key: public.as_ptr(),
                token: null(),
                hello: hello.as_ptr(),
                hello_len: hello.len(),
                timeout_us: 0,
            };
            let config = config(&channels, 0);
            let address = self.address.as_ptr();
            muse_client_new(
                self.muse,
                address,
                &config,
                &connect,
                &mut handle,
                &mut connection,
            )
        };
        self.keep(status, handle);
        self.keep_connection(connection);
        self.sockets += 1;
        status
    }

    /// Connections and messages.
    fn talk(&mut self, call: Call<'_>) -> MuseStatus {
        let muse = self.muse;
        // SAFETY: the Muse lives, and every other pointer is null or points to what lives until the call returns.
        unsafe {
            match call {
                Call::Turn { handle } => {
                    let handle = self.handle(handle);
                    muse_flush(muse, handle);
                    muse_poll(muse, handle)
                }
                Call::Send {
                    handle,
                    connection,
                    channel,
                    bytes,
                    deadline_us,
                    priority,
                } => {
                    let (handle, connection) = (self.handle(handle), self.connection(connection));
                    let options = MuseSendOptions {
                        deadline_us,
                        priority,
                        receipt: channel & 1,
                        reserved: [0; 6],
                    };
                    let (data, len) = (bytes.as_ptr(), bytes.len());
                    muse_send(
                        muse,
                        handle,
                        connection,
                        channel,
                        data,
                        len,
                        &options,
                        null_mut(),
                    )
                }
                Call::Broadcast {
                    handle,
                    channel,
                    bytes,
                } => {
                    let (handle, mut sent) = (self.handle(handle), 0);
                    muse_broadcast(
                        muse,
                        handle,
                        channel,
                        bytes.as_ptr(),
                        bytes.len(),
                        &mut sent,
                    )
                }
                Call::Close {
                    handle,
                    connection,
                    finish,
                    text,
                } => {
                    let (handle, connection) = (self.handle(handle), self.connection(connection));
                    let text = CString::new(text).unwrap_or_default();
                    match finish {
                        true => muse_finish(muse, handle, connection, 7, text.as_ptr()),
                        false => muse_close(muse, handle, connection, 7, text.as_ptr()),
                    }
                }
                Call::Decide {
                    handle,
                    connection,
                    admit,
                } => {
                    let (handle, connection) = (self.handle(handle), self.connection(connection));
                    match admit {
                        true => muse_admit(muse, handle, connection),
                        false => muse_deny(muse, handle, connection, 1, null()),
                    }
                }
                Call::Receive { handle, capacity } => self.receive(handle, capacity),
                _ => MuseStatus::None,
            }
        }
    }

    /// An event, copied to a buffer that may be too short for it; then one that the library holds.
    fn receive(&mut self, handle: u8, capacity: u8) -> MuseStatus {
        let handle = self.handle(handle);
        let mut buffer = vec![0; usize::from(capacity)];
        // SAFETY: a MuseEvent of zeros is valid; the Muse lives, and so do the places.
        let (status, event) = unsafe {
            let mut event: MuseEvent = std::mem::zeroed();
            let at = buffer.as_mut_ptr();
            let mut status = muse_receive(self.muse, handle, &mut event, at, buffer.len());
            if status == MuseStatus::ErrorShortBuffer {
                assert!(event.payload.is_null());
                status = muse_next_event(self.muse, handle, &mut event);
                assert_eq!(status, MuseStatus::Ok, "an event that did not fit waits");
                let parts = [
                    (event.payload, event.payload_len),
                    (event.extra, event.extra_len),
                    (event.address, event.address_len),
                ];
                for (part, len) in parts.into_iter().filter(|(part, _)| !part.is_null()) {
                    // Reads all of it, so that the sanitizer sees it.
                    let bytes = std::slice::from_raw_parts(part, len);
                    std::hint::black_box(bytes.iter().fold(0, |sum, byte| sum ^ byte));
                }
            }
            (status, event)
        };
        self.keep_connection(event.connection);
        status
    }

    /// Clocks, inputs, interpolation, tokens.
    fn time(&mut self, call: Call<'_>) -> MuseStatus {
        let (muse, mut handle, mut len, mut byte) = (self.muse, 0, 0, 0);
        let mut buffer = [0; 1_024];
        let (out, capacity) = (buffer.as_mut_ptr(), buffer.len());
        // SAFETY: the Muse lives, and every other pointer is null or points to what lives until the call returns; structures of zeros are
        // valid.
        let status = unsafe {
            match call {
                Call::Clock { tick_us } => muse_clock_new(muse, tick_us.into(), &mut handle),
                Call::Inputs { tick_us, next } => {
                    muse_inputs_new(muse, tick_us.into(), next, &mut handle)
                }
                Call::Playback { tick_us } => muse_playback_new(muse, tick_us.into(), &mut handle),
                Call::Interpolation {
                    tick_us,
                    curved,
                    beyond_us,
                } => {
                    let beyond_us = beyond_us.into();
                    muse_interpolation_new(muse, tick_us.into(), curved, beyond_us, &mut handle)
                }
                Call::ClockPacket {
                    handle,
                    now_us,
                    tick,
                    bytes,
                } => {
                    let clock = self.handle(handle);
                    let (data, size) = (bytes.as_ptr(), bytes.len());
                    muse_clock_snapshot(muse, clock, now_us, tick, data, size);
                    let mut due = 0;
                    muse_clock_poll(muse, clock, now_us, &mut byte, &mut due);
                    muse_clock_write(
                        muse, clock, now_us, due, data, size, out, capacity, &mut len,
                    )
                }
                Call::InputsPacket {
                    handle,
                    now_us,
                    tick,
                    bytes,
                } => {
                    let inputs = self.handle(handle);
                    muse_inputs_packet(muse, inputs, now_us, bytes.as_ptr(), bytes.len());
                    muse_inputs_take(
                        muse, inputs, tick, now_us, out, capacity, &mut len, &mut byte,
                    );
                    muse_inputs_report(muse, inputs, now_us, now_us, out, capacity, &mut len)
                }
                Call::Snapshot {
                    handle,
                    now_us,
                    tick,
                    number,
                } => {
                    let playback = self.handle(handle);
                    muse_playback_snapshot(muse, playback, now_us, tick, number);
                    let mut state = std::mem::zeroed();
                    muse_playback_advance(muse, playback, now_us, &mut state)
                }
                Call::Push { handle, tick, pose } => {
                    let [x, y, z, vx, vy, vz, rotation @ ..] = pose;
                    let (position, velocity) = ([x, y, z], [vx, vy, vz]);
                    let pose = MusePose {
                        position,
                        velocity,
                        rotation,
                    };
                    muse_interpolation_push(muse, self.handle(handle), tick, &pose)
                }
                Call::Show { handle, ticks } => {
                    let mut pose = MusePose::default();
                    muse_interpolation_show(muse, self.handle(handle), ticks, &mut pose, &mut byte)
                }
                Call::Token { text } => {
                    let text = CString::new(text).unwrap_or_default();
                    let mut info = std::mem::zeroed();
                    muse_token_read(muse, text.as_ptr(), &mut info)
                }
                _ => MuseStatus::None,
            }
        };
        self.keep(status, handle);
        status
    }

    fn handle(&self, choice: u8) -> u64 {
        self.handles[usize::from(choice) % self.handles.len()]
    }

    fn connection(&self, choice: u8) -> u64 {
        self.connections[usize::from(choice) % self.connections.len()]
    }

    fn keep(&mut self, status: MuseStatus, handle: u64) {
        if status == MuseStatus::Ok && handle != 0 {
            assert!(!self.handles.contains(&handle), "a handle is used once");
            self.handles.push(handle);
        }
    }

    fn keep_connection(&mut self, connection: u64) {
        if !self.connections.contains(&connection) {
            self.connections.push(connection);
        }
    }

    /// Checks that a handle that was destroyed stays so, and that errors have words.
    fn check(&self) {
        let mut len = 0;
        // SAFETY: the Muse lives, and so does the place.
        unsafe {
            if let Some(dead) = self.dead.last() {
                assert_eq!(muse_poll(self.muse, *dead), MuseStatus::ErrorStale);
                assert_eq!(muse_destroy(self.muse, *dead), MuseStatus::ErrorStale);
            }
            let status = muse_error_text(self.muse, null_mut(), 0, &mut len);
            assert_ne!(status, MuseStatus::ErrorPanic);
        }
    }
}

fn channels_of(choices: &[(u8, u8, u8)]) -> Vec<MuseChannel> {
    let channel = |&(delivery, repair, priority): &(u8, u8, u8)| MuseChannel {
        delivery: delivery % 8,
        repair: repair % 4,
        priority: priority % 6,
        window: u16::from(repair),
        percent: priority,
        ..MuseChannel::default()
    };
    choices.iter().take(CHANNELS_MAX).map(channel).collect()
}

fn config(channels: &[MuseChannel], message_max: u64) -> MuseConfig {
    MuseConfig {
        protocol: 7,
        shared: null(),
        channels: channels.as_ptr(),
        channel_count: channels.len(),
        message_max,
        ack_delay_us: 0,
        keep_alive_us: 0,
        silence_us: 0,
        resume_within_us: 0,
        connections_max: 4,
        fixed_rate: 0,
    }
}

const KEY: [u8; 32] = [5; 32];
const CALLS_MAX: usize = 128;
const CHANNELS_MAX: usize = 8;
/// Sockets take time to open.
const SOCKETS_MAX: usize = 4;
