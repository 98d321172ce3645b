//! A match in one program with a bad network in it: a stage, its players, and links between them from a seed, in virtual time.
//!
//! Tests and benchmarks play on it, so that both look at the machines that ship. [`Practice`](crate::Practice) is the same without a network, for the page.

mod rollback;

use std::collections::BTreeMap;
use std::sync::Arc;

use muse::netcode::{ClientId, PacketError};
use muse::wire::{Duration, Ecn, Instant};
use muse_netem::{Conditioner, Conditions, Packet};

use crate::stage::JoinError;
use crate::{Audience, Command, Level, Mode, Player, Profile, Robot, Stage, StageConfig, ToPlayer};
pub use rollback::{Rollback, RollbackCost};

/// The players' side of a match on a [`Table`]: says what they do, and may look on.
pub trait Seats {
    /// Returns what the player of a slot does now.
    fn command(&mut self, now: Instant, index: usize, player: &mut Player) -> Command;

    /// A packet of the stage arrives at a player.
    fn deliver(
        &mut self,
        now: Instant,
        index: usize,
        player: &mut Player,
        bytes: &[u8],
    ) -> Result<(), PacketError> {
        let _ = index;
        player.handle_packet(now, bytes)
    }

    /// The stage has made a tick.
    fn handle_tick(&mut self, stage: &Stage) {
        let _ = stage;
    }
}

/// A match, and everything that is under way in it.
///
/// ```
/// use std::sync::Arc;
/// use muse::wire::Duration;
/// use muse_biobot::table::Table;
/// use muse_biobot::{Command, Level, StageConfig};
/// use muse_netem::Conditions;
/// let config = StageConfig::new(Arc::new(Level::pitch())).slots(2);
/// let network = Conditions::default().delay(Duration::from_millis(75)).loss(0.05);
/// let mut table = Table::new(config, 2, network, 1);
/// table.run(200, |_, _| Command::default());
/// let now = table.now;
/// assert_eq!(table.guests[0].player.frame(now).robots.len(), 1, "the other one");
/// ```
pub struct Table {
    /// The time.
    pub now: Instant,
    /// The server's side.
    pub stage: Stage,
    /// The players, in the order in which they came.
    pub guests: Vec<Guest>,
    under_way: BTreeMap<(Instant, u64), Parcel>,
    sent: u64,
    conditions: Conditions,
    seed: u64,
    /// The checkpoint that every player has unlocked.
    checkpoint: u8,
}

/// A player and its link.
pub struct Guest {
    /// The player's side.
    pub player: Player,
    /// The server's name for it.
    pub client: ClientId,
    /// True until it leaves.
    pub connected: bool,
    /// Everything on its link is lost.
    pub cut: bool,
    up: Conditioner,
    down: Conditioner,
    /// Bytes of packets sent up and down.
    pub bytes: [u64; 2],
    /// Packets sent up and down.
    pub packets: [u64; 2],
    /// The messages of the stage that arrived.
    pub heard: Vec<ToPlayer>,
}

enum Parcel {
    Up(usize, Vec<u8>),
    Down(usize, Vec<u8>),
    MessageUp(usize, Vec<u8>),
    MessageDown(usize, Vec<u8>),
}

impl Table {
    /// Length of a step.
    pub const STEP: Duration = Duration::from_millis(5);

    /// A match of so many players, each with a link of its own of these conditions.
    pub fn new(config: StageConfig, players: u8, conditions: Conditions, seed: u64) -> Self {
        let mut table = Self::empty(config, conditions, seed);
        table.seat(players);
        table
    }

    /// The same, recorded from the beginning.
    pub fn recorded(config: StageConfig, players: u8, conditions: Conditions, seed: u64) -> Self {
        let mut table = Self::empty(config, conditions, seed);
        table.stage.start_recording(table.now);
        table.seat(players);
        table
    }

    /// A match that nobody has joined.
    pub fn empty(config: StageConfig, conditions: Conditions, seed: u64) -> Self {
        let now = Instant::from_secs(1);
        Self {
            now,
            stage: Stage::new(config, now),
            guests: Vec::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            conditions,
            seed,
            checkpoint: 0,
        }
    }

    /// Says which checkpoint those who join from now on have unlocked.
    pub const fn set_checkpoint(&mut self, checkpoint: u8) {
        self.checkpoint = checkpoint;
    }

    fn seat(&mut self, players: u8) {
        for slot in 0..players {
            self.join(u64::from(slot) + 100)
                .expect("a new match has a seat for each");
        }
    }

    /// Another player comes, or an old one comes back.
    pub fn join(&mut self, id: u64) -> Result<u8, JoinError> {
        let index = self.guests.len();
        let client = ClientId(index as u32 + 1);
        let profile = Profile {
            id,
            name: format!("player {id}"),
            checkpoint: self.checkpoint,
            ..Profile::default()
        };
        let slot = self.stage.join(client, profile)?;
        let link = |way| {
            Conditioner::new(
                self.conditions.clone(),
                self.seed * 100 + index as u64 * 2 + way,
            )
        };
        self.guests.push(Guest {
            player: Player::new(self.now, Arc::clone(self.stage.level()), "somebody"),
            client,
            connected: true,
            cut: false,
            up: link(0),
            down: link(1),
            bytes: [0; 2],
            packets: [0; 2],
            heard: Vec::new(),
        });
        Ok(slot)
    }

