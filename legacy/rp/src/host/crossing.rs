//! Two hosts that call each other at once: one connection comes of both calls.
//!
//! A host that calls and is called from the same address lets the call with the higher numbers win, and both come to the same
//! answer because both see both. It offers a connection beside its own call, which it gives up only when the other joins: a
//! forged call alone does no harm. The connection keeps the id that the application knows.

use std::net::SocketAddr;

use muse_wire::Instant;

use super::Host;
use crate::connection::Side;
use crate::event::{Channel, ConnectionId, EndReason};
use crate::packet::Packet;

use super::Over;

impl Host {
    /// INIT1 arrived from the address that `own` calls. It is answered even by a host that does not listen: it asked for this
    /// connection.
    pub(super) fn handle_crossing_call(
        &mut self,
        now: Instant,
        from: SocketAddr,
        own: ConnectionId,
        packet: &Packet<'_>,
    ) {
        let theirs = (packet.sequence, packet.ack);
        let ours = self.numbers(own);
        if ours.is_some_and(|ours| theirs > ours) && !self.is_repetition(from, theirs) {
            self.offer(now, from, packet);
        }
    }

    /// The connection by which this host has called `address`, if there is one.
    pub(super) fn own_call(&self, address: SocketAddr) -> Option<ConnectionId> {
        let known = self.by_address[Channel::Reliable.index()].get(&address);
        known.copied().filter(|id| self.numbers(*id).is_some())
    }

    /// True if the peer's call takes the place of our own, now that the peer joins. If our call is not answered yet, it does
    /// in any case: the peer has not seen it, or yields.
    pub(super) fn yields(&self, own: ConnectionId, call: ConnectionId) -> bool {
        let (Some(own), Some(call)) = (self.connections.get(&own), self.connections.get(&call))
        else {
            return false;
        };
        match (own.side, call.side) {
            (Side::Client(ours), Side::Server { init1, .. }) => {
                own.is_calling() || (!own.is_open() && init1 > ours.reliable())
            }
            _ => false,
        }
    }

    /// Gives up our own call without a word, and its id to the peer's.
    pub(super) fn merge(&mut self, own: ConnectionId, call: ConnectionId) {
        self.schedule.remove(own);
        self.schedule.remove(call);
        if let Some(old) = self.connections.remove(&own) {
            self.by_address[Channel::Reliable.index()].remove(&old.reliable_address);
            if let Some(partial) = old.partial_address {
                self.by_address[Channel::Partial.index()].remove(&partial);
            }
        }
        if let Some(mut connection) = self.connections.remove(&call) {
            connection.rename(own);
            self.forget_call(connection.reliable_address, call);
            self.connections.insert(own, connection);
        }
    }

    /// Our own call to `address` has come to something, or to nothing: what was offered beside it is withdrawn.
    pub(super) fn withdraw_offer(&mut self, address: SocketAddr) {
        if let Some(call) = self.calls.get(&address).copied() {
            self.end(call, Over::End(EndReason::Replaced));
        }
    }

    /// The numbers of our own call.
    fn numbers(&self, own: ConnectionId) -> Option<(u32, u32)> {
        match self.connections.get(&own)?.side {
            Side::Client(numbers) => Some(numbers.reliable()),
            Side::Server { .. } => None,
        }
    }
}
