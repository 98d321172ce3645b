//! A narrow path delivers nothing old: messages that need not arrive are dropped in time, all others arrive.

#[path = "support/pair.rs"]
mod support;

use muse_netem::{Conditions, Queue};
use muse_transport::{
    ChannelConfig, ChannelStats, Config, ConnectionStats, Delivery, Outcome, SendOptions,
};
use muse_wire::{Duration, Instant};
use support::{OwnedEvent, Pair, Side};

const UNRELIABLE: u8 = 0;
const SEQUENCED: u8 = 1;
const RELIABLE: u8 = 2;
const FRAME: Duration = Duration::from_micros(16_667);
const DELAY: Duration = Duration::from_millis(30);
/// The most that the link's own queue adds.
const LINK_QUEUE: Duration = Duration::from_millis(100);
const AGE_DEFAULT: Duration = Duration::from_millis(250);

/// One unreliable, one sequenced and one reliable channel, the first two with this limit.
fn connected(age: Option<Duration>, rate: u64, seed: u64) -> Pair {
    let channel = |delivery| {
        let channel = ChannelConfig::new(delivery);
        age.map_or(channel.clone(), |age| channel.queue_age(age))
    };
    let config = Config::new(1)
        .channel(channel(Delivery::Unreliable))
        .channel(channel(Delivery::Sequenced))
        .channel(channel(Delivery::ReliableOrdered))
        .build()
        .expect("legal");
    let mut pair = Pair::new(config, seed);
    let conditions = Conditions::default().delay(DELAY);
    let narrow = conditions.rate(rate).queue(Queue::Time(LINK_QUEUE));
    pair.simulation.network_mut().set_default(narrow);
    pair.connect();
    pair
}

/// Sends the time, in a message of `len` bytes.
fn send_time(pair: &mut Pair, channel: u8, len: usize) {
    let mut message = vec![0; len];
    message[..8].copy_from_slice(&pair.now().as_micros().to_le_bytes());
    pair.send(Side::Server, channel, &message);
}

/// A game of 60 frames a second: 84 kB a second on two unreliable channels, and a little that must arrive.
fn play(pair: &mut Pair, span: Duration) {
    let end = pair.now() + span;
    let mut frame = 0;
    while pair.now() < end {
        send_time(pair, UNRELIABLE, 700);
        send_time(pair, SEQUENCED, 700);
        if frame % 6 == 0 {
            send_time(pair, RELIABLE, 100);
        }
        frame += 1;
        pair.advance_for(FRAME);
    }
    pair.advance_for(Duration::from_secs(10));
}

/// When each message was sent and how old it was when it was delivered.
fn ages(pair: &Pair, channel: u8) -> Vec<(u64, Duration)> {
    let messages = pair.log.iter().filter_map(|entry| match &entry.what {
        OwnedEvent::Message {
            channel: on,
            payload,
        } if *on == channel => {
            let sent = u64::from_le_bytes(payload[..8].try_into().expect("the time"));
            Some((sent, entry.at - Instant::from_micros(sent)))
        }
        _ => None,
    });
    messages.collect()
}

fn stats(pair: &Pair) -> (ConnectionStats, [ChannelStats; 3]) {
    let (node, connection) = (pair.node(Side::Server), pair.connection(Side::Server));
    let of = |channel| node.channel_stats(connection, channel).expect("connected");
    (
        node.stats(connection).expect("connected"),
        [UNRELIABLE, SEQUENCED, RELIABLE].map(of),
    )
}

