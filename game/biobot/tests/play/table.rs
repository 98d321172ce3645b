//! A match in one program: a stage, its players, and a network between them from a seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use muse::netcode::ClientId;
use muse::wire::{Duration, Ecn, Instant};
use muse_biobot::stage::JoinError;
use muse_biobot::{Audience, Command, Level, Player, Profile, Robot, Stage, StageConfig, ToPlayer};
use muse_netem::{Conditioner, Conditions, Packet};

/// A match, and everything that is under way in it.
pub(crate) struct Table {
    pub now: Instant,
    pub stage: Stage,
    pub guests: Vec<Guest>,
    under_way: BTreeMap<(Instant, u64), Parcel>,
    sent: u64,
    conditions: Conditions,
    seed: u64,
    /// The checkpoint that every player has unlocked.
    checkpoint: u8,
}

/// A player and its link.
pub(crate) struct Guest {
    pub player: Player,
    pub client: ClientId,
    pub connected: bool,
    /// Everything on its link is lost.
    pub cut: bool,
    up: Conditioner,
    down: Conditioner,
    pub bytes: [u64; 2],
    pub packets: [u64; 2],
    pub heard: Vec<ToPlayer>,
}

enum Parcel {
    Up(usize, Vec<u8>),
    Down(usize, Vec<u8>),
    MessageUp(usize, Vec<u8>),
    MessageDown(usize, Vec<u8>),
}

impl Table {
    pub(crate) fn new(config: StageConfig, players: u8, conditions: Conditions, seed: u64) -> Self {
        Self::seated(config, players, conditions, (seed, false))
    }

    /// Recorded from the beginning.
    pub(crate) fn recorded(
        config: StageConfig,
        players: u8,
        conditions: Conditions,
        seed: u64,
    ) -> Self {
        Self::seated(config, players, conditions, (seed, true))
    }

    fn seated(
        config: StageConfig,
        players: u8,
        conditions: Conditions,
        (seed, recorded): (u64, bool),
    ) -> Self {
        let now = Instant::from_secs(1);
        let mut stage = Stage::new(config, now);
        if recorded {
            stage.start_recording(now);
        }
        let mut table = Self {
            now,
            stage,
            guests: Vec::new(),
            under_way: BTreeMap::new(),
            sent: 0,
            conditions,
            seed,
            checkpoint: 0,
        };
        for slot in 0..players {
            table.join(u64::from(slot) + 100).expect("there is a seat");
        }
        table
    }

    /// Two players who begin at a checkpoint.
    pub(crate) fn at_checkpoint(
        config: StageConfig,
        conditions: Conditions,
        checkpoint: u8,
    ) -> Self {
        let mut table = Self::seated(config, 0, conditions, (1, false));
        table.checkpoint = checkpoint;
        for id in [100, 101] {
            table.join(id).expect("there is a seat");
        }
        table
    }

    /// On a perfect network.
    pub(crate) fn near(level: Level, players: u8) -> Self {
        let config = StageConfig::new(Arc::new(level)).slots(players);
        Self::new(config, players, Conditions::default(), 1)
    }

