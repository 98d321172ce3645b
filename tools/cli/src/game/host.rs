//! The connections and the stage of one match.
//!
//! Call [`Host::turn`] in a loop until [`Host::is_over`], then [`Host::close`].

use std::collections::BTreeMap;
use std::sync::Arc;

use muse::drivers::relay::LinkEvent;
use muse::session::{ServerEvent, ServerSession};
use muse::{Channel, RoomLoss};
use muse_biobot::cheats::Report;
use muse_biobot::{
    Audience, Level, Mode, Movement, Outcome, Phase, Profile, Stage, StageConfig, ToPlayer, team_of,
};
use muse_drivers::EndpointDriver;
use muse_master_client::AccountId;
use muse_master_client::messages::{Assignment, Outcome as MatchOutcome};
use muse_netcode::ClientId;
use muse_transport::CloseReason;
use muse_wire::{Duration, Instant};
use serde::Serialize;

use super::lateness::{Late, Lateness};
use super::locals::Locals;
use super::master_link::{MasterLink, Standing};
use super::monitor::Monitor;
use super::records::Tape;

/// The settings of a match.
#[derive(Clone, Debug)]
pub(crate) struct MatchPlan {
    /// Another level than the mode's own.
    pub(crate) level: Option<Arc<Level>>,
    pub(crate) mode: Mode,
    pub(crate) movement: Movement,
    /// People; bots come on top.
    pub(crate) players: u8,
    pub(crate) bots: u8,
    pub(crate) difficulty: u8,
    pub(crate) seed: u64,
    /// Longest match of versus or with the ball.
    pub(crate) versus_ticks: u32,
}

impl MatchPlan {
    /// Returns the match that the master asks for; where it says nothing, the command line's settings apply.
    fn assigned(&self, assignment: &Assignment) -> Self {
        let choice = |name: &str| assignment.preferences.choices.get(name).map(String::as_str);
        let mode = match choice("mode") {
            Some("versus") => Mode::Versus,
            Some("ball") => Mode::Ball,
            Some("cooperative" | "coop") => Mode::Cooperative,
            _ => self.mode,
        };
        let difficulty = match choice("difficulty") {
            Some("0" | "easy") => 0,
            Some("1" | "normal") => 1,
            Some("2" | "hard") => 2,
            _ => self.difficulty,
        };
        let players = u8::try_from(assignment.players.len()).unwrap_or(u8::MAX);
        Self {
            mode,
            difficulty,
            players,
            bots: assignment.bots,
            level: self.level.clone().filter(|level| level.mode == mode),
            ..self.clone()
        }
    }

    fn stage(&self, now: Instant) -> Stage {
        let own = || Arc::new(Level::of(self.mode));
        let config = StageConfig::new(self.level.clone().unwrap_or_else(own))
            .seed(self.seed)
            .difficulty(self.difficulty)
            .slots(self.players.saturating_add(self.bots))
            .play_ticks(self.versus_ticks)
            .movement(self.movement);
        Stage::new(config, now)
    }
}

/// A connection whose player is not in the match yet.
#[derive(Clone, Copy, Debug)]
struct Arrived {
    client: ClientId,
    account: AccountId,
    until: Instant,
}

/// A seat whose player left and may come back.
#[derive(Clone, Copy, Debug)]
struct Kept {
    account: AccountId,
    until: Instant,
}

/// One match and who is connected to it.
pub(crate) struct Host {
    server: EndpointDriver,
    session: ServerSession,
    /// The channel of messages.
    messages: Channel,
    master: Option<MasterLink>,
    plan: MatchPlan,
    /// Exists from the master's assignment on; without a master, from the first player on.
    stage: Option<Stage>,
    guests: BTreeMap<ClientId, AccountId>,
    /// Players who have connected and of whom the master has not told yet.
    arrivals: Vec<Arrived>,
    /// Bots that fill the match up.
    locals: Locals,
    /// The slot that each account had last, for the result.
    slots: BTreeMap<AccountId, u8>,
    kept: Vec<Kept>,
    lateness: Lateness,
    tape: Option<Tape>,
    /// Time of the last write to the tape.
    taped: Instant,
    monitor: Monitor,
    /// The report on the players as it was when the match ended.
    report: Option<Report>,
    /// Time at which the match ended, while the players are still to learn it.
    ended: Option<Instant>,
    buffer: Vec<u8>,
}

