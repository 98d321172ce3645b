//! Muse's transport for a page: a client's connection without a socket, as a class of JavaScript.
//!
//! `bindings/typescript/src` opens WebTransport or WebSocket sessions and gives datagrams to a [`Connection`]; nothing here does IO or knows the
//! time. Everything crosses the border as numbers, texts and bytes, so the generated code stays small.

mod settings;

use muse::drivers::carried::{Carried, LINK, REMOTE};
use muse::token::ConnectToken;
use muse::wire::Machine;
use muse::{
    CloseReason, Connect, ConnectionId, Duration, Endpoint, Event, Instant, Outcome, Refusal,
    SendOptions, ServerPublicKey, SystemEntropy,
};
use wasm_bindgen::prelude::wasm_bindgen;

pub use settings::Settings;

/// The event that [`Connection::next_event`] found.
#[wasm_bindgen]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Nothing more.
    None,
    /// The server let us in; `payload` is the data that it gave us.
    Connected,
    /// It refused us: `text` says why, `refusal` the kind of reason, `code` and `detail` what belongs to it.
    Refused,
    /// The server did not answer.
    Unanswered,
    /// `payload` came on `channel`.
    Message,
    /// The message with the number `receipt` is `delivered`, `lost` or `expired`: that is `text`.
    Receipt,
    /// Nothing has been heard for a while.
    Interrupted,
    /// It is back, and nothing reliable was lost.
    Resumed,
    /// It is over; `text` says why, and `code` is the server's number for it.
    Closed,
}

/// A client's connection to one server, over any pipe that carries datagrams. Times are milliseconds of the page's monotonic clock.
#[wasm_bindgen]
pub struct Connection {
    endpoint: Carried<Endpoint>,
    connection: ConnectionId,
    /// The content of the last event.
    told: Told,
    buffer: Vec<u8>,
}

#[wasm_bindgen]
impl Connection {
    /// Starts to connect. `trust` is the server's public key in hexadecimal, or a connect token as the master gives it. `hello` reaches the server with the
    /// connection. Fails with a text that says what is wrong.
    #[wasm_bindgen(constructor)]
    pub fn new(
        now_ms: f64,
        unix_s: f64,
        settings: Settings,
        trust: &str,
        is_token: bool,
        hello: &[u8],
    ) -> Result<Connection, String> {
        let how = match is_token {
            true => Connect::token(ConnectToken::from_text(trust).map_err(text)?),
            false => Connect::pinned(trust.parse::<ServerPublicKey>().map_err(text)?),
        };
        let timeout = settings.timeout();
        let config = settings.into_config()?.link(LINK);
        let mut endpoint = Endpoint::new(config, SystemEntropy::new().map_err(text)?);
        let now = at(now_ms);
        endpoint.set_unix_time(now, unix_s as u64);
        let how = how.hello(hello).timeout(timeout);
        let connection = endpoint.connect(now, REMOTE, how).map_err(text)?;
        Ok(Self {
            endpoint: Carried::new(endpoint),
            connection,
            told: Told::default(),
            buffer: Vec::new(),
        })
    }

    /// Handles a datagram that the session received.
    pub fn handle_datagram(&mut self, now_ms: f64, bytes: Vec<u8>) {
        self.endpoint.receive(at(now_ms), bytes);
    }

    /// Does what has become due.
    pub fn advance(&mut self, now_ms: f64) {
        self.endpoint.advance(at(now_ms));
    }

    /// Returns the next datagram that the session is to send.
    pub fn poll_transmit(&mut self, now_ms: f64) -> Option<Vec<u8>> {
        self.endpoint.next_datagram(at(now_ms))
    }

    /// Returns the time at which to call [`advance`](Self::advance) and [`poll_transmit`](Self::poll_transmit) next, if ever.
    pub fn poll_timeout(&mut self) -> Option<f64> {
        let due = self.endpoint.poll_timeout()?;
        Some(due.as_micros() as f64 / 1e3)
    }

    /// Returns the next event; the other getters tell of it until the next call.
    pub fn next_event(&mut self) -> EventKind {
        let mut told = Told::default();
        let kind = loop {
            let Some(event) = self.endpoint.poll_event(&mut self.buffer) else {
                break EventKind::None;
            };
            if let Some(kind) = told.take(event) {
                break kind;
            }
        };
        self.told = told;
        kind
    }

    /// The channel of a message.
    #[wasm_bindgen(getter)]
    pub fn channel(&self) -> u8 {
        self.told.channel
    }

