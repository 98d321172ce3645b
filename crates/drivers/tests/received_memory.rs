//! The memory that a peer makes a server hold follows what the peer has sent, whatever it announces.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;

use muse_transport::congestion::Congestion;
use muse_transport::{
    ChannelConfig, Config, Connect, ConnectionId, Delivery, Endpoint, Event, SeededEntropy,
    ServerKey, ServerOptions,
};
use muse_wire::{Datagram, Ecn, Instant, Machine};

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // An allocation while the thread ends is nobody's.
    let _ = LIVE.try_with(|live| live.set(live.get() + bytes));
}

// SAFETY: hands everything to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory beyond what has arrived that one connection may cost.
const SLACK: isize = 64 << 10;
const CLIENT: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    1,
);
const SERVER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)),
    2,
);
const NOW: Instant = Instant::from_secs(1);

/// A client, and a server whose memory is counted.
struct World {
    client: Endpoint,
    server: Endpoint,
    connection: ConnectionId,
    /// Bytes that the server has allocated and not freed.
    live: isize,
    /// Bytes of packets that have arrived at the server.
    arrived: isize,
}

impl World {
    fn new(config: Config) -> Self {
        let config = config
            .congestion(Congestion::off())
            .build()
            .expect("sensible");
        let key = ServerKey::from_bytes([3; 32]);
        let mut client = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(1));
        let connection = client
            .connect(NOW, SERVER, Connect::pinned(key.public()))
            .expect("free");
        let mut server = Endpoint::new(config, SeededEntropy::danger_seeded(2));
        server.listen(ServerOptions::new(key));
        let mut world = Self {
            client,
            server,
            connection,
            live: 0,
            arrived: 0,
        };
        for _ in 0..4 {
            for packet in world.sent() {
                world.arrive(packet);
            }
            world.answer();
        }
        let mut buffer = Vec::new();
        let connected = world.server.poll_event(&mut buffer);
        assert!(matches!(connected, Some(Event::Connected { .. })));
        (world.live, world.arrived) = (0, 0);
        world
    }

    /// Returns the datagrams that the client has to send.
    fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut packet = [0; 1_500];
        std::iter::from_fn(|| {
            let transmit = self.client.poll_transmit(NOW, &mut packet)?;
            Some(packet[..transmit.len].to_vec())
        })
        .collect()
    }

    /// The client takes a message and sends it.
    fn say(&mut self, channel: u8, len: usize) -> Vec<Vec<u8>> {
        self.client
            .send(NOW, self.connection, channel, &vec![7; len])
            .expect("room");
        self.sent()
    }

    fn arrive(&mut self, mut packet: Vec<u8>) {
        self.arrived += packet.len() as isize;
        let datagram = Datagram {
            from: CLIENT,
            ecn: Ecn::NotCapable,
            payload: &mut packet,
        };
        let before = LIVE.get();
        self.server.handle_datagram(NOW, datagram);
        self.live += LIVE.get() - before;
    }

    fn answer(&mut self) {
        let mut packet = [0; 1_500];
        while let Some(transmit) = self.server.poll_transmit(NOW, &mut packet) {
            let datagram = Datagram {
                from: SERVER,
                ecn: Ecn::NotCapable,
                payload: &mut packet[..transmit.len],
            };
            self.client.handle_datagram(NOW, datagram);
        }
    }

    fn check(&self) {
        let (live, arrived) = (self.live, self.arrived);
        assert!(
            live <= arrived + SLACK,
            "{live} bytes of memory for {arrived} bytes of packets"
        );
    }
}

fn channel(delivery: Delivery) -> Config {
    Config::new(5).channel(ChannelConfig::new(delivery).queue_bytes(64 << 20))
}

#[test]
fn the_last_fragments_of_large_messages_take_their_own_size() {
    // A sender has at most 4 MiB of a reliable channel on their way.
    for (delivery, len) in [
        (Delivery::Unreliable, 1_900 << 10),
        (Delivery::ReliableUnordered, 480 << 10),
    ] {
        let mut world = World::new(channel(delivery));
        for _ in 0..8 {
            let last = world.say(0, len).pop().expect("fragments");
            world.arrive(last);
            world.check();
        }
    }
}

#[test]
fn a_message_whose_first_fragment_is_missing_takes_what_has_arrived() {
    let mut world = World::new(channel(Delivery::ReliableOrdered));
    let packets = world.say(0, 12 << 20);
    for (index, packet) in packets.into_iter().skip(1).enumerate() {
        world.arrive(packet);
        if index % 1_000 == 0 {
            world.check();
        }
    }
    world.check();
}

#[test]
fn many_messages_begun_and_never_finished_take_what_has_arrived() {
    let mut world = World::new(channel(Delivery::ReliableUnordered));
    for _ in 0..200 {
        let last = world.say(0, 20 << 10).pop().expect("fragments");
        world.arrive(last);
    }
    world.check();
}

#[test]
fn far_numbers_take_little() {
    let mut world = World::new(channel(Delivery::ReliableOrdered));
    for _ in 0..8_000 {
        world
            .client
            .send(NOW, world.connection, 0, b"")
            .expect("room");
    }
    let last = world.sent().pop().expect("packets");
    world.arrive(last);
    world.check();
}
