//! Browsers at a relay: a room that one opens and others join, over real sessions, beside a native player.
#![cfg(feature = "web")]

#[path = "support/browser.rs"]
mod browser;

use std::net::SocketAddr;
use std::time::Instant;

use browser::{PATIENCE, Pipe, every_mode, loopback};
use muse_drivers::{
    ClientDriver, Clock, Driver, RoomOptions, SystemEntropy, UdpDriver, UdpOptions, UdpWebDriver,
    WebKind, WebListener, WebOptions, new_key,
};
use muse_relay::{Limits, Link, LinkEvent, Refusal, Relay, Relayed, RoomCode, RoomKey};
use muse_transport::{
    Connect, ConnectionId, Endpoint, Event, ServerKey, ServerOptions, ServerPublicKey,
};
use muse_wire::{Datagram, Ecn, Machine};

const KINDS: [WebKind; 2] = [WebKind::WebTransport, WebKind::WebSocket];
/// The channel of `every_mode` that is reliable and in order.
const ORDERED: u8 = 4;

/// A relay for UDP and browsers.
struct Running {
    relay: Relay,
    driver: UdpWebDriver,
    clock: Clock,
}

impl Running {
    fn start(limits: Limits) -> Self {
        let udp = UdpDriver::bind(loopback(), &UdpOptions::default()).expect("a free port");
        let web = WebListener::bind(WebOptions::new(loopback()).for_relay()).expect("free ports");
        let clock = Clock::start();
        Self {
            relay: Relay::danger_open(clock.now(), limits, [7; 32]),
            driver: UdpWebDriver::new(udp).with_web(web).expect("a socket"),
            clock,
        }
    }

    fn web(&self) -> &WebListener {
        self.driver.web().expect("given")
    }

    fn turn(&mut self) {
        let now = self.clock.now();
        self.driver.poll(now, &mut self.relay).expect("a socket");
    }
}

/// A host or a guest in a browser.
struct Player {
    pipe: Pipe,
    machine: Relayed<Endpoint>,
    peers: Vec<ConnectionId>,
    messages: Vec<Vec<u8>>,
    events: Vec<LinkEvent>,
    clock: Clock,
}

impl Player {
    async fn host(relay: &Running, kind: WebKind, room: RoomKey, key: ServerKey) -> Self {
        let clock = Clock::start();
        let mut endpoint = endpoint(kind);
        endpoint.listen(ServerOptions::new(key));
        let link = Link::open(clock.now(), at_relay(), room, [room_byte(room); 32]);
        Self::new(
            relay,
            kind,
            clock,
            Relayed::new(endpoint, link.direct(false)),
        )
        .await
    }

    async fn guest(relay: &Running, kind: WebKind, code: RoomCode, key: ServerPublicKey) -> Self {
        let clock = Clock::start();
        let mut endpoint = endpoint(kind);
        endpoint
            .connect(clock.now(), Link::host_address(), Connect::pinned(key))
            .expect("room for one");
        let link = Link::join(clock.now(), at_relay(), code, [2; 32]);
        Self::new(
            relay,
            kind,
            clock,
            Relayed::new(endpoint, link.direct(false)),
        )
        .await
    }

    async fn new(relay: &Running, kind: WebKind, clock: Clock, machine: Relayed<Endpoint>) -> Self {
        Self {
            pipe: Pipe::open(relay.web(), kind).await.expect("a session"),
            machine,
            peers: Vec::new(),
            messages: Vec::new(),
            events: Vec::new(),
            clock,
        }
    }

    fn send(&mut self, to: usize, payload: &[u8]) {
        let (now, peer) = (self.clock.now(), self.peers[to]);
        let endpoint = self.machine.machine_mut();
        endpoint.send(now, peer, ORDERED, payload).expect("room");
    }

