//! The examples do what they say, over real sockets.
#![allow(
    clippy::duplicate_mod,
    reason = "each example has the shared file as a module of its own"
)]

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration as Patience;

use muse::prelude::*;

#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/chat/main.rs"]
mod chat;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/echo.rs"]
mod echo;
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
#[path = "../examples/predicted_player.rs"]
mod predicted_player;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/reconnect.rs"]
mod reconnect;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../examples/thousand_entities.rs"]
mod thousand_entities;

/// How long a test waits for what must come; nothing depends on it when all is well.
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

fn loopback(config: Config, key: &ServerKey) -> std::io::Result<Server> {
    Server::bind("127.0.0.1:0", config, ServerOptions::new(key.clone()))
}

#[test]
fn echo_gives_back_what_it_gets() -> Outcome {
    let key = muse::new_key()?;
    let mut server = loopback(echo::config(), &key)?;
    let address = server.local_addr()?;
    let texts = ["one", "", "drei \u{1F980}"].map(String::from);
    let echoes = beside(
        |running| echo::serve(&mut server, running).expect("the server runs"),
        || {
            echo::ask(
                &mut Client::connect(address, echo::config(), Connect::pinned(key.public()))?,
                &texts,
            )
        },
    )?;
    assert_eq!(echoes, texts);
    Ok(())
}

#[test]
fn echo_says_why_it_was_refused() -> Outcome {
    let (key, other) = (muse::new_key()?, muse::new_key()?);
    let mut server = loopback(echo::config(), &key)?;
    let address = server.local_addr()?;
    let outcome = beside(
        |running| echo::serve(&mut server, running).expect("the server runs"),
        || {
            echo::ask(
                &mut Client::connect(address, echo::config(), Connect::pinned(other.public()))?,
                &["x".into()],
            )
        },
    );
    let refusal = outcome.expect_err("another key").to_string();
    assert!(refusal.contains("does not have the key"), "{refusal}");
    Ok(())
}

#[test]
fn nonsense_on_the_command_line_gets_the_usage() {
    for (name, run) in [
        (
            "chat",
            chat::run as fn(std::vec::IntoIter<String>) -> Outcome,
        ),
        ("echo", echo::run),
        ("file_transfer", file_transfer::run),
        ("hitscan", hitscan::run),
        ("listen_server", listen_server::run),
        ("predicted_player", predicted_player::run),
        ("reconnect", reconnect::run),
        ("thousand_entities", thousand_entities::run),
    ] {
        for words in [vec![], vec!["sever".to_owned()]] {
            let usage = run(words.into_iter())
                .expect_err("no such role")
                .to_string();
            assert!(
                usage.starts_with(&format!("usage: {name} server")),
                "{usage}"
            );
        }
    }
}

#[test]
fn chat_passes_every_kind_on_with_the_right_name() -> Outcome {
    let key = muse::new_key()?;
    let mut server = loopback(chat::config()?, &key)?;
    let (address, public) = (server.local_addr()?, key.public());
    let (ada_types, ada_lines) = channel();
    let (bob_types, bob_lines) = channel();
    let (ada_shows, ada_sees) = channel();
    let join = move |name: &'static str, lines, shows: std::sync::mpsc::Sender<String>| {
        move || {
            let config = chat::config().expect("sensible");
            let mut client =
                Client::connect(address, config, Connect::pinned(public)).expect("a socket");
            let show = |line| shows.send(line).unwrap_or(());
            chat::talk(&mut client, name, &lines, show).expect("talks until the end");
        }
    };
    beside(
        |running| chat::serve(&mut server, running).expect("the server runs"),
        || {
            let ada = std::thread::spawn(join("Ada", ada_lines, ada_shows));
            let sees = || ada_sees.recv_timeout(PATIENCE).expect("something is said");
            assert_eq!(sees(), "Ada: joins");
            let bob = std::thread::spawn(join("Bob", bob_lines, channel().0));
            assert_eq!(sees(), "Bob: joins");
            for line in [
                "hello",
                "/topic networks",
                "/like Ada",
                "/typing ...",
                "/wave all",
                "/hum do",
            ] {
                bob_types.send(line.into()).expect("Bob listens");
                assert_eq!(sees(), format!("Bob: {line}"));
            }
            drop(bob_types);
            assert_eq!(sees(), "Bob: leaves");
            bob.join().expect("Bob does not panic");
            ada_types.send("alone".into()).expect("Ada listens");
            assert_eq!(sees(), "Ada: alone");
            drop(ada_types);
            ada.join().expect("Ada does not panic");
        },
    );
    Ok(())
}

