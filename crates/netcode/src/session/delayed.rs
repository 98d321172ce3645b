//! The world of a while ago, for spectators who must not help players.
//!
//! Packets to them are old already when they leave the server; a delay in the client would keep nobody from looking. Their view of that world
//! works as everyone's view of the present does.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::Tick;
use crate::world::World;
use crate::world::mirror::{Change, Noted};

/// A world that follows another after a number of ticks.
#[derive(Debug)]
pub(super) struct Delayed {
    ticks: u32,
    world: World,
    noted: Noted,
    tape: VecDeque<(Tick, Vec<Change>)>,
}

impl Delayed {
    pub(super) fn new(world: &World, ticks: u32) -> Self {
        Self {
            ticks,
            world: World::new(Arc::clone(world.kinds())),
            noted: Noted::default(),
            tape: VecDeque::new(),
        }
    }

    pub(super) const fn ticks(&self) -> u32 {
        self.ticks
    }

    /// As it was then; empty before the delay has passed for the first time.
    pub(super) const fn world(&self) -> &World {
        &self.world
    }

    /// The present went on to this tick.
    pub(super) fn handle_commit(&mut self, present: &World, tick: Tick) {
        let changes = present.changes(tick, &mut self.noted);
        self.tape.push_back((tick, changes));
        while let Some((then, _)) = self.tape.front()
            && tick - *then >= i64::from(self.ticks)
            && let Some((then, changes)) = self.tape.pop_front()
        {
            for change in changes {
                self.world.apply(change);
            }
            // Ticks come in order, which is all that could be wrong.
            let _ = self.world.commit(then);
        }
    }
}