    /// Another player comes, or an old one comes back.
    pub(crate) fn join(&mut self, id: u64) -> Result<u8, JoinError> {
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

    pub(crate) fn leave(&mut self, index: usize) {
        self.guests[index].connected = false;
        self.stage.leave(self.guests[index].client);
    }

    /// Lets 5 ms pass.
    pub(crate) fn step(&mut self, command: &mut dyn FnMut(usize, &mut Player) -> Command) {
        self.now += Duration::from_millis(5);
        self.deliver();
        let mut buffer = vec![0; 1_400];
        for index in 0..self.guests.len() {
            if !self.guests[index].connected {
                continue;
            }
            while let Some(message) = self.guests[index].player.poll_message() {
                self.post(Parcel::MessageUp(index, message.encode()));
            }
            let pressed = command(index, &mut self.guests[index].player);
            while let Some(len) =
                self.guests[index]
                    .player
                    .poll_packet(self.now, pressed, &mut buffer)
            {
                self.send(index, 0, buffer[..len].to_vec());
            }
        }
        while self.stage.poll_tick(self.now).is_some() {
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
    pub(crate) fn run(
        &mut self,
        ticks: u32,
        mut command: impl FnMut(usize, &mut Player) -> Command,
    ) {
        for _ in 0..ticks * 4 {
            self.step(&mut command);
        }
    }

    /// Lets time pass until something is so, or fails.
    pub(crate) fn until(
        &mut self,
        ticks: u32,
        mut command: impl FnMut(usize, &mut Player) -> Command,
        mut done: impl FnMut(&mut Self) -> bool,
    ) {
        for _ in 0..ticks * 4 {
            self.step(&mut command);
            if done(self) {
                return;
            }
        }
        assert!(
            done(self),
            "it did not happen within {ticks} ticks; round {:?}",
            self.stage.round()
        );
    }

    /// Until the match is played and everybody has settled.
    pub(crate) fn begin(&mut self) {
        self.until(
            1_000,
            |_, _| Command::default(),
            |table| table.stage.round().phase == muse_biobot::Phase::Playing,
        );
        self.run(50, |_, _| Command::default());
    }

    /// A robot as the server has it.
    pub(crate) fn robot(&self, slot: u8) -> Robot {
        let world = self.stage.server().world();
        let kind = self.stage.kinds().robot;
        world
            .entities()
            .filter_map(|entity| world.state(kind, entity))
            .find(|robot| robot.slot == slot)
            .expect("it is in the match")
    }

    /// True if a device is active.
    pub(crate) fn active(&self, id: &str) -> bool {
        let index = self.stage.level().device(id).expect("the level has it");
        let world = self.stage.server().world();
        let kind = self.stage.kinds().device;
        world
            .entities()
            .filter_map(|entity| world.state(kind, entity))
            .any(|device| usize::from(device.index) == index && device.active)
    }

    fn send(&mut self, index: usize, way: usize, bytes: Vec<u8>) {
        let guest = &mut self.guests[index];
        guest.bytes[way] += bytes.len() as u64;
        guest.packets[way] += 1;
        if guest.cut {
            return;
        }
        let to = "192.0.2.1:9000".parse().expect("an address");
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

    fn deliver(&mut self) {
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
                        result.expect("a packet of a player");
                    }
                }
                Parcel::Down(index, bytes) if self.guests[index].connected => {
                    let result = self.guests[index].player.handle_packet(at, &bytes);
                    result.expect("a packet of the stage");
                }
                Parcel::MessageUp(index, bytes) => {
                    let client = self.guests[index].client;
                    self.stage.handle_message_bytes(client, &bytes);
                }
                Parcel::MessageDown(index, bytes) => {
                    let message = ToPlayer::decode(&bytes).expect("a message of the stage");
                    self.guests[index].player.handle_message(&message);
                    self.guests[index].heard.push(message);
                }
                Parcel::Down(..) => {}
            }
        }
    }
}

/// A command that walks towards a place; whether it is near.
pub(crate) fn towards(robot: &Robot, place: [f32; 3]) -> (Command, bool) {
    let way = glam::Vec3::from(place) - robot.feet();
    let flat = glam::Vec2::new(way.x, way.z).length();
    let (yaw, _) = muse_biobot::weapons::angles(way);
    let command = Command {
        forward: i8::from(flat > 0.25),
        yaw,
        ..Command::default()
    };
    (command, flat < 0.5)
}

/// A floor with walls around, and more of it.
pub(crate) fn yard(mode: &str, more: &str) -> Level {
    let text = format!(
        r#"{{ "name": "Yard", "mode": "{mode}", "slots": 16, "kill_below": -9,
        "spawns": [ {{ "at": [-4, 0.02, 10] }}, {{ "at": [4, 0.02, 10] }}, {{ "at": [0, 0.02, 14] }} ],
        "solids": [ {{ "min": [-30, -1, -30], "max": [30, 0, 30] }},
            {{ "min": [-31, 0, -31], "max": [-30, 6, 31] }}, {{ "min": [30, 0, -31], "max": [31, 6, 31] }},
            {{ "min": [-30, 0, -31], "max": [30, 6, -30] }}, {{ "min": [-30, 0, 30], "max": [30, 6, 31] }},
            {{ "min": [10, 0, -10], "max": [16, 2, 0], "rise": "+x" }}, {{ "min": [16, 0, -10], "max": [20, 2, 0] }},
            {{ "min": [-12, 0, -12], "max": [-10, 0.3, 0] }} ] {more} }}"#
    );
    Level::parse(&text).expect("the yard is whole")
}
