//! The client's side: receives, runs ticks with the player's inputs, and updates what is to be drawn, once a frame.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bevy_app::{App, Plugin};
use bevy_ecs::prelude::*;
use muse::drivers::Clock;
use muse::netcode::{self, EntityId, Tick};
use muse::session::{ClientEvent, ClientSession, GameClientSession};
use muse::{Channel, Duration, MessageId, SendError, SendOptions};

use crate::connection::{
    ConnectTo, ConnectionChanged, ConnectionState, Diagnostics, MessageReceived, OnScreen,
    PlayerInput, ReceiptReceived,
};
use crate::events::Emitted;
use crate::kinds::{self, EntityMap};
use crate::protocol::{BevyGame, Protocol, ProtocolSlot};
use crate::ticks::{release_messages, run_tick, set_overstep};

/// Plays sessions of a [`Protocol`] as a client, in place of Bevy's fixed loop; [`ConnectTo`] says over which connection.
pub struct ClientPlugin<G: BevyGame>(ProtocolSlot<G>);

impl<G: BevyGame> ClientPlugin<G> {
    /// A client of this protocol. The rules `G` must be there as a resource.
    pub fn new(protocol: Protocol<G>) -> Self {
        Self(ProtocolSlot::new(protocol))
    }
}

impl<G: BevyGame> Plugin for ClientPlugin<G> {
    fn build(&self, app: &mut App) {
        let Some(protocol) = self.0.install(app, play::<G>) else {
            return;
        };
        app.add_message::<ConnectionChanged>();
        app.add_message::<MessageReceived>();
        app.init_resource::<OnScreen>();
        app.init_resource::<ConnectionState>();
        app.insert_resource(PlayerInput(G::Input::default()));
        app.insert_resource(NetClient::<G> { session: None });
        app.insert_resource(Machinery(Some(Box::new(Works {
            protocol,
            map: EntityMap::default(),
            gone: BTreeSet::new(),
            buffer: Vec::new(),
            clock: Clock::start(),
        }))));
    }
}

/// The session, in systems of the client that run once a frame; there is none in it during ticks, and before the first [`ConnectTo`].
#[derive(Resource)]
pub struct NetClient<G: BevyGame> {
    session: Option<Box<Session<G>>>,
}

struct Session<G: BevyGame> {
    game: GameClientSession<G>,
    link: Mutex<muse::drivers::ClientDriver>,
    session: ClientSession,
}

impl<G: BevyGame> NetClient<G> {
    /// The session.
    pub fn game(&self) -> Option<&netcode::Client<G>> {
        Some(&self.session.as_ref()?.game)
    }

    /// Sends a message of the game's own to the server, as its type is declared ([`Protocol::message`]). Fails without a connection.
    pub fn send<M: muse::Message>(&mut self, message: &M) -> muse::Result<MessageId> {
        self.send_with(message, &SendOptions::default())
    }

    /// Sends a message with a priority, a deadline or a receipt of its own.
    pub fn send_with<M: muse::Message>(
        &mut self,
        message: &M,
        options: &SendOptions,
    ) -> muse::Result<MessageId> {
        let it = self.session.as_mut().ok_or(SendError::NoConnection)?;
        let link = it.link.get_mut().expect("nobody else locks it");
        let (now, endpoint) = (link.now(), link.endpoint_mut());
        it.session.send_with(now, endpoint, message, options)
    }

    /// Sends bytes on a channel without types ([`Protocol::add_channel`]).
    pub fn send_bytes(&mut self, channel: Channel, bytes: &[u8]) -> muse::Result<MessageId> {
        let it = self.session.as_mut().ok_or(SendError::NoConnection)?;
        let link = it.link.get_mut().expect("nobody else locks it");
        let (now, endpoint) = (link.now(), link.endpoint_mut());
        it.session.send_bytes(now, endpoint, channel, bytes)
    }

    /// The connection, for everything that is not here.
    pub fn link(&mut self) -> Option<&mut muse::drivers::ClientDriver> {
        self.session.as_mut()?.link.get_mut().ok()
    }
}

