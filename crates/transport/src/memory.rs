//! Limits of the memory of received messages: a budget for each connection and one for the endpoint.
//!
//! Everything that is held for a peer counts: fragments of unfinished messages, messages that wait for earlier ones, and
//! messages that the application has not polled. What exceeds a budget is refused when it arrives, and the packet that
//! brought it is not acknowledged: the sender slows down and sends again what must arrive.
//!
//! The last part of a connection's budget, enough for the largest message, is a reserve for the message that a channel
//! waits for before all others. Without it messages that wait for an earlier one could fill the budget and keep it out.

use crate::event::ConnectionId;
use crate::packet::FRAGMENT_LEN;

/// Bytes that a message or fragment counts beyond its payload while it is held: its record, its place in a table and the
/// allocator's share. So empty messages meet the budgets too.
pub const MESSAGE_OVERHEAD: usize = 64;
/// Bytes that an unfinished message counts beyond its fragments.
pub(crate) const ASSEMBLY_OVERHEAD: usize = 192;
/// Bytes that a connection may hold although the endpoint's budget is exhausted, so that nobody starves because others
/// hold much.
pub const CONNECTION_FLOOR: usize = 16 << 10;

/// Memory that a message or fragment with `len` bytes of payload counts.
pub(crate) const fn cost(len: usize) -> usize {
    len + MESSAGE_OVERHEAD
}

/// Memory that a message of `len` bytes counts while it is put together.
pub(crate) const fn message_cost(len: usize) -> usize {
    len + MESSAGE_OVERHEAD * len.div_ceil(FRAGMENT_LEN) + ASSEMBLY_OVERHEAD
}

/// The budgets, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budgets {
    pub(crate) connection: usize,
    pub(crate) endpoint: usize,
    /// Part of the connection's budget kept for what a channel waits for.
    pub(crate) reserve: usize,
}

/// The importance of something that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing waits for it.
    Ordinary,
    /// Its channel waits for it before all others, so that it may use the reserve.
    Next,
}

/// The budget that is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exhausted {
    Connection,
    Endpoint,
}

/// The memory held, by connection and in total.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    total: usize,
    /// By the connection's index.
    held: Vec<usize>,
}

impl Ledger {
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    pub(crate) fn held(&self, connection: ConnectionId) -> usize {
        self.held.get(connection.index()).copied().unwrap_or(0)
    }

    pub(crate) fn hold(&mut self, connection: ConnectionId, bytes: usize) {
        let index = connection.index();
        if self.held.len() <= index {
            self.held.resize(index + 1, 0);
        }
        self.held[index] += bytes;
        self.total += bytes;
    }

    pub(crate) fn free(&mut self, connection: ConnectionId, bytes: usize) {
        if let Some(held) = self.held.get_mut(connection.index()) {
            *held -= bytes;
            self.total -= bytes;
        }
    }

    /// Says whether a connection may hold `bytes` more, and if so whether that takes from its reserve.
    pub(crate) fn room(
        &self,
        budgets: &Budgets,
        connection: ConnectionId,
        bytes: usize,
    ) -> Result<bool, Exhausted> {
        let held = self.held(connection) + bytes;
        if held > budgets.connection {
            return Err(Exhausted::Connection);
        }
        if self.total + bytes > budgets.endpoint && held > CONNECTION_FLOOR {
            return Err(Exhausted::Endpoint);
        }
        Ok(held > budgets.connection - budgets.reserve)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_holds_little_has_room_although_others_hold_much() {
        let budgets = Budgets {
            connection: 100_000,
            endpoint: 150_000,
            reserve: 10_000,
        };
        let [a, b] = [0, 1].map(|index| ConnectionId::new(index, 1));
        let mut ledger = Ledger::default();
        assert_eq!(ledger.room(&budgets, a, 90_000), Ok(false));
        assert_eq!(ledger.room(&budgets, a, 90_001), Ok(true));
        assert_eq!(
            ledger.room(&budgets, a, 100_001),
            Err(Exhausted::Connection)
        );
        ledger.hold(a, 100_000);
        assert_eq!(ledger.room(&budgets, b, 50_000), Ok(false));
        assert_eq!(ledger.room(&budgets, b, 50_001), Err(Exhausted::Endpoint));
        ledger.hold(b, 50_000);
        let c = ConnectionId::new(2, 1);
        assert_eq!(ledger.room(&budgets, c, CONNECTION_FLOOR), Ok(false));
        assert_eq!(
            ledger.room(&budgets, c, CONNECTION_FLOOR + 1),
            Err(Exhausted::Endpoint)
        );
        ledger.free(a, 100_000);
        assert_eq!((ledger.held(a), ledger.total()), (0, 50_000));
    }
}
