//! Events of predicted ticks, each told once.

use std::collections::VecDeque;

use crate::Tick;

/// News about an event that a step emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect<E> {
    /// The tick in which it happens.
    pub tick: Tick,
    /// The event that the step emitted.
    pub event: E,
    /// The news about it.
    pub change: EffectChange,
}

/// The news about an event. Each is emitted once, and then confirmed, contradicted or cancelled, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectChange {
    /// It happens now: show what may be shown before the server agrees (a muzzle flash, a sound).
    Emitted,
    /// The server's state of its tick has come, as predicted: show the rest.
    Confirmed,
    /// The server's state of its tick has come and is another than predicted, or could not be compared with anything: it may not have happened. Leave it
    /// to what the server tells.
    Contradicted,
    /// A correction made it undone: take it back if it can be.
    Cancelled,
}

/// The events that were emitted and are not settled, and the news about them.
#[derive(Debug)]
pub(super) struct Effects<E> {
    pending: Vec<Pending<E>>,
    news: VecDeque<Effect<E>>,
    again: bool,
}

#[derive(Debug)]
struct Pending<E> {
    tick: Tick,
    event: E,
    /// Seen again while ticks are simulated again.
    seen: bool,
}

impl<E: Clone + PartialEq> Effects<E> {
    pub(super) fn new() -> Self {
        Self {
            pending: Vec::with_capacity(PENDING_MAX),
            news: VecDeque::with_capacity(NEWS_MAX),
            again: false,
        }
    }

    pub(super) fn emit(&mut self, tick: Tick, event: E) {
        if self.again {
            let known = |pending: &&mut Pending<E>| {
                pending.tick == tick && !pending.seen && pending.event == event
            };
            if let Some(pending) = self.pending.iter_mut().find(known) {
                pending.seen = true;
                return;
            }
        }
        // Beyond the limit events of the tick are lost rather than told half.
        if self.pending.len() == PENDING_MAX {
            return;
        }
        self.tell(tick, event.clone(), EffectChange::Emitted);
        let seen = true;
        self.pending.push(Pending { tick, event, seen });
    }

    /// All ticks after this one are about to be simulated again. Events before it wait until the server says something of the own player.
    pub(super) fn begin_again(&mut self, base: Tick) {
        self.again = true;
        self.pending
            .iter_mut()
            .for_each(|pending| pending.seen = pending.tick <= base);
    }

    pub(super) fn end_again(&mut self) {
        self.again = false;
        self.settle(|pending| !pending.seen, EffectChange::Cancelled);
    }

    /// The server has agreed with all ticks up to this one.
    pub(super) fn confirm(&mut self, tick: Tick) {
        self.settle(|pending| pending.tick <= tick, EffectChange::Confirmed);
    }

    /// The server has spoken about all ticks up to this one, and says otherwise or something that nothing can be compared with.
    pub(super) fn contradict(&mut self, tick: Tick) {
        self.settle(|pending| pending.tick <= tick, EffectChange::Contradicted);
    }

    pub(super) fn poll(&mut self) -> Option<Effect<E>> {
        self.news.pop_front()
    }

    fn settle(&mut self, settled: impl Fn(&Pending<E>) -> bool, change: EffectChange) {
        let mut index = 0;
        while index < self.pending.len() {
            if settled(&self.pending[index]) {
                let Pending { tick, event, .. } = self.pending.remove(index);
                self.tell(tick, event, change);
            } else {
                index += 1;
            }
        }
    }

    fn tell(&mut self, tick: Tick, event: E, change: EffectChange) {
        // Somebody does not listen: the oldest news are the least interesting.
        if self.news.len() == NEWS_MAX {
            self.news.pop_front();
        }
        self.news.push_back(Effect {
            tick,
            event,
            change,
        });
    }
}

/// Most events not settled.
const PENDING_MAX: usize = 256;
/// Most news kept for [`poll`](Effects::poll).
const NEWS_MAX: usize = 512;
