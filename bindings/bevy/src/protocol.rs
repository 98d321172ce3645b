//! The agreement of both sides: the rules, what is replicated, which events there are.

use std::sync::Mutex;

use bevy_app::App;
use bevy_ecs::component::Mutable;
use bevy_ecs::prelude::*;
use muse::netcode::prediction::Game;
use muse::netcode::{Audience, EventClass, Kind, KindOptions, Kinds, SessionConfig};
use muse::{Channel, ChannelConfig, Config, Delivery, Schema, State};

use crate::connection::{Diagnostics, NetTick, ReceiptReceived};
use crate::events::{ClientEvent, Emitted, Exchange, ServerEvent};
use crate::kinds::{Component as Part, Replicate};
use crate::ticks::replace_fixed_loop;

/// The rules of a game as a resource: the step that server and client run alike.
pub trait BevyGame:
    Resource<Mutability = Mutable>
    + Game<Player: Replicable, Input: Send + Sync + 'static, Event: Send + Sync + 'static>
{
}

impl<G> BevyGame for G
where
    G: Resource<Mutability = Mutable> + Game,
    G::Player: Replicable,
    G::Input: Send + Sync + 'static,
    G::Event: Send + Sync + 'static,
{
}

/// A component that can be replicated: derive `Component` and `State`.
pub trait Replicable: bevy_ecs::component::Component<Mutability = Mutable> + State {}

impl<C: bevy_ecs::component::Component<Mutability = Mutable> + State> Replicable for C {}

/// A list of everything that is replicated. Build the same one on both sides.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use muse_bevy::prelude::*;
///
/// #[derive(Component, State, Clone, Debug, Default)]
/// struct Runner {
///     #[field(range = -100.0..=100.0, step = 0.001)]
///     x: f32,
/// }
/// #[derive(Resource)]
/// struct Rules;
/// impl Game for Rules {
///     type Player = Runner;
///     type Input = bool;
///     type Event = ();
///     fn step(&mut self, runner: &mut Runner, run: &bool, _: &mut StepContext<'_, ()>) {
///         runner.x += if *run { 0.1 } else { 0.0 };
///     }
/// }
/// let config = SessionConfig::new(Duration::from_millis(20));
/// let protocol = Protocol::<Rules>::new(config, KindOptions::new(1), |a, b| (a.x - b.x).abs());
/// assert!(protocol.describe().contains("tick length 20000 us"));
/// ```
pub struct Protocol<G: BevyGame> {
    pub(crate) session: SessionConfig,
    /// The channels, and the messages of the game's own.
    pub(crate) messages: muse::Protocol,
    /// The channel of clients' events, behind that of states and inputs.
    pub(crate) events: Channel,
    kinds: Kinds,
    pub(crate) player: Kind<G::Player>,
    pub(crate) distance: fn(&G::Player, &G::Player) -> f32,
    pub(crate) parts: Vec<Box<dyn Part<G>>>,
    pub(crate) exchanges: Vec<Box<dyn Exchange<G>>>,
}

impl<G: BevyGame> Protocol<G> {
    /// For sessions with these settings, whose players are of this kind. `distance` says how far apart two players look.
    ///
    /// # Panics
    /// When the kind cannot be registered, which the declarations alone decide; see [`KindError`](muse::netcode::world::KindError).
    pub fn new(
        session: SessionConfig,
        player: KindOptions,
        distance: fn(&G::Player, &G::Player) -> f32,
    ) -> Self {
        let mut kinds = Kinds::new();
        let part = Replicate::new(&mut kinds, player, false, Some(distance)).simulated();
        let player = part.kind();
        let mut messages = muse::Protocol::default();
        Self {
            session,
            events: messages.add_channel(ChannelConfig::new(Delivery::ReliableOrdered)),
            messages,
            kinds,
            player,
            distance,
            parts: vec![Box::new(part)],
            exchanges: Vec::new(),
        }
    }

    /// Replicates a component as an entity's main one, under this number; on clients it holds what was last told. An entity has one main component.
    ///
    /// # Panics
    /// When the kind cannot be registered, which the declarations alone decide; see [`KindError`](muse::netcode::world::KindError).
    pub fn replicate<C: Replicable>(self, id: u16) -> Self {
        self.register::<C>(KindOptions::new(id), false, None)
    }

    /// As [`replicate`](Self::replicate), and clients interpolate it; `distance` says how far apart two states look.
    ///
    /// # Panics
    /// When the kind cannot be registered, which the declarations alone decide; see [`KindError`](muse::netcode::world::KindError).
    pub fn interpolate<C: Replicable>(self, id: u16, distance: fn(&C, &C) -> f32) -> Self {
        self.register(KindOptions::new(id), false, Some(distance))
    }

