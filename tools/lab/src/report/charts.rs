//! The plots of a run.

use crate::arena::Switches;
use crate::grid::{CaseResult, Cell, Figures, Run, SWITCHES, ViewFigures};
use crate::plot::{Axis, Colour, Mark, Panel, Plot, Series};

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

/// A run, and the values that its cells take.
struct Cases<'a> {
    run: &'a Run,
    round_trips: Vec<u32>,
    jitters: Vec<u32>,
    losses: Vec<u32>,
}

/// A point for each case of a row or column of the grid.
type Points = Vec<(f64, f64)>;

impl<'a> Cases<'a> {
    fn new(run: &'a Run) -> Self {
        let values = |value: fn(&Cell) -> u32| {
            let mut values: Vec<u32> = run.cases.iter().map(|c| value(&c.case.cell)).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        Self {
            run,
            round_trips: values(|cell| cell.round_trip_ms),
            jitters: values(|cell| cell.jitter_percent),
            losses: values(|cell| cell.loss_percent),
        }
    }

    fn over_time(&self) -> Plot {
        let cell = self.middle();
        let series = |switches: Switches, name, colour| {
            let trace = self
                .case(cell, switches)
                .map(|result| result.trace.as_slice());
            let points = (0..).zip(trace.unwrap_or_default());
            let points = points.map(|(tick, distance)| (f64::from(tick) * 0.02, *distance));
            Series::new(name, colour, Mark::Line, points.collect::<Points>())
        };
        let (on, off) = (Switches::ALL, SWITCHES[1].0);
        let panel = panel(
            Axis::new("time (s)", 0.0, 8.0),
            "distance client to server (m)",
            [
                series(off, "without interpolation", Colour::Red),
                series(on, "with interpolation", Colour::Blue),
            ],
        );
        Plot::new(
            "Distance over time, one player on one screen",
            &format!(
                "{}. Without interpolation a player is shown nearer to where the server has it, but its line leaps with every packet that is late or lost; \
                 with it the line is smooth, and further up by what the player runs in the delay.",
                cell.name()
            ),
        )
        .panel(panel)
    }

    fn moving_averages(&self) -> Plot {
        let mut plot = Plot::new(
            "Distance over time, moving average",
            "The mean of all players on all screens over the last second, in the network with the most jitter and loss of each round trip. The lines go up and down with how \
             fast the recorded players run; the gap between them stays.",
        );
        let end = f64::from(self.run.about.seconds);
        for round_trip_ms in &self.round_trips {
            let cell = Cell {
                round_trip_ms: *round_trip_ms,
                jitter_percent: last(&self.jitters),
                loss_percent: last(&self.losses),
            };
            let series = |switches: Switches, name: &str, colour| {
                let course = self
                    .case(cell, switches)
                    .map(|result| result.course.as_slice());
                let points = (0..).zip(course.unwrap_or_default());
                let points = points.map(|(half, mean)| (1.0 + f64::from(half) * 0.5, *mean));
                let name = format!("{name}, {}", cell.name());
                Series::new(&name, colour, Mark::Line, points.collect::<Points>())
            };
            let lines = [
                series(SWITCHES[1].0, "without interpolation", Colour::Red),
                series(Switches::ALL, "with", Colour::Blue),
            ];
            let axis = Axis::new("time (s)", 0.0, end);
            plot = plot.panel(panel(axis, "distance (m)", lines).tall(150));
        }
        plot
    }

    fn distances(&self) -> Plot {
        let lines = [
            (
                "newest",
                "newest state, no interpolation",
                Colour::Red,
                Mark::Joined,
            ),
            (
                "fixed_60_ms",
                "fixed 60 ms (the prototype)",
                Colour::Orange,
                Mark::Joined,
            ),
            (
                "adaptive",
                "measured delay (Muse)",
                Colour::Blue,
                Mark::Joined,
            ),
        ]
        .map(|(view, name, colour, mark)| {
            let points = self.views_by_round_trip(view, |view| view.distance_m);
            Series::new(name, colour, mark, points)
        });
        Plot::new(
            "Distance by round trip",
            "Without jitter and loss. The network's own delay makes all lines rise alike. The prototype's fixed delay lies above the newest state by the same distance everywhere; \
             the measured delay adds about half of that.",
        )
        .panel(panel(self.round_trip_axis(), "mean distance (m)", lines))
    }

    fn jumps(&self) -> Plot {
        let jumps: fn(&Figures) -> Option<f64> = |figures| Some(figures.jumps_per_minute);
        Plot::new(
            "Jumps by jitter and by loss",
            "Jumps of a shown player in a minute, the mean over all round trips. Without interpolation they come with the first jitter and the first lost packets; with it there \
             are none, or next to none.",
        )
        .panel(self.by_jitter("jumps a minute", jumps))
        .panel(self.by_loss("jumps a minute", jumps))
    }

    fn delays(&self) -> Plot {
        let line = |view: &'static str, name, colour| {
            let points = self.views_by_jitter(view, |view| view.late_ms);
            Series::new(name, colour, Mark::Joined, points)
        };
        let lines = [
            line("fixed_60_ms", "fixed 60 ms (the prototype)", Colour::Orange),
            line("adaptive", "measured delay (Muse)", Colour::Blue),
        ];
        Plot::new(
            "How much later than the newest state others are shown",
            "The mean over all round trips and losses. The measured delay is small while packets come evenly and grows with jitter as far as it must, \
             where the fixed one is too long for good networks and too short for bad ones.",
        )
        .panel(panel(self.jitter_axis(), "shown later by (ms)", lines))
    }

