//! The truth of what is shown: bodies that move in known ways, over networks of every kind, and the distance of what
//! [`Remotes`](muse_netcode::Remotes) shows from where they were at the time it claims to show.

mod motion;
mod theatre;

pub use motion::{Motion, Truth};
pub use theatre::{Errors, Quantiles, Scene, play};

use muse_netem::{Conditions, Jitter};
use muse_program::bars::Bar;
use muse_program::parallel::in_parallel;
use muse_wire::Duration;

/// A network, with what is to be seen over it.
#[derive(Clone, Debug)]
pub struct Place {
    /// In a few words, without blanks.
    pub name: &'static str,
    /// The bodies and the network.
    pub scene: Scene,
}

/// The errors of one motion over one network.
#[derive(Debug)]
pub struct Cell {
    /// The network.
    pub place: &'static str,
    /// The motion.
    pub motion: Motion,
    /// What was seen.
    pub errors: Errors,
}

/// Returns the networks: from none to 300 ms there and back, up to a fifth of all packets lost, bursts, packets that overtake each other, and links too narrow
/// for everybody.
pub fn places() -> Vec<Place> {
    let network = |way_ms, jitter_ms, loss| {
        Conditions::default()
            .delay(Duration::from_millis(way_ms))
            .jitter(Jitter::Around(Duration::from_millis(jitter_ms)))
            .loss(loss)
    };
    let place = |name, conditions| Place {
        name,
        scene: Scene {
            conditions,
            bodies: 4,
            bytes_per_snapshot: 16_384,
            snapshot_ticks: 1,
        },
    };
    let crowd = |name, conditions, bytes_per_snapshot| Place {
        name,
        scene: Scene {
            conditions,
            bodies: 200,
            bytes_per_snapshot,
            snapshot_ticks: 1,
        },
    };
    vec![
        place("lan", Conditions::default()),
        place("100_ms", network(50, 10, 0.0)),
        place("100_ms_2_percent", network(50, 10, 0.02)),
        place("100_ms_5_percent", network(50, 10, 0.05)),
        place("100_ms_20_percent", network(50, 10, 0.2)),
        place("300_ms_5_percent", network(150, 15, 0.05)),
        place("bursts", network(50, 10, 0.0).burst_loss(0.05, 4.0)),
        place("reordering", network(50, 30, 0.0)),
        crowd("crowd", network(50, 10, 0.0), 500),
        crowd("crowd_5_percent", network(50, 10, 0.05), 500),
        // 25 snapshots a second of 120 bytes, for more bodies than fit into one while all of them move.
        Place {
            name: "24_kbit",
            scene: Scene {
                conditions: network(50, 10, 0.0),
                bodies: 16,
                bytes_per_snapshot: 120,
                snapshot_ticks: 2,
            },
        },
    ]
}

/// Runs every motion over every network, each with so many seeds of so many seconds.
pub fn run(seeds: u64, seconds: u32, threads: usize) -> Vec<Cell> {
    let places = places();
    let motions = Motion::ALL.len();
    in_parallel(places.len() * motions, threads, |number| {
        let (place, motion) = (&places[number / motions], Motion::ALL[number % motions]);
        let mut errors = Errors::default();
        for seed in 0..seeds {
            errors.add(play(seed, motion, &place.scene, seconds));
        }
        Cell {
            place: place.name,
            motion,
            errors,
        }
    })
}

impl Cell {
    /// The cell as a line of a table.
    pub fn line(&mut self) -> String {
        let errors = &mut self.errors;
        let shown = errors.all.len().max(1) as f64;
        format!(
            "{:18} {:12} p50 {:5.1} p99 {:6.1} worst {:6.1} cm (height {:6.1}), at rest {:5.2} cm; enclosed p99.9 {:5.1} cm; else p99 {:6.1} cm, oracle {:6.1}; below the floor {:.3} %, overdue {:.2} %, {:.0} ms old, {:.1} kbit/s",
            self.place,
            self.motion.name(),
            errors.all.at(0.5) * 100.0,
            errors.all.at(0.99) * 100.0,
            errors.all.at(1.0) * 100.0,
            errors.worst_height * 100.0,
            errors.worst_at_rest * 100.0,
            errors.enclosed.at(0.999) * 100.0,
            errors.open.at(0.99) * 100.0,
            errors.oracle.at(0.99) * 100.0,
            errors.below_floor as f64 / shown * 100.0,
            errors.underruns as f64 / shown * 100.0,
            errors.age_seconds / shown * 1e3,
            errors.bytes as f64 * 8.0 / 1e3 / errors.seconds,
        )
    }

    /// Judges the cell.
    pub fn bars(&mut self) -> Vec<Bar> {
        let (place, motion) = (self.place, self.motion.name());
        let name = |what: &str| format!("shown_{place}_{motion}_{what}");
        let errors = &mut self.errors;
        let at_rest = f64::from(errors.worst_at_rest) * 100.0;
        let enclosed = f64::from(errors.enclosed.at(0.999)) * 100.0;
        let mut bars = vec![
            Bar::at_most(name("at_rest_cm"), at_rest, 1.0),
            Bar::at_most(name("enclosed_cm_p999"), enclosed, 5.0),
            Bar::at_most(name("frames_below_floor"), errors.below_floor as f64, 0.0),
        ];
        // Fewer frames say nothing about a hundredth of them.
        if errors.open.len() >= OPEN_MIN {
            let open = f64::from(errors.open.at(0.99));
            let oracle = f64::from(errors.oracle.at(0.99)).max(MILLIMETRES);
            bars.push(Bar::at_most(name("else_to_oracle"), open / oracle, 1.2));
        }
        bars
    }
}

/// Frames from which on the 99th percentile is judged.
const OPEN_MIN: usize = 500;
/// The grid of positions: nobody is nearer to the truth than that, the oracle included.
const MILLIMETRES: f64 = 0.01;
