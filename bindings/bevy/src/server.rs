//! The server's side: connections in, ticks, snapshots out, once a frame.

use std::collections::BTreeMap;
use std::sync::Mutex;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use muse::netcode::prediction::EffectChange;
use muse::netcode::{self, ClientId, EntityId, Kind};
use muse::session::{GameServerSession, ServerEvent, ServerSession};
use muse::{Applicant, Channel, ConnectionId, MessageId, SendOptions};

use crate::components::{NetId, Owner, Replicated, VisibleTo};
use crate::connection::{
    ClientAsking, ClientJoined, ClientLeft, Diagnostics, MessageFrom, ReceiptReceived, ServeOn,
};
use crate::events::Emitted;
use crate::kinds::{self, EntityMap};
use crate::protocol::{BevyGame, Protocol, ProtocolSlot};
use crate::ticks::{release_messages, run_tick, set_overstep};

/// Runs sessions of a [`Protocol`] as their server, in place of Bevy's fixed loop; [`ServeOn`] says on which socket.
pub struct ServerPlugin<G: BevyGame>(ProtocolSlot<G>);

impl<G: BevyGame> ServerPlugin<G> {
    /// A server of this protocol. The rules `G` must be there as a resource.
    pub fn new(protocol: Protocol<G>) -> Self {
        Self(ProtocolSlot::new(protocol))
    }
}

impl<G: BevyGame> Plugin for ServerPlugin<G> {
    fn build(&self, app: &mut App) {
        let Some(protocol) = self.0.install(app, serve::<G>) else {
            return;
        };
        app.add_message::<ClientAsking>();
        app.add_message::<ClientJoined>();
        app.add_message::<ClientLeft>();
        app.add_message::<MessageFrom>();
        app.insert_resource(Machinery(Some(Box::new(Works {
            protocol,
            map: EntityMap::default(),
            buffer: Vec::new(),
            visibility: BTreeMap::new(),
            followed: None,
            limited: None,
        }))));
    }
}

/// The session, in systems of the server: who is there, what they do, and the world as clients are told it.
#[derive(Resource)]
pub struct NetServer<G: BevyGame> {
    /// The session: a [`Server`](netcode::Server) and its connections.
    pub game: GameServerSession<G>,
    link: Mutex<muse::drivers::EndpointDriver>,
    session: ServerSession,
    player: Kind<G::Player>,
}

