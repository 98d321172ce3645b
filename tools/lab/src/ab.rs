//! The prototype's beta test as experiments: two ways to play, many matches of each with the same players, and whether the difference is more
//! than chance (the evaluation of `docs/laboratory.md`).
//!
//! The players are [`Marksman`]s, who aim and react as people do within stated limits. The prototype's question whether to show telemetry has
//! no meaning for them; how the server repeats inputs takes its place, since the prototype found that to be its weakest part.

mod marksman;
mod statistics;

pub use marksman::Marksman;
pub use statistics::{Estimate, estimate};

use muse_netcode::SessionConfig;
use muse_netcode::inputs::InputBufferConfig;
use muse_netem::{Conditions, Jitter};
use muse_wire::Duration;
use serde::{Deserialize, Serialize};

use crate::arena::{Arena, Journal, Switches};
use crate::character::Body;
use crate::plot::*;
use crate::report::{cell, escaped, page, table, word, write_to};
use crate::stage::{TICK, conditions};

/// One way to play.
#[derive(Clone, Debug)]
pub struct Arm {
    /// Of the question.
    pub experiment: &'static str,
    /// Its name.
    pub name: String,
    network: Conditions,
    terrible: bool,
    switches: Switches,
    repeat_max: Option<u32>,
}

/// The results of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmResult {
    /// Of the question.
    pub experiment: String,
    /// Its name.
    pub name: String,
    /// Matches played.
    pub matches: usize,
    /// Share of shots that hit.
    pub accuracy_percent: Estimate,
    /// Share of shots judged as their shooter saw them.
    pub hits_agreed_percent: Estimate,
    /// Share of the server's answers that corrected a client.
    pub mispredicted_percent: Estimate,
    /// Jumps of each shown player in a minute.
    pub jumps_per_minute: Estimate,
    /// Jumps of the own player in a minute.
    pub own_jumps_per_minute: Estimate,
}

/// The figures of one match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Played([f64; 5]);

impl Arm {
    /// All arms of the three questions.
    ///
    /// ```
    /// let arms = muse_lab::ab::Arm::all();
    /// assert_eq!(arms.len(), 8 + 2 + 4);
    /// assert_eq!(arms[0].name, "35 ms, lag compensation on");
    /// ```
    pub fn all() -> Vec<Self> {
        let arm = |experiment, name: String, network| Self {
            experiment,
            name,
            network,
            terrible: false,
            switches: Switches::ALL,
            repeat_max: None,
        };
        let mut arms = Vec::new();
        for round_trip in ROUND_TRIPS {
            for (lag_compensation, word) in [(true, "on"), (false, "off")] {
                let name = format!("{round_trip} ms, lag compensation {word}");
                let mut arm = arm(LAG_COMPENSATION, name, mild(round_trip));
                arm.switches.lag_compensation = lag_compensation;
                arms.push(arm);
            }
        }
        for (terrible, name) in [
            (false, "all five have a good network"),
            (true, "one of five has a terrible network"),
        ] {
            arms.push(Self {
                terrible,
                ..arm(TERRIBLE, name.to_owned(), mild(60))
            });
        }
        for (repeat_max, name) in [
            (Some(0), "never repeated"),
            (Some(1), "repeated once"),
            (Some(2), "repeated twice"),
            (None, "repeated up to 12 times (default)"),
        ] {
            arms.push(Self {
                repeat_max,
                ..arm(REPEATS, format!("missing inputs {name}"), uneven(80))
            });
        }
        arms
    }

    /// Plays one match. Matches of the same number have the same players in every arm.
    pub fn play(&self, number: u64, seconds: u32) -> Played {
        let mut config = SessionConfig::new(TICK);
        if let Some(repeat_max) = self.repeat_max {
            config = config.inputs(InputBufferConfig::new(TICK).repeat_max(repeat_max));
        }
        let seed = number.wrapping_mul(0x9E37_79B9) + 5;
        let mut arena = Arena::with_config(seed, self.switches, config);
        for (seat, home) in HOMES.iter().enumerate() {
            let is_terrible = self.terrible && seat == HOMES.len() - 1;
            let network = match is_terrible {
                true => terrible(),
                false => self.network.clone(),
            };
            let player = Marksman::new(*home, seed * 100 + seat as u64);
            arena.join(Body::at(home[0], home[1]), network, player);
        }
        arena.run(Duration::from_secs(4));
        arena.begin();
        arena.run(Duration::from_secs(u64::from(seconds)));
        // The others are asked, whether one is terrible or not.
        let others: Vec<usize> = (0..HOMES.len() - 1).collect();
        Played::new(&arena.finish_of(&others))
    }

