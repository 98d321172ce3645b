//! A page without a page, and a game server without a socket.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::VecDeque;
use std::sync::Arc;

use muse::netcode::ClientId;
use muse::transport::{ConnectionId, Endpoint, Event, SeededEntropy, ServerKey, ServerOptions};
use muse::wire::{Datagram, Ecn, Instant, Machine};
use muse_biobot::{Audience, Level, Mode, Profile, Stage, StageConfig};
use muse_biobot_web::Client;
use muse_biobot_web::frame::{SECTIONS, header};
use muse_biobot_web::online::config;
use serde_json::Value;

/// One field of one record of a frame.
pub(crate) fn field(frame: &[f32], section: usize, record: usize, field: usize) -> f32 {
    let offset = frame[header::SECTIONS + 2 * section] as usize;
    frame[offset + SECTIONS[section].1 * record + field]
}

/// Number of records in a section.
pub(crate) fn count(frame: &[f32], section: usize) -> usize {
    frame[header::SECTIONS + 2 * section + 1] as usize
}

/// Everything that the client has to tell the page.
pub(crate) fn events(client: &mut Client, now: f64) -> Vec<Value> {
    std::iter::from_fn(|| client.poll_event(now))
        .map(|text| serde_json::from_str(&text).expect("JSON"))
        .collect()
}

/// A game server in memory, for one browser.
pub(crate) struct GameServer {
    pub(crate) endpoint: Endpoint,
    pub(crate) stage: Stage,
    pub(crate) connection: Option<ConnectionId>,
    pub(crate) key: String,
    to_client: VecDeque<Vec<u8>>,
}

impl GameServer {
    pub(crate) fn new(now: f64, mode: Mode) -> Self {
        let key = ServerKey::from_bytes([7; 32]);
        let public = key.public().to_string();
        let config = config().build().expect("sensible");
        let mut endpoint = Endpoint::new(config, SeededEntropy::danger_seeded(5));
        endpoint.listen(ServerOptions::new(key));
        let level = Arc::new(Level::of(mode));
        let stage = StageConfig::new(level).seed(3).slots(1).cancels(false);
        Self {
            endpoint,
            stage: Stage::new(stage, instant(now)),
            connection: None,
            key: public,
            to_client: VecDeque::new(),
        }
    }

    /// One turn: takes what the client sends, plays, and gives it what it says.
    pub(crate) fn turn(&mut self, now: f64, client: &mut Client) {
        let at = instant(now);
        let from = "127.0.0.1:9".parse().expect("an address");
        while let Some(mut bytes) = client.poll_transmit(now) {
            let payload = &mut bytes[..];
            let ecn = Ecn::NotCapable;
            self.endpoint
                .handle_datagram(at, Datagram { from, ecn, payload });
        }
        if self.endpoint.poll_timeout().is_some_and(|due| due <= at) {
            self.endpoint.handle_timeout(at);
        }
        self.take_events(at);
        self.play(at);
        let mut packet = [0; 1_200];
        while let Some(transmit) = self.endpoint.poll_transmit(at, &mut packet) {
            self.to_client.push_back(packet[..transmit.len].to_vec());
        }
        while let Some(bytes) = self.to_client.pop_front() {
            client.handle_datagram(now, bytes);
        }
    }

    fn take_events(&mut self, at: Instant) {
        let mut buffer = Vec::new();
        while let Some(event) = self.endpoint.poll_event(&mut buffer) {
            match event {
                Event::Connected { connection, .. } => {
                    self.connection = Some(connection);
                    let profile = Profile {
                        id: 1,
                        name: "Ada".to_owned(),
                        ..Profile::default()
                    };
                    self.stage.join(ClientId(0), profile).expect("a free slot");
                }
                Event::Message {
                    channel: 0,
                    payload,
                    ..
                } => {
                    let _ = self.stage.handle_packet(at, ClientId(0), payload);
                }
                Event::Message { payload, .. } => {
                    self.stage.handle_message_bytes(ClientId(0), payload);
                }
                Event::Closed { .. } => self.connection = None,
                _ => {}
            }
        }
    }

    fn play(&mut self, at: Instant) {
        let Some(connection) = self.connection else {
            return;
        };
        let mut packet = [0; 4_096];
        while self.stage.poll_tick(at).is_some() {
            while let Some((_, len)) = self.stage.poll_packet(at, &mut packet) {
                let _ = self.endpoint.send(at, connection, 0, &packet[..len]);
            }
        }
        while let Some((audience, message)) = self.stage.poll_message() {
            if matches!(audience, Audience::Everyone | Audience::One(ClientId(0))) {
                let _ = self.endpoint.send(at, connection, 1, &message.encode());
            }
        }
    }
}

pub(crate) fn instant(ms: f64) -> Instant {
    Instant::from_micros((ms * 1_000.0) as u64)
}
