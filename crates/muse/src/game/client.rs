//! The client of a game: inputs out, snapshots in, everything ready to be drawn.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use muse_drivers::Clock;
use muse_netcode::prediction::{Game, SpawnShown};
use muse_netcode::{self as netcode, EntityId, Kind, Remotes, Tick, Update};
use muse_schema::State;
use muse_wire::{Duration, Instant};

use crate::session::{ClientEvent, GameClientSession};
use crate::{Client, Join, Protocol, Result};

/// A player's connection to a [`GameServer`](crate::GameServer): sends inputs, predicts the own player, shows the others smoothly.
/// Call [`tick`](Self::tick) once a frame.
///
/// It is a [`Client`] too, for messages.
///
/// ```
/// use muse::prelude::*;
///
/// /// A frame: the keys go to the server, and the players come back as they are to be drawn.
/// fn frame<G: Game<Player: State>>(client: &mut GameClient<G>, keys: G::Input) -> muse::Result<usize> {
///     client.tick(|_tick| keys.clone())?;
///     let own = client.own_player().into_iter();
///     Ok(own.chain(client.other_players()).count())
/// }
/// ```
pub struct GameClient<G: Game> {
    client: Client,
    game: GameClientSession<G>,
    rules: G,
    remotes: Remotes<G::Player>,
    /// The others as of the last tick.
    others: Vec<(EntityId, G::Player)>,
    /// Entities of other kinds, by the numbers of these.
    shown: BTreeMap<u16, ShownKind<G>>,
    /// Measures what prediction costs.
    clock: Clock,
}

