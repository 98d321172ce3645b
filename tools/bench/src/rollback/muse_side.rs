//! Muse's side of the duels: a host and a client, in memory.

use std::net::SocketAddr;

use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::{MatchConfig, Role, Session};
use muse_wire::{Datagram, Ecn, Instant, Machine};

use super::pairs::{Counts, Side};

/// So many pairs.
pub(crate) fn pairs(count: u64) -> anyhow::Result<Vec<[Box<dyn Side>; 2]>> {
    (0..count).map(pair).collect()
}

fn pair(seed: u64) -> anyhow::Result<[Box<dyn Side>; 2]> {
    // Like the peer's: no delay of inputs.
    let config = MatchConfig::rollback(2).delay(0);
    let host = PlainPeer::host(config.clone(), Duel::new(seed), 1)?;
    let session = Session::new(config, Duel::new(seed), Role::Player, 2)?;
    let client = PlainPeer::client(session, address(0));
    let side = |peer, other| -> Box<dyn Side> {
        Box::new(MuseSide {
            peer,
            other,
            buffer: vec![0; 1_500],
            due: None,
        })
    };
    Ok([side(host, address(1)), side(client, address(0))])
}

struct MuseSide {
    peer: PlainPeer<Duel>,
    other: SocketAddr,
    buffer: Vec<u8>,
    /// When it is to be asked again.
    due: Option<Instant>,
}

impl Side for MuseSide {
    fn handle(&mut self, now: Instant, packet: &mut [u8]) {
        let datagram = Datagram {
            from: self.other,
            ecn: Ecn::NotCapable,
            payload: packet,
        };
        self.peer.handle_datagram(now, datagram);
        self.due = Some(now);
    }

    fn run(&mut self, now: Instant, input: &dyn Fn(u32) -> u8, out: &mut Vec<Vec<u8>>) {
        // As drivers do: nothing is asked before its time.
        if self.due.is_some_and(|due| due > now) {
            return;
        }
        if self.peer.poll_timeout().is_some_and(|at| at <= now) {
            if let Some(session) = self.peer.session_mut() {
                let buttons = Buttons::from_bits(input(session.frame().0));
                // Six bits fit.
                let _ = session.set_input(buttons);
            }
            self.peer.handle_timeout(now);
        }
        while let Some(transmit) = self.peer.poll_transmit(now, &mut self.buffer) {
            out.push(self.buffer[..transmit.len].to_vec());
        }
        self.due = self.peer.poll_timeout();
    }

    fn counts(&self) -> Counts {
        let statistics = self.peer.session().map(Session::statistics);
        statistics.map_or_else(Counts::default, |statistics| Counts {
            frames: statistics.frames,
            rollbacks: statistics.rollbacks,
            resimulated: statistics.resimulated,
        })
    }
}

fn address(side: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7_000 + side))
}
