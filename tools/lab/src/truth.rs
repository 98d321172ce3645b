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
    /// The age of what was shown over this network before it was true, in milliseconds: truth must not be bought with delay.
    pub age_ms_before: f64,
}

/// The errors of one motion over one network.
#[derive(Debug)]
pub struct Cell {
    /// The network.
    pub place: &'static str,
    /// The age that its place had, see [`Place::age_ms_before`].
    pub age_ms_before: f64,
    /// The motion.
    pub motion: Motion,
    /// All that was seen.
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
    let place = |name, conditions, age_ms_before| Place {
        name,
        scene: Scene {
            conditions,
            bodies: 4,
            bytes_per_snapshot: 16_384,
            snapshot_ticks: 1,
        },
        age_ms_before,
    };
    // More bodies than fit into a snapshot.
    let short = |name, conditions, age_ms_before, (bodies, bytes, ticks)| {
        let mut place = place(name, conditions, age_ms_before);
        place.scene.bodies = bodies;
        place.scene.bytes_per_snapshot = bytes;
        place.scene.snapshot_ticks = ticks;
        place
    };
    let (crowd, kbit_24) = ((200, 500, 1), (16, 120, 2));
    vec![
        place("lan", Conditions::default(), 23.2),
        place("100_ms", network(50, 10, 0.0), 82.3),
        place("100_ms_2_percent", network(50, 10, 0.02), 96.8),
        place("100_ms_5_percent", network(50, 10, 0.05), 96.8),
        place("100_ms_20_percent", network(50, 10, 0.2), 96.8),
        place("300_ms_5_percent", network(150, 15, 0.05), 201.7),
        place("300_ms_20_percent", network(150, 15, 0.2), 201.7),
        place("300_ms_reordering", network(150, 40, 0.0), 211.5),
        place("bursts", network(50, 10, 0.0).burst_loss(0.05, 4.0), 96.6),
        place("reordering", network(50, 30, 0.0), 101.8),
        short("crowd", network(50, 10, 0.0), 82.3, crowd),
        short("crowd_5_percent", network(50, 10, 0.05), 96.8, crowd),
        short("24_kbit", network(50, 10, 0.0), 111.1, kbit_24),
        short("24_kbit_5_percent", network(50, 10, 0.05), 133.9, kbit_24),
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
            age_ms_before: place.age_ms_before,
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
            "{:18} {:12} p50 {:5.1} p99 {:6.1} worst {:6.1} cm (height p99 {:6.1}, worst {:6.1}), at rest {:5.2} cm; enclosed p99.9 {:5.1} cm; else p99 {:6.1} cm, oracle {:6.1}; below the floor {:.3} %, overdue {:.2} %, {:.0} ms old, {:.1} kbit/s",
            self.place,
            self.motion.name(),
            errors.all.at(0.5) * 100.0,
            errors.all.at(0.99) * 100.0,
            errors.all.at(1.0) * 100.0,
            errors.height.at(0.99) * 100.0,
            errors.height.at(1.0) * 100.0,
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
        let age_ms = errors.age_seconds / errors.all.len().max(1) as f64 * 1e3;
        let enclosed = f64::from(errors.enclosed.at(0.999)) * 100.0;
        let mut bars = vec![
            Bar::at_most(name("at_rest_cm"), at_rest, 1.0),
            Bar::at_most(name("enclosed_cm_p999"), enclosed, 5.0),
            Bar::at_most(name("frames_below_floor"), errors.below_floor as f64, 0.0),
            Bar::at_most(name("age_ms"), age_ms, self.age_ms_before + AGE_MORE_MS),
        ];
        // Fewer frames say nothing about a hundredth of them.
        if errors.open.len() >= OPEN_MIN {
            let open = f64::from(errors.open.at(0.99));
            let oracle = f64::from(errors.oracle.at(0.99)).max(GRID);
            bars.push(Bar::at_most(name("else_to_oracle"), open / oracle, 1.2));
        }
        bars
    }
}

/// Milliseconds more than before.
const AGE_MORE_MS: f64 = 10.0;
/// Frames from which on the 99th percentile is judged.
const OPEN_MIN: usize = 500;
/// Metres that positions on their grid are off the truth, on three axes: nobody is nearer than that, the oracle included.
const GRID: f64 = 0.002;
