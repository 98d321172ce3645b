//! The smallest server of Biobot that browsers can join: `cargo run --example serve [cooperative|versus|ball] [players] [other]`.
//! With `other` it is of another version than the page.
//!
//! Prints one line of JSON with its address and key. The test of the Worker in a real browser (`game/web/tests/worker.mjs`) plays on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use muse::drivers::{EndpointDriver, WebListener, WebOptions, new_key};
use muse::netcode::ClientId;
use muse::transport::{ConnectionId, Event, ServerOptions};
use muse_biobot::{Audience, Level, Mode, Profile, Stage, StageConfig};
use muse_biobot_web::online::config;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mode = match arguments.next().as_deref() {
        Some("versus") => Mode::Versus,
        Some("ball") => Mode::Ball,
        _ => Mode::Cooperative,
    };
    let players = arguments
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1);
    // With a third word it is a server of another version.
    let more = arguments.next().unwrap_or_default();
    let config = config().shared(&more);
    let key = new_key()?;
    let public = key.public();
    let server = EndpointDriver::bind("127.0.0.1:0", config, ServerOptions::new(key))?;
    let web = WebListener::bind(WebOptions::new(server.local_addr()?))?;
    println!("{{\"address\":\"{}\",\"key\":\"{public}\"}}", web.address());
    let server = server.with_web(web)?;
    let level = Arc::new(Level::of(mode));
    let stage = StageConfig::new(level)
        .slots(players)
        .seed(7)
        .cancels(false);
    Game {
        stage: Stage::new(stage, server.now()),
        server,
        players: BTreeMap::new(),
    }
    .run()
}

struct Game {
    server: EndpointDriver,
    stage: Stage,
    players: BTreeMap<ClientId, ConnectionId>,
}

impl Game {
    fn run(mut self) -> std::io::Result<()> {
        let mut buffer = Vec::new();
        let mut next = 0;
        loop {
            self.server.poll()?;
            while let Some(event) = self.server.poll_event(&mut buffer) {
                match event {
                    Event::Connected { connection, .. } => {
                        let client = ClientId(next);
                        next += 1;
                        let profile = Profile {
                            id: connection.to_bits(),
                            name: "Player".to_owned(),
                            ..Profile::default()
                        };
                        match self.stage.join(client, profile) {
                            Ok(_) => drop(self.players.insert(client, connection)),
                            Err(error) => self.server.close(connection, 1, &error.to_string()),
                        }
                    }
                    Event::Message {
                        connection,
                        channel,
                        payload,
                    } => {
                        let now = self.server.now();
                        let Some(client) = client_of(&self.players, connection) else {
                            continue;
                        };
                        if channel == 0 {
                            // The stage counts what it does not like.
                            let _ = self.stage.handle_packet(now, client, payload);
                        } else {
                            self.stage.handle_message_bytes(client, payload);
                        }
                    }
                    Event::Closed { connection, .. } => {
                        if let Some(client) = client_of(&self.players, connection) {
                            self.stage.leave(client);
                            self.players.remove(&client);
                        }
                    }
                    _ => {}
                }
            }
            self.play();
            self.server.flush()?;
            let due = self
                .stage
                .poll_timeout()
                .saturating_since(self.server.now());
            self.server.wait(Duration::from_micros(due.as_micros()))?;
        }
    }

    fn play(&mut self) {
        let now = self.server.now();
        let mut packet = [0; 4_096];
        while self.stage.poll_tick(now).is_some() {
            while let Some((client, len)) = self.stage.poll_packet(now, &mut packet) {
                if let Some(connection) = self.players.get(&client) {
                    // A player who is gone is told of by an event.
                    let _ = self.server.send(*connection, 0, &packet[..len]);
                }
            }
        }
        while let Some((audience, message)) = self.stage.poll_message() {
            let bytes = message.encode();
            for (client, connection) in &self.players {
                if matches!(audience, Audience::Everyone) || audience == Audience::One(*client) {
                    let _ = self.server.send(*connection, 1, &bytes);
                }
            }
        }
    }
}

fn client_of(players: &BTreeMap<ClientId, ConnectionId>, wanted: ConnectionId) -> Option<ClientId> {
    players
        .iter()
        .find(|(_, connection)| **connection == wanted)
        .map(|(client, _)| *client)
}
