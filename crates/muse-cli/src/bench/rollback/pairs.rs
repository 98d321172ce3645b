//! Many duels at once over bad links, in real time: what Muse and its peer run alike. The peer's program includes this file.

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
    /// What was done so far.
    fn counts(&self) -> Counts;
}

/// What a machine has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Frames run for the first time.
    pub(crate) frames: u64,
    /// Rollbacks.
    pub(crate) rollbacks: u64,
    /// Frames run again.
    pub(crate) resimulated: u64,
}

/// What all machines together have done.
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
    /// Time within the library and the game, in nanoseconds.
    pub(crate) nanos: u64,
}

/// Plays `pairs` duels for so long after a warm-up of two seconds.
pub(crate) fn run(pairs: Vec<[Box<dyn Side>; 2]>, seconds: u64) -> Report {
    let start = std::time::Instant::now();
    let mut duels: Vec<Duel> = pairs
        .into_iter()
        .zip(0u64..)
        .map(|(sides, seed)| Duel::new(sides, seed))
        .collect();
    let mut before: Option<Vec<[Counts; 2]>> = None;
    loop {
        let now = Instant::from_micros(start.elapsed().as_micros() as u64);
        if before.is_none() && now >= Instant::from_secs(WARM_UP_SECONDS) {
            before = Some(duels.iter().map(Duel::counts).collect());
            duels
                .iter_mut()
                .for_each(|duel| duel.report = Report::default());
        }
        if now >= Instant::from_secs(WARM_UP_SECONDS + seconds) {
            break;
        }
        duels.iter_mut().for_each(|duel| duel.turn(now));
        std::thread::sleep(std::time::Duration::from_micros(700));
    }
    summarise(&duels, &before.unwrap_or_default())
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
        report.nanos += duel.report.nanos;
    }
    report
}

/// Two machines and the links between them.
struct Duel {
    sides: [Box<dyn Side>; 2],
    links: [Conditioner; 2],
    flights: BinaryHeap<Reverse<(Instant, u64, usize, Vec<u8>)>>,
    sent: u64,
    seed: u64,
    out: Vec<Vec<u8>>,
    report: Report,
}

impl Duel {
    fn new(sides: [Box<dyn Side>; 2], seed: u64) -> Self {
        let conditions = Conditions::default()
            .delay(Duration::from_millis(50))
            .loss(0.05);
        Self {
            sides,
            links: [0, 1].map(|side| Conditioner::new(conditions.clone(), seed * 2 + side)),
            flights: BinaryHeap::new(),
            sent: 0,
            seed,
            out: Vec::new(),
            report: Report::default(),
        }
    }

    fn counts(&self) -> [Counts; 2] {
        [self.sides[0].counts(), self.sides[1].counts()]
    }

    fn turn(&mut self, now: Instant) {
        let mut arrived: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
        while self
            .flights
            .peek()
            .is_some_and(|Reverse((at, ..))| *at <= now)
        {
            if let Some(Reverse((_, _, to, packet))) = self.flights.pop() {
                arrived[to].push(packet);
            }
        }
        for (index, mut packets) in arrived.into_iter().enumerate() {
            let seed = self.seed * 2 + index as u64;
            let clock = std::time::Instant::now();
            let side = &mut self.sides[index];
            for packet in &mut packets {
                side.handle(now, packet);
            }
            side.run(now, &|frame| script(seed, frame), &mut self.out);
            // Being interrupted is not the library's doing.
            self.report.nanos += (clock.elapsed().as_nanos() as u64).min(NANOS_MAX);
            for packet in self.out.drain(..) {
                self.report.bytes += packet.len() as u64;
                self.report.packets += 1;
                let to = SocketAddr::from(([127, 0, 0, 1], 1));
                let fates =
                    self.links[index].offer(now, Packet::new(to, packet.len(), Ecn::NotCapable));
                for fate in fates.arrivals() {
                    self.sent += 1;
                    self.flights
                        .push(Reverse((fate.at, self.sent, 1 - index, packet.clone())));
                }
            }
        }
    }
}

/// What a player does: buttons that change every ten frames on average, the same for every library.
fn script(seed: u64, frame: u32) -> u8 {
    let mut buttons = 0;
    let first = frame.saturating_sub(60);
    for at in first..=frame {
        let mut rng = muse_lockstep::Rng::new(seed << 32 | u64::from(at));
        if rng.below(10) == 0 {
            buttons = rng.below(64) as u8;
        }
    }
    buttons
}

const WARM_UP_SECONDS: u64 = 2;
/// No turn of one machine takes this long by itself.
const NANOS_MAX: u64 = 300_000;
