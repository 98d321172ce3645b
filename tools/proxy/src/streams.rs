//! TCP forwarding: each connection of a client is one to the server, and its bytes take the configured time in each direction.
//!
//! A stream has delay, jitter (in order) and rate, but no loss, since the two TCP connections would only hide it. Queues are
//! bounded: a side that sends faster than the link's rate is not read until there is room, as TCP expects.

mod pipe;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use muse_wire::{Duration, Instant};

use super::flights::{Flights, Id};
use super::way::{Link, Pair, Way};
use pipe::Pipe;

/// The parts of the engine that streams need: the time, the sockets waited for, the times to be woken at, the conditions and the seed.
pub(super) type Context<'a> = (Instant, &'a Registry, &'a mut Flights, &'a Pair, u64);

/// All forwarded connections.
pub(super) struct Streams {
    listener: TcpListener,
    server: SocketAddr,
    slots: Vec<Slot>,
    free: Vec<u32>,
    max: usize,
    open: usize,
    accepted: u64,
    refused: u64,
    bytes: [u64; 2],
}

struct Slot {
    generation: u32,
    stream: Option<Stream>,
}

struct Stream {
    /// Of the client and towards the server.
    sockets: [TcpStream; 2],
    pipes: [Pipe; 2],
    connected: bool,
}

impl Streams {
    /// Tokens of streams begin here.
    pub(super) const TOKENS: usize = 1 << 24;

    pub(super) fn listen(
        address: SocketAddr,
        server: SocketAddr,
        registry: &Registry,
        max: usize,
    ) -> io::Result<Self> {
        let mut listener = TcpListener::bind(address)?;
        registry.register(&mut listener, Token(Self::TOKENS), Interest::READABLE)?;
        Ok(Self {
            listener,
            server,
            slots: Vec::new(),
            free: Vec::new(),
            max,
            open: 0,
            accepted: 0,
            refused: 0,
            bytes: [0; 2],
        })
    }

    /// Connections at present, so far, and refused.
    pub(super) fn counts(&self) -> [u64; 3] {
        [self.open as u64, self.accepted, self.refused]
    }

    /// Bytes passed on by direction.
    pub(super) fn bytes(&self) -> [u64; 2] {
        self.bytes
    }

    pub(super) fn set_conditions(&mut self, now: Instant, conditions: &Pair) {
        for stream in self
            .slots
            .iter_mut()
            .filter_map(|slot| slot.stream.as_mut())
        {
            for way in Way::BOTH {
                stream.pipes[way.index()].set_conditions(now, &conditions[way.index()]);
            }
        }
    }

    /// A socket is ready.
    pub(super) fn serve(&mut self, token: Token, context: &mut Context<'_>) {
        match token.0 - Self::TOKENS {
            0 => self.accept(context),
            number => self.progress((number - 1) / 2, Some((number - 1) % 2), context),
        }
    }

    /// Handles a wake-up that was asked for.
    pub(super) fn remind(&mut self, id: Id, context: &mut Context<'_>) {
        let index = id.index as usize;
        if self.slots[index].generation == id.generation {
            self.progress(index, None, context);
        }
    }

    fn accept(&mut self, context: &mut Context<'_>) {
        // Readiness is reported once for all that wait, so all are accepted, also those that are closed at once.
        while let Ok((client, _)) = self.listener.accept() {
            if self.open >= self.max {
                self.refused += 1;
                continue;
            }
            match TcpStream::connect(self.server) {
                Ok(server) => self.open(client, server, context),
                Err(error) => {
                    tracing::debug!("no connection to {}: {error}", self.server);
                    self.refused += 1;
                }
            }
        }
    }

    fn open(&mut self, client: TcpStream, server: TcpStream, context: &mut Context<'_>) {
        let (_, registry, _, conditions, seed) = context;
        self.accepted += 1;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                stream: None,
            });
            (self.slots.len() - 1) as u32
        });
        let mut sockets = [client, server];
        for (side, socket) in sockets.iter_mut().enumerate() {
            // Nagle's algorithm would add a delay of its own.
            let _ = socket.set_nodelay(true);
            let token = Token(Self::TOKENS + 1 + index as usize * 2 + side);
            let interest = Interest::READABLE | Interest::WRITABLE;
            if let Err(error) = registry.register(socket, token, interest) {
                tracing::debug!("a stream is not forwarded: {error}");
                self.refused += 1;
                self.free.push(index);
                return;
            }
        }
        let for_streams: Pair =
            Way::BOTH.map(|way| Arc::new(conditions[way.index()].for_streams()));
        let [up, down] = Link::pair(&for_streams, *seed, STREAM_SEEDS + self.accepted);
        let queues = Way::BOTH.map(|way| conditions[way.index()].queue_bytes());
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.stream = Some(Stream {
            sockets,
            pipes: [Pipe::new(up, queues[0]), Pipe::new(down, queues[1])],
            connected: false,
        });
        self.open += 1;
    }

    /// Moves what can be moved, in both directions.
    fn progress(&mut self, index: usize, side: Option<usize>, context: &mut Context<'_>) {
        let (now, registry, flights, conditions, _) = context;
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let id = Id {
            index: index as u32,
            generation: slot.generation,
        };
        let Some(stream) = &mut slot.stream else {
            return;
        };
        if let Some(side) = side {
            stream.pipes[side].readable = true;
        }
        let mut broken = false;
        if !stream.connected {
            match (
                stream.sockets[1].take_error(),
                stream.sockets[1].peer_addr(),
            ) {
                (Ok(None), Ok(_)) => stream.connected = true,
                (Ok(None), Err(_)) => return,
                _ => {
                    self.refused += 1;
                    broken = true;
                }
            }
        }
        for way in Way::BOTH {
            let (from, to) = match way {
                Way::Up => (&stream.sockets[0], &stream.sockets[1]),
                Way::Down => (&stream.sockets[1], &stream.sockets[0]),
            };
            let pipe = &mut stream.pipes[way.index()];
            let is_out = conditions[way.index()].is_out(*now);
            let moved = pipe.pump(*now, from, to, is_out);
            self.bytes[way.index()] += moved.bytes;
            broken |= moved.broken;
            if let Some(at) = moved.again {
                flights.remind(at, id);
            }
        }
        if broken || stream.pipes.iter().all(Pipe::is_over) {
            if let Some(mut stream) = slot.stream.take() {
                for socket in &mut stream.sockets {
                    // It goes with the socket in any case.
                    let _ = registry.deregister(socket);
                }
            }
            self.free.push(index as u32);
            self.open -= 1;
        }
    }
}

/// Keeps the seeds of streams apart from those of clients.
const STREAM_SEEDS: u64 = 1 << 40;
/// Time until a pipe that may not read tries again.
const AGAIN: Duration = Duration::from_millis(5);
