//! A match in virtual time: one server and its clients, over a virtual network, all of it from seeds. Both sides run the shipped session,
//! transport included.
//!
//! A [`Scene`] says what the game does and looks on; the [`LabStage`] does the rest. Time passes in steps of a millisecond, in each of which
//! packets arrive, the server ticks if it is due, and clients simulate, send and draw.

use std::net::SocketAddr;

use muse_netcode::interpolation::Shown;
use muse_netcode::{Client, ClientId, EntityId, Event, Server, SessionConfig, Tick, Update};
use muse_netem::Conditions;
use muse_wire::{Duration, Instant};

use crate::arena::{Arrived, Carrier, Virtual};
use crate::character::{Body, Keys, Rules, TICKS_PER_SECOND, kinds, play};
use crate::crowd::Crowd;
use crate::sides::{ClientSide, ServerSide};

/// The subject of a run: the server's game, and what is noted down.
pub trait Scene {
    /// The server has simulated its players in this tick and has not committed it.
    fn tick(&mut self, server: &mut Server<Rules>, tick: Tick) {
        let _ = (server, tick);
    }

    /// A step of time has passed; [`LabStage::now`] says which.
    fn look(&mut self, stage: &mut LabStage) {
        let _ = stage;
    }
}

/// A scene in which nothing happens besides, for those who only look.
impl<F: FnMut(&mut LabStage)> Scene for F {
    fn look(&mut self, stage: &mut LabStage) {
        self(stage);
    }
}

/// A server, its clients, and the network between them.
///
/// ```
/// use muse_lab::stage::{LabStage, conditions};
/// use muse_wire::Duration;
/// let mut stage = LabStage::new(7);
/// stage.join(1, conditions(80));
/// stage.run(Duration::from_secs(3), &mut |_: &mut LabStage| ());
/// let client = stage.guest(0).client();
/// assert!(client.predicted().is_some());
/// assert_eq!(client.clock().round_trip().map(|rtt| rtt.as_millis() / 10), Some(8));
/// ```
pub struct LabStage {
    server: ServerSide,
    carrier: Virtual,
    config: SessionConfig,
    seed: u64,
    guests: Vec<StageClient>,
    crowd: Crowd,
    now: Instant,
}

/// A client and what stands around it.
pub struct StageClient {
    side: ClientSide,
    play: Box<dyn FnMut(Tick) -> Keys>,
    events: Vec<(Instant, Event)>,
    arrivals: Vec<Arrival>,
    states: Vec<(Instant, EntityId, Tick)>,
    sent_bytes: u64,
}

/// A packet that came to a client.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Its length, without the headers of transport, UDP and IP.
    pub bytes: usize,
}

impl LabStage {
    /// An empty match at the beginning of time. All randomness of the network follows from the seed.
    pub fn new(seed: u64) -> Self {
        Self::with_config(seed, SessionConfig::new(TICK))
    }

    /// As [`new`](Self::new), with settings for both sides.
    pub fn with_config(seed: u64, config: SessionConfig) -> Self {
        Self {
            server: ServerSide::new(seed, config),
            carrier: Virtual::new(seed),
            config,
            seed,
            guests: Vec::new(),
            crowd: Crowd::default(),
            now: Instant::ZERO,
        }
    }

    /// A client comes, whose player starts at the origin and does what follows from `seed`. Its packets take these conditions on both
    /// ways.
    pub fn join(&mut self, seed: u64, conditions: Conditions) -> EntityId {
        self.join_as(Body::at(0.0, 0.0), conditions, move |tick| play(seed, tick))
    }

    /// A client comes, whose player starts there and does what `play` says.
    pub fn join_as(
        &mut self,
        start: Body,
        conditions: Conditions,
        play: impl FnMut(Tick) -> Keys + 'static,
    ) -> EntityId {
        let entity = self.server.expect_player(&start);
        self.connect(&conditions, Box::new(play));
        entity
    }

    /// A client comes who only watches.
    pub fn watch(&mut self, conditions: Conditions) {
        self.server.expect_watcher();
        self.connect(&conditions, Box::new(|_| Keys::default()));
    }

    /// Bots come, so many in a square of `edge` metres around the origin, and run about from now on.
    pub fn add_crowd(&mut self, count: u64, edge: f32, seed: u64) -> Vec<EntityId> {
        self.crowd = Crowd::spawn(&mut self.server.game, count, edge, seed);
        self.crowd.entities().collect()
    }

