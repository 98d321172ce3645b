//! The declaration that both sides of a game share: messages with their delivery, kinds of entities, limits.

use std::collections::BTreeMap;

use muse_netcode::inputs::Input;
use muse_netcode::prediction::Game;
use muse_netcode::world::KindError;
use muse_netcode::{Client, Kind, KindOptions, Kinds, Remotes, Server};
use muse_schema::{Message, Registry, RegistryError, State, fnv1a};
use muse_transport::{ChannelConfig, Config, Delivery};
use muse_wire::Instant;
use thiserror::Error;

/// Names a channel of a [`Protocol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(pub(crate) u8);

impl Channel {
    /// The channel of snapshots and inputs, which every protocol has.
    pub const STATES: Self = Self(0);

    /// Returns its number on the wire, for [`Endpoint`](muse_transport::Endpoint).
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// The declaration that both sides of a game share. Write it once, as a function that server and client call; everything in it is compared
/// when a client connects, and a client that differs is refused.
///
/// ```
/// use muse::prelude::*;
///
/// #[derive(Message, Debug)]
/// #[message(id = 1)]
/// struct Say {
///     text: String,
/// }
///
/// fn protocol() -> Protocol {
///     Protocol::new("chat/1").message::<Say>(Delivery::ReliableOrdered)
/// }
/// # assert!(protocol().check().is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Protocol {
    name: String,
    config: Config,
    messages: Registry,
    /// Channels that messages share because they are delivered alike.
    shared: BTreeMap<u8, Delivery>,
    routes: BTreeMap<u16, Channel>,
    kinds: Kinds,
    /// Further lines that both sides must have in common.
    lines: Vec<String>,
    /// The first declaration that was wrong.
    fault: Option<ProtocolError>,
}

/// The reason that a [`Protocol`] makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// Two messages have the same id.
    #[error(transparent)]
    Message(#[from] RegistryError),
    /// A kind of entity cannot be declared.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// The kind of the players is not declared, or several times.
    #[error("declare the players' kind once: `Protocol::for_game` does it")]
    NoPlayers,
    /// There are more than 255 channels.
    #[error("a protocol has at most 255 channels of its own")]
    TooManyChannels,
}

impl Protocol {
    /// Starts a protocol. The name tells games and versions that do not fit together apart, such as `"tag/1"`.
    pub fn new(name: &str) -> Self {
        Self::with_id(name, fnv1a(name.as_bytes()))
    }

    /// Starts a protocol whose connections have this protocol id, which connect tokens name, instead of one made of the name.
    pub fn with_id(name: &str, id: u64) -> Self {
        let states = ChannelConfig::new(Delivery::Unreliable);
        Self {
            name: name.to_owned(),
            config: Config::new(id).channel(states),
            messages: Registry::new(),
            shared: BTreeMap::new(),
            routes: BTreeMap::new(),
            kinds: Kinds::new(),
            lines: Vec::new(),
            fault: None,
        }
    }

    /// Declares a message type and how it is delivered. Types with the same delivery share a channel, so that ordered ones arrive in
    /// the order in which they were sent, whatever their type.
    pub fn message<M: Message>(mut self, delivery: Delivery) -> Self {
        let shared = self.shared.iter().find(|(_, known)| **known == delivery);
        let channel = match shared {
            Some((number, _)) => Channel(*number),
            None => {
                let channel = self.add_channel(ChannelConfig::new(delivery));
                self.shared.insert(channel.0, delivery);
                channel
            }
        };
        self.route::<M>(channel);
        self
    }

    /// Declares a message type on a channel that [`add_channel`](Self::add_channel) made, for settings of its own such as priority.
    pub fn message_on<M: Message>(mut self, channel: Channel) -> Self {
        self.route::<M>(channel);
        self
    }

    /// Adds a channel for messages of bytes, or for [`message_on`](Self::message_on).
    pub fn add_channel(&mut self, channel: ChannelConfig) -> Channel {
        let Ok(number) = u8::try_from(self.config.channels().len()) else {
            self.fault.get_or_insert(ProtocolError::TooManyChannels);
            return Channel::STATES;
        };
        self.config = self.config.clone().channel(channel);
        Channel(number)
    }

    /// Declares a kind of entity besides the players; `id` is any number that no other kind has, from 1 on.
    pub fn kind<S: State>(self, id: u16) -> Self {
        self.kind_with::<S>(KindOptions::new(id))
    }

    /// Declares a kind of entity with options of its own. For [`Game::Player`] too, whose id is 0 by default.
    pub fn kind_with<S: State>(mut self, options: KindOptions) -> Self {
        if let Err(error) = self.kinds.register::<S>(options) {
            self.fault.get_or_insert(error.into());
        }
        self
    }

    /// Changes limits and times of the connections; channels stay as they are declared here.
    pub fn configure(mut self, change: impl FnOnce(Config) -> Config) -> Self {
        self.config = change(self.config);
        self
    }

    /// Says what is wrong with the declarations, if anything is. Listening and connecting check it as well.
    pub fn check(&self) -> Result<(), ProtocolError> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Returns the channel of a message type; `None` if it was not declared.
    pub fn channel_of<M: Message>(&self) -> Option<Channel> {
        self.routes.get(&M::ID).copied()
    }

