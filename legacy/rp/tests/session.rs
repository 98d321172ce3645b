//! The recorded session of the original, datagram by datagram, with the host in the place of either side.
#![allow(clippy::panic, reason = "a test fails by it")]

mod support {
    #![allow(dead_code, reason = "each test uses a part of it")]
    pub(crate) mod vectors;
}

use std::net::SocketAddr;

use muse_rp::packet::{Flags, Packet};
use muse_rp::{Channel, ConnectionId, EndReason, Event, Host, HostOptions};
use muse_wire::{Duration, Instant};
use support::vectors::datagram;

use Channel::{Partial, Reliable};

fn server_address(channel: Channel) -> SocketAddr {
    let port = [17_777, 17_778][channel as usize];
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn client_address(channel: Channel) -> SocketAddr {
    let port = [50_001, 50_002][channel as usize];
    SocketAddr::from(([192, 0, 2, 2], port))
}

/// A host whose peer is played by the vectors.
struct Played {
    host: Host,
    peer: fn(Channel) -> SocketAddr,
    now: Instant,
}

impl Played {
    fn server() -> Self {
        let options = HostOptions::default()
            .ports(17_777, 17_778)
            .ack_delay(Duration::ZERO)
            .window(1_000)
            .percent(80);
        let mut host = Host::new(options, 1).expect("valid options");
        host.listen(true);
        Self {
            host,
            peer: client_address,
            now: Instant::ZERO,
        }
    }

    fn receive(&mut self, channel: Channel, datagram: &[u8]) {
        let from = (self.peer)(channel);
        self.host.handle_datagram(self.now, channel, from, datagram);
    }

    /// Everything that a socket sends now.
    fn sent(&mut self, channel: Channel) -> Vec<Vec<u8>> {
        let mut buffer = [0; 1_000];
        let peer = (self.peer)(channel);
        std::iter::from_fn(|| {
            let (to, len) = self.host.poll_transmit(self.now, channel, &mut buffer)?;
            assert_eq!(to, peer, "the answer goes to the real source");
            Some(buffer[..len].to_vec())
        })
        .collect()
    }

    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(due) = self.host.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.host.handle_timeout(self.now);
        }
        self.now = until;
    }

    fn connected(&mut self) -> ConnectionId {
        match self.host.poll_event() {
            Some(Event::Connected { connection }) => connection,
            other => panic!("{other:?}"),
        }
    }

    fn message(&mut self) -> (Channel, u16, Vec<u8>) {
        match self.host.poll_event() {
            Some(Event::Message(message)) => (message.channel, message.kind, message.payload),
            other => panic!("{other:?}"),
        }
    }
}

fn named(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| datagram(name)).collect()
}

#[test]
fn a_server_says_what_the_original_says() {
    let mut server = Played::server();
    server.receive(Reliable, &datagram("init1"));
    assert_eq!(server.sent(Reliable), named(&["init2"]));
    server.receive(Reliable, &datagram("init1"));
    assert_eq!(server.sent(Reliable), named(&[]), "a repetition is ignored");
    server.receive(Reliable, &datagram("ack_of_init2"));
    server.receive(Partial, &datagram("init3"));
    server.wait(Duration::ZERO);
    assert_eq!(server.sent(Partial), named(&["init4"]));
    let connection = server.connected();
    server.receive(Partial, &datagram("ack_of_init4"));
    for number in 1..=3 {
        server.receive(Reliable, &datagram(&format!("reliable_data_{number}")));
        assert_eq!(
            server.sent(Reliable),
            named(&[&format!("ack_reliable_{number}")])
        );
        let payload = format!("m{number}").into_bytes();
        assert_eq!(server.message(), (Reliable, 0x0A0B, payload));
    }
    for number in 1..=2 {
        server.receive(Partial, &datagram(&format!("partial_data_{number}")));
        assert_eq!(
            server.sent(Partial),
            named(&[&format!("ack_partial_{number}")])
        );
        assert_eq!(server.message().0, Partial);
    }
    server.receive(Reliable, &datagram("reliable_data_empty"));
    assert_eq!(server.sent(Reliable), named(&["ack_empty"]));
    assert_eq!(server.message(), (Reliable, 3, Vec::new()));
    for payload in [b"m1", b"m2"] {
        let sent = server.host.send(connection, Reliable, 0x0101, payload);
        sent.expect("connected");
    }
    let sent = server.host.send(connection, Partial, 0x0102, b"m1");
    sent.expect("connected");
    let reliable = ["server_reliable_data_1", "server_reliable_data_2"];
    assert_eq!(server.sent(Reliable), named(&reliable));
    assert_eq!(server.sent(Partial), named(&["server_partial_data_1"]));
    server.receive(Reliable, &datagram("ack_server_reliable_1"));
    server.receive(Reliable, &datagram("ack_server_reliable_2"));
    server.receive(Partial, &datagram("ack_server_partial_1"));
    assert_eq!(server.host.unacknowledged(connection, Reliable), 0);
    assert_eq!(server.host.unacknowledged(connection, Partial), 0);
    pings_and_end(&mut server, connection);
}

