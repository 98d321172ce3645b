//! The seats of players, which are kept for a while; votes; chat.

use muse::netcode::prediction::{StepContext, run_step};
use muse::netcode::{ClientId, EntityId};

use super::conduct::Before;
use super::{Audience, JoinError, Profile, Stage};
use crate::Command;
use crate::cheats::{Conduct, Offence};
use crate::messages::{CHAT_BYTES_MAX, FromPlayer, NAME_BYTES_MAX, Name, ToPlayer, VERSION, clean};
use crate::movement::Movement;
use crate::replay::Operation;
use crate::states::{Mode, Phase, Robot};

/// A place in the match.
#[derive(Debug)]
pub(super) struct Seat {
    pub slot: u8,
    /// The account that has it; kept for a while when the connection is lost.
    pub id: Option<u64>,
    pub name: String,
    pub client: Option<ClientId>,
    pub robot: Option<EntityId>,
    pub loaded: bool,
    pub greeted: bool,
    /// The tick at which the connection was lost.
    pub dropped: Option<u32>,
    /// The tick from which on its snapshots have to fit into few bytes.
    pub steady: Option<u32>,
    pub vote: Option<bool>,
    pub checkpoint: u8,
    pub owned: u8,
    pub conduct: Conduct,
    pub before: Before,
}

impl Seat {
    pub(super) fn new(slot: u8) -> Self {
        Self {
            slot,
            id: None,
            name: String::new(),
            client: None,
            robot: None,
            loaded: false,
            greeted: false,
            dropped: None,
            steady: None,
            vote: None,
            checkpoint: 0,
            owned: 0,
            conduct: Conduct::default(),
            before: Before::default(),
        }
    }
}

/// The others decide about who dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vote {
    pub slot: u8,
    /// The seat is kept until then.
    pub until: u32,
}

impl Stage {
    /// A client comes. Says which slot it has.
    pub fn join(&mut self, client: ClientId, profile: Profile) -> Result<u8, JoinError> {
        self.log(None, || Operation::Join {
            client: client.0,
            id: profile.id,
            name: clean(&profile.name, NAME_BYTES_MAX),
            slot: profile.slot,
            checkpoint: profile.checkpoint,
            owned: profile.owned,
        });
        if self.outcome.is_some() {
            return Err(JoinError::Over);
        }
        if self.slot_of(client).is_some() || self.watchers.contains(&client) {
            return Err(JoinError::Twice);
        }
        let slot = self.seat_for(&profile).ok_or(JoinError::Full)?;
        let seat = &mut self.seats[slot];
        // Who comes back while the old connection is still thought to live replaces it.
        if let Some(old) = seat.client.take() {
            self.server.leave(old);
        }
        let seat = &mut self.seats[slot];
        let back = seat.id == Some(profile.id) && seat.robot.is_some();
        seat.id = Some(profile.id);
        seat.client = Some(client);
        seat.name = clean(&profile.name, NAME_BYTES_MAX);
        seat.dropped = None;
        seat.vote = None;
        seat.greeted = false;
        seat.steady = Some(self.tick.0 + JOINING_TICKS);
        if back {
            self.seat_again(client, slot);
        } else {
            self.seat_anew(client, slot, &profile);
        }
        if self.vote.is_some_and(|vote| usize::from(vote.slot) == slot) {
            self.vote = None;
            self.tell(Audience::Everyone, ToPlayer::Vote { dropped: None });
        }
        self.welcome(client, Some(slot as u8));
        Ok(slot as u8)
    }

    /// A client comes who only watches.
    pub fn watch(&mut self, client: ClientId) -> Result<(), JoinError> {
        self.log(None, || Operation::Watch { client: client.0 });
        if self.slot_of(client).is_some() || self.watchers.contains(&client) {
            return Err(JoinError::Twice);
        }
        self.watchers.push(client);
        self.server.watch(client);
        self.welcome(client, None);
        Ok(())
    }

    /// A connection was lost or closed. The seat is kept for 10 s while the match is played.
    pub fn leave(&mut self, client: ClientId) {
        self.log(None, || Operation::Leave { client: client.0 });
        self.watchers.retain(|watcher| *watcher != client);
        self.server.leave(client);
        let Some(slot) = self.slot_of(client) else {
            return;
        };
        self.seats[slot].client = None;
        match self.round.phase {
            Phase::Playing => {
                self.seats[slot].dropped = Some(self.tick.0);
                let until = self.tick.0 + SEAT_TICKS;
                let others = self.seats.iter().any(|seat| seat.client.is_some());
                if others {
                    let slot = slot as u8;
                    self.seats.iter_mut().for_each(|seat| seat.vote = None);
                    self.vote = Some(Vote { slot, until });
                    let dropped = Some((slot, until));
                    self.tell(Audience::Everyone, ToPlayer::Vote { dropped });
                }
            }
            _ => self.empty(slot),
        }
        self.tell_names();
    }

