//! Browsers beside players over UDP: real clients of WebTransport and WebSocket against one server.
#![cfg(feature = "web")]

#[path = "support/browser.rs"]
mod browser;

use std::time::{Duration, Instant};

use browser::{Browser, Log, PATIENCE, Pipe, every_mode, server, server_with};
use muse_drivers::{ClientDriver, EndpointDriver, WebKind, WebOptions, is_web_address};
use muse_transport::Connect;

const KINDS: [WebKind; 2] = [WebKind::WebTransport, WebKind::WebSocket];

/// Runs server and browsers until `done`, or gives up.
async fn until(
    what: &str,
    server: &mut EndpointDriver,
    log: &mut Log,
    browsers: &mut [Browser],
    mut done: impl FnMut(&Log, &[Browser], &EndpointDriver) -> bool,
) {
    let end = Instant::now() + PATIENCE;
    while !done(log, browsers, server) {
        assert!(
            Instant::now() < end,
            "waited in vain for {what}: {:?}, {} moves, {} messages, browsers {:?}",
            server.web().map(|web| web.counters()),
            log.moved,
            log.messages.len(),
            browsers
                .iter()
                .map(|browser| (browser.messages.len(), browser.pipe_over, &browser.ended))
                .collect::<Vec<_>>()
        );
        log.tick(server);
        for browser in browsers.iter_mut() {
            browser.turn().await;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn every_delivery_mode_works_over_both_links() {
    for kind in KINDS {
        let (mut server, key) = server();
        let mut log = Log::default();
        let mut browsers = [Browser::connect(server.web().expect("given"), kind, key).await];
        until(
            "a connection",
            &mut server,
            &mut log,
            &mut browsers,
            |log, b, _| b[0].connected && log.connected.len() == 1,
        )
        .await;
        let connection = log.connected[0];
        let address = server.endpoint().remote(connection).expect("connected");
        assert!(is_web_address(address));
        let session = server.web().and_then(|web| web.session(address));
        assert_eq!(session.map(|session| session.kind), Some(kind));

        let large: Vec<u8> = (0..100_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
        for channel in 0..6 {
            browsers[0].send(channel, &[channel, 1]);
            server
                .send(connection, channel, &[channel, 2])
                .expect("room");
        }
        browsers[0].send(4, &large);
        server.send(connection, 4, &large).expect("room");
        until(
            "all messages",
            &mut server,
            &mut log,
            &mut browsers,
            |log, b, _| log.messages.len() == 7 && b[0].messages.len() == 7,
        )
        .await;
        let mut up: Vec<_> = log
            .messages
            .drain(..)
            .map(|(_, c, bytes)| (c, bytes))
            .collect();
        let mut down = browsers[0].messages.clone();
        for (messages, mark) in [(&mut up, 1), (&mut down, 2)] {
            messages.sort();
            let mut expected: Vec<_> = (0..6)
                .map(|channel| (channel, vec![channel, mark]))
                .collect();
            expected.push((4, large.clone()));
            expected.sort();
            assert!(*messages == expected, "{kind:?}, direction {mark}");
        }
        browsers[0].close();
        until(
            "the end",
            &mut server,
            &mut log,
            &mut browsers,
            |log, _, _| log.closed == 1,
        )
        .await;
    }
}

#[tokio::test]
async fn one_server_has_players_of_every_link() {
    let (mut server, key) = server();
    let mut log = Log::default();
    let web = server.web().expect("given");
    let mut browsers = [
        Browser::connect(web, WebKind::WebTransport, key).await,
        Browser::connect(web, WebKind::WebSocket, key).await,
    ];
    let to = server.local_addr().expect("bound");
    let mut native =
        ClientDriver::connect(to, every_mode(), Connect::pinned(key)).expect("a socket");
    until(
        "three players",
        &mut server,
        &mut log,
        &mut browsers,
        |log, _, _| {
            native.tick(|_, _| {}).expect("the socket works");
            log.connected.len() == 3
        },
    )
    .await;
    assert_eq!(server.broadcast(4, b"to all").sent, 3);
    let mut told = false;
    until(
        "all to hear it",
        &mut server,
        &mut log,
        &mut browsers,
        |_, browsers, _| {
            native
                .tick(|_, event| {
                    told |= matches!(
                        event,
                        muse_transport::Event::Message {
                            payload: b"to all",
                            ..
                        }
                    );
                })
                .expect("the socket works");
            told && browsers
                .iter()
                .all(|browser| browser.messages == [(4, b"to all".to_vec())])
        },
    )
    .await;
}

#[tokio::test]
async fn a_thousand_reliable_messages_arrive_in_order() {
    for kind in KINDS {
        let (mut server, key) = server();
        let mut log = Log::default();
        let mut browsers = [Browser::connect(server.web().expect("given"), kind, key).await];
        until(
            "a connection",
            &mut server,
            &mut log,
            &mut browsers,
            |_, b, _| b[0].connected,
        )
        .await;
        for number in 0..1_000_u16 {
            browsers[0].send(4, &number.to_le_bytes());
            browsers[0].turn().await;
            log.tick(&mut server);
        }
        until("all", &mut server, &mut log, &mut browsers, |log, _, _| {
            log.messages.len() == 1_000
        })
        .await;
        let in_order = log
            .messages
            .iter()
            .enumerate()
            .all(|(number, (_, _, bytes))| bytes[..] == (number as u16).to_le_bytes());
        assert!(in_order, "{kind:?}");
    }
}

#[tokio::test]
async fn a_browser_that_comes_back_by_another_link_goes_on_where_it_was() {
    let (mut server, key) = server();
    let mut log = Log::default();
    let web = server.web().expect("given");
    let mut browsers = [Browser::connect(web, WebKind::WebTransport, key).await];
    until(
        "a connection",
        &mut server,
        &mut log,
        &mut browsers,
        |log, b, _| b[0].connected && log.connected.len() == 1,
    )
    .await;
    let connection = log.connected[0];
    // The session breaks; what the server says meanwhile is not lost.
    let web = server.web().expect("given");
    browsers[0].pipe = Pipe::open(web, WebKind::WebSocket)
        .await
        .expect("a session");
    server
        .send(connection, 4, b"while you were away")
        .expect("room");
    // Long enough for a challenge to be no longer than what came from the new address.
    browsers[0].send(4, &[7; 600]);
    until(
        "both words",
        &mut server,
        &mut log,
        &mut browsers,
        |log, b, _| log.messages.len() == 1 && b[0].messages.len() == 1,
    )
    .await;
    assert_eq!(log.moved, 1, "the connection moved, it was not a new one");
    assert_eq!(log.connected.len(), 1);
    until(
        "the old session to end",
        &mut server,
        &mut log,
        &mut browsers,
        |_, _, server| server.web().map(|web| web.sessions()) == Some(1),
    )
    .await;
}

#[tokio::test]
async fn endings_are_told_on_either_side() {
    for kind in KINDS {
        // The browser goes without a word: the session ends, the connection is kept for its return.
        let (mut server, key) = server();
        let mut log = Log::default();
        let web = server.web().expect("given");
        let mut browsers = [
            Browser::connect(web, kind, key).await,
            Browser::connect(web, kind, key).await,
        ];
        until(
            "connections",
            &mut server,
            &mut log,
            &mut browsers,
            |log, _, _| log.connected.len() == 2,
        )
        .await;
        let [first, second] = browsers;
        drop(first);
        let mut browsers = [second];
        until(
            "one session",
            &mut server,
            &mut log,
            &mut browsers,
            |_, _, server| server.web().map(|web| web.sessions()) == Some(1),
        )
        .await;
        assert_eq!(server.connections().count(), 2);

        // The server goes: it says so, and then ends the session.
        let goodbye = tokio::task::spawn_blocking(move || drop(server));
        let end = Instant::now() + PATIENCE;
        while !(browsers[0].ended.is_some() && browsers[0].pipe_over) {
            assert!(
                Instant::now() < end,
                "{kind:?}: {:?} {}",
                browsers[0].ended,
                browsers[0].pipe_over
            );
            browsers[0].turn().await;
        }
        assert!(
            browsers[0]
                .ended
                .as_deref()
                .is_some_and(|how| how.contains("ByPeer")),
            "{:?}",
            browsers[0].ended
        );
        goodbye.await.expect("no panic");
    }
}

#[tokio::test]
async fn a_sleeping_server_wakes_up_for_browsers() {
    for kind in KINDS {
        let (mut server, key) = server();
        let mut browser = Browser::connect(server.web().expect("given"), kind, key).await;
        let end = Instant::now() + PATIENCE;
        while server.web().map(|web| web.sessions()) != Some(1) {
            assert!(Instant::now() < end, "{kind:?}: the session was not opened");
            server.poll().expect("the socket works");
        }
        // Nothing is due at the server and nothing comes over UDP: only the browser can end the sleep before its time.
        let sleep = Duration::from_secs(600);
        let asleep = tokio::task::spawn_blocking(move || {
            let woken = server.wait(sleep).expect("the socket works");
            (woken, server)
        });
        while !asleep.is_finished() {
            browser.turn().await;
        }
        let (woken, _server) = asleep.await.expect("no panic");
        assert!(woken, "{kind:?}");
    }
}

#[tokio::test]
async fn too_many_sessions_of_one_address_and_pages_of_others_are_turned_away() {
    let options = WebOptions::new(browser::loopback())
        .sessions_per_address(2)
        .origin("https://game.example");
    let (server, _) = server_with(options);
    let web = server.web().expect("given");
    for kind in KINDS {
        let stranger = Pipe::open(web, kind).await;
        assert!(stranger.is_err(), "{kind:?}: a page without that origin");
    }
    drop(server);

    let options = WebOptions::new(browser::loopback()).sessions_per_address(2);
    let (mut server, _) = server_with(options);
    let mut pipes = Vec::new();
    for kind in KINDS {
        pipes.push(
            Pipe::open(server.web().expect("given"), kind)
                .await
                .expect("room"),
        );
    }
    for kind in KINDS {
        assert!(
            Pipe::open(server.web().expect("given"), kind)
                .await
                .is_err(),
            "{kind:?}"
        );
    }
    // A client that disconnects makes room.
    pipes.clear();
    let end = Instant::now() + PATIENCE;
    let counters = |server: &EndpointDriver| server.web().expect("given").counters();
    while counters(&server).sessions_closed < 2 {
        assert!(Instant::now() < end, "{:?}", counters(&server));
        server.poll().expect("the socket works");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for kind in KINDS {
        let web = server.web().expect("given");
        let mut opened = Pipe::open(web, kind).await;
        while opened.is_err() && Instant::now() < end {
            opened = Pipe::open(web, kind).await;
        }
        assert!(opened.is_ok(), "{kind:?}");
        drop(opened);
    }
}
