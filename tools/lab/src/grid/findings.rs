//! The findings of a run: the prototype's two, and what is better than in the prototype.

use super::{CaseResult, Run, ViewFigures};
use crate::arena::Switches;

/// A statement about a run, with its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In a few words.
    pub title: String,
    /// The figures behind it.
    pub says: String,
    /// True if the figures bear it out.
    pub holds: bool,
}

/// Returns what the run says about the prototype's findings and about the improvements on them.
pub fn findings(run: &Run) -> Vec<Finding> {
    let on: Vec<&CaseResult> = run.with(Switches::ALL).collect();
    let found = [
        constant_distance(&on),
        jumps(run, &on),
        smaller_delay(&on),
        curves(&on),
    ];
    found.into_iter().flatten().collect()
}

/// The prototype: interpolation adds a distance that does not depend on the round trip.
fn constant_distance(on: &[&CaseResult]) -> Option<Finding> {
    let quiet = on.iter().filter(|result| {
        let cell = result.case.cell;
        (cell.jitter_percent, cell.loss_percent) == (0, 0)
    });
    let added: Vec<(u32, f64)> = quiet
        .filter_map(|result| {
            let added =
                view(result, "fixed_60_ms")?.distance_m - view(result, "newest")?.distance_m;
            Some((result.case.cell.round_trip_ms, added))
        })
        .collect();
    let (least, most) = bounds(added.iter().map(|(_, added)| *added))?;
    let each: Vec<String> = added
        .iter()
        .map(|(round_trip, added)| format!("{added:.2} m at {round_trip} ms"))
        .collect();
    Some(Finding {
        title: "Interpolation adds a constant distance".to_owned(),
        says: format!(
            "Showing others the prototype's 60 ms later than they arrive moves them further from where the server has them by {}: what they run in 60 ms, \
             whatever the round trip.",
            each.join(", ")
        ),
        holds: least > 0.0 && most - least <= 0.35 * most,
    })
}

/// The prototype: no jumps with interpolation, jumps without it.
fn jumps(run: &Run, on: &[&CaseResult]) -> Option<Finding> {
    let off: Vec<&CaseResult> = run
        .with(Switches::NO_INTERPOLATION)
        .filter(|result| is_uneven(result))
        .collect();
    let (_, most_on) = bounds(on.iter().map(|result| result.figures.jumps_per_minute))?;
    let (least_off, most_off) = bounds(off.iter().map(|result| result.figures.jumps_per_minute))?;
    let jerk = |results: &[&CaseResult]| {
        let sum: f64 = results.iter().map(|result| result.figures.jerk_k).sum();
        sum / results.len().max(1) as f64
    };
    Some(Finding {
        title: "No jumps with interpolation, jumps without it".to_owned(),
        says: format!(
            "With it a shown player jumps at most {most_on:.1} times a minute in any of {} networks. Without it, wherever there is jitter or loss, it jumps {least_off:.0} to \
             {most_off:.0} times a minute, and its jerk is {:.0} times as large.",
            on.len(),
            jerk(&off) / jerk(on).max(1e-9),
        ),
        holds: most_on < 1.0 && least_off > 5.0 * most_on.max(1.0),
    })
}

/// Ours: the delay is measured, so that where there is little jitter others are shown sooner than 60 ms late.
fn smaller_delay(on: &[&CaseResult]) -> Option<Finding> {
    let calm: Vec<&&CaseResult> = on
        .iter()
        .filter(|result| result.case.cell.jitter_percent <= 2 && result.case.cell.loss_percent <= 2)
        .filter(|result| result.case.cell.round_trip_ms <= 160)
        .collect();
    let pairs = calm
        .iter()
        .filter_map(|result| Some((view(result, "adaptive")?, view(result, "fixed_60_ms")?)));
    let (adaptive, fixed): (Vec<&ViewFigures>, Vec<&ViewFigures>) = pairs.unzip();
    let mean = |views: &[&ViewFigures], value: fn(&ViewFigures) -> f64| {
        views.iter().map(|view| value(view)).sum::<f64>() / views.len().max(1) as f64
    };
    let nearer = adaptive
        .iter()
        .zip(&fixed)
        .all(|(adaptive, fixed)| adaptive.distance_m < fixed.distance_m);
    (!adaptive.is_empty()).then(|| Finding {
        title: "A measured delay is smaller than a fixed one".to_owned(),
        says: format!(
            "Where jitter and loss are at most 2 % and the round trip at most 160 ms, others are shown {:.0} ms after their newest state instead of {:.0} ms with the prototype's fixed 60 ms, and {:.2} m \
             instead of {:.2} m from where the server has them.",
            mean(&adaptive, |view| view.late_ms),
            mean(&fixed, |view| view.late_ms),
            mean(&adaptive, |view| view.distance_m),
            mean(&fixed, |view| view.distance_m),
        ),
        holds: nearer,
    })
}

/// Ours: an acceleration that turns and fades makes extrapolation err less on curves than projective velocity blending, whose acceleration stays.
fn curves(on: &[&CaseResult]) -> Option<Finding> {
    let ratios = |other: &str| {
        let ratio = |result: &&CaseResult| {
            let curved = view(result, "curved")?.on_curves_m;
            Some(curved / view(result, other)?.on_curves_m.max(1e-9))
        };
        bounds(on.iter().filter_map(ratio))
    };
    let ((least, most), (least_straight, most_straight)) =
        (ratios("accelerated")?, ratios("straight")?);
    let error = |name: &str| {
        let errors: Vec<f64> = on
            .iter()
            .filter_map(|result| Some(view(result, name)?.on_curves_m))
            .collect();
        errors.iter().sum::<f64>() / errors.len().max(1) as f64
    };
    Some(Finding {
        title: "Errors on curves are smaller than with projective velocity blending alone"
            .to_owned(),
        says: format!(
            "Shown in the present, runners on curves are {:.3} m off when their acceleration turns and fades as it did, {:.3} m by the formula, whose acceleration stays, and {:.3} m by the formula \
             without acceleration: {:.0} to {:.0} % of the one and {:.0} to {:.0} % of the other in each of {} networks. Turn rates alone leave {:.3} m.",
            error("curved"),
            error("accelerated"),
            error("straight"),
            least * 100.0,
            most * 100.0,
            least_straight * 100.0,
            most_straight * 100.0,
            on.len(),
            error("turning"),
        ),
        holds: most < 1.0 && most_straight < 1.0,
    })
}

/// True if packets come unevenly enough to be seen: by more than a few milliseconds, or not at all.
fn is_uneven(result: &CaseResult) -> bool {
    let cell = result.case.cell;
    cell.loss_percent > 0 || cell.jitter_percent * cell.round_trip_ms >= 400
}

/// One way to show others.
pub(crate) fn view<'a>(result: &'a CaseResult, name: &str) -> Option<&'a ViewFigures> {
    result.views.as_ref()?.iter().find(|view| view.name == name)
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |bounds, value| {
        let (least, most) = bounds.unwrap_or((value, value));
        Some((f64::min(least, value), f64::max(most, value)))
    })
}
