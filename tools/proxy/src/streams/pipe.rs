//! One direction of a forwarded connection.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use mio::net::TcpStream;
use muse_netem::{Conditions, Packet};
use muse_wire::{Ecn, Instant};

use super::super::way::Link;
use super::AGAIN;

/// Bytes on their way from one socket to the other.
pub(super) struct Pipe {
    link: Link,
    bytes: VecDeque<u8>,
    /// Pieces that have not arrived yet: when they do, and their length.
    pieces: VecDeque<(Instant, usize)>,
    /// Bytes at the front that have arrived.
    arrived: usize,
    /// Bytes that may wait for the rate; none where there is no rate.
    queue_bytes: Option<u64>,
    /// True if the source may have something to read.
    pub(super) readable: bool,
    /// The time for which a reminder has been asked.
    reminder: Option<Instant>,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// The source has ended; the other side learns of it at this time.
    At(Instant),
    Told,
}

/// The work that a pipe did.
#[derive(Debug, Default)]
pub(super) struct Moved {
    pub(super) bytes: u64,
    pub(super) broken: bool,
    /// When it wants to be asked again, if not for a socket.
    pub(super) again: Option<Instant>,
}

impl Pipe {
    pub(super) fn new(link: Link, queue_bytes: Option<u64>) -> Self {
        Self {
            link,
            queue_bytes,
            bytes: VecDeque::new(),
            pieces: VecDeque::new(),
            arrived: 0,
            readable: true,
            reminder: None,
            end: End::Open,
        }
    }

    pub(super) fn set_conditions(&mut self, now: Instant, conditions: &Conditions) {
        self.queue_bytes = conditions.queue_bytes();
        self.link
            .set_conditions(now, Arc::new(conditions.for_streams()));
    }

    /// True if the other side knows that there will be no more.
    pub(super) fn is_over(&self) -> bool {
        self.end == End::Told
    }

    /// Reads what there is room for, and writes what has arrived.
    pub(super) fn pump(
        &mut self,
        now: Instant,
        from: &TcpStream,
        to: &TcpStream,
        is_out: bool,
    ) -> Moved {
        let mut moved = Moved::default();
        if self.reminder.is_some_and(|at| at <= now) {
            self.reminder = None;
        }
        let mut wants = match is_out {
            true => Some(now + AGAIN),
            false => self.read(now, from, &mut moved),
        };
        while let Some(&(at, len)) = self.pieces.front()
            && at <= now
        {
            self.pieces.pop_front();
            self.arrived += len;
        }
        self.write(to, &mut moved);
        if let End::At(at) = self.end
            && at <= now
            && self.bytes.is_empty()
        {
            // A connection that is gone already has been told in another way.
            let _ = to.shutdown(Shutdown::Write);
            self.end = End::Told;
        }
        if moved.bytes > 0 && self.readable && self.end == End::Open && !is_out {
            // There is room again.
            wants = Some(now);
        }
        let due = self.pieces.front().map(|&(at, _)| at);
        let end = match self.end {
            End::At(at) if at > now => Some(at),
            _ => None,
        };
        for at in [due, end].into_iter().flatten() {
            wants = Some(wants.map_or(at, |wanted| wanted.min(at)));
        }
        if let Some(at) = wants
            && self.reminder.is_none_or(|reminder| at < reminder)
        {
            self.reminder = Some(at);
            moved.again = Some(at);
        }
        moved
    }

    /// Reads as much as there is room for. Returns when to try again if the link has no room.
    fn read(&mut self, now: Instant, mut from: &TcpStream, moved: &mut Moved) -> Option<Instant> {
        let mut buffer = [0; READ_BYTES];
        while self.readable && self.end == End::Open && self.bytes.len() < WINDOW_BYTES {
            let is_full =
                |queue: u64| self.link.backlog_bytes(now) >= queue.max(PIECE_BYTES as u64);
            if self.queue_bytes.is_some_and(is_full) {
                return Some(now + AGAIN);
            }
            let len = match self.queue_bytes {
                Some(_) => PIECE_BYTES,
                None => READ_BYTES,
            };
            match from.read(&mut buffer[..len]) {
                Ok(0) => self.end = End::At(self.arrival(now, 0)),
                Ok(len) => {
                    let at = self.arrival(now, len);
                    self.bytes.extend(&buffer[..len]);
                    self.pieces.push_back((at, len));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(_) => {
                    moved.broken = true;
                    return None;
                }
            }
        }
        None
    }

    fn write(&mut self, mut to: &TcpStream, moved: &mut Moved) {
        while self.arrived > 0 {
            let (front, _) = self.bytes.as_slices();
            let len = front.len().min(self.arrived);
            match to.write(&front[..len]) {
                Ok(len) => {
                    self.bytes.drain(..len);
                    self.arrived -= len;
                    moved.bytes += len as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::NotConnected
                    ) =>
                {
                    return;
                }
                Err(_) => {
                    moved.broken = true;
                    return;
                }
            }
        }
    }

    /// When a piece arrives that was read now.
    fn arrival(&mut self, now: Instant, len: usize) -> Instant {
        let packet = Packet {
            payload_len: len,
            headers_len: HEADERS_BYTES * len.div_ceil(PIECE_BYTES).max(1),
            ecn: Ecn::NotCapable,
        };
        let fates = self.link.offer(now, packet);
        fates.arrivals().map(|fate| fate.at).next().unwrap_or(now)
    }
}

/// Most bytes on their way in one direction of one stream.
const WINDOW_BYTES: usize = 4 << 20;
/// Read at a time.
const READ_BYTES: usize = 16 << 10;
/// Bytes that a segment carries.
const PIECE_BYTES: usize = 1_460;
/// IP and TCP headers.
const HEADERS_BYTES: usize = 40;
