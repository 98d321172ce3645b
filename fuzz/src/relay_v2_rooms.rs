//! The rooms of relay v2 and who is in them: anybody says anything with ids, cookies and keys that are real, from any address. Rooms and
//! guests stay within their limits, nobody gets more than they sent before they have proven their address, and who is banned stays out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use muse_relay::packet::{Candidates, PACKET_LEN_MAX, Packet, ShownToken};
use muse_relay::{HostTokens, LegId, Limits, Link, MasterKey, Relay, RoomKey, host_token_issuer};
use muse_transport::token::TokenGrant;
use muse_transport::{SeededEntropy, ServerKey};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

use crate::{Bound, Target, no_setup};

/// A relay and everybody around it.
pub const TARGET: Target = Target {
    name: "relay_v2_rooms",
    setup: no_setup,
    body: run,
    memory: Bound {
        base: 500_000,
        per_byte: 1_000,
    },
    // Three hosts may show a token at once, and each costs a signature to check.
    steps: Bound {
        base: 20_000_000,
        per_byte: 400_000,
    },
};

/// The first byte says whether the relay demands tokens. Then operations of four bytes: which, who, and two choices.
fn run(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let mut world = World::new(first & 1 == 1);
    for &[operation, who, one, two] in rest.as_chunks::<4>().0.iter().take(OPERATIONS_MAX) {
        world.step(operation, usize::from(who) % PLACES, one, two);
        world.check();
    }
}

struct World {
    relay: Relay,
    now: Instant,
    /// Honest hosts, at the first places.
    hosts: Vec<Link>,
    /// Everything that the relay ever told anybody, which a hostile player may know.
    ids: Vec<LegId>,
    cookies: BTreeMap<SocketAddr, Packet>,
    tokens: Vec<[u8; 8]>,
    /// The newest id of each room, and the addresses that its host has banned since.
    rooms: BTreeMap<u8, (LegId, BTreeSet<SocketAddr>)>,
    /// The room that the packet under way would open, and whom it would ban.
    opening: u8,
    banning: SocketAddr,
    /// Bytes sent to the relay less those from it, for places that never proved their address.
    balance: BTreeMap<SocketAddr, i64>,
}

impl World {
    fn new(demands_tokens: bool) -> Self {
        let now = Instant::from_secs(1);
        let mut entropy = SeededEntropy::danger_seeded(1);
        let key = ServerKey::from_bytes([3; 32]);
        let grant = TokenGrant::new(1, key.public(), RELAY);
        let issuer = host_token_issuer(&[7; 32]);
        let hosts = (0..HOSTS).map(|host| {
            let link = Link::open(now, RELAY, room(host), [host + 1; 32]);
            let token = issuer.issue(&grant, UNIX_S, &mut entropy);
            link.token(token.expect("within the limits"))
        });
        let hosts = hosts.collect();
        let tokens = HostTokens::new(key).master_key(&MasterKey::of(&issuer));
        let mut relay = match demands_tokens {
            true => Relay::new(now, limits(), tokens.expect("a public key"), [9; 32]),
            false => Relay::danger_open(now, limits(), [9; 32]),
        };
        relay.set_unix_time(now, UNIX_S);
        Self {
            relay,
            now,
            hosts,
            ids: vec![LegId::from_bits(0)],
            cookies: BTreeMap::new(),
            tokens: vec![[0; 8]],
            rooms: BTreeMap::new(),
            opening: 0,
            banning: RELAY,
            balance: BTreeMap::new(),
        }
    }

    fn step(&mut self, operation: u8, who: usize, one: u8, two: u8) {
        let from = place(who);
        let id = self.ids[usize::from(one) % self.ids.len()];
        let random = [two % 4; 8];
        let token = self.tokens[usize::from(two) % self.tokens.len()];
        let mut local = Candidates::NONE;
        local.push(place(usize::from(two) % PLACES));
        let cookie = self.cookies.get(&from).copied();
        match (operation % 13, cookie) {
            (0, _) => self.say(
                from,
                &Packet::Hello {
                    version: 2 - two % 2,
                    random,
                },
            ),
            (1, Some(Packet::Cookie { random, cookie, .. })) => {
                let (key, direct, token) = (room(one % ROOMS), two & 1 == 1, ShownToken::NONE);
                self.opening = one % ROOMS;
                let open = Packet::Open {
                    direct,
                    random,
                    cookie,
                    key,
                    local,
                    token,
                    term: 0,
                };
                self.say(from, &open);
            }
            (2, Some(Packet::Cookie { random, cookie, .. })) => {
                let (code, direct) = (room(one % ROOMS).code(), two & 1 == 1);
                self.join(
                    from,
                    &Packet::Join {
                        direct,
                        random,
                        cookie,
                        code,
                        local,
                    },
                    one % ROOMS,
                );
            }
            (3, _) => self.say(from, &Packet::Keep { id }),
            (4, _) => self.say(from, &Packet::Leave { id }),
            (5, _) => self.say(from, &Packet::Acquaint { id }),
            (6, _) => self.say(from, &Packet::Works { id, token }),
            (7, _) => {
                self.banning = place(usize::from(two) % PLACES);
                let guest = self.ids[usize::from(two) % self.ids.len()];
                self.say(
                    from,
                    &Packet::Ban {
                        id,
                        random,
                        guest,
                        addresses: local,
                    },
                );
            }
            (8, _) => {
                let mut datagram = id.data_header().to_vec();
                datagram.resize(8 + usize::from(two), 0x80);
                self.receive(from, datagram);
            }
            (9, _) => self.now += Duration::from_millis(u64::from(one) * u64::from(two)),
            (10, _) => self.run_hosts(),
            (11, _) => self.receive(from, vec![0x40 | one % 32; usize::from(two)]),
            (12, _) if one == 255 && two == 255 => self.relay.drain(),
            _ => {}
        }
        self.relay.handle_timeout(self.now);
        self.collect();
    }

