//! Hosts over real sockets, on the loopback interface. Turns of the loop are counted, not timed.
#![allow(clippy::panic, reason = "a test fails by it")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use muse_rp::{Channel, ConnectionId, EndReason, Event, HostOptions};
use muse_rp_driver::{BindError, HostDriver};
use muse_wire::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TURNS_MAX: usize = 20_000;
const MESSAGES: u32 = 500;

fn bind() -> HostDriver {
    HostDriver::bind(HERE, [0, 0], HostOptions::default())
        .expect("sockets on the loopback interface")
}

fn address(driver: &HostDriver) -> SocketAddr {
    (HERE, driver.ports().expect("bound")[0]).into()
}

/// Runs both until `done` says so, which sees the events of each.
fn run(drivers: &mut [HostDriver; 2], mut done: impl FnMut(usize, &mut HostDriver, Event) -> bool) {
    for _ in 0..TURNS_MAX {
        for (index, driver) in drivers.iter_mut().enumerate() {
            driver.poll().expect("our sockets work");
            while let Some(event) = driver.host().poll_event() {
                if done(index, driver, event) {
                    return;
                }
            }
            driver.flush().expect("our sockets work");
            driver
                .wait(Duration::from_millis(1))
                .expect("our sockets work");
        }
    }
    panic!("not done in {TURNS_MAX} turns");
}

/// Two hosts, connected because both called each other.
fn connected() -> ([HostDriver; 2], [ConnectionId; 2]) {
    let mut drivers = [bind(), bind()];
    let addresses = [address(&drivers[0]), address(&drivers[1])];
    let called = [
        drivers[0].connect(addresses[1]).expect("the first"),
        drivers[1].connect(addresses[0]).expect("the first"),
    ];
    let mut left = 2;
    run(&mut drivers, |index, _, event| {
        assert_eq!(
            event,
            Event::Connected {
                connection: called[index]
            }
        );
        left -= 1;
        left == 0
    });
    (drivers, called)
}

#[test]
fn messages_travel_on_both_channels_and_the_end_is_told() {
    let (mut drivers, connections) = connected();
    for number in 0..MESSAGES {
        for channel in Channel::ALL {
            let payload = number.to_le_bytes();
            let sent = drivers[0].host().send(connections[0], channel, 5, &payload);
            sent.expect("room in the queue");
        }
    }
    let (mut reliable, mut partial) = (Vec::new(), Vec::new());
    run(&mut drivers, |index, _, event| {
        let Event::Message(message) = event else {
            panic!("{event:?}");
        };
        assert_eq!((index, message.kind), (1, 5));
        let payload = message.payload[..].try_into().expect("four bytes");
        let seen = match message.channel {
            Channel::Reliable => &mut reliable,
            Channel::Partial => &mut partial,
        };
        seen.push(u32::from_le_bytes(payload));
        [&reliable, &partial]
            .iter()
            .all(|seen| seen.last() == Some(&(MESSAGES - 1)))
    });
    assert!(reliable.iter().copied().eq(0..MESSAGES));
    assert!(partial.is_sorted_by(|a, b| a < b) && partial.len() as u32 >= MESSAGES * 8 / 10);
    drivers[0].close().expect("our sockets work");
    let ended = drivers[0].host().poll_event();
    let by_us = Event::Disconnected {
        connection: connections[0],
        reason: EndReason::ByUs,
    };
    assert_eq!(ended, Some(by_us));
    run(&mut drivers, |index, _, event| {
        let reason = EndReason::ByPeer;
        assert_eq!(
            (index, event),
            (
                1,
                Event::Disconnected {
                    connection: connections[1],
                    reason
                }
            )
        );
        true
    });
}

#[test]
fn a_port_that_is_taken_is_named() {
    let first = bind();
    let port = first.ports().expect("bound")[0];
    let Err(error) = HostDriver::bind(HERE, [port, 0], HostOptions::default()) else {
        panic!("bound twice");
    };
    assert!(matches!(error, BindError::Socket { address, .. } if address.port() == port));
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")));
}