    /// Returns the lines that describe the messages and their channels.
    pub fn describe_messages(&self) -> String {
        let mut text = self.messages.describe();
        for (message, channel) in &self.routes {
            text += &format!("message {message} on channel {}\n", channel.0);
        }
        text
    }

    /// Returns the kinds of entities, for [`netcode`](crate::netcode)'s own types.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the settings of an endpoint, with everything that is compared when a client connects.
    pub fn config(&self) -> Config {
        self.config.clone().shared(&self.describe())
    }

    /// Returns everything that both sides must have in common, a line each. Channels are compared besides.
    pub fn describe(&self) -> String {
        let mut text = format!("protocol name {}\n{}", self.name, self.describe_messages());
        for line in self.kinds.describe().lines() {
            text += &format!("kind {line}\n");
        }
        for line in &self.lines {
            text += &format!("{line}\n");
        }
        text
    }

    /// Adds what the rules of a game share: the players' kind, the inputs and the tick rate. [`GameServer`](crate::GameServer) and
    /// [`GameClient`](crate::GameClient) do it themselves.
    pub fn for_game<G: Game>(mut self) -> Self
    where
        G::Player: State,
        G::Input: Input,
    {
        if self.kinds.of::<G::Player>().is_none() {
            self = self.kind::<G::Player>(PLAYER_KIND);
        }
        let tick = G::session().tick();
        let input = <G::Input as muse_schema::Schema>::TYPE;
        self.lines.push(format!("input type {input}"));
        self.lines
            .push(format!("tick length {} us", tick.as_micros()));
        self
    }

    /// Returns the simulation of a server, whose tick 0 is at `now`; for engines with a loop of their own.
    pub fn game_server<G: Game>(&self, now: Instant) -> Result<Server<G>, ProtocolError>
    where
        G::Player: State,
    {
        let kind = self.player_kind::<G>()?;
        Ok(Server::new(G::session(), self.kinds.clone(), kind, now))
    }

    /// Returns the session of a client, and how it shows the others; for engines with a loop of their own.
    #[allow(
        clippy::type_complexity,
        reason = "two halves that are used side by side"
    )]
    pub fn game_client<G: Game>(
        &self,
        now: Instant,
    ) -> Result<(Client<G>, Remotes<G::Player>), ProtocolError>
    where
        G::Player: State,
    {
        let (kind, kinds) = (self.player_kind::<G>()?, self.kinds.clone());
        let client = Client::new(G::session(), kinds, kind, G::distance, now);
        let remotes = Remotes::new(kind, client.interpolation(), G::distance);
        Ok((client, remotes))
    }

    /// Returns the kind of a game's players, which [`for_game`](Self::for_game) has declared.
    pub fn player_kind<G: Game>(&self) -> Result<Kind<G::Player>, ProtocolError>
    where
        G::Player: State,
    {
        self.check()?;
        self.kinds.of::<G::Player>().ok_or(ProtocolError::NoPlayers)
    }

    fn route<M: Message>(&mut self, channel: Channel) {
        match self.messages.register::<M>() {
            Ok(_) => drop(self.routes.insert(M::ID, channel)),
            Err(error) => drop(self.fault.get_or_insert(error.into())),
        }
    }
}

impl Default for Protocol {
    /// A protocol without a name of its own and without messages, for a game that replicates its players only.
    fn default() -> Self {
        Self::new("muse")
    }
}

/// The id of the players' kind unless a protocol declares it itself.
const PLAYER_KIND: u16 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Message)]
    #[message(id = 1)]
    struct Say {
        text: String,
    }

    #[derive(Message)]
    #[message(id = 2)]
    struct Shout {
        text: String,
    }

    #[derive(Message)]
    #[message(id = 1)]
    struct Other {
        number: u8,
    }

    #[test]
    fn messages_that_are_delivered_alike_share_a_channel() {
        let protocol = Protocol::new("test/1")
            .message::<Say>(Delivery::ReliableOrdered)
            .message::<Shout>(Delivery::ReliableOrdered);
        assert_eq!(protocol.channel_of::<Say>(), Some(Channel(1)));
        assert_eq!(protocol.channel_of::<Shout>(), Some(Channel(1)));
        assert_eq!(protocol.config().channels().len(), 2);
    }

    #[test]
    fn two_messages_of_one_id_are_an_error_that_names_both() {
        let protocol = Protocol::new("test/1")
            .message::<Say>(Delivery::ReliableOrdered)
            .message::<Other>(Delivery::Unreliable);
        let error = protocol.check().expect_err("the id is taken").to_string();
        assert!(error.contains("Say") && error.contains("Other"), "{error}");
    }

    #[test]
    fn what_differs_is_in_the_description() {
        let one = Protocol::new("test/1").message::<Say>(Delivery::ReliableOrdered);
        let other = Protocol::new("test/1").message::<Shout>(Delivery::ReliableOrdered);
        assert_ne!(one.describe(), other.describe());
        assert_eq!(one.describe(), one.clone().describe());
    }
}
