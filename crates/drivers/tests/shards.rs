//! Packets reach the shard that their connection id or token names, whatever address they come from.
#![cfg(target_os = "linux")]

#[path = "support/node.rs"]
mod support;

use std::collections::HashSet;
use std::net::SocketAddr;

use muse_drivers::{Driver, UdpDriver, UdpOptions, bind_shards};
use muse_transport::steering::{TOKEN_LENGTH_OFFSET, TOKEN_NAME_OFFSET, shard_of};
use muse_wire::{Duration, Instant};
use support::Node;

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn shards(count: usize) -> (Vec<(UdpDriver, Node)>, SocketAddr) {
    let drivers = bind_shards(loopback(), count, &UdpOptions::default()).expect("shards bind");
    assert_eq!(drivers.len(), count);
    let address = drivers[0].local_addr().expect("an address");
    (
        drivers
            .into_iter()
            .map(|driver| (driver, Node::default()))
            .collect(),
        address,
    )
}

/// Sends from a fresh socket and says which shard got it. Loopback delivers before the send returns.
fn reached(shards: &mut [(UdpDriver, Node)], to: SocketAddr, packet: &[u8]) -> usize {
    let mut client = UdpDriver::bind(loopback(), &UdpOptions::default()).expect("binds");
    reached_from(&mut client, shards, to, packet)
}

fn reached_from(
    client: &mut UdpDriver,
    shards: &mut [(UdpDriver, Node)],
    to: SocketAddr,
    packet: &[u8],
) -> usize {
    let mut node = Node::default();
    node.say(to, packet);
    client.flush(Instant::ZERO, &mut node).expect("sends");
    let mut found = None;
    while found.is_none() {
        for (number, (driver, node)) in shards.iter_mut().enumerate() {
            if driver.wait(Duration::ZERO).expect("waits") {
                node.received.clear();
                driver.receive(Instant::ZERO, node).expect("receives");
                assert_eq!(node.payloads(), [packet]);
                assert_eq!(found.replace(number), None, "one shard only");
            }
        }
    }
    found.expect("the loop ends with a shard")
}

fn connection_packet(id: u32) -> Vec<u8> {
    let mut packet = vec![0x80 | 5];
    packet.extend(id.to_le_bytes());
    packet.extend(b"rest of the packet");
    packet
}

#[test]
fn the_connection_id_names_the_shard_from_any_address() {
    for count in [2, 3, 4] {
        let (mut shards, to) = shards(count);
        for id in (0..512_u32).step_by(7).chain([u32::MAX, 0x1234_56FF]) {
            // Two fresh sockets: the client's port changed in between.
            for _ in 0..2 {
                let packet = connection_packet(id);
                let shard = reached(&mut shards, to, &packet);
                assert_eq!(shard, (id & 0xFF) as usize % count, "connection {id}");
                assert_eq!(shard_of(&packet, count), Some(shard));
            }
        }
    }
}

/// The front of a Connect, with a token whose name begins with `name`.
fn connect_packet(name: Option<u8>) -> Vec<u8> {
    let mut packet = vec![3; 400];
    packet[TOKEN_LENGTH_OFFSET..TOKEN_LENGTH_OFFSET + 2].fill(0);
    if let Some(name) = name {
        packet[TOKEN_LENGTH_OFFSET + usize::from(name % 2)] = 200;
        packet[TOKEN_NAME_OFFSET] = name;
    }
    packet
}

#[test]
fn the_token_names_the_shard_from_any_address() {
    for count in [2, 3, 4] {
        let (mut shards, to) = shards(count);
        for name in (0..=255).step_by(5) {
            let packet = connect_packet(Some(name));
            for _ in 0..2 {
                let shard = reached(&mut shards, to, &packet);
                assert_eq!(shard, usize::from(name) % count, "token {name}");
                assert_eq!(shard_of(&packet, count), Some(shard));
            }
        }
        assert_eq!(shard_of(&connect_packet(None), count), None);
    }
}

#[test]
fn handshakes_spread_by_address_and_stay_with_it() {
    let (mut shards, to) = shards(4);
    let mut used = HashSet::new();
    for _ in 0..64 {
        let mut client = UdpDriver::bind(loopback(), &UdpOptions::default()).expect("binds");
        let first = reached_from(&mut client, &mut shards, to, &[0x01, 9, 9, 9, 9]);
        let second = reached_from(&mut client, &mut shards, to, &[0x7F, 1, 2, 3, 4, 5]);
        let third = reached_from(&mut client, &mut shards, to, &connect_packet(None));
        assert_eq!([first, first], [second, third]);
        used.insert(first);
    }
    assert_eq!(used.len(), 4, "64 clients leave no shard idle");
}

#[test]
fn packets_too_short_for_a_connection_id_still_arrive() {
    let (mut shards, to) = shards(2);
    reached(&mut shards, to, &[]);
    reached(&mut shards, to, &[0x80]);
    reached(&mut shards, to, &[0x00]);
}

#[test]
fn nonsensical_counts_are_refused_and_one_needs_no_group() {
    for count in [0, 257] {
        let error = bind_shards(loopback(), count, &UdpOptions::default()).expect_err("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    let one = bind_shards(loopback(), 1, &UdpOptions::default()).expect("binds");
    let taken = one[0].local_addr().expect("an address");
    assert!(UdpDriver::bind(taken, &UdpOptions::default().reuse_port(true)).is_err());
}