/// The state of the plugin itself, which is taken out while it works.
#[derive(Resource)]
struct Machinery<G: BevyGame>(Option<Box<Works<G>>>);

struct Works<G: BevyGame> {
    protocol: Protocol<G>,
    map: EntityMap,
    /// Entities that are gone but may still be shown, as what is shown is in the past.
    gone: BTreeSet<EntityId>,
    buffer: Vec<u8>,
    /// Measures what prediction costs.
    clock: Clock,
}

fn play<G: BevyGame>(world: &mut World) {
    let taken = world.get_resource_mut::<Machinery<G>>();
    let Some(mut works) = taken.and_then(|mut machinery| machinery.0.take()) else {
        return;
    };
    if let Some(ConnectTo(link)) = world.remove_resource::<ConnectTo>() {
        let session = works.begin(world, link.into_inner().expect("nobody else locks it"));
        world.insert_resource(NetClient { session });
    }
    if world.contains_resource::<G>()
        && let Some(mut client) = world.get_resource_mut::<NetClient<G>>()
        && let Some(mut session) = client.session.take()
    {
        world.resource_scope(|world, mut rules: Mut<G>| {
            works.receive(world, &mut session, &mut rules);
            works.simulate(world, &mut session, &mut rules);
            works.mirror(world, &mut session.game);
            works.tell(world, &mut session);
        });
        world.insert_resource(NetClient {
            session: Some(session),
        });
    }
    if !matches!(
        world.get_resource::<ConnectionState>(),
        Some(ConnectionState::Connected | ConnectionState::Interrupted)
    ) {
        // There may be no tick for a long time.
        release_messages(world);
    }
    if let Some(mut machinery) = world.get_resource_mut::<Machinery<G>>() {
        machinery.0 = Some(works);
    }
}

impl<G: BevyGame> Works<G> {
    fn begin(
        &mut self,
        world: &mut World,
        link: muse::drivers::ClientDriver,
    ) -> Option<Box<Session<G>>> {
        let protocol = &mut self.protocol;
        let game = netcode::Client::new(
            protocol.session,
            protocol.kinds(),
            protocol.player,
            protocol.distance,
            link.now(),
        );
        for part in &mut protocol.parts {
            part.begin(&game);
        }
        for entity in std::mem::take(&mut self.map).here.into_keys() {
            world.despawn(entity);
        }
        self.gone.clear();
        change(world, ConnectionState::Connecting);
        let session = ClientSession::new(protocol.messages.clone(), link.connection());
        let link = Mutex::new(link);
        Some(Box::new(Session {
            game: GameClientSession::new(game),
            link,
            session,
        }))
    }

    /// Takes in what arrived.
    fn receive(&mut self, world: &mut World, session: &mut Session<G>, rules: &mut G) {
        let link = session.link.get_mut().expect("nobody else locks it");
        let mut buffer = std::mem::take(&mut self.buffer);
        // A socket that fails keeps failing, and the connection is lost: the state tells it.
        let _ = link.poll();
        while let Some(event) = link.poll_event(&mut buffer) {
            let Some(event) = session.session.handle_event(event) else {
                continue;
            };
            let from = self.clock.now();
            match session.game.handle_event(link.now(), rules, event) {
                Some(ClientEvent::Connected | ClientEvent::Resumed) => {
                    change(world, ConnectionState::Connected);
                }
                Some(ClientEvent::Interrupted) => change(world, ConnectionState::Interrupted),
                Some(ClientEvent::Ended(error)) => change(world, ended(error)),
                None => {
                    // A machine that is too slow to predict everything again predicts less.
                    let now = self.clock.now();
                    session.game.handle_cost(now, now.saturating_since(from));
                }
                Some(ClientEvent::Received(message))
                    if message.channel() != self.protocol.events =>
                {
                    let (channel, payload) = (message.channel(), message.bytes().to_vec());
                    world.write_message(MessageReceived { channel, payload });
                }
                Some(ClientEvent::Receipt(receipt)) => {
                    let client = None;
                    world.write_message(ReceiptReceived { client, receipt });
                }
                _ => {}
            }
        }
        self.buffer = buffer;
    }

