//! Many duels at once over bad links, in virtual time: what Muse and its peer run alike. The peer's program includes this file.
//!
//! Time is a number, so how deep rollbacks are follows from the links and the libraries alone, however busy the machine is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use muse_netem::{Conditioner, Conditions, Packet};
use muse_wire::{Duration, Ecn, Instant};
use serde::{Deserialize, Serialize};

/// One machine of a duel.
pub(crate) trait Side {
    /// A packet arrived.
    fn handle(&mut self, now: Instant, packet: &mut [u8]);
    /// Runs what is due, with the input that `input` gives for a frame, and puts packets into `out`.
    fn run(&mut self, now: Instant, input: &dyn Fn(u32) -> u8, out: &mut Vec<Vec<u8>>);
    /// Returns the counts so far.
    fn counts(&self) -> Counts;
}

/// The work of one machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Frames run for the first time.
    pub(crate) frames: u64,
    /// Rollbacks.
    pub(crate) rollbacks: u64,
    /// Frames run again.
    pub(crate) resimulated: u64,
}

/// The work of all machines together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Frames, rollbacks and frames run again, of all machines.
    pub(crate) counts: Counts,
    /// Mean depth of rollbacks on the machine of each pair that has the deeper ones, averaged over pairs.
    pub(crate) depth_worse_side: f64,
    /// Bytes of UDP payload sent.
    pub(crate) bytes: u64,
    /// Packets sent.
    pub(crate) packets: u64,
    /// CPU time within the library and the game, in nanoseconds.
    pub(crate) nanos: u64,
    /// Frames that would have been run if nobody had ever waited.
    pub(crate) due: u64,
}

/// Plays duels for so long after a warm-up of five seconds. `round` chooses the links' luck and when each player comes.
pub(crate) fn run(pairs: Vec<[Box<dyn Side>; 2]>, seconds: u64, round: u64) -> Report {
    let mut duels: Vec<Duel> = pairs
        .into_iter()
        .zip(round * SEEDS_PER_ROUND..)
        .map(|(sides, seed)| Duel::new(sides, seed))
        .collect();
    let (mut before, mut nanos) = (Vec::new(), 0);
    let measured_from = Instant::from_secs(WARM_UP_SECONDS);
    let end = measured_from + Duration::from_secs(seconds);
    let mut now = Instant::ZERO;
    while now < end {
        if now == measured_from {
            before = duels.iter().map(Duel::counts).collect();
            nanos = 0;
            duels
                .iter_mut()
                .for_each(|duel| duel.report = Report::default());
        }
        duels.iter_mut().for_each(|duel| duel.deliver(now));
        // Only what the libraries and the game do is on the clock.
        let clock = cpu_nanos();
        duels.iter_mut().for_each(|duel| duel.turn(now));
        nanos += cpu_nanos().saturating_sub(clock);
        duels.iter_mut().for_each(|duel| duel.post(now));
        now += STEP;
    }
    Report {
        nanos,
        due: seconds * 60 * 2 * duels.len() as u64,
        ..summarise(&duels, &before)
    }
}

fn summarise(duels: &[Duel], before: &[[Counts; 2]]) -> Report {
    let mut report = Report::default();
    for (duel, before) in duels.iter().zip(before) {
        let mut deeper: f64 = 0.0;
        for (now, before) in duel.counts().iter().zip(before) {
            let (rollbacks, resimulated) = (
                now.rollbacks - before.rollbacks,
                now.resimulated - before.resimulated,
            );
            report.counts.frames += now.frames - before.frames;
            report.counts.rollbacks += rollbacks;
            report.counts.resimulated += resimulated;
            deeper = deeper.max(resimulated as f64 / rollbacks.max(1) as f64);
        }
        report.depth_worse_side += deeper / duels.len() as f64;
        report.bytes += duel.report.bytes;
        report.packets += duel.report.packets;
    }
    report
}

