//! The client library against the relay, both without sockets.

use crate::common::{tcp_peer, udp_peer};
use muse_relay_v1::{Address, Client, Event, Limits, Relay, SendError, Update};
use muse_relay_v1::{StreamAction, StreamId, StreamMachine};
use muse_wire::{Datagram, Duration, Ecn, Instant, Machine};

/// A relay and its clients; everything arrives at once.
struct World {
    relay: Relay,
    clients: Vec<Client>,
    now: Instant,
}

impl World {
    fn new(clients: Vec<Client>) -> Self {
        let mut world = Self {
            relay: Relay::new(Instant::ZERO, Limits::default()),
            clients,
            now: Instant::ZERO,
        };
        for number in 0..world.clients.len() as u16 {
            let (id, server) = (StreamId(number), tcp_peer(200));
            assert!(world.relay.handle_open(world.now, id, tcp_peer(number)));
            assert!(world.clients[usize::from(number)].handle_open(world.now, StreamId(0), server));
        }
        // The welcome, and the announcements that it causes.
        world.exchange();
        world.exchange();
        world
    }

    fn tick(&mut self) {
        self.exchange();
        self.now = self.relay.poll_timeout().expect("there is a next tick");
        self.relay.handle_timeout(self.now);
        for client in &mut self.clients {
            if client.poll_timeout().is_some_and(|due| due <= self.now) {
                client.handle_timeout(self.now);
            }
        }
        self.exchange();
    }

    fn exchange(&mut self) {
        let (now, mut buffer) = (self.now, [0; 65_487]);
        for (number, client) in self.clients.iter_mut().enumerate() {
            let id = StreamId(number as u16);
            while let Some(action) = client.poll_stream(now) {
                if let StreamAction::Write(stream) = action {
                    let bytes = client.outgoing(stream).to_vec();
                    self.relay.handle_bytes(now, id, &bytes);
                    client.handle_written(now, stream, bytes.len());
                } else {
                    self.relay.handle_end(now, id);
                }
            }
            while let Some(transmit) = client.poll_transmit(now, &mut buffer) {
                let payload = &mut buffer[..transmit.len];
                let (from, ecn) = (udp_peer(number as u16), Ecn::NotCapable);
                self.relay
                    .handle_datagram(now, Datagram { from, ecn, payload });
            }
        }
        while let Some(action) = self.relay.poll_stream(now) {
            match action {
                StreamAction::Write(stream) => {
                    let bytes = self.relay.outgoing(stream).to_vec();
                    self.clients[usize::from(stream.0)].handle_bytes(now, StreamId(0), &bytes);
                    self.relay.handle_written(now, stream, bytes.len());
                }
                StreamAction::Close(stream) | StreamAction::Abort(stream) => {
                    self.clients[usize::from(stream.0)].handle_end(now, StreamId(0));
                }
                _ => (),
            }
        }
        while let Some(transmit) = self.relay.poll_transmit(now, &mut buffer) {
            let at = (0..self.clients.len()).find(|&number| udp_peer(number as u16) == transmit.to);
            let client = &mut self.clients[at.expect("an endpoint of ours")];
            for datagram in transmit.datagrams(&buffer[..]) {
                let (from, ecn) = (tcp_peer(200), Ecn::NotCapable);
                let payload = &mut datagram.to_vec()[..];
                client.handle_datagram(now, Datagram { from, ecn, payload });
            }
        }
    }

    fn events(&mut self, client: usize) -> Vec<Event> {
        std::iter::from_fn(|| self.clients[client].poll_event()).collect()
    }
}

fn address(number: u8) -> Address {
    Address::new(number).expect("not zero")
}

fn world(clients: usize) -> World {
    let mut world = World::new((0..clients).map(|_| Client::new()).collect());
    for client in 0..clients {
        let address = address(client as u8 + 1);
        assert_eq!(world.events(client), [Event::Welcome { address }]);
    }
    world
}

#[test]
fn clients_talk_over_tcp() {
    let mut world = world(3);
    world.clients[0].broadcast(5, b"all").expect("room");
    world.clients[0]
        .unicast(address(3), 6, b"one")
        .expect("room");
    world.clients[1].list().expect("room");
    world.clients[1].state(3).expect("room");
    world.clients[1].state(77).expect("room");
    world.tick();
    let all = Event::Broadcast {
        through: 5,
        data: b"all".to_vec(),
    };
    let one = Event::Unicast {
        from: address(1),
        through: 6,
        data: b"one".to_vec(),
    };
    let state = |address, active| Event::State { address, active };
    let addresses = vec![address(1), address(3)];
    assert_eq!(world.events(0), []);
    assert_eq!(world.events(2), [all.clone(), one]);
    assert_eq!(
        world.events(1),
        [
            all,
            Event::List { addresses },
            state(3, true),
            state(77, false)
        ]
    );
}

