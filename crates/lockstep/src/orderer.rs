//! Orders everybody's inputs and forwards them: a server that does not know the game, or a part of the player who hosts.
//!
//! It is the only one who appends to a player's [stream](crate::stream), so machines cannot disagree about what was played: a
//! frame is *sealed* when the input of everybody who is there has arrived or another stands in for it. It also sets the pace
//! (speed control, time synchronisation), drops the silent, brings in those who join, and compares checksums.

mod desync;
mod incoming;
mod join;
mod member;
mod outgoing;
mod speed;
mod succession;

use std::collections::VecDeque;

use muse_wire::{Duration, Instant, log};

use crate::config::{Late, MatchConfig, MatchConfigError, Mode};
use crate::frame::{Frame, SEATS_MAX, Seat};
use crate::game::DeterministicGame;
use crate::packet::{Control, OverReason};
use crate::stream::{Entry, Stream};
use desync::Checks;
pub(crate) use incoming::{BLOB_HEADER_MAX, BLOB_STATE, BLOB_TRACE, COST_UNIT_MICROS};
use join::Donation;
use member::{Member, Stage};
pub(crate) use outgoing::LAG_UNIT_MICROS;
use speed::Speed;
use succession::Inherited;

/// A link to one machine, numbered by the program that carries packets: small numbers, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub usize);

/// Something that the orderer noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The match began.
    Begun,
    /// Somebody sat down, from this frame on.
    Joined(Seat, Frame),
    /// Somebody is gone, from this frame on.
    Left(Seat, Frame, OverReason),
    /// Checksums differ: this machine's state is not that of the others, since this check.
    Desync(Seat, Frame),
    /// The states of too many differ: the match is over.
    Ended,
}

/// Orders and forwards. Give it what arrives with [`handle_packet`](Self::handle_packet), call
/// [`handle_timeout`](Self::handle_timeout) when [`poll_timeout`](Self::poll_timeout) has passed, send what
/// [`poll_packet`](Self::poll_packet) gives. `muse::deterministic` does so over connections.
#[derive(Debug)]
pub struct Orderer {
    config: MatchConfig,
    contract: u64,
    members: Vec<Option<Member>>,
    /// By link: the account behind it; 0 if it is not known.
    accounts: Vec<u64>,
    /// By seat: the account that sat there last; 0 if it is not known.
    owners: Vec<u64>,
    /// By seat: its inputs.
    streams: Vec<Stream>,
    /// By seat: from which frame on somebody plays there.
    playing: Vec<Option<Frame>>,
    controls: Vec<Control>,
    begun: bool,
    over: Option<OverReason>,
    /// The first frame for which somebody's input is missing.
    sealed: Frame,
    /// Times at which half of the players' inputs had arrived, for `sealed` and the frames after it.
    half_at: VecDeque<Instant>,
    speed: Speed,
    lags_at: Instant,
    checks: Checks,
    donation: Donation,
    replies: VecDeque<(LinkId, OverReason)>,
    notices: VecDeque<Notice>,
    /// The orderer before this one, if there was one.
    inherited: Option<Inherited>,
}

impl Orderer {
    /// An orderer of this game by these rules. It does not run the game.
    pub fn new<G: DeterministicGame>(config: MatchConfig) -> Result<Self, MatchConfigError> {
        config.check_for::<G>()?;
        Ok(Self::with_contract(config.contract::<G>(), config))
    }

    pub(crate) fn with_contract(contract: u64, config: MatchConfig) -> Self {
        let seats = config.seats();
        Self {
            contract,
            members: Vec::new(),
            accounts: Vec::new(),
            owners: vec![0; seats],
            streams: (0..seats).map(|_| Stream::new(Frame(0))).collect(),
            playing: vec![None; seats],
            controls: Vec::new(),
            begun: false,
            over: None,
            sealed: Frame(0),
            half_at: VecDeque::new(),
            speed: Speed::new(&config),
            lags_at: Instant::ZERO,
            checks: Checks::default(),
            donation: Donation::default(),
            replies: VecDeque::new(),
            notices: VecDeque::new(),
            inherited: None,
            config,
        }
    }

    /// Returns the first frame whose inputs are not all final.
    pub fn sealed(&self) -> Frame {
        self.sealed
    }

    /// Returns true if the match has begun.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns the reason why the match is over, if it is.
    pub fn over(&self) -> Option<OverReason> {
        self.over
    }

    /// Returns true if somebody is behind this link. Its number may be given to another link when nobody is.
    pub fn knows(&self, link: LinkId) -> bool {
        self.members.get(link.0).is_some_and(Option::is_some)
    }

    /// Returns the length of a turn as speed control has it now: steps, and the length of each.
    pub fn pace(&self) -> (u8, Duration) {
        self.speed.plan()
    }