/// A packet on its way: when it arrives, its number, for whom it is, and its bytes.
type Flight = (Instant, u64, usize, Vec<u8>);

/// Two machines and the links between them.
struct Duel {
    players: [Player; 2],
    flights: BinaryHeap<Reverse<Flight>>,
    sent: u64,
    report: Report,
}

/// One machine, its post, and its link to the other.
struct Player {
    side: Box<dyn Side>,
    link: Conditioner,
    /// Its program is started then: where in a frame the two are to each other is chance.
    starts_at: Instant,
    /// The buttons by frame.
    script: Vec<u8>,
    arrived: Vec<Vec<u8>>,
    out: Vec<Vec<u8>>,
}

impl Duel {
    fn new(sides: [Box<dyn Side>; 2], seed: u64) -> Self {
        let conditions = Conditions::default()
            .delay(Duration::from_millis(50))
            .loss(0.05);
        let mut index = 0;
        let players = sides.map(|side| {
            let seed = seed * 2 + index;
            index += 1;
            Player {
                side,
                link: Conditioner::new(conditions.clone(), seed),
                starts_at: Instant::from_micros(u64::from(
                    muse_lockstep::Rng::new(seed).below(START_MICROS_MAX),
                )),
                script: script(seed),
                arrived: Vec::new(),
                out: Vec::new(),
            }
        });
        Self {
            players,
            flights: BinaryHeap::new(),
            sent: 0,
            report: Report::default(),
        }
    }

    fn counts(&self) -> [Counts; 2] {
        [0, 1].map(|index: usize| self.players[index].side.counts())
    }

    /// Takes what has arrived off the links.
    fn deliver(&mut self, now: Instant) {
        while self
            .flights
            .peek()
            .is_some_and(|Reverse((at, ..))| *at <= now)
        {
            if let Some(Reverse((_, _, to, packet))) = self.flights.pop() {
                self.players[to].arrived.push(packet);
            }
        }
    }

    /// Lets both machines run.
    fn turn(&mut self, now: Instant) {
        for player in &mut self.players {
            if now < player.starts_at {
                player.arrived.clear();
                continue;
            }
            for mut packet in player.arrived.drain(..) {
                player.side.handle(now, &mut packet);
            }
            let script = &player.script;
            let input = |frame: u32| script[frame as usize % script.len()];
            player.side.run(now, &input, &mut player.out);
        }
    }

    /// Puts what was sent on the links.
    fn post(&mut self, now: Instant) {
        for (index, player) in self.players.iter_mut().enumerate() {
            for packet in player.out.drain(..) {
                self.report.bytes += packet.len() as u64;
                self.report.packets += 1;
                let to = SocketAddr::from(([127, 0, 0, 1], 1));
                let offered = Packet::new(to, packet.len(), Ecn::NotCapable);
                for fate in player.link.offer(now, offered).arrivals() {
                    self.sent += 1;
                    self.flights
                        .push(Reverse((fate.at, self.sent, 1 - index, packet.clone())));
                }
            }
        }
    }
}

/// A player's inputs: buttons that change every ten frames on average, the same for every library.
fn script(seed: u64) -> Vec<u8> {
    let mut rng = muse_lockstep::Rng::new(seed);
    let mut buttons = 0;
    let mut next = |_| {
        if rng.below(10) == 0 {
            buttons = rng.below(64) as u8;
        }
        buttons
    };
    (0..SCRIPT_FRAMES).map(&mut next).collect()
}

/// CPU time of this thread: a busy machine makes it wait, but does not count as its work.
fn cpu_nanos() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

const WARM_UP_SECONDS: u64 = 5;
/// Virtual time goes on in steps of this; nothing is due more exactly.
const STEP: Duration = Duration::from_micros(250);
const START_MICROS_MAX: u32 = 100_000;
const SCRIPT_FRAMES: u32 = 4_096;
const SEEDS_PER_ROUND: u64 = 1_000;
