//! The shape that all polled drivers share, so that a game changes its link by changing one line.

use std::io;
use std::net::SocketAddr;

use muse_wire::{Instant, Machine};

/// Carries datagrams between a [`Machine`] and a link, without waiting.
///
/// Call [`poll`](Driver::poll) once per tick, or [`receive`](Driver::receive) at the start of a tick and
/// [`flush`](Driver::flush) at its end, with the game's step between them, so that what the step says leaves in the
/// same tick. Each call does a bounded amount of work.
pub trait Driver {
    /// Gives the machine what has arrived, and says how many datagrams that were.
    fn receive<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize>;

    /// Sends what the machine has to say now, and says how many datagrams that were.
    fn flush<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<usize>;

    /// The address under which the other side sees datagrams of this link arrive from, unless a NAT changes it.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// One whole turn: receive, time-out if it is due, flush.
    fn poll<M: Machine + ?Sized>(&mut self, now: Instant, machine: &mut M) -> io::Result<()> {
        self.receive(now, machine)?;
        if machine.poll_timeout().is_some_and(|due| due <= now) {
            machine.handle_timeout(now);
        }
        self.flush(now, machine)?;
        Ok(())
    }
}