#[test]
fn what_a_narrow_path_delivers_is_never_older_than_the_limit_and_the_path() {
    for (age, seed) in [(None, 1), (None, 2), (Some(Duration::from_millis(80)), 3)] {
        // The game sends 672 kbit/s.
        let mut pair = connected(age, 400_000, seed);
        play(&mut pair, Duration::from_secs(20));
        let limit = age.unwrap_or(AGE_DEFAULT) + DELAY + LINK_QUEUE;
        for channel in [UNRELIABLE, SEQUENCED] {
            let mut ages = ages(&pair, channel);
            // Of the last one of a sequenced channel nothing newer is there, so it stays until it can leave.
            ages.pop_if(|_| channel == SEQUENCED);
            let worst = ages.iter().map(|(_, age)| *age).max().expect("deliveries");
            assert!(worst <= limit, "seed {seed}, channel {channel}: {worst:?}");
            assert!(ages.len() > 300, "seed {seed}: {} of 1,200", ages.len());
        }
        let (all, [unreliable, sequenced, reliable]) = stats(&pair);
        assert!(unreliable.messages_stale > 100 && sequenced.messages_stale > 100);
        assert_eq!(
            all.messages_stale,
            unreliable.messages_stale + sequenced.messages_stale
        );
        // What must arrive does, all of it and in order.
        assert_eq!(reliable.messages_stale, 0);
        let arrived = ages_of_reliable(&pair);
        assert_eq!(arrived.len() as u64, reliable.messages_sent);
        assert!(arrived.is_sorted());
    }
}

fn ages_of_reliable(pair: &Pair) -> Vec<u64> {
    ages(pair, RELIABLE)
        .into_iter()
        .map(|(sent, _)| sent)
        .collect()
}

#[test]
fn a_channel_without_a_limit_delivers_late() {
    let mut pair = connected(Some(Duration::MAX), 400_000, 4);
    play(&mut pair, Duration::from_secs(20));
    let worst = ages(&pair, UNRELIABLE).into_iter().map(|(_, age)| age);
    let worst = worst.max().expect("deliveries");
    assert!(worst > Duration::from_secs(3), "{worst:?}");
    assert_eq!(stats(&pair).0.messages_stale, 0);
}

#[test]
fn nothing_is_dropped_while_the_path_carries_it() {
    let mut pair = connected(None, 4_000_000, 5);
    play(&mut pair, Duration::from_secs(20));
    let (all, [unreliable, ..]) = stats(&pair);
    assert_eq!(all.messages_stale, 0);
    let arrived = ages(&pair, UNRELIABLE).len() as u64;
    assert_eq!(arrived, unreliable.messages_sent);
}

#[test]
fn a_program_that_looks_away_loses_nothing() {
    let mut pair = connected(None, 4_000_000, 6);
    let node = pair.nodes[Side::Server.index()];
    for _ in 0..10 {
        for channel in [UNRELIABLE, SEQUENCED] {
            for _ in 0..3 {
                send_time(&mut pair, channel, 100);
            }
        }
        // It hands messages over and does nothing else for a second.
        let server = pair.simulation.detach(node).expect("a server");
        pair.simulation
            .run_until(pair.now() + Duration::from_secs(1), |_| ());
        pair.simulation.attach(node, server);
        pair.advance_for(Duration::from_secs(1));
    }
    assert_eq!(stats(&pair).0.messages_stale, 0);
    for channel in [UNRELIABLE, SEQUENCED] {
        assert_eq!(ages(&pair, channel).len(), 30);
    }
}

#[test]
fn the_sender_of_a_dropped_message_hears_of_it_in_time() {
    let mut pair = connected(None, 400_000, 7);
    play(&mut pair, Duration::from_secs(3));
    let (now, connection) = (pair.now(), pair.connection(Side::Server));
    let receipt = SendOptions::default().receipt();
    for _ in 0..200 {
        let server = pair.node_mut(Side::Server);
        server
            .send_with(now, connection, UNRELIABLE, &[0; 1_000], &receipt)
            .expect("room");
    }
    pair.advance_for(Duration::from_secs(2));
    let receipts = pair.log.iter().filter_map(|entry| match &entry.what {
        OwnedEvent::Receipt(receipt) => Some((entry.at, receipt.outcome)),
        _ => None,
    });
    let expired: Vec<_> = receipts
        .filter(|(_, outcome)| *outcome == Outcome::Expired)
        .collect();
    assert!(expired.len() > 100, "{}", expired.len());
    assert!(expired.iter().all(|(at, _)| *at == now + AGE_DEFAULT));
}
