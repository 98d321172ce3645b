//! Finds nondeterminism on one machine: every frame is run again after random rollbacks, and must come out the same.

use core::fmt;

use crate::diff::{Difference, differences};
use crate::frame::Frame;
use crate::game::{DeterministicGame, Step, decode, encode};
use crate::rng::Rng;
use crate::session::History;

/// Runs a game with random rollbacks, and through its encoding now and then. Wrong is what depends on anything but state and inputs, and what is
/// kept outside of the state.
///
/// ```
/// use muse_lockstep::SyncTest;
/// use muse_lockstep::samples::duel::{Buttons, Duel};
///
/// let mut test = SyncTest::new(Duel::new(1), 7, 8);
/// for frame in 0..500u32 {
///     let buttons = Buttons::from_bits((frame / 9 * 37) as u8);
///     test.step(&[Some(buttons), Some(Buttons::default())])?;
/// }
/// # Ok::<(), Box<muse_lockstep::SyncError>>(())
/// ```
#[derive(Debug)]
pub struct SyncTest<G: DeterministicGame> {
    state: G,
    frame: Frame,
    depth_max: u32,
    rng: Rng,
    history: History<G>,
    inputs: Vec<Vec<Option<G::Input>>>,
    sums: Vec<u64>,
    events: Vec<Vec<G::Event>>,
}

/// A frame came out differently the second time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncError {
    /// The frame.
    pub frame: Frame,
    /// The fields that differ; "here" is the first run, "there" the second. Empty if only the events differed.
    pub fields: Vec<Difference>,
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "frame {} came out differently when it was run again",
            self.frame
        )?;
        self.fields
            .iter()
            .try_for_each(|field| write!(f, "; {field}"))
    }
}

impl std::error::Error for SyncError {}

impl<G: DeterministicGame> SyncTest<G> {
    /// A test that begins with this state and rolls back up to `depth_max` frames at random.
    pub fn new(state: G, seed: u64, depth_max: u32) -> Self {
        let depth_max = depth_max.max(1);
        Self {
            state,
            frame: Frame(0),
            depth_max,
            rng: Rng::new(seed),
            history: History::new(depth_max + 2, 1),
            inputs: Vec::new(),
            sums: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The state.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// Runs a frame, then goes back at random and runs everything since again.
    pub fn step(&mut self, inputs: &[Option<G::Input>]) -> Result<(), Box<SyncError>> {
        self.inputs.push(inputs.to_vec());
        self.history.save(self.frame, &self.state);
        let (sum, events) = self.run_one(self.frame);
        self.sums.push(sum);
        self.events.push(events);
        self.frame += 1;
        let depth = self.rng.below(self.depth_max + 1).min(self.frame.0);
        let Some((from, saved)) = self.history.at_or_before(self.frame - depth) else {
            return Ok(());
        };
        if from >= self.frame {
            return Ok(());
        }
        // A player who joins gets the state by its encoding: nothing may be lost there either.
        let mut bytes = Vec::new();
        self.state = match self.rng.below(4) {
            0 if encode(saved, &mut bytes).is_ok() => {
                decode(&bytes).unwrap_or_else(|_| saved.clone())
            }
            _ => saved.clone(),
        };
        for frame in (from.0..self.frame.0).map(Frame) {
            let before = self.history.get(frame + 1).cloned();
            self.check_again(frame, before)?;
        }
        Ok(())
    }

    fn check_again(&mut self, frame: Frame, before: Option<G>) -> Result<(), Box<SyncError>> {
        let (sum, events) = self.run_one(frame);
        let index = frame.0 as usize;
        if sum == self.sums[index] && events == self.events[index] {
            return Ok(());
        }
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let encoded = before.map(|before| encode(&before, &mut first));
        let fields = match (encoded, encode(&self.state, &mut second)) {
            (Some(Ok(())), Ok(())) => differences(&G::TYPE, &first, &second, FIELDS_MAX),
            _ => Vec::new(),
        };
        Err(Box::new(SyncError { frame, fields }))
    }

    fn run_one(&mut self, frame: Frame) -> (u64, Vec<G::Event>) {
        let mut events = Vec::new();
        let inputs = &self.inputs[frame.0 as usize];
        self.state.step(&mut Step::new(frame, inputs, &mut events));
        (self.state.checksum(&mut Vec::new()), events)
    }
}

const FIELDS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use muse_schema::Schema;

    use super::*;

    thread_local! {
        static OUTSIDE: Cell<u32> = const { Cell::new(0) };
    }

    #[derive(Clone, Schema)]
    struct Leaky {
        steps: u32,
        hidden: u32,
    }

    impl DeterministicGame for Leaky {
        type Input = bool;
        type Event = ();

        fn step(&mut self, step: &mut Step<'_, Self>) {
            self.steps += 1;
            OUTSIDE.set(OUTSIDE.get() + 1);
            if step.input(0) == Some(&true) {
                self.hidden = OUTSIDE.get();
            }
        }
    }

    #[test]
    fn what_is_kept_outside_of_the_state_is_found_and_named() {
        let mut test = SyncTest::new(
            Leaky {
                steps: 0,
                hidden: 0,
            },
            1,
            4,
        );
        let clean = (0..50).try_for_each(|_| test.step(&[Some(false)]));
        assert_eq!(clean, Ok(()));
        let found = (0..50).try_for_each(|_| test.step(&[Some(true)]));
        let error = found.expect_err("the counter outside goes on counting");
        assert!(error.frame.0 >= 50);
        let named = error.fields.iter().any(|field| field.path == "hidden");
        assert!(named || error.fields.is_empty(), "{error}");
    }
}
