//! The figures of a case, and how they stand in tables.

use serde::{Deserialize, Serialize};

use Better::{Less, More, Neither};

use crate::arena::{Journal, Movement, Switches, VIEWS, ViewTally};

/// The measurements of a case. Numbers are rounded to four decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The mean distance of others on the screen from where the server has them at that instant, in metres.
    pub distance_m: f64,
    /// 95 of 100 are nearer.
    pub distance_p95_m: f64,
    /// None is further.
    pub distance_max_m: f64,
    /// The delay of others behind their newest state.
    pub shown_late_ms: f64,
    /// Jumps of each shown player in a minute.
    pub jumps_per_minute: f64,
    /// Root of the mean square of the third derivative of shown places, in thousands of m/s3.
    pub jerk_k: f64,
    /// Share of frames in which a next state was missing; absent where nothing is interpolated.
    pub underruns_percent: Option<f64>,
    /// Share of the server's states that had not been foreseen; absent where nothing is predicted.
    pub mispredicted_percent: Option<f64>,
    /// Ticks simulated again for each: the mean.
    pub depth_ticks: Option<f64>,
    /// Ticks simulated again for each: the most.
    pub depth_max_ticks: Option<u64>,
    /// The mean distance of the own player's prediction from where the server then had it, in metres.
    pub own_error_m: Option<f64>,
    /// Jumps of the own player in a minute.
    pub own_jumps_per_minute: f64,
    /// From a key to the own screen: the median.
    pub key_to_own_ms: f64,
    /// From a key to another's screen (peeker's latency): the median.
    pub key_to_other_ms: f64,
    /// The same: 95 of 100 are faster.
    pub key_to_other_p95_ms: f64,
    /// Inputs that were on the server in time.
    pub inputs_in_time_percent: f64,
    /// The time that they waited there.
    pub input_wait_ms: f64,
    /// Shots fired.
    pub shots: u64,
    /// Shots judged as the shooter saw them.
    pub hits_agreed_percent: f64,
    /// Shots too old for lag compensation.
    pub shots_late_percent: f64,
    /// To each client, with the headers of transport, UDP and IP.
    pub down_kbit_s: f64,
    /// From each client, with the headers of transport, UDP and IP.
    pub up_kbit_s: f64,
}

impl Figures {
    /// Returns the figure with this name in JSON; absent where it was not measured.
    pub fn value(&self, key: &str) -> Option<f64> {
        let fields = serde_json::to_value(self).expect("numbers can be written");
        let figure = fields.get(key).expect("there is a figure of this name");
        figure.as_f64()
    }

    /// From what was noted.
    pub(super) fn new(journal: &Journal, switches: Switches) -> Self {
        let predicts = |figure| switches.prediction.then_some(figure);
        let answers = journal.confirmed + journal.corrected;
        let inputs = journal.inputs_received + journal.inputs_missed;
        let depth = journal.steps_again as f64 / journal.corrected.max(1) as f64;
        let kbit = |bytes: u64| {
            rounded(bytes as f64 * 8e-3 / journal.seconds / journal.clients.max(1) as f64)
        };
        Self {
            distance_m: rounded(journal.distance.mean()),
            distance_p95_m: rounded(journal.distance_p95),
            distance_max_m: rounded(journal.distance.most()),
            shown_late_ms: rounded(journal.shown_late.mean()),
            jumps_per_minute: jumps_per_minute(&journal.others),
            jerk_k: jerk_k(&journal.others),
            underruns_percent: switches
                .interpolation
                .then(|| percent(journal.others.underruns, journal.others.drawn)),
            mispredicted_percent: predicts(percent(journal.corrected, answers)),
            depth_ticks: predicts(rounded(depth)),
            depth_max_ticks: switches.prediction.then_some(journal.depth_most),
            own_error_m: predicts(rounded(journal.own_error.mean())),
            own_jumps_per_minute: jumps_per_minute(&journal.own),
            key_to_own_ms: quantile_ms(&journal.key_to_own, 50),
            key_to_other_ms: quantile_ms(&journal.key_to_other, 50),
            key_to_other_p95_ms: quantile_ms(&journal.key_to_other, 95),
            inputs_in_time_percent: percent(journal.inputs_received, inputs),
            input_wait_ms: rounded(
                journal.inputs_waited as f64 / 1e3 / journal.inputs_received.max(1) as f64,
            ),
            shots: journal.shots,
            hits_agreed_percent: percent(journal.shots_agreed, journal.shots),
            shots_late_percent: percent(journal.shots_late, journal.shots),
            down_kbit_s: kbit(journal.bytes_down),
            up_kbit_s: kbit(journal.bytes_up),
        }
    }
}

