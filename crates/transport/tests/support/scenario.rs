//! A whole life of a connection drawn from a seed: network, channels, messages, cuts and changes of address.

use std::net::SocketAddr;

use fastrand::Rng;
use muse_netem::{Conditions, Jitter, NatKind, Queue};
use muse_transport::{
    ChannelConfig, Config, Delivery, MessageId, Priority, Receipt, Repair, SendOptions,
};
use muse_wire::Duration;

use crate::pair::{OwnedEvent, Pair, Side};

/// Nothing heard for this long interrupts.
pub(crate) const SILENCE: Duration = Duration::from_secs(2);
/// An interrupted connection is kept for this long.
pub(crate) const RESUME_WITHIN: Duration = Duration::from_secs(25);
/// The game's tick.
const TICK: Duration = Duration::from_millis(10);
/// Most time that may pass, once the network is well again, until all is quiet.
const QUIET_WITHIN: Duration = Duration::from_secs(120);

/// One message as its sender knows it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    pub(crate) len: usize,
    pub(crate) deadline: bool,
    pub(crate) receipt: bool,
}

/// The record of a run, to be judged.
pub(crate) struct Story {
    pub(crate) pair: Pair,
    pub(crate) seed: u64,
    pub(crate) deliveries: Vec<Delivery>,
    /// By side that sent and channel.
    pub(crate) sent: [Vec<Vec<Sent>>; 2],
    pub(crate) quiet: bool,
}

/// Something that happens to the network.
#[derive(Clone, Copy, Debug)]
enum Incident {
    CutFor(Duration),
    Heal,
    Readdress,
}

/// Runs the scenario of `seed` to its end.
pub(crate) fn play(seed: u64) -> Story {
    let mut rng = Rng::with_seed(seed);
    let (config, deliveries) = draw_config(&mut rng);
    let nat = rng.bool().then_some(NatKind::PortRestricted);
    let mut pair = Pair::with_nat(config, seed, nat);
    let calm_start = rng.bool();
    if !calm_start {
        // No bursts yet: a server waits 5 s for the first packet of a client it has let in, and no longer.
        set_network(&mut pair, &mut rng, 0.3, false);
    }
    pair.connect();
    set_network(&mut pair, &mut rng, 0.5, true);
    let mut story = Story {
        pair,
        seed,
        sent: [0, 1].map(|_| vec![Vec::new(); deliveries.len()]),
        deliveries,
        quiet: false,
    };
    story.chatter(&mut rng);
    story.calm_down();
    story
}

fn draw_config(rng: &mut Rng) -> (Config, Vec<Delivery>) {
    let partial =
        Delivery::partially_reliable(rng.u16(1..=60), rng.u8(0..=100)).expect("a promise");
    let mut deliveries = vec![
        Delivery::Unreliable,
        Delivery::Sequenced,
        Delivery::ReliableUnordered,
        Delivery::ReliableSequenced,
        Delivery::ReliableOrdered,
        partial,
    ];
    rng.shuffle(&mut deliveries);
    let mut config = Config::new(seed_protocol(rng))
        .keep_alive(Duration::from_millis(250))
        .silence(SILENCE)
        .resume_within(RESUME_WITHIN)
        .rekey_after([8, 50, 300, 1 << 20][rng.usize(..4)]);
    for &delivery in &deliveries {
        let repair = [Repair::Frugal, Repair::Balanced, Repair::Fast][rng.usize(..3)];
        config = config.channel(
            ChannelConfig::new(delivery)
                .repair(repair)
                .priority(draw_priority(rng))
                .weight(rng.u8(..)),
        );
    }
    (config.build().expect("a sensible config"), deliveries)
}

fn seed_protocol(rng: &mut Rng) -> u64 {
    rng.u64(..)
}

fn draw_priority(rng: &mut Rng) -> Priority {
    [
        Priority::Urgent,
        Priority::High,
        Priority::Normal,
        Priority::Low,
    ][rng.usize(..4)]
}

fn set_network(pair: &mut Pair, rng: &mut Rng, loss_max: f64, bursts: bool) {
    let [client, server] = pair.nodes;
    let there = draw_conditions(rng, loss_max, bursts);
    let back = draw_conditions(rng, loss_max, bursts);
    let network = pair.simulation.network_mut();
    network.set_link(client, server, there);
    network.set_link(server, client, back);
}

