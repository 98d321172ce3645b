//! A server behind a relay and a client that has its invitation, over real sockets.

use std::net::SocketAddr;

use muse_drivers::{ClientDriver, Clock, Driver, EndpointDriver, UdpDriver, UdpOptions, new_key};
use muse_relay::{Invitation, Limits, LinkEvent, Relay};
use muse_transport::{ChannelConfig, Config, Delivery, Event, ServerOptions};

/// A relay at a port of its own.
struct Running {
    relay: Relay,
    driver: UdpDriver,
    clock: Clock,
}

impl Running {
    fn start() -> Self {
        let driver = UdpDriver::bind(([127, 0, 0, 1], 0).into(), &UdpOptions::default());
        let clock = Clock::start();
        Self {
            relay: Relay::danger_open(clock.now(), Limits::default(), [7; 32]),
            driver: driver.expect("a free port"),
            clock,
        }
    }

    fn address(&self) -> SocketAddr {
        self.driver.local_addr().expect("it is bound")
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        self.driver.poll(now, &mut self.relay).expect("a socket");
    }
}

fn config() -> Config {
    Config::new(7).channel(ChannelConfig::new(Delivery::ReliableOrdered))
}

#[test]
fn an_invitation_leads_to_the_host_and_the_relay_is_left() {
    let mut relay = Running::start();
    let key = new_key().expect("randomness");
    let host_key = *key.public().as_bytes();
    let options = ServerOptions::new(key);
    let mut server = EndpointDriver::bind("127.0.0.1:0", config(), options).expect("a free port");
    let code = server.open_room(relay.address()).expect("randomness");
    let mut opened = false;
    while !opened {
        relay.turn();
        server.tick(|_, _| {}).expect("a socket");
        while let Some(event) = server.poll_relay_event() {
            opened |= matches!(event, LinkEvent::Opened { .. });
        }
    }
    let invitation = Invitation {
        relay: relay.address(),
        code: code.room(),
        host_key,
    };
    let copied = invitation.to_string().parse().expect("copied whole");
    let mut client = ClientDriver::accept_invitation(&copied, config()).expect("a free port");
    let (mut sent, mut echoes, mut direct) = (0_u32, Vec::new(), false);
    // It goes on until the direct way is taken and something has come that way.
    while !direct || echoes.len() < 50 || echoes.len() < sent as usize {
        relay.turn();
        client
            .tick(|client, event| match event {
                Event::Message { payload, .. } => echoes.push(payload.to_vec()),
                Event::Connected { .. } | Event::AddressChanged { .. } => {
                    for _ in 0..25 {
                        sent += 1;
                        let bytes = sent.to_le_bytes();
                        client.send(0, &bytes).expect("room in the queue");
                    }
                }
                other => assert!(matches!(other, Event::Resumed { .. }), "{other:?}"),
            })
            .expect("a socket");
        server
            .tick(|server, event| {
                if let Event::Message {
                    connection,
                    channel,
                    payload,
                } = event
                {
                    let sent = server.send(connection, channel, payload);
                    sent.expect("room in the queue");
                }
            })
            .expect("a socket");
        while let Some(event) = client.poll_relay_event() {
            direct |= matches!(event, LinkEvent::Direct { .. });
        }
    }
    let expected: Vec<Vec<u8>> = (1..=sent).map(|it| it.to_le_bytes().to_vec()).collect();
    assert_eq!(echoes, expected);
    assert!(
        client
            .relay()
            .is_some_and(|link| link.is_direct(client.server_addr()))
    );
    assert_eq!(relay.relay.stats().directs, 1);
}
