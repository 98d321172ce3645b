//! The faults of a run, all of them chosen from its seed before it begins.

use serde::{Deserialize, Serialize};

/// Something that is broken for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub(crate) enum Fault {
    /// A master's process is stopped.
    PauseMaster { master: usize },
    /// A master is killed, and started again at the end.
    KillMaster { master: usize },
    /// A master's clock is set.
    StepClock { master: usize, by_s: i64 },
    /// Everything between a master and the rest is cut.
    IsolateMaster { master: usize },
    /// One of the game servers is stopped.
    PauseGame { pick: u32 },
    /// One of the game servers is killed.
    KillGame { pick: u32 },
    /// Nothing passes a link, in one direction or in both.
    Cut { link: Link, way: Way },
    /// All processes of the primary are stopped.
    PausePrimary,
    /// The primary is killed, and started again at the end.
    KillPrimary,
    /// The primary is killed for good, and the standby takes over.
    FailOver,
    /// The primary's disk is full.
    FillDisk,
    /// NATS is stopped.
    PauseBus,
    /// NATS is killed, and started again at the end.
    KillBus,
}

/// A way between two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "between", rename_all = "snake_case")]
pub(crate) enum Link {
    /// A master and the primary.
    Database { master: usize },
    /// A master and NATS.
    Bus { master: usize },
    /// The game servers that one master started, and a master.
    Games { of: usize, at: usize },
    /// The players and a master.
    Players { at: usize },
    /// The standby and the primary.
    Replication,
}

/// The direction in which nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Way {
    /// From the side that opens connections.
    Out,
    /// Towards it.
    Back,
    Both,
}

/// A fault, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) at_ms: u64,
    pub(crate) for_ms: u64,
    pub(crate) fault: Fault,
}

/// Faults for so many seconds, at most two at once, in the order in which they begin.
pub(crate) fn plan(seed: u64, seconds: u64, disk: bool) -> Vec<Planned> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let end_ms = seconds * 1_000;
    let mut planned: Vec<Planned> = Vec::new();
    let mut at_ms = rng.u64(500..2_000);
    // The end of each of the two faults that may overlap.
    let mut busy = [0; 2];
    while at_ms < end_ms {
        // A run without a change of primary would miss the point.
        let changed = planned.iter().any(|one| one.fault == Fault::FailOver);
        let (fault, longest_ms) = match changed || at_ms < end_ms / 3 {
            true => draw(&mut rng, disk),
            false => (Fault::FailOver, 1_000),
        };
        let for_ms = rng.u64(800..=longest_ms.max(801)).min(end_ms - at_ms);
        if busy.iter().any(|until| *until <= at_ms) && fits(fault, at_ms, &planned) {
            planned.push(Planned {
                at_ms,
                for_ms,
                fault,
            });
            let slot = usize::from(busy[0] > busy[1]);
            busy[slot] = at_ms + for_ms;
        }
        at_ms += rng.u64(500..4_000);
    }
    planned
}

/// A fault, and the longest time for it in milliseconds.
fn draw(rng: &mut fastrand::Rng, disk: bool) -> (Fault, u64) {
    let master = rng.usize(..MASTERS);
    let pick = rng.u32(..);
    match rng.u8(..24) {
        0..3 => (Fault::PauseMaster { master }, 14_000),
        3..5 => (Fault::KillMaster { master }, 9_000),
        5..8 => {
            // Mostly what NTP may do, sometimes what an operator may.
            let by_s = match rng.u8(..4) {
                0 => rng.i64(-60..=60),
                _ => rng.i64(-2..=2),
            };
            (Fault::StepClock { master, by_s }, 15_000)
        }
        8 | 9 => (Fault::IsolateMaster { master }, 14_000),
        10 => (Fault::PauseGame { pick }, 13_000),
        11 => (Fault::KillGame { pick }, 1_000),
        12..18 => {
            let link = match rng.u8(..7) {
                0 | 1 => Link::Database { master },
                2 | 3 => Link::Bus { master },
                4 => Link::Games {
                    of: rng.usize(..MASTERS),
                    at: master,
                },
                5 => Link::Players { at: master },
                _ => Link::Replication,
            };
            let way = [Way::Out, Way::Back, Way::Both][rng.usize(..3)];
            (Fault::Cut { link, way }, 14_000)
        }
        18 => (Fault::PausePrimary, 8_000),
        19 => (Fault::KillPrimary, 5_000),
        20 => (Fault::FailOver, 1_000),
        21 if disk => (Fault::FillDisk, 6_000),
        21 | 22 => (Fault::KillBus, 12_000),
        _ => (Fault::PauseBus, 12_000),
    }
}

/// False if the fault would be the same twice, or touch a primary that is being replaced.
fn fits(fault: Fault, at_ms: u64, planned: &[Planned]) -> bool {
    let overlaps = |one: &Planned| one.at_ms + one.for_ms + REBUILD_MS > at_ms;
    let mut recent = planned.iter().filter(|one| overlaps(one));
    let clash = |one: &Planned| {
        let running = one.at_ms + one.for_ms > at_ms;
        let both_primary = touches_primary(fault) && touches_primary(one.fault);
        let same_master = master_of(fault).is_some() && master_of(fault) == master_of(one.fault);
        let same_bus = touches_bus(fault) && touches_bus(one.fault);
        both_primary || running && (same_master || same_bus || fault == one.fault)
    };
    !recent.any(clash)
}

fn touches_primary(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::PausePrimary
            | Fault::KillPrimary
            | Fault::FailOver
            | Fault::FillDisk
            | Fault::Cut {
                link: Link::Replication,
                ..
            }
    )
}

fn touches_bus(fault: Fault) -> bool {
    matches!(fault, Fault::PauseBus | Fault::KillBus)
}

/// The master that a fault stops or cuts off.
pub(crate) fn master_of(fault: Fault) -> Option<usize> {
    match fault {
        Fault::PauseMaster { master }
        | Fault::KillMaster { master }
        | Fault::StepClock { master, .. }
        | Fault::IsolateMaster { master } => Some(master),
        _ => None,
    }
}

/// Masters of a run.
pub(crate) const MASTERS: usize = 3;
/// Time after a fault of the primary before the next one: a new standby is made meanwhile.
const REBUILD_MS: u64 = 8_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_plan_and_another_one_another() {
        assert_eq!(plan(7, 360, true), plan(7, 360, true));
        assert_ne!(plan(7, 360, true), plan(8, 360, true));
    }

    #[test]
    fn every_kind_of_fault_comes_up_and_never_more_than_two_at_once() {
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let planned = plan(seed, 360, true);
            assert!(planned.iter().any(|one| one.fault == Fault::FailOver));
            for one in &planned {
                let text = serde_json::to_value(one.fault).expect("JSON");
                kinds.insert(text["fault"].as_str().expect("text").to_owned());
                let running = |other: &&Planned| {
                    other.at_ms <= one.at_ms && other.at_ms + other.for_ms > one.at_ms
                };
                assert!(planned.iter().filter(running).count() <= 2);
            }
        }
        assert_eq!(kinds.len(), 13, "{kinds:?}");
        assert!(
            plan(3, 40, true)
                .iter()
                .any(|one| one.fault == Fault::FailOver)
        );
    }
}