#[test]
fn a_file_arrives_although_the_server_is_replaced_half_way() -> Outcome {
    let key = muse::new_key()?;
    let file: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let server = loopback(file_transfer::config(), &key)?;
    let address = server.local_addr()?;
    let path =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fetched-{}", std::process::id()));
    let first_runs = AtomicBool::new(true);
    let mut connections = 0;
    let outcome = beside(
        |running| {
            // The first server goes half way through; dropping it closes the connection.
            file_transfer::serve(&mut { server }, &file, &first_runs)
                .expect("the first server runs");
            let options = ServerOptions::new(key.clone());
            let mut second = Server::bind(address, file_transfer::config(), options)
                .expect("the port is free again");
            file_transfer::serve(&mut second, &file, running).expect("the second server runs");
        },
        || {
            let connect = || {
                connections += 1;
                Client::connect(
                    address,
                    file_transfer::config(),
                    Connect::pinned(key.public()),
                )
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

    let key = muse::new_key()?;
    let mut server = loopback(reconnect::config(), &key)?;
    let address = server.local_addr()?;
    let (tell, told) = channel();
    let serving = std::thread::spawn(move || {
        reconnect::serve(&mut server, |seen| {
            tell.send(seen).unwrap_or(());
            seen != Seen::Went
        })
    });
    let seen = || told.recv_timeout(PATIENCE).expect("something happens");
    let mut client = Client::connect(address, reconnect::config(), Connect::pinned(key.public()))?;
    let tunnel = || assert_eq!([seen(), seen()], [Seen::Came, Seen::Interrupted]);
    let heard = reconnect::listen(&mut client, |_| {}, tunnel)?;
    assert!(
        heard.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "none missing, none twice: {heard:?}"
    );
    assert_eq!(seen(), Seen::Resumed);
    drop(client);
    assert_eq!(seen(), Seen::Went);
    serving.join().expect("the server does not panic")?;
    Ok(())
}

#[test]
fn a_player_is_predicted_exactly_in_memory() -> Outcome {
    let mut game = predicted_player::new_game(muse::Instant::ZERO);
    let (mut me, mut others) = predicted_player::new_view(muse::Instant::ZERO);
    let (client, start) = (muse::netcode::ClientId(0), Default::default());
    let entity = game.join(client, &start)?;
    for milli in 0..4_000 {
        predicted_player::offline(muse::Instant::from_millis(milli), &mut game, &mut me)?;
    }
    assert_eq!(me.player(), Some(entity));
    assert_eq!(me.prediction().corrected, 0, "{:?}", me.prediction());
    assert!(me.prediction().confirmed > 100, "{:?}", me.prediction());
    let (shown, alone) = predicted_player::draw(&mut me, &mut others).expect("it plays");
    assert!(shown.position != start.position, "{shown:?}");
    assert!(alone.is_empty(), "{alone:?}");
    Ok(())
}

#[test]
fn two_players_see_each_other_over_udp() -> Outcome {
    let key = muse::new_key()?;
    let server = loopback(predicted_player::config(), &key)?;
    let (address, public) = (server.local_addr()?, key.public());
    let watch = move || {
        let link = Client::connect(address, predicted_player::config(), Connect::pinned(public));
        let mut moved = Vec::new();
        let began = std::time::Instant::now();
        predicted_player::play(link.expect("a socket"), |me, _, others| {
            moved.extend(others.first().map(|other| other.position[0]));
            let most = moved.iter().copied().fold(f32::MIN, f32::max);
            let least = moved.iter().copied().fold(f32::MAX, f32::min);
            let done = most - least > 1.0 && me.prediction().confirmed > 50;
            assert!(done || began.elapsed() < PATIENCE, "{least}..{most}");
            !done
        })
        .expect("plays until it has seen the other move");
    };
    beside(
        |running| predicted_player::serve(server, running).expect("the server runs"),
        || {
            let other = std::thread::spawn(watch);
            watch();
            other.join().expect("the other saw this one, too");
        },
    );
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
    let key = muse::new_key()?;
    let server = loopback(hitscan::config(), &key)?;
    let (address, public) = (server.local_addr()?, key.public());
    let shoot = move || {
        let link = Client::connect(address, hitscan::config(), Connect::pinned(public));
        let began = std::time::Instant::now();
        hitscan::play(link.expect("a socket"), |_, screen| {
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
            let other = std::thread::spawn(shoot);
            shoot();
            other.join().expect("the other hit this one, too");
        },
    );
    Ok(())
}

#[test]
fn the_host_plays_alone_and_with_others() -> Outcome {
    let alone = listen_server::offline(4)?;
    let prediction = alone.host.game.prediction();
    assert!(
        prediction.confirmed > 100 && prediction.corrected == 0,
        "{prediction:?}"
    );
    assert!(alone.screen.shown.is_empty());

    let key = muse::new_key()?;
    let server = loopback(listen_server::config(), &key)?;
    let (address, public) = (server.local_addr()?, key.public());
    let (guest_saw, told) = channel();
    let guest = std::thread::spawn(move || {
        let link = Client::connect(address, listen_server::config(), Connect::pinned(public));
        let began = std::time::Instant::now();
        listen_server::play(link.expect("a socket"), |me, screen| {
            let done = screen.shown.len() == 1 && me.prediction().confirmed > 50;
            assert!(done || began.elapsed() < PATIENCE, "{:?}", me.prediction());
            if done {
                guest_saw.send(()).unwrap_or(());
            }
            !done
        })
        .expect("plays until it has seen the host");
    });
    let (mut both, began) = (false, std::time::Instant::now());
    listen_server::serve(server, |hosting| {
        both |= hosting.screen.shown.len() == 1;
        let done = both && told.try_recv().is_ok();
        assert!(done || began.elapsed() < PATIENCE, "seen: {both}");
        !done
    })?;
    guest.join().expect("the guest saw the host");
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

    let key = muse::new_key()?;
    let server = loopback(thousand_entities::config(), &key)?;
    let (address, public) = (server.local_addr()?, key.public());
    beside(
        |running| thousand_entities::serve(server, running).expect("the server runs"),
        || {
            let link = Client::connect(
                address,
                thousand_entities::config(),
                Connect::pinned(public),
            );
            let began = std::time::Instant::now();
            thousand_entities::play(link.expect("a socket"), |screen| {
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
