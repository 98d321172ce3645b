//! A server's key that is learned after the attempt to connect has begun.

use super::{Endpoint, Occupant};
use crate::crypto::ServerPublicKey;
use crate::handshake::{Listener, Refusal};
use crate::inbox::Rare;

impl Endpoint {
    /// Returns the key that clients of this server pin; `None` for one that does not [listen](Self::listen).
    pub fn public_key(&self) -> Option<ServerPublicKey> {
        self.listener.as_ref().map(Listener::public_key)
    }

    /// Tells attempts that began with [`Connect::key_follows`](crate::Connect::key_follows), and those that will, the server's key; or why there is none, in words:
    /// then they end by [`Event::Refused`](crate::Event::Refused) with [`Refusal::NoWay`].
    pub fn pin(&mut self, server: Result<ServerPublicKey, String>) {
        for index in 0..self.slots.len() {
            let Occupant::Attempt(attempt) = &mut self.slots[index].occupant else {
                continue;
            };
            match &server {
                Ok(key) => {
                    if attempt.pin(*key) {
                        self.schedule.mark_dirty(index);
                    }
                }
                Err(reason) => {
                    if attempt.waits_for_key() {
                        let refusal = Refusal::NoWay(reason.clone());
                        self.give_up(index, Rare::Refused(refusal));
                    }
                }
            }
        }
        self.followed = server.ok();
    }
}
