//! One machine of a match: runs the game, in lockstep or with rollback.
//!
//! Both modes are one mechanism. Inputs come in per player; a frame is *confirmed* when everybody's are final. Lockstep runs confirmed
//! frames only; rollback runs on with guesses, and again from where a guess was wrong. The parts: `inputs` (what is known of
//! whom), `history` (saved states), `simulate` (running, rolling back, checking), `network` (packets), `trace` (desynchronisation).

mod events;
mod history;
mod inputs;
mod network;
mod pace;
mod simulate;
mod succession;
mod trace;

use std::collections::VecDeque;

use muse_wire::{Duration, Instant, log};
use thiserror::Error;

use crate::blob::{BlobReceiver, BlobSender};
use crate::config::{DELAY_MAX, MatchConfig, MatchConfigError, Mode};
use crate::frame::{Frame, Seat};
use crate::game::{DeterministicGame, encode};
use crate::link::Link;
use crate::packet::{Check, Control, OverReason};
use crate::stream::{INPUT_BYTES_MAX, Stream};
use events::Events;
pub use events::{GAME_EVENTS_MAX, GameEvent};
pub use history::History;
use inputs::Inputs;
pub use network::Target;
use pace::Pace;
pub use trace::{Report, Trace};

/// The stage of a machine in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// Nobody has answered yet.
    Connecting,
    /// The others are not there yet.
    Lobby,
    /// The match is under way; its state is on the way.
    Joining,
    /// It runs.
    Running,
    /// It runs, but cannot go on: inputs of these players, one bit per seat, are missing.
    Waiting {
        /// Bit n for seat n.
        seats: u32,
    },
    /// It is over for this machine.
    Over(OverReason),
    /// Nothing has been heard of the orderer for too long.
    Lost,
}

/// Something that happened to the session; for the game's own events see [`Session::poll_game_event`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SessionEvent {
    /// The match began, or this machine has joined it, at this frame.
    Begun(Frame),
    /// Somebody plays from this frame on.
    Joined(Seat, Frame),
    /// Somebody is gone from this frame on.
    Left(Seat, Frame),
    /// Turns have changed: their number of steps, and the length of a step.
    Pace(u8, Duration),
    /// This machine's state differed from the others', and is being repaired. The report says what differed.
    Desynced(Box<Report>),
    /// The state was set back to that of a frame, and run again from there.
    Mended(Frame),
    /// Another orderer goes on with the match.
    Resumed,
    /// It is over.
    Over(OverReason),
}

/// The part of a machine: it plays or watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Any free seat.
    Player,
    /// This seat if it is free: for a player who comes back.
    PlayerAt(Seat),
    /// None: sees every confirmed frame.
    Spectator,
}

/// An input that cannot travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the input cannot be encoded in {INPUT_BYTES_MAX} bytes")]
pub struct InputError;

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Frames run for the first time.
    pub frames: u64,
    /// Rollbacks.
    pub rollbacks: u64,
    /// Frames run again in rollbacks.
    pub resimulated: u64,
    /// Most frames that one rollback ran again.
    pub depth_max: u32,
    /// Frames that were due and could not run.
    pub stalls: u64,
    /// Frames run to catch up after joining.
    pub caught_up: u32,
    /// Steps that late inputs of this player were replaced.
    pub replaced: u64,
    /// Packets that were not understood.
    pub refused_packets: u64,
}

/// One machine of a match. Give it packets, call [`handle_timeout`](Self::handle_timeout) when
/// [`poll_timeout`](Self::poll_timeout) has passed, which runs the frames that are due, and send what
/// [`poll_packet`](Self::poll_packet) gives. `muse::deterministic` does so over connections.
///
/// Set the [input](Self::set_input) before; draw [`state`](Self::state) after.
#[derive(Debug)]
pub struct Session<G: DeterministicGame> {
    config: MatchConfig,
    contract: u64,
    role: Role,
    nonce: u32,
    status: Status,
    seat: Option<Seat>,
    /// This seat's player is in the match: its inputs count.
    playing: bool,
    state: G,
    /// The frame to be run next, and how many of its steps have been.
    frame: Frame,
    step_index: u8,
    /// The frame of the first state: of the match, or of the one that was given to a machine that joined late.
    first: Frame,
    confirmed: Frame,
    /// Frames before this have been told as final.
    finalized: Frame,
    /// The first frame that was run with a wrong guess.
    wrong_from: Option<Frame>,
    inputs: Inputs<G>,
    idle: Vec<Option<G::Input>>,
    history: History<G>,
    events: Events<G::Event>,
    /// The player's input as it stands.
    input: G::Input,
    /// An input that was asked for could not travel.
    input_refused: bool,
    delay: u32,
    /// The longest delay there was: so far ahead of the next frame inputs may be confirmed.
    delay_most: u32,
    own: Stream,
    link: Link<network::Held>,
    heard: Option<Instant>,
    send: network::Sending,
    /// All that the orderer has said about the course of the match.
    controls: Vec<Control>,
    plans: VecDeque<(Frame, u8, Duration)>,
    pace: Pace,
    cost: Duration,
    lags: Vec<u8>,
    checked: Frame,
    check: Option<Check>,
    epoch: u8,
    task_done: Option<u8>,
    blob_out: Option<BlobSender>,
    blob_in: Option<BlobReceiver>,
    blob_taken: Option<u8>,
    own_trace: Option<Trace>,
    scratch: Vec<u8>,
    out: VecDeque<SessionEvent>,
    statistics: Statistics,
    directs: u32,
    catching_up: bool,
}

