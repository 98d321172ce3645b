//! Running frames, again where a guess was wrong, and checking those that are confirmed.

use muse_wire::{Duration, Instant, log};

use crate::config::Mode;
use crate::frame::Frame;
use crate::game::{DeterministicGame, Step, encode};
use crate::packet::Check;
use crate::session::inputs::Value;
use crate::session::{Session, SessionEvent, Status};
use crate::stream::{Entry, InputBytes};

impl<G: DeterministicGame> Session<G> {
    /// Runs what is due, and what is behind.
    pub(super) fn run_due(&mut self, now: Instant, mut ask: Ask<'_, G>) {
        self.roll_back();
        self.settle();
        for _ in 0..STEPS_PER_CALL_MAX {
            let behind = self.is_behind();
            if !behind && now < self.pace.next_at() {
                break;
            }
            if self.step_index == 0 {
                self.give_input(&mut ask);
                if !self.can_run() {
                    self.stall(now);
                    break;
                }
                self.status = Status::Running;
            }
            if behind {
                self.run_frame();
                if self.catching_up {
                    self.statistics.caught_up += 1;
                }
                self.pace.begin(now);
            } else {
                self.run_step();
                self.pace.advance(now);
            }
            self.settle();
        }
        if !self.is_behind() && self.statistics.caught_up > 0 {
            self.catching_up = false;
        }
    }

    /// True if the next frame may run: in lockstep when it is confirmed, in rollback within the window.
    pub(super) fn can_run(&self) -> bool {
        self.step_index > 0
            || self.confirmed > self.frame
            || self.mode() == Mode::Rollback
                && self.frame.since(self.confirmed) < self.config.window
    }

    /// True if the others are so far ahead that frames have to be run without waiting for their time.
    pub(super) fn is_behind(&self) -> bool {
        // A player's own inputs reach no further than its delay; when more is confirmed, others stood in for them.
        let slack = match self.playing {
            true => self.delay_most + 1,
            false => WATCHING_BEHIND,
        };
        self.confirmed.since(self.frame) > slack
    }

    /// The mode of this machine: a spectator sees confirmed frames alone.
    fn mode(&self) -> Mode {
        match self.playing {
            true => self.config.mode,
            false => Mode::Lockstep,
        }
    }

    fn stall(&mut self, now: Instant) {
        self.statistics.stalls += 1;
        self.status = Status::Waiting {
            seats: self.inputs.missing(self.confirmed),
        };
        self.pace.begin(now);
    }

    /// Gives the player's input for the frame `delay` after the next one, once.
    fn give_input(&mut self, ask: &mut Ask<'_, G>) {
        let Some(seat) = self.seat.filter(|_| self.playing) else {
            return;
        };
        let target = self.frame + self.delay;
        if self.own.end() > target {
            return;
        }
        // More delay than before, or the first frames: something has to stand in for what was never given.
        while self.own.end() < target {
            let (age, last) = self.inputs.given_before(self.own.end(), seat);
            let filler = G::predict(last, age + 1);
            self.push_own(filler);
        }
        if let Some(ask) = ask {
            self.take_input(ask(target));
        }
        // An input holds for one frame, in either mode.
        let input = match self.config.mode {
            Mode::Rollback if ask.is_none() => self.input.clone(),
            _ => std::mem::take(&mut self.input),
        };
        let changed = self.config.mode == Mode::Rollback
            && *self.inputs.given_before(self.own.end(), seat).1 != input;
        self.push_own(input);
        self.send.dirty = true;
        self.send.again = changed;
    }

    /// Takes the input that was asked for, together with commands that came too late before.
    fn take_input(&mut self, mut input: G::Input) {
        let late = std::mem::take(&mut self.input);
        if late != G::Input::default() {
            G::carry_over(&late, &mut input);
        }
        self.input_refused |= self.set_input(input).is_err();
    }

    fn push_own(&mut self, input: G::Input) {
        let Some(seat) = self.seat else { return };
        let frame = self.own.end();
        self.scratch.clear();
        // The input was checked when it was set; a prediction is made of checked inputs.
        let _ = encode(&input, &mut self.scratch);
        self.own.push(Entry::Given(InputBytes::new(&self.scratch)));
        let wrong = self
            .inputs
            .set(seat, frame, Value::Given(input), false, self.frame);
        self.note_wrong(frame, wrong);
    }

    pub(super) fn note_wrong(&mut self, frame: Frame, wrong: bool) {
        if wrong {
            let earlier = self.wrong_from.is_none_or(|from| frame < from);
            self.wrong_from = if earlier {
                Some(frame)
            } else {
                self.wrong_from
            };
        }
    }

    /// Goes back to before the first wrong guess and runs everything since again.
    fn roll_back(&mut self) {
        let Some(wrong) = self.wrong_from.take() else {
            return;
        };
        let depth = self.frame.since(wrong);
        if self.run_again_from(wrong) {
            log!(trace, frame = self.frame.0, depth, "rolled back");
            self.statistics.rollbacks += 1;
            self.statistics.depth_max = self.statistics.depth_max.max(depth);
        }
    }

    /// Loads the newest state that is not after `frame` and runs up to where the session is. False if there is none.
    pub(super) fn run_again_from(&mut self, frame: Frame) -> bool {
        let end = self.frame;
        let Some((from, saved)) = self.history.at_or_before(frame.min(end)) else {
            return false;
        };
        self.state.clone_from(saved);
        self.frame = from;
        let steps_run = std::mem::take(&mut self.step_index);
        while self.frame < end {
            let frame = self.frame;
            if frame > from {
                self.history.save(frame, &self.state);
            }
            self.run_steps(frame, 0, self.steps_of(frame));
            self.events.run_again(frame, frame < self.finalized);
            self.frame += 1;
            self.statistics.resimulated += 1;
        }
        if steps_run > 0 {
            self.history.save(end, &self.state);
            self.run_steps(end, 0, steps_run);
            self.step_index = steps_run;
        }
        true
    }

