//! The plots of a run.

use crate::arena::Switches;
use crate::grid::{Case, CaseResult, Cell, Run, ViewFigures, view};
use crate::plot::*;

/// All plots for which the run has cases.
pub(super) fn all(run: &Run) -> Vec<Plot> {
    let run = Cases::new(run);
    vec![
        run.over_time(),
        run.moving_averages(),
        run.distances(),
        run.jumps(),
        run.delays(),
        run.curves(),
        run.jerk(),
        run.underruns(),
        run.corrections(),
        run.key_to_own(),
        run.key_to_other(),
        run.hits(),
        run.bytes(),
    ]
}

/// A run, and the values of each dimension that it has.
struct Cases<'a> {
    run: &'a Run,
    round_trip: Dimension,
    jitter: Dimension,
    loss: Dimension,
}

/// A property of networks, by which cases are told apart.
struct Dimension {
    label: &'static str,
    of: fn(&Cell) -> u32,
    values: Vec<u32>,
}

impl Dimension {
    fn new(run: &Run, label: &'static str, of: fn(&Cell) -> u32) -> Self {
        let mut values: Vec<u32> = run.cases.iter().map(|c| of(&c.case.cell)).collect();
        values.sort_unstable();
        values.dedup();
        Self { label, of, values }
    }

    fn last(&self) -> u32 {
        self.values.last().copied().unwrap_or_default()
    }

    fn nearest(&self, wanted: u32) -> u32 {
        let values = self.values.iter().copied();
        let nearest = values.min_by_key(|value| value.abs_diff(wanted));
        nearest.unwrap_or_default()
    }

    /// A little wider than the values; round trips begin at zero.
    fn axis(&self) -> Axis {
        let last = f64::from(self.last());
        match self.label {
            ROUND_TRIP => Axis::new(ROUND_TRIP, 0.0, last * 1.06),
            label => Axis::new(label, -0.3, last + 0.3),
        }
    }
}

/// Places of a line.
type Points = Vec<(f64, f64)>;

impl<'a> Cases<'a> {
    fn new(run: &'a Run) -> Self {
        Self {
            run,
            round_trip: Dimension::new(run, ROUND_TRIP, |cell| cell.round_trip_ms),
            jitter: Dimension::new(run, JITTER, |cell| cell.jitter_percent),
            loss: Dimension::new(run, LOSS, |cell| cell.loss_percent),
        }
    }

    fn over_time(&self) -> Plot {
        let cell = Cell {
            round_trip_ms: self.round_trip.nearest(80),
            jitter_percent: self.jitter.nearest(8),
            loss_percent: self.loss.nearest(4),
        };
        let line = |switches, name, colour| {
            let points = self.course(cell, switches, |result| &result.trace, 0.0, 0.02);
            Series::new(name, colour, Line, points)
        };
        let lines = [
            line(Switches::NO_INTERPOLATION, "without interpolation", Red),
            line(Switches::ALL, "with interpolation", Blue),
        ];
        let axis = Axis::new("time (s)", 0.0, 8.0);
        Plot::new(
            "Distance over time, one player on one screen",
            &format!(
                "{}. Without interpolation a player is shown nearer to where the server has it, but its line leaps with every packet that is late or lost; \
                 with it the line is smooth, and further up by what the player runs in the delay.",
                cell.name()
            ),
        )
        .panel(panel(axis, "distance client to server (m)", lines))
    }

    fn moving_averages(&self) -> Plot {
        let mut plot = Plot::new(
            "Distance over time, moving average",
            "The mean of all players on all screens over the last second, in the network with the most jitter and loss of each round trip. The lines go up and down with how \
             fast the recorded players run; the gap between them stays.",
        );
        let end = f64::from(self.run.about.seconds);
        for round_trip_ms in &self.round_trip.values {
            let cell = Cell {
                round_trip_ms: *round_trip_ms,
                jitter_percent: self.jitter.last(),
                loss_percent: self.loss.last(),
            };
            let line = |switches, name: &str, colour| {
                let points = self.course(cell, switches, |result| &result.course, 1.0, 0.5);
                let name = format!("{name}, {}", cell.name());
                Series::new(&name, colour, Line, points)
            };
            let lines = [
                line(Switches::NO_INTERPOLATION, "without interpolation", Red),
                line(Switches::ALL, "with", Blue),
            ];
            let axis = Axis::new("time (s)", 0.0, end);
            plot = plot.panel(panel(axis, "distance (m)", lines).tall(150));
        }
        plot
    }

    fn distances(&self) -> Plot {
        let line = |name: &str, says, colour| {
            let figure = |result: &CaseResult| Some(quiet(result, name)?.distance_m);
            self.line(&self.round_trip, says, colour, Switches::ALL, figure)
        };
        let lines = [
            line("newest", "newest state, no interpolation", Red),
            line("fixed_60_ms", PROTOTYPE, Orange),
            line("adaptive", "measured delay (Muse)", Blue),
        ];
        Plot::new(
            "Distance by round trip",
            "Without jitter and loss. The network's own delay makes all lines rise alike. The prototype's fixed delay lies above the newest state by the same distance everywhere; \
             the measured delay adds about half of that.",
        )
        .panel(panel(self.round_trip.axis(), "mean distance (m)", lines))
    }