    /// A player does not come back: the seat is free for another at once.
    pub fn give_up(&mut self, id: u64) {
        self.log(None, || Operation::GiveUp { id });
        let Some(slot) = self.seats.iter().position(|seat| seat.id == Some(id)) else {
            return;
        };
        if let Some(client) = self.seats[slot].client {
            self.server.leave(client);
        }
        if self.vote.is_some_and(|vote| usize::from(vote.slot) == slot) {
            self.vote = None;
            self.tell(Audience::Everyone, ToPlayer::Vote { dropped: None });
        }
        self.empty(slot);
        self.tell_names();
    }

    /// A message arrived.
    pub fn handle_message(&mut self, client: ClientId, message: &FromPlayer) {
        self.handle_message_bytes(client, &message.encode());
    }

    pub(super) fn take_message(&mut self, client: ClientId, message: &FromPlayer) {
        let Some(slot) = self.slot_of(client) else {
            return;
        };
        let second = self.tick.0 / crate::TICKS_PER_SECOND;
        let config = self.config.cheats;
        if !self.seats[slot].conduct.admits_message(&config, second) {
            return;
        }
        match message {
            FromPlayer::Hello { name, version } => self.handle_hello(slot, name, *version),
            FromPlayer::Loaded => self.seats[slot].loaded = true,
            FromPlayer::Chat { text } => self.handle_chat(slot, text),
            FromPlayer::Vote { go_on } => self.handle_vote(slot, *go_on),
            // The picture is made at the client; what it may see is decided by what is sent.
            FromPlayer::Watch { .. } => {}
        }
    }

    fn handle_hello(&mut self, slot: usize, name: &str, version: u16) {
        let seat = &mut self.seats[slot];
        if version != VERSION {
            return seat.conduct.note(Offence::BadMessage);
        }
        if seat.greeted {
            return seat.conduct.note(Offence::OutOfTurn);
        }
        seat.greeted = true;
        let name = clean(name, NAME_BYTES_MAX);
        if !name.is_empty() && seat.name.is_empty() {
            seat.name = name;
        }
        self.tell_names();
    }

    fn handle_chat(&mut self, slot: usize, text: &str) {
        let cleaned = clean(text, CHAT_BYTES_MAX);
        if cleaned.len() != text.len() || cleaned.trim().is_empty() {
            self.seats[slot].conduct.note(Offence::BadText);
        }
        if cleaned.trim().is_empty() {
            return;
        }
        let from = Some(slot as u8);
        let text = cleaned;
        self.tell(Audience::Everyone, ToPlayer::Chat { from, text });
    }

    fn handle_vote(&mut self, slot: usize, go_on: bool) {
        match self.vote {
            Some(_) => self.seats[slot].vote = Some(go_on),
            None => self.seats[slot].conduct.note(Offence::OutOfTurn),
        }
    }

    /// Settles votes, and seats that nobody came back to.
    pub(super) fn tick_seats(&mut self) {
        if let Some(vote) = self.vote {
            let voters = || self.seats.iter().filter(|seat| seat.client.is_some());
            let against = voters().filter(|seat| seat.vote == Some(false)).count();
            let everyone = voters().count();
            if everyone > 0 && against * 2 > everyone {
                self.vote = None;
                self.tell(Audience::Everyone, ToPlayer::Vote { dropped: None });
                let ending = match self.round.mode {
                    Mode::Cooperative => Phase::Lost,
                    Mode::Versus | Mode::Ball => Phase::Over,
                };
                return self.finish(ending);
            }
            if self.tick.0 >= vote.until {
                self.vote = None;
                self.tell(Audience::Everyone, ToPlayer::Vote { dropped: None });
            }
        }
        for slot in 0..self.seats.len() {
            let gone = |tick: u32| self.tick.0 >= tick.saturating_add(SEAT_TICKS);
            if self.seats[slot].dropped.is_some_and(gone) {
                self.empty(slot);
                self.tell_names();
            }
        }
        let nobody = self.seats.iter().all(|seat| seat.id.is_none());
        if nobody && self.round.phase == Phase::Playing {
            self.finish(Phase::Over);
        }
    }

    /// Gives a player who comes everything at once; later, what is most urgent, within what a player's link has to bear.
    pub(super) fn set_budgets(&mut self) {
        let steady = SNAPSHOT_BYTES + SNAPSHOT_BYTES_EACH * self.seats.len().max(2);
        for seat in &mut self.seats {
            let due = seat.steady.is_some_and(|tick| self.tick.0 >= tick);
            if let (true, Some(client)) = (due, seat.client) {
                seat.steady = None;
                self.server.set_budget(client, steady);
            }
        }
    }