/// The figures that a benchmark reads.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) late: Late,
    pub(crate) outcome: Option<&'static str>,
}

impl Host {
    pub(crate) fn new(
        server: EndpointDriver,
        plan: MatchPlan,
        master: Option<MasterLink>,
        tape: Option<Tape>,
    ) -> Self {
        let (protocol, messages) = muse_biobot::net::protocol();
        Self {
            server,
            session: ServerSession::new(protocol),
            messages,
            master,
            plan,
            stage: None,
            guests: BTreeMap::new(),
            arrivals: Vec::new(),
            monitor: Monitor::default(),
            locals: Locals::default(),
            slots: BTreeMap::new(),
            kept: Vec::new(),
            lateness: Lateness::default(),
            tape,
            taped: Instant::ZERO,
            report: None,
            ended: None,
            buffer: Vec::new(),
        }
    }

    /// Waits for something to do, at most until the next tick, and does it.
    pub(crate) fn turn(&mut self) -> anyhow::Result<()> {
        let due = self.stage.as_ref().map(Stage::poll_timeout);
        let wait = due.map_or(LOOK_EVERY, |due| due.saturating_since(self.server.now()));
        self.server.wait(wait.min(LOOK_EVERY))?;
        self.server.poll()?;
        self.receive();
        self.report_room();
        let now = self.server.now();
        if let Some(master) = &mut self.master
            && let Some(assignment) = master.turn(now, &mut self.server)?
        {
            tracing::info!(number = assignment.match_id.0, "hosting a match");
            self.plan = self.plan.assigned(&assignment);
            self.open(now);
        }
        self.admit(now);
        self.tick(now);
        self.send_messages();
        self.keep_seats(now);
        self.disconnect_unseated();
        self.tell_master();
        if let Some(stage) = &self.stage {
            self.monitor.look(now, stage);
        }
        self.record(now);
        self.server.flush()?;
        Ok(())
    }

    /// True if the match is over and everybody has been told, or the master has no use for this server.
    pub(crate) fn is_over(&self) -> bool {
        let told = |since: Instant| {
            self.guests.is_empty() || self.server.now().saturating_since(since) >= FAREWELL_MAX
        };
        match &self.master {
            Some(master) => master.host.has_ended() && self.ended.is_none_or(told),
            None => self.ended.is_some_and(told),
        }
    }

    /// Ends a match that is still running: tells the players, and the master, if there still is one, that nothing counts.
    pub(crate) fn close(&mut self, has_master: bool) -> anyhow::Result<()> {
        if let (Some(tape), Some(stage)) = (&mut self.tape, &mut self.stage) {
            tape.append(&stage.finish_recording());
        }
        let clients: Vec<ClientId> = self.guests.keys().copied().collect();
        for client in clients {
            self.disconnect(client, CODE_OVER, "the server closes");
        }
        self.server.flush()?;
        let since = self.server.now();
        let master = self.master.as_mut().filter(|_| has_master);
        if let Some(master) = master.filter(|master| !master.host.has_ended()) {
            master.finish(MatchOutcome::Aborted, false, |_| 0);
            while !master.host.has_ended()
                && self.server.now().saturating_since(since) < FAREWELL_MAX
            {
                self.server.poll()?;
                master.turn(self.server.now(), &mut self.server)?;
                self.server.flush()?;
                self.server.wait(LOOK_EVERY)?;
            }
        }
        Ok(())
    }