    fn jumps(&self) -> Plot {
        let by = |dimension| self.with_and_without(dimension, "jumps a minute", "jumps_per_minute");
        Plot::new(
            "Jumps by jitter and by loss",
            "Jumps of a shown player in a minute, the mean over all round trips. Without interpolation they come with the first jitter and the first lost packets; with it there \
             are none, or next to none.",
        )
        .panel(by(&self.jitter))
        .panel(by(&self.loss))
    }

    fn delays(&self) -> Plot {
        let line = |name: &str, says, colour| {
            let figure = |result: &CaseResult| Some(view(result, name)?.late_ms);
            self.line(&self.jitter, says, colour, Switches::ALL, figure)
        };
        let lines = [
            line("fixed_60_ms", PROTOTYPE, Orange),
            line("adaptive", "measured delay (Muse)", Blue),
        ];
        Plot::new(
            "How much later than the newest state others are shown",
            "The mean over all round trips and losses. The measured delay is small while packets come evenly and grows with jitter as far as it must, \
             where the fixed one is too long for good networks and too short for bad ones.",
        )
        .panel(panel(self.jitter.axis(), "shown later by (ms)", lines))
    }

    fn curves(&self) -> Plot {
        let line = |name: &str, says, colour| {
            let figure = |result: &CaseResult| Some(quiet(result, name)?.on_curves_m);
            self.line(&self.round_trip, says, colour, Switches::ALL, figure)
        };
        let lines = [
            line("straight", "velocity alone", Red),
            line("accelerated", "projective velocity blending", Orange),
            line("turning", "turn rates", Blue),
            line("curved", "as Muse does", Green),
        ];
        Plot::new(
            "Extrapolation: errors on curves",
            "Players shown where they should be by now, while they run along curves, without jitter and loss. Going on along the tangent errs more with every millisecond of delay. Projective velocity \
             blending goes on with the last acceleration, turn rates follow bends but not changes of speed, and Muse's default goes on as the acceleration turned and faded.",
        )
        .panel(panel(self.round_trip.axis(), "mean error on curves (m)", lines))
    }

    fn jerk(&self) -> Plot {
        Plot::new(
            "How smoothly others move",
            "Jerk, the third derivative of shown places: what an eye calls stutter. The mean over all round trips and losses. Without interpolation frames and states beat against \
             each other even on a perfect network.",
        )
        .panel(self.with_and_without(&self.jitter, "jerk (1,000 m/s\u{b3})", "jerk_k"))
    }

    fn underruns(&self) -> Plot {
        let lines = self.loss.values.iter().zip(COLOURS).map(|(loss, colour)| {
            let figure = |result: &CaseResult| {
                let belongs = result.case.cell.loss_percent == *loss;
                belongs.then(|| result.figures.value("underruns_percent"))?
            };
            self.line(
                &self.jitter,
                &format!("loss {loss} %"),
                colour,
                Switches::ALL,
                figure,
            )
        });
        Plot::new(
            "Underruns",
            "Share of frames in which the next state was overdue and the player went on by itself, the mean over all round trips. It goes on for a frame or two and comes back \
             without a jump.",
        )
        .panel(panel(self.jitter.axis(), "frames without a next state (%)", lines))
    }

    fn corrections(&self) -> Plot {
        let by_loss = |label, key: &str| {
            let round_trips = self.round_trip.values.iter().zip(COLOURS);
            let lines = round_trips.map(|(round_trip, colour)| {
                let figure = |result: &CaseResult| {
                    let belongs = result.case.cell.round_trip_ms == *round_trip;
                    belongs.then(|| result.figures.value(key))?
                };
                self.line(
                    &self.loss,
                    &format!("{round_trip} ms"),
                    colour,
                    Switches::ALL,
                    figure,
                )
            });
            panel(self.loss.axis(), label, lines).tall(220)
        };
        Plot::new(
            "Mispredictions and their depth",
            "Share of the server's answers that corrected the client, and how many ticks were then simulated again; the mean over all jitters. Where nothing is lost or late every prediction is exact. \
             Each misprediction is an input that did not reach the server in time.",
        )
        .panel(by_loss("answers that correct (%)", "mispredicted_percent"))
        .panel(by_loss("ticks simulated again", "depth_ticks"))
    }

    fn key_to_own(&self) -> Plot {
        let lines = [
            self.by_round_trip(
                "without prediction",
                Red,
                Switches::NO_PREDICTION,
                "key_to_own_ms",
            ),
            self.by_round_trip("with prediction", Blue, Switches::ALL, "key_to_own_ms"),
        ];
        Plot::new(
            "Input delay: from a key to the own screen",
            "The median over all jitters and losses. With prediction the next frame shows it, whatever the network; without it the key travels to the server, waits for its tick, and its effect \
             travels back.",
        )
        .panel(panel(self.round_trip.axis(), "delay (ms)", lines))
    }

