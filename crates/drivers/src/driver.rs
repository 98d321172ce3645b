//! The shape that all polled drivers share, so that a game changes its link by changing one line.

use std::io;
use std::net::SocketAddr;

use muse_wire::{Instant, Machine};

/// Carries datagrams between a [`Machine`] and a link, without waiting.
///
/// Call [`poll`](Driver::poll) once per tick, or [`receive`](Driver::receive) at the start of a tick and
/// [`flush`](Driver::flush) at its end, with the game's step between them, so that what the step says leaves in the
/// same tick. Each call does a bounded amount of work.
///
/// ```
/// # use muse_wire::{Datagram, Ecn, Instant, Machine, Transmit};
/// # use std::net::SocketAddr;
/// # struct Post {
/// #     to: SocketAddr,
/// #     left: usize,
/// #     heard: usize,
/// # }
/// # impl Machine for Post {
/// #     fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
/// #         self.heard += datagram.payload.len();
/// #     }
/// #     fn handle_timeout(&mut self, _: Instant) {}
/// #     fn poll_transmit(&mut self, _: Instant, buffer: &mut [u8]) -> Option<Transmit> {
/// #         self.left = self.left.checked_sub(1)?;
/// #         buffer[..5].copy_from_slice(b"hello");
/// #         Some(Transmit { to: self.to, len: 5, segment: None, ecn: Ecn::NotCapable })
/// #     }
/// #     fn poll_timeout(&mut self) -> Option<Instant> {
/// #         None
/// #     }
/// # }
/// use muse_drivers::{Driver, memory_pair};
/// /// A tick over any link; says how many datagrams arrived.
/// fn tick(link: &mut impl Driver, machine: &mut impl Machine, now: Instant) -> std::io::Result<usize> {
///     let arrived = link.receive(now, machine)?;
///     // The game's step would be here.
///     link.flush(now, machine)?;
///     Ok(arrived)
/// }
/// # fn main() -> std::io::Result<()> {
/// # let [here, there] = ["10.0.0.1:7000", "10.0.0.2:1"].map(|text| text.parse().expect("an address"));
/// # let (mut first, mut second) = (Post { to: there, left: 3, heard: 0 }, Post { to: here, left: 0, heard: 0 });
/// let (mut at_first, mut at_second) = memory_pair(here, there);
/// assert_eq!(tick(&mut at_first, &mut first, Instant::ZERO)?, 0);
/// assert_eq!(tick(&mut at_second, &mut second, Instant::ZERO)?, 3);
/// # Ok(())
/// # }
/// ```
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