    /// Returns the round trip to this player and for how long it has been silent.
    pub fn lag(&self, now: Instant, seat: Seat) -> Option<(Duration, Duration)> {
        let member = self
            .members
            .iter()
            .flatten()
            .find(|member| member.seat == Some(seat))?;
        Some((member.link.rtt()?, now - member.heard))
    }

    /// Says which account is behind a link, before its first packet. An account that comes back gets the seat that it had, also if it
    /// still sits there by another link, and nobody else is given that seat while another one is free. 0 stands for no account.
    pub fn set_account(&mut self, link: LinkId, account: u64) {
        if link.0 >= LINKS_MAX {
            return;
        }
        if self.accounts.len() <= link.0 {
            self.accounts.resize(link.0 + 1, 0);
        }
        self.accounts[link.0] = account;
    }

    /// Removes the machine behind a link that has ended. The number may be given to another link then.
    pub fn disconnect(&mut self, now: Instant, link: LinkId) {
        self.remove(link, OverReason::Dropped);
        self.replies.retain(|(to, _)| *to != link);
        if let Some(account) = self.accounts.get_mut(link.0) {
            *account = 0;
        }
        if self.begun && self.over.is_none() {
            self.seal(now);
        }
    }

    /// Returns the next thing that was noticed.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Bytes that inputs and blobs take, to see that it stays bounded.
    pub fn log_frames(&self) -> usize {
        self.streams
            .iter()
            .map(|stream| stream.end().since(stream.first()) as usize)
            .sum()
    }

