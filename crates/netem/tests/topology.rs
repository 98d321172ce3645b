//! Nodes and addresses, links per direction, partitions, taps and statistics.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use muse_netem::{Cause, Conditions, Network, NodeId, Stage};
use muse_wire::{Duration, Ecn, Instant};

#[test]
fn each_direction_has_its_own_conditions_that_change_at_run_time() {
    let (mut network, nodes) = network(3);
    network.set_default(delay(10));
    network.set_link(nodes[0], nodes[1], delay(70));
    assert_eq!(travel_ms(&mut network, 0, 1), Some(70));
    assert_eq!(travel_ms(&mut network, 1, 0), Some(10));
    network.set_default(delay(20));
    assert_eq!(
        travel_ms(&mut network, 0, 1),
        Some(70),
        "its own conditions stay"
    );
    assert_eq!(travel_ms(&mut network, 1, 0), Some(20));
    network.set_links(nodes[1], nodes[2], delay(5));
    assert_eq!(
        (travel_ms(&mut network, 1, 2), travel_ms(&mut network, 2, 1)),
        (Some(5), Some(5))
    );
}

#[test]
fn partitions_cut_pairs_until_healed() {
    let (mut network, nodes) = network(3);
    network.partition(nodes[0], nodes[1]);
    assert_eq!(
        (travel_ms(&mut network, 0, 1), travel_ms(&mut network, 1, 0)),
        (None, None)
    );
    assert_eq!(
        (travel_ms(&mut network, 0, 2), travel_ms(&mut network, 2, 1)),
        (Some(0), Some(0))
    );
    assert_eq!(network.unrouted().partition, 2);
    network.heal(nodes[1], nodes[0]);
    assert_eq!(
        (travel_ms(&mut network, 0, 1), travel_ms(&mut network, 1, 0)),
        (Some(0), Some(0))
    );

    network.partition_one_way(nodes[0], nodes[2]);
    assert_eq!(
        (travel_ms(&mut network, 0, 2), travel_ms(&mut network, 2, 0)),
        (None, Some(0))
    );
    network.heal_all();
    assert_eq!(travel_ms(&mut network, 0, 2), Some(0));
}

#[test]
fn a_change_of_address_moves_the_node_and_loses_what_is_under_way() {
    let (mut network, nodes) = network(2);
    network.set_default(delay(10));
    network.send(
        Instant::ZERO,
        address(0),
        address(1),
        Ecn::NotCapable,
        b"late",
    );
    let new = SocketAddr::from(([198, 51, 100, 9], 9));
    network.readdress(address(1), new);
    assert!(network.poll_deliver(Instant::from_secs(1)).is_none());
    assert_eq!(network.unrouted().no_such_address, 1);
    network.send(
        Instant::from_secs(1),
        address(0),
        new,
        Ecn::NotCapable,
        b"found",
    );
    let delivery = network
        .poll_deliver(Instant::from_secs(2))
        .expect("it arrives");
    assert_eq!((delivery.node, delivery.to), (nodes[1], new));
    assert_eq!(network.addresses(nodes[1]), [new]);
    assert_eq!(network.node_at(address(1)), None);
}

#[test]
fn a_node_is_reached_at_each_of_its_addresses_over_the_same_link() {
    let (mut network, nodes) = network(2);
    let second: SocketAddr = "[2001:db8::2]:2".parse().expect("an address");
    network.add_address(nodes[1], second);
    for to in [address(1), second] {
        network.send(Instant::ZERO, address(0), to, Ecn::NotCapable, b"x");
        let delivery = network.poll_deliver(Instant::ZERO).expect("it arrives");
        assert_eq!((delivery.node, delivery.to), (nodes[1], to));
    }
    let counters = network
        .link_counters(nodes[0], nodes[1])
        .expect("the link was used");
    assert_eq!((counters.offered, counters.offered_ip_bytes), (2, 29 + 49));
}

#[test]
#[should_panic(expected = "is taken")]
fn an_address_belongs_to_one_node() {
    let (mut network, _) = network(2);
    network.add_node(address(1));
}

#[test]
fn forged_sources_come_from_outside_and_answers_to_them_vanish() {
    let (mut network, nodes) = network(1);
    let forged = SocketAddr::from(([198, 51, 100, 200], 1));
    network.send(
        Instant::ZERO,
        forged,
        address(0),
        Ecn::NotCapable,
        b"hello?",
    );
    assert_eq!(
        network
            .poll_deliver(Instant::ZERO)
            .expect("it arrives")
            .from,
        forged
    );
    network.send(
        Instant::ZERO,
        address(0),
        forged,
        Ecn::NotCapable,
        b"hello!",
    );
    assert!(network.poll_deliver(Instant::ZERO).is_none());
    assert_eq!(network.stats(NodeId::OUTSIDE).sent.datagrams, 1);
    assert_eq!(network.stats(nodes[0]).sent.payload_bytes, 6);
    assert_eq!(network.unrouted().no_such_address, 1);
}