impl<G: Game> GameClient<G>
where
    G::Player: State,
{
    /// Begins to connect to a server of this game, by the text that it prints: its address, or an invitation to its room.
    pub fn connect(join: impl Into<Join>, rules: G) -> Result<Self> {
        Self::connect_with(join, Protocol::default(), rules)
    }

    /// Begins to connect to a server of this game, with messages and kinds of entities besides.
    pub fn connect_with(join: impl Into<Join>, protocol: Protocol, rules: G) -> Result<Self> {
        let protocol = protocol.for_game::<G>();
        let client = Client::connect(join, protocol)?;
        let (game, remotes) = client.protocol().game_client(client.now())?;
        Ok(Self {
            client,
            game: GameClientSession::new(game),
            rules,
            remotes,
            others: Vec::new(),
            shown: BTreeMap::new(),
            clock: Clock::start(),
        })
    }

    /// Receives what arrived, simulates what is due with the player's inputs and sends them, without waiting.
    ///
    /// # Errors
    /// The reason, when there is no connection (any more).
    pub fn tick(&mut self, input: impl FnMut(Tick) -> G::Input) -> Result<()> {
        self.tick_with(input, |_, _| Ok(()))
    }

    /// As [`tick`](Self::tick), and gives messages and news about the connection to `handle`.
    pub fn tick_with(
        &mut self,
        mut input: impl FnMut(Tick) -> G::Input,
        mut handle: impl FnMut(&mut Self, ClientEvent<'_>) -> Result<()>,
    ) -> Result<()> {
        self.client.receive()?;
        let mut buffer = self.client.connection().0.take_buffer();
        let handled = self.handle_events(&mut buffer, &mut handle);
        self.client.connection().0.keep_buffer(buffer);
        handled?;
        let now = self.client.now();
        let from = self.clock.now();
        let (link, session) = self.client.connection();
        let (rules, endpoint) = (&mut self.rules, link.endpoint_mut());
        let mut send = || {
            self.game
                .send_packet(now, rules, endpoint, session, &mut input)
        };
        while send().is_some() {}
        self.note_cost(from);
        self.client.flush()?;
        self.show_others(&mut handle)
    }

    /// Sleeps until something arrives or the next tick is due, for `frame` at most: for a program without a window that sets the pace.
    pub fn wait(&mut self, frame: impl Into<Duration>) -> Result<bool> {
        let frame = frame.into();
        let due = self.game.poll_timeout();
        let until = due.map_or(frame, |due| due.saturating_since(self.client.now()));
        self.client.wait(until.min(frame))
    }

    /// Returns the own player as it is to be drawn: predicted, between two ticks, without a jump when the server corrects it. `None`
    /// before the server has given the client one.
    pub fn own_player(&self) -> Option<G::Player> {
        self.game.shown_player()
    }

    /// Returns the other players as they are to be drawn, in the order of their ids.
    pub fn other_players(&self) -> impl Iterator<Item = G::Player> + '_ {
        self.others.iter().map(|(_, player)| player.clone())
    }

    /// Returns the other players with their entities, for games that keep something of their own about each.
    pub fn others(&self) -> &[(EntityId, G::Player)] {
        &self.others
    }

    /// Returns the entities of a kind that the protocol declares besides players, as they are to be drawn, in the order of their ids: predicted where the
    /// rules say so, interpolated otherwise. None before the first call has been followed by a tick.
    pub fn entities<S: State + Send>(&mut self) -> Vec<(EntityId, S)> {
        self.entities_within(|_, _, to| to)
    }

    /// As [`entities`](Self::entities), in a world with obstacles: `stop` gets the rules and two states of an entity, and returns where it gets on the straight way from one
    /// to the other.
    pub fn entities_within<S: State + Send>(
        &mut self,
        mut stop: impl FnMut(&G, &S, S) -> S,
    ) -> Vec<(EntityId, S)> {
        let (game, rules, remotes) = self.remotes_of::<S>();
        let stop = |from: &S, to| stop(rules, from, to);
        let shown = remotes.map(|remotes| remotes.show_within(game, stop));
        let shown = shown.into_iter().flatten();
        shown.map(|(entity, shown)| (entity, shown.state)).collect()
    }

    /// Returns what the own player's steps have spawned of a kind and the server has not told of, as it is to be drawn beside [`entities`](Self::entities); what fades
    /// was denied. See [`StepContext::spawn`](muse_netcode::prediction::StepContext::spawn).
    pub fn spawns<S: State + Send>(&mut self) -> Vec<SpawnShown<S>> {
        let (game, _, remotes) = self.remotes_of::<S>();
        let shown = remotes.map(|remotes| remotes.show_spawns(game));
        shown.into_iter().flatten().collect()
    }

    /// Returns the session, the rules, and what shows the entities of a type of state, made when it is first asked for.
    fn remotes_of<S: State + Send>(
        &mut self,
    ) -> (&netcode::Client<G>, &G, Option<&mut Remotes<S>>) {
        let Some(kind) = self.kind::<S>() else {
            return (&self.game, &self.rules, None);
        };
        let game = &self.game;
        let shown = self.shown.entry(kind.id().id()).or_insert_with(|| {
            let mut remotes = Remotes::new(kind, game.interpolation(), S::distance);
            // What came before anybody asked.
            for entity in game.receiver().entities() {
                if let Some((tick, _)) = game.receiver().row(kind.id(), entity) {
                    let kind = kind.id();
                    remotes.handle_update(game, &Update::State { entity, kind, tick });
                }
            }
            ShownKind {
                remotes: Box::new(remotes),
                handle_update: |remotes, game, update| {
                    if let Some(remotes) = remotes.downcast_mut::<Remotes<S>>() {
                        remotes.handle_update(game, update);
                    }
                },
            }
        });
        let remotes = shown.remotes.downcast_mut::<Remotes<S>>();
        (game, &self.rules, remotes)
    }

    /// Returns the rules.
    pub fn rules(&mut self) -> &mut G {
        &mut self.rules
    }

    /// Returns the kind of entities that the protocol declares for this type; `None` if it declares none.
    pub fn kind<S: State>(&self) -> Option<Kind<S>> {
        self.client.protocol().kinds().of::<S>()
    }

    /// Returns the session below, for everything that is not here: entities of other kinds, events, clock, quality, claims.
    pub fn netcode(&mut self) -> &mut netcode::Client<G> {
        &mut self.game
    }

    fn handle_events(
        &mut self,
        buffer: &mut Vec<u8>,
        handle: &mut impl FnMut(&mut Self, ClientEvent<'_>) -> Result<()>,
    ) -> Result<()> {
        while let Some(event) = self.client.poll_event(buffer) {
            let Some(event) = self.client.interpret(event) else {
                continue;
            };
            let (now, from) = (self.client.now(), self.clock.now());
            match self.game.handle_event(now, &mut self.rules, event) {
                None => self.note_cost(from),
                Some(ClientEvent::Ended(error)) => return Err(error),
                Some(event) => handle(self, event)?,
            }
        }
        Ok(())
    }

    /// Has fewer entities predicted if this machine is too slow for all of them.
    fn note_cost(&mut self, from: Instant) {
        let now = self.clock.now();
        self.game.handle_cost(now, now.saturating_since(from));
    }

    fn show_others(
        &mut self,
        handle: &mut impl FnMut(&mut Self, ClientEvent<'_>) -> Result<()>,
    ) -> Result<()> {
        while let Some(update) = self.game.poll_update() {
            self.remotes.handle_update(&self.game, &update);
            for shown in self.shown.values_mut() {
                (shown.handle_update)(shown.remotes.as_mut(), &self.game, &update);
            }
            handle(self, ClientEvent::Updated(update))?;
        }
        self.others.clear();
        let rules = &self.rules;
        let stop = |from: &G::Player, to| rules.stop(from, to);
        let shown = self.remotes.show_within(&self.game, stop);
        self.others
            .extend(shown.map(|(entity, shown)| (entity, shown.state)));
        Ok(())
    }
}

/// The entities of a kind, as they are shown: a `Remotes` of its type.
struct ShownKind<G: Game> {
    remotes: Box<dyn Any + Send>,
    handle_update: fn(&mut (dyn Any + Send), &netcode::Client<G>, &Update),
}

impl<G: Game> Deref for GameClient<G> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl<G: Game> DerefMut for GameClient<G> {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}