    /// Lets time pass: late players, silent ones, speed control.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.over.is_some() {
            return;
        }
        self.drop_silent(now);
        if !self.begun {
            return;
        }
        self.stand_in_for_late(now);
        self.judge_checks(now);
        self.seat_those_who_are_ready();
        self.ask_for_state(now);
        self.control_speed(now);
        if now >= self.lags_at {
            self.lags_at = now + LAGS_EVERY;
            for member in self.members.iter_mut().flatten() {
                member.lags_due = true;
            }
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout) next.
    pub fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        let mut next = self.outgoing_timeout(now)?;
        if self.begun && self.over.is_none() {
            next = next.min(self.speed.next_at()).min(self.lags_at);
            if let (Late::Repeat { after }, Some(at)) = (self.config.late, self.half_at.front()) {
                next = next.min(*at + after);
            }
        }
        if let Some(until) = self.inherited.as_ref().and_then(Inherited::until) {
            next = next.min(until);
        }
        let silent = self.members.iter().flatten().map(|member| member.heard);
        if let Some(heard) = silent.min() {
            next = next.min(heard + self.config.drop_after);
        }
        Some(next.max(now + Duration::from_micros(1)))
    }

    /// Ends the match for everybody.
    pub fn end(&mut self) {
        self.finish(OverReason::Over);
    }

    fn finish(&mut self, reason: OverReason) {
        if self.over.is_none() {
            self.over = Some(reason);
            self.note(Notice::Ended);
            for member in self.members.iter_mut().flatten() {
                member.dirty = true;
            }
        }
    }

    /// Everybody is there: frame 0 is next.
    fn begin(&mut self, now: Instant) {
        self.begun = true;
        self.lags_at = now + LAGS_EVERY;
        let (steps, step) = self.speed.begin(now);
        self.controls.push(Control::Plan {
            frame: Frame(0),
            steps,
            step,
        });
        for member in self.members.iter_mut().flatten() {
            member.heard = now;
            member.stage = match member.seat {
                Some(_) => Stage::Plays,
                None => Stage::Watches,
            };
            member.dirty = true;
            if let Some(seat) = member.seat {
                self.playing[seat.index()] = Some(Frame(0));
                self.controls.push(Control::Joined {
                    frame: Frame(0),
                    seat,
                });
            }
        }
        self.note(Notice::Begun);
    }

    /// Inputs have arrived or others stand in: moves on as far as everybody's are there.
    fn seal(&mut self, now: Instant) {
        let before = self.sealed;
        let needed = |from: &Option<Frame>, frame: Frame| from.is_some_and(|from| from <= frame);
        loop {
            let frame = self.sealed;
            let mut players = 0;
            let missing = self
                .playing
                .iter()
                .zip(&self.streams)
                .any(|(from, stream)| {
                    players += u32::from(needed(from, frame));
                    needed(from, frame) && stream.end() <= frame
                });
            if missing || players == 0 {
                break;
            }
            self.sealed += 1;
            self.half_at.pop_front();
        }
        self.note_half(now);
        if self.sealed > before && self.config.mode == Mode::Lockstep {
            self.wake_all();
        }
        self.forget();
    }

    /// Notes when half of the players' inputs are there, from which late ones are counted.
    fn note_half(&mut self, now: Instant) {
        let mut ends = [Frame(0); SEATS_MAX];
        let mut count = 0;
        for (from, stream) in self.playing.iter().zip(&self.streams) {
            if from.is_some() {
                ends[count] = stream.end();
                count += 1;
            }
        }
        let ends = &mut ends[..count];
        ends.sort_unstable();
        // With the latest first: as many as half, rounded up, have reached this one.
        let half = ends.iter().rev().nth(count.div_ceil(2).saturating_sub(1));
        let half = half.map_or(self.sealed, |end| *end);
        while self.sealed + (self.half_at.len() as u32) < half {
            self.half_at.push_back(now);
        }
    }

    /// The packet server's rule.
    fn stand_in_for_late(&mut self, now: Instant) {
        let Late::Repeat { after } = self.config.late else {
            return;
        };
        let mut stood_in = false;
        while self.half_at.front().is_some_and(|at| *at + after <= now) {
            let frame = self.sealed;
            for (from, stream) in self.playing.iter().zip(&mut self.streams) {
                if from.is_some_and(|from| from <= frame) && stream.end() <= frame {
                    stream.push(Entry::Repeated);
                    stood_in = true;
                }
            }
            self.seal(now);
            if self.sealed == frame {
                break;
            }
        }
        if stood_in {
            self.wake_all();
        }
    }

    /// Forgets inputs that everybody has.
    fn forget(&mut self) {
        let mut held = self.donation.held_from();
        if self.inherited.as_ref().is_some_and(Inherited::awaits) {
            held = Frame(0);
        }
        for (seat, stream) in self.streams.iter_mut().enumerate() {
            let acked = self.members.iter().flatten();
            let acked = acked.filter(|member| member.stage.is_sent_streams());
            let acked = acked.map(|member| member.acked.ends[seat]).min();
            let before = acked.unwrap_or(self.sealed).min(held);
            stream.forget_before(before);
        }
    }

    fn drop_silent(&mut self, now: Instant) {
        self.give_up_absent(now);
        for index in 0..self.members.len() {
            let Some(member) = &self.members[index] else {
                continue;
            };
            let silent = member.heard + self.config.drop_after <= now;
            let ends = self.streams.iter().zip(&member.acked.ends);
            let behind = ends.map(|(stream, acked)| stream.end().since(*acked));
            let behind = behind.max().unwrap_or(0);
            let behind = member.stage.is_sent_streams() && behind > LOG_FRAMES_MAX;
            if silent || behind {
                self.remove(LinkId(index), OverReason::Dropped);
            }
        }
        self.seal(now);
    }

    /// Takes somebody out of the match.
    fn remove(&mut self, link: LinkId, reason: OverReason) {
        let Some(member) = self.members.get_mut(link.0).and_then(Option::take) else {
            return;
        };
        self.donation.forget_donor(link);
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back((link, reason));
        }
        let Some(seat) = member.seat else { return };
        self.vacate(seat, reason);
    }

    /// Nobody plays there any more.
    fn vacate(&mut self, seat: Seat, reason: OverReason) {
        if let Some(from) = self.playing[seat.index()].take() {
            let frame = self.streams[seat.index()].end().max(from);
            self.control(Control::Left { frame, seat });
            self.note(Notice::Left(seat, frame, reason));
        }
    }

    fn control(&mut self, control: Control) {
        self.controls.push(control);
        self.wake_all();
    }

    fn control_speed(&mut self, now: Instant) {
        let players = self.members.iter().flatten();
        let players = players.filter(|member| member.stage == Stage::Plays);
        let measured = players.map(|member| (member.link.rtt_high(), member.cost));
        if self.config.mode == Mode::Rollback || self.controls.len() >= CONTROLS_MAX {
            self.speed.skip(now);
            return;
        }
        if let Some((steps, step)) = self.speed.evaluate(now, measured) {
            // Nobody can have run this turn: somebody's input for the one before is missing.
            let frame = self.sealed + 1;
            self.control(Control::Plan { frame, steps, step });
        }
    }

    fn wake_all(&mut self) {
        for member in self.members.iter_mut().flatten() {
            member.dirty = true;
        }
    }

    fn note(&mut self, notice: Notice) {
        log!(debug, ?notice);
        if self.notices.len() < NOTICES_MAX {
            self.notices.push_back(notice);
        }
    }

    /// Frames a second, times 1: how long one frame or turn lasts now.
    fn frame_duration(&self) -> Duration {
        match self.config.mode {
            Mode::Rollback => self.config.frame,
            Mode::Lockstep => {
                let (steps, step) = self.speed.plan();
                step * u64::from(steps)
            }
        }
    }
}

/// Links that an orderer can have.
const LINKS_MAX: usize = 1_024;
/// Inputs kept for the slowest machine, in frames; one that is further behind is dropped.
const LOG_FRAMES_MAX: u32 = 4_096;
/// Joins, departures and changes of pace in one match.
pub(crate) const CONTROLS_MAX: usize = 4_096;
const REPLIES_MAX: usize = 64;
const NOTICES_MAX: usize = 256;
/// Interval at which players are told about each other's lag.
const LAGS_EVERY: Duration = Duration::from_secs(1);
