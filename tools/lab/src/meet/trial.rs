//! One meeting: a code is typed, the way is found, they play, and something happens to the way.

use fastrand::Rng;
use muse_netem::{Conditions, Jitter, Network, NodeId, Simulation};
use muse_relay::{CodeSecret, Limits, Link, Relay, RoomKey, ShortCode};
use muse_transport::{SeededEntropy, ServerKey, ServerOptions};
use muse_wire::{Duration, Instant};

use super::kind::Way;
use super::place::{Pair, Place, RELAY};
use super::player::{Node, Player, endpoint};

/// A host and a guest of a room, over a virtual network.
pub struct Meeting {
    pair: Pair,
    simulation: Simulation<Node>,
    places: [Place; 2],
    /// Host and guest; the guest comes when the code is typed.
    players: Vec<NodeId>,
    /// Draws when things happen.
    rng: Rng,
    code: ShortCode,
    typed_at: Instant,
    next_tick: Instant,
    ticks: u32,
    seed: u64,
}

/// The outcome of a meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The way that they had at the end.
    pub way: Way,
    /// From the code typed to the first packet of the game at the guest, if it came.
    pub first_packet: Option<Duration>,
    /// From the code typed to the first moment at which both sent directly, if there was one.
    pub direct_after: Option<Duration>,
}

/// The outcome of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The longest time between two packets of the game at either player.
    pub longest: Duration,
    /// Reliable messages that did not come, or not in order.
    pub lost: u32,
}

/// Something that happens to the way between two players.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trouble {
    /// Nothing passes between the two any more.
    Cut,
    /// Nothing passes from the host to the guest any more.
    CutOneWay,
    /// Every router of the host forgets it.
    HostForgotten,
    /// Every router of the guest forgets it.
    GuestForgotten,
}

impl Trouble {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::Cut,
        Self::CutOneWay,
        Self::HostForgotten,
        Self::GuestForgotten,
    ];

    /// A name without blanks.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::CutOneWay => "cut_one_way",
            Self::HostForgotten => "host_forgotten",
            Self::GuestForgotten => "guest_forgotten",
        }
    }
}

impl Meeting {
    /// Builds the networks of a pair, opens a room, and lets a guest type its code a while later. Every link has this round trip, and loses this share of packets.
    pub fn new(pair: Pair, round_trip: Duration, loss: f64, seed: u64) -> Self {
        let mut network = Network::new(seed);
        network.set_default(
            Conditions::default()
                .delay(round_trip / 2)
                .jitter(Jitter::Uniform(Duration::from_millis(4)))
                .loss(loss),
        );
        let places = pair.build(&mut network);
        let mut simulation = Simulation::new(network);
        let relay = Relay::danger_open(Instant::ZERO, Limits::default(), secret(seed, 0));
        simulation.add(RELAY, Node::Relay(Box::new(relay)));

        let mut entropy = SeededEntropy::danger_seeded(seed);
        let server = ServerKey::generate(&mut entropy);
        let host_key = *server.public().as_bytes();
        let mut host = endpoint(seed ^ 1 << 32);
        host.listen(ServerOptions::new(server));
        let mut rng = Rng::with_seed(seed);
        let key = RoomKey::new(rng.u128(..).to_le_bytes());
        let words = CodeSecret::new(rng.u32(..).to_le_bytes());
        let place = &places[0];
        let link = Link::open(Instant::ZERO, place.relay, key, secret(seed, 1))
            .give_key(Instant::ZERO, words, host_key)
            .local_addresses(&[place.inside]);
        let player = Player::new(host, link);
        simulation.attach(place.node, Node::Player(Box::new(player)));

        let mut meeting = Self {
            pair,
            players: vec![place.node],
            simulation,
            places,
            rng,
            code: ShortCode::new(key.code(), words),
            typed_at: Instant::ZERO,
            next_tick: Instant::ZERO,
            ticks: 0,
            seed,
        };
        let wait = meeting.rng.u64(2_000..6_000);
        meeting.run_for(Duration::from_millis(wait), |_| false);
        meeting.type_code();
        meeting
    }

    /// The guest types the code.
    fn type_code(&mut self) {
        let now = self.simulation.now();
        let text = self.code.to_string();
        let code: ShortCode = text.parse().expect("as it was printed");
        let place = &self.places[1];
        let link = Link::join(now, place.relay, code.room(), secret(self.seed, 2))
            .take_key(now, code)
            .local_addresses(&[place.inside]);
        let mut guest = Player::new(endpoint(self.seed ^ 2 << 32), link);
        guest.connect(now);
        let node = place.node;
        self.simulation.attach(node, Node::Player(Box::new(guest)));
        self.players.push(node);
        self.typed_at = now;
    }

    /// Lets them play for so long.
    pub fn play(&mut self, span: Duration) -> Met {
        let began = self.simulation.now();
        let until = began + span;
        self.run_for(span, Self::is_direct);
        let direct_after = self
            .is_direct()
            .then(|| self.simulation.now() - self.typed_at);
        self.run_for(until - self.simulation.now(), |_| false);
        let first = self.guest().came.first();
        let way = match (self.plays(), self.is_direct()) {
            (false, _) => Way::None,
            (true, true) => Way::Direct,
            (true, false) => Way::Relayed,
        };
        Met {
            way,
            first_packet: first.map(|came| *came - self.typed_at),
            direct_after,
        }
    }