    fn key_to_other(&self) -> Plot {
        let key = "key_to_other_ms";
        let lines = [
            self.by_round_trip("with interpolation", Blue, Switches::ALL, key),
            self.by_round_trip(
                "without interpolation",
                Red,
                Switches::NO_INTERPOLATION,
                key,
            ),
        ];
        Plot::new(
            "Peeker's latency: from a key to another's screen",
            "The median over all jitters and losses: the time in which who comes around a corner sees without being seen. It is the round trip between the two through the server, the wait for the \
             server's tick, and the delay of interpolation.",
        )
        .panel(panel(self.round_trip.axis(), "latency (ms)", lines))
    }

    fn hits(&self) -> Plot {
        let key = "hits_agreed_percent";
        let axis = ("shots judged as seen (%)", 0.0, 105.0);
        let panel = Panel::new(self.round_trip.axis(), axis)
            .series(self.by_round_trip("all on", Blue, Switches::ALL, key))
            .series(self.by_round_trip(
                "no lag compensation",
                Red,
                Switches::NO_LAG_COMPENSATION,
                key,
            ))
            .series(self.by_round_trip("no prediction", Orange, Switches::NO_PREDICTION, key));
        Plot::new(
            "Hits: does the server agree with the shooter's screen?",
            "The mean over all jitters and losses; half of the shots are near misses, so that half can be right by luck. With lag compensation nearly all agree, up to its limit: what is older than \
             250 ms is judged in the present, which is some of what 160 ms brings, and all of what 320 ms brings.",
        )
        .panel(panel)
    }

    fn bytes(&self) -> Plot {
        let lines = [
            self.by_round_trip("to the client", Blue, Switches::ALL, "down_kbit_s"),
            self.by_round_trip("from the client", Orange, Switches::ALL, "up_kbit_s"),
        ];
        Plot::new(
            "Bytes",
            "Of each client with four players in the match, 50 packets a second each way, headers of transport, UDP and IP included (23 kbit/s down and 28 kbit/s up for those alone). It hardly depends on the network.",
        )
        .panel(panel(self.round_trip.axis(), "kbit/s", lines))
    }

    /// A figure with and without interpolation.
    fn with_and_without(&self, by: &Dimension, label: &str, key: &str) -> Panel {
        let figure = |result: &CaseResult| result.figures.value(key);
        let lines = [
            self.line(
                by,
                "without interpolation",
                Red,
                Switches::NO_INTERPOLATION,
                figure,
            ),
            self.line(by, "with interpolation", Blue, Switches::ALL, figure),
        ];
        panel(by.axis(), label, lines).tall(220)
    }

    fn by_round_trip(&self, name: &str, colour: Colour, switches: Switches, key: &str) -> Series {
        let figure = |result: &CaseResult| result.figures.value(key);
        self.line(&self.round_trip, name, colour, switches, figure)
    }

    /// The mean of a figure at each value of a dimension, over the cases that have it.
    fn line(
        &self,
        by: &Dimension,
        name: &str,
        colour: Colour,
        switches: Switches,
        figure: impl Fn(&CaseResult) -> Option<f64>,
    ) -> Series {
        let points = by.values.iter().map(|at| {
            let cases = self.run.with(switches);
            let cases = cases.filter(|result| (by.of)(&result.case.cell) == *at);
            let figures: Vec<f64> = cases.filter_map(&figure).collect();
            let sum: f64 = figures.iter().sum();
            (f64::from(*at), sum / figures.len().max(1) as f64)
        });
        Series::new(name, colour, Joined, points)
    }

    /// The values that a case noted one after the other, from `start` on and `step` seconds apart.
    fn course(
        &self,
        cell: Cell,
        switches: Switches,
        of: fn(&CaseResult) -> &Vec<f64>,
        start: f64,
        step: f64,
    ) -> Points {
        let values = self.run.case(Case { cell, switches }).map(of);
        let values = (0..).zip(values.into_iter().flatten());
        let points = values.map(|(number, value)| (start + f64::from(number) * step, *value));
        points.collect()
    }
}

/// A way to draw others, on a network without jitter and loss.
fn quiet<'a>(result: &'a CaseResult, name: &str) -> Option<&'a ViewFigures> {
    let cell = result.case.cell;
    let is_quiet = (cell.jitter_percent, cell.loss_percent) == (0, 0);
    view(result, name).filter(|_| is_quiet)
}

/// A panel whose ordinate begins at zero and ends above the highest point.
fn panel(x: Axis, y: &str, lines: impl IntoIterator<Item = Series>) -> Panel {
    let lines: Vec<Series> = lines.into_iter().collect();
    let most = lines.iter().filter_map(Series::highest).fold(0.0, f64::max);
    let panel = Panel::new(x, (y, 0.0, (most * 1.1).max(1e-3))).tall(260);
    lines.into_iter().fold(panel, Panel::series)
}

const ROUND_TRIP: &str = "round trip (ms)";
const JITTER: &str = "jitter (standard deviation, % of the round trip)";
const LOSS: &str = "packets lost on each way (%)";
const PROTOTYPE: &str = "fixed 60 ms (the prototype)";
const COLOURS: [Colour; 4] = [Green, Blue, Purple, Red];