    /// As [`interpolate`](Self::interpolate), and the rules move it on both sides ([`Game::step_scene`]): a client predicts those that
    /// [`Game::predicts`] asks for, together with its player, and interpolates the others.
    ///
    /// # Panics
    /// When the kind cannot be registered, which the declarations alone decide; see [`KindError`](muse::netcode::world::KindError).
    pub fn predict<C: Replicable>(mut self, id: u16, distance: fn(&C, &C) -> f32) -> Self {
        let options = KindOptions::new(id).predicted();
        let part = Replicate::new(&mut self.kinds, options, false, Some(distance));
        self.parts.push(Box::new(part.simulated()));
        self
    }

    /// Replicates a component that goes along with a main one, to this audience: everyone, the owner, or the others. At most 7.
    ///
    /// # Panics
    /// When the kind cannot be registered, which the declarations alone decide; see [`KindError`](muse::netcode::world::KindError).
    pub fn part<C: Replicable>(self, id: u16, audience: Audience) -> Self {
        self.register::<C>(KindOptions::new(id).part(audience), true, None)
    }

    /// Events that the server sends with [`ToClients`](crate::ToClients) and clients get as [`FromServer`](crate::FromServer), in step with states.
    pub fn server_event<E: Schema + Send + Sync + 'static>(
        mut self,
        id: u16,
        class: EventClass,
    ) -> Self {
        self.exchanges
            .push(Box::new(ServerEvent::<E>::new(id, class)));
        self
    }

    /// Events that clients send with [`ToServer`](crate::ToServer), reliably and in order, and the server gets as [`FromClient`](crate::FromClient).
    pub fn client_event<E: Schema + Send + Sync + 'static>(mut self, id: u16) -> Self {
        self.exchanges.push(Box::new(ClientEvent::<E>::new(id)));
        self
    }

    /// A message of the game's own, apart from the world: [`NetServer::send`](crate::NetServer::send) and [`NetClient::send`](crate::NetClient::send)
    /// send it, [`MessageFrom`](crate::MessageFrom) and [`MessageReceived`](crate::MessageReceived) bring it. Types with the same delivery share a channel.
    pub fn message<M: muse::Message>(mut self, delivery: Delivery) -> Self {
        self.messages = self.messages.message::<M>(delivery);
        self
    }

    /// Adds a channel for messages of bytes.
    pub fn add_channel(&mut self, channel: ChannelConfig) -> Channel {
        self.messages.add_channel(channel)
    }

    /// Returns everything that both sides must share, a line each: what is replicated, the events, the messages, the inputs, the length of a tick. It is compared when
    /// a client connects, and a client that differs is told which lines do.
    pub fn describe(&self) -> String {
        let kinds = self.kinds.describe();
        let kinds = kinds.lines().map(|line| format!("kind {line}\n"));
        let exchanges = self.exchanges.iter();
        let mut text: String = kinds
            .chain(exchanges.map(|exchange| exchange.describe() + "\n"))
            .collect();
        text += &self.messages.describe_messages();
        text += &format!("input type {}\n", <G::Input as Schema>::TYPE);
        text += &format!("tick length {} us\n", self.session.tick().as_micros());
        text
    }

    /// Returns the settings of connections that go with it, for a game with this number.
    ///
    /// # Panics
    /// When messages are declared that contradict each other, see [`ProtocolError`](muse::ProtocolError).
    pub fn transport(&self, game: u64) -> Config {
        self.messages.check().expect("messages that fit together");
        let channels = self.messages.config();
        let config = Config::new(game).shared(&self.describe());
        let channels = channels.channels().iter().cloned();
        channels.fold(config, Config::channel)
    }

    /// The kinds, for a session.
    pub(crate) fn kinds(&self) -> Kinds {
        let mut kinds = Kinds::new();
        for part in &self.parts {
            part.declare(&mut kinds);
        }
        kinds
    }

    fn register<C: Replicable>(
        mut self,
        options: KindOptions,
        is_part: bool,
        distance: Option<fn(&C, &C) -> f32>,
    ) -> Self {
        let part = Replicate::new(&mut self.kinds, options, is_part, distance);
        self.parts.push(Box::new(part));
        self
    }
}

/// A protocol until its plugin is built, which is only lent to Bevy for that.
pub(crate) struct ProtocolSlot<G: BevyGame>(Mutex<Option<Protocol<G>>>);

impl<G: BevyGame> ProtocolSlot<G> {
    pub(crate) fn new(protocol: Protocol<G>) -> Self {
        Self(Mutex::new(Some(protocol)))
    }

    /// Adds what both sides have to the app, and the system that runs the session. Returns the protocol, the first time.
    pub(crate) fn install(&self, app: &mut App, session: fn(&mut World)) -> Option<Protocol<G>> {
        let protocol = self.0.lock().ok()?.take()?;
        for exchange in &protocol.exchanges {
            exchange.add_messages(app);
        }
        app.add_message::<ReceiptReceived>();
        app.add_message::<Emitted<G::Event>>();
        app.init_resource::<NetTick>();
        app.init_resource::<Diagnostics>();
        replace_fixed_loop(app, protocol.session.tick(), session);
        Some(protocol)
    }
}
