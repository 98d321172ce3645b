//! Records a session.

use muse_schema::Schema;

use crate::config::{MatchConfig, Mode};
use crate::frame::Frame;
use crate::game::{DeterministicGame, encode};
use crate::replay::Header;
use crate::replay::container::{CHECKS, File, INPUTS, STATE};
use crate::session::Session;

/// Records the confirmed frames of a session. Call [`record`](Self::record) after frames were run, and write what
/// [`take_bytes`](Self::take_bytes) gives to a file; [`finish`](Self::finish) at the end.
#[derive(Debug)]
pub struct Recorder<G: DeterministicGame> {
    file: File,
    next: Option<Frame>,
    state_every: u32,
    check_every: u32,
    inputs: Vec<u8>,
    inputs_first: Frame,
    last_inputs: Option<(u8, Vec<Option<G::Input>>)>,
    checks: Vec<u8>,
    /// Frames and places of states.
    states: Vec<(Frame, u64)>,
    scratch: Vec<u8>,
}

impl<G: DeterministicGame> Recorder<G> {
    /// A recorder for sessions with these settings. A state is stored every 5 s, to seek to.
    pub fn new(config: &MatchConfig) -> Self {
        let header = Header {
            state: G::TYPE.to_string(),
            input: <G::Input as Schema>::TYPE.to_string(),
            mode: config.mode,
            seats: config.seats,
            frame_micros: config.frame.as_micros().min(u64::from(u32::MAX)) as u32,
        };
        let turns = match config.mode {
            Mode::Rollback => 5_000_000 / config.frame.as_micros().max(1),
            Mode::Lockstep => 1_250_000 / config.frame.as_micros().max(1),
        };
        let check_every = config.check_interval();
        Self {
            file: File::new(&header),
            next: None,
            state_every: (turns as u32)
                .next_multiple_of(check_every)
                .max(check_every),
            check_every,
            inputs: Vec::new(),
            inputs_first: Frame(0),
            last_inputs: None,
            checks: Vec::new(),
            states: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Records what has been confirmed since. Call it at least once a second.
    pub fn record(&mut self, session: &Session<G>) {
        let Some((sure, _)) = session.confirmed_state() else {
            return;
        };
        // It begins with the newest state that is saved: the one about to be run is not yet.
        let saved = |back: u32| Some(sure - back).filter(|at| session.state_at(*at).is_some());
        let begins = || (0..=self.state_every.min(sure.0)).find_map(saved);
        let Some(mut next) = self.next.or_else(begins) else {
            return;
        };
        while next < sure {
            let Some(inputs_first) = self.record_state(session, next) else {
                break;
            };
            if self.inputs.is_empty() {
                self.inputs_first = inputs_first;
                self.last_inputs = None;
            }
            self.record_inputs(session, next);
            next += 1;
            if next.since(self.inputs_first) >= CHUNK_FRAMES {
                self.flush();
            }
        }
        self.next = Some(next);
    }

    /// Everything recorded since this was called last.
    pub fn take_bytes(&mut self) -> Vec<u8> {
        self.file.take_bytes()
    }

    /// The end of the recording: the last bytes, with an index for seeking.
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        self.file
            .finish(self.next.unwrap_or_default(), &self.states)
    }

    /// Stores the state or its checksum, where it is time. `None` if the first state is not there.
    fn record_state(&mut self, session: &Session<G>, frame: Frame) -> Option<Frame> {
        let first = self.states.is_empty();
        let state_due = first || frame.0.is_multiple_of(self.state_every);
        if !state_due && !frame.0.is_multiple_of(self.check_every) {
            return Some(frame);
        }
        let Some(state) = session.state_at(frame) else {
            return (!first).then_some(frame);
        };
        let sum = state.checksum(&mut self.scratch);
        self.checks.extend(frame.0.to_le_bytes());
        self.checks.extend(sum.to_le_bytes());
        if state_due {
            self.flush();
            self.scratch.clear();
            if encode(state, &mut self.scratch).is_ok() {
                self.states.push((frame, self.file.position()));
                self.file.push_frame(STATE, frame, &self.scratch);
            }
        }
        Some(frame)
    }

    /// One byte when nothing has changed; else the steps of the frame, who is there, and what everybody does.
    fn record_inputs(&mut self, session: &Session<G>, frame: Frame) {
        let inputs = session.inputs_at(frame);
        let steps = session.steps_at(frame);
        let same = self
            .last_inputs
            .as_ref()
            .is_some_and(|(last_steps, last)| *last_steps == steps && last.as_slice() == inputs);
        if same {
            self.inputs.push(0);
            return;
        }
        self.inputs.push(steps.max(1));
        let there = inputs
            .iter()
            .enumerate()
            .filter(|(_, input)| input.is_some());
        let mask = there.fold(0u16, |mask, (seat, _)| mask | 1 << seat);
        self.inputs.extend(mask.to_le_bytes());
        for input in inputs.iter().flatten() {
            self.scratch.clear();
            // It has travelled, so it encodes.
            let _ = encode(input, &mut self.scratch);
            self.inputs
                .extend((self.scratch.len() as u16).to_le_bytes());
            self.inputs.extend(&self.scratch);
        }
        self.last_inputs = Some((steps, inputs.to_vec()));
    }

    fn flush(&mut self) {
        if !self.inputs.is_empty() {
            self.file
                .push_frame(INPUTS, self.inputs_first, &self.inputs);
            self.inputs.clear();
        }
        if !self.checks.is_empty() {
            self.file.push(CHECKS, &self.checks);
            self.checks.clear();
        }
    }
}

impl Header {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for text in [&self.state, &self.input] {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.push(match self.mode {
            Mode::Lockstep => 0,
            Mode::Rollback => 1,
        });
        bytes.push(self.seats);
        bytes.extend(self.frame_micros.to_le_bytes());
        bytes
    }
}

/// Frames in one chunk of inputs: what is lost at most when a recording breaks off.
const CHUNK_FRAMES: u32 = 60;