fn draw_conditions(rng: &mut Rng, loss_max: f64, bursts: bool) -> Conditions {
    let mut conditions = Conditions::default().delay(millis(rng, 200));
    if rng.bool() {
        let jitter = Jitter::Uniform(millis(rng, 80));
        conditions = conditions.jitter(jitter).keep_order(rng.u8(..4) == 0);
    }
    let loss = rng.f64() * loss_max;
    conditions = match rng.u8(..4) {
        0 => conditions,
        1 if bursts => conditions.burst_loss(loss.min(0.4), 1.0 + rng.f64() * 7.0),
        _ => conditions.loss(loss),
    };
    if rng.u8(..3) == 0 {
        conditions = conditions.duplicate(rng.f64() * 0.2, millis(rng, 100));
    }
    if rng.u8(..3) == 0 {
        conditions = conditions.reorder(rng.f64() * 0.2, millis(rng, 100));
    }
    if rng.u8(..3) == 0 {
        conditions = conditions
            .corrupt(rng.f64() * 0.1, 8)
            .truncate(rng.f64() * 0.05);
    }
    if rng.u8(..3) == 0 {
        conditions = conditions.mtu(1_280);
    }
    if rng.u8(..4) == 0 {
        let queue = Queue::Time(millis(rng, 400));
        conditions = conditions.rate(rng.u64(400_000..5_000_000)).queue(queue);
    }
    conditions
}

fn millis(rng: &mut Rng, most: u64) -> Duration {
    Duration::from_micros(rng.u64(0..=most * 1_000))
}

/// The payload of message `index` of a channel.
pub(crate) fn content(seed: u64, side: Side, channel: u8, index: usize, len: usize) -> Vec<u8> {
    let mut payload = vec![0; len];
    let name = (index as u64) << 16 | u64::from(channel) << 8 | side.index() as u64;
    Rng::with_seed(seed.rotate_left(32) ^ name).fill(&mut payload);
    if let Some(first) = payload.first_chunk_mut() {
        *first = (index as u32).to_le_bytes();
    }
    payload
}

impl Story {
    /// Both sides talk for a few seconds while things happen to the network.
    fn chatter(&mut self, rng: &mut Rng) {
        let ticks = rng.u64(100..500);
        let mut incidents = self.draw_incidents(rng, ticks);
        let start = self.pair.now();
        // Number of messages in a thousand ticks for each channel.
        let rates: Vec<u64> = (0..12).map(|_| [20, 200, 1_000][rng.usize(..3)]).collect();
        let mut large = rng.u8(..4);
        for tick in 0..ticks {
            self.pair.advance(start + TICK * tick);
            while let Some(&(at, incident)) = incidents.last().filter(|(at, _)| *at <= tick) {
                incidents.pop();
                self.befall(rng, at, incident, &mut incidents);
            }
            for side in Side::BOTH {
                for channel in 0..self.deliveries.len() as u8 {
                    let rate = rates[side.index() * 6 + usize::from(channel)];
                    let flood = if rng.u64(..8_000) == 0 { 300 } else { 0 };
                    for _ in 0..flood + u64::from(rng.u64(..1_000) < rate) {
                        let len = draw_len(rng, &mut large);
                        self.say(rng, side, channel, len, true);
                    }
                }
            }
        }
        // A cut takes as long as it takes, also when nobody has anything to say.
        for &(at, incident) in incidents.iter().rev() {
            if matches!(incident, Incident::Heal) {
                self.pair.advance(start + TICK * at);
            }
        }
        self.pair.simulation.network_mut().heal_all();
        // The last word of each channel has no deadline, so that it must arrive where the mode says so.
        for side in Side::BOTH {
            for channel in 0..self.deliveries.len() as u8 {
                self.say(rng, side, channel, 30, false);
            }
        }
    }

    /// Incidents by tick, the next one last.
    fn draw_incidents(&self, rng: &mut Rng, ticks: u64) -> Vec<(u64, Incident)> {
        let mut incidents = Vec::new();
        for _ in 0..rng.u8(..3) {
            incidents.push((rng.u64(..ticks), Incident::Readdress));
        }
        if rng.u8(..3) == 0 {
            let length = [millis(rng, 1_500), millis(rng, 20_000)][rng.usize(..2)];
            incidents.push((rng.u64(..ticks), Incident::CutFor(length)));
        }
        incidents.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        incidents
    }

