//! The session that every binding plays (`bindings/capi/examples/session`), as an app of Bevy plays it: over the plugin's connection, on channels of the game's own.
//! Usage: bevy_session ADDRESS KEY, of a `session serve-bevy`.

#[path = "../../capi/examples/session/client.rs"]
#[allow(dead_code, reason = "some of it is for a client without Bevy")]
mod client;
#[path = "../../capi/examples/session/rules.rs"]
#[allow(dead_code, reason = "some of it is the server's")]
mod rules;

use std::error::Error;
use std::time::Duration;

use bevy_app::App;
use bevy_ecs::prelude::*;
use muse_bevy::muse::{self, Connect, SendOptions, ServerPublicKey};
use muse_bevy::prelude::*;
use muse_bevy::{ConnectionChanged, MessageReceived, ReceiptReceived};

use client::{AnyConnection, Seen};
use rules::{FRONT, config};

/// A game of which nothing is played but the script.
#[derive(Component, State, Clone, Debug, Default)]
struct Nobody {
    #[field(range = 0..=1)]
    here: u8,
}

#[derive(Resource)]
struct Rules;

impl Game for Rules {
    type Player = Nobody;
    type Input = bool;
    type Event = ();

    fn step(&mut self, _: &mut Nobody, _: &bool, _: &mut StepContext<'_, ()>) {}
}

fn protocol() -> Protocol<Rules> {
    let session = SessionConfig::new(muse::Duration::from_millis(20));
    Protocol::new(session, KindOptions::new(1), |_, _| 0.0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(address), Some(key)) = (words.next(), words.next()) else {
        return Err("usage: bevy_session ADDRESS KEY".into());
    };
    let key: ServerPublicKey = key.parse()?;
    client::play(|hello| {
        // The server of the session knows nothing of what the plugin replicates.
        let config = config(&FRONT)?;
        let link = muse::drivers::ClientDriver::connect(
            &*address,
            config,
            Connect::pinned(key).hello(hello),
        )?;
        let mut app = App::new();
        app.add_plugins(ClientPlugin::new(protocol()))
            .insert_resource(Rules)
            .insert_resource(ConnectTo::new(link));
        // The plugin takes the connection over.
        app.update();
        Ok(app)
    })
}

fn link(app: &mut App) -> Result<Mut<'_, NetClient<Rules>>, Box<dyn Error>> {
    let client = app.world_mut().get_resource_mut::<NetClient<Rules>>();
    client.ok_or_else(|| "the plugin has no connection".into())
}

impl AnyConnection for App {
    fn send(&mut self, channel: u8, message: &[u8]) -> Result<(), Box<dyn Error>> {
        let mut client = link(self)?;
        let link = client.link().ok_or("no session")?;
        link.send(OWN + channel, message)?;
        Ok(())
    }

    fn send_for_receipt(&mut self, channel: u8, message: &[u8]) -> Result<(), Box<dyn Error>> {
        let mut client = link(self)?;
        let link = client.link().ok_or("no session")?;
        let receipt = SendOptions::default().receipt();
        link.send_with(OWN + channel, message, &receipt)?;
        Ok(())
    }

    fn finish(&mut self, code: u16, text: &str) {
        if let Ok(mut client) = link(self)
            && let Some(link) = client.link()
        {
            link.finish(code, text);
        }
    }

    fn turn(&mut self, seen: &mut Seen) -> Result<(), Box<dyn Error>> {
        // A frame.
        std::thread::sleep(Duration::from_millis(2));
        self.update();
        let world = self.world_mut();
        for ConnectionChanged(state) in all(world) {
            match state {
                ConnectionState::Connected => {
                    seen.connected = true;
                    seen.resumed = seen.interrupted;
                }
                ConnectionState::Interrupted => seen.interrupted = true,
                ConnectionState::Closed(reason) => seen.closed = Some(reason),
                ConnectionState::Connecting => {}
                other => seen.failure = Some(format!("{other:?}")),
            }
        }
        for MessageReceived { channel, payload } in all(world) {
            seen.message(channel.number() - OWN, &payload);
        }
        for ReceiptReceived { receipt, .. } in all(world) {
            seen.receipt = Some(receipt.outcome);
        }
        Ok(())
    }
}

/// All messages of a kind that were written since the last frame.
fn all<M: Message>(world: &mut World) -> Vec<M> {
    world.resource_mut::<Messages<M>>().drain().collect()
}

/// The first channel behind those of the plugin: the session of all bindings numbers its own.
const OWN: u8 = FRONT.len() as u8;