    fn join(&mut self, from: SocketAddr, packet: &Packet, number: u8) {
        let guests = self.relay.guests();
        self.say(from, packet);
        let banned = self.rooms.get(&number);
        let banned = banned.is_some_and(|(_, banned)| banned.contains(&from));
        assert!(!banned || self.relay.guests() <= guests, "{from} is banned");
    }

    fn run_hosts(&mut self) {
        for host in 0..self.hosts.len() {
            let link = &mut self.hosts[host];
            link.handle_timeout(self.now);
            while link.poll_event().is_some() {}
            while let Some((to, packet)) = self.hosts[host].poll_packet() {
                if to == RELAY {
                    self.opening = host as u8;
                    self.say(place(host), &packet);
                }
            }
        }
    }

    fn say(&mut self, from: SocketAddr, packet: &Packet) {
        let mut buffer = [0; PACKET_LEN_MAX];
        let len = packet.emit(&mut buffer);
        self.receive(from, buffer[..len].to_vec());
    }

    fn receive(&mut self, from: SocketAddr, mut bytes: Vec<u8>) {
        *self.balance.entry(from).or_default() += bytes.len() as i64;
        let (ecn, payload) = (Ecn::NotCapable, &mut bytes[..]);
        self.relay
            .handle_datagram(self.now, Datagram { from, ecn, payload });
        self.collect();
    }

    /// Takes what the relay says, learns from it, and lets honest hosts hear it.
    fn collect(&mut self) {
        let mut buffer = [0; 4_096];
        while let Some(sent) = self.relay.poll_transmit(self.now, &mut buffer) {
            for datagram in sent.datagrams(&buffer) {
                *self.balance.entry(sent.to).or_default() -= datagram.len() as i64;
                if let Some(packet) = Packet::parse(datagram) {
                    self.learn(sent.to, packet);
                }
                let host = (0..self.hosts.len()).find(|host| place(*host) == sent.to);
                if let Some(link) = host.and_then(|host| self.hosts.get_mut(host)) {
                    link.handle_packet(self.now, RELAY, datagram);
                }
            }
        }
    }

    fn learn(&mut self, to: SocketAddr, packet: Packet) {
        let mut keep = |id| {
            if !self.ids.contains(&id) && self.ids.len() < IDS_MAX {
                self.ids.push(id);
            }
        };
        match packet {
            Packet::Cookie { .. } => drop(self.cookies.insert(to, packet)),
            Packet::Opened { id, .. } | Packet::Joined { id, .. } => {
                // A member has proven its address, and may be sent what others say.
                self.balance.insert(to, i64::MAX / 2);
                keep(id);
                let known = self.rooms.get(&self.opening).map(|(known, _)| *known);
                if matches!(packet, Packet::Opened { .. }) && known != Some(id) {
                    self.rooms.insert(self.opening, (id, BTreeSet::new()));
                }
            }
            Packet::Banned { id, .. } => {
                let room = self.rooms.values_mut().find(|(known, _)| *known == id);
                if let Some((_, banned)) = room {
                    banned.insert(self.banning);
                }
            }
            Packet::Introduce { id, token, .. } => {
                keep(id);
                if self.tokens.len() < IDS_MAX {
                    self.tokens.push(token);
                }
            }
            _ => {}
        }
    }

    fn check(&self) {
        assert!(self.relay.rooms() <= 4 && self.relay.guests() <= 8);
        for (place, balance) in &self.balance {
            assert!(*balance >= 0, "{place} got {balance} more than it sent");
        }
    }
}

fn limits() -> Limits {
    Limits::default()
        .rooms(4)
        .guests(8)
        .guests_per_room(4)
        .packets_per_second(200)
        .idle(Duration::from_secs(10))
}

fn room(number: u8) -> RoomKey {
    RoomKey::new([number; 16])
}

/// Sixteen addresses in four networks.
fn place(who: usize) -> SocketAddr {
    SocketAddr::from(([198, 51, (who % 4) as u8, who as u8], 1_000))
}

const RELAY: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 1)),
    7,
);
const UNIX_S: u64 = 1_800_000_000;
const HOSTS: u8 = 3;
const ROOMS: u8 = 6;
const PLACES: usize = 16;
const IDS_MAX: usize = 64;
const OPERATIONS_MAX: usize = 512;
