//! A host or a guest of a relay's room in a browser.
//!
//! The transport's endpoint over relay v2's link, both as they ship, in WebAssembly. The page gives it what its session with the relay
//! received, and sends what it returns. A browser is never reached directly, so no direct way is looked for.
//!
//! It is all that a game needs to let a browser host; the test in `browsers.mjs` is its only user here.

use muse::drivers::carried::{Carried, LINK, REMOTE};
use muse::drivers::relay::{Invitation, Link, LinkEvent, Relayed, RoomKey};
use muse::transport::Entropy;
use muse::wire::Machine;
use muse::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Duration, Endpoint, Event, Instant,
    ServerKey, ServerOptions, ServerPublicKey, SystemEntropy,
};
use serde_json::{Value, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// One side of a session.
///
/// Times are milliseconds of `performance.now()`. After anything was given to it: [`advance`](Self::advance), then
/// [`poll_event`](Self::poll_event) and [`poll_transmit`](Self::poll_transmit) until they return nothing; again when
/// [`poll_timeout`](Self::poll_timeout) has passed.
///
/// ```
/// use muse_relay_web::Peer;
/// let mut host = Peer::host(0.0, 1.7e9)?;
/// host.advance(0.0);
/// assert!(host.poll_transmit(0.0).is_some(), "it asks the relay for a room");
/// let guest = Peer::guest(0.0, 1.7e9, &host.code(), &host.public_key())?;
/// assert_eq!(guest.code(), host.code());
/// # Ok::<(), String>(())
/// ```
#[wasm_bindgen]
pub struct Peer {
    machine: Carried<Relayed<Endpoint>>,
    /// A host's own.
    key: Option<ServerKey>,
    /// By the numbers that events name them by.
    connections: Vec<ConnectionId>,
    buffer: Vec<u8>,
}

#[wasm_bindgen]
impl Peer {
    /// Opens a room, with keys that nobody else learns.
    pub fn host(now: f64, unix_s: f64) -> Result<Peer, String> {
        let mut entropy = SystemEntropy::new().map_err(|error| error.to_string())?;
        let (mut room, mut seed) = ([0; 16], [0; 32]);
        entropy.fill(&mut room);
        entropy.fill(&mut seed);
        let key = ServerKey::generate(&mut entropy);
        let mut endpoint = endpoint(now, unix_s, entropy)?;
        endpoint.listen(ServerOptions::new(key.clone()));
        let link = Link::open(instant(now), REMOTE, RoomKey::new(room), seed);
        Ok(Self::new(endpoint, link, Some(key)))
    }

    /// Joins the room with this code, whose host has this key, in hexadecimal digits.
    pub fn guest(now: f64, unix_s: f64, code: &str, key: &str) -> Result<Peer, String> {
        let code = code.parse().map_err(|error| format!("{code}: {error}"))?;
        let key: ServerPublicKey = key.parse().map_err(|error| format!("{key}: {error}"))?;
        let mut entropy = SystemEntropy::new().map_err(|error| error.to_string())?;
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        let mut endpoint = endpoint(now, unix_s, entropy)?;
        endpoint
            .connect(instant(now), Link::host_address(), Connect::pinned(key))
            .map_err(|error| error.to_string())?;
        let link = Link::join(instant(now), REMOTE, code, seed);
        Ok(Self::new(endpoint, link, None))
    }

    /// Returns the code that guests join the room by.
    pub fn code(&self) -> String {
        self.machine.link().code().to_string()
    }

    /// Returns the host's public key, in hexadecimal digits; nothing at a guest.
    #[wasm_bindgen(js_name = publicKey)]
    pub fn public_key(&self) -> String {
        let key = self.key.as_ref().map(|key| key.public().to_string());
        key.unwrap_or_default()
    }

    /// Returns the host's private key, for the test to look for where it must not be; nothing at a guest.
    #[wasm_bindgen(js_name = dangerPrivateKey)]
    pub fn danger_private_key(&self) -> Vec<u8> {
        let key = self.key.as_ref().map(|key| key.to_bytes().to_vec());
        key.unwrap_or_default()
    }

    /// Returns an invitation for players over UDP, who find the relay at `relay`.
    pub fn invitation(&self, relay: &str) -> Result<String, String> {
        let key = self.key.as_ref().ok_or("only a host invites")?;
        let invitation = Invitation {
            relay: relay.parse().map_err(|error| format!("{relay}: {error}"))?,
            code: self.machine.link().code(),
            host_key: *key.public().as_bytes(),
        };
        Ok(invitation.to_string())
    }

    /// Handles a datagram that the session with the relay received.
    #[wasm_bindgen(js_name = handleDatagram)]
    pub fn handle_datagram(&mut self, now: f64, bytes: Vec<u8>) {
        self.machine.receive(instant(now), bytes);
    }

    /// Does everything that is due.
    pub fn advance(&mut self, now: f64) {
        self.machine.advance(instant(now));
    }

    /// Returns the next datagram that the session with the relay is to send.
    #[wasm_bindgen(js_name = pollTransmit)]
    pub fn poll_transmit(&mut self, now: f64) -> Option<Vec<u8>> {
        self.machine.next_datagram(instant(now))
    }

    /// Returns the milliseconds until [`advance`](Self::advance) has something to do.
    #[wasm_bindgen(js_name = pollTimeout)]
    pub fn poll_timeout(&mut self, now: f64) -> f64 {
        let due = self.machine.poll_timeout();
        let wait = due.map(|due| due.saturating_since(instant(now)).as_micros());
        wait.map_or(IDLE_MS, |micros| (micros as f64 / 1_000.0).min(IDLE_MS))
    }

    /// Sends a text to the peer with this number; channel 0 may lose it, channel 1 keeps all in order. Returns what is wrong.
    pub fn send(&mut self, now: f64, peer: usize, channel: u8, text: &str) -> Option<String> {
        let Some(&connection) = self.connections.get(peer) else {
            return Some(format!("there is no peer {peer}"));
        };
        let endpoint = self.machine.machine_mut();
        let sent = endpoint.send(instant(now), connection, channel, text.as_bytes());
        sent.err().map(|error| error.to_string())
    }

    /// Tells everybody that we go; [`poll_transmit`](Self::poll_transmit) says it.
    pub fn leave(&mut self, now: f64) {
        for connection in &self.connections {
            let endpoint = self.machine.machine_mut();
            endpoint.close(instant(now), *connection, 0, "the page left");
        }
    }

    /// Returns the next event as JSON: `{"type": ...}` and what belongs to it.
    #[wasm_bindgen(js_name = pollEvent)]
    pub fn poll_event(&mut self) -> Option<String> {
        if let Some(event) = self.machine.link_mut().poll_event() {
            return Some(of_link(&event).to_string());
        }
        let event = self.machine.machine_mut().poll_event(&mut self.buffer)?;
        if let Event::Connected { connection, .. } = event {
            self.connections.push(connection);
        }
        let peer = |connection: ConnectionId| {
            let mut known = self.connections.iter();
            known.position(|other| *other == connection)
        };
        let event = match event {
            Event::Connected { connection, .. } => {
                json!({"type": "connected", "peer": peer(connection)})
            }
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                let text = String::from_utf8_lossy(payload);
                json!({"type": "message", "peer": peer(connection), "channel": channel, "text": text})
            }
            Event::Interrupted { connection, .. } => {
                json!({"type": "interrupted", "peer": peer(connection)})
            }
            Event::Resumed { connection, .. } => {
                json!({"type": "resumed", "peer": peer(connection)})
            }
            Event::Closed {
                connection, reason, ..
            } => {
                let reason = format!("{reason:?}");
                json!({"type": "closed", "peer": peer(connection), "reason": reason})
            }
            other => json!({"type": "other", "text": format!("{other:?}")}),
        };
        Some(event.to_string())
    }
}

