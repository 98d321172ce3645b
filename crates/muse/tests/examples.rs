//! The examples do what they say, over real sockets.

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration as Patience;

use muse::prelude::*;

#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/file_transfer.rs"]
mod file_transfer;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/hitscan.rs"]
mod hitscan;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/listen_server.rs"]
mod listen_server;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/puck.rs"]
mod puck;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/reconnect.rs"]
mod reconnect;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/thousand_entities.rs"]
mod thousand_entities;

/// Time that a test waits for what must come; nothing depends on it when all is well.
const PATIENCE: Patience = Patience::from_secs(30);

type Outcome = Result<(), Box<dyn Error>>;

/// Runs `serve` on a thread while `ask` runs here, and tells it to stop afterwards, also when `ask` panics.
fn beside<T>(serve: impl FnOnce(&AtomicBool) + Send, ask: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(false, Ordering::Relaxed);
        }
    }
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&running));
        let _stop = Stop(&running);
        ask()
    })
}

/// Any port of this machine, and a key of its own.
fn loopback() -> std::io::Result<Listen> {
    Ok(Listen::at("127.0.0.1:0").key(muse::new_key()?))
}

#[test]
fn a_file_arrives_although_the_server_is_replaced_half_way() -> Outcome {
    let key = muse::new_key()?;
    let file: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let listen = |at: &str| {
        let listen = Listen::at(at).key(key.clone());
        Server::listen(listen, file_transfer::protocol().0)
    };
    let server = listen("127.0.0.1:0")?;
    let address = server.address();
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fetched-{}", std::process::id()));
    let first_runs = AtomicBool::new(true);
    let mut connections = 0;
    let outcome = beside(
        |running| {
            // The first server goes half way through; dropping it closes the connection.
            file_transfer::serve(&mut { server }, &file, &first_runs)
                .expect("the first server runs");
            let mut second =
                listen(&format!("127.0.0.1:{}", address.port())).expect("the port is free again");
            file_transfer::serve(&mut second, &file, running).expect("the second server runs");
        },
        || {
            let connect = || {
                connections += 1;
                Client::connect(&address, file_transfer::protocol().0)
            };
            file_transfer::fetch(&path, connect, |done, _| {
                if done > 1_000_000 {
                    first_runs.store(false, Ordering::Relaxed);
                }
            })
        },
    );
    let fetched = std::fs::read(&path)?;
    std::fs::remove_file(&path)?;
    outcome?;
    assert!(fetched == file, "every byte is right");
    assert!(connections >= 2, "the first connection was cut");
    Ok(())
}

#[test]
fn a_count_goes_on_after_the_tunnel() -> Outcome {
    use reconnect::Seen;

    let mut server = Server::listen(loopback()?, reconnect::protocol())?;
    let address = server.address();
    let (tell, told) = channel();
    let serving = std::thread::spawn(move || {
        reconnect::serve(&mut server, |seen| {
            tell.send(seen).unwrap_or(());
            seen != Seen::Left
        })
    });
    let seen = || told.recv_timeout(PATIENCE).expect("something happens");
    let mut client = Client::connect(&address, reconnect::protocol())?;
    let tunnel = || assert_eq!([seen(), seen()], [Seen::Joined, Seen::Interrupted]);
    let heard = reconnect::listen(&mut client, |_| {}, tunnel)?;
    assert!(
        heard.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "none missing, none twice: {heard:?}"
    );
    assert_eq!(seen(), Seen::Resumed);
    drop(client);
    assert_eq!(seen(), Seen::Left);
    serving.join().expect("the server does not panic")?;
    Ok(())
}

#[test]
fn shots_hit_what_was_on_the_screen_once() -> Outcome {
    let [ada, bob] = hitscan::offline(20)?;
    // Both shoot twice a second at what they see, with perfect aim.
    assert!(ada.flashes >= 34 && bob.flashes >= 34, "{}", ada.flashes);
    for (shooter, victim) in [(&ada, &bob), (&bob, &ada)] {
        assert!(
            shooter.markers + 2 >= shooter.flashes,
            "{}",
            shooter.markers
        );
        assert!(shooter.markers <= shooter.flashes);
        // Both hear of each hit once; the last may still be on its way to one of them.
        assert!(shooter.markers.abs_diff(victim.wounds) <= 1);
        let taken = shooter.shown.first().map(|player| player.hits_taken);
        let behind = taken.map(|taken| shooter.markers.abs_diff(taken));
        assert!(behind.is_some_and(|behind| behind <= 1), "{taken:?}");
    }
    Ok(())
}