fn pings_and_end(server: &mut Played, connection: ConnectionId) {
    server.wait(Duration::from_secs(1));
    assert_eq!(server.sent(Reliable), named(&["ping_request_server"]));
    server.wait(Duration::from_millis(30));
    server.receive(Reliable, &datagram("ping_response_client"));
    let stats = server.host.connection_stats(connection).expect("open");
    assert_eq!(stats.rtt, Some(Duration::from_millis(30)));
    server.receive(Reliable, &datagram("ping_request_client"));
    server.wait(Duration::from_millis(2) - Duration::from_micros(1));
    assert_eq!(server.sent(Reliable), named(&[]), "not before 2 ms");
    server.wait(Duration::from_millis(25));
    assert_eq!(server.sent(Reliable), named(&["ping_response_server"]));
    server.receive(Reliable, &datagram("end_client"));
    let reason = EndReason::ByPeer;
    assert_eq!(
        server.host.poll_event(),
        Some(Event::Disconnected { connection, reason })
    );
    assert_eq!(server.sent(Reliable), named(&[]), "nothing to acknowledge");
    server.receive(Reliable, &datagram("reliable_data_1"));
    assert_eq!(server.sent(Reliable), named(&[]), "unknown by now");
}

#[test]
fn a_server_ends_and_wraps_like_the_original() {
    let mut server = Played::server();
    let init1 = |sequence: u32, ack: u32| {
        let mut datagram = datagram("init1");
        datagram[..4].copy_from_slice(&sequence.to_le_bytes());
        datagram[4..8].copy_from_slice(&ack.to_le_bytes());
        datagram
    };
    server.receive(Reliable, &init1(u32::MAX - 1, u32::MAX - 2));
    server.sent(Reliable);
    let mut init3 = init1(3_001, 4_000);
    init3[11..].copy_from_slice(&datagram("init3")[11..]);
    server.receive(Partial, &init3);
    server.wait(Duration::ZERO);
    server.sent(Partial);
    server.receive(Partial, &init3);
    assert_eq!(server.sent(Partial), named(&["ack_to_duplicate_init3"]));
    server.receive(Reliable, &datagram("wrap_reliable_ffffffff"));
    server.sent(Reliable);
    server.receive(Reliable, &datagram("wrap_reliable_0"));
    assert_eq!(server.sent(Reliable), named(&["wrap_ack_0"]));
    let connection = server.connected();
    assert_eq!(server.message().2, b"m1");
    assert_eq!(server.message().2, b"m2");
    server.host.disconnect(connection);
    assert_eq!(server.sent(Reliable), named(&["end_server_one"]));
}

/// A client that was answered, with the numbers it drew in place of those in the vectors.
struct Client {
    played: Played,
    connection: ConnectionId,
    numbers: [[u32; 2]; 2],
}

/// S, A, S2 and A2 of the recorded session.
const RECORDED: [[u32; 2]; 2] = [[0x0102_0304, 0x1112_1314], [0x2122_2324, 0x3132_3334]];

impl Client {
    fn call() -> Self {
        let options = HostOptions::default()
            .ports(50_001, 50_002)
            .ack_delay(Duration::ZERO);
        let mut host = Host::new(options, 7).expect("valid options");
        let connection = host
            .connect(Instant::ZERO, server_address(Reliable))
            .expect("the first");
        let mut played = Played {
            host,
            peer: server_address,
            now: Instant::ZERO,
        };
        let init1 = played.sent(Reliable);
        let packet = Packet::parse(&init1[0]).expect("a datagram");
        let mut client = Self {
            numbers: [[packet.sequence, packet.ack], RECORDED[1]],
            played,
            connection,
        };
        assert_eq!(init1, [client.of_client(Reliable, "init1")]);
        // The partial channel's numbers show in INIT3.
        client.receive(Reliable, "init2");
        assert_eq!(
            client.played.sent(Reliable),
            [client.of_client(Reliable, "ack_of_init2")]
        );
        let init3 = client.played.sent(Partial);
        let packet = Packet::parse(&init3[0]).expect("a datagram");
        client.numbers[1] = [packet.sequence.wrapping_sub(1), packet.ack];
        assert_eq!(init3, [client.of_client(Partial, "init3")]);
        client
    }

    fn open() -> Self {
        let mut client = Self::call();
        client.receive(Partial, "init4");
        assert_eq!(
            client.played.sent(Partial),
            [client.of_client(Partial, "ack_of_init4")]
        );
        assert_eq!(client.played.connected(), client.connection);
        assert_eq!(
            client.played.host.poll_event(),
            None,
            "INIT4 is not for the application"
        );
        client
    }

