//! The ends of connections and the failures of attempts: each way has its own event, and says so on both sides.

#[path = "support/pair.rs"]
mod pair;

use muse_netem::{Conditions, Jitter};
use muse_transport::{
    ChannelConfig, CloseReason, Config, Connect, Delivery, Endpoint, Event, Refusal, SeededEntropy,
    SendError, ServerOptions,
};
use muse_wire::{Duration, Instant};
use pair::{OwnedEvent, Pair, Side, client_address, server_address, server_key};

fn config() -> Config {
    Config::new(77)
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .channel(ChannelConfig::new(Delivery::ReliableUnordered))
        .channel(ChannelConfig::new(Delivery::ReliableSequenced))
        .channel(ChannelConfig::new(
            Delivery::partially_reliable(10, 50).expect("a promise"),
        ))
        .channel(ChannelConfig::new(Delivery::Unreliable))
}

fn connected(seed: u64) -> Pair {
    let mut pair = Pair::new(config().build().expect("sensible"), seed);
    set_all(&mut pair, wan(0.0));
    pair.connect();
    pair
}

fn wan(loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(40))
        .jitter(Jitter::Uniform(Duration::from_millis(20)))
        .loss(loss)
}

fn set_all(pair: &mut Pair, conditions: Conditions) {
    pair.simulation.network_mut().set_default(conditions);
}

fn close(pair: &mut Pair, side: Side, code: u16, text: &str) {
    let (now, connection) = (pair.now(), pair.connection(side));
    pair.node_mut(side).close(now, connection, code, text);
}

fn finish(pair: &mut Pair, side: Side, code: u16, text: &str) {
    let (now, connection) = (pair.now(), pair.connection(side));
    pair.node_mut(side).finish(now, connection, code, text);
}

fn by_peer(code: u16, text: &str) -> CloseReason {
    CloseReason::ByPeer {
        code,
        text: text.to_owned(),
    }
}

fn assert_nothing_left(pair: &Pair) {
    for side in Side::BOTH {
        assert_eq!(pair.node(side).connections().count(), 0, "{side:?}");
        let closes = pair.news(side);
        let closes = closes
            .iter()
            .filter(|what| matches!(what, OwnedEvent::Closed(_)));
        assert_eq!(closes.count(), 1, "{side:?} hears of the end once");
    }
}

#[test]
fn a_close_tells_its_reason() {
    for closer in Side::BOTH {
        let mut pair = connected(1);
        close(&mut pair, closer, 7, "the match is over");
        pair.advance_for(Duration::from_secs(1));
        assert_eq!(pair.closed(closer), Some(&CloseReason::ByUs));
        assert_eq!(
            pair.closed(closer.peer()),
            Some(&by_peer(7, "the match is over"))
        );
        assert_nothing_left(&pair);
        let (now, connection) = (pair.now(), pair.connection(closer));
        let refused = pair.node_mut(closer).send(now, connection, 0, b"too late");
        assert!(matches!(
            refused,
            Err(SendError::NoConnection | SendError::Closing)
        ));
    }
}

#[test]
fn a_close_gets_through_bad_networks_and_ends_in_any_case() {
    let mut told = 0;
    for seed in 0..100 {
        let mut pair = connected(seed);
        set_all(&mut pair, wan(0.3));
        for _ in 0..20 {
            pair.send(Side::Client, 0, b"on its way");
            pair.send(Side::Server, 0, b"on its way");
        }
        close(&mut pair, Side::Client, 3, "leaving");
        pair.advance_for(Duration::from_secs(60));
        assert_eq!(pair.closed(Side::Client), Some(&CloseReason::ByUs));
        match pair.closed(Side::Server) {
            Some(CloseReason::Lost) => {}
            Some(reason) => {
                assert_eq!(*reason, by_peer(3, "leaving"));
                told += 1;
            }
            None => unreachable!("seed {seed}: the server still waits"),
        }
        assert_nothing_left(&pair);
    }
    assert!(
        told >= 90,
        "three closes at 30 % loss: {told} of 100 arrived"
    );
}