    /// Returns the report of what players tried that they should not have.
    pub(crate) fn report(&self) -> Report {
        let now = || self.stage.as_ref().map(Stage::report);
        self.report.clone().or_else(now).unwrap_or_default()
    }

    pub(crate) fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    pub(crate) fn figures(&self) -> Figures {
        let name = |outcome: &Outcome| match (outcome.cancelled, outcome.phase) {
            (true, _) => "cancelled",
            (_, Phase::Won) => "won",
            (_, Phase::Lost) => "lost",
            _ => "over",
        };
        let outcome = self.stage.as_ref().and_then(Stage::outcome);
        Figures {
            late: self.lateness.figures(),
            outcome: outcome.map(name),
        }
    }

    /// The master's number of the match.
    pub(crate) fn match_number(&self) -> Option<u64> {
        self.master.as_ref().and_then(MasterLink::match_number)
    }

    fn receive(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        while let Some(event) = self.server.poll_event(&mut buffer) {
            let now = self.server.now();
            let endpoint = self.server.endpoint_mut();
            match self.session.handle_event::<()>(now, endpoint, event) {
                Some(ServerEvent::Joined(client)) => self.handle_joined(client),
                Some(ServerEvent::Left(client, reason)) => self.handle_left(client, &reason),
                Some(ServerEvent::Packet(client, packet)) if self.guests.contains_key(&client) => {
                    if let Some(stage) = &mut self.stage {
                        // The stage counts damaged packets.
                        let _ = stage.handle_packet(now, client, packet);
                    }
                }
                Some(ServerEvent::Received(client, message))
                    if self.guests.contains_key(&client) =>
                {
                    if let Some(stage) = &mut self.stage {
                        stage.handle_message_bytes(client, message.bytes());
                    }
                }
                _ => {}
            }
        }
        self.buffer = buffer;
    }

    /// Prints what became of the room at the relay.
    fn report_room(&mut self) {
        while let Some(event) = self.server.poll_relay_event() {
            if let Some(loss) = RoomLoss::from_link(&event) {
                println!("no room: {loss}");
            } else if let LinkEvent::Opened { .. } = event {
                println!("the room is open");
            }
        }
    }

    /// Creates the stage with its bots, if there is none yet.
    fn open(&mut self, now: Instant) {
        if self.stage.is_none() {
            let mut stage = self.plan.stage(now);
            let number = self.match_number();
            if self.tape.as_mut().is_some_and(|tape| tape.begin(number)) {
                stage.start_recording(now);
            }
            let first = ClientId(u32::MAX - u32::from(u8::MAX));
            self.locals = Locals::seat(&mut stage, self.plan.bots, first, self.plan.seed, now);
            self.stage = Some(stage);
        }
    }

    fn handle_joined(&mut self, client: ClientId) {
        let now = self.server.now();
        let account = self.session.info(client).map_or(0, |info| info.account);
        let has_seat = |master: &MasterLink| master.host.has_seat(AccountId(account));
        if self.master.as_ref().is_some_and(|master| !has_seat(master)) {
            return self.disconnect(client, CODE_REFUSED, "no seat in this match");
        }
        // Without tokens players cannot be told apart, so nobody gets a seat back.
        let account = match self.master {
            Some(_) => AccountId(account),
            None => AccountId(u64::from(client.0)),
        };
        // Somebody who was here by an older connection is replaced.
        if self.guests.remove(&client).is_some()
            && let Some(stage) = &mut self.stage
        {
            stage.leave(client);
        }
        self.arrivals.retain(|arrived| arrived.client != client);
        self.open(now);
        self.arrivals.push(Arrived {
            client,
            account,
            until: now + PROFILE_WAIT,
        });
    }

    /// Admits those who have connected once the master has told who they are, or has not told for too long.
    fn admit(&mut self, now: Instant) {
        let arrivals = std::mem::take(&mut self.arrivals);
        for arrived in arrivals {
            let master = self.master.as_ref();
            let unknown = master.is_some_and(|master| master.profile(arrived.account).is_none());
            match unknown && now < arrived.until {
                true => self.arrivals.push(arrived),
                false => self.seat(arrived),
            }
        }
    }