    fn receive(&mut self, channel: Channel, name: &str) {
        let datagram = self.shift(channel, name, [1, 0]);
        self.played.receive(channel, &datagram);
    }

    fn of_client(&self, channel: Channel, name: &str) -> Vec<u8> {
        self.shift(channel, name, [0, 1])
    }

    /// The vector with its sequence and ack moved by the difference between the numbers drawn and the recorded ones.
    fn shift(&self, channel: Channel, name: &str, fields: [usize; 2]) -> Vec<u8> {
        let recorded = datagram(name);
        let packet = Packet::parse(&recorded).expect("a datagram");
        let mut datagram = recorded.clone();
        if packet.flags == Flags::PING || (packet.flags == Flags::END && packet.ack == 0) {
            return datagram;
        }
        let index = channel as usize;
        let moved = |value: u32, field: usize| {
            let by = self.numbers[index][field].wrapping_sub(RECORDED[index][field]);
            value.wrapping_add(by).to_le_bytes()
        };
        datagram[..4].copy_from_slice(&moved(packet.sequence, fields[0]));
        datagram[4..8].copy_from_slice(&moved(packet.ack, fields[1]));
        datagram
    }
}

#[test]
fn a_client_says_what_the_original_says() {
    let mut client = Client::open();
    let connection = client.connection;
    for payload in [&b"m1"[..], b"m2", b"m3"] {
        let sent = client
            .played
            .host
            .send(connection, Reliable, 0x0A0B, payload);
        sent.expect("connected");
    }
    for payload in [b"m1", b"m2"] {
        let sent = client
            .played
            .host
            .send(connection, Partial, 0x0A0C, payload);
        sent.expect("connected");
    }
    let reliable = ["reliable_data_1", "reliable_data_2", "reliable_data_3"];
    let reliable = reliable.map(|name| client.of_client(Reliable, name));
    assert_eq!(client.played.sent(Reliable), reliable);
    let partial = ["partial_data_1", "partial_data_2"];
    let partial = partial.map(|name| client.of_client(Partial, name));
    assert_eq!(client.played.sent(Partial), partial);
    client.receive(Reliable, "ack_reliable_3");
    client.receive(Partial, "ack_partial_2");
    let sent = client.played.host.send(connection, Reliable, 3, b"");
    sent.expect("connected");
    assert_eq!(
        client.played.sent(Reliable),
        [client.of_client(Reliable, "reliable_data_empty")]
    );
    client.receive(Reliable, "ack_empty");
    for (channel, name, ack) in [
        (Partial, "server_partial_data_1", "ack_server_partial_1"),
        (Reliable, "server_reliable_data_1", "ack_server_reliable_1"),
        (Reliable, "server_reliable_data_2", "ack_server_reliable_2"),
    ] {
        client.receive(channel, name);
        assert_eq!(
            client.played.sent(channel),
            [client.of_client(channel, ack)]
        );
        assert_eq!(client.played.message().0, channel);
    }
    client.receive(Reliable, "ping_request_server");
    client.played.wait(Duration::from_millis(25));
    assert_eq!(
        client.played.sent(Reliable),
        named(&["ping_response_client"])
    );
    client.played.wait(Duration::from_millis(990));
    assert_eq!(
        client.played.sent(Reliable),
        named(&["ping_request_client"])
    );
    client.played.host.disconnect(connection);
    assert_eq!(client.played.sent(Reliable), named(&["end_client"]));
}

#[test]
fn a_client_spares_the_original_what_stops_it() {
    let mut client = Client::call();
    client.receive(Reliable, "ping_request_server");
    client.played.wait(Duration::from_millis(100));
    assert_eq!(
        client.played.sent(Reliable),
        named(&[]),
        "no answer before INIT4"
    );
    client.receive(Partial, "server_partial_data_1");
    let packets = client.played.sent(Partial);
    let acks: Vec<u32> = packets
        .iter()
        .map(|packet| Packet::parse(packet).expect("a datagram").ack)
        .collect();
    assert_eq!(acks, [client.numbers[1][1]], "INIT4 is not skipped");
    client.receive(Partial, "init4");
    assert_eq!(client.played.connected(), client.connection);
    client.played.sent(Partial);
    client.receive(Partial, "init4");
    assert_eq!(
        client.played.sent(Partial),
        [client.of_client(Partial, "ack_of_init4")]
    );
    client.receive(Reliable, "init2");
    assert_eq!(
        client.played.sent(Reliable),
        [client.of_client(Reliable, "ack_of_init2")]
    );
}