#[test]
fn a_long_reason_is_cut_between_letters() {
    let mut pair = connected(2);
    close(&mut pair, Side::Server, 1, &"ä".repeat(300));
    pair.advance_for(Duration::from_secs(1));
    assert_eq!(
        pair.closed(Side::Client),
        Some(&by_peer(1, &"ä".repeat(127)))
    );
}

#[test]
fn a_close_that_nobody_answers_is_still_ours() {
    // Silence is noticed before the last try has had its time.
    let config = config()
        .keep_alive(Duration::from_millis(30))
        .silence(Duration::from_millis(90))
        .build();
    for (seed, waited_ms) in (0..12).map(|step| (step, step * 10)) {
        let mut pair = Pair::new(config.clone().expect("sensible"), seed);
        set_all(&mut pair, wan(0.0));
        pair.connect();
        let [client, server] = pair.nodes;
        pair.simulation.network_mut().partition(client, server);
        pair.advance_for(Duration::from_millis(waited_ms));
        close(&mut pair, Side::Client, 1, "bye");
        pair.advance_for(Duration::from_secs(60));
        assert_eq!(
            pair.closed(Side::Client),
            Some(&CloseReason::ByUs),
            "{waited_ms} ms"
        );
        assert_eq!(pair.closed(Side::Server), Some(&CloseReason::Lost));
    }
}

#[test]
fn both_may_close_at_once() {
    let mut pair = connected(3);
    close(&mut pair, Side::Client, 1, "one");
    close(&mut pair, Side::Server, 2, "two");
    pair.advance_for(Duration::from_secs(2));
    for side in Side::BOTH {
        assert_eq!(pair.closed(side), Some(&CloseReason::ByUs));
    }
    assert_nothing_left(&pair);
}

/// Sends on every reliable channel, finishes, cuts the line for `cut`, and checks that all arrives before the close.
fn finish_after_much(seed: u64, loss: f64, cut: Option<Duration>) {
    let mut pair = connected(seed);
    set_all(&mut pair, wan(loss));
    for index in 0..100u8 {
        for channel in 0..4 {
            pair.send(Side::Client, channel, &[index; 40]);
        }
    }
    pair.send(Side::Client, 0, &[200; 30_000]);
    pair.send(Side::Client, 4, b"unreliable");
    finish(&mut pair, Side::Client, 9, "done");
    let (now, connection) = (pair.now(), pair.connection(Side::Client));
    let refused = pair
        .node_mut(Side::Client)
        .send(now, connection, 0, b"too late");
    assert_eq!(refused, Err(SendError::Closing));
    let [client, server] = pair.nodes;
    if let Some(cut) = cut {
        pair.advance_for(Duration::from_millis(90));
        pair.simulation.network_mut().partition(client, server);
        pair.advance_for(cut);
        pair.simulation.network_mut().heal_all();
    }
    let limit = pair.now() + Duration::from_secs(60);
    let done = pair.run_until(limit, |pair| pair.closed(Side::Client).is_some());
    assert!(
        done,
        "seed {seed}: never finished, {} wait",
        pair.queued(Side::Client)
    );
    pair.advance_for(Duration::from_secs(60));
    let ordered: Vec<u8> = pair
        .received(Side::Server, 0)
        .iter()
        .map(|payload| payload[0])
        .collect();
    assert_eq!(
        ordered,
        (0..100).chain([200]).collect::<Vec<u8>>(),
        "seed {seed}"
    );
    assert_eq!(pair.received(Side::Server, 1).len(), 100, "seed {seed}");
    assert_eq!(pair.received(Side::Server, 2).last(), Some(&&[99; 40][..]));
    assert!(pair.received(Side::Server, 3).len() >= 50);
    assert_eq!(pair.closed(Side::Client), Some(&CloseReason::ByUs));
    let last = pair.log.iter().rfind(|entry| entry.side == Side::Server);
    assert!(
        matches!(last.map(|entry| &entry.what), Some(OwnedEvent::Closed(_))),
        "the close is last"
    );
    if loss == 0.0 {
        assert_eq!(pair.closed(Side::Server), Some(&by_peer(9, "done")));
    }
    assert_nothing_left(&pair);
}

#[test]
fn finishing_delivers_everything_first() {
    for seed in 0..40 {
        finish_after_much(seed, f64::from((seed % 4) as u32) * 0.1, None);
    }
}