    /// Returns the results of its matches.
    pub fn sum(&self, played: &[Played]) -> ArmResult {
        let figure = |at: usize| estimate(played.iter().map(|played| played.0[at]));
        ArmResult {
            experiment: self.experiment.to_owned(),
            name: self.name.clone(),
            matches: played.len(),
            accuracy_percent: figure(0),
            hits_agreed_percent: figure(1),
            mispredicted_percent: figure(2),
            jumps_per_minute: figure(3),
            own_jumps_per_minute: figure(4),
        }
    }
}

impl Played {
    fn new(journal: &Journal) -> Self {
        let percent = |part: u64, whole: u64| part as f64 * 100.0 / whole.max(1) as f64;
        let minutes = |drawn: u64| drawn.max(1) as f64 / 3_600.0;
        Self([
            percent(journal.hits, journal.shots),
            percent(journal.shots_agreed, journal.shots),
            percent(journal.corrected, journal.confirmed + journal.corrected),
            journal.others.jumps as f64 / minutes(journal.others.drawn),
            journal.own.jumps as f64 / minutes(journal.own.drawn),
        ])
    }
}

/// Returns what the experiments show, a sentence each.
pub fn answers(results: &[ArmResult]) -> Vec<String> {
    let of = |experiment: &str| -> Vec<&ArmResult> {
        let arms = results.iter();
        arms.filter(|arm| arm.experiment == experiment).collect()
    };
    let lag: Vec<String> = of(LAG_COMPENSATION)
        .chunks_exact(2)
        .zip(ROUND_TRIPS)
        .map(|(pair, round_trip)| {
            let (on, off) = (pair[0].accuracy_percent, pair[1].accuracy_percent);
            let word = match on.low > off.high {
                true => "more than chance",
                false => "within chance",
            };
            format!(
                "{round_trip} ms {:.1} instead of {:.1} % ({word})",
                on.mean, off.mean
            )
        })
        .collect();
    let mut answers = vec![format!(
        "Shots that hit with lag compensation on instead of off: {}.",
        lag.join(", ")
    )];
    if let [good, bad] = of(TERRIBLE)[..] {
        answers.push(format!(
            "With one terrible client the four others hit {:.1} instead of {:.1} %, are corrected in {:.3} instead of {:.3} % of answers, and see {:.2} instead of {:.2} jumps a minute of each player.",
            bad.accuracy_percent.mean,
            good.accuracy_percent.mean,
            bad.mispredicted_percent.mean,
            good.mispredicted_percent.mean,
            bad.jumps_per_minute.mean,
            good.jumps_per_minute.mean,
        ));
    }
    let repeats: Vec<String> = of(REPEATS)
        .iter()
        .map(|arm| {
            format!(
                "{} {:.2} % mispredicted, {:.2} jumps of the own player a minute",
                arm.name.trim_start_matches("missing inputs "),
                arm.mispredicted_percent.mean,
                arm.own_jumps_per_minute.mean
            )
        })
        .collect();
    answers.push(format!(
        "Missing inputs on an uneven network (80 ms, jitter 8 %, loss 8 %): {}.",
        repeats.join("; ")
    ));
    answers
}

/// The experiments as a page.
pub fn html(results: &[ArmResult], seconds: u32) -> String {
    let matches = results.first().map_or(0, |arm| arm.matches);
    let mut body = format!(
        "<h1>The beta test's questions</h1>\n<p class=\"lead\">{matches} matches of {seconds} s for each way to play, five marksmen each, the same in every way. Intervals hold the mean with 95 % confidence. \
         The marksmen react after 180 to 240 ms, turn their hands by at most 12 radians a second, tremble by half a degree, and know nothing of networks.</p>\n<h2>Answers</h2>\n<ol class=\"findings\">\n",
    );
    for answer in answers(results) {
        write_to(&mut body, format_args!("<li>{}</li>\n", escaped(&answer)));
    }
    body.push_str("</ol>\n<h2>Plot</h2>\n<div class=\"plots\"><figure>");
    body.push_str(&plot(results).svg());
    body.push_str("</figure></div>\n<h2>Every way to play</h2>\n");
    let heads = [
        "question",
        "way to play",
        "shots that hit, %",
        "hits agreed, %",
        "mispredicted, %",
        "jumps of others, /min",
        "own jumps, /min",
    ];
    let rows = results.iter().map(|arm| {
        let names = [&arm.experiment, &arm.name].map(|name| word(escaped(name)));
        names.into_iter().chain(arm.figures().map(cell)).collect()
    });
    body.push_str(&table("", &heads, rows));
    page("Muse laboratory: the beta test's questions", &body)
}

