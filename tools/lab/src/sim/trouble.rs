//! The trouble of a simulation: links, programs, and people.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use muse_master::bus::Note;
use muse_netem::{Conditions, Jitter, NodeId};
use muse_wire::{Duration, Ecn, Instant};

use super::master::Heard;
use super::player::Standing;
use super::{Sim, address_of_player};

/// Chances, and what somebody who means harm has overheard.
pub(super) struct Trouble {
    random: fastrand::Rng,
    is_on: bool,
    next: Instant,
    overheard: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// Programs that were killed, and when they are started again.
    off: Vec<(usize, Instant)>,
    /// Players without a link to the master, and until when.
    away: Vec<(usize, Instant)>,
    address_changes: u32,
    seen: u32,
    /// The conditions of players' links, if not perfect; for servers that come later, too.
    links: BTreeMap<usize, Conditions>,
}

impl Trouble {
    pub(super) fn new(seed: u64, is_on: bool) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            is_on,
            next: Instant::ZERO,
            overheard: VecDeque::new(),
            off: Vec::new(),
            away: Vec::new(),
            address_changes: 0,
            seen: 0,
            links: BTreeMap::new(),
        }
    }

    /// One of many datagrams is kept, to be sent again.
    pub(super) fn overhear(&mut self, from: SocketAddr, to: SocketAddr, payload: &[u8]) {
        self.seen = self.seen.wrapping_add(1);
        if !self.is_on || !self.seen.is_multiple_of(50) {
            return;
        }
        if self.overheard.len() == OVERHEARD_MAX {
            self.overheard.pop_front();
        }
        self.overheard.push_back((from, to, payload.to_vec()));
    }
}

impl Sim {
    /// Now and then something goes wrong.
    pub(super) fn cause_trouble(&mut self) {
        self.end_trouble();
        if !self.trouble.is_on || self.now < self.trouble.next {
            return;
        }
        let players = self.players.len() as u32;
        // With more players more goes wrong.
        let pause = 60_000 / u64::from(players) + 20;
        self.trouble.next = self.now + Duration::from_millis(pause);
        let player = self.trouble.random.u32(..players) as usize;
        match self.trouble.random.u32(..100) {
            0..40 => self.change_link(player),
            40..50 => self.change_address(player),
            50..60 => self.kill_player(player),
            60..66 => self.cut_from_master(player),
            66..68 => self.kill_server(),
            68 if self.master_down_until.is_none() => self.kill_master(),
            69 if self.relay_down_until.is_none() => self.kill_relay(),
            _ => self.forge(),
        }
    }

    /// Everything works again, from now on.
    pub(super) fn heal(&mut self) {
        self.trouble.is_on = false;
        for (_, until) in self.trouble.off.iter_mut().chain(&mut self.trouble.away) {
            *until = self.now;
        }
        self.end_trouble();
        for player in 0..self.players.len() {
            let fine = Conditions::default().delay(Duration::from_millis(20));
            self.set_links(player, fine);
        }
    }

    fn end_trouble(&mut self) {
        let now = self.now;
        let over = |waiting: &mut Vec<(usize, Instant)>| -> Vec<usize> {
            let over = waiting.iter().filter(|(_, until)| *until <= now);
            let over = over.map(|(player, _)| *player).collect();
            waiting.retain(|(_, until)| *until > now);
            over
        };
        for player in over(&mut self.trouble.off) {
            self.players[player].start(now);
            self.master
                .tell(now, Heard::Note(Note::Back(self.players[player].account)));
        }
        for player in over(&mut self.trouble.away) {
            self.players[player].is_online = true;
            self.master
                .tell(now, Heard::Note(Note::Back(self.players[player].account)));
        }
    }

    /// A link gets better or worse, or is gone for a while.
    fn change_link(&mut self, player: usize) {
        let random = &mut self.trouble.random;
        let delay = Duration::from_millis(u64::from(random.u32(2..90)));
        let jitter = Duration::from_millis(u64::from(random.u32(0..30)));
        let loss = [0.0, 0.01, 0.03, 0.08][random.u32(..4) as usize];
        let mut conditions = Conditions::default()
            .delay(delay)
            .jitter(Jitter::Uniform(jitter))
            .loss(loss)
            .duplicate(0.01, Duration::from_millis(5))
            .corrupt(0.002, 3);
        if random.u32(..4) == 0 {
            let lasts = Duration::from_millis(u64::from(random.u32(300..14_000)));
            conditions = conditions.outage(self.now, self.now + lasts);
            self.told.outages += 1;
        }
        let account = self.players[player].account;
        self.note(format!(
            "account {account}: {delay:?}, jitter {jitter:?}, loss {loss}"
        ));
        self.set_links(player, conditions);
    }

