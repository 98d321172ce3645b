//! The host, who plays too, and its guests.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use muse_rp::{ConnectError, ConnectionId, EndReason, Event, FailReason, HostOptions, SendError};
use muse_rp_driver::{BindError, HostDriver};

use crate::messages::Message;
use crate::rules::{
    BORDER, ENEMIES_MAX, ENEMY_TICKS, Field, HEIGHT, Hit, Input, ROUND_TICKS, Spot, WIDTH,
};

/// The stage of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// A guest is not let in yet, or a host has no guest.
    Waiting,
    Playing,
    Over,
    /// A guest could not join.
    Refused(FailReason),
    /// A guest has lost its host.
    Lost(EndReason),
}

/// The host of a round: it decides who hits, and plays as number 0.
pub(crate) struct HuntHost {
    driver: HostDriver,
    pub(crate) field: Field,
    pub(crate) stage: Stage,
    guests: BTreeMap<ConnectionId, u8>,
    random: fastrand::Rng,
    tick: u32,
    next_enemy: u16,
}

impl HuntHost {
    /// Port 0 lets the system choose; the partially reliable channel has one of its own choice then, and else the next.
    pub(crate) fn bind(address: IpAddr, port: u16, seed: u64) -> Result<Self, BindError> {
        let ports = [port, if port == 0 { 0 } else { port.wrapping_add(1) }];
        let options = HostOptions::default().connections_max(GUESTS_MAX);
        let mut driver = HostDriver::bind(address, ports, options)?;
        driver.host().listen(true);
        let mut field = Field::default();
        field.place(OWN, [WIDTH / 2.0, HEIGHT / 2.0]);
        Ok(Self {
            driver,
            field,
            stage: Stage::Waiting,
            guests: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
            tick: 0,
            next_enemy: 0,
        })
    }

    /// Returns the port that guests call.
    pub(crate) fn port(&self) -> io::Result<u16> {
        Ok(self.driver.ports()?[0])
    }

    pub(crate) fn driver(&mut self) -> &mut HostDriver {
        &mut self.driver
    }

    /// One tick: what guests say, the host's own player, shots and enemies.
    pub(crate) fn tick(&mut self, input: &Input) -> io::Result<()> {
        self.driver.poll()?;
        while let Some(event) = self.driver.host().poll_event() {
            self.handle_event(event);
        }
        if self.stage == Stage::Playing {
            if let Some(direction) = self.field.control(OWN, input) {
                self.field.fire(OWN, direction);
                self.tell_all(Message::Shot(OWN, direction));
            }
            self.step();
        }
        self.driver.flush()
    }

    fn step(&mut self) {
        for Hit { enemy, by } in self.field.step() {
            self.field.enemies.remove(&enemy);
            self.tell_all(Message::EnemyGone(enemy));
            if let Some(player) = self.field.players.get_mut(&by) {
                player.points += 1;
                let points = player.points;
                self.tell_all(Message::Points(by, points));
            }
        }
        if self.tick.is_multiple_of(ENEMY_TICKS) && self.field.enemies.len() < ENEMIES_MAX {
            let at = self.somewhere();
            self.field.enemies.insert(self.next_enemy, at);
            self.tell_all(Message::Enemy(self.next_enemy, at));
            self.next_enemy = self.next_enemy.wrapping_add(1);
        }
        if let Some(own) = self.field.players.get(&OWN) {
            self.tell_all(Message::Position(OWN, own.at));
        }
        self.tick += 1;
        if self.tick >= ROUND_TICKS {
            self.stage = Stage::Over;
            self.tell_all(Message::End);
        }
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Connected { connection } => self.admit(connection),
            Event::Disconnected { connection, .. } => {
                if let Some(id) = self.guests.remove(&connection) {
                    self.field.players.remove(&id);
                    self.tell_all(Message::Left(id));
                }
            }
            Event::Message(message) => {
                if let Some(&id) = self.guests.get(&message.connection)
                    && let Some(message) = Message::parse(message.kind, &message.payload)
                {
                    self.handle_message(id, message);
                }
            }
            _ => (),
        }
    }

    /// Guests speak for themselves alone, whatever id they say.
    fn handle_message(&mut self, id: u8, message: Message) {
        match message {
            Message::Position(_, at) => {
                self.field.place(id, at);
                self.tell_all(Message::Position(id, at));
            }
            Message::Shot(_, direction) if self.stage == Stage::Playing => {
                self.field.fire(id, direction);
                self.tell_all(Message::Shot(id, direction));
            }
            _ => (),
        }
    }

    /// A guest has joined: it hears of everything that is there.
    fn admit(&mut self, guest: ConnectionId) {
        let taken = |id: &u8| self.field.players.contains_key(id);
        let Some(id) = (OWN + 1..=u8::MAX).find(|id| !taken(id)) else {
            return self.driver.host().disconnect(guest);
        };
        let at = self.somewhere();
        self.field.place(id, at);
        self.guests.insert(guest, id);
        self.tell(guest, Message::You(id, at));
        let players: Vec<_> = self.field.players.iter().map(|(id, p)| (*id, *p)).collect();
        for (id, player) in players {
            self.tell(guest, Message::Points(id, player.points));
            self.tell_all(Message::Position(id, player.at));
        }
        let enemies: Vec<_> = self
            .field
            .enemies
            .iter()
            .map(|(id, at)| (*id, *at))
            .collect();
        for (enemy, at) in enemies {
            self.tell(guest, Message::Enemy(enemy, at));
        }
        if self.stage == Stage::Waiting {
            self.stage = Stage::Playing;
        }
        self.tell(guest, Message::Start);
    }

    fn somewhere(&mut self) -> Spot {
        [WIDTH, HEIGHT].map(|size| BORDER + self.random.f32() * (size - 2.0 * BORDER))
    }

    fn tell_all(&mut self, message: Message) {
        let (channel, kind, payload) = message.emit();
        // A guest that does not keep up is expelled by its pings, and told nothing until then.
        let told = self.driver.host().send_to_all(channel, kind, &payload);
        debug_assert!(told.is_ok(), "messages are short");
    }

    fn tell(&mut self, guest: ConnectionId, message: Message) {
        let (channel, kind, payload) = message.emit();
        let sent = self.driver.host().send(guest, channel, kind, &payload);
        debug_assert!(
            !matches!(sent, Err(SendError::TooLong(_))),
            "messages are short"
        );
    }
}