    async fn turn(&mut self) {
        let mut packet = [0; 1_500];
        let now = self.clock.now();
        while let Some(transmit) = self.machine.poll_transmit(now, &mut packet) {
            for datagram in transmit.datagrams(&packet) {
                // A session that is over loses it, as networks do.
                let _ = self.pipe.send(datagram).await;
            }
        }
        for _ in 0..64 {
            let Some(Some(mut bytes)) = self.pipe.glance().await else {
                break;
            };
            let datagram = Datagram {
                from: at_relay(),
                ecn: Ecn::NotCapable,
                payload: &mut bytes,
            };
            self.machine.handle_datagram(self.clock.now(), datagram);
        }
        let now = self.clock.now();
        if self.machine.poll_timeout().is_some_and(|due| due <= now) {
            self.machine.handle_timeout(now);
        }
        let mut buffer = Vec::new();
        while let Some(event) = self.machine.machine_mut().poll_event(&mut buffer) {
            match event {
                Event::Connected { connection, .. } => self.peers.push(connection),
                Event::Message { payload, .. } => self.messages.push(payload.to_vec()),
                _ => {}
            }
        }
        while let Some(event) = self.machine.link_mut().poll_event() {
            self.events.push(event);
        }
    }
}

/// Everything goes into the one session: the address only has to be the same each time.
fn at_relay() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

/// Links need randomness of their own: two with the same seed would be one to the relay.
fn room_byte(room: RoomKey) -> u8 {
    room.code().to_string().bytes().fold(3, u8::wrapping_add)
}

fn endpoint(kind: WebKind) -> Endpoint {
    let config = every_mode().link(kind.link()).build().expect("sensible");
    Endpoint::new(config, SystemEntropy::new().expect("randomness"))
}

/// Runs all of them until `done`, or gives up.
async fn until(
    what: &str,
    relay: &mut Running,
    players: &mut [&mut Player],
    mut done: impl FnMut(&mut [&mut Player], &Relay) -> bool,
) {
    let end = Instant::now() + PATIENCE;
    while !done(players, &relay.relay) {
        let events: Vec<_> = players.iter().map(|player| &player.events).collect();
        assert!(
            Instant::now() < end,
            "waited in vain for {what}: {:?}, {events:?}, {:?}",
            relay.relay,
            relay.web().counters()
        );
        relay.turn();
        for player in players.iter_mut() {
            player.turn().await;
        }
        tokio::task::yield_now().await;
    }
}

fn numbers(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|it| it.to_le_bytes().to_vec()).collect()
}

#[tokio::test]
async fn browsers_and_a_native_player_meet_and_a_new_session_goes_on() {
    for kind in KINDS {
        let mut relay = Running::start(Limits::default());
        let (room, key) = (RoomKey::new([5; 16]), new_key().expect("randomness"));
        let public = key.public();
        let mut host = Player::host(&relay, kind, room, key).await;
        until("a room", &mut relay, &mut [&mut host], |all, _| {
            matches!(all[0].events[..], [LinkEvent::Opened { .. }])
        })
        .await;
        let mut guest = Player::guest(&relay, kind, room.code(), public).await;
        let udp = relay.driver.local_addr().expect("bound");
        let options = RoomOptions::default();
        let mut native = ClientDriver::join(
            udp,
            room.code(),
            options,
            every_mode(),
            Connect::pinned(public),
        )
        .expect("a free port");
        let mut heard = Vec::new();
        until(
            "two guests",
            &mut relay,
            &mut [&mut host, &mut guest],
            |all, _| {
                native.tick(|_, _| {}).expect("a socket");
                all[0].peers.len() == 2 && all[1].peers.len() == 1 && native.is_connected()
            },
        )
        .await;

        // Long ones need every byte that the link carries, with the relay's in front.
        let long = vec![9; 20_000];
        for payload in numbers(100).iter().chain([&long]) {
            host.send(0, payload);
            host.send(1, payload);
            guest.send(0, payload);
            native.send(ORDERED, payload).expect("room");
        }
        let mut expected = numbers(100);
        expected.push(long.clone());
        until(
            "all messages",
            &mut relay,
            &mut [&mut host, &mut guest],
            |all, _| {
                native
                    .tick(|_, event| {
                        if let Event::Message { payload, .. } = event {
                            heard.push(payload.to_vec());
                        }
                    })
                    .expect("a socket");
                all[0].messages.len() == 202 && all[1].messages.len() == 101 && heard.len() == 101
            },
        )
        .await;
        assert!(guest.messages == expected && heard == expected, "{kind:?}");

        // Both lose their sessions at once, the guest comes back by the other kind of link.
        let other = KINDS[usize::from(kind == KINDS[0])];
        host.pipe = Pipe::open(relay.web(), kind).await.expect("a session");
        guest.pipe = Pipe::open(relay.web(), other).await.expect("a session");
        for payload in numbers(100) {
            host.send(0, &payload);
            host.send(1, &payload);
            guest.send(0, &payload);
        }
        until(
            "the rest",
            &mut relay,
            &mut [&mut host, &mut guest],
            |all, relay| {
                native.tick(|_, _| {}).expect("a socket");
                let messages = all[0].messages.len() == 302 && all[1].messages.len() == 201;
                messages && relay.stats().moves == 2
            },
        )
        .await;
        assert_eq!(guest.messages[101..], numbers(100)[..]);
        assert_eq!(
            relay.relay.stats().directs,
            0,
            "nobody reaches a browser directly"
        );
    }
}