impl<G: DeterministicGame> Session<G> {
    /// A session that begins with this state, the same on all machines. `nonce` tells one life of this client from the next: any number
    /// that was not used before.
    pub fn new(
        config: MatchConfig,
        state: G,
        role: Role,
        nonce: u32,
    ) -> Result<Self, MatchConfigError> {
        config.check_for::<G>()?;
        let seats = config.seats();
        let window = config.history.max(config.window * 2) + 2 * DELAY_MAX + 64;
        Ok(Self {
            contract: config.contract::<G>(),
            role,
            nonce,
            status: Status::Connecting,
            seat: None,
            playing: false,
            state,
            frame: Frame(0),
            step_index: 0,
            first: Frame(0),
            confirmed: Frame(0),
            finalized: Frame(0),
            wrong_from: None,
            inputs: Inputs::new(seats, window * 2),
            idle: vec![None; seats],
            history: History::new(config.history, config.save_every),
            events: Events::new(window),
            input: G::Input::default(),
            input_refused: false,
            delay: config.delay,
            delay_most: config.delay,
            own: Stream::new(Frame(0)),
            link: Link::new(),
            heard: None,
            send: network::Sending::default(),
            controls: Vec::new(),
            plans: VecDeque::new(),
            pace: Pace::new(config.frame),
            cost: Duration::ZERO,
            lags: vec![0; seats],
            checked: Frame(0),
            check: None,
            epoch: 0,
            task_done: None,
            blob_out: None,
            blob_in: None,
            blob_taken: None,
            own_trace: None,
            scratch: Vec::new(),
            out: VecDeque::new(),
            statistics: Statistics::default(),
            directs: 0,
            catching_up: false,
            config,
        })
    }

    /// The state to be shown: with guesses in rollback.
    pub fn state(&self) -> &G {
        &self.state
    }

    /// The state, to break it on purpose in a test.
    pub fn danger_state_mut(&mut self) -> &mut G {
        &mut self.state
    }

    /// The frame (or turn) that is run next.
    pub fn frame(&self) -> Frame {
        self.frame
    }

    /// The first frame whose inputs are not all final.
    pub fn confirmed(&self) -> Frame {
        self.confirmed
    }

    /// The newest saved state that no late input can change, and its frame.
    pub fn confirmed_state(&self) -> Option<(Frame, &G)> {
        let frame = self
            .confirmed
            .min(self.frame)
            .min(self.wrong_from.unwrap_or(Frame::NEVER));
        if frame == self.frame && self.step_index == 0 {
            return Some((frame, &self.state));
        }
        self.history.at_or_before(frame)
    }

    /// The saved state of a frame, before it was run.
    pub fn state_at(&self, frame: Frame) -> Option<&G> {
        self.history.get(frame)
    }

    /// Returns the inputs that a frame was run with, one entry per seat.
    pub fn inputs_at(&self, frame: Frame) -> &[Option<G::Input>] {
        self.inputs.used(frame)
    }

    /// Returns the number of steps of a frame: one in rollback, in lockstep as speed control says.
    pub fn steps_at(&self, frame: Frame) -> u8 {
        self.steps_of(frame)
    }

    /// Returns the stage of the session.
    pub fn status(&self) -> Status {
        self.status
    }

    /// This machine's seat, once it has one.
    pub fn seat(&self) -> Option<Seat> {
        self.seat
    }

    /// The settings.
    pub fn config(&self) -> &MatchConfig {
        &self.config
    }

    /// Sets the player's input from now on. In rollback it holds until it is set again; in lockstep it is the commands of the
    /// turn, taken when the turn begins.
    pub fn set_input(&mut self, input: G::Input) -> Result<(), InputError> {
        self.scratch.clear();
        encode(&input, &mut self.scratch).map_err(|_| InputError)?;
        if self.scratch.len() > INPUT_BYTES_MAX {
            return Err(InputError);
        }
        self.input = input;
        Ok(())
    }

    /// The input as it stands, to add commands to.
    pub fn input(&self) -> &G::Input {
        &self.input
    }

