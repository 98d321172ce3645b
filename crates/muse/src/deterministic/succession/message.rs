//! Messages between a host and its guests about the next host, in a reliable channel of their encrypted connections.

use muse_lockstep::Seat;
use muse_transport::ServerPublicKey;
use muse_wire::bytes::{EndOfBytes, Reader, Writer};

/// Random bytes that only two know.
pub(super) type Secret = [u8; 16];

/// A message of the succession.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// From a guest: the key by which it would host, if it would, and what the last host gave it.
    Offer {
        key: Option<ServerPublicKey>,
        ticket: Option<Ticket>,
    },
    /// To a guest: what proves to the next host whose player it is.
    Ticket(Ticket),
    /// To a guest: the next host.
    Heir(Heir),
    /// To the heir alone: it is the one, and what it needs.
    Appointment { secret: Secret, code: u32 },
    /// To the heir alone: who sits where. Again whenever it changes.
    Ledger(Ledger),
}

/// Proves whose player somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) seat: Option<Seat>,
    pub(super) secret: Secret,
}

/// The machine that hosts next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heir {
    /// The number of the host that says so.
    pub(super) term: u32,
    /// The lock that the heir's secret opens.
    pub(super) lock: Secret,
    pub(super) key: ServerPublicKey,
}

/// The knowledge of the match that only its host has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The host's own seat.
    pub(super) host: Option<Seat>,
    /// Accounts by seat; 0 if it is not known.
    pub(super) accounts: Vec<u64>,
    pub(super) tickets: Vec<Ticket>,
}

impl Message {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE_BYTES_MAX];
        let mut writer = Writer::new(&mut bytes);
        self.emit(&mut writer).expect("it has no more than fits");
        let len = writer.len();
        bytes.truncate(len);
        bytes
    }

    fn emit(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        match self {
            Self::Offer { key, ticket } => {
                writer.u8(OFFER)?;
                writer.u8(u8::from(key.is_some()) | u8::from(ticket.is_some()) << 1)?;
                if let Some(key) = key {
                    writer.slice(key.as_bytes())?;
                }
                ticket.map_or(Ok(()), |ticket| ticket.emit(writer))
            }
            Self::Ticket(ticket) => {
                writer.u8(TICKET)?;
                ticket.emit(writer)
            }
            Self::Heir(heir) => {
                writer.u8(HEIR)?;
                writer.u32(heir.term)?;
                writer.slice(&heir.lock)?;
                writer.slice(heir.key.as_bytes())
            }
            Self::Appointment { secret, code } => {
                writer.u8(APPOINTMENT)?;
                writer.slice(secret)?;
                writer.u32(*code)
            }
            Self::Ledger(ledger) => {
                writer.u8(LEDGER)?;
                emit_seat(ledger.host, writer)?;
                let accounts = &ledger.accounts[..ledger.accounts.len().min(SEATS_MAX)];
                writer.u8(accounts.len() as u8)?;
                accounts
                    .iter()
                    .try_for_each(|account| writer.u64(*account))?;
                let tickets = &ledger.tickets[..ledger.tickets.len().min(TICKETS_MAX)];
                writer.u16(tickets.len() as u16)?;
                tickets.iter().try_for_each(|ticket| ticket.emit(writer))
            }
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let key = |reader: &mut Reader<'_>| Some(ServerPublicKey::from_bytes(reader.array().ok()?));
        Some(match reader.u8().ok()? {
            OFFER => {
                let flags = reader.u8().ok()?;
                Self::Offer {
                    key: match flags & 1 {
                        0 => None,
                        _ => Some(key(&mut reader)?),
                    },
                    ticket: match flags & 2 {
                        0 => None,
                        _ => Some(Ticket::parse(&mut reader)?),
                    },
                }
            }
            TICKET => Self::Ticket(Ticket::parse(&mut reader)?),
            HEIR => Self::Heir(Heir {
                term: reader.u32().ok()?,
                lock: reader.array().ok()?,
                key: key(&mut reader)?,
            }),
            APPOINTMENT => Self::Appointment {
                secret: reader.array().ok()?,
                code: reader.u32().ok()?,
            },
            LEDGER => {
                let host = parse_seat(&mut reader)?;
                let accounts = usize::from(reader.u8().ok()?).min(SEATS_MAX);
                let accounts = (0..accounts)
                    .map(|_| reader.u64().ok())
                    .collect::<Option<_>>()?;
                let tickets = usize::from(reader.u16().ok()?).min(TICKETS_MAX);
                let tickets = (0..tickets).map(|_| Ticket::parse(&mut reader));
                Self::Ledger(Ledger {
                    host,
                    accounts,
                    tickets: tickets.collect::<Option<_>>()?,
                })
            }
            _ => return None,
        })
    }
}

impl Ticket {
    fn emit(&self, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
        emit_seat(self.seat, writer)?;
        writer.slice(&self.secret)
    }

    fn parse(reader: &mut Reader<'_>) -> Option<Self> {
        Some(Self {
            seat: parse_seat(reader)?,
            secret: reader.array().ok()?,
        })
    }
}

fn emit_seat(seat: Option<Seat>, writer: &mut Writer<'_>) -> Result<(), EndOfBytes> {
    writer.u8(seat.map_or(NO_SEAT, |seat| seat.0))
}

fn parse_seat(reader: &mut Reader<'_>) -> Option<Option<Seat>> {
    let seat = reader.u8().ok()?;
    (seat == NO_SEAT || usize::from(seat) < SEATS_MAX)
        .then_some((seat != NO_SEAT).then_some(Seat(seat)))
}

const OFFER: u8 = 0;
const TICKET: u8 = 1;
const HEIR: u8 = 2;
const APPOINTMENT: u8 = 3;
const LEDGER: u8 = 4;
const NO_SEAT: u8 = 255;
const SEATS_MAX: usize = muse_lockstep::SEATS_MAX;
/// Players and spectators that a host vouches for.
pub(super) const TICKETS_MAX: usize = 512;
/// Longest message: a ledger.
const MESSAGE_BYTES_MAX: usize = 5 + SEATS_MAX * 8 + TICKETS_MAX * 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written_and_not_when_they_are_cut() {
        let key = ServerPublicKey::from_bytes([7; 32]);
        let ticket = Ticket {
            seat: Some(Seat(3)),
            secret: [1; 16],
        };
        let watcher = Ticket {
            seat: None,
            secret: [2; 16],
        };
        let heir = Heir {
            term: 2,
            lock: [3; 16],
            key,
        };
        let ledger = Ledger {
            host: Some(Seat(0)),
            accounts: vec![0, 70_000, 0],
            tickets: vec![ticket, watcher],
        };
        let messages = [
            Message::Offer {
                key: Some(key),
                ticket: None,
            },
            Message::Offer {
                key: None,
                ticket: Some(watcher),
            },
            Message::Ticket(ticket),
            Message::Heir(heir),
            Message::Appointment {
                secret: [4; 16],
                code: 5,
            },
            Message::Ledger(ledger),
        ];
        for message in messages {
            let bytes = message.to_bytes();
            assert_eq!(Message::parse(&bytes), Some(message.clone()));
            for len in 0..bytes.len() {
                assert_eq!(Message::parse(&bytes[..len]), None, "{message:?}");
            }
        }
        assert_eq!(
            Message::parse(&[TICKET; 18]),
            Some(Message::Ticket(Ticket {
                seat: Some(Seat(1)),
                secret: [1; 16],
            }))
        );
        assert_eq!(Message::parse(&[9; 40]), None);
    }
}
