//! The promises of every bus; each one passes the same suite.

#[cfg(feature = "nats")]
#[path = "../../../tests/support/nats.rs"]
#[allow(dead_code, reason = "the tests of several masters use more of it")]
mod nats;

use std::time::Duration;

use muse_master::bus::{Bus, LocalBus, Note};
use muse_master_client::AccountId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

#[tokio::test]
async fn the_bus_of_one_master_keeps_every_promise() {
    let bus = LocalBus::default();
    assert!(!bus.is_shared());
    keeps_every_promise(&bus).await;
}

/// Everybody hears everything from when they subscribed, in order and once; a reader that is too slow is told; without a listener nothing is wrong.
async fn keeps_every_promise(bus: &dyn Bus) {
    bus.publish(note(0));
    let mut readers = [bus.subscribe(), bus.subscribe()];
    for n in 1..=100 {
        bus.publish(note(n));
    }
    for reader in &mut readers {
        for n in 1..=100 {
            assert_eq!(next(reader).await, note(n));
        }
        assert!(reader.is_empty());
    }
    let [mut slow, mut quick] = readers;
    for n in 0..50_000 {
        bus.publish(note(n));
        assert_eq!(next(&mut quick).await, note(n));
    }
    assert!(matches!(slow.recv().await, Err(RecvError::Lagged(_))));
}

fn note(n: u64) -> Note {
    Note::Back(AccountId(n))
}

async fn next(reader: &mut Receiver<Note>) -> Note {
    let heard = tokio::time::timeout(Duration::from_secs(20), reader.recv()).await;
    heard.expect("in time").expect("a note")
}

#[cfg(feature = "nats")]
mod shared {
    use muse_master::bus::{NatsBus, NatsConfig};

    use super::nats::{Nats, Stranger};
    use super::*;

    #[tokio::test]
    async fn nats_keeps_every_promise() {
        let server = Nats::start();
        let bus = connect(&server).await;
        assert!(bus.is_shared());
        keeps_every_promise(&bus).await;
    }

    /// Masters hear each other, each note once and a sender's in order; another deployment's masters do not.
    #[tokio::test]
    async fn nats_carries_notes_to_other_masters_of_the_deployment() {
        let server = Nats::start();
        let [one, other] = [connect(&server).await, connect(&server).await];
        let elsewhere = NatsConfig::new(&server.url(), "another.deployment", SECRET);
        let stranger = NatsBus::connect(elsewhere).await;
        let mut strange = stranger.expect("it listens").subscribe();
        let mut readers = [one.subscribe(), other.subscribe()];
        for n in 0..1_000 {
            one.publish(note(n));
        }
        for reader in &mut readers {
            for n in 0..1_000 {
                assert_eq!(next(reader).await, note(n));
            }
        }
        other.publish(note(1_000));
        for reader in &mut readers {
            assert_eq!(next(reader).await, note(1_000));
            assert!(reader.is_empty());
        }
        assert!(strange.try_recv().is_err());
    }

    /// Without the server a master hears itself, at once, and the others again when it is back.
    #[tokio::test]
    async fn nats_that_is_away_is_no_hindrance() {
        let mut server = Nats::start();
        let [one, other] = [connect(&server).await, connect(&server).await];
        let (mut own, mut others) = (one.subscribe(), other.subscribe());
        server.stop();
        for n in 0..100 {
            one.publish(note(n));
            assert_eq!(next(&mut own).await, note(n));
        }
        server.start_again();
        let heard = async {
            loop {
                one.publish(note(1));
                let soon = Duration::from_millis(100);
                if tokio::time::timeout(soon, others.recv()).await.is_ok() {
                    return;
                }
            }
        };
        let heard = tokio::time::timeout(Duration::from_secs(30), heard).await;
        assert!(heard.is_ok(), "the other one is not heard again");
    }

    /// Somebody who reaches the server forges notes, changes them and repeats them: masters hear each other and nothing else.
    #[tokio::test(flavor = "multi_thread")]
    async fn nats_carries_nothing_that_is_not_a_masters_and_new() {
        let server = Nats::start();
        let mut stranger = Stranger::connect(&server, "muse.test");
        let [one, other] = [connect(&server).await, connect(&server).await];
        let intruder = NatsConfig::new(&server.url(), "muse.test", "guessed");
        let intruder = NatsBus::connect(intruder).await.expect("it listens");
        let mut readers = [one.subscribe(), other.subscribe()];
        one.publish(note(1));
        for reader in &mut readers {
            assert_eq!(next(reader).await, note(1));
        }
        let genuine = stranger.hear("Back");
        let mut changed = genuine.clone();
        *changed.last_mut().expect("not empty") ^= 1;
        let plain = serde_json::to_vec(&note(66)).expect("text");
        for message in [&genuine, &changed, &plain, &genuine, &Vec::new()] {
            stranger.publish(message);
        }
        intruder.publish(note(66));
        stranger.hear("66");
        // A note of each after it: whatever came before has been heard by then.
        stranger.publish(b"the last of them");
        for (bus, n) in [(&one, 2), (&other, 3)] {
            bus.publish(note(n));
            for reader in &mut readers {
                assert_eq!(next(reader).await, note(n));
            }
        }
    }

    /// A server with TLS and a password: masters that trust its authority and know the password hear each other, others hear nothing.
    #[tokio::test]
    async fn nats_with_tls_and_a_password_lets_in_who_trusts_it_and_knows_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        for name in ["server", "stranger"] {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
            std::fs::write(file(&format!("{name}.pem")), made.cert.pem()).expect("written");
            let key = made.signing_key.serialize_pem();
            std::fs::write(file(&format!("{name}.key")), key).expect("written");
        }
        let server = Nats::start_with_tls(&file("server.pem"), &file("server.key"), "secret");
        let connect = async |password: &str, trusted: &str| {
            let url = format!("tls://muse:{password}@localhost:{}", server.port());
            let config = NatsConfig::new(&url, "muse.test", SECRET).ca_file(file(trusted));
            NatsBus::connect(config).await
        };
        let one = connect("secret", "server.pem").await.expect("let in");
        let other = connect("secret", "server.pem").await.expect("let in");
        // They are waited for without end, as any server that is away.
        let wary = connect("secret", "stranger.pem").await.expect("tried");
        let guesser = connect("guessed", "server.pem").await;
        let mut outside = vec![wary.subscribe()];
        outside.extend(guesser.ok().map(|guesser| guesser.subscribe()));
        let mut reader = other.subscribe();
        one.publish(note(1));
        assert_eq!(next(&mut reader).await, note(1));
        for reader in &mut outside {
            assert!(reader.is_empty());
        }
        let missing = connect("secret", "nowhere.pem").await.err();
        let missing = missing.expect("there is no such file").to_string();
        assert!(missing.contains("nowhere.pem"), "{missing}");
    }

    async fn connect(server: &Nats) -> NatsBus {
        let config = NatsConfig::new(&server.url(), "muse.test", SECRET);
        NatsBus::connect(config).await.expect("it listens")
    }

    const SECRET: &str = "the secret in the database";
}
