//! A host or a guest: an endpoint over a link, as the drivers run them, and a game that sends numbers both ways.

use muse_relay::{Link, Relay, Relayed};
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, SeededEntropy,
    ServerPublicKey,
};
use muse_wire::{Datagram, Duration, Instant, Machine, Transmit};

/// Whatever runs on a node.
pub(super) enum Node {
    Relay(Box<Relay>),
    Player(Box<Player>),
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Relay(relay) => relay.handle_datagram(now, datagram),
            Self::Player(player) => {
                player.relayed.handle_datagram(now, datagram);
                player.serve(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Relay(relay) => relay.handle_timeout(now),
            Self::Player(player) => {
                player.relayed.handle_timeout(now);
                player.serve(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buffer: &mut [u8]) -> Option<Transmit> {
        match self {
            Self::Relay(relay) => relay.poll_transmit(now, buffer),
            Self::Player(player) => player.relayed.poll_transmit(now, buffer),
        }
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        match self {
            Self::Relay(relay) => relay.poll_timeout(),
            Self::Player(player) => player.relayed.poll_timeout(),
        }
    }
}

/// A host or a guest.
pub(super) struct Player {
    pub(super) relayed: Relayed<Endpoint>,
    connection: Option<ConnectionId>,
    /// Numbers sent so far, on each channel.
    sent: [u32; 2],
    /// Times at which a packet of the game came.
    pub(super) came: Vec<Instant>,
    /// Numbers that came reliably, in order.
    pub(super) reliable: Vec<u32>,
    buffer: Vec<u8>,
}

impl Player {
    pub(super) fn new(endpoint: Endpoint, link: Link) -> Self {
        Self {
            relayed: Relayed::new(endpoint, link),
            connection: None,
            sent: [0; 2],
            came: Vec::new(),
            reliable: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Begins to connect, as a guest that knows nothing but a code.
    pub(super) fn connect(&mut self, now: Instant) {
        let endpoint = self.relayed.machine_mut();
        endpoint
            .connect(now, Link::host_address(), Connect::key_follows())
            .expect("the endpoint is empty");
    }

    /// Sends the next packet of the game, and a reliable message now and then.
    pub(super) fn play(&mut self, now: Instant) {
        let Some(connection) = self.connection else {
            return;
        };
        self.send(now, connection, PACKETS);
        if self.sent[usize::from(PACKETS)].is_multiple_of(RELIABLE_EVERY) {
            self.send(now, connection, RELIABLE);
        }
    }

    fn send(&mut self, now: Instant, connection: ConnectionId, channel: u8) {
        let number = &mut self.sent[usize::from(channel)];
        let endpoint = self.relayed.machine_mut();
        let sent = endpoint.send(now, connection, channel, &number.to_le_bytes());
        *number += u32::from(sent.is_ok());
    }

    /// The number of reliable messages sent so far.
    pub(super) fn reliable_sent(&self) -> u32 {
        self.sent[usize::from(RELIABLE)]
    }

    /// True if packets of the game came until a moment ago.
    pub(super) fn plays(&self, now: Instant) -> bool {
        self.came.last().is_some_and(|came| now - *came < MOMENT)
    }

    /// True if what is sent goes directly at present.
    pub(super) fn is_direct(&self) -> bool {
        let endpoint = self.relayed.machine();
        let remote = self.connection.and_then(|it| endpoint.remote(it));
        remote.is_some_and(|remote| self.relayed.link().is_direct(remote))
    }

    /// Takes what came.
    fn serve(&mut self, now: Instant) {
        while self.relayed.link_mut().poll_event().is_some() {}
        if let Some(host) = self.relayed.link_mut().poll_host_key() {
            let key = host.map(ServerPublicKey::from_bytes);
            let endpoint = self.relayed.machine_mut();
            endpoint.pin(key.map_err(|reason| reason.to_string()));
        }
        let mut again = false;
        while let Some(event) = self.relayed.machine_mut().poll_event(&mut self.buffer) {
            match event {
                Event::Connected { connection, .. } => self.connection = Some(connection),
                Event::Message {
                    channel, payload, ..
                } => {
                    let number = payload.first_chunk().copied().map(u32::from_le_bytes);
                    let number = number.expect("messages have four bytes");
                    match channel {
                        RELIABLE => self.reliable.push(number),
                        _ => self.came.push(now),
                    }
                }
                Event::Unanswered { .. } => again = true,
                _ => {}
            }
        }
        if again {
            self.connect(now);
        }
    }
}

/// An endpoint with the two channels of the game.
pub(super) fn endpoint(seed: u64) -> Endpoint {
    let config = Config::new(7)
        .channel(ChannelConfig::new(Delivery::Unreliable))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .build()
        .expect("a valid config");
    Endpoint::new(config, SeededEntropy::danger_seeded(seed))
}

const PACKETS: u8 = 0;
const RELIABLE: u8 = 1;
/// Packets for each reliable message.
const RELIABLE_EVERY: u32 = 3;
const MOMENT: Duration = Duration::from_secs(1);