impl ArmResult {
    /// All figures, in the order of tables.
    pub fn figures(&self) -> [Estimate; 5] {
        [
            self.accuracy_percent,
            self.hits_agreed_percent,
            self.mispredicted_percent,
            self.jumps_per_minute,
            self.own_jumps_per_minute,
        ]
    }
}

fn plot(results: &[ArmResult]) -> Plot {
    let arms = |word: &str| {
        let arms = results
            .iter()
            .filter(|arm| arm.experiment == LAG_COMPENSATION);
        let wanted = arms.filter(|arm| arm.name.ends_with(word));
        let points = ROUND_TRIPS.into_iter().zip(wanted);
        points
            .map(|(round_trip, arm)| (f64::from(round_trip as u32), arm.accuracy_percent))
            .collect::<Vec<(f64, Estimate)>>()
    };
    let (on, off) = (arms("on"), arms("off"));
    let most = on.iter().chain(&off).map(|(_, figure)| figure.high);
    let most = most.fold(1.0, f64::max);
    let shade = |points: &[(f64, Estimate)]| {
        let corners =
            |(x, figure): &(f64, Estimate)| [(x - 1.2, figure.low), (x + 1.2, figure.high)];
        points.iter().flat_map(corners).collect::<Vec<_>>()
    };
    let means = |points: &[(f64, Estimate)]| {
        let means = points.iter().map(|(x, figure)| (*x, figure.mean));
        means.collect::<Vec<_>>()
    };
    let hits = ("shots that hit (%)", 0.0, most * 1.15);
    let panel = Panel::new(("round trip (ms)", 25.0, 110.0), hits)
        .with("95 % confidence", Blue, Shade, shade(&on))
        .with("95 % confidence", Red, Shade, shade(&off))
        .with("lag compensation on", Blue, Joined, means(&on))
        .with("lag compensation off", Red, Joined, means(&off));
    Plot::new(
        "Lag compensation and accuracy",
        "Shots of marksmen who aim at what they see. With lag compensation the round trip does not matter to them; without it they hit less at every round trip, and ever less as it grows.",
    )
    .panel(panel)
}

/// A good connection at home.
fn mild(round_trip_ms: u64) -> Conditions {
    varied(round_trip_ms, 10).loss(0.002)
}

fn uneven(round_trip_ms: u64) -> Conditions {
    varied(round_trip_ms, 57).loss(0.08)
}

/// Delays deviate by so many thousandths of the round trip.
fn varied(round_trip_ms: u64, thousandths: u64) -> Conditions {
    let deviation = Duration::from_micros(round_trip_ms * thousandths);
    conditions(round_trip_ms).jitter(Jitter::Normal {
        mean: deviation * 3,
        deviation,
    })
}

/// 250 ms and more, a deviation of 50 ms on each way, 15 % lost in bursts.
fn terrible() -> Conditions {
    conditions(250)
        .jitter(Jitter::Normal {
            mean: Duration::from_millis(100),
            deviation: Duration::from_millis(50),
        })
        .burst_loss(0.15, 4.0)
}

const ROUND_TRIPS: [u64; 4] = [35, 45, 60, 100];
const LAG_COMPENSATION: &str = "lag compensation on or off";
const TERRIBLE: &str = "one terrible client or none";
const REPEATS: &str = "how often the server repeats a missing input";
/// The places that players stay near; the last player may have a terrible network.
const HOMES: [[f32; 2]; 5] = [
    [0.0, 0.0],
    [11.0, 3.0],
    [5.0, 12.0],
    [-9.0, 6.0],
    [2.0, -11.0],
];
