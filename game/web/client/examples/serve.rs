//! The smallest server of Biobot that browsers can join: `cargo run --example serve [cooperative|versus|ball] [players] [other]`.
//! With `other` it is of another version than the page.
//!
//! Prints one line of JSON with its address and key. The test of the Worker in a real browser (`game/web/tests/worker.mjs`) plays on it.

use std::sync::Arc;

use muse::Channel;
use muse::drivers::{EndpointDriver, WebListener, WebOptions, new_key};
use muse::netcode::ClientId;
use muse::session::{ServerEvent, ServerSession};
use muse::transport::ServerOptions;
use muse::wire::Instant;
use muse_biobot::net::protocol;
use muse_biobot::{Audience, Level, Mode, Profile, Stage, StageConfig};

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
    let (protocol, messages) = protocol();
    let config = protocol.config().shared(&more);
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
        session: ServerSession::new(protocol),
        messages,
    }
    .run()
}

struct Game {
    server: EndpointDriver,
    session: ServerSession,
    messages: Channel,
    stage: Stage,
}

impl Game {
    fn run(mut self) -> std::io::Result<()> {
        let mut buffer = Vec::new();
        loop {
            self.server.poll()?;
            let now = self.server.now();
            while let Some(event) = self.server.poll_event(&mut buffer) {
                let endpoint = self.server.endpoint_mut();
                match self.session.handle_event::<()>(now, endpoint, event) {
                    Some(ServerEvent::Joined(client)) => self.join(now, client),
                    Some(ServerEvent::Left(client, _)) => self.stage.leave(client),
                    Some(ServerEvent::Packet(client, packet)) => {
                        // The stage counts what it does not like.
                        let _ = self.stage.handle_packet(now, client, packet);
                    }
                    Some(ServerEvent::Received(client, message)) => {
                        self.stage.handle_message_bytes(client, message.bytes());
                    }
                    _ => {}
                }
            }
            self.play(now);
            self.server.flush()?;
            let due = self.stage.poll_timeout();
            self.server.wait(due.saturating_since(self.server.now()))?;
        }
    }

    fn join(&mut self, now: Instant, client: ClientId) {
        let profile = Profile {
            id: u64::from(client.0),
            name: "Player".to_owned(),
            ..Profile::default()
        };
        if let Err(error) = self.stage.join(client, profile) {
            let (endpoint, text) = (self.server.endpoint_mut(), error.to_string());
            self.session.disconnect(now, endpoint, client, 1, &text);
        }
    }

    fn play(&mut self, now: Instant) {
        let (stage, endpoint) = (&mut self.stage, self.server.endpoint_mut());
        while stage.poll_tick(now).is_some() {
            let poll = |packet: &mut [u8]| stage.poll_packet(now, packet);
            self.session.send_packets(now, endpoint, poll);
        }
        while let Some((audience, message)) = stage.poll_message() {
            let bytes = message.encode();
            let clients: Vec<ClientId> = self.session.clients().collect();
            for client in clients {
                if matches!(audience, Audience::Everyone) || audience == Audience::One(client) {
                    // A player who is gone is told of by an event.
                    let session = &mut self.session;
                    let _ = session.send_bytes(now, endpoint, client, self.messages, &bytes);
                }
            }
        }
    }
}