#[test]
fn clients_announce_themselves_and_talk_over_udp() {
    let mut world = world(3);
    assert_eq!(world.relay.endpoints(), 3);
    for step in 0..3 {
        world.clients[0]
            .update(Update::new(32).through(9), &[step])
            .expect("room");
    }
    let to_two = Update::new(7).to(address(2)).every_one(true);
    world.clients[2].update(to_two, b"x").expect("room");
    world.tick();
    let updates = |events: Vec<Event>| {
        let count = events.len();
        let update = |event| match event {
            Event::Update { header, data } => {
                Some((header.kind, header.control, header.time, data))
            }
            _ => None,
        };
        let updates: Vec<_> = events.into_iter().filter_map(update).collect();
        assert_eq!(updates.len(), count, "nothing else happened");
        updates
    };
    assert_eq!(
        updates(world.events(1)),
        [(32, 0x91, 1, vec![2]), (7, 2, 0, b"x".to_vec())]
    );
    assert_eq!(updates(world.events(2)), [(32, 0x91, 1, vec![2])]);
    assert_eq!(updates(world.events(0)), []);
}

#[test]
fn the_counter_starts_again_without_a_loss() {
    let clients = vec![Client::new().counter_from(u32::MAX - 2), Client::new()];
    let mut world = World::new(clients);
    world.events(1);
    for _ in 0..6 {
        world.clients[0].update(Update::new(1), b"x").expect("room");
        world.tick();
        assert_eq!(world.events(1).len(), 1);
    }
    assert_eq!(world.relay.stats().datagrams_stale, 0);
}

#[test]
fn announcements_go_on_so_that_routers_remember() {
    let mut world = world(1);
    let before = world.relay.stats().datagrams_in;
    while world.now < Instant::ZERO + Duration::from_secs(60) {
        world.tick();
    }
    let announced = world.relay.stats().datagrams_in - before;
    assert!((4..8).contains(&announced), "{announced}");
    assert_eq!(world.events(0), [], "keep-alives are dropped");
    let mut quiet = World::new(vec![Client::without_datagrams()]);
    quiet.tick();
    assert_eq!(quiet.relay.endpoints(), 0);
}

#[test]
fn ends_are_told() {
    let mut world = world(2);
    world.clients[0].close();
    world.tick();
    assert_eq!(world.events(0), [Event::Closed]);
    assert_eq!(world.relay.clients(), 1);
    assert_eq!(world.events(1), [], "nobody is told that another went");
    world.relay.close();
    world.tick();
    assert_eq!(world.events(1), [Event::Closed]);
    assert_eq!(
        world.clients[1].broadcast(0, b""),
        Err(SendError::NotConnected)
    );
    assert_eq!(
        world.clients[1].update(Update::new(0), b""),
        Err(SendError::NotConnected)
    );
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut world = world(1);
    let client = &mut world.clients[0];
    assert!(client.broadcast(0, &[0; 65_535]).is_ok());
    let too_long = |len, max| Err(SendError::TooLong { len, max });
    assert_eq!(client.broadcast(0, &[0; 65_536]), too_long(65_536, 65_535));
    assert_eq!(
        client.unicast(address(1), 0, &[0; 65_535]),
        too_long(65_535, 65_534)
    );
    assert_eq!(
        client.update(Update::new(0), &[0; 1_422]),
        too_long(1_422, 1_421)
    );
    let refused = (0..100).any(|_| client.broadcast(0, &[0; 65_535]) == Err(SendError::Full));
    assert!(refused, "what waits is bounded");
}

#[test]
fn a_server_that_speaks_something_else_is_left() {
    for bytes in [&[1, 0, 0, 2, 0][..], &[1, 0, 0, 1, 0, 0], &[0, 0, 0, 0, 0]] {
        let mut client = Client::new();
        assert!(client.handle_open(Instant::ZERO, StreamId(0), tcp_peer(1)));
        client.handle_bytes(Instant::ZERO, StreamId(0), bytes);
        assert_eq!(client.poll_event(), Some(Event::Closed), "{bytes:?}");
    }
}
