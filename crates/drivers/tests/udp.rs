//! Datagrams over real loopback sockets, by the platform's own path and by the portable one.

#[path = "support/node.rs"]
mod support;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use muse_drivers::{Driver, UdpDriver, UdpOptions};
use muse_wire::{Duration, Ecn, Instant};
use support::Node;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const NOW: Instant = Instant::from_secs(1);

/// Runs a test with both ways of making system calls.
fn both_paths(test: impl Fn(UdpOptions)) {
    for portable in [false, true] {
        test(UdpOptions::default().portable(portable));
    }
}

fn bind(ip: IpAddr, options: &UdpOptions) -> (UdpDriver, SocketAddr) {
    let driver = UdpDriver::bind(SocketAddr::new(ip, 0), options).expect("loopback binds");
    let address = driver.local_addr().expect("a bound socket has an address");
    (driver, address)
}

fn flush(driver: &mut UdpDriver, node: &mut Node) -> usize {
    driver.flush(NOW, node).expect("flushing works")
}

#[test]
fn a_datagram_goes_and_its_answer_comes_back() {
    both_paths(|options| {
        for ip in [V4, V6] {
            let (mut server, server_address) = bind(ip, &options);
            let (mut client, client_address) = bind(ip, &options);
            let (mut at_server, mut at_client) = (
                Node {
                    echo: true,
                    ..Node::default()
                },
                Node::default(),
            );
            at_client.say(server_address, b"question");
            assert_eq!(flush(&mut client, &mut at_client), 1);
            at_server.receive_until(&mut server, 1);
            assert_eq!(at_server.received[0].from, client_address);
            assert_eq!(flush(&mut server, &mut at_server), 1);
            at_client.receive_until(&mut client, 1);
            assert_eq!(at_client.received[0].from, server_address);
            assert_eq!(at_client.payloads(), [b"question"]);
        }
    });
}

#[test]
fn one_socket_serves_both_ip_versions_and_shows_plain_addresses() {
    both_paths(|options| {
        let mut server = UdpDriver::bind_any(0, &options).expect("binds");
        let port = server.local_addr().expect("an address").port();
        let mut at_server = Node {
            echo: true,
            ..Node::default()
        };
        for ip in [V4, V6] {
            let (mut client, client_address) = bind(ip, &options);
            let mut at_client = Node::default();
            at_client.say(SocketAddr::new(ip, port), b"hello");
            flush(&mut client, &mut at_client);
            at_server.received.clear();
            at_server.receive_until(&mut server, 1);
            assert_eq!(at_server.received[0].from, client_address);
            assert_eq!(at_server.received[0].from.is_ipv4(), ip.is_ipv4());
            flush(&mut server, &mut at_server);
            at_client.receive_until(&mut client, 1);
            assert_eq!(at_client.received[0].from, SocketAddr::new(ip, port));
        }
    });
}

#[test]
fn without_dual_stack_ipv4_stays_out() {
    let options = UdpOptions::default().dual_stack(false);
    let server = UdpDriver::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), &options);
    let port = server
        .as_ref()
        .expect("binds")
        .local_addr()
        .expect("an address")
        .port();
    // The IPv4 half of the port is free exactly when the socket did not take it.
    let other = UdpDriver::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), &options);
    assert!(other.is_ok());
}

#[test]
fn a_train_arrives_as_its_datagrams_with_and_without_offload() {
    let bytes: Vec<u8> = (0..40 * 1_200 + 17)
        .map(|index| (index % 251) as u8)
        .collect();
    both_paths(|options| {
        for (gso, gro) in [(true, true), (true, false), (false, true), (false, false)] {
            for ip in [V4, V6] {
                let options = options.clone().gso(gso).gro(gro);
                let (mut sender, _) = bind(ip, &options);
                let (mut receiver, address) = bind(ip, &options);
                let (mut from, mut to) = (Node::default(), Node::default());
                from.say_with(address, &bytes, Some(1_200), Ecn::Capable0);
                from.say(address, b"last");
                assert_eq!(flush(&mut sender, &mut from), 42);
                to.receive_until(&mut receiver, 42);
                let mut expected: Vec<&[u8]> = bytes.chunks(1_200).collect();
                expected.push(b"last");
                assert_eq!(to.payloads(), expected);
                assert_eq!(receiver.counters().datagrams_received, 42);
                assert_eq!(receiver.counters().bytes_received, bytes.len() as u64 + 4);
                assert_eq!(sender.counters().bytes_sent, bytes.len() as u64 + 4);
            }
        }
    });
}

/// Loopback hands a train over as it was sent, so this shows both ends of the offload at work.
#[test]
#[cfg(target_os = "linux")]
fn a_coalesced_train_is_split_again() {
    both_paths(|options| {
        let (mut sender, _) = bind(V4, &options);
        let (mut receiver, address) = bind(V4, &options);
        let (mut from, mut to) = (Node::default(), Node::default());
        for size in [100, 999, 1_400] {
            from.say_with(
                address,
                &vec![7; 30 * size + 1],
                Some(size),
                Ecn::NotCapable,
            );
        }
        assert_eq!(flush(&mut sender, &mut from), 93);
        assert!(sender.counters().send_calls <= 3);
        to.receive_until(&mut receiver, 93);
        assert_eq!(receiver.counters().trains_received, 3);
        let lengths: Vec<usize> = to
            .received
            .iter()
            .map(|received| received.bytes.len())
            .collect();
        let of_size = |size| std::iter::repeat_n(size, 30).chain([1]);
        let expected: Vec<usize> = [100, 999, 1_400].into_iter().flat_map(of_size).collect();
        assert_eq!(lengths, expected);
    });
}