    fn curves(&self) -> Plot {
        let line = |view: &'static str, name, colour| {
            let points = self.views_by_round_trip(view, |view| view.on_curves_m);
            Series::new(name, colour, Mark::Joined, points)
        };
        let lines = [
            line("straight", "velocity alone", Colour::Red),
            line(
                "accelerated",
                "projective velocity blending",
                Colour::Orange,
            ),
            line("turning", "turn rates", Colour::Blue),
            line("curved", "as Muse does", Colour::Green),
        ];
        Plot::new(
            "Extrapolation: errors on curves",
            "Players shown where they should be by now, while they run along curves, without jitter and loss. Going on along the tangent errs more with every millisecond of delay. Projective velocity \
             blending goes on with the last acceleration, turn rates follow bends but not changes of speed, and Muse's default goes on as the acceleration turned and faded.",
        )
        .panel(panel(self.round_trip_axis(), "mean error on curves (m)", lines))
    }

    fn jerk(&self) -> Plot {
        Plot::new(
            "How smoothly others move",
            "Jerk, the third derivative of shown places: what an eye calls stutter. The mean over all round trips and losses. Without interpolation frames and states beat against \
             each other even on a perfect network.",
        )
        .panel(self.by_jitter("jerk (1,000 m/s\u{b3})", |figures| Some(figures.jerk_k)))
    }

    fn underruns(&self) -> Plot {
        let lines = self.losses.iter().zip(COLOURS).map(|(loss, colour)| {
            let points = self.means(
                &self.jitters,
                Switches::ALL,
                |figures| figures.underruns_percent,
                |cell, jitter| cell.jitter_percent == jitter && cell.loss_percent == *loss,
            );
            Series::new(&format!("loss {loss} %"), colour, Mark::Joined, points)
        });
        let lines: Vec<Series> = lines.collect();
        Plot::new(
            "Underruns",
            "Share of frames in which the next state was overdue and the player went on by itself, the mean over all round trips. It goes on for a frame or two and comes back \
             without a jump.",
        )
        .panel(panel(self.jitter_axis(), "frames without a next state (%)", lines))
    }

    fn corrections(&self) -> Plot {
        let lines = |value: fn(&Figures) -> Option<f64>| {
            let lines = self
                .round_trips
                .iter()
                .zip(COLOURS)
                .map(move |(round_trip, colour)| {
                    let points = self.means(&self.losses, Switches::ALL, value, |cell, loss| {
                        cell.loss_percent == loss && cell.round_trip_ms == *round_trip
                    });
                    Series::new(&format!("{round_trip} ms"), colour, Mark::Joined, points)
                });
            lines.collect::<Vec<Series>>()
        };
        Plot::new(
            "Mispredictions and their depth",
            "Share of the server's answers that corrected the client, and how many ticks were then simulated again; the mean over all jitters. Where nothing is lost or late every prediction is exact. \
             Each misprediction is an input that did not reach the server in time.",
        )
        .panel(panel(self.loss_axis(), "answers that correct (%)", lines(|f| f.mispredicted_percent)).tall(220))
        .panel(panel(self.loss_axis(), "ticks simulated again", lines(|f| f.depth_ticks)).tall(220))
    }

    fn key_to_own(&self) -> Plot {
        let value: fn(&Figures) -> Option<f64> = |figures| Some(figures.key_to_own_ms);
        let lines = [
            self.line("without prediction", Colour::Red, SWITCHES[2].0, value),
            self.line("with prediction", Colour::Blue, Switches::ALL, value),
        ];
        Plot::new(
            "Input delay: from a key to the own screen",
            "The median over all jitters and losses. With prediction the next frame shows it, whatever the network; without it the key travels to the server, waits for its tick, and its effect \
             travels back.",
        )
        .panel(panel(self.round_trip_axis(), "delay (ms)", lines))
    }

    fn key_to_other(&self) -> Plot {
        let value: fn(&Figures) -> Option<f64> = |figures| Some(figures.key_to_other_ms);
        let lines = [
            self.line("with interpolation", Colour::Blue, Switches::ALL, value),
            self.line("without interpolation", Colour::Red, SWITCHES[1].0, value),
        ];
        Plot::new(
            "Peeker's latency: from a key to another's screen",
            "The median over all jitters and losses: the time in which who comes around a corner sees without being seen. It is the round trip between the two through the server, the wait for the \
             server's tick, and the delay of interpolation.",
        )
        .panel(panel(self.round_trip_axis(), "latency (ms)", lines))
    }

    fn hits(&self) -> Plot {
        let value: fn(&Figures) -> Option<f64> = |figures| Some(figures.hits_agreed_percent);
        let lines = [
            self.line("all on", Colour::Blue, Switches::ALL, value),
            self.line("no lag compensation", Colour::Red, SWITCHES[3].0, value),
            self.line("no prediction", Colour::Orange, SWITCHES[2].0, value),
        ];
        let panel = Panel::new(
            self.round_trip_axis(),
            Axis::new("shots judged as seen (%)", 0.0, 105.0),
        );
        let panel = lines.into_iter().fold(panel, Panel::with);
        Plot::new(
            "Hits: does the server agree with the shooter's screen?",
            "The mean over all jitters and losses; half of the shots are near misses, so that half can be right by luck. With lag compensation nearly all agree, up to its limit: what is older than \
             250 ms is judged in the present, which is some of what 160 ms brings, and all of what 320 ms brings.",
        )
        .panel(panel)
    }

    fn bytes(&self) -> Plot {
        let lines = [
            self.line("to the client", Colour::Blue, Switches::ALL, |f| {
                Some(f.down_kbit_s)
            }),
            self.line("from the client", Colour::Orange, Switches::ALL, |f| {
                Some(f.up_kbit_s)
            }),
        ];
        Plot::new(
            "Bytes",
            "Of each client with four players in the match, 50 packets a second each way, headers of transport, UDP and IP included (23 kbit/s down and 28 kbit/s up for those alone). It hardly depends on the network.",
        )
        .panel(panel(self.round_trip_axis(), "kbit/s", lines))
    }

    /// With and without interpolation, over jitter.
    fn by_jitter(&self, label: &str, value: fn(&Figures) -> Option<f64>) -> Panel {
        let line = |name, colour, switches| {
            let points = self.means(&self.jitters, switches, value, |cell, jitter| {
                cell.jitter_percent == jitter
            });
            Series::new(name, colour, Mark::Joined, points)
        };
        let lines = [
            line("without interpolation", Colour::Red, SWITCHES[1].0),
            line("with interpolation", Colour::Blue, Switches::ALL),
        ];
        panel(self.jitter_axis(), label, lines).tall(220)
    }

    /// With and without interpolation, over loss.
    fn by_loss(&self, label: &str, value: fn(&Figures) -> Option<f64>) -> Panel {
        let line = |name, colour, switches| {
            let points = self.means(&self.losses, switches, value, |cell, loss| {
                cell.loss_percent == loss
            });
            Series::new(name, colour, Mark::Joined, points)
        };
        let lines = [
            line("without interpolation", Colour::Red, SWITCHES[1].0),
            line("with interpolation", Colour::Blue, Switches::ALL),
        ];
        panel(self.loss_axis(), label, lines).tall(220)
    }

    /// A figure over round trips, the mean over all else.
    fn line(
        &self,
        name: &str,
        colour: Colour,
        switches: Switches,
        value: fn(&Figures) -> Option<f64>,
    ) -> Series {
        let points = self.means(&self.round_trips, switches, value, |cell, round_trip| {
            cell.round_trip_ms == round_trip
        });
        Series::new(name, colour, Mark::Joined, points)
    }

    /// For each of `values` the mean of a figure over the cells that belong to it.
    fn means(
        &self,
        values: &[u32],
        switches: Switches,
        figure: fn(&Figures) -> Option<f64>,
        belongs: impl Fn(&Cell, u32) -> bool,
    ) -> Points {
        let mean = |at: u32| {
            let cases = self.run.with(switches);
            let figures: Vec<f64> = cases
                .filter(|result| belongs(&result.case.cell, at))
                .filter_map(|result| figure(&result.figures))
                .collect();
            let sum: f64 = figures.iter().sum();
            (f64::from(at), sum / figures.len().max(1) as f64)
        };
        values.iter().map(|at| mean(*at)).collect()
    }

    /// One way to show others over round trips, without jitter and loss.
    fn views_by_round_trip(&self, view: &str, value: fn(&ViewFigures) -> f64) -> Points {
        let quiet = self.run.with(Switches::ALL).filter(|result| {
            let cell = result.case.cell;
            (cell.jitter_percent, cell.loss_percent) == (0, 0)
        });
        let point = |result: &CaseResult| {
            let figures = crate::grid::view(result, view)?;
            Some((f64::from(result.case.cell.round_trip_ms), value(figures)))
        };
        quiet.filter_map(point).collect()
    }

    /// One way to show others over jitter, the mean over all else.
    fn views_by_jitter(&self, view: &str, value: fn(&ViewFigures) -> f64) -> Points {
        let mean = |jitter: u32| {
            let cases = self.run.with(Switches::ALL);
            let figures: Vec<f64> = cases
                .filter(|result| result.case.cell.jitter_percent == jitter)
                .filter_map(|result| Some(value(crate::grid::view(result, view)?)))
                .collect();
            let sum: f64 = figures.iter().sum();
            (f64::from(jitter), sum / figures.len().max(1) as f64)
        };
        self.jitters.iter().map(|jitter| mean(*jitter)).collect()
    }

    fn case(&self, cell: Cell, switches: Switches) -> Option<&CaseResult> {
        self.run.case(crate::grid::Case { cell, switches })
    }

    /// A network such as many have.
    fn middle(&self) -> Cell {
        let near = |values: &[u32], wanted: u32| {
            let nearest = values.iter().min_by_key(|value| value.abs_diff(wanted));
            nearest.copied().unwrap_or_default()
        };
        Cell {
            round_trip_ms: near(&self.round_trips, 80),
            jitter_percent: near(&self.jitters, 8),
            loss_percent: near(&self.losses, 4),
        }
    }

    fn round_trip_axis(&self) -> Axis {
        Axis::new(
            "round trip (ms)",
            0.0,
            f64::from(last(&self.round_trips)) * 1.06,
        )
    }

    fn jitter_axis(&self) -> Axis {
        let label = "jitter (standard deviation, % of the round trip)";
        Axis::new(label, -0.3, f64::from(last(&self.jitters)) + 0.3)
    }

    fn loss_axis(&self) -> Axis {
        let label = "packets lost on each way (%)";
        Axis::new(label, -0.3, f64::from(last(&self.losses)) + 0.3)
    }
}

/// With an axis from 0 to a little above the highest point.
fn panel(x: Axis, y: &str, lines: impl IntoIterator<Item = Series>) -> Panel {
    let lines: Vec<Series> = lines.into_iter().collect();
    let most = lines.iter().filter_map(Series::highest).fold(0.0, f64::max);
    let panel = Panel::new(x, Axis::new(y, 0.0, (most * 1.1).max(1e-3))).tall(260);
    lines.into_iter().fold(panel, Panel::with)
}

fn last(values: &[u32]) -> u32 {
    values.last().copied().unwrap_or_default()
}

const COLOURS: [Colour; 4] = [Colour::Green, Colour::Blue, Colour::Purple, Colour::Red];
