//! The inbox of the application: events and received messages, the most urgent first.
//!
//! Payloads lie one behind the other in a buffer per level that is emptied in order, so that nothing is allocated per message.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use muse_wire::log;

use crate::config::Priority;
use crate::event::{CloseReason, ConnectionId, Event, Receipt};
use crate::handshake::Refusal;
use crate::memory::{Ledger, cost};

/// Level of events that come before any message of their connection.
pub(crate) const LEVEL_FIRST: u8 = 0;
/// Level of events that come after every message of their connection.
pub(crate) const LEVEL_LAST: u8 = Priority::COUNT as u8 - 1;

/// Events in the order of their level, then of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    levels: [Level; Priority::COUNT],
    /// The memory that these messages and those that still wait in their channels take.
    pub(crate) ledger: Ledger,
}

#[derive(Debug, Default)]
struct Level {
    records: VecDeque<(ConnectionId, Record)>,
    bytes: Vec<u8>,
    /// The number of bytes that have been read.
    read: usize,
}

/// An event without its payload.
#[derive(Debug)]
pub(crate) enum Record {
    Message {
        channel: u8,
        len: u32,
    },
    Receipt(Receipt),
    Connected {
        account: u64,
        user_data: u32,
        hello: u32,
    },
    Rare(Box<Rare>),
}

/// Events too rare to be worth space in every record.
#[derive(Debug)]
pub(crate) enum Rare {
    Asking(Question),
    Refused(Refusal),
    Unanswered,
    Interrupted,
    Resumed,
    AddressChanged(SocketAddr),
    Closed(CloseReason),
}

/// A client that waits for a decision.
pub(crate) struct Question {
    pub(crate) account: u64,
    pub(crate) user_data: Vec<u8>,
    pub(crate) hello: Vec<u8>,
    pub(crate) address: SocketAddr,
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the application's own data, which may be secret.
        f.debug_struct("Question")
            .field("account", &self.account)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Inbox {
    /// Adds a message of `len` bytes that comes in pieces.
    pub(crate) fn message<'p>(
        &mut self,
        connection: ConnectionId,
        channel: u8,
        level: u8,
        len: usize,
        pieces: impl Iterator<Item = &'p [u8]>,
    ) {
        self.ledger.hold(connection, cost(len));
        let level = self.level(level);
        for piece in pieces {
            level.bytes.extend_from_slice(piece);
        }
        level.records.push_back((
            connection,
            Record::Message {
                channel,
                len: len as u32,
            },
        ));
    }

    pub(crate) fn connected(
        &mut self,
        connection: ConnectionId,
        account: u64,
        user_data: &[u8],
        hello: &[u8],
    ) {
        log!(debug, ?connection, account, "connected");
        let level = self.level(LEVEL_FIRST);
        level.bytes.extend_from_slice(user_data);
        level.bytes.extend_from_slice(hello);
        let (user_data, hello) = (user_data.len() as u32, hello.len() as u32);
        level.records.push_back((
            connection,
            Record::Connected {
                account,
                user_data,
                hello,
            },
        ));
    }

    pub(crate) fn receipt(&mut self, connection: ConnectionId, receipt: Receipt) {
        // Not with the urgent ones, which a flood of receipts would hold up.
        self.level(Priority::Normal.level())
            .records
            .push_back((connection, Record::Receipt(receipt)));
    }

