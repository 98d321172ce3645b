//! A recorded match: any instant, any player's view, at any speed.

use std::sync::Arc;

use muse::netcode::Tick;
use muse::wire::Instant;
use muse_biobot::player::Frame;
use muse_biobot::replay::{Recording, RecordingError};
use muse_biobot::{Level, TICK, TICKS_PER_SECOND};
use serde_json::json;

use crate::events::Events;

/// A recording that is played.
#[derive(Debug)]
pub struct Watched {
    recording: Recording,
    level: Arc<Level>,
    /// The instant that is shown, in ticks.
    at: f64,
    speed: f64,
    slot: u8,
    then: Instant,
    /// Marks up to this tick have been told.
    told: f64,
}

impl Watched {
    /// Opens a file.
    pub fn open(now: Instant, bytes: Vec<u8>) -> Result<Self, RecordingError> {
        let recording = Recording::parse(bytes)?;
        let at = f64::from(recording.ticks().0);
        let slot = recording.names().first().map_or(0, |name| name.slot);
        Ok(Self {
            level: Arc::new(recording.level().clone()),
            recording,
            at,
            speed: 1.0,
            slot,
            then: now,
            told: at,
        })
    }

    /// Tells the page the level, the players and the length of the recording.
    pub fn introduce(&self, events: &mut Events) {
        let level = self.recording.level();
        events.welcome(Some(self.slot), level.mode, self.recording.seed(), level);
        let names = self.recording.names();
        let last = names.iter().map(|name| usize::from(name.slot) + 1).max();
        let mut by_slot = vec![""; last.unwrap_or(0)];
        for name in names {
            by_slot[usize::from(name.slot)] = &name.name;
        }
        events.push(json!({"type": "names", "names": by_slot}));
        let (first, end) = self.recording.ticks();
        let marks: Vec<u32> = self
            .recording
            .marks()
            .iter()
            .map(|mark| mark.tick)
            .collect();
        events.push(json!({
            "type": "replay",
            "ticks": end,
            "first": first,
            "tickMs": TICK.as_micros() / 1_000,
            "names": by_slot,
            "marks": marks,
        }));
    }

    /// Steers it: what is none stays as it is.
    pub fn steer(&mut self, speed: Option<f64>, tick: Option<f64>, slot: Option<u8>) {
        if let Some(speed) = speed.filter(|speed| speed.is_finite()) {
            self.speed = speed.clamp(0.0, SPEED_MAX);
        }
        if let Some(tick) = tick.filter(|tick| tick.is_finite()) {
            self.at = self.within(tick);
            self.told = self.at;
        }
        if let Some(slot) = slot {
            self.slot = slot;
        }
    }

    /// Lets time pass.
    pub fn advance(&mut self, now: Instant, events: &mut Events) {
        let seconds = now.saturating_since(self.then).as_secs_f64();
        self.then = now;
        self.at = self.within(self.at + seconds * self.speed * f64::from(TICKS_PER_SECOND));
        for mark in self.recording.marks() {
            let tick = f64::from(mark.tick);
            if tick > self.told && tick <= self.at {
                events.message(&mark.message, Tick(mark.tick));
            }
        }
        self.told = self.told.max(self.at);
    }

    /// Whose eyes it is seen through.
    pub fn slot(&self) -> u8 {
        self.slot
    }

    /// The frame to draw now, and its level.
    pub fn frame(&mut self) -> (&Frame, &Arc<Level>) {
        (self.recording.frame(self.at, self.slot), &self.level)
    }

    fn within(&self, ticks: f64) -> f64 {
        let (first, last) = self.recording.ticks();
        ticks.clamp(f64::from(first), f64::from(last))
    }
}

/// Fastest that a recording is played.
const SPEED_MAX: f64 = 16.0;