    fn befall(
        &mut self,
        rng: &mut Rng,
        tick: u64,
        incident: Incident,
        later: &mut Vec<(u64, Incident)>,
    ) {
        let [client, server] = self.pair.nodes;
        let nat = self.pair.nat;
        let network = self.pair.simulation.network_mut();
        match incident {
            Incident::CutFor(length) => {
                network.partition(client, server);
                let ticks = length.as_micros() / TICK.as_micros();
                later.push((tick + ticks, Incident::Heal));
                later.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
            }
            Incident::Heal => network.heal_all(),
            Incident::Readdress => match nat {
                Some(nat) if rng.bool() => network.rebind(nat),
                Some(nat) => {
                    let external =
                        SocketAddr::from(([198, 51, rng.u8(101..200), rng.u8(1..255)], 0));
                    network.rebind_to(nat, external.ip());
                }
                None => {
                    let old = network.addresses(client)[0];
                    let port = old.port() + 1;
                    let ip = [192, 0, 2 + rng.u8(..2), 1];
                    network.readdress(old, SocketAddr::from((ip, port)));
                }
            },
        }
    }

    fn say(&mut self, rng: &mut Rng, side: Side, channel: u8, len: usize, may_expire: bool) {
        let delivery = self.deliveries[usize::from(channel)];
        let now = self.pair.now();
        let mut options = SendOptions::default();
        let mut receipt = rng.u8(..4) == 0;
        let may_expire = may_expire && !matches!(delivery, Delivery::PartiallyReliable(_));
        let deadline = may_expire && rng.u8(..6) == 0;
        if deadline {
            options = options.deadline(now + millis(rng, 600));
            receipt = true;
        }
        // Messages too short to carry their number can only be told apart where all arrive in order.
        let len = if delivery == Delivery::ReliableOrdered && !deadline {
            len
        } else {
            len.max(4)
        };
        let index = self.sent[side.index()][usize::from(channel)].len();
        let payload = content(self.seed, side, channel, index, len);
        if receipt {
            options = options.receipt();
        }
        if rng.u8(..5) == 0 {
            options = options.priority(draw_priority(rng));
        }
        let connection = self.pair.connection(side);
        let sent = self
            .pair
            .node_mut(side)
            .send_with(now, connection, channel, &payload, &options);
        match sent {
            Ok(id) => self.sent[side.index()][usize::from(channel)].push(Sent {
                id,
                len,
                deadline,
                receipt,
            }),
            Err(error) => unreachable!(
                "{side:?} cannot send on {channel}: {error}; {:?} {:?}",
                self.pair.news(Side::Client),
                self.pair.news(Side::Server)
            ),
        }
    }

    /// The network gets well and everything comes to rest.
    fn calm_down(&mut self) {
        let [client, server] = self.pair.nodes;
        let network = self.pair.simulation.network_mut();
        network.set_links(
            client,
            server,
            Conditions::default().delay(Duration::from_millis(20)),
        );
        let limit = self.pair.now() + QUIET_WITHIN;
        self.quiet = self.pair.run_until(limit, |pair| {
            Side::BOTH.iter().all(|&side| pair.queued(side) == 0)
        });
        self.pair.advance_for(Duration::from_secs(5));
        self.quiet &= Side::BOTH.iter().all(|&side| self.pair.queued(side) == 0);
    }

    /// The receipts that `side` was given for a channel.
    pub(crate) fn receipts(&self, side: Side, channel: u8) -> Vec<Receipt> {
        let of_side = self.pair.log.iter().filter(|entry| entry.side == side);
        of_side
            .filter_map(|entry| match entry.what {
                OwnedEvent::Receipt(receipt) if receipt.id.channel == channel => Some(receipt),
                _ => None,
            })
            .collect()
    }
}

fn draw_len(rng: &mut Rng, large: &mut u8) -> usize {
    if *large > 0 && rng.u8(..) == 0 {
        *large -= 1;
        return rng.usize(20_000..100_000);
    }
    match rng.u8(..20) {
        0 => rng.usize(0..4),
        1 => rng.usize(1_000..5_000),
        2 => rng.usize(1_010..1_040),
        3..8 => rng.usize(4..1_024),
        _ => rng.usize(4..120),
    }
}