    /// The server's number for why it closed or denied the connection.
    #[wasm_bindgen(getter)]
    pub fn code(&self) -> u16 {
        self.told.code
    }

    /// The number that [`send`](Self::send) returned for the message of a receipt.
    #[wasm_bindgen(getter)]
    pub fn receipt(&self) -> f64 {
        self.told.receipt
    }

    /// Words that go with an event.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.told.text.clone()
    }

    /// The kind of reason of a refusal, as `MuseError` of the package names them.
    #[wasm_bindgen(getter)]
    pub fn refusal(&self) -> String {
        self.told.refusal.to_owned()
    }

    /// The words of the server's application when it denied the connection; the differences, one on a line, when both sides do not share what they must.
    #[wasm_bindgen(getter)]
    pub fn detail(&self) -> String {
        self.told.detail.clone()
    }

    /// Takes the bytes that go with an event.
    pub fn take_payload(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.told.payload)
    }

    /// Sends a message and returns its number in its channel, or fails with a text that says why. With `wants_receipt`, an event tells whether it was delivered.
    pub fn send(
        &mut self,
        now_ms: f64,
        channel: u8,
        payload: &[u8],
        wants_receipt: bool,
    ) -> Result<f64, String> {
        let options = match wants_receipt {
            true => SendOptions::default().receipt(),
            false => SendOptions::default(),
        };
        let connection = self.connection;
        self.endpoint
            .send_with(at(now_ms), connection, channel, payload, &options)
            .map(|id| id.number as f64)
            .map_err(text)
    }

    /// Closes the connection at once, or with `finish` after everything reliable has arrived.
    pub fn close(&mut self, now_ms: f64, code: u16, words: &str, finish: bool) {
        let (now, connection) = (at(now_ms), self.connection);
        match finish {
            true => self.endpoint.finish(now, connection, code, words),
            false => self.endpoint.close(now, connection, code, words),
        }
    }

    /// Returns round-trip time and jitter in milliseconds, loss from 0 to 1, bytes and packets sent and received, bytes a second that arrive; empty without a connection.
    pub fn stats(&self) -> Vec<f64> {
        let Some(stats) = self.endpoint.stats(self.connection) else {
            return Vec::new();
        };
        vec![
            stats.rtt.as_micros() as f64 / 1e3,
            stats.jitter.as_micros() as f64 / 1e3,
            f64::from(stats.loss),
            stats.bytes_sent as f64,
            stats.bytes_received as f64,
            stats.packets_sent as f64,
            stats.packets_received as f64,
            stats.bandwidth as f64,
        ]
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

/// The content of an event, without its lifetime.
#[derive(Default)]
struct Told {
    channel: u8,
    code: u16,
    receipt: f64,
    text: String,
    refusal: &'static str,
    detail: String,
    payload: Vec<u8>,
}

impl Told {
    fn take(&mut self, event: Event<'_>) -> Option<EventKind> {
        Some(match event {
            Event::Connected { user_data, .. } => {
                self.payload = user_data.to_vec();
                EventKind::Connected
            }
            Event::Refused { reason, .. } => {
                self.refuse(&reason);
                EventKind::Refused
            }
            Event::Unanswered { .. } => EventKind::Unanswered,
            Event::Message {
                channel, payload, ..
            } => {
                self.channel = channel;
                self.payload = payload.to_vec();
                EventKind::Message
            }
            Event::Receipt { receipt, .. } => {
                self.channel = receipt.id.channel;
                self.receipt = receipt.id.number as f64;
                self.text = match receipt.outcome {
                    Outcome::Delivered => "delivered",
                    Outcome::Lost => "lost",
                    Outcome::Expired => "expired",
                }
                .to_owned();
                EventKind::Receipt
            }
            Event::Interrupted { .. } => EventKind::Interrupted,
            Event::Resumed { .. } => EventKind::Resumed,
            Event::Closed { reason, .. } => {
                (self.code, self.text) = end(reason);
                EventKind::Closed
            }
            // Addresses mean nothing to a page.
            _ => return None,
        })
    }

    fn refuse(&mut self, reason: &Refusal) {
        self.text = reason.to_string();
        self.refusal = match reason {
            Refusal::Version { .. } => "version",
            Refusal::Schema { differences, .. } => {
                let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
                self.detail = lines.join("\n");
                "schema"
            }
            Refusal::Full => "full",
            Refusal::TokenRequired | Refusal::Token(_) => "token",
            Refusal::WrongKey => "wrong-key",
            Refusal::Denied { code, text } => {
                (self.code, self.detail) = (*code, text.clone());
                "denied"
            }
            Refusal::Busy => "busy",
            Refusal::Insecure => "insecure",
            _ => "other",
        };
    }
}

/// The server's number and the words for why it ended.
fn end(reason: CloseReason) -> (u16, String) {
    match reason {
        CloseReason::ByPeer { code, text } => (code, format!("by the server: {text}")),
        CloseReason::ByUs => (0, "by us".to_owned()),
        CloseReason::Lost => (0, "lost".to_owned()),
        CloseReason::Replaced => (0, "replaced".to_owned()),
        _ => (0, "protocol".to_owned()),
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn at(now_ms: f64) -> Instant {
    Instant::from_micros((now_ms * 1e3) as u64)
}

/// Time after which an attempt to connect is given up by default.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use muse::transport::AdmissionLimits;
    use muse::wire::{Datagram, Ecn};
    use muse::{ChannelConfig, Config, Delivery, ServerKey, ServerOptions};

    const SHARED: &str = "tick rate 50\nmap size 64";

    /// Lets a client with these lines and this greeting meet a server that denies strangers, until something is told.
    fn meet(shared: &str, hello: &[u8]) -> (EventKind, Connection) {
        let mut entropy = SystemEntropy::new().expect("randomness");
        let key = ServerKey::generate(&mut entropy);
        let config = Config::new(7)
            .channel(ChannelConfig::new(Delivery::ReliableOrdered))
            .shared(SHARED)
            .build();
        let mut server = Endpoint::new(config.expect("one channel"), entropy);
        server.listen(ServerOptions::new(key.clone()).admission(AdmissionLimits::default()));
        let mut settings = Settings::new(7);
        let added = settings.channel("reliable-ordered", 0, 0, "balanced", "normal");
        added.expect("there is such a channel");
        settings.shared(shared);
        let trust = key.public().to_string();
        let client = Connection::new(1.0, 1.7e9, settings, &trust, false, hello);
        let mut client = client.expect("the settings make sense");
        let mut packet = [0; 1_200];
        for now_ms in 1..10_000 {
            let now = at(f64::from(now_ms));
            while let Some(mut payload) = client.poll_transmit(f64::from(now_ms)) {
                let datagram = Datagram {
                    from: ([127, 0, 0, 1], 2).into(),
                    ecn: Ecn::NotCapable,
                    payload: &mut payload,
                };
                server.handle_datagram(now, datagram);
            }
            while let Some(Event::Asking {
                connection, hello, ..
            }) = server.poll_event(&mut Vec::new())
            {
                let decided = match hello {
                    b"friend" => server.admit(now, connection),
                    _ => server.deny(now, connection, 3, "friends only"),
                };
                decided.expect("it asks");
            }
            if server.poll_timeout().is_some_and(|due| due <= now) {
                server.handle_timeout(now);
            }
            while let Some(transmit) = server.poll_transmit(now, &mut packet) {
                for datagram in transmit.datagrams(&packet) {
                    client.handle_datagram(f64::from(now_ms), datagram.to_vec());
                }
            }
            client.advance(f64::from(now_ms));
            let kind = client.next_event();
            if kind != EventKind::None {
                return (kind, client);
            }
        }
        unreachable!("ten seconds without an event")
    }

    #[test]
    fn a_denied_client_reads_the_number_and_the_words_of_the_application() {
        let (kind, client) = meet(SHARED, b"stranger");
        assert_eq!(kind, EventKind::Refused);
        assert_eq!((client.refusal(), client.code()), ("denied".to_owned(), 3));
        assert_eq!(client.detail(), "friends only");
        assert!(client.text().ends_with("friends only (code 3)"));
        assert_eq!(meet(SHARED, b"friend").0, EventKind::Connected);
    }

    #[test]
    fn a_client_of_another_version_is_told_the_lines_that_differ() {
        let (kind, client) = meet("map size 128\ntick rate 50", b"friend");
        assert_eq!(kind, EventKind::Refused);
        assert_eq!((client.refusal(), client.code()), ("schema".to_owned(), 0));
        let line = "`map size 128` here, `map size 64` there";
        assert_eq!(client.detail(), line);
        assert!(client.text().ends_with(line), "{}", client.text());
        // The order of lines does not matter.
        assert_eq!(
            meet("map size 64\ntick rate 50", b"friend").0,
            EventKind::Connected
        );
    }
}

/// The server of the guide is compiled as this crate's own.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/start-browser.md")]
struct StartBrowser;