#[test]
fn shots_hit_over_udp() -> Outcome {
    let server = GameServer::listen_with(loopback()?, hitscan::protocol(), hitscan::Rules)?;
    let address = server.address();
    let shoot = || {
        let client = GameClient::connect_with(&address, hitscan::protocol(), hitscan::Rules);
        let began = std::time::Instant::now();
        hitscan::play(client.expect("a socket"), |screen| {
            let done = screen.markers >= 3 && screen.wounds >= 3;
            let (flashes, markers) = (screen.flashes, screen.markers);
            assert!(markers <= flashes, "{markers} of {flashes}");
            assert!(done || began.elapsed() < PATIENCE, "{markers} of {flashes}");
            !done
        })
        .expect("plays until it has hit and was hit");
    };
    beside(
        |running| hitscan::serve(server, running).expect("the server runs"),
        || {
            std::thread::scope(|scope| {
                let other = scope.spawn(shoot);
                shoot();
                other.join().expect("the other hit this one, too");
            });
        },
    );
    Ok(())
}

#[test]
fn the_host_plays_alone_and_with_others() -> Outcome {
    let protocol = listen_server::protocol;
    let alone = GameServer::listen_with(Listen::offline(), protocol(), listen_server::Rules)?;
    let began = std::time::Instant::now();
    listen_server::serve(alone, |client| {
        let prediction = client.netcode().prediction();
        assert_eq!((prediction.corrected, client.others().len()), (0, 0));
        assert!(began.elapsed() < PATIENCE, "{prediction:?}");
        prediction.confirmed <= 100
    })?;

    let server = GameServer::listen_with(loopback()?, protocol(), listen_server::Rules)?;
    let address = server.address();
    let (guest_saw, told) = channel();
    let guest = std::thread::spawn(move || {
        let client = GameClient::connect_with(&address, protocol(), listen_server::Rules);
        let began = std::time::Instant::now();
        listen_server::play(client.expect("a socket"), |client| {
            let others = client.others().len();
            let prediction = client.netcode().prediction();
            let done = others == 1 && prediction.confirmed > 50;
            assert!(done || began.elapsed() < PATIENCE, "{prediction:?}");
            if done {
                guest_saw.send(()).unwrap_or(());
            }
            !done
        })
        .expect("plays until it has seen the host");
    });
    let (mut both, began) = (false, std::time::Instant::now());
    listen_server::serve(server, |client| {
        both |= client.others().len() == 1;
        let done = both && told.try_recv().is_ok();
        assert!(done || began.elapsed() < PATIENCE, "seen: {both}");
        !done
    })?;
    guest.join().expect("the guest saw the host");
    Ok(())
}

/// One player pushes a puck, another one watches from the same place: both predict it, and both see it go.
#[test]
fn pucks_are_predicted_by_who_pushes_and_by_who_is_near() -> Outcome {
    let server = GameServer::listen_with(loopback()?, puck::protocol(), puck::Ice)?;
    let address = server.address();
    let skate = |x: i8| {
        let client = GameClient::connect_with(&address, puck::protocol(), puck::Ice);
        let began = std::time::Instant::now();
        let mut furthest = 0.0_f32;
        let keys = |_| puck::Keys { x, y: 0 };
        puck::play(client.expect("a socket"), keys, |client| {
            let pucks = client.entities::<puck::Puck>();
            for (_, puck) in &pucks {
                furthest = furthest.max(puck.position.x.abs());
            }
            let prediction = client.netcode().prediction();
            let done = pucks.len() == 2 && furthest > 4.0 && prediction.confirmed > 20;
            assert!(
                done || began.elapsed() < PATIENCE,
                "{furthest} {prediction:?}"
            );
            !done || prediction.others < 2
        })
        .expect("plays until a puck has moved");
    };
    beside(
        |running| puck::serve(server, running).expect("the server runs"),
        || {
            std::thread::scope(|scope| {
                let watcher = scope.spawn(|| skate(0));
                skate(1);
                watcher.join().expect("the other one saw it too");
            });
        },
    );
    Ok(())
}

#[test]
fn of_a_thousand_bodies_clients_learn_what_is_near() -> Outcome {
    let (alone, _) = thousand_entities::offline(10)?;
    assert!(
        (150..400).contains(&alone.known.len()),
        "{}",
        alone.known.len()
    );
    assert!(alone.longest_wait <= 20, "{} ticks", alone.longest_wait);

    let protocol = thousand_entities::protocol;
    let server = GameServer::listen_with(loopback()?, protocol(), thousand_entities::Rules)?;
    let address = server.address();
    beside(
        |running| thousand_entities::serve(server, running).expect("the server runs"),
        || {
            let rules = thousand_entities::Rules;
            let client = GameClient::connect_with(&address, protocol(), rules);
            let began = std::time::Instant::now();
            thousand_entities::play(client.expect("a socket"), |screen| {
                let done = screen.updates > 2_000;
                assert!(screen.known.len() < 400, "{}", screen.known.len());
                assert!(done || began.elapsed() < PATIENCE, "{}", screen.updates);
                !done
            })
            .expect("plays until it has seen enough");
        },
    );
    Ok(())
}
