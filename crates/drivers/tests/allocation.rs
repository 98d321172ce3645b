//! No allocation per datagram once a driver is bound.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;

use muse_drivers::{
    ClientDriver, Driver, EndpointDriver, UdpDriver, UdpOptions, memory_pair, new_key,
};
use muse_transport::{ChannelConfig, Config, Connect, Delivery, Dispatcher, Event, ServerOptions};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine, Transmit};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: hands everything to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Sends `left` datagrams of 64 bytes and counts what comes.
struct Counter {
    to: SocketAddr,
    left: usize,
    received: usize,
}

impl Machine for Counter {
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        assert_eq!(datagram.payload.len(), 64);
        self.received += 1;
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, _: &mut [u8]) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        Some(Transmit {
            to: self.to,
            len: 64,
            segment: None,
            ecn: Ecn::Capable0,
        })
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

fn counted(mut round: impl FnMut()) -> u64 {
    (0..5).for_each(|_| round());
    let before = ALLOCATIONS.get();
    (0..50).for_each(|_| round());
    ALLOCATIONS.get() - before
}

#[test]
fn a_steady_stream_over_udp_allocates_nothing() {
    for portable in [false, true] {
        let options = UdpOptions::default().portable(portable);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut sender = UdpDriver::bind(address, &options).expect("binds");
        let mut receiver = UdpDriver::bind(address, &options).expect("binds");
        let to = receiver.local_addr().expect("an address");
        let mut machine = Counter {
            to,
            left: 0,
            received: 0,
        };
        let allocations = counted(|| {
            machine.left = 200;
            let wanted = machine.received + 200;
            sender.flush(Instant::ZERO, &mut machine).expect("sends");
            while machine.received < wanted {
                assert!(receiver.wait(Duration::from_secs(20)).expect("waits"));
                receiver
                    .receive(Instant::ZERO, &mut machine)
                    .expect("receives");
            }
        });
        assert_eq!(allocations, 0);
    }
}

#[test]
fn a_steady_stream_in_memory_allocates_nothing() {
    let addresses = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 7)));
    let (mut sender, mut receiver) = memory_pair(addresses[0], addresses[1]);
    let mut machine = Counter {
        to: addresses[1],
        left: 0,
        received: 0,
    };
    let allocations = counted(|| {
        machine.left = 200;
        sender.flush(Instant::ZERO, &mut machine).expect("sends");
        receiver
            .receive(Instant::ZERO, &mut machine)
            .expect("receives");
    });
    assert_eq!(machine.received, 55 * 200);
    assert_eq!(allocations, 0);
}

#[derive(muse_schema::Message)]
#[message(id = 1)]
struct Position {
    x: f32,
    y: f32,
    health: u16,
}

#[test]
fn typed_messages_between_client_and_server_allocate_nothing_each() {
    let config = Config::new(1)
        .channel(ChannelConfig::new(Delivery::Sequenced))
        .channel(ChannelConfig::new(Delivery::ReliableOrdered));
    let key = new_key().expect("randomness");
    let how = Connect::pinned(key.public());
    let options = ServerOptions::new(key);
    let mut server = EndpointDriver::bind("127.0.0.1:0", config.clone(), options).expect("binds");
    let address = server.local_addr().expect("bound");
    let mut client = ClientDriver::connect(address, config, how).expect("a socket");
    let mut positions: Dispatcher<u64> = Dispatcher::new();
    positions
        .on(|count: &mut u64, _, position: Position| *count += u64::from(position.health))
        .expect("a free id");
    let (mut sum, mut wanted) = (0, 0);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut tick = |client: &mut ClientDriver, wanted: u64| {
        loop {
            client.tick(|_, _| {}).expect("ticks");
            let handle = |_: &mut EndpointDriver, event: Event<'_>| {
                if let Event::Message {
                    connection,
                    payload,
                    ..
                } = event
                {
                    positions
                        .dispatch(&mut sum, connection, payload)
                        .expect("a position");
                }
            };
            server.tick(handle).expect("ticks");
            if sum == wanted && client.is_connected() {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "{sum} of {wanted}");
        }
    };
    tick(&mut client, 0);
    let mut round = || {
        for _ in 0..20 {
            for channel in [0, 1] {
                let position = Position {
                    x: 1.0,
                    y: 2.0,
                    health: 3,
                };
                client.send_message(channel, &position).expect("room");
                wanted += 3;
            }
            tick(&mut client, wanted);
        }
    };
    // Queues and windows grow to the size that the traffic needs.
    (0..50).for_each(|_| round());
    let allocations = counted(round);
    // None per message. A pause of this thread can make more wait than ever before, and a queue grow once more.
    assert!(
        allocations < 10,
        "{allocations} allocations over 2,000 messages"
    );
}