    /// Frames between giving an input and its running, from now on. More delay means fewer rollbacks. In lockstep the delay is
    /// everybody's and stays.
    pub fn set_delay(&mut self, frames: u32) {
        if self.config.mode == Mode::Rollback {
            self.delay = frames.min(DELAY_MAX);
            self.delay_most = self.delay_most.max(self.delay);
        }
    }

    /// The delay.
    pub fn delay(&self) -> u32 {
        self.delay
    }

    /// Reports how long a step takes on this machine, for speed control: to be called now and then.
    pub fn report_cost(&mut self, step: Duration) {
        self.cost = step;
    }

    /// Returns when the orderer was last heard.
    pub fn heard_at(&self) -> Option<Instant> {
        self.heard
    }

    /// The round trip to the orderer.
    pub fn rtt(&self) -> Option<Duration> {
        self.link.rtt()
    }

    /// Returns a player's distance from the orderer, as the orderer said within the last second; `None` for one who is silent. Zero for an empty
    /// seat.
    pub fn lag(&self, seat: Seat) -> Option<Duration> {
        let units = *self.lags.get(seat.index())?;
        let micros = u64::from(units) * crate::orderer::LAG_UNIT_MICROS;
        (units != 255).then(|| Duration::from_micros(micros))
    }

    /// Returns by how many frames this machine runs ahead of the others; negative when it is behind.
    pub fn advantage(&self) -> f32 {
        self.pace.advantage()
    }

    /// Returns the session's counters.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Sends inputs to these players directly as well, one bit per seat, so that they need not come by way of the orderer.
    pub fn set_directs(&mut self, seats: u32) {
        self.directs = seats;
    }

    /// Returns the next thing that happened to the session.
    pub fn poll_event(&mut self) -> Option<SessionEvent> {
        self.out.pop_front()
    }

    /// Returns the next event of the game.
    pub fn poll_game_event(&mut self) -> Option<GameEvent<G::Event>> {
        self.events.poll()
    }

    /// Runs the last frames again, as after a wrong guess: a sync test within a match. False if they are no longer known.
    pub fn run_again(&mut self, frames: u32) -> bool {
        self.run_again_from(self.frame - frames)
    }

    /// Leaves the match.
    pub fn leave(&mut self) {
        if !matches!(self.status, Status::Over(_) | Status::Lost) {
            self.send.bye = true;
            self.status = Status::Over(OverReason::Over);
        }
    }

    /// Lets time pass: runs the frames that are due, with the input that was [set](Self::set_input).
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pass_time(now, None);
    }

    /// Lets time pass, and asks for the player's input once for each frame (rollback) or turn (lockstep) that takes one; `input` is
    /// told the frame that the input will run in. An input that cannot travel is replaced by the default one, and reported.
    pub fn handle_timeout_with(
        &mut self,
        now: Instant,
        mut input: impl FnMut(Frame) -> G::Input,
    ) -> Result<(), InputError> {
        self.pass_time(now, Some(&mut input));
        match std::mem::take(&mut self.input_refused) {
            true => Err(InputError),
            false => Ok(()),
        }
    }

    fn pass_time(&mut self, now: Instant, ask: Option<&mut dyn FnMut(Frame) -> G::Input>) {
        match self.status {
            Status::Running | Status::Waiting { .. } => self.run_due(now, ask),
            _ => {}
        }
        let silent = self
            .heard
            .is_some_and(|heard| heard + self.config.drop_after <= now);
        if silent && !matches!(self.status, Status::Over(_)) {
            self.status = Status::Lost;
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) or [`poll_packet`](Self::poll_packet) next.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        let next = match self.status {
            Status::Over(_) | Status::Lost => self.send.bye.then_some(now),
            Status::Running | Status::Waiting { .. } => {
                Some(self.frame_timeout(now).min(self.send_timeout(now)))
            }
            _ => Some(self.send_timeout(now)),
        };
        next.map(|at| at.max(now + Duration::from_micros(1)))
    }

    /// Returns when the next frame is due, for a session whose packets cannot leave at present.
    pub fn frame_timeout(&self, now: Instant) -> Instant {
        match self.can_run() {
            true if self.is_behind() => now,
            true => self.pace.next_at(),
            false => now + STALL_POLL,
        }
    }

    fn tell(&mut self, event: SessionEvent) {
        log!(debug, seat = ?self.seat, ?event);
        if self.out.len() >= EVENTS_MAX {
            self.out.pop_front();
        }
        self.out.push_back(event);
    }
}

/// Events that wait to be polled; then the oldest are lost.
const EVENTS_MAX: usize = 256;
/// While waiting, packets wake the session; this is how often it looks by itself.
const STALL_POLL: Duration = Duration::from_millis(20);