#[test]
fn a_numbered_end_is_acknowledged_once_and_obeyed() {
    let mut client = Client::open();
    let end = client.shift(Reliable, "end_server_all", [1, 0]);
    client.played.receive(Reliable, &end);
    let answers = client.played.sent(Reliable);
    let answer = Packet::parse(&answers[0]).expect("a datagram");
    let number = Packet::parse(&end).expect("a datagram").sequence;
    assert_eq!(
        (answers.len(), answer.flags, answer.ack),
        (1, Flags::ACK, number)
    );
    let reason = EndReason::ByPeer;
    let connection = client.connection;
    assert_eq!(
        client.played.host.poll_event(),
        Some(Event::Disconnected { connection, reason })
    );
    client.played.receive(Reliable, &end);
    assert_eq!(client.played.sent(Reliable), named(&[]));
}

#[test]
fn an_offer_is_repeated_late_and_not_after_the_answer() {
    let mut server = Played::server();
    server.receive(Reliable, &datagram("init1"));
    assert_eq!(server.sent(Reliable).len(), 1);
    server.wait(Duration::from_millis(999));
    assert_eq!(server.sent(Reliable).len(), 0);
    server.wait(Duration::from_millis(1));
    assert_eq!(server.sent(Reliable), named(&["init2"]));
    server.receive(Partial, &datagram("init3"));
    server.wait(Duration::from_millis(1_500));
    let repeated = server.sent(Reliable);
    assert!(!repeated.contains(&datagram("init2")), "{repeated:?}");
    assert!(server.sent(Partial).contains(&datagram("init4")));
    // A client that never joins is forgotten.
    let mut server = Played::server();
    server.receive(Reliable, &datagram("init1"));
    for _ in 0..60 {
        server.wait(Duration::from_secs(1));
        server.sent(Reliable);
    }
    assert_eq!(
        (server.host.poll_timeout(), server.host.poll_event()),
        (None, None)
    );
    assert_eq!(server.host.stats().half_open_lost, 1);
}

#[test]
fn an_open_connection_survives_a_forged_init1_and_yields_to_a_restart() {
    let mut server = Played::server();
    server.receive(Reliable, &datagram("init1"));
    server.receive(Partial, &datagram("init3"));
    let first = server.connected();
    let mut other = datagram("init1");
    other[0] ^= 1;
    server.receive(Reliable, &other);
    server.sent(Reliable);
    server.receive(Reliable, &datagram("reliable_data_1"));
    assert_eq!(server.message().2, b"m1");
    let mut init3 = datagram("init3");
    init3[0] ^= 1;
    init3[11 + 24] = 1;
    server.receive(Partial, &init3);
    let reason = EndReason::Replaced;
    let event = server.host.poll_event();
    assert_eq!(
        event,
        Some(Event::Disconnected {
            connection: first,
            reason
        })
    );
    assert_ne!(server.connected(), first);
    assert_eq!(server.host.connections().count(), 1);
}

#[test]
fn nothing_malformed_is_answered_or_stops_the_host() {
    let mut server = Played::server();
    for datagram in [
        &datagram("init1")[..10],
        &datagram("init1")[..38],
        &[0; 2_000],
        &datagram("init4")[..],
        &datagram("reliable_data_1"),
    ] {
        server.receive(Reliable, datagram);
        server.receive(Partial, datagram);
    }
    assert_eq!(server.host.stats().malformed, 8);
    assert_eq!(
        (server.sent(Reliable), server.sent(Partial)),
        (named(&[]), named(&[]))
    );
    server.receive(Reliable, &datagram("init1"));
    server.receive(Partial, &datagram("init3"));
    server.connected();
    server.receive(Reliable, &datagram("ping_request_client")[..11]);
    assert_eq!(server.host.stats().malformed, 9);
    assert_eq!(server.host.connections().count(), 1);
}

#[test]
fn acknowledgements_wait_until_the_original_has_noted_what_it_sent() {
    let options = HostOptions::default().ports(17_777, 17_778).window(1_000);
    let mut server = Played {
        host: Host::new(options, 1).expect("valid options"),
        ..Played::server()
    };
    server.host.listen(true);
    server.receive(Reliable, &datagram("init1"));
    assert_eq!(server.sent(Reliable), named(&["init2"]));
    server.receive(Partial, &datagram("init3"));
    server.wait(Duration::from_micros(49_999));
    assert_eq!(server.sent(Partial), named(&[]));
    server.wait(Duration::from_micros(1));
    assert_eq!(server.sent(Partial), named(&["init4"]));
    for name in ["reliable_data_1", "reliable_data_3", "reliable_data_2"] {
        server.receive(Reliable, &datagram(name));
        server.wait(Duration::from_millis(1));
    }
    assert_eq!(server.sent(Reliable), named(&[]));
    server.wait(Duration::from_millis(5));
    // One each, with the number that was the last when its datagram came.
    let acks = ["ack_reliable_1", "ack_reliable_1", "ack_reliable_3"];
    assert_eq!(server.sent(Reliable), named(&acks));
}