    fn set_links(&mut self, player: usize, conditions: Conditions) {
        let Some(node) = self.network.node_at(self.players[player].address) else {
            return;
        };
        let servers = self.server_nodes.values().map(|(node, _)| *node);
        let far: Vec<NodeId> = servers.chain([self.relay_node]).collect();
        for there in far {
            self.network.set_links(node, there, conditions.clone());
        }
        self.trouble.links.insert(player, conditions);
    }

    /// A server's machine is there for the first time: links to it are as good as those to others.
    pub(super) fn set_links_to(&mut self, server: NodeId) {
        let near = Conditions::default().delay(Duration::from_millis(3));
        self.network.set_links(server, self.relay_node, near);
        for (player, conditions) in &self.trouble.links {
            if let Some(node) = self.network.node_at(self.players[*player].address) {
                self.network.set_links(node, server, conditions.clone());
            }
        }
    }

    fn change_address(&mut self, player: usize) {
        self.trouble.address_changes += 1;
        self.told.address_changes += 1;
        let old = self.players[player].address;
        let new = address_of_player(player as u32, self.trouble.address_changes);
        self.network.readdress(old, new);
        self.player_nodes.remove(&old);
        self.player_nodes.insert(new, player);
        self.players[player].address = new;
        let account = self.players[player].account;
        self.note(format!("account {account} is at {new} now"));
    }

    fn kill_player(&mut self, player: usize) {
        if self.players[player].standing == Standing::Off {
            return;
        }
        let lasts = Duration::from_millis(u64::from(self.trouble.random.u32(100..20_000)));
        self.players[player].crash(self.now);
        self.trouble.off.push((player, self.now + lasts));
        self.told.crashes[0] += 1;
        let account = self.players[player].account;
        self.master.tell(self.now, Heard::Note(Note::Away(account)));
        self.note(format!("the program of account {account} is killed"));
    }

    fn cut_from_master(&mut self, player: usize) {
        if !self.players[player].is_online {
            return;
        }
        let lasts = Duration::from_millis(u64::from(self.trouble.random.u32(500..25_000)));
        self.players[player].is_online = false;
        self.trouble.away.push((player, self.now + lasts));
        let account = self.players[player].account;
        self.master.tell(self.now, Heard::Note(Note::Away(account)));
        self.note(format!("account {account} cannot reach the master"));
    }

    fn kill_server(&mut self) {
        let count = self.servers.len() as u32;
        if count == 0 {
            return;
        }
        let chosen = self.trouble.random.u32(..count) as usize;
        if let Some(server) = self.servers.keys().nth(chosen).copied() {
            self.told.crashes[1] += 1;
            self.note(format!("server {server} is killed"));
            self.end_server(server);
        }
    }

    fn kill_master(&mut self) {
        let lasts = Duration::from_millis(u64::from(self.trouble.random.u32(500..6_000)));
        self.master.crash();
        self.master_down_until = Some(self.now + lasts);
        self.note("the master is killed".to_owned());
    }

    /// It forgets every room; hosts and guests ask for them again.
    fn kill_relay(&mut self) {
        let lasts = Duration::from_millis(u64::from(self.trouble.random.u32(200..6_000)));
        self.relay_down_until = Some(self.now + lasts);
        self.told.crashes[3] += 1;
        self.note("the relay is killed".to_owned());
    }

    /// Sends nonsense, overheard datagrams, or those with changes, under another's address.
    fn forge(&mut self) {
        let random = &mut self.trouble.random;
        let count = self.trouble.overheard.len() as u32;
        if count == 0 {
            return;
        }
        let (from, to, mut payload) = self.trouble.overheard[random.u32(..count) as usize].clone();
        match random.u32(..4) {
            0 => payload.iter_mut().for_each(|byte| *byte = random.u8(..)),
            1 => payload.truncate(random.u32(..payload.len().max(1) as u32) as usize),
            2 if !payload.is_empty() => {
                let at = random.u32(..payload.len() as u32) as usize;
                payload[at] ^= random.u8(1..);
            }
            _ => {}
        }
        self.told.forged += 1;
        let from = match random.bool() {
            true => from,
            false => SocketAddr::from(([198, 51, 100, 7], 666)),
        };
        self.network
            .send(self.now, from, to, Ecn::NotCapable, &payload);
    }
}

const OVERHEARD_MAX: usize = 64;