/// One way to show others, on the packets of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ViewFigures {
    /// Its name; see [`VIEWS`].
    pub name: String,
    /// From where the server has them at that instant: the mean, in metres.
    pub distance_m: f64,
    /// The same while they run along curves.
    pub on_curves_m: f64,
    /// Jumps of each in a minute.
    pub jumps_per_minute: f64,
    /// As in [`Figures::jerk_k`].
    pub jerk_k: f64,
    /// The delay behind the newest state that has arrived; 0 for those that do not wait.
    pub late_ms: f64,
}

impl ViewFigures {
    pub(super) fn all(tallies: &[ViewTally; VIEWS.len()]) -> Vec<Self> {
        let views = VIEWS.iter().zip(tallies);
        views
            .map(|(name, tally)| Self {
                name: (*name).to_owned(),
                distance_m: rounded(tally.distance.mean()),
                on_curves_m: rounded(tally.on_curves.mean()),
                jumps_per_minute: jumps_per_minute(&tally.movement),
                jerk_k: jerk_k(&tally.movement),
                late_ms: rounded(tally.late.mean()),
            })
            .collect()
    }
}

/// Which way a figure should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Down.
    Less,
    /// Up.
    More,
    /// It is only told.
    Neither,
}

/// A figure as a column of tables.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name in JSON.
    pub key: &'static str,
    /// Its name for readers.
    pub name: &'static str,
    /// In what it is measured.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
}

impl Column {
    /// Reads it.
    pub fn value(&self, figures: &Figures) -> Option<f64> {
        figures.value(self.key)
    }
}

/// All figures as columns.
pub const TABLE: [Column; 22] = [
    column("distance_m", "distance", "m", Less),
    column("distance_p95_m", "distance p95", "m", Less),
    column("distance_max_m", "distance max", "m", Less),
    column("shown_late_ms", "shown late", "ms", Less),
    column("jumps_per_minute", "jumps", "/min", Less),
    column("jerk_k", "jerk", "km/s3", Less),
    column("underruns_percent", "underruns", "%", Less),
    column("mispredicted_percent", "mispredicted", "%", Less),
    column("depth_ticks", "depth", "ticks", Less),
    column("depth_max_ticks", "depth max", "ticks", Less),
    column("own_error_m", "own error", "m", Less),
    column("own_jumps_per_minute", "own jumps", "/min", Less),
    column("key_to_own_ms", "key to own screen", "ms", Less),
    column("key_to_other_ms", "key to other's screen", "ms", Less),
    column("key_to_other_p95_ms", "the same, p95", "ms", Less),
    column("inputs_in_time_percent", "inputs in time", "%", More),
    column("input_wait_ms", "inputs wait", "ms", Less),
    column("shots", "shots", "", Neither),
    column("hits_agreed_percent", "hits agreed", "%", More),
    column("shots_late_percent", "shots too old", "%", Neither),
    column("down_kbit_s", "down", "kbit/s", Less),
    column("up_kbit_s", "up", "kbit/s", Less),
];

const fn column(
    key: &'static str,
    name: &'static str,
    unit: &'static str,
    better: Better,
) -> Column {
    Column {
        key,
        name,
        unit,
        better,
    }
}

/// To four decimals.
pub(super) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

fn percent(part: u64, whole: u64) -> f64 {
    rounded(part as f64 * 100.0 / whole.max(1) as f64)
}

fn jumps_per_minute(movement: &Movement) -> f64 {
    let minutes = movement.drawn.max(1) as f64 / FRAMES_PER_MINUTE;
    rounded(movement.jumps as f64 / minutes)
}

fn jerk_k(movement: &Movement) -> f64 {
    rounded(movement.jerk_squared.mean().sqrt() / 1e3)
}

fn quantile_ms(micros: &[u32], percent: usize) -> f64 {
    let at = (micros.len() * percent / 100).min(micros.len().saturating_sub(1));
    rounded(
        micros
            .get(at)
            .map_or(0.0, |micros| f64::from(*micros) / 1e3),
    )
}

/// At 60 frames a second.
const FRAMES_PER_MINUTE: f64 = 3_600.0;
