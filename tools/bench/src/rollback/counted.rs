//! Counts by callgrind: saving, loading and rolling back, against copying memory and plain steps.

use std::hint::black_box;
use std::net::SocketAddr;

use anyhow::{Context, bail, ensure};
use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::{DeterministicGame, Frame, History, MatchConfig, Rng, Role, Session, Step};
use muse_wire::{Datagram, Ecn, Instant, Machine};
use serde::Serialize;

use super::super::callgrind;
use super::castle;

/// A state of 4 kB.
#[derive(Clone, Copy)]
struct Plain([u64; 512]);

/// Instructions of each, for one.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Costs {
    memcpy_4k: f64,
    save_4k: f64,
    load_4k: f64,
    steps_8: f64,
    rollback_8: f64,
    castle_all: f64,
    castle_due: f64,
}

impl Costs {
    pub(crate) fn save_ratio(&self) -> f64 {
        self.save_4k / self.memcpy_4k
    }

    pub(crate) fn load_ratio(&self) -> f64 {
        self.load_4k / self.memcpy_4k
    }

    pub(crate) fn rollback_ratio(&self) -> f64 {
        self.rollback_8 / self.steps_8
    }

    /// Returns what sleeping and slower bots save, less the cost of deciding about them.
    pub(crate) fn sleeping_saved_percent(&self) -> f64 {
        100.0 - self.castle_due * 100.0 / self.castle_all
    }
}

impl std::fmt::Display for Costs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            memcpy_4k,
            save_4k,
            load_4k,
            steps_8,
            rollback_8,
            castle_all,
            castle_due,
        } = self;
        let saved = self.sleeping_saved_percent();
        write!(
            f,
            "memcpy of 4 kB {memcpy_4k:.0}, save {save_4k:.0}, load {load_4k:.0}; eight steps of the duel {steps_8:.0}, rollback of eight {rollback_8:.0}; \
             a castle's step {castle_all:.0}, with sleep and slower bots {castle_due:.0} ({saved:.1} % saved)"
        )
    }
}

/// Counts everything, each in a run of its own.
pub(crate) fn count_all() -> anyhow::Result<Costs> {
    ensure!(
        !cfg!(debug_assertions),
        "only a release build has comparable figures"
    );
    Ok(Costs {
        memcpy_4k: count("memcpy_4k")?,
        save_4k: count("save_4k")?,
        load_4k: count("load_4k")?,
        steps_8: count("steps_8")?,
        rollback_8: count("rollback_8")?,
        castle_all: count("castle_all")?,
        castle_due: count("castle_due")?,
    })
}

/// Runs what is counted, so many times.
pub(crate) fn run(name: &str) -> anyhow::Result<()> {
    match name {
        "memcpy_4k" => copies(|source, target, _| counted_memcpy_4k(source, target)),
        "save_4k" => copies(|source, _, history| counted_save_4k(source, history)),
        "load_4k" => copies(|_, target, history| counted_load_4k(target, history)),
        "steps_8" => steps()?,
        "rollback_8" => rollbacks()?,
        "castle_all" => castle::run_all(),
        "castle_due" => castle::run_due(),
        _ => bail!("nothing of that name is counted"),
    }
    Ok(())
}

/// Instructions of one call of `counted_NAME`.
fn count(name: &str) -> anyhow::Result<f64> {
    let function = format!("counted_{name}");
    let (total, _) = callgrind::count(&function, &["bench-rollback", name])?;
    Ok(total as f64 / f64::from(ROUNDS))
}

fn copies(mut each: impl FnMut(&Plain, &mut Plain, &mut History<Plain>)) {
    let (source, mut target) = (Plain([7; 512]), Plain([0; 512]));
    let mut history = History::new(300, 1);
    // Once round, as in a match that is under way.
    for frame in 0..600 {
        history.save(Frame(frame), &source);
    }
    for _ in 0..ROUNDS {
        each(
            black_box(&source),
            black_box(&mut target),
            black_box(&mut history),
        );
    }
}

#[inline(never)]
fn counted_memcpy_4k(source: &Plain, target: &mut Plain) {
    target.0.copy_from_slice(&source.0);
}

#[inline(never)]
fn counted_save_4k(source: &Plain, history: &mut History<Plain>) {
    history.save(Frame(650), source);
}

#[inline(never)]
fn counted_load_4k(target: &mut Plain, history: &History<Plain>) {
    if let Some((_, saved)) = history.at_or_before(Frame(599)) {
        target.clone_from(saved);
    }
}

fn steps() -> anyhow::Result<()> {
    let [host, _] = match_under_way()?;
    let session = host.session().context("a host plays")?;
    let first = session.frame() - 8;
    let state = *session.state_at(first).context("it was saved")?;
    let inputs: Vec<[Option<Buttons>; 2]> = (0..8)
        .map(|frame| {
            let inputs = session.inputs_at(first + frame);
            [inputs[0], inputs[1]]
        })
        .collect();
    for _ in 0..ROUNDS {
        let mut state = state;
        counted_steps_8(black_box(&mut state), black_box(&inputs));
        black_box(&state);
    }
    Ok(())
}

#[inline(never)]
fn counted_steps_8(state: &mut Duel, inputs: &[[Option<Buttons>; 2]]) {
    let mut events = Vec::new();
    for (frame, inputs) in inputs.iter().enumerate() {
        state.step(&mut Step::new(Frame(frame as u32), inputs, &mut events));
    }
}

fn rollbacks() -> anyhow::Result<()> {
    let [mut host, _] = match_under_way()?;
    let session = host.session_mut().context("a host plays")?;
    for _ in 0..ROUNDS {
        let done = counted_rollback_8(black_box(session));
        ensure!(done, "the frames are known");
    }
    Ok(())
}

#[inline(never)]
fn counted_rollback_8(session: &mut Session<Duel>) -> bool {
    session.run_again(8)
}

/// A duel in which both fight, ten seconds old, over a link that takes no time.
fn match_under_way() -> anyhow::Result<[PlainPeer<Duel>; 2]> {
    let config = MatchConfig::rollback(2).delay(0);
    let address = |side: u16| SocketAddr::from(([127, 0, 0, 1], side));
    let host = PlainPeer::host(config.clone(), Duel::new(1), 1)?;
    let session = Session::new(config, Duel::new(1), Role::Player, 2)?;
    let client = PlainPeer::client(session, address(0));
    let mut peers = [host, client];
    let mut buffer = [0; 1_500];
    let mut rng = Rng::new(1);
    for millis in 0..10_000 {
        let now = Instant::from_millis(millis);
        for side in 0..2 {
            if let Some(session) = peers[side].session_mut()
                && rng.below(100) == 0
            {
                session.set_input(Buttons::from_bits(rng.below(64) as u8))?;
            }
            peers[side].handle_timeout(now);
            while let Some(transmit) = peers[side].poll_transmit(now, &mut buffer) {
                let datagram = Datagram {
                    from: address(side as u16),
                    ecn: Ecn::NotCapable,
                    payload: &mut buffer[..transmit.len],
                };
                peers[1 - side].handle_datagram(now, datagram);
            }
        }
    }
    Ok(peers)
}

pub(super) const ROUNDS: u32 = 200;
