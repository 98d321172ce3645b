//! One host after another: the heir that a host has named takes its room over when the host is gone, and never before.

use std::net::SocketAddr;

use muse_wire::{Duration, Instant, log};

use super::super::packet::{End, LegId, Packet};
use super::super::succession::lock_of;
use super::Relay;

/// A room's hosts: the one that there is, and the one that may follow.
#[derive(Debug)]
pub(super) struct Succession {
    /// The host's number. A host with a lower one has been replaced.
    pub(super) term: u32,
    /// The lock by which the host came.
    came_by: [u8; 16],
    /// Lock and sealed key of the host's heir.
    heir: Option<([u8; 16], [u8; 16])>,
    /// The time at which the host was heard of last.
    host_heard: Instant,
    /// The host has left the room to its heir.
    vacant: bool,
    /// The guest that has become the host, until it speaks as such, and what it was told. Few rooms have one, and packets have room for a token.
    succeeded: Option<Box<(LegId, Packet)>>,
}

impl Default for Succession {
    fn default() -> Self {
        Self {
            term: 0,
            came_by: [0; 16],
            heir: None,
            host_heard: Instant::ZERO,
            vacant: false,
            succeeded: None,
        }
    }
}

impl Succession {
    /// A host has shown the room's key.
    pub(super) fn host_is_here(&mut self, now: Instant, term: u32) {
        (self.term, self.host_heard, self.vacant) = (term, now, false);
    }

    /// True if the host left, or has said nothing for so long that it knows itself that it may be succeeded.
    fn is_orphaned(&self, now: Instant) -> bool {
        self.vacant || now.saturating_since(self.host_heard) >= LEASE
    }
}

impl Relay {
    /// The host of a room is well, if it is the host who says so.
    pub(super) fn hear_host(&mut self, now: Instant, id: LegId) {
        let End::Room = id.end() else { return };
        let Some(room) = self.rooms.get_mut(id.slot()) else {
            return;
        };
        room.succession.host_heard = now;
        // A guest that has become the host needs its way to the former host no more.
        if let Some(succeeded) = room.succession.succeeded.take() {
            let (guest, _) = *succeeded;
            room.guests.retain(|other| *other as usize != guest.slot());
            self.remove_guest(guest.slot());
        }
    }

    /// A host names its heir.
    pub(super) fn on_heir(
        &mut self,
        from: SocketAddr,
        id: LegId,
        lock: [u8; 16],
        sealed: [u8; 16],
    ) {
        if id.end() != End::Room || self.address_of(id) != Some(from) {
            return;
        }
        if let Some(room) = self.rooms.get_mut(id.slot()) {
            room.succession.heir = (lock != NOBODY).then_some((lock, sealed));
        }
    }

    /// A host leaves. True if it has an heir, for whom the room stays.
    pub(super) fn leave_to_heir(&mut self, slot: usize) -> bool {
        let room = self.rooms.get_mut(slot);
        room.is_some_and(|room| {
            room.succession.vacant = room.succession.heir.is_some();
            room.succession.vacant
        })
    }

    /// A guest claims the room, or asks who has it.
    pub(super) fn on_succeed(
        &mut self,
        now: Instant,
        from: SocketAddr,
        id: LegId,
        (term, secret): (u32, [u8; 16]),
        len: usize,
    ) {
        match self.address_of(id) {
            None => return self.on_unknown(now, id, from),
            Some(known) if known != from => return self.challenge(now, id, from, len),
            Some(_) => {}
        }
        let guest = self
            .guests
            .get(id.slot())
            .filter(|_| id.end() == End::Guest);
        let Some(slot) = guest.map(|guest| guest.room as usize) else {
            return;
        };
        let Some(room) = self.rooms.get(slot) else {
            return;
        };
        let succession = &room.succession;
        let succeeded = succession.succeeded.as_deref();
        if let Some(&(_, told)) = succeeded.filter(|(guest, _)| *guest == id) {
            return self.say(from, &told);
        }
        let is_heir = succession
            .heir
            .is_some_and(|(lock, _)| lock == lock_of(&secret));
        if is_heir && term == succession.term && succession.is_orphaned(now) {
            return self.succeed(now, slot, id);
        }
        let answer = Packet::Succeed {
            id,
            term: succession.term,
            secret: succession.came_by,
        };
        self.say(from, &answer);
    }

    /// A guest becomes the host of its room, and everybody is told. All ids of the former host's ends are void.
    fn succeed(&mut self, now: Instant, slot: usize, heir: LegId) {
        let Some(guest) = self.guests.get(heir.slot()) else {
            return;
        };
        let (address, local, direct) = (guest.address, guest.local, guest.direct);
        let tag = self.secrets.draw() as u32;
        let Some(room) = self.rooms.get_mut(slot) else {
            return;
        };
        let (former, former_id) = (room.address, room.id(slot));
        (room.tag, room.address, room.local, room.direct) = (tag, address, local, direct);
        room.heard = now;
        let (lock, sealed) = room.succession.heir.take().unwrap_or_default();
        let term = room.succession.term + 1;
        room.succession.host_is_here(now, term);
        room.succession.came_by = lock;
        let told = Packet::Heir {
            id: room.id(slot),
            term,
            lock,
            sealed,
        };
        room.succession.succeeded = Some(Box::new((heir, told)));
        let others: Vec<u32> = room.guests.clone();
        log!(debug, slot, term, host = %address, "a room has another host");
        self.stats.successions += 1;
        self.say(address, &told);
        let news = |id| Packet::Succeed {
            id,
            term,
            secret: lock,
        };
        self.say(former, &news(former_id));
        for slot in others.into_iter().map(|slot| slot as usize) {
            let (tags, token) = (self.secrets.draw(), self.secrets.draw());
            let Some(guest) = self.guests.get_mut(slot) else {
                continue;
            };
            guest.host_tag = tags as u32;
            guest.token = token.to_le_bytes();
            (guest.introduced, guest.found) = (Instant::ZERO, false);
            if slot != heir.slot() {
                let (to, id) = (guest.address, guest.guest_id(slot));
                self.say(to, &news(id));
                self.introduce(now, slot);
            }
        }
    }
}

/// The lock of nobody.
const NOBODY: [u8; 16] = [0; 16];
/// Silence of a host after which its heir may have the room. A host goes on without the relay's word for less
/// (`HOST_LEASE`).
const LEASE: Duration = Duration::from_millis(500);
