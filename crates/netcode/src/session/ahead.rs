//! Another player where it is by now, if it goes on doing what it did last.

use muse_schema::{BitReader, Blend, Options, Schema, State};

use crate::extrapolation::by_last_input;
use crate::prediction::Game;
use crate::smoothing::{Smoothing, SmoothingConfig};
use crate::{Tick, TickTime};

/// One entity, simulated ahead of what has arrived of it.
#[derive(Debug)]
pub(super) struct Ahead<S> {
    /// The newest knowledge: a state, its tick, and the player's input then.
    news: Option<(Tick, S)>,
    input: Vec<u8>,
    /// The states before and at the tick shown last.
    around: Option<(Tick, S, S)>,
    shown_at: Option<f64>,
    smoothing: Smoothing<S>,
}

impl<S: State> Ahead<S> {
    pub(super) fn new(smoothing: SmoothingConfig) -> Self {
        Self {
            news: None,
            input: Vec::new(),
            around: None,
            shown_at: None,
            smoothing: Smoothing::new(smoothing),
        }
    }

    /// The newest of what is known; what is shown moves over from what was expected.
    pub(super) fn handle_news<G: Game<Player = S>>(
        &mut self,
        rules: &mut G,
        (tick, state): (Tick, &S),
        input: Option<&[u8]>,
        distance: fn(&S, &S) -> f32,
    ) {
        let input = input.unwrap_or_default();
        let same = self.news.as_ref().is_some_and(|(known, _)| *known == tick);
        if same && self.input == input {
            return;
        }
        self.news = Some((tick, state.clone()));
        self.input.clear();
        self.input.extend_from_slice(input);
        let Some((shown, _, before)) = self.around.take() else {
            return;
        };
        self.simulate(rules, shown);
        if let Some((_, _, after)) = &self.around {
            self.smoothing
                .correct(&before, after, distance(&before, after));
        }
    }

    /// The entity at an instant of the client's own game.
    pub(super) fn show<G: Game<Player = S>>(
        &mut self,
        rules: &mut G,
        time: TickTime,
        tick_seconds: f32,
    ) -> Option<S> {
        if let Some(last) = self.shown_at.replace(time.ticks()) {
            let seconds = (time.ticks() - last) as f32 * tick_seconds;
            self.smoothing.advance(seconds);
        }
        if self
            .around
            .as_ref()
            .is_none_or(|(tick, ..)| *tick != time.tick)
        {
            self.simulate(rules, time.tick);
        }
        let (_, before, after) = self.around.as_ref()?;
        let blend = Blend {
            share: time.share(),
            seconds: tick_seconds,
        };
        Some(self.smoothing.show(&before.blend(after, blend)))
    }

    fn simulate<G: Game<Player = S>>(&mut self, rules: &mut G, tick: Tick) {
        let Some((known, state)) = &self.news else {
            return;
        };
        let mut reader = BitReader::new(&self.input);
        // An unknown or unreadable input counts as doing nothing.
        let input = G::Input::read(&Options::NONE, &mut reader).unwrap_or_default();
        let ticks = (tick - *known).clamp(0, i64::from(u32::MAX)) as u32;
        let mut after =
            |state: &S, from: Tick, ticks| by_last_input(rules, state, &input, from, ticks);
        let before = after(state, *known, ticks.saturating_sub(1));
        let now = match ticks {
            0 => before.clone(),
            _ => after(&before, *known + (ticks - 1), 1),
        };
        self.around = Some((tick, before, now));
    }
}