#[test]
fn statistics_count_payload_and_ip_bytes_per_direction() {
    let (mut network, nodes) = network(2);
    network.set_default(Conditions::default().duplicate(1.0, Duration::ZERO));
    for _ in 0..10 {
        network.send(
            Instant::ZERO,
            address(0),
            address(1),
            Ecn::NotCapable,
            &[0; 100],
        );
    }
    while network.poll_deliver(Instant::ZERO).is_some() {}
    let sent = network.stats(nodes[0]).sent;
    assert_eq!(
        (sent.datagrams, sent.payload_bytes, sent.ip_bytes),
        (10, 1_000, 1_280)
    );
    let received = network.stats(nodes[1]).received;
    assert_eq!(
        (
            received.datagrams,
            received.payload_bytes,
            received.ip_bytes
        ),
        (20, 2_000, 2_560)
    );
    assert_eq!(network.stats(nodes[1]).sent, Default::default());
    assert_eq!(network.in_flight(), 0);
}

#[test]
fn a_tap_sees_everything_sent_delivered_and_lost() {
    let (mut network, nodes) = network(2);
    network.set_default(delay(10).mtu(500));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    network.set_tap(move |sighting| {
        let entry = (
            sighting.at.as_millis(),
            sighting.stage,
            sighting.payload.len(),
        );
        log.lock().expect("no watcher panicked").push(entry);
    });
    network.send(
        Instant::ZERO,
        address(0),
        address(1),
        Ecn::NotCapable,
        &[0; 400],
    );
    network.send(
        Instant::ZERO,
        address(0),
        address(1),
        Ecn::NotCapable,
        &[0; 500],
    );
    network.partition(nodes[0], nodes[1]);
    network.send(
        Instant::from_millis(1),
        address(0),
        address(1),
        Ecn::NotCapable,
        &[0; 1],
    );
    while network.poll_deliver(Instant::from_secs(1)).is_some() {}
    let expected = [
        (0, Stage::Sent, 400),
        (0, Stage::Sent, 500),
        (0, Stage::Lost(Cause::TooLarge), 500),
        (1, Stage::Sent, 1),
        (1, Stage::Lost(Cause::Partition), 1),
        (10, Stage::Delivered, 400),
    ];
    assert_eq!(*seen.lock().expect("no watcher panicked"), expected);
}

#[test]
fn corrupted_and_truncated_payloads_arrive_as_such() {
    let (mut network, _) = network(2);
    network.set_default(Conditions::default().corrupt(1.0, 1));
    network.send(
        Instant::ZERO,
        address(0),
        address(1),
        Ecn::Capable0,
        &[0; 50],
    );
    let delivery = network.poll_deliver(Instant::ZERO).expect("it arrives");
    assert_eq!(
        delivery
            .payload
            .iter()
            .map(|byte| byte.count_ones())
            .sum::<u32>(),
        1
    );
    assert_eq!(delivery.ecn, Ecn::Capable0);
    network.set_default(Conditions::default().truncate(1.0));
    network.send(
        Instant::ZERO,
        address(0),
        address(1),
        Ecn::NotCapable,
        &[0; 50],
    );
    assert!(
        network
            .poll_deliver(Instant::ZERO)
            .expect("it arrives")
            .payload
            .len()
            < 50
    );
}

#[test]
fn what_arrives_at_the_same_time_arrives_in_the_order_of_sending() {
    let (mut network, _) = network(2);
    network.set_default(delay(10));
    for round in 0..20u8 {
        // Rounds of different sizes, so that freed places are taken again out of order.
        let now = Instant::from_secs(u64::from(round));
        let sent: Vec<u8> = (0..200).filter(|index| index % (round + 1) == 0).collect();
        for &index in &sent {
            network.send(now, address(0), address(1), Ecn::NotCapable, &[index]);
        }
        let mut received = Vec::new();
        while let Some(delivery) = network.poll_deliver(now + Duration::from_millis(10)) {
            received.push(delivery.payload[0]);
        }
        assert_eq!(received, sent, "round {round}");
    }
}

#[test]
fn networks_move_between_threads() {
    // Seeds run in parallel, each network in a thread of its own.
    fn assert_send<T: Send>(value: T) -> T {
        value
    }
    let (network, nodes) = assert_send(network(2));
    assert_eq!(network.addresses(nodes[0]), [address(0)]);
}

fn delay(millis: u64) -> Conditions {
    Conditions::default().delay(Duration::from_millis(millis))
}

fn address(index: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, index], 1_000))
}

fn network(nodes: u8) -> (Network, Vec<NodeId>) {
    let mut network = Network::new(3);
    let nodes = (0..nodes)
        .map(|index| network.add_node(address(index)))
        .collect();
    (network, nodes)
}

/// Travel time of a datagram sent when the network is empty; `None` when it is lost.
fn travel_ms(network: &mut Network, from: u8, to: u8) -> Option<u64> {
    let sent_at = network.now();
    network.send(
        sent_at,
        address(from),
        address(to),
        Ecn::NotCapable,
        b"travel",
    );
    let at = network.next_delivery()?;
    let delivery = network
        .poll_deliver(at)
        .expect("it arrives at the announced time");
    Some((delivery.at - sent_at).as_millis())
}