    /// Robots whose players have lost their connection stop, and fall if they were in the air.
    pub(super) fn move_orphans(&mut self) {
        for slot in 0..self.seats.len() {
            let seat = &self.seats[slot];
            let (None, Some(entity)) = (seat.client, seat.robot) else {
                continue;
            };
            let Some(mut robot) = self.server.world().state(self.kinds.robot, entity) else {
                continue;
            };
            if self.round.mode == Mode::Ball {
                // It is no part of what players predict together, so it waits beside the pitch.
                robot.health = 0;
                robot.velocity = [0.0; 3];
                robot.respawn = self.tick.0 + RETURN_TICKS;
                self.set_robot(entity, &robot);
                continue;
            }
            let idle = Command {
                yaw: robot.yaw,
                pitch: robot.pitch,
                ..Command::default()
            };
            let raise = &mut |_| ();
            let mut context = StepContext::new(self.tick, true, raise);
            // Nobody says where it is.
            let movement = self.rules.set_movement(Movement::Server);
            run_step(&mut self.rules, &mut robot, &idle, &mut context);
            self.rules.set_movement(movement);
            self.set_robot(entity, &robot);
        }
    }

    /// Returns the number of clients that are there, and that have loaded.
    pub(super) fn present(&self) -> (usize, usize) {
        let there = || self.seats.iter().filter(|seat| seat.client.is_some());
        (there().count(), there().filter(|seat| seat.loaded).count())
    }

    fn seat_for(&self, profile: &Profile) -> Option<usize> {
        let own = |seat: &Seat| seat.id == Some(profile.id);
        if let Some(slot) = self.seats.iter().position(own) {
            return Some(slot);
        }
        let free = |slot: &usize| self.seats.get(*slot).is_some_and(|seat| seat.id.is_none());
        let wanted = profile.slot.map(usize::from).filter(free);
        wanted.or_else(|| (0..self.seats.len()).find(free))
    }

    fn seat_again(&mut self, client: ClientId, slot: usize) {
        let robot = self.seats[slot].robot;
        self.server.watch(client);
        if let Some(entity) = robot {
            // It stayed in the world.
            let _ = self.server.world_mut().set_owner(entity, Some(client));
        }
        self.server.set_player(client, robot);
    }

    fn seat_anew(&mut self, client: ClientId, slot: usize, profile: &Profile) {
        let known = self.level.checkpoints.len().saturating_sub(1).min(31) as u8;
        let seat = &mut self.seats[slot];
        seat.checkpoint = profile.checkpoint.min(known);
        seat.owned = profile.owned & 0b1111;
        let checkpoint = self.round.checkpoint;
        let spawn = self.level.spawn(slot as u8, checkpoint);
        let mut robot = Robot::new(slot as u8, spawn.at, spawn.yaw);
        robot.owned |= seat.owned;
        robot.checkpoint = checkpoint;
        match self.round.mode {
            Mode::Cooperative => {}
            Mode::Versus => robot.owned = 0b1111,
            // What flies would have to be predicted; what hits at once pushes the ball.
            Mode::Ball => robot.owned = 0b101,
        }
        // Far fewer than the world has room for.
        let entity = self.server.join(client, &robot).ok();
        self.seats[slot].robot = entity;
    }

    /// Nobody has the seat any more.
    fn empty(&mut self, slot: usize) {
        if self.seats[slot].id.is_some() && self.left.len() < LEFT_MAX {
            let report = self.report_of(&self.seats[slot]);
            self.left.push(report);
        }
        let robot = self.seats[slot].robot;
        self.seats[slot] = Seat::new(slot as u8);
        if let Some(entity) = robot {
            // It was in the world as long as it had the seat.
            let _ = self.server.world_mut().despawn(entity);
        }
    }

    fn welcome(&mut self, client: ClientId, slot: Option<u8>) {
        let welcome = ToPlayer::Welcome {
            slot,
            level: self.level.name.clone(),
            mode: self.round.mode,
            movement: self.config.moved_by(),
            seed: self.config.seed,
        };
        self.tell(Audience::One(client), welcome);
        self.tell_names();
    }

    fn tell_names(&mut self) {
        let taken = self.seats.iter().filter(|seat| seat.id.is_some());
        let names = taken.map(|seat| Name {
            slot: seat.slot,
            name: seat.name.clone(),
            present: seat.client.is_some(),
        });
        let names = names.collect();
        self.tell(Audience::Everyone, ToPlayer::Names { names });
    }
}

/// Ticks in which who comes may get a lot: 3 s.
const JOINING_TICKS: u32 = 3 * crate::TICKS_PER_SECOND;
/// Bytes of a snapshot, and more for each player: 24 kbit/s for two and 64 for sixteen, with what transport and headers add.
const SNAPSHOT_BYTES: usize = 46;
const SNAPSHOT_BYTES_EACH: usize = 13;
/// Ticks until somebody who comes back plays on beside the ball: 1 s.
const RETURN_TICKS: u32 = crate::TICKS_PER_SECOND;
/// Reports of those who have left.
const LEFT_MAX: usize = 64;
/// Ticks for which a seat is kept: 10 s.
const SEAT_TICKS: u32 = 10 * crate::TICKS_PER_SECOND;
