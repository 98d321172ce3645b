//! Handlers by message type: the application registers, replaces and removes them.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Host, Message};

/// Handles messages of a certain type. It may use the host: answer, disconnect, change handlers.
pub type Handler = Box<dyn FnMut(&mut Host, &Message) + Send>;

/// Handlers by message type, at most one each.
///
/// ```
/// use muse_rp::{Handlers, Host, HostOptions};
/// let mut handlers = Handlers::default();
/// assert!(!handlers.set(7, |host, message| {
///     let answer = host.send(message.connection, message.channel, 8, b"pong");
///     answer.expect("the queue has room");
/// }));
/// assert!(handlers.contains(7));
/// let host = Host::new(HostOptions::default().handlers(handlers), 1)?;
/// # Ok::<(), muse_rp::OptionsError>(())
/// ```
#[derive(Default)]
pub struct Handlers {
    /// `None` while the handler runs.
    by_kind: BTreeMap<u16, Option<Handler>>,
}

impl Handlers {
    /// Registers a handler, in place of the one the type had; says whether it had one.
    pub fn set(
        &mut self,
        kind: u16,
        handler: impl FnMut(&mut Host, &Message) + Send + 'static,
    ) -> bool {
        self.by_kind.insert(kind, Some(Box::new(handler))).is_some()
    }

    /// Removes the handler of a type; says whether it had one.
    pub fn remove(&mut self, kind: u16) -> bool {
        self.by_kind.remove(&kind).is_some()
    }

    /// True if a type has a handler.
    pub fn contains(&self, kind: u16) -> bool {
        self.by_kind.contains_key(&kind)
    }

    /// Takes a handler to run it. The type still counts as handled.
    pub(crate) fn take(&mut self, kind: u16) -> Option<Handler> {
        self.by_kind.get_mut(&kind)?.take()
    }

    /// Puts a handler back that has run, unless it was replaced or removed meanwhile.
    pub(crate) fn put_back(&mut self, kind: u16, handler: Handler) {
        if let Some(slot @ None) = self.by_kind.get_mut(&kind) {
            *slot = Some(handler);
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_kind.keys()).finish()
    }
}