#[tokio::test]
async fn limits_hold_for_browsers() {
    let limits = Limits::default().rooms_per_ip(1).packets_per_second(20);
    let mut relay = Running::start(limits);
    let key = || new_key().expect("randomness");
    let (first, second) = (RoomKey::new([5; 16]), RoomKey::new([6; 16]));
    let host_key = key();
    let public = host_key.public();
    let mut host = Player::host(&relay, KINDS[0], first, host_key).await;
    until("a room", &mut relay, &mut [&mut host], |all, _| {
        !all[0].events.is_empty()
    })
    .await;
    // Another session is another address to the relay, of the same place.
    let mut other = Player::host(&relay, KINDS[1], second, key()).await;
    until(
        "an answer",
        &mut relay,
        &mut [&mut host, &mut other],
        |all, _| !all[1].events.is_empty(),
    )
    .await;
    assert_eq!(other.events, [LinkEvent::Refused(Refusal::NoPlace)]);

    let mut guest = Player::guest(&relay, KINDS[1], first.code(), public).await;
    until(
        "a guest",
        &mut relay,
        &mut [&mut host, &mut guest],
        |all, _| !all[1].peers.is_empty(),
    )
    .await;
    for payload in numbers(400) {
        guest.send(0, &[payload.as_slice(), &[0; 1_000]].concat());
    }
    until(
        "the limit",
        &mut relay,
        &mut [&mut host, &mut guest],
        |_, relay| relay.stats().limited > 0,
    )
    .await;
}

/// A stranger in a browser gets no more out of the relay than it has put in, and an id of another's session is no proof.
#[tokio::test]
async fn a_stranger_in_a_browser_gets_nothing_for_nothing() {
    use muse_relay::packet::{PACKET_LEN_MAX, Packet, VERSION};
    let mut relay = Running::start(Limits::default());
    let mut pipe = Pipe::open(relay.web(), WebKind::WebTransport)
        .await
        .expect("a session");
    let mut sent = 0;
    let mut buffer = [0; PACKET_LEN_MAX];
    let hello = Packet::Hello {
        version: VERSION,
        random: [1; 8],
    };
    let unknown = muse_relay::LegId::from_bits(77);
    for packet in [
        hello,
        Packet::Keep { id: unknown },
        Packet::Leave { id: unknown },
    ] {
        let len = packet.emit(&mut buffer);
        pipe.send(&buffer[..len]).await.expect("a session");
        sent += len;
    }
    let (mut got, mut answers) = (0, 0);
    let end = Instant::now() + PATIENCE;
    while answers < 2 && Instant::now() < end {
        relay.turn();
        if let Some(Some(bytes)) = pipe.glance().await {
            (got, answers) = (got + bytes.len(), answers + 1);
        }
    }
    assert_eq!(
        answers, 2,
        "a cookie, and news of an id that does not exist"
    );
    assert!(got <= sent, "{got} for {sent}");
}