    /// A player leaves.
    pub fn leave(&mut self, index: usize) {
        self.guests[index].connected = false;
        self.stage.leave(self.guests[index].client);
    }

    /// Lets [`STEP`](Self::STEP) pass.
    pub fn step(&mut self, command: &mut dyn FnMut(usize, &mut Player) -> Command) {
        self.step_with(&mut Plain(command));
    }

    /// The same, with players who look on.
    pub fn step_with(&mut self, seats: &mut dyn Seats) {
        self.now += Self::STEP;
        self.deliver(seats);
        let mut buffer = vec![0; PACKET_BYTES];
        for index in 0..self.guests.len() {
            if !self.guests[index].connected {
                continue;
            }
            while let Some(message) = self.guests[index].player.poll_message() {
                self.post(Parcel::MessageUp(index, message.encode()));
            }
            let pressed = seats.command(self.now, index, &mut self.guests[index].player);
            while let Some(len) =
                self.guests[index]
                    .player
                    .poll_packet(self.now, pressed, &mut buffer)
            {
                self.send(index, 0, buffer[..len].to_vec());
            }
        }
        while self.stage.poll_tick(self.now).is_some() {
            seats.handle_tick(&self.stage);
            while let Some((client, len)) = self.stage.poll_packet(self.now, &mut buffer) {
                let found = self.guests.iter().position(|guest| guest.client == client);
                if let Some(index) = found {
                    self.send(index, 1, buffer[..len].to_vec());
                }
            }
        }
        while let Some((audience, message)) = self.stage.poll_message() {
            for index in 0..self.guests.len() {
                let meant = match audience {
                    Audience::Everyone => true,
                    Audience::One(client) => self.guests[index].client == client,
                };
                if meant && self.guests[index].connected {
                    self.post(Parcel::MessageDown(index, message.encode()));
                }
            }
        }
    }

    /// Lets so many ticks pass, with everybody doing the same as long.
    pub fn run(&mut self, ticks: u32, mut command: impl FnMut(usize, &mut Player) -> Command) {
        for _ in 0..ticks * 4 {
            self.step(&mut command);
        }
    }

    /// Returns a robot as the server has it; `None` if nobody plays it.
    pub fn find_robot(&self, slot: u8) -> Option<Robot> {
        let world = self.stage.server().world();
        let kind = self.stage.kinds().robot;
        let mut robots = world
            .entities()
            .filter_map(|entity| world.state(kind, entity));
        robots.find(|robot| robot.slot == slot)
    }

    fn send(&mut self, index: usize, way: usize, bytes: Vec<u8>) {
        let guest = &mut self.guests[index];
        guest.bytes[way] += bytes.len() as u64;
        guest.packets[way] += 1;
        if guest.cut {
            return;
        }
        let to = ([192, 0, 2, 1], 9000).into();
        let packet = Packet::new(to, bytes.len(), Ecn::NotCapable);
        let link = if way == 0 {
            &mut guest.up
        } else {
            &mut guest.down
        };
        let fates = link.offer(self.now, packet);
        for fate in fates.arrivals() {
            let bytes = bytes.clone();
            let parcel = if way == 0 {
                Parcel::Up(index, bytes)
            } else {
                Parcel::Down(index, bytes)
            };
            self.sent += 1;
            self.under_way.insert((fate.at, self.sent), parcel);
        }
    }

    /// Reliable and in order, after the same delay.
    fn post(&mut self, parcel: Parcel) {
        self.sent += 1;
        let at = self.now + Duration::from_millis(1);
        self.under_way.insert((at, self.sent), parcel);
    }

    fn deliver(&mut self, seats: &mut dyn Seats) {
        while let Some(entry) = self.under_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let ((at, _), parcel) = entry.remove_entry();
            match parcel {
                Parcel::Up(index, bytes) => {
                    let client = self.guests[index].client;
                    if self.guests[index].connected {
                        let result = self.stage.handle_packet(at, client, &bytes);
                        result.expect("a player's packets are well-formed");
                    }
                }
                Parcel::Down(index, bytes) if self.guests[index].connected => {
                    let player = &mut self.guests[index].player;
                    let result = seats.deliver(at, index, player, &bytes);
                    result.expect("the stage's packets are well-formed");
                }
                Parcel::MessageUp(index, bytes) => {
                    let client = self.guests[index].client;
                    self.stage.handle_message_bytes(client, &bytes);
                }
                Parcel::MessageDown(index, bytes) => {
                    let message =
                        ToPlayer::decode(&bytes).expect("the stage's messages are well-formed");
                    self.guests[index].player.handle_message(&message);
                    self.guests[index].heard.push(message);
                }
                Parcel::Down(..) => {}
            }
        }
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("now", &self.now)
            .field("guests", &self.guests)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest")
            .field("client", &self.client)
            .field("connected", &self.connected)
            .finish_non_exhaustive()
    }
}

/// Players who do not look on.
struct Plain<'a>(&'a mut dyn FnMut(usize, &mut Player) -> Command);

impl Seats for Plain<'_> {
    fn command(&mut self, _: Instant, index: usize, player: &mut Player) -> Command {
        (self.0)(index, player)
    }
}

/// A match of eight with the ball, which goes on however many goals there are.
fn ball_match(seed: u64) -> StageConfig {
    StageConfig::new(Arc::new(Level::of(Mode::Ball)))
        .seed(seed)
        .slots(8)
        .goals_to_win(250)
        .cancels(false)
}

/// Bytes of the longest packet.
const PACKET_BYTES: usize = 1_400;