    /// Simulates what is due, with the inputs that the game's systems write in each tick, and sends them.
    fn simulate(&mut self, world: &mut World, session: &mut Session<G>, rules: &mut G) {
        let link = session.link.get_mut().expect("nobody else locks it");
        let (now, length) = (link.now(), self.protocol.session.tick());
        let mut input = |tick: Tick| {
            run_tick(world, tick, length);
            let input = world.get_resource::<PlayerInput<G::Input>>();
            input.map_or_else(G::Input::default, |input| input.0.clone())
        };
        let (game, connection) = (&mut session.game, &mut session.session);
        let endpoint = link.endpoint_mut();
        while let Some(_len) = game.send_packet(now, rules, endpoint, connection, &mut input) {}
        if let Some(time) = session.game.clock().play_time() {
            let passed = length.as_secs_f64() * f64::from(time.share());
            set_overstep(world, Duration::from_secs_f64(passed));
        }
    }

    /// Brings the entities up to date, and shows them as they are to be drawn.
    fn mirror(&mut self, world: &mut World, game: &mut netcode::Client<G>) {
        while let Some(update) = game.poll_update() {
            kinds::mirror(world, game, &update, &mut self.map, &mut self.gone);
            for part in &mut self.protocol.parts {
                part.update(world, game, &update, &self.map);
            }
        }
        while let Some(event) = game.poll_event() {
            let mut exchanges = self.protocol.exchanges.iter();
            exchanges.any(|exchange| exchange.receive(world, &event, &self.map));
        }
        while let Some(effect) = game.poll_effect() {
            let (event, change) = (effect.event, effect.change);
            world.write_message(Emitted {
                client: None,
                event,
                change,
            });
        }
        let mut lingering = BTreeSet::new();
        for part in &mut self.protocol.parts {
            part.show(world, game, &self.map, &mut lingering);
        }
        kinds::show_player(world, game, &self.map);
        let Self { gone, map, .. } = self;
        gone.retain(|id| {
            let stays = lingering.contains(id);
            if !stays && let Some(entity) = map.remove(*id) {
                world.despawn(entity);
            }
            stays
        });
        world.insert_resource(OnScreen(game.claim()));
    }

    /// Sends what the game has to say, and takes the figures.
    fn tell(&mut self, world: &mut World, session: &mut Session<G>) {
        let link = session.link.get_mut().expect("nobody else locks it");
        let (now, events) = (link.now(), self.protocol.events);
        let (endpoint, connection) = (link.endpoint_mut(), &mut session.session);
        for exchange in &mut self.protocol.exchanges {
            exchange.collect(world, &mut |message| {
                // A full queue loses it; the channel's counters know of it.
                let _ = connection.send_bytes(now, endpoint, events, message);
            });
        }
        let _ = link.flush();
        let stats = link.stats();
        let (game, figures) = (&session.game, stats.unwrap_or_default());
        let prediction = game.prediction();
        world.insert_resource(Diagnostics {
            connections: usize::from(stats.is_some()),
            round_trip: figures.rtt,
            loss: figures.loss,
            bytes_sent: figures.bytes_sent,
            bytes_received: figures.bytes_received,
            ahead: game.clock().ahead().unwrap_or(Duration::ZERO),
            behind: game.interpolation_delay().unwrap_or(Duration::ZERO),
            confirmed: prediction.confirmed,
            corrected: prediction.corrected,
            predicted_others: prediction.others,
            slipped: 0,
        });
    }
}

fn change(world: &mut World, state: ConnectionState) {
    world.insert_resource(state.clone());
    world.write_message(ConnectionChanged(state));
}

/// The state of a client whose connection ended for this reason.
fn ended(error: muse::Error) -> ConnectionState {
    match error {
        muse::Error::Refused(reason) => ConnectionState::Refused(reason),
        muse::Error::Closed(reason) => ConnectionState::Closed(reason),
        // Nothing else ends a connection.
        _ => ConnectionState::Unanswered,
    }
}