/// A guest: says where it is and where it shoots, and shows what it hears.
pub(crate) struct HuntGuest {
    driver: HostDriver,
    connection: ConnectionId,
    pub(crate) field: Field,
    pub(crate) stage: Stage,
    /// Its number, once the host has said it.
    pub(crate) own: Option<u8>,
}

impl HuntGuest {
    pub(crate) fn join(address: IpAddr, host: SocketAddr) -> Result<Self, JoinError> {
        let mut driver = HostDriver::bind(address, [0, 0], HostOptions::default())?;
        Ok(Self {
            connection: driver.connect(host)?,
            driver,
            field: Field::default(),
            stage: Stage::Waiting,
            own: None,
        })
    }

    pub(crate) fn driver(&mut self) -> &mut HostDriver {
        &mut self.driver
    }

    /// One tick: what the host says, then its own player.
    pub(crate) fn tick(&mut self, input: &Input) -> io::Result<()> {
        self.driver.poll()?;
        while let Some(event) = self.driver.host().poll_event() {
            self.handle_event(event);
        }
        if let (Stage::Playing, Some(own)) = (self.stage, self.own) {
            if let Some(direction) = self.field.control(own, input) {
                self.tell(Message::Shot(own, direction));
            }
            if let Some(player) = self.field.players.get(&own) {
                self.tell(Message::Position(own, player.at));
            }
            // Enemies go when the host says so.
            self.field.step();
        }
        self.driver.flush()
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Message(message) => {
                if let Some(message) = Message::parse(message.kind, &message.payload) {
                    self.handle_message(message);
                }
            }
            Event::Disconnected { reason, .. } if self.stage != Stage::Over => {
                self.stage = Stage::Lost(reason);
            }
            Event::ConnectFailed { reason, .. } => self.stage = Stage::Refused(reason),
            _ => (),
        }
    }

    fn handle_message(&mut self, message: Message) {
        match message {
            Message::You(id, at) => {
                self.own = Some(id);
                self.field.place(id, at);
            }
            // Where it is itself it knows better.
            Message::Position(id, _) if self.own == Some(id) => (),
            Message::Position(id, at) => self.field.place(id, at),
            Message::Left(id) => drop(self.field.players.remove(&id)),
            Message::Shot(id, direction) => self.field.fire(id, direction),
            Message::Points(id, points) => {
                self.field.players.entry(id).or_default().points = points;
            }
            Message::EnemyGone(enemy) => drop(self.field.enemies.remove(&enemy)),
            Message::Enemy(enemy, at) => drop(self.field.enemies.insert(enemy, at)),
            Message::Start => self.stage = Stage::Playing,
            Message::End => self.stage = Stage::Over,
        }
    }

    fn tell(&mut self, message: Message) {
        let (channel, kind, payload) = message.emit();
        let host = self.driver.host();
        let sent = host.send(self.connection, channel, kind, &payload);
        debug_assert!(
            !matches!(sent, Err(SendError::TooLong(_))),
            "messages are short"
        );
    }
}

/// The reason that a guest could not begin to join.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JoinError {
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// The host's own player.
pub(crate) const OWN: u8 = 0;
const GUESTS_MAX: usize = 7;
