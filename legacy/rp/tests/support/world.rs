//! Hosts over a virtual network in virtual time. Each has two sockets, so it is not a `Machine` of `netem`'s simulation but has a
//! loop of its own.

use std::net::SocketAddr;

use muse_netem::{Conditions, Network, NodeId};
use muse_rp::{Channel, Event, Host};
use muse_wire::{Duration, Ecn, Instant};

/// Whatever takes part, with two sockets.
pub(crate) trait Peer {
    fn handle_datagram(&mut self, now: Instant, channel: Channel, from: SocketAddr, bytes: &[u8]);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_timeout(&self) -> Option<Instant>;
    fn poll_transmit(
        &mut self,
        now: Instant,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)>;
    fn poll_event(&mut self) -> Option<Event>;
}

impl Peer for Host {
    fn handle_datagram(&mut self, now: Instant, channel: Channel, from: SocketAddr, bytes: &[u8]) {
        self.handle_datagram(now, channel, from, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.poll_timeout()
    }

    fn poll_transmit(
        &mut self,
        now: Instant,
        channel: Channel,
        buffer: &mut [u8],
    ) -> Option<(SocketAddr, usize)> {
        self.poll_transmit(now, channel, buffer)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.poll_event()
    }
}

/// Hosts and the network between them.
pub(crate) struct World<P = Host> {
    pub(crate) now: Instant,
    pub(crate) network: Network,
    places: Vec<Place<P>>,
}

/// A host and its two addresses.
struct Place<P> {
    node: NodeId,
    addresses: [SocketAddr; 2],
    host: P,
    events: Vec<Event>,
}

impl<P: Peer> World<P> {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> Self {
        let mut network = Network::new(seed);
        network.set_default(conditions);
        Self {
            now: Instant::ZERO,
            network,
            places: Vec::new(),
        }
    }

    /// Adds a host at 192.0.2.`number` and says its number. Its ports are those of [`addresses`].
    pub(crate) fn add(&mut self, host: P) -> usize {
        let number = self.places.len();
        let addresses = addresses(number);
        let node = self.network.add_node(addresses[0]);
        self.network.add_address(node, addresses[1]);
        self.places.push(Place {
            node,
            addresses,
            host,
            events: Vec::new(),
        });
        number
    }

    /// Another host in the place of one, which is gone without a word.
    pub(crate) fn restart(&mut self, number: usize, host: P) {
        self.places[number].host = host;
    }

    pub(crate) fn host(&mut self, number: usize) -> &mut P {
        &mut self.places[number].host
    }

    pub(crate) fn node(&self, number: usize) -> NodeId {
        self.places[number].node
    }

    /// Returns the events at a host since the last call.
    pub(crate) fn take_events(&mut self, number: usize) -> Vec<Event> {
        std::mem::take(&mut self.places[number].events)
    }

    /// Runs for so long.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let until = self.now + span;
        let mut steps_at_now = 0;
        loop {
            self.transmit();
            let timeouts = self
                .places
                .iter()
                .filter_map(|place| place.host.poll_timeout());
            let next = timeouts.chain(self.network.next_delivery()).min();
            let Some(next) = next.filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            steps_at_now = if next > self.now { 0 } else { steps_at_now + 1 };
            assert!(steps_at_now < 10_000, "time stands still at {}", self.now);
            self.now = self.now.max(next);
            self.deliver();
            for place in &mut self.places {
                if place.host.poll_timeout().is_some_and(|due| due <= self.now) {
                    place.host.handle_timeout(self.now);
                }
                place
                    .events
                    .extend(std::iter::from_fn(|| place.host.poll_event()));
            }
        }
    }

    fn deliver(&mut self) {
        while let Some(delivery) = self.network.poll_deliver(self.now) {
            let place = self
                .places
                .iter_mut()
                .find(|place| place.node == delivery.node);
            let place = place.expect("every node has a host");
            let channel = match delivery.to == place.addresses[0] {
                true => Channel::Reliable,
                false => Channel::Partial,
            };
            place
                .host
                .handle_datagram(self.now, channel, delivery.from, delivery.payload);
        }
    }

    fn transmit(&mut self) {
        let mut buffer = [0; 1_000];
        for place in &mut self.places {
            for channel in Channel::ALL {
                let from = place.addresses[channel as usize];
                while let Some((to, len)) = place.host.poll_transmit(self.now, channel, &mut buffer)
                {
                    let bytes = &buffer[..len];
                    self.network
                        .send(self.now, from, to, Ecn::NotCapable, bytes);
                }
            }
        }
    }
}

/// The two addresses of the host of this number.
pub(crate) fn addresses(number: usize) -> [SocketAddr; 2] {
    let ip = [192, 0, 2, number as u8 + 1];
    PORTS.map(|port| SocketAddr::from((ip, port)))
}

/// The two ports of every host.
pub(crate) const PORTS: [u16; 2] = [7_777, 7_778];