    pub(crate) fn rare(&mut self, connection: ConnectionId, level: u8, event: Rare) {
        log!(debug, ?connection, ?event);
        self.level(level)
            .records
            .push_back((connection, Record::Rare(Box::new(event))));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.records.is_empty())
    }

    /// The next event; its payload is put into `buffer`.
    pub(crate) fn pop<'b>(&mut self, buffer: &'b mut Vec<u8>) -> Option<Event<'b>> {
        let level = self
            .levels
            .iter_mut()
            .find(|level| !level.records.is_empty())?;
        let (connection, record) = level.records.pop_front()?;
        buffer.clear();
        Some(match record {
            Record::Message { channel, len } => {
                level.take(len, buffer);
                self.ledger.free(connection, cost(len as usize));
                Event::Message {
                    connection,
                    channel,
                    payload: buffer,
                }
            }
            Record::Connected {
                account,
                user_data,
                hello,
            } => {
                level.take(user_data + hello, buffer);
                let (user_data, hello) = buffer.split_at(user_data as usize);
                Event::Connected {
                    connection,
                    account,
                    user_data,
                    hello,
                }
            }
            Record::Receipt(receipt) => Event::Receipt {
                connection,
                receipt,
            },
            Record::Rare(rare) => match *rare {
                Rare::Asking(question) => {
                    buffer.extend_from_slice(&question.user_data);
                    buffer.extend_from_slice(&question.hello);
                    let (user_data, hello) = buffer.split_at(question.user_data.len());
                    Event::Asking {
                        connection,
                        account: question.account,
                        user_data,
                        hello,
                        address: question.address,
                    }
                }
                Rare::Refused(reason) => Event::Refused { connection, reason },
                Rare::Unanswered => Event::Unanswered { connection },
                Rare::Interrupted => Event::Interrupted { connection },
                Rare::Resumed => Event::Resumed { connection },
                Rare::AddressChanged(address) => Event::AddressChanged {
                    connection,
                    address,
                },
                Rare::Closed(reason) => Event::Closed { connection, reason },
            },
        })
    }

    fn level(&mut self, level: u8) -> &mut Level {
        &mut self.levels[usize::from(level).min(Priority::COUNT - 1)]
    }
}

impl Level {
    fn take(&mut self, len: u32, buffer: &mut Vec<u8>) {
        let end = self.read + len as usize;
        buffer.extend_from_slice(&self.bytes[self.read..end]);
        self.read = end;
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
            if self.bytes.capacity() > KEPT_MAX {
                self.bytes.shrink_to(KEPT_MAX);
                self.records.shrink_to(KEPT_MAX / RECORD_LEN);
            }
        // Moved only when less is left than was read, so that each byte is moved once on average.
        } else if self.read > COMPACT_FROM && self.read > self.bytes.len() / 2 {
            self.bytes.drain(..self.read);
            self.read = 0;
        }
    }
}

/// Bytes that an empty level keeps for the messages to come.
const KEPT_MAX: usize = 1 << 20;
/// Bytes of a record.
const RECORD_LEN: usize = size_of::<(ConnectionId, Record)>();
/// Bytes read from a level before the rest is moved to the front.
const COMPACT_FROM: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    const CONNECTION: ConnectionId = ConnectionId::from_bits(3);

    fn say(inbox: &mut Inbox, level: u8, payload: &[u8]) {
        inbox.message(
            CONNECTION,
            1,
            level,
            payload.len(),
            std::iter::once(payload),
        );
    }

    #[test]
    fn urgent_messages_come_first_and_a_close_comes_last() {
        let mut inbox = Inbox::default();
        inbox.rare(CONNECTION, LEVEL_LAST, Rare::Closed(CloseReason::ByUs));
        say(&mut inbox, 2, b"normal");
        say(&mut inbox, 0, b"urgent");
        say(&mut inbox, 2, b"second");
        let mut buffer = Vec::new();
        let mut seen = Vec::new();
        while let Some(event) = inbox.pop(&mut buffer) {
            seen.push(match event {
                Event::Message { payload, .. } => String::from_utf8_lossy(payload).into_owned(),
                other => format!("{other:?}").chars().take(6).collect(),
            });
        }
        assert_eq!(seen, ["urgent", "normal", "second", "Closed"]);
    }

    #[test]
    fn a_flood_leaves_no_memory_behind() {
        let mut inbox = Inbox::default();
        let mut buffer = Vec::new();
        for _ in 0..50_000 {
            say(&mut inbox, 1, &[7; 100]);
        }
        assert_eq!(inbox.ledger.held(CONNECTION), 50_000 * cost(100));
        while inbox.pop(&mut buffer).is_some() {}
        assert_eq!(inbox.ledger.total(), 0);
        assert!(inbox.levels[1].bytes.capacity() <= KEPT_MAX);
        assert!(inbox.levels[1].records.capacity() * RECORD_LEN <= KEPT_MAX);
    }

    #[test]
    fn a_level_that_never_empties_does_not_grow() {
        let mut inbox = Inbox::default();
        let mut buffer = Vec::new();
        say(&mut inbox, 1, &[0; 1_000]);
        for i in 0..5_000u32 {
            say(&mut inbox, 1, &[i as u8; 1_000]);
            assert!(inbox.pop(&mut buffer).is_some());
        }
        assert!(inbox.levels[1].bytes.capacity() < 1 << 20);
    }
}