#[test]
fn a_train_of_more_datagrams_than_the_kernel_takes_is_cut() {
    both_paths(|options| {
        let (mut sender, _) = bind(V4, &options);
        let (mut receiver, address) = bind(V4, &options);
        let (mut from, mut to) = (Node::default(), Node::default());
        let bytes: Vec<u8> = (0..2_000).map(|index| (index / 10) as u8).collect();
        from.say_with(address, &bytes, Some(10), Ecn::NotCapable);
        assert_eq!(flush(&mut sender, &mut from), 200);
        assert_eq!(sender.counters().trains_refused, 0);
        to.receive_until(&mut receiver, 200);
        assert_eq!(to.payloads(), bytes.chunks(10).collect::<Vec<_>>());
    });
}

#[test]
fn congestion_marks_pass_both_ip_versions() {
    let marks = [
        Ecn::NotCapable,
        Ecn::Capable0,
        Ecn::Capable1,
        Ecn::Congested,
    ];
    both_paths(|options| {
        let mut receiver = UdpDriver::bind_any(0, &options).expect("binds");
        let port = receiver.local_addr().expect("an address").port();
        let mut sender = UdpDriver::bind_any(0, &options).expect("binds");
        for ip in [V4, V6] {
            let (mut from, mut to) = (Node::default(), Node::default());
            let mut sent = Vec::new();
            // Runs longer than what makes the socket's own mark follow, then a mix.
            let runs = marks
                .into_iter()
                .flat_map(|mark| std::iter::repeat_n(mark, 100));
            for mark in runs.chain((0..100).map(|index| marks[index % 4])) {
                from.say_with(SocketAddr::new(ip, port), &[mark.bits()], None, mark);
                flush(&mut sender, &mut from);
                sent.push(mark);
                to.receive_until(&mut receiver, sent.len());
            }
            let received: Vec<Ecn> = to.received.iter().map(|received| received.ecn).collect();
            assert_eq!(received, sent);
        }
    });
}

#[test]
fn without_ecn_marks_are_neither_sent_nor_read() {
    both_paths(|options| {
        for (sending, receiving) in [(true, false), (false, true)] {
            let (mut sender, _) = bind(V4, &options.clone().ecn(sending));
            let (mut receiver, address) = bind(V4, &options.clone().ecn(receiving));
            let (mut from, mut to) = (Node::default(), Node::default());
            from.say_with(address, b"marked", None, Ecn::Capable0);
            flush(&mut sender, &mut from);
            to.receive_until(&mut receiver, 1);
            assert_eq!(to.received[0].ecn, Ecn::NotCapable);
        }
    });
}

#[test]
fn ten_thousand_datagrams_to_many_destinations_all_arrive() {
    both_paths(|options| {
        let (mut server, _) = bind(V4, &options);
        let mut clients: Vec<_> = (0..10).map(|_| bind(V4, &options)).collect();
        let mut at_server = Node::default();
        let mut at_clients: Vec<Node> = clients.iter().map(|_| Node::default()).collect();
        // In rounds of 500, which the smallest usual socket buffer holds.
        for round in 0..20_u32 {
            for index in 0..500_u32 {
                let (_, to) = clients[index as usize % 10];
                at_server.say(to, &[round.to_le_bytes(), index.to_le_bytes()].concat());
            }
            assert_eq!(flush(&mut server, &mut at_server), 500);
            for (node, (client, _)) in at_clients.iter_mut().zip(&mut clients) {
                node.receive_until(client, 50 * (round as usize + 1));
            }
        }
        assert_eq!(server.counters().datagrams_sent, 10_000);
        for (number, node) in at_clients.iter().enumerate() {
            let expected = (0..20_u32).flat_map(|round| {
                let indexes = (number as u32..500).step_by(10);
                indexes.map(move |index| [round.to_le_bytes(), index.to_le_bytes()].concat())
            });
            assert_eq!(node.payloads(), expected.collect::<Vec<_>>());
        }
    });
}

/// The point of the own Linux path: 64 and more destinations in one system call.
#[test]
#[cfg(target_os = "linux")]
fn one_system_call_serves_many_destinations() {
    let options = UdpOptions::default();
    let (mut server, _) = bind(V4, &options);
    let clients: Vec<_> = (0..128).map(|_| bind(V4, &options)).collect();
    let mut node = Node::default();
    for (_, to) in &clients {
        node.say(*to, b"state");
    }
    assert_eq!(flush(&mut server, &mut node), 128);
    assert_eq!(server.counters().send_calls, 1);
}

