//! Typed messages: a u16 id, then the encoding; and a handler for each id.
//!
//! [`Endpoint::send_message`](crate::Endpoint::send_message) writes them. At the other end a [`Dispatcher`] finds the
//! handler. It knows every message it has ever been told of, so the schema hash that both sides compare at connect comes
//! from the same place ([`Dispatcher::registry`]).

use std::any::type_name;
use std::fmt;

/// The trait that [`send_message`](crate::Endpoint::send_message) takes, named here for crates that use the transport alone.
pub use muse_schema::Message;
use muse_schema::{DecodeError, EncodeError, Registry, RegistryError};
use rustc_hash::FxHashMap;
use thiserror::Error;

use crate::event::{ConnectionId, SendError};

/// Bytes that a typed message is longer than its encoding.
pub const MESSAGE_OVERHEAD: usize = 2;

/// Appends a typed message to `payload`: id, then encoding. Leaves `payload` as it was on error.
///
/// For payloads that are sent several times; otherwise [`Endpoint::send_message`](crate::Endpoint::send_message) does it.
///
/// ```
/// use muse_schema::Message;
/// use muse_transport::typed;
///
/// #[derive(Message)]
/// #[message(id = 7)]
/// struct Score {
///     points: u16,
/// }
/// let mut payload = Vec::new();
/// typed::encode(&Score { points: 3 }, &mut payload)?;
/// assert_eq!(payload[..2], [7, 0]); // the id, and behind it what the fields hold
/// # Ok::<(), muse_schema::EncodeError>(())
/// ```
pub fn encode<M: Message>(message: &M, payload: &mut Vec<u8>) -> Result<(), EncodeError> {
    let start = payload.len();
    payload.extend_from_slice(&M::ID.to_le_bytes());
    message
        .encode(payload)
        .inspect_err(|_| payload.truncate(start))
}

/// An error that keeps a typed message from being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// A value breaks what its type declares.
    #[error("the message cannot be encoded: {0}")]
    Encode(#[from] EncodeError),
    /// The connection did not take it.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Gives each message to the handler of its type. `C` is what handlers work on: a game's world, a server, or both.
///
/// A payload that no handler wants, or that is not what its id says, is counted and reported, and changes nothing: peers
/// may be newer, or hostile.
///
/// ```
/// use muse_schema::Message;
/// use muse_transport::{ConnectionId, DispatchError, Dispatcher, typed};
///
/// #[derive(Message)]
/// #[message(id = 7)]
/// struct Say {
///     text: String,
/// }
///
/// let mut dispatcher: Dispatcher<Vec<String>> = Dispatcher::new();
/// dispatcher.on(|heard: &mut Vec<String>, _from, say: Say| heard.push(say.text))?;
/// let config = muse_transport::Config::new(1).shared(&dispatcher.registry().describe());
/// # let _ = config;
///
/// // What `Endpoint::send_message` puts into a payload, and `Event::Message` brings.
/// let mut payload = Vec::new();
/// typed::encode(&Say { text: "hello".into() }, &mut payload)?;
/// let from = ConnectionId::from_bits(1);
/// let mut heard = Vec::new();
/// dispatcher.dispatch(&mut heard, from, &payload)?;
/// assert_eq!(heard, ["hello"]);
/// assert_eq!(dispatcher.dispatch(&mut heard, from, &[9, 0]), Err(DispatchError::UnknownId { id: 9 }));
/// assert_eq!(dispatcher.counters().unknown, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Dispatcher<C> {
    handlers: FxHashMap<u16, Handler<C>>,
    registry: Registry,
    counters: DispatchCounters,
}

type Handler<C> = Box<dyn FnMut(&mut C, ConnectionId, &[u8]) -> Result<(), DecodeError> + Send>;

/// Counts of a [`Dispatcher`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchCounters {
    /// Messages given to a handler.
    pub dispatched: u64,
    /// Messages with an id that has no handler.
    pub unknown: u64,
    /// Messages that are not what their id says, or too short to have one.
    pub malformed: u64,
}

/// The reason for which a payload reached no handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The payload is too short to hold an id.
    #[error("a payload of {len} bytes is too short for a typed message")]
    TooShort {
        /// Its length.
        len: usize,
    },
    /// No handler wants messages of this id.
    #[error("no handler for message id {id}")]
    UnknownId {
        /// The id.
        id: u16,
    },
    /// The payload is no message of its type.
    #[error("message id {id} is malformed: {error}")]
    Malformed {
        /// The id.
        id: u16,
        /// The error of its decoding.
        error: DecodeError,
    },
}

impl<C> Dispatcher<C> {
    /// Without handlers.
    pub fn new() -> Self {
        Self {
            handlers: FxHashMap::default(),
            registry: Registry::new(),
            counters: DispatchCounters::default(),
        }
    }

    /// Calls `handler` for every message of type `M` from now on, instead of the handler before, if there was one.
    ///
    /// Fails if another type has the id of `M`.
    pub fn on<M: Message>(
        &mut self,
        mut handler: impl FnMut(&mut C, ConnectionId, M) + Send + 'static,
    ) -> Result<&mut Self, RegistryError> {
        self.knows::<M>()?;
        let handler = move |context: &mut C, connection, bytes: &[u8]| {
            handler(context, connection, M::decode(bytes)?);
            Ok(())
        };
        self.handlers.insert(M::ID, Box::new(handler));
        Ok(self)
    }

