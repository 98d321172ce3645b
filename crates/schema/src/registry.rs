//! All messages of a game, to compare with the peer's.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::{Descriptor, Message, fnv1a};

/// The messages that a game knows. Two sides that want to talk have registries of the same [`hash`](Self::hash).
///
/// ```
/// use muse_schema::{Message, Registry, diff};
/// #[derive(Message)]
/// #[message(id = 1)]
/// struct Jump;
/// #[derive(Message)]
/// #[message(id = 2)]
/// struct Say {
///     text: String,
/// }
///
/// let mut server = Registry::new();
/// server.register::<Jump>()?.register::<Say>()?;
/// let mut client = Registry::new();
/// client.register::<Say>()?;
/// assert_ne!(server.hash(), client.hash());
/// assert_eq!(server.describe(), "1 Jump\n2 Say { text: text }\n");
/// let differences = diff(&client.describe(), &server.describe());
/// assert_eq!(differences[0].to_string(), "`1 Jump` only there");
/// # Ok::<(), muse_schema::RegistryError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registry {
    messages: BTreeMap<u16, Descriptor>,
}

impl Registry {
    /// Without messages.
    pub const fn new() -> Self {
        Self {
            messages: BTreeMap::new(),
        }
    }

    /// Adds a message.
    pub fn register<M: Message>(&mut self) -> Result<&mut Self, RegistryError> {
        let new = M::DESCRIPTOR;
        if let Some(old) = self.messages.get(&new.id) {
            return Err(RegistryError::Duplicate {
                id: new.id,
                old: old.name(),
                new: new.name(),
            });
        }
        self.messages.insert(new.id, new);
        Ok(self)
    }

    /// The message with this id.
    pub fn descriptor(&self, id: u16) -> Option<&Descriptor> {
        self.messages.get(&id)
    }

    /// All messages, by ascending id.
    pub fn descriptors(&self) -> impl ExactSizeIterator<Item = &Descriptor> {
        self.messages.values()
    }

    /// All messages by ascending id, a line each. A peer that gets it can say what differs, see [`diff`](crate::diff).
    pub fn describe(&self) -> String {
        self.messages
            .values()
            .map(|descriptor| format!("{descriptor}\n"))
            .collect()
    }

    /// [`fnv1a`] of [`describe`](Self::describe): the same whatever the order of registration, on every platform, for every
    /// version of this crate.
    pub fn hash(&self) -> u64 {
        fnv1a(self.describe().as_bytes())
    }
}

/// The reason for which a message could not be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another message, or the same, has the id already.
    #[error("message id {id} is taken: {new} wants it, {old} has it")]
    Duplicate {
        /// The id.
        id: u16,
        /// The message that has it.
        old: &'static str,
        /// The message that wants it.
        new: &'static str,
    },
}
