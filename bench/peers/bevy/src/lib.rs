//! The scene N1 in Bevy, and the loops that every plugin's program shares.
//!
//! A server of 1,000 bodies makes one update in each tick of 50 ms; clients make sixty updates a second, each in an app of its own. With `--still`
//! the same motion is worked out and thrown away: what the loop costs without replication. The programs speak the line protocol of
//! `muse_bench_workload::control`; bytes and CPU time are counted from outside.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use muse_bench_workload::bodies::{Body, Moving};
use muse_bench_workload::control::Control;
use serde::Serialize;

/// Options of a program.
#[derive(Clone, Debug)]
pub struct Options {
    /// Addresses that the clients connect to, one for each; none makes the program a server.
    pub servers: Vec<SocketAddr>,
    /// Number of bodies.
    pub entities: usize,
    /// True if they stay where they are.
    pub still: bool,
    /// Time that clients watch.
    pub seconds: u64,
}

impl Options {
    /// Reads the command line: `server [--still]` or `client ADDRESS...`, and `--entities N`, `--seconds N`.
    ///
    /// # Panics
    /// When it cannot be read.
    pub fn parse() -> Self {
        let mut options = Self {
            servers: Vec::new(),
            entities: 1_000,
            still: false,
            seconds: 10,
        };
        let mut words = std::env::args().skip(2);
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|word| word.parse().ok());
            match word.as_str() {
                "--still" => options.still = true,
                "--entities" => {
                    options.entities = number().expect("--entities has a number") as usize
                }
                "--seconds" => options.seconds = number().expect("--seconds has a number"),
                address => options.servers.push(address.parse().expect("an address")),
            }
        }
        options
    }
}

/// All bodies, moving.
pub struct Bodies {
    moving: Vec<Moving>,
    rng: Rng,
}

impl Bodies {
    /// So many, the same in every program.
    pub fn new(count: usize) -> Self {
        let mut rng = Rng::with_seed(1);
        Self {
            moving: (0..count).map(|_| Moving::new(&mut rng)).collect(),
            rng,
        }
    }

    /// A tick later.
    pub fn step(&mut self) {
        for body in &mut self.moving {
            body.step(&mut self.rng);
        }
    }

    /// Returns one of them.
    pub fn get(&self, index: usize) -> Body {
        self.moving[index].body
    }

    /// Number of bodies.
    pub fn len(&self) -> usize {
        self.moving.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.moving.is_empty()
    }
}

/// A client's view of a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Bodies that are there.
    pub bodies: usize,
    /// Bodies that changed in this update.
    pub changed: usize,
}

/// The clients' report at the end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Report {
    /// Changes of bodies that all clients together have seen.
    pub updates: u64,
    /// Time that they watched.
    pub seconds: f64,
}

/// Runs a server: one `update` in each tick, until the harness says stop.
pub fn serve(port: u16, mut update: impl FnMut()) {
    let control = Control::start();
    control.ready(port);
    // Within the tick, so that a plugin that looks at the clock itself finds exactly one tick due.
    let mut next = Instant::now() + TICK / 2;
    while !control.has_stopped() {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        update();
        next += TICK;
    }
    control.result(&Report::default());
}

/// Runs clients: `update` makes an update of one of them and says what it sees.
///
/// # Panics
/// When the clients do not see everything within 30 s.
pub fn watch(options: &Options, mut update: impl FnMut(usize) -> Seen) {
    let control = Control::start();
    let clients = options.servers.len();
    let began = Instant::now();
    let (mut next, mut report) = (began, Report::default());
    let (mut connected, mut started, mut done) = (false, None, false);
    while !control.has_stopped() {
        let mut complete = 0;
        for client in 0..clients {
            let seen = update(client);
            complete += usize::from(seen.bodies == options.entities);
            if started.is_some() && !done {
                report.updates += seen.changed as u64;
            }
        }
        if complete == clients && !connected {
            connected = true;
            control.connected();
        }
        assert!(
            connected || began.elapsed() < CONNECT_MAX,
            "only {complete} of {clients} clients see everything after 30 s"
        );
        if control.has_started() && started.is_none() {
            started = Some(Instant::now());
        }
        if let Some(start) = started
            && start.elapsed().as_secs() >= options.seconds
            && !done
        {
            report.seconds = start.elapsed().as_secs_f64();
            done = true;
            control.done();
        }
        next = (next + FRAME).max(Instant::now() - FRAME);
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    control.result(&report);
}

/// A tick of the scene.
pub const TICK: Duration = Duration::from_millis(50);
/// A frame of a client.
const FRAME: Duration = Duration::from_micros(16_667);
const CONNECT_MAX: Duration = Duration::from_secs(30);
