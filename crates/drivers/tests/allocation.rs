//! No allocation per datagram once a driver is bound.
#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;

use muse_drivers::{Driver, UdpDriver, UdpOptions, memory_pair};
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