    /// The network between the server and a client changes, both ways.
    pub fn set_conditions(&mut self, guest: usize, conditions: Conditions) {
        self.carrier.set_conditions(guest, conditions);
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration, scene: &mut impl Scene) {
        let end = self.now + time;
        while self.now < end {
            self.step(scene);
            self.now += STEP;
        }
    }

    /// Returns the time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The same in seconds.
    pub fn seconds(&self) -> f64 {
        self.now.as_secs_f64()
    }

    /// True if a picture is due that is drawn so often.
    pub fn is_every(&self, interval: Duration) -> bool {
        self.now.as_micros().is_multiple_of(interval.as_micros())
    }

    /// The server.
    pub fn server(&self) -> &Server<Rules> {
        &self.server.game
    }

    /// The server, to change the world before a run.
    pub fn server_mut(&mut self) -> &mut Server<Rules> {
        &mut self.server.game
    }

    /// A client, in the order in which they came.
    pub fn guest(&self, number: usize) -> &StageClient {
        &self.guests[number]
    }

    /// A client, to draw what it shows.
    pub fn guest_mut(&mut self, number: usize) -> &mut StageClient {
        &mut self.guests[number]
    }

    /// An entity's state on the server.
    pub fn truth(&self, entity: EntityId) -> Option<Body> {
        self.server.game.world().state(kinds().1, entity)
    }

    fn connect(&mut self, conditions: &Conditions, play: Box<dyn FnMut(Tick) -> Keys>) {
        self.carrier.join(conditions);
        let (number, server) = (self.guests.len(), self.carrier.server());
        self.guests.push(StageClient {
            side: ClientSide::new(number, self.seed, self.config, server, self.now),
            play,
            events: Vec::new(),
            arrivals: Vec::new(),
            states: Vec::new(),
            sent_bytes: 0,
        });
    }

    fn step(&mut self, scene: &mut impl Scene) {
        let now = self.now;
        let mut datagram = Vec::new();
        while let Some(arrived) = self.carrier.poll(now, &mut datagram) {
            match arrived {
                Arrived::AtClient(number) => {
                    self.guests[number].handle_datagram(now, self.carrier.server(), &mut datagram);
                }
                Arrived::AtServer(from) => self.server.handle_datagram(now, from, &mut datagram),
            }
        }
        self.server.handle_time(now);
        while let Some(tick) = self.server.poll_tick(now) {
            self.crowd.step(&mut self.server.game, tick);
            scene.tick(&mut self.server.game, tick);
            self.server.send_snapshots(now);
        }
        self.server.flush(now, |to, datagram| {
            self.carrier.send_down(now, to, datagram);
        });
        for (number, guest) in self.guests.iter_mut().enumerate() {
            guest.play(now);
            guest.side.flush(now, |datagram| {
                self.carrier.send_up(now, number, datagram);
            });
        }
        scene.look(self);
    }
}

impl StageClient {
    /// The client.
    pub fn client(&self) -> &Client<Rules> {
        &self.side.game
    }

    /// Returns the others as it shows them.
    pub fn show(&mut self) -> impl Iterator<Item = (EntityId, Shown<Body>)> {
        self.side.remotes.show(&self.side.game)
    }

    /// The events that it was told, and when.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }

    /// The packets that have come.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The states of others that have come: when, whose, and of which tick.
    pub fn states(&self) -> &[(Instant, EntityId, Tick)] {
        &self.states
    }

    /// Bytes that it has sent.
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, payload: &mut [u8]) {
        let arrivals = &mut self.arrivals;
        self.side.handle_datagram(now, from, payload, |_, bytes| {
            arrivals.push(Arrival { at: now, bytes });
        });
        while let Some(update) = self.side.game.poll_update() {
            self.side.remotes.handle_update(&self.side.game, &update);
            if let Update::State { entity, tick, .. } = update {
                self.states.push((now, entity, tick));
            }
        }
        while let Some(event) = self.side.game.poll_event() {
            self.events.push((now, event));
        }
    }

    fn play(&mut self, now: Instant) {
        self.side.handle_time(now);
        while let Some(len) = self.side.send_packet(now, &mut self.play) {
            self.sent_bytes += len as u64;
        }
    }
}

/// A perfect network with this round trip, to which loss and jitter can be added.
pub fn conditions(round_trip_ms: u64) -> Conditions {
    Conditions::default().delay(Duration::from_micros(round_trip_ms * 500))
}

/// Length of a tick.
pub const TICK: Duration = Duration::from_micros(1_000_000 / TICKS_PER_SECOND as u64);
/// Length of a step of time.
pub const STEP: Duration = Duration::from_millis(1);
/// The id of a client that is the first to connect.
pub const FIRST_CLIENT: ClientId = ClientId(1);