    fn seat(&mut self, arrived: Arrived) {
        let Arrived {
            client, account, ..
        } = arrived;
        let known = self
            .master
            .as_ref()
            .and_then(|master| master.profile(account));
        let known = known.cloned().unwrap_or_default();
        let Some(stage) = &mut self.stage else {
            return;
        };
        if let Some(master) = &self.master {
            // Whoever comes late has the seat of one who is gone, and may be here before the others have been asked about that one.
            self.slots.retain(|gone, _| {
                let is_seated = master.host.has_seat(*gone);
                if !is_seated {
                    stage.give_up(gone.0);
                }
                is_seated
            });
        }
        let profile = Profile {
            id: account.0,
            name: known.name.unwrap_or_default(),
            slot: None,
            checkpoint: known.progress.checkpoint,
            owned: known.progress.owned,
        };
        match stage.join(client, profile) {
            Ok(slot) => {
                tracing::info!(%account, slot, "joined");
                self.kept.retain(|kept| kept.account != account);
                self.slots.insert(account, slot);
                self.guests.insert(client, account);
            }
            Err(error) => {
                let text = error.to_string();
                self.disconnect(client, CODE_REFUSED, &text);
            }
        }
    }

    fn handle_left(&mut self, client: ClientId, reason: &CloseReason) {
        self.arrivals.retain(|arrived| arrived.client != client);
        let Some(account) = self.guests.remove(&client) else {
            return;
        };
        let now = self.server.now();
        tracing::info!(%account, ?reason, "left");
        let Some(stage) = &mut self.stage else {
            return;
        };
        stage.leave(client);
        // A lost client has been silent for as long as a seat is kept already.
        let until = match reason {
            CloseReason::Lost => now,
            _ => now + SEAT_KEPT,
        };
        if stage.round().phase == Phase::Playing {
            self.kept.push(Kept { account, until });
        }
    }

    fn tick(&mut self, now: Instant) {
        let Some(stage) = &mut self.stage else {
            return;
        };
        loop {
            let due = stage.poll_timeout();
            if stage.poll_tick(now).is_none() {
                break;
            }
            self.lateness.note(now.saturating_since(due));
        }
        self.locals.play(stage, now);
        let (guests, locals) = (&self.guests, &mut self.locals);
        let endpoint = self.server.endpoint_mut();
        self.session.send_packets(now, endpoint, |packet| {
            loop {
                let (client, len) = stage.poll_packet(now, packet)?;
                if guests.contains_key(&client) {
                    return Some((client, len));
                }
                locals.handle_packet(now, client, &packet[..len]);
            }
        });
    }

    fn send_messages(&mut self) {
        let Some(stage) = &mut self.stage else {
            return;
        };
        while let Some((audience, message)) = stage.poll_message() {
            self.locals.handle_message(audience, &message);
            if let (Some(master), ToPlayer::Progress { checkpoint, owned }, Audience::One(one)) =
                (&mut self.master, &message, audience)
                && let Some(account) = self.guests.get(&one)
                && self.plan.mode == Mode::Cooperative
            {
                master.save(*account, *checkpoint, *owned);
            }
            let bytes = message.encode();
            let now = self.server.now();
            let endpoint = self.server.endpoint_mut();
            for client in self.guests.keys() {
                let meant = match audience {
                    Audience::Everyone => true,
                    Audience::One(one) => one == *client,
                };
                if meant {
                    // Only a client that is gone has a full queue; its connection will time out soon.
                    let _ = self
                        .session
                        .send_bytes(now, endpoint, *client, self.messages, &bytes);
                }
            }
        }
        if self.ended.is_none() && stage.outcome().is_some() {
            self.ended = Some(self.server.now());
            self.report = Some(stage.report());
            let now = self.server.now();
            let endpoint = self.server.endpoint_mut();
            for client in self.guests.keys() {
                self.session
                    .finish(now, endpoint, *client, CODE_OVER, "the match is over");
            }
            self.submit_result();
        }
    }

