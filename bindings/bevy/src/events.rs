//! Events of both directions, as messages.

use bevy_app::App;
use bevy_ecs::message::MessageCursor;
use bevy_ecs::prelude::*;
use muse::Schema;
use muse::netcode::prediction::EffectChange;
use muse::netcode::{self, ClientId, EventClass, Tick};
use muse::schema::{BitReader, BitWriter, Options};

use crate::kinds::EntityMap;
use crate::protocol::BevyGame;

/// On the server: tell everyone who sees the entity, or everyone.
#[derive(Message, Clone, Debug)]
pub struct ToClients<E: Send + Sync + 'static> {
    /// The entity that the event is about; clients that do not see it are not told.
    pub entity: Option<Entity>,
    /// The event.
    pub event: E,
}

/// On the client: the server told this.
#[derive(Message, Clone, Debug)]
pub struct FromServer<E: Send + Sync + 'static> {
    /// The tick of the server in which it happened.
    pub tick: Tick,
    /// The entity that the event is about.
    pub entity: Option<Entity>,
    /// The event.
    pub event: E,
}

/// On the client: tell the server, reliably and in order.
#[derive(Message, Clone, Debug)]
pub struct ToServer<E: Send + Sync + 'static>(pub E);

/// On the server: a client told this.
#[derive(Message, Clone, Debug)]
pub struct FromClient<E: Send + Sync + 'static> {
    /// The client that sent it.
    pub client: ClientId,
    /// The event.
    pub event: E,
}

/// A player's step emitted something.
#[derive(Message, Clone, Debug)]
pub struct Emitted<E: Send + Sync + 'static> {
    /// The client whose player emitted it, on the server; `None` on the client, where it is always its own.
    pub client: Option<ClientId>,
    /// The event.
    pub event: E,
    /// On the client, whether it happens, is confirmed, or is taken back. On the server it always happens.
    pub change: EffectChange,
}

/// Events of one type without the type.
pub(crate) trait Exchange<G: BevyGame>: Send + Sync {
    /// A line of the description that both sides must share.
    fn describe(&self) -> String;

    fn add_messages(&self, app: &mut App);

    /// On the server, in each tick: tells clients.
    fn emit(&mut self, world: &World, game: &mut netcode::Server<G>, map: &EntityMap);

    /// On the client: whether the event was of this type.
    fn receive(&self, world: &mut World, event: &netcode::Event, map: &EntityMap) -> bool;

    /// On the client, in each frame: gives `send` what is for the server.
    fn collect(&mut self, world: &World, send: &mut dyn FnMut(&[u8]));

    /// On the server: whether the message of a client was of this type.
    fn accept(&self, world: &mut World, client: ClientId, message: &[u8]) -> bool;
}

pub(crate) struct ServerEvent<E: Send + Sync + 'static> {
    id: u16,
    class: EventClass,
    cursor: MessageCursor<ToClients<E>>,
}

impl<E: Send + Sync + 'static> ServerEvent<E> {
    pub(crate) fn new(id: u16, class: EventClass) -> Self {
        Self {
            id,
            class,
            cursor: MessageCursor::default(),
        }
    }
}

impl<E: Schema + Send + Sync + 'static, G: BevyGame> Exchange<G> for ServerEvent<E> {
    fn describe(&self) -> String {
        format!("server-event {} {:?} {}", self.id, self.class, E::TYPE)
    }

    fn add_messages(&self, app: &mut App) {
        app.add_message::<ToClients<E>>();
        app.add_message::<FromServer<E>>();
    }

    fn emit(&mut self, world: &World, game: &mut netcode::Server<G>, map: &EntityMap) {
        let Some(messages) = world.get_resource::<Messages<ToClients<E>>>() else {
            return;
        };
        for message in self.cursor.read(messages) {
            let entity = message.entity.and_then(|entity| map.here.get(&entity));
            let mut buffer = [0; EVENT_BYTES_MAX];
            if let Some(bytes) = encode(&message.event, &mut buffer)
                && entity.is_some() == message.entity.is_some()
            {
                // It is short enough, as it is in the buffer.
                let _ = game
                    .world_mut()
                    .emit(entity.copied(), self.class, self.id, bytes);
            }
        }
    }

    fn receive(&self, world: &mut World, event: &netcode::Event, map: &EntityMap) -> bool {
        if event.id != self.id {
            return false;
        }
        if let Some(content) = decode::<E>(&event.bytes) {
            let entity = event.entity.and_then(|id| map.there.get(&id).copied());
            world.write_message(FromServer {
                tick: event.tick,
                entity,
                event: content,
            });
        }
        true
    }

    fn collect(&mut self, _: &World, _: &mut dyn FnMut(&[u8])) {}

    fn accept(&self, _: &mut World, _: ClientId, _: &[u8]) -> bool {
        false
    }
}

pub(crate) struct ClientEvent<E: Send + Sync + 'static> {
    id: u16,
    cursor: MessageCursor<ToServer<E>>,
}

impl<E: Send + Sync + 'static> ClientEvent<E> {
    pub(crate) fn new(id: u16) -> Self {
        Self {
            id,
            cursor: MessageCursor::default(),
        }
    }
}

impl<E: Schema + Send + Sync + 'static, G: BevyGame> Exchange<G> for ClientEvent<E> {
    fn describe(&self) -> String {
        format!("client-event {} {}", self.id, E::TYPE)
    }

    fn add_messages(&self, app: &mut App) {
        app.add_message::<ToServer<E>>();
        app.add_message::<FromClient<E>>();
    }

    fn emit(&mut self, _: &World, _: &mut netcode::Server<G>, _: &EntityMap) {}

    fn receive(&self, _: &mut World, _: &netcode::Event, _: &EntityMap) -> bool {
        false
    }

    fn collect(&mut self, world: &World, send: &mut dyn FnMut(&[u8])) {
        let Some(messages) = world.get_resource::<Messages<ToServer<E>>>() else {
            return;
        };
        for ToServer(event) in self.cursor.read(messages) {
            let mut buffer = [0; EVENT_BYTES_MAX];
            if let Some(bytes) = encode(event, &mut buffer) {
                send(&[&self.id.to_le_bytes(), bytes].concat());
            }
        }
    }

    fn accept(&self, world: &mut World, client: ClientId, message: &[u8]) -> bool {
        let Some((id, bytes)) = message.split_first_chunk::<2>() else {
            return false;
        };
        if u16::from_le_bytes(*id) != self.id {
            return false;
        }
        if let Some(event) = decode::<E>(bytes) {
            world.write_message(FromClient { client, event });
        }
        true
    }
}

fn encode<'b, E: Schema>(event: &E, buffer: &'b mut [u8]) -> Option<&'b [u8]> {
    let mut writer = BitWriter::new(buffer);
    event.write(&Options::NONE, &mut writer).ok()?;
    let len = writer.finish();
    Some(&buffer[..len])
}

fn decode<E: Schema>(bytes: &[u8]) -> Option<E> {
    let mut reader = BitReader::new(bytes);
    let event = E::read(&Options::NONE, &mut reader).ok()?;
    reader.finish().ok()?;
    Some(event)
}

/// Longest encoding of an event.
const EVENT_BYTES_MAX: usize = netcode::events::EVENT_BYTES_MAX;