#[test]
fn finishing_survives_an_interruption() {
    for seed in 0..10 {
        finish_after_much(seed, 0.0, Some(Duration::from_secs(12)));
    }
}

#[test]
fn finishing_with_nothing_to_deliver_closes_at_once() {
    let mut pair = connected(4);
    finish(&mut pair, Side::Server, 5, "empty");
    pair.advance_for(Duration::from_secs(1));
    assert_eq!(pair.closed(Side::Client), Some(&by_peer(5, "empty")));
    assert_nothing_left(&pair);
}

#[test]
fn a_peer_that_stays_away_is_lost() {
    let mut pair = connected(5);
    pair.advance_for(Duration::from_secs(10));
    let [client, server] = pair.nodes;
    pair.simulation.network_mut().partition(client, server);
    let cut_at = pair.now();
    pair.advance_for(Duration::from_secs(60));
    for side in Side::BOTH {
        let news: Vec<_> = pair.log.iter().filter(|entry| entry.side == side).collect();
        let [.., interrupted, closed] = &news[..] else {
            unreachable!("{news:?}");
        };
        assert_eq!(interrupted.what, OwnedEvent::Interrupted);
        assert_eq!(closed.what, OwnedEvent::Closed(CloseReason::Lost));
        // 6 s of silence, counted from the last packet, which keep-alives make at most 2 s old; then 30 s.
        let silence = interrupted.at - cut_at;
        assert!(
            (4_000..=6_100).contains(&silence.as_millis()),
            "{silence:?}"
        );
        assert_eq!(closed.at - interrupted.at, Duration::from_secs(30));
    }
    assert_nothing_left(&pair);
}

#[test]
fn a_killed_process_is_noticed() {
    let mut pair = connected(6);
    pair.simulation.detach(pair.nodes[0]);
    let server = pair.nodes[1];
    let mut buffer = Vec::new();
    let mut reason = None;
    let limit = pair.now() + Duration::from_secs(60);
    pair.simulation.run_until_done(limit, |simulation| {
        if let Some(Event::Closed { reason: why, .. }) =
            simulation.node_mut(server).poll_event(&mut buffer)
        {
            reason = Some(why);
        }
        reason.is_some()
    });
    assert_eq!(reason, Some(CloseReason::Lost));
}

#[test]
fn nobody_there_means_unanswered() {
    let (_, public) = server_key(7);
    let config = config().build().expect("sensible");
    let server = Endpoint::new(config.clone(), SeededEntropy::danger_seeded(8));
    let client = Endpoint::new(config, SeededEntropy::danger_seeded(9));
    let connect = Connect::pinned(public).timeout(Duration::from_secs(3));
    // The other endpoint does not listen.
    let mut pair = Pair::of(server, client, connect, 7, None);
    pair.advance(Instant::from_millis(2_900));
    assert!(pair.log.is_empty());
    pair.advance(Instant::from_secs(5));
    assert_eq!(pair.news(Side::Client), [OwnedEvent::Unanswered]);
    let sent_by_then = pair
        .simulation
        .network()
        .stats(pair.nodes[0])
        .sent
        .datagrams;
    pair.advance(Instant::from_secs(60));
    let sent = pair
        .simulation
        .network()
        .stats(pair.nodes[0])
        .sent
        .datagrams;
    assert_eq!(sent, sent_by_then, "it has given up");
}

fn attempt(server_config: Config, client_config: Config, wrong_key: bool) -> Pair {
    let (key, public) = server_key(10);
    let (_, other) = server_key(11);
    let mut server = Endpoint::new(server_config, SeededEntropy::danger_seeded(12));
    server.listen(ServerOptions::new(key));
    let client = Endpoint::new(client_config, SeededEntropy::danger_seeded(13));
    let connect = Connect::pinned(if wrong_key { other } else { public });
    let mut pair = Pair::of(server, client, connect, 10, None);
    pair.advance(Instant::from_secs(15));
    pair
}