impl<G: BevyGame> NetServer<G> {
    /// Sends a message of the game's own to a client, as its type is declared ([`Protocol::message`]).
    pub fn send<M: muse::Message>(
        &mut self,
        client: ClientId,
        message: &M,
    ) -> muse::Result<MessageId> {
        self.send_with(client, message, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with<M: muse::Message>(
        &mut self,
        client: ClientId,
        message: &M,
        options: &SendOptions,
    ) -> muse::Result<MessageId> {
        let link = self.link.get_mut().expect("nobody else locks it");
        let (now, endpoint) = (link.now(), link.endpoint_mut());
        self.session
            .send_with(now, endpoint, client, message, options)
    }

    /// Sends a message to every client.
    pub fn broadcast<M: muse::Message>(&mut self, message: &M) -> muse::Result<()> {
        let link = self.link.get_mut().expect("nobody else locks it");
        self.session
            .broadcast(link.now(), link.endpoint_mut(), message)
    }

    /// Sends bytes on a channel without types ([`Protocol::add_channel`]).
    pub fn send_bytes(
        &mut self,
        client: ClientId,
        channel: Channel,
        bytes: &[u8],
    ) -> muse::Result<MessageId> {
        let link = self.link.get_mut().expect("nobody else locks it");
        let (now, endpoint) = (link.now(), link.endpoint_mut());
        self.session
            .send_bytes(now, endpoint, client, channel, bytes)
    }

    /// Lets a client in that asks ([`ClientAsking`]); [`ClientJoined`] follows.
    pub fn admit(&mut self, applicant: &Applicant) {
        let link = self.link.get_mut().expect("nobody else locks it");
        self.session
            .admit(link.now(), link.endpoint_mut(), applicant);
    }

    /// Refuses a client that asks; it reads `text` in [`ConnectionState::Refused`](crate::ConnectionState::Refused).
    pub fn deny(&mut self, applicant: &Applicant, text: &str) {
        let link = self.link.get_mut().expect("nobody else locks it");
        let (now, endpoint) = (link.now(), link.endpoint_mut());
        self.session
            .deny(now, endpoint, applicant, CODE_DENIED, text);
    }

    /// The connections, for everything that is not here, such as closing one.
    ///
    /// # Panics
    /// Never: whoever holds the session holds its connections.
    pub fn link(&mut self) -> &mut muse::drivers::EndpointDriver {
        self.link.get_mut().expect("nobody else locks it")
    }

    /// The connection of a client.
    pub fn connection(&self, client: ClientId) -> Option<ConnectionId> {
        self.session.connection(client)
    }

    /// The kind of players, for [`Hits`](muse::lagcomp::Hits).
    pub fn player_kind(&self) -> Kind<G::Player> {
        self.player
    }
}

/// The state of the plugin itself, which is taken out while it works.
#[derive(Resource)]
struct Machinery<G: BevyGame>(Option<Box<Works<G>>>);

struct Works<G: BevyGame> {
    protocol: Protocol<G>,
    map: EntityMap,
    buffer: Vec<u8>,
    /// The entities that each client sees, as last told to the session.
    visibility: BTreeMap<ClientId, Vec<EntityId>>,
    /// Made once, because making it costs more than asking it.
    followed: Option<QueryState<kinds::Followed, With<Replicated>>>,
    limited: Option<QueryState<Limited, With<Replicated>>>,
}

/// The query for entities and the clients that see them.
type Limited = (
    &'static NetId,
    Option<&'static VisibleTo>,
    Option<&'static Owner>,
);

fn serve<G: BevyGame>(world: &mut World) {
    let taken = world.get_resource_mut::<Machinery<G>>();
    let Some(mut works) = taken.and_then(|mut machinery| machinery.0.take()) else {
        return;
    };
    if let Some(ServeOn(link)) = world.remove_resource::<ServeOn>() {
        let link = link.into_inner().expect("nobody else locks it");
        let protocol = &works.protocol;
        let game = netcode::Server::new(
            protocol.session,
            protocol.kinds(),
            protocol.player,
            link.now(),
        );
        // Names are the session's, and another begins.
        for entity in std::mem::take(&mut works.map).here.into_keys() {
            if let Ok(mut entity) = world.get_entity_mut(entity) {
                entity.remove::<NetId>();
            }
        }
        world.insert_resource(NetServer::<G> {
            game: GameServerSession::new(game),
            link: Mutex::new(link),
            session: ServerSession::new(protocol.messages.clone()),
            player: protocol.player,
        });
    }
    if world.contains_resource::<NetServer<G>>() && world.contains_resource::<G>() {
        works.receive(world);
        works.allow(world);
        while works.tick(world) {}
        works.send(world);
    } else {
        // There may be no tick for a long time.
        release_messages(world);
    }
    if let Some(mut machinery) = world.get_resource_mut::<Machinery<G>>() {
        machinery.0 = Some(works);
    }
}

impl<G: BevyGame> Works<G> {
    /// Takes in what arrived.
    fn receive(&mut self, world: &mut World) {
        let mut buffer = std::mem::take(&mut self.buffer);
        // A socket that fails keeps failing, and clients time out: there is nobody to tell in here.
        let _ = session::<G>(world).link().poll();
        loop {
            let mut net = session::<G>(world);
            let net = &mut *net;
            let link = net.link.get_mut().expect("nobody else locks it");
            let Some(event) = link.poll_event(&mut buffer) else {
                break;
            };
            let now = link.now();
            let event = net.session.handle_event(now, link.endpoint_mut(), event);
            match event.and_then(|event| net.game.handle_event(now, event)) {
                Some(ServerEvent::Asking(applicant)) => {
                    world.write_message(ClientAsking(applicant));
                }
                Some(ServerEvent::Joined(client) | ServerEvent::Returned(client)) => {
                    let account = net.session.info(client).map_or(0, |info| info.account);
                    world.write_message(ClientJoined { client, account });
                }
                Some(ServerEvent::Left(client, reason)) => {
                    self.visibility.remove(&client);
                    world.write_message(ClientLeft { client, reason });
                }
                Some(ServerEvent::Received(client, message)) => {
                    self.handle_message(world, client, message.channel(), message.bytes());
                }
                Some(ServerEvent::Receipt(client, receipt)) => {
                    let client = Some(client);
                    world.write_message(ReceiptReceived { client, receipt });
                }
                _ => {}
            }
        }
        self.buffer = buffer;
    }

    fn handle_message(
        &self,
        world: &mut World,
        client: ClientId,
        channel: Channel,
        payload: &[u8],
    ) {
        if channel == self.protocol.events {
            let mut exchanges = self.protocol.exchanges.iter();
            exchanges.any(|exchange| exchange.accept(world, client, payload));
        } else {
            let payload = payload.to_vec();
            world.write_message(MessageFrom {
                client,
                channel,
                payload,
            });
        }
    }

    /// Simulates a tick if it is time.
    fn tick(&mut self, world: &mut World) -> bool {
        self.store_simulated(world);
        let ticked = world.resource_scope(|world, mut rules: Mut<G>| {
            let mut net = session::<G>(world);
            let now = net.link().now();
            net.game.tick(now, &mut rules)
        });
        let Some((tick, emitted)) = ticked else {
            return false;
        };
        for (client, event) in emitted {
            let (client, change) = (Some(client), EffectChange::Emitted);
            world.write_message(Emitted {
                client,
                event,
                change,
            });
        }
        self.load_simulated(world);
        run_tick(world, tick, self.protocol.session.tick());
        self.store(world);
        true
    }

    /// Takes over what systems outside of ticks changed of players and of what is simulated with them: it counts from this tick on.
    fn store_simulated(&mut self, world: &mut World) {
        world.resource_scope(|world, mut net: Mut<NetServer<G>>| {
            let Self { protocol, map, .. } = self;
            for part in protocol.parts.iter_mut().filter(|part| part.is_simulated()) {
                part.store(world, &mut net.game, map);
            }
        });
    }

    /// Players, and what is simulated with them, are where the tick took them.
    fn load_simulated(&mut self, world: &mut World) {
        world.resource_scope(|world, net: Mut<NetServer<G>>| {
            let parts = self.protocol.parts.iter_mut();
            for part in parts.filter(|part| part.is_simulated()) {
                part.load(world, &net.game);
            }
        });
    }

    /// Stores the result of the tick in the session, which sends it to clients.
    fn store(&mut self, world: &mut World) {
        world.resource_scope(|world, mut net: Mut<NetServer<G>>| {
            let Self {
                protocol,
                map,
                followed,
                ..
            } = self;
            for part in &mut protocol.parts {
                part.store(world, &mut net.game, map);
            }
            let followed = followed.get_or_insert_with(|| world.query_filtered());
            kinds::follow(world, followed, &mut net.game, map, protocol.player);
            for exchange in &mut protocol.exchanges {
                exchange.emit(world, &mut net.game, map);
            }
            self.limit(world, &mut net.game);
            net.game.commit();
        });
    }

    /// Tells each client's view what it may see, if anything is hidden from anybody.
    fn limit(&mut self, world: &mut World, game: &mut netcode::Server<G>) {
        let query = self.limited.get_or_insert_with(|| world.query_filtered());
        let hidden = query.iter(world).any(|(_, limit, _)| limit.is_some());
        if !hidden && self.visibility.is_empty() {
            return;
        }
        let clients: Vec<ClientId> = game.clients().collect();
        for client in clients {
            let sees = |limit: Option<&VisibleTo>, owner: Option<&Owner>| {
                limit.is_none_or(|limit| limit.0.contains(&client))
                    || owner.is_some_and(|owner| owner.0 == client)
            };
            let seen: Vec<EntityId> = query
                .iter(world)
                .filter(|(_, limit, owner)| sees(*limit, *owner))
                .map(|(id, _, _)| id.0)
                .collect();
            if self.visibility.get(&client) != Some(&seen) {
                game.set_interest(client, seen.iter().map(|id| (*id, 1.0)));
                self.visibility.insert(client, seen);
            }
        }
    }

    /// Says how much each client may be sent of the ticks that follow.
    fn allow(&mut self, world: &mut World) {
        let mut net = session::<G>(world);
        let net = &mut *net;
        let link = net.link.get_mut().expect("nobody else locks it");
        net.game
            .set_budgets(link.now(), link.endpoint_mut(), &net.session);
    }

    /// Sends what is to be sent.
    fn send(&mut self, world: &mut World) {
        let mut net = session::<G>(world);
        let net = &mut *net;
        let link = net.link.get_mut().expect("nobody else locks it");
        let mut figures = Diagnostics::default();
        for client in net.session.clients() {
            let connection = net.session.connection(client);
            if let Some(stats) = connection.and_then(|connection| link.stats(connection)) {
                figures.connections += 1;
                figures.round_trip = figures.round_trip.max(stats.rtt);
                figures.loss = figures.loss.max(stats.loss);
                figures.bytes_sent += stats.bytes_sent;
                figures.bytes_received += stats.bytes_received;
            }
        }
        figures.slipped = net.game.slipped();
        let now = link.now();
        net.game
            .send_packets(now, link.endpoint_mut(), &mut net.session);
        // As with polling: nobody to tell.
        let _ = link.flush();
        let left = net.game.poll_timeout().saturating_since(now);
        set_overstep(world, self.protocol.session.tick() - left);
        world.insert_resource(figures);
    }
}

/// The code of clients that the game denies.
const CODE_DENIED: u16 = 1;

fn session<G: BevyGame>(world: &mut World) -> Mut<'_, NetServer<G>> {
    world.resource_mut::<NetServer<G>>()
}
