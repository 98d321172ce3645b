//! The pictures of the book, one for each mechanism, each from a run of what ships.

mod authority;
mod clock;
mod congestion;
mod events;
mod extrapolation;
mod fairness;
mod flows;
mod inputs;
mod interest;
mod interpolation;
mod lockstep;
mod modes;
mod prediction;
mod priority;
mod quality;
mod repair;
mod rewind;
mod rollback;
mod shots;
mod snapshots;
mod state;

use crate::plot::Plot;

/// Makes the runs behind a picture, and draws it.
pub type Draw = fn() -> Plot;

/// The names of all pictures and how each is made, in the order of the pages.
pub const ALL: [(&str, Draw); 19] = [
    ("state", state::plot),
    ("snapshots", snapshots::plot),
    ("interest", interest::plot),
    ("priority", priority::plot),
    ("events", events::plot),
    ("inputs", inputs::plot),
    ("clock", clock::plot),
    ("prediction", prediction::plot),
    ("interpolation", interpolation::plot),
    ("extrapolation", extrapolation::plot),
    ("rewind", rewind::plot),
    ("fairness", fairness::plot),
    ("authority", authority::plot),
    ("quality", quality::plot),
    ("modes", modes::plot),
    ("lockstep", lockstep::plot),
    ("rollback", rollback::plot),
    ("repair", repair::plot),
    ("congestion", congestion::plot),
];