    /// Adds a message that is only sent from here, so that both sides come to the same schema hash.
    ///
    /// Fails if another type has the id of `M`.
    pub fn knows<M: Message>(&mut self) -> Result<&mut Self, RegistryError> {
        if self.registry.descriptor(M::ID) != Some(&M::DESCRIPTOR) {
            self.registry.register::<M>()?;
        }
        Ok(self)
    }

    /// Stops handling messages of type `M`; whether there was a handler. The registry keeps the type.
    pub fn remove<M: Message>(&mut self) -> bool {
        self.handlers.remove(&M::ID).is_some()
    }

    /// Gives a received payload to the handler of its type.
    pub fn dispatch(
        &mut self,
        context: &mut C,
        connection: ConnectionId,
        payload: &[u8],
    ) -> Result<(), DispatchError> {
        let Some((id, bytes)) = payload.split_first_chunk::<MESSAGE_OVERHEAD>() else {
            self.counters.malformed += 1;
            return Err(DispatchError::TooShort { len: payload.len() });
        };
        let id = u16::from_le_bytes(*id);
        let Some(handler) = self.handlers.get_mut(&id) else {
            self.counters.unknown += 1;
            return Err(DispatchError::UnknownId { id });
        };
        match handler(context, connection, bytes) {
            Ok(()) => self.counters.dispatched += 1,
            Err(error) => {
                self.counters.malformed += 1;
                return Err(DispatchError::Malformed { id, error });
            }
        }
        Ok(())
    }

    /// Every message type named so far, for [`Config::shared`](crate::Config::shared).
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> DispatchCounters {
        self.counters
    }
}

impl<C> Default for Dispatcher<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for Dispatcher<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("context", &type_name::<C>())
            .field("handlers", &self.handlers.len())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Message)]
    #[message(id = 1)]
    struct Jump {
        #[field(range = 0..=100)]
        height: u8,
    }

    #[derive(Message)]
    #[message(id = 0xBEEF)]
    struct Say {
        text: String,
    }

    #[derive(Message)]
    #[message(id = 1)]
    struct Impostor;

    const SOMEBODY: ConnectionId = ConnectionId(3);

    fn payload<M: Message>(message: &M) -> Vec<u8> {
        let mut payload = vec![];
        encode(message, &mut payload).expect("within its limits");
        payload
    }

    #[test]
    fn the_id_costs_two_bytes() {
        let (mut bare, text) = (Vec::new(), Say { text: "hi".into() });
        text.encode(&mut bare).expect("short");
        let payload = payload(&text);
        assert_eq!(payload[..2], [0xEF, 0xBE]);
        assert_eq!(payload[2..], bare);
        let mut kept = vec![5];
        assert!(encode(&Jump { height: 101 }, &mut kept).is_err());
        assert_eq!(kept, [5], "an error leaves no half message");
    }

    #[test]
    fn handlers_are_replaced_and_removed() {
        let mut dispatcher: Dispatcher<Vec<String>> = Dispatcher::new();
        let mut log = Vec::new();
        let jump = payload(&Jump { height: 9 });
        dispatcher
            .on(|log: &mut Vec<String>, _, jump: Jump| log.push(format!("first {}", jump.height)))
            .expect("free");
        dispatcher
            .dispatch(&mut log, SOMEBODY, &jump)
            .expect("handled");
        dispatcher
            .on(|log: &mut Vec<String>, who, _: Jump| log.push(format!("second {}", who.to_bits())))
            .expect("same");
        dispatcher
            .dispatch(&mut log, SOMEBODY, &jump)
            .expect("handled");
        assert!(dispatcher.remove::<Jump>() && !dispatcher.remove::<Jump>());
        assert_eq!(
            dispatcher.dispatch(&mut log, SOMEBODY, &jump),
            Err(DispatchError::UnknownId { id: 1 })
        );
        assert_eq!(log, ["first 9", "second 3"]);
        assert!(
            dispatcher.on(|_, _, _: Impostor| {}).is_err(),
            "two types cannot share an id"
        );
    }

    #[test]
    fn what_is_not_understood_is_counted() {
        let mut dispatcher: Dispatcher<u32> = Dispatcher::new();
        dispatcher
            .on(|count: &mut u32, _, _: Jump| *count += 1)
            .expect("free");
        let mut count = 0;
        assert_eq!(
            dispatcher.dispatch(&mut count, SOMEBODY, &[1]),
            Err(DispatchError::TooShort { len: 1 })
        );
        assert!(matches!(
            dispatcher.dispatch(&mut count, SOMEBODY, &[1, 0]),
            Err(DispatchError::Malformed { id: 1, .. })
        ));
        assert!(
            dispatcher
                .dispatch(&mut count, SOMEBODY, &[1, 0, 0xFF])
                .is_err(),
            "127 is above 100"
        );
        assert!(dispatcher.dispatch(&mut count, SOMEBODY, &[2, 0]).is_err());
        assert_eq!(count, 0);
        let expected = DispatchCounters {
            dispatched: 0,
            unknown: 1,
            malformed: 3,
        };
        assert_eq!(dispatcher.counters(), expected);
    }

    #[test]
    fn both_sides_come_to_one_hash_no_matter_who_handles_what() {
        let (mut client, mut server): (Dispatcher<()>, Dispatcher<u8>) = Default::default();
        client
            .on(|_, _, _: Say| {})
            .expect("free")
            .knows::<Jump>()
            .expect("free");
        server
            .on(|_, _, _: Jump| {})
            .expect("free")
            .knows::<Say>()
            .expect("free");
        server.knows::<Say>().expect("known already");
        assert_eq!(client.registry().hash(), server.registry().hash());
    }
}
