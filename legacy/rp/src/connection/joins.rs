//! The numbers of a server's partial channel while it is not sure which the client goes by.
//!
//! The original draws new ones when the offer reaches it twice before it is connected, and joins again with them; its first
//! attempt goes on in the background. Datagrams overtake one another, so that the newest is not known by its arrival: the
//! first acknowledgement on the channel tells.

use crate::packet::{Flags, Packet};

/// One INIT3: its sequence number, which is the client's first, and its ack number, just before the server's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Join {
    pub(crate) sequence: u32,
    pub(crate) ack: u32,
}

impl Join {
    pub(crate) fn of(init3: &Packet<'_>) -> Self {
        Self {
            sequence: init3.sequence,
            ack: init3.ack,
        }
    }

    /// The answer to it.
    pub(crate) fn init4(self) -> Packet<'static> {
        Packet {
            sequence: self.ack.wrapping_add(1),
            ack: self.sequence,
            flags: Flags::INIT,
            kind: 0,
            payload: &[],
        }
    }
}

/// The INIT3s of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Joins {
    known: Vec<Join>,
    /// The one that the channel goes by.
    current: Join,
    is_settled: bool,
}

/// The place of an INIT3 that is not the connection's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The one that the channel goes by: a repetition.
    Current,
    /// Another that is known, and that the client may go by.
    Other,
    /// New numbers: the channel goes by them from now on.
    New,
    /// The client goes by other numbers for sure, or has drawn too many.
    Ignored,
}

/// Something that the client's first acknowledgement tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The numbers that the client goes by.
    pub(crate) join: Join,
    /// The last number of the server that the client has accepted.
    pub(crate) acked: u32,
    /// True if the channel went by these numbers before.
    pub(crate) is_current: bool,
}

impl Joins {
    pub(crate) fn new(first: Join) -> Self {
        Self {
            known: vec![first],
            current: first,
            is_settled: false,
        }
    }

    /// Another INIT3 of this connection arrived.
    pub(crate) fn receive(&mut self, join: Join) -> Again {
        if join == self.current {
            return Again::Current;
        }
        if self.is_settled {
            return Again::Ignored;
        }
        if self.known.contains(&join) {
            return Again::Other;
        }
        if self.known.len() >= JOINS_MAX {
            return Again::Ignored;
        }
        self.known.push(join);
        self.current = join;
        Again::New
    }

    /// An acknowledgement arrived on the partial channel. Gives what the channel must be set to, if that is not what it is.
    pub(crate) fn handle_ack(&mut self, ack: u32) -> Option<Settled> {
        if self.is_settled {
            return None;
        }
        let accepted = |join: &Join| ack == join.ack.wrapping_add(1);
        // The original is connected by any INIT4, and does not count one with other numbers than its own: it then waits for the
        // number that its own INIT4 would have had.
        let skipped = |join: &Join| self.known.len() > 1 && ack == join.ack;
        let found = self.known.iter().copied();
        let join = found
            .clone()
            .find(accepted)
            .or_else(|| found.clone().find(skipped))?;
        let is_current = join == self.current;
        self.is_settled = true;
        self.current = join;
        // The channel itself notices that its INIT4 has arrived.
        let is_usual = is_current && accepted(&join);
        (!is_usual).then_some(Settled {
            join,
            acked: ack,
            is_current,
        })
    }
}

/// Most INIT3s of one connection that are told apart. The original draws once for each time that the offer reaches it, duplicates
/// included.
const JOINS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Join = Join {
        sequence: 10,
        ack: 100,
    };
    const SECOND: Join = Join {
        sequence: 20,
        ack: u32::MAX,
    };

    #[test]
    fn the_acknowledgement_tells_whatever_arrived_last() {
        for order in [[FIRST, SECOND], [SECOND, FIRST]] {
            let mut joins = Joins::new(order[0]);
            assert_eq!(joins.handle_ack(7), None);
            assert_eq!(joins.receive(order[1]), Again::New);
            assert_eq!(joins.receive(order[0]), Again::Other);
            assert_eq!(joins.receive(order[1]), Again::Current);
            let settled = joins.handle_ack(0);
            let is_current = order[1] == SECOND;
            let expected = Settled {
                join: SECOND,
                acked: 0,
                is_current,
            };
            assert_eq!(settled, (!is_current).then_some(expected));
            assert_eq!(joins.receive(SECOND), Again::Current);
            assert_eq!(joins.receive(FIRST), Again::Ignored);
        }
    }

    #[test]
    fn a_client_that_counts_no_init4_is_told_by_its_ack() {
        let mut joins = Joins::new(FIRST);
        assert_eq!(joins.handle_ack(FIRST.ack), None, "there is only one");
        joins.receive(SECOND);
        let expected = Settled {
            join: SECOND,
            acked: SECOND.ack,
            is_current: true,
        };
        assert_eq!(joins.handle_ack(SECOND.ack), Some(expected));
        assert_eq!(joins.handle_ack(SECOND.ack), None);
    }

    #[test]
    fn no_client_draws_for_ever() {
        let mut joins = Joins::new(FIRST);
        let drawn = (0..50).map(|sequence| {
            joins.receive(Join {
                sequence,
                ack: 1_000 + sequence,
            })
        });
        let new = drawn.filter(|again| *again == Again::New).count();
        assert_eq!((new, joins.known.len()), (JOINS_MAX - 1, JOINS_MAX));
    }
}
