//! Packets that arrive at the orderer.

use muse_wire::bits::{BitError, BitReader, Width};
use muse_wire::bytes::Reader;
use muse_wire::{Duration, Instant};

use crate::blob::BlobReceiver;
use crate::config::Mode;
use crate::frame::{Frame, Seat};
use crate::orderer::member::{Member, Stage};
use crate::orderer::{LINKS_MAX, LinkId, Orderer, REPLIES_MAX};
use crate::packet::{Check, Hello, Kind, OverReason};
use crate::stream::{Entry, Stream};
use crate::succession::Resume;

impl Orderer {
    /// A packet arrived over this link. What is not understood is dropped.
    pub fn handle_packet(&mut self, now: Instant, link: LinkId, packet: &[u8]) {
        let Some((kind, rest)) = Kind::of(packet) else {
            return;
        };
        if kind == Kind::Hello {
            if let Ok(hello) = Hello::parse(rest) {
                self.handle_hello(now, link, hello);
            }
            return;
        }
        if kind == Kind::Resume {
            if let Ok((resume, inputs)) = Resume::parse(rest) {
                self.handle_resume(now, link, &resume, inputs);
            }
            return;
        }
        let Some(member) = self.members.get_mut(link.0).and_then(Option::as_mut) else {
            // Somebody who was dropped and does not know it yet.
            if kind == Kind::Up {
                self.refuse(link, self.over.unwrap_or(OverReason::Dropped));
            }
            return;
        };
        match kind {
            Kind::Up => {
                // A packet that ends too soon has still been heard; what could be read of it counts.
                let _ = self.handle_up(now, link, rest);
            }
            Kind::BlobData => {
                member.heard = now;
                let mut reader = Reader::new(rest);
                let max = self.config.state_bytes_max + BLOB_HEADER_MAX;
                let blob = BlobReceiver::handle(&mut member.blob_in, &mut reader, max);
                if let (Ok(Some(blob)), Some(&id)) = (blob, rest.first()) {
                    self.handle_blob(now, link, id, &blob);
                }
            }
            Kind::BlobAck => {
                member.heard = now;
                if let Some(blob) = member.blobs_out.front_mut() {
                    let _ = blob.handle_ack(&mut Reader::new(rest));
                    if blob.is_done() {
                        member.blobs_out.pop_front();
                        self.seat_those_who_are_ready();
                    }
                }
            }
            Kind::Bye => {
                self.remove(link, OverReason::Over);
                self.seal(now);
            }
            _ => {}
        }
    }

    fn handle_hello(&mut self, now: Instant, link: LinkId, hello: Hello) {
        if let Some(Some(member)) = self.members.get_mut(link.0) {
            if member.nonce == hello.nonce {
                member.welcome_due = true;
                member.heard = now;
                return;
            }
            // The same address, but another life: the old one is gone.
            self.remove(link, OverReason::Dropped);
            self.replies.retain(|(to, _)| *to != link);
        }
        if hello.contract != self.contract {
            return self.refuse(link, OverReason::Contract);
        }
        if let Some(over) = self.over {
            return self.refuse(link, over);
        }
        let account = self.accounts.get(link.0).copied().unwrap_or(0);
        self.remove_earlier_life(link, account);
        let seat = match hello.watches {
            true => {
                let watching = self
                    .members
                    .iter()
                    .flatten()
                    .filter(|member| member.seat.is_none());
                if watching.count() >= self.config.spectators_max {
                    return self.refuse(link, OverReason::Full);
                }
                None
            }
            false => match self.free_seat(hello.seat, account) {
                Some(seat) => {
                    self.owners[seat.index()] = account;
                    Some(seat)
                }
                None => return self.refuse(link, OverReason::Full),
            },
        };
        if link.0 >= LINKS_MAX {
            return self.refuse(link, OverReason::Full);
        }
        if self.members.len() <= link.0 {
            self.members.resize_with(link.0 + 1, || None);
        }
        let stage = match self.begun {
            true => Stage::AwaitsState,
            false => Stage::Lobby,
        };
        self.members[link.0] = Some(Member::new(hello.nonce, seat, stage, now));
        let seated = self
            .members
            .iter()
            .flatten()
            .filter(|member| member.seat.is_some());
        if !self.begun && seated.count() == usize::from(self.config.begins_with) {
            self.begin(now);
        }
    }