    /// Waits until they play by the way that is permitted, and for a while, then lets something happen and measures what they notice of it. `None` if they do not come
    /// to play so, or if it cannot happen here.
    pub fn suffer(&mut self, trouble: Trouble) -> Option<Gap> {
        let router = match trouble {
            Trouble::Cut | Trouble::CutOneWay => None,
            Trouble::HostForgotten => Some(0_usize),
            Trouble::GuestForgotten => Some(1),
        };
        let can_happen = match router {
            Some(player) => self.places[player].can_forget(),
            None => self.pair.way() == Way::Direct,
        };
        if !can_happen || self.pair.way() == Way::None {
            return None;
        }
        let direct = self.pair.way() == Way::Direct;
        let found = |meeting: &Self| meeting.plays() && meeting.is_direct() == direct;
        self.run_for(FINDS_WITHIN, found);
        let wait = self.rng.u64(3_500..6_000);
        self.run_for(Duration::from_millis(wait), |_| false);
        if !found(self) {
            return None;
        }
        let at = self.simulation.now();
        let (host, guest) = (self.players[0], self.players[1]);
        let network = self.simulation.network_mut();
        match (trouble, router) {
            (_, Some(player)) => self.places[player].forget(network),
            (Trouble::Cut, _) => network.partition(host, guest),
            (_, None) => network.partition_one_way(host, guest),
        }
        self.run_for(NOTICED_WITHIN, |_| false);
        let until = self.simulation.now();
        // What is still to come comes without anything new.
        self.simulation.run_for(SETTLES_WITHIN);
        let players = [self.host(), self.guest()];
        let longest = players.map(|player| longest_pause(&player.came, at, until));
        let lost = |from: &Player, to: &Player| {
            let sent = 0..from.reliable_sent();
            let came = to.reliable.iter().copied();
            let in_order = sent.clone().zip(came).filter(|(one, other)| one == other);
            sent.len() as u32 - in_order.count() as u32
        };
        let [host, guest] = players;
        Some(Gap {
            longest: longest[0].max(longest[1]),
            lost: lost(host, guest) + lost(guest, host),
        })
    }

    /// Lets time go on, with a tick of the game and of the neighbourhood now and then, until `is_done` says so.
    fn run_for(&mut self, span: Duration, is_done: impl Fn(&Self) -> bool) {
        let until = self.simulation.now() + span;
        while self.simulation.now() < until && !is_done(self) {
            self.next_tick = self.next_tick.max(self.simulation.now());
            let pause = self.next_tick.min(until);
            self.simulation.run_until(pause, |_| ());
            if pause == self.next_tick {
                self.tick();
            }
        }
    }

    fn tick(&mut self) {
        let now = self.simulation.now();
        self.next_tick = now + TICK;
        self.ticks += 1;
        for &node in &self.players {
            if let Node::Player(player) = self.simulation.node_mut(node) {
                player.play(now);
            }
        }
        if self.ticks.is_multiple_of(DISTURBED_EVERY) {
            for place in &self.places {
                let port = self.rng.u16(1..);
                place.disturb(self.simulation.network_mut(), now, port);
            }
        }
    }

    /// True if packets of the game come to both.
    fn plays(&self) -> bool {
        let now = self.simulation.now();
        self.host().plays(now) && self.guest().plays(now)
    }

    /// True if both send directly.
    fn is_direct(&self) -> bool {
        self.host().is_direct() && self.guest().is_direct()
    }

    fn host(&self) -> &Player {
        self.player(0)
    }

    fn guest(&self) -> &Player {
        self.player(1)
    }

    fn player(&self, number: usize) -> &Player {
        match self.simulation.node(self.players[number]) {
            Node::Player(player) => player,
            Node::Relay(_) => unreachable!("players are no relays"),
        }
    }
}

/// The longest time without a packet between these two times.
fn longest_pause(came: &[Instant], from: Instant, until: Instant) -> Duration {
    let before = came.iter().rev().find(|at| **at <= from).copied();
    let after = came.iter().filter(|at| **at > from && **at <= until);
    let mut last = before.unwrap_or(from);
    let mut longest = Duration::ZERO;
    for at in after.copied().chain([until]) {
        longest = longest.max(at - last);
        last = at;
    }
    longest
}

fn secret(seed: u64, number: u8) -> [u8; 32] {
    let mut secret = [number; 32];
    secret[..8].copy_from_slice(&seed.to_le_bytes());
    secret
}

/// A tick of the game.
const TICK: Duration = Duration::from_micros(33_333);
/// Ticks between two connections that another machine in the house opens.
const DISTURBED_EVERY: u32 = 60;
/// The time that two have to find their way before something happens to it.
const FINDS_WITHIN: Duration = Duration::from_secs(20);
/// The time after it in which they are watched, and in which what was sent last arrives.
const NOTICED_WITHIN: Duration = Duration::from_secs(8);
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
