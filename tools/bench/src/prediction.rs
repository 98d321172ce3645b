//! `muse bench prediction`: how true prediction is among others, and what it costs to be wrong.
//!
//! Eight bots play Biobot's ball in virtual time, over 150 ms there and back with 5 % loss, on the machines that ship: the server's stage and eight players. What
//! each player predicts is compared with what the server then says, and what each player sees from frame to frame with the motion of what is shown. Then the
//! rollback of twelve ticks of eight robots and the ball is timed, here and, with a module for browsers, in WebAssembly.

mod matches;
mod rollback;
mod seat;
mod sight;
mod truth;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use muse_program::bars::{Bar, Verdict, settle};
use serde::Serialize;

use super::results::Output;
use matches::Figures;
use rollback::Cost;

/// The measurements to make.
#[derive(Args)]
#[command(
    after_help = "Example: muse bench prediction --bars\n\nTimes are those of a release build. The bar of browsers needs node and the module that scripts/build-web.sh builds.\nExit code 3: with --bars, a bar fell short."
)]
pub(crate) struct Arguments {
    /// The directory of the module for browsers; game/web/src/wasm if it is there.
    #[arg(long, value_name = "DIRECTORY")]
    wasm: Option<PathBuf>,
    /// One match of 20 s instead of four of 60.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

/// Everything that was measured.
#[derive(Serialize)]
struct Results {
    figures: Figures,
    native: Vec<Cost>,
    wasm: Vec<Cost>,
    bars: Vec<Bar>,
}

/// Measures, prints and judges.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (seeds, seconds) = if arguments.quick { (1, 20) } else { (4, 60) };
    let mut figures = Figures::default();
    for seed in 1..=seeds {
        eprintln!("match {seed} of {seeds}");
        figures.add(matches::play(seed, seconds));
    }
    figures.print();
    let mut bars = bars(&figures);
    let (mut native, mut wasm) = (Vec::new(), Vec::new());
    // Time depends on what else the machine does; what comes from a seed does not.
    bars.extend(settle(Verdict::Median, |_| {
        let here = rollback::here(arguments.quick);
        println!("  {}", here.line("native"));
        let there = rollback::in_wasm(arguments.wasm.as_deref(), arguments.quick)?;
        let judged = vec![
            Bar::at_most("prediction_rollback_native_ms", here.median_ms, 3.0),
            Bar::at_most(
                "prediction_rollback_wasm_ms",
                there.as_ref().and_then(|cost| cost.median_ms),
                8.0,
            ),
        ];
        match there {
            Some(there) => {
                println!("  {}", there.line("WebAssembly"));
                wasm.push(there);
            }
            None => println!(
                "  WebAssembly: unmeasured, because there is no module; scripts/build-web.sh builds it"
            ),
        }
        native.push(here);
        Ok(judged)
    })?);
    let results = Results {
        figures,
        native,
        wasm,
        bars,
    };
    arguments.output.finish(&results, &results.bars)
}

fn bars(figures: &Figures) -> Vec<Bar> {
    let Figures {
        own_touches,
        others,
        own_robot,
        handover,
        ball_smoothing_cm,
        down_kbit_s,
        ..
    } = figures;
    vec![
        Bar::at_most(
            "prediction_own_touches_corrected_share",
            own_touches.share(),
            0.1,
        ),
        Bar::at_most(
            "prediction_ball_corrections_beyond_bound",
            others.beyond as f64,
            0.0,
        ),
        Bar::at_most(
            "prediction_ball_smoothing_cm_per_frame",
            *ball_smoothing_cm,
            SMOOTHING_CM_MAX,
        ),
        Bar::at_most(
            "prediction_own_robot_error_beside_ball_cm",
            own_robot.worst_cm,
            0.0,
        ),
        Bar::at_most("prediction_down_kbit_s", *down_kbit_s, 40.0),
        Bar::at_most("prediction_handover_cm_per_frame", handover.worst_cm, 2.0),
    ]
}

/// Centimetres that a ball that was corrected moves in a frame beside its own motion: 10 m/s at 60 frames a second, one more while it goes over from
/// interpolated, and a bit for its grid.
const SMOOTHING_CM_MAX: f64 = 18.7;