    /// An account plays once: a player who comes back over another link is removed from the previous one.
    fn remove_earlier_life(&mut self, link: LinkId, account: u64) {
        let others = (0..self.members.len()).map(LinkId);
        let earlier = others.filter(|other| *other != link && account != 0);
        let earlier = earlier.filter(|other| self.accounts.get(other.0) == Some(&account));
        for other in earlier.collect::<Vec<_>>() {
            self.remove(other, OverReason::Replaced);
        }
    }

    /// The seat that the account had, else the one that is asked for, else the first: if it is free. A seat that another account had
    /// comes last.
    fn free_seat(&self, wish: Option<Seat>, account: u64) -> Option<Seat> {
        let free = |seat: &Seat| {
            let taken = self
                .members
                .iter()
                .flatten()
                .any(|member| member.seat == Some(*seat));
            !taken && self.playing.get(seat.index()).is_some_and(Option::is_none)
        };
        let owner = |seat: &Seat| self.owners.get(seat.index()).copied().unwrap_or(0);
        let free: Vec<Seat> = (0..self.config.seats).map(Seat).filter(free).collect();
        let own = |seat: &&Seat| account != 0 && owner(seat) == account;
        let unowned = |seat: &&Seat| owner(seat) == 0;
        let mut seats = free.iter();
        let wished = |seat: &&Seat| Some(**seat) == wish && unowned(seat);
        let found = seats
            .clone()
            .find(own)
            .or_else(|| seats.clone().find(wished));
        found
            .or_else(|| seats.clone().find(unowned))
            .or_else(|| seats.next())
            .copied()
    }

    pub(super) fn refuse(&mut self, link: LinkId, reason: OverReason) {
        let known = self.replies.iter().any(|(to, _)| *to == link);
        if !known && self.replies.len() < REPLIES_MAX {
            self.replies.push_back((link, reason));
        }
    }

    fn handle_up(&mut self, now: Instant, link: LinkId, rest: &[u8]) -> Result<(), BitError> {
        let Some(Some(member)) = self.members.get_mut(link.0) else {
            return Ok(());
        };
        member.heard = now;
        let mut reader = BitReader::new(rest);
        let Some(acked) = member.link.read(now, &mut reader)? else {
            return Ok(());
        };
        if let Some(acked) = acked {
            member.acked.advance(&acked);
        }
        let around = u64::from(self.sealed.0) * 16;
        let ahead = (reader.bits(16)? as u16).wrapping_sub(around as u16) as i16;
        member.position = Some((around.saturating_add_signed(i64::from(ahead)), now));
        member.ready = reader.bool()?;
        let result = self.read_up_body(now, link, &mut reader);
        self.seat_those_who_are_ready();
        result
    }

    fn read_up_body(
        &mut self,
        now: Instant,
        link: LinkId,
        reader: &mut BitReader<'_>,
    ) -> Result<(), BitError> {
        if reader.bool()? {
            self.take_inputs(now, link, reader)?;
        }
        if reader.bool()? {
            let check = Check::read(self.sealed, reader)?;
            self.take_check(now, link, check);
        }
        if reader.bool()?
            && let Some(Some(member)) = self.members.get_mut(link.0)
        {
            let units = reader.varint(Width::Bits16)?;
            member.cost = Duration::from_micros(units * COST_UNIT_MICROS);
        }
        Ok(())
    }

    pub(super) fn take_inputs(
        &mut self,
        now: Instant,
        link: LinkId,
        reader: &mut BitReader<'_>,
    ) -> Result<(), BitError> {
        let low = reader.bits(16)? as u16;
        let member = self.members.get(link.0).and_then(Option::as_ref);
        let seat = member.and_then(|member| member.seat);
        let playing = seat.is_some_and(|seat| self.playing[seat.index()].is_some());
        let Some(seat) = seat.filter(|_| playing) else {
            return Ok(());
        };
        let stream = &mut self.streams[seat.index()];
        let before = stream.end();
        let limit = self.sealed + AHEAD_FRAMES_MAX;
        let mut changed = false;
        let read = Stream::read(Frame::near(low, before), reader, |frame, entry| {
            let next = frame == stream.end() && frame < limit;
            if next && let Entry::Given(_) = entry {
                changed |= stream.last() != Some(entry);
                stream.push(entry.clone());
            }
        });
        if self.streams[seat.index()].end() > before {
            if self.config.mode == Mode::Rollback {
                let others = self.members.iter_mut().flatten();
                for member in others.filter(|member| member.seat != Some(seat)) {
                    member.dirty = true;
                    member.again |= changed;
                }
            }
            self.seal(now);
        }
        read.map(|_| ())
    }