    /// Runs the next frame whole.
    fn run_frame(&mut self) {
        let frame = self.frame;
        while self.frame == frame {
            self.run_step();
        }
    }

    /// Runs the next step; after the last one of a frame the next frame is next.
    fn run_step(&mut self) {
        let frame = self.frame;
        if self.step_index == 0 {
            self.history.save(frame, &self.state);
        }
        self.run_steps(frame, self.step_index, self.step_index + 1);
        self.step_index += 1;
        if self.step_index >= self.steps_of(frame) {
            self.events.first_run(frame);
            self.step_index = 0;
            self.frame += 1;
            self.statistics.frames += 1;
            let (_, _, step) = self.plan_of(self.frame);
            self.pace.set_step(step);
        }
    }

    /// Commands are given to the first step of a frame; the others have none.
    #[inline]
    fn run_steps(&mut self, frame: Frame, first: u8, end: u8) {
        if first == 0 && end > 0 {
            let inputs = self.inputs.choose(frame);
            let events = &mut self.events.scratch;
            self.state.step(&mut Step::new(frame, inputs, events));
        }
        if end > 1 {
            self.run_idle_steps(frame, first.max(1), end);
        }
    }

    fn run_idle_steps(&mut self, frame: Frame, first: u8, end: u8) {
        for _ in first..end {
            let events = &mut self.events.scratch;
            for (idle, used) in self.idle.iter_mut().zip(self.inputs.used(frame)) {
                *idle = used.as_ref().map(|_| G::Input::default());
            }
            self.state.step(&mut Step::new(frame, &self.idle, events));
        }
    }

    pub(super) fn steps_of(&self, frame: Frame) -> u8 {
        self.plan_of(frame).1
    }

    #[inline]
    fn plan_of(&self, frame: Frame) -> (Frame, u8, Duration) {
        if let Some(last) = self.plans.back().filter(|last| last.0 <= frame) {
            return *last;
        }
        let plan = self.plans.iter().rev().find(|plan| plan.0 <= frame);
        let first = self.plans.front();
        *plan.or(first).unwrap_or(&(Frame(0), 1, self.config.frame))
    }

    /// Frames have been confirmed: tells what is final and takes checksums.
    fn settle(&mut self) {
        if self.wrong_from.is_some() {
            return;
        }
        let sure = self.confirmed.min(self.frame);
        while self.finalized < sure {
            self.events.finalize(self.finalized);
            self.finalized += 1;
        }
        let interval = self.config.check_interval();
        while self.checked + interval <= sure {
            self.checked += interval;
            let frame = self.checked;
            let Some(sum) = self.sum_of(frame) else {
                continue;
            };
            self.check = Some(Check {
                frame,
                epoch: self.epoch,
                sum,
            });
            self.send.check_copies = CHECK_COPIES;
        }
        while self
            .plans
            .get(1)
            .is_some_and(|next| next.0 + self.config.history < sure)
        {
            self.plans.pop_front();
        }
    }

    /// The checksum of the state before `frame` is run.
    fn sum_of(&mut self, frame: Frame) -> Option<u32> {
        let state = match frame == self.frame && self.step_index == 0 {
            true => &self.state,
            false => self.history.get(frame)?,
        };
        Some(state.checksum(&mut self.scratch) as u32)
    }

    /// Goes on from a state of `frame` that was given.
    pub(super) fn load(&mut self, now: Instant, frame: Frame, state: G) {
        let end = self.frame;
        let joining = self.status == Status::Joining;
        self.state = state;
        self.step_index = 0;
        self.history.clear();
        self.history.save(frame, &self.state);
        self.wrong_from = None;
        self.frame = frame;
        if joining {
            (self.first, self.confirmed) = (frame, frame);
            self.finalized = frame;
            let interval = self.config.check_interval();
            self.checked = Frame(frame.0 - frame.0 % interval);
            self.status = Status::Running;
            self.catching_up = true;
            self.pace.begin(now);
            self.tell(SessionEvent::Begun(frame));
            return;
        }
        self.checked = Frame(frame.0 - frame.0 % self.config.check_interval());
        while self.frame < end {
            let at = self.frame;
            self.history.save(at, &self.state);
            self.run_steps(at, 0, self.steps_of(at));
            self.events.run_again(at, at < self.finalized);
            self.frame += 1;
        }
        self.tell(SessionEvent::Mended(frame));
    }

    /// Goes back to this machine's own state of `good` and runs on from there.
    pub(super) fn resimulate(&mut self, good: Frame) {
        if self.run_again_from(good) {
            let interval = self.config.check_interval();
            self.checked = Frame(good.0 - good.0 % interval);
            self.check = None;
            self.wrong_from = None;
            self.tell(SessionEvent::Mended(good));
        }
    }
}

/// Asks for the player's input of a frame.
type Ask<'a, G> = Option<&'a mut dyn FnMut(Frame) -> <G as DeterministicGame>::Input>;

/// Steps that one call runs; more come with the next one.
const STEPS_PER_CALL_MAX: usize = 64;
/// Confirmed frames that a spectator may have before it hurries.
const WATCHING_BEHIND: u32 = 6;
/// Packets that carry a checksum: one of them will arrive.
const CHECK_COPIES: u8 = 3;
