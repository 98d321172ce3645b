//! A match that plays itself: what has to come out the same in every program that is to play along.
//!
//! Every player is a bot, in virtual time, and the match is recorded. `game/web/tests/worker.mjs` compares what a browser's engine makes of
//! such matches with what a native program does, and has each run the other's recordings again.

use std::sync::Arc;

use muse::wire::{Duration, Instant};
use muse_biobot::bots::Brain;
use muse_biobot::table::Rollback;
use muse_biobot::{Level, Mode, Practice, StageConfig};
use serde_json::json;
use wasm_bindgen::prelude::wasm_bindgen;

/// Plays `ticks` ticks of a match with so many players, and returns the stage's checksum of every second and the recording.
///
/// ```
/// use muse_biobot::Mode;
/// use muse_biobot_web::trial::play;
/// let (once, recording) = play(Mode::Versus, 2, 7, 200);
/// assert_eq!(once.len(), 4);
/// assert_eq!((once.clone(), recording), play(Mode::Versus, 2, 7, 200));
/// assert_ne!(once, play(Mode::Versus, 2, 8, 200).0);
/// ```
pub fn play(mode: Mode, players: u8, seed: u64, ticks: u32) -> (Vec<u64>, Vec<u8>) {
    let level = Arc::new(Level::of(mode));
    let config = StageConfig::new(Arc::clone(&level))
        .seed(seed)
        .slots(players)
        .cancels(false);
    let mut now = Instant::from_secs(1);
    let mut practice = Practice::recorded(config, players, now);
    let brain = |slot: u8| Brain::new(Arc::clone(&level), seed << 8 | u64::from(slot));
    let mut brains: Vec<Brain> = (0..players).map(brain).collect();
    let mut checksums = Vec::new();
    for tick in 1..=ticks {
        now += Duration::from_millis(20);
        practice.tick(now, |slot, player| brains[slot].act(now, player));
        if tick.is_multiple_of(50) {
            checksums.push(practice.stage().checksum());
        }
    }
    (checksums, practice.stage_mut().finish_recording())
}

/// The same for JavaScript and for programs: the recording; its checksums are inside.
#[wasm_bindgen(js_name = trial)]
pub fn trial(mode: &str, players: u8, seed: u32, ticks: u32) -> Vec<u8> {
    let mode = match mode {
        "cooperative" => Mode::Cooperative,
        "ball" => Mode::Ball,
        _ => Mode::Versus,
    };
    play(mode, players, seed.into(), ticks).1
}

/// Runs a recorded match again and says whether it went as it says, as JSON: `{"compared":n,"checksum":"..."}` or `{"error":"..."}`.
#[wasm_bindgen(js_name = verifyRecording)]
pub fn verify_recording(bytes: &[u8]) -> String {
    let verdict = match muse_biobot::replay::verify(bytes) {
        Ok((compared, last)) => json!({"compared": compared, "checksum": format!("{last:016x}")}),
        Err(error) => json!({"error": error.to_string()}),
    };
    verdict.to_string()
}

/// Plays so many seconds of a match of eight around the ball, and returns the times in milliseconds of those corrections of a player that simulate everybody and
/// the ball again for [`Rollback::TICKS`] ticks.
#[wasm_bindgen(js_name = rollbackTimes)]
pub fn rollback_times(seed: u32, seconds: u32) -> Vec<f64> {
    let costs = Rollback::new(seed.into()).measure(seconds, &mut performance_now);
    let whole = costs.iter().filter(|cost| cost.is_whole());
    whole.map(|cost| cost.time).collect()
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
}