    /// A blob has come whole: the answer to what the machine was asked for.
    fn handle_blob(&mut self, now: Instant, link: LinkId, id: u8, blob: &[u8]) {
        let Some(Some(member)) = self.members.get_mut(link.0) else {
            return;
        };
        if member.tasks.front().is_none_or(|task| task.id() != id) {
            return;
        }
        member.tasks.pop_front();
        match blob.split_first() {
            Some((&BLOB_STATE, rest)) => {
                if let Some((frame, _)) = rest.split_first_chunk::<4>() {
                    self.pass_on_state(Frame(u32::from_le_bytes(*frame)), blob);
                }
            }
            Some((&BLOB_TRACE, _)) => self.take_trace(link, id, blob),
            _ => {}
        }
        self.ask_for_state(now);
    }
}

/// First byte of a blob: a state. Its frame follows (four bytes), then the state's encoding.
pub(crate) const BLOB_STATE: u8 = 0;
/// First byte of a blob: a trace.
pub(crate) const BLOB_TRACE: u8 = 1;
/// Bytes by which a blob may be longer than the largest state: its header, and the checksums of a trace.
pub(crate) const BLOB_HEADER_MAX: usize = 64 * 1024;
pub(crate) const COST_UNIT_MICROS: u64 = 250;
/// Frames by which an input may be ahead of everybody.
const AHEAD_FRAMES_MAX: u32 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::MatchConfig;

    const CONTRACT: u64 = 7;

    struct Table(Orderer, Instant);

    impl Table {
        fn new(seats: u8) -> Self {
            let config = MatchConfig::rollback(seats);
            Self(Orderer::with_contract(CONTRACT, config), Instant::ZERO)
        }

        /// Somebody says hello over a link; the seat that it is given.
        fn hello(&mut self, link: usize, account: u64, wish: Option<u8>) -> Option<u8> {
            self.0.set_account(LinkId(link), account);
            let hello = Hello {
                contract: CONTRACT,
                nonce: link as u32,
                watches: false,
                seat: wish.map(Seat),
            };
            self.0.handle_hello(self.1, LinkId(link), hello);
            let member = self.0.members.get(link)?.as_ref()?;
            member.seat.map(|seat| seat.0)
        }
    }

    #[test]
    fn an_account_that_comes_back_gets_its_seat_again() {
        let mut table = Table::new(4);
        assert_eq!(table.hello(0, 10, None), Some(0));
        assert_eq!(table.hello(1, 11, None), Some(1));
        table.0.disconnect(table.1, LinkId(0));
        assert_eq!(table.hello(2, 0, Some(0)), Some(2), "it is another's");
        assert_eq!(table.hello(0, 12, None), Some(3));
        assert_eq!(table.hello(4, 10, None), Some(0));
    }

    #[test]
    fn an_account_is_there_once() {
        let mut table = Table::new(2);
        assert_eq!(table.hello(0, 10, None), Some(0));
        assert_eq!(table.hello(5, 10, None), Some(0), "its own seat");
        assert!(!table.0.knows(LinkId(0)));
        let mut buffer = [0; 1_200];
        let told = table.0.poll_packet(table.1, &mut buffer);
        let (link, len) = told.expect("the one before is told");
        let (_, reason) = Kind::of(&buffer[..len]).expect("a packet");
        assert_eq!(
            (link, OverReason::parse(reason)),
            (LinkId(0), Some(OverReason::Replaced))
        );
    }

    #[test]
    fn without_accounts_a_wish_is_enough_and_a_last_seat_is_nobodys() {
        let mut table = Table::new(3);
        assert_eq!(table.hello(0, 0, Some(2)), Some(2));
        assert_eq!(table.hello(1, 0, Some(2)), Some(0), "it is taken");
        assert_eq!(table.hello(2, 10, None), Some(1));
        table.0.disconnect(table.1, LinkId(2));
        assert_eq!(table.hello(3, 11, None), Some(1), "better than to refuse");
        assert_eq!(table.hello(4, 10, None), None, "full");
    }
}
