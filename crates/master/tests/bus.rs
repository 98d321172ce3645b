//! The promises of every bus; each one passes the same suite.

#[cfg(feature = "nats")]
#[path = "../../../tests/support/nats.rs"]
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
    use muse_master::bus::NatsBus;

    use super::nats::Nats;
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
        let stranger = NatsBus::connect(&server.url(), "another.deployment").await;
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

    async fn connect(server: &Nats) -> NatsBus {
        let bus = NatsBus::connect(&server.url(), "muse.test").await;
        bus.expect("it listens")
    }
}