#[test]
fn one_receive_takes_a_bounded_share() {
    both_paths(|options| {
        let (mut sender, _) = bind(V4, &options);
        let (mut receiver, address) = bind(V4, &options.receive_limit(100).gro(false));
        let (mut from, mut to) = (Node::default(), Node::default());
        (0..300_u32).for_each(|index| from.say(address, &index.to_le_bytes()));
        flush(&mut sender, &mut from);
        let mut calls = 0;
        while to.received.len() < 300 {
            assert!(receiver.wait(support::PATIENCE).expect("waiting works"));
            let count = receiver.receive(NOW, &mut to).expect("receiving works");
            assert!(count < 100 + 64, "{count} datagrams in one call");
            calls += 1;
        }
        assert!(calls >= 2);
    });
}

#[test]
fn the_largest_datagram_arrives_whole_and_an_empty_one_too() {
    both_paths(|options| {
        let (mut sender, _) = bind(V4, &options);
        let (mut receiver, address) = bind(V4, &options);
        let (mut from, mut to) = (Node::default(), Node::default());
        let large: Vec<u8> = (0..65_487).map(|index| (index % 253) as u8).collect();
        from.say(address, &large);
        from.say(address, b"");
        assert_eq!(flush(&mut sender, &mut from), 2);
        to.receive_until(&mut receiver, 2);
        assert!(to.payloads() == [large.as_slice(), b""]);
    });
}

#[test]
fn a_refused_port_disturbs_nobody() {
    both_paths(|options| {
        let (mut server, _) = bind(V4, &options);
        let (mut client, client_address) = bind(V4, &options);
        let refused = bind(V4, &options).1;
        let nowhere = SocketAddr::new(V6, 9);
        let (mut at_server, mut at_client) = (Node::default(), Node::default());
        for index in 0..100_u8 {
            at_server.say(refused, b"anybody?");
            at_server.say(nowhere, b"an IPv6 address on an IPv4 socket");
            at_server.say(SocketAddr::new(V4, 0), b"port zero");
            at_server.say(client_address, &[index]);
            flush(&mut server, &mut at_server);
            server
                .receive(NOW, &mut at_server)
                .expect("reports by ICMP are no failure");
        }
        assert!(at_server.outgoing.is_empty() && !server.has_unsent());
        assert!(server.counters().unreachable >= 200);
        at_client.receive_until(&mut client, 100);
        assert_eq!(at_client.received.len(), 100);
    });
}

#[test]
fn a_tiny_send_buffer_loses_nothing_between_machine_and_kernel() {
    both_paths(|options| {
        let (mut sender, _) = bind(V4, &options.clone().send_buffer(1));
        let (mut receiver, address) = bind(V4, &options);
        assert!(sender.send_buffer().expect("readable") < 10_000);
        let (mut from, mut to) = (Node::default(), Node::default());
        for round in 0..10 {
            (0..20).for_each(|_| from.say(address, &[round; 1_200]));
            while !from.outgoing.is_empty() || sender.has_unsent() {
                flush(&mut sender, &mut from);
                if sender.has_unsent() {
                    sender.wait(support::PATIENCE).expect("waiting works");
                }
            }
            to.receive_until(&mut receiver, 20 * (round as usize + 1));
        }
        assert_eq!(sender.counters().datagrams_sent, 200);
    });
}

#[test]
fn waiting_ends_with_the_first_datagram_or_with_time() {
    both_paths(|options| {
        let (mut sender, _) = bind(V4, &options);
        let (receiver, address) = bind(V4, &options);
        assert!(
            !receiver
                .wait(Duration::from_millis(2))
                .expect("waiting works")
        );
        let mut from = Node::default();
        from.say(address, b"longer than the byte that a peek asks for");
        flush(&mut sender, &mut from);
        assert!(receiver.wait(support::PATIENCE).expect("waiting works"));
        assert!(
            receiver
                .wait(Duration::ZERO)
                .expect("what was not taken is still there")
        );
    });
}

#[test]
fn a_turn_handles_the_time_out_when_it_is_due() {
    let (mut driver, address) = bind(V4, &UdpOptions::default());
    let mut node = Node {
        timeout: Some(NOW),
        ..Node::default()
    };
    driver
        .poll(NOW - Duration::from_micros(1), &mut node)
        .expect("polling works");
    assert_eq!(node.timeouts_handled, 0);
    node.say(address, b"to myself");
    driver.poll(NOW, &mut node).expect("polling works");
    assert_eq!(node.timeouts_handled, 1);
    node.receive_until(&mut driver, 1);
}

#[test]
fn granted_buffers_are_readable_and_drivers_move_between_threads() {
    both_paths(|options| {
        let (driver, _) = bind(V4, &options.receive_buffer(100_000).send_buffer(50_000));
        assert_eq!(driver.receive_buffer().expect("readable"), 100_000);
        assert_eq!(driver.send_buffer().expect("readable"), 50_000);
        let moved = std::thread::spawn(move || driver.local_addr().map(|address| address.port()));
        assert!(
            moved
                .join()
                .expect("the thread ends")
                .is_ok_and(|port| port != 0)
        );
    });
}