#[test]
fn refusals_say_why() {
    let plain = || config().build().expect("sensible");
    let other_lines = || config().shared("5 Five").build().expect("sensible");
    let other_channels = || {
        let more = config().channel(ChannelConfig::new(Delivery::Sequenced));
        more.build().expect("sensible")
    };
    for server in [other_lines(), other_channels()] {
        let pair = attempt(server, plain(), false);
        let news = pair.news(Side::Client);
        assert!(
            matches!(news[..], [OwnedEvent::Refused(Refusal::Schema { .. })]),
            "{news:?}"
        );
        assert!(pair.news(Side::Server).is_empty());
    }
    let pair = attempt(plain(), plain(), true);
    let news = pair.news(Side::Client);
    assert!(
        matches!(news[..], [OwnedEvent::Refused(Refusal::WrongKey)]),
        "{news:?}"
    );
}

#[test]
fn a_full_server_says_so_until_someone_leaves() {
    let config = config().connections_max(1).build().expect("sensible");
    let mut pair = Pair::new(config.clone(), 14);
    pair.connect();
    let (_, public) = server_key(14);
    let mut second = Endpoint::new(config, SeededEntropy::danger_seeded(15));
    let now = pair.now();
    let connect = || Connect::pinned(public);
    second
        .connect(now, server_address(), connect())
        .expect("its only one");
    let address = std::net::SocketAddr::from(([192, 0, 2, 9], 9));
    assert_ne!(address, client_address());
    let node = pair.simulation.add(address, second);
    let mut buffer = Vec::new();
    let mut next_event = |pair: &mut Pair| {
        let mut seen = None;
        let limit = pair.now() + Duration::from_secs(20);
        pair.simulation.run_until_done(limit, |simulation| {
            seen = simulation
                .node_mut(node)
                .poll_event(&mut buffer)
                .map(|event| match event {
                    Event::Refused { reason, .. } => Err(reason),
                    Event::Connected { .. } => Ok(()),
                    other => unreachable!("{other:?}"),
                });
            seen.is_some()
        });
        seen
    };
    assert_eq!(next_event(&mut pair), Some(Err(Refusal::Full)));
    close(&mut pair, Side::Client, 0, "");
    pair.advance_for(Duration::from_secs(5));
    let now = pair.now();
    let again = pair
        .simulation
        .node_mut(node)
        .connect(now, server_address(), connect());
    assert!(again.is_ok());
    assert_eq!(next_event(&mut pair), Some(Ok(())));
}

#[test]
fn a_peer_that_breaks_the_protocol_is_thrown_out() {
    let (key, public) = server_key(16);
    let strict = config().message_max(1_000).build().expect("sensible");
    let mut server = Endpoint::new(strict, SeededEntropy::danger_seeded(17));
    server.listen(ServerOptions::new(key));
    let client = Endpoint::new(
        config().build().expect("sensible"),
        SeededEntropy::danger_seeded(18),
    );
    let mut pair = Pair::of(server, client, Connect::pinned(public), 16, None);
    pair.connect();
    // Larger than the server said it takes: an honest client has the same limit.
    pair.send(Side::Client, 0, &[0; 5_000]);
    pair.advance_for(Duration::from_secs(2));
    for side in Side::BOTH {
        assert_eq!(pair.closed(side), Some(&CloseReason::Protocol), "{side:?}");
    }
    assert_nothing_left(&pair);
}

#[test]
fn nothing_is_heard_from_a_banned_address_and_nobody_comes_back_from_there() {
    let mut pair = connected(40);
    pair.node_mut(Side::Server).ban(client_address().ip());
    close(&mut pair, Side::Server, 9, "enough");
    pair.advance_for(Duration::from_secs(1));
    assert_eq!(pair.closed(Side::Client), Some(&by_peer(9, "enough")));
    let (_, public) = server_key(40);
    let now = pair.now();
    let client = pair.node_mut(Side::Client);
    let again = client.connect(now, server_address(), Connect::pinned(public));
    again.expect("a free place");
    pair.advance_for(Duration::from_secs(15));
    let unanswered = |event: &OwnedEvent| matches!(event, OwnedEvent::Unanswered);
    assert!(pair.news(Side::Client).iter().any(unanswered));
    let counters = pair.node(Side::Server).counters();
    assert!(counters.datagrams_banned > 3, "{counters:?}");
}