impl Peer {
    fn new(endpoint: Endpoint, link: Link, key: Option<ServerKey>) -> Self {
        Self {
            machine: Carried::new(Relayed::new(endpoint, link.direct(false))),
            key,
            connections: Vec::new(),
            buffer: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer")
            .field("code", &self.machine.link().code())
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

/// The settings of all peers, in browsers and elsewhere: channel 0 may lose what it carries, channel 1 keeps all of it in order.
pub fn config() -> Config {
    Config::new(PROTOCOL)
        .channel(ChannelConfig::new(Delivery::Unreliable))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .keep_alive(Duration::from_millis(500))
        .silence(Duration::from_secs(2))
        .resume_within(Duration::from_secs(30))
}

fn endpoint(now: f64, unix_s: f64, entropy: SystemEntropy) -> Result<Endpoint, String> {
    let config = config().link(LINK).build();
    let mut endpoint = Endpoint::new(config.map_err(|error| error.to_string())?, entropy);
    endpoint.set_unix_time(instant(now), unix_s as u64);
    Ok(endpoint)
}

fn of_link(event: &LinkEvent) -> Value {
    match event {
        LinkEvent::Opened { code, .. } => json!({"type": "opened", "code": code.to_string()}),
        LinkEvent::Joined { .. } => json!({"type": "joined"}),
        LinkEvent::Refused(reason) => json!({"type": "refused", "reason": format!("{reason:?}")}),
        LinkEvent::PublicAddress(_) => json!({"type": "moved"}),
        other => json!({"type": "other", "text": format!("{other:?}")}),
    }
}

fn instant(ms: f64) -> Instant {
    // A page's clock begins at 0; a machine's may not.
    Instant::from_micros((ms.max(0.0) * 1_000.0) as u64 + 1_000_000)
}

const PROTOCOL: u64 = 0x7265_6c61_7920_7765;
const IDLE_MS: f64 = 1_000.0;