    fn submit_result(&mut self) {
        let Some(stage) = &self.stage else {
            return;
        };
        let Some(outcome) = stage.outcome() else {
            return;
        };
        let Some(master) = &mut self.master else {
            return;
        };
        let how = match outcome.cancelled {
            true => MatchOutcome::Cancelled,
            false => MatchOutcome::Finished,
        };
        let together = self.plan.mode == Mode::Cooperative;
        if outcome.phase == Phase::Won {
            for account in self.guests.values() {
                master.start_over(*account);
            }
        }
        let slots = &self.slots;
        // Beside the ball a team wins or loses as one.
        let goals = (self.plan.mode == Mode::Ball).then(|| stage.round().goals);
        master.finish(how, together, |account| {
            let slot = slots.get(&account);
            if let (Some(goals), Some(slot)) = (goals, slot) {
                return i64::from(goals[usize::from(team_of(*slot))]);
            }
            let line = |slot: &u8| outcome.table.iter().find(|line| line.slot == *slot);
            slot.and_then(line).map_or(0, |line| i64::from(line.points))
        });
    }

    /// Disconnects players who have no seat any more.
    fn disconnect_unseated(&mut self) {
        let Some(master) = &self.master else {
            return;
        };
        let is_out = |(_, account): &(&ClientId, &AccountId)| !master.host.has_seat(**account);
        let out = self.guests.iter().filter(is_out);
        let out: Vec<ClientId> = out.map(|(client, _)| *client).collect();
        for client in out {
            self.disconnect(client, CODE_REFUSED, "no seat in this match");
        }
    }

    /// Gives up seats that nobody came back to in time.
    fn keep_seats(&mut self, now: Instant) {
        let master = &mut self.master;
        self.kept.retain(|kept| {
            let over = kept.until <= now;
            if over && let Some(master) = master.as_mut() {
                master.host.give_up_seat(kept.account);
            }
            !over
        });
    }

    fn record(&mut self, now: Instant) {
        let (Some(tape), Some(stage)) = (&mut self.tape, &mut self.stage) else {
            return;
        };
        if self.ended.is_some() {
            // Before anybody hears of the end: whoever does may end this process.
            tape.append(&stage.finish_recording());
        } else if now.saturating_since(self.taped) >= TAPE_EVERY {
            tape.append(&stage.take_recording());
            self.taped = now;
        }
    }

    fn tell_master(&mut self) {
        if let (Some(master), Some(stage)) = (&mut self.master, &self.stage) {
            master.tell(Standing {
                phase: stage.round().phase,
                present: self.guests.values().copied().collect(),
            });
        }
    }

    fn disconnect(&mut self, client: ClientId, code: u16, text: &str) {
        let now = self.server.now();
        let endpoint = self.server.endpoint_mut();
        self.session.disconnect(now, endpoint, client, code, text);
    }
}

/// Close code: the match is over.
const CODE_OVER: u16 = 0;
/// Close code: this player may not play.
const CODE_REFUSED: u16 = 1;
/// The time for which a player waits for the master to tell who they are.
const PROFILE_WAIT: Duration = Duration::from_secs(3);
/// Time that a seat is kept for a player who closed the connection.
const SEAT_KEPT: Duration = Duration::from_secs(10);
/// Interval at which a recording is flushed to its file: so much is lost if the program is killed.
const TAPE_EVERY: Duration = Duration::from_secs(1);
/// Longest time to wait until everybody has been told of the end.
const FAREWELL_MAX: Duration = Duration::from_secs(3);
/// Longest sleep of the loop, so that the master and signals are heard.
const LOOK_EVERY: Duration = Duration::from_millis(20);
