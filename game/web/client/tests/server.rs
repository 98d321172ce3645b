//! A match on a game server, over the transport, with everything but sockets.

#[path = "support/page.rs"]
mod support;

use muse_biobot::Mode;
use muse_biobot_web::Client;
use muse_biobot_web::frame::{flags, header, net, robot, round};
use serde_json::Value;
use support::{GameServer, count, events, field};

/// Runs both sides in steps of 4 ms; the page is drawn every 16.
fn run(server: &mut GameServer, client: &mut Client, from: u32, to: u32) -> (Vec<f32>, Vec<Value>) {
    let (mut frame, mut told) = (Vec::new(), Vec::new());
    for ms in (from..to).step_by(4) {
        let now = f64::from(ms);
        client.advance(now);
        server.turn(now, client);
        if ms % 16 == 0
            && let Some(drawn) = client.frame(now)
        {
            frame = drawn;
        }
        for event in events(client, now) {
            if event["type"] == "welcome" {
                client.handle(now, r#"{"kind":"loaded"}"#);
            }
            told.push(event);
        }
    }
    (frame, told)
}

fn kinds(told: &[Value]) -> Vec<&str> {
    told.iter()
        .filter_map(|event| event["type"].as_str())
        .collect()
}

#[test]
fn a_page_joins_plays_and_leaves() {
    let mut server = GameServer::new(0.0, Mode::Versus);
    let mut client = Client::new();
    assert_eq!(
        client.start_server(0.0, 1_700_000_000.0, "Ada", &server.key, ""),
        None
    );
    client.set_link(1);
    let (frame, told) = run(&mut server, &mut client, 0, 5_000);
    assert_eq!(
        kinds(&told)[..2],
        ["connected", "welcome"],
        "{:?}",
        kinds(&told)
    );
    assert_eq!(frame[header::FLAGS] as u32, flags::CONNECTED);
    assert_eq!(field(&frame, 5, 0, round::PHASE), 2.0, "{:?}", kinds(&told));
    let own = frame[header::OWN_RECORD];
    assert_eq!(own, 0.0);
    assert_eq!(field(&frame, 6, 0, net::LINK), 1.0);
    let bytes = field(&frame, 6, 0, net::BYTES_OUT_PER_S);
    assert!((500.0..4_500.0).contains(&bytes), "{bytes} bytes a second");

    client.input(1, 0, 0, 0, 0.3, 0.0);
    let (walked, _) = run(&mut server, &mut client, 5_000, 6_000);
    let at = |frame: &[f32]| [robot::X, robot::Z].map(|axis| field(frame, 0, 0, axis));
    let (before, after) = (at(&frame), at(&walked));
    assert!((after[0] - before[0]).hypot(after[1] - before[1]) > 1.0);
    assert!((field(&walked, 0, 0, robot::YAW) - 0.3).abs() < 0.01);

    client.handle(6_000.0, r#"{"kind":"chat","text":"  to the lift\u0007 "}"#);
    let (_, told) = run(&mut server, &mut client, 6_000, 6_500);
    let chat = told.iter().find(|event| event["type"] == "chat");
    assert_eq!(
        chat.map(|chat| chat["text"].as_str()),
        Some(Some("to the lift"))
    );

    client.leave_server(6_500.0);
    run(&mut server, &mut client, 6_500, 6_600);
    assert!(server.connection.is_none(), "the server was told");
}

#[test]
fn a_bad_link_is_measured_and_survived() {
    let mut server = GameServer::new(0.0, Mode::Cooperative);
    let mut client = Client::new();
    client.handle(
        0.0,
        r#"{"kind":"conditions","delayMs":50,"jitterMs":10,"lossPercent":10}"#,
    );
    assert_eq!(
        client.start_server(0.0, 1_700_000_000.0, "Ada", &server.key, ""),
        None
    );
    let (frame, told) = run(&mut server, &mut client, 0, 15_000);
    assert_eq!(kinds(&told)[..2], ["connected", "welcome"]);
    let rtt = field(&frame, 6, 0, net::RTT_MS);
    assert!((90.0..190.0).contains(&rtt), "{rtt} ms");
    let loss = field(&frame, 6, 0, net::LOSS);
    assert!((0.02..0.25).contains(&loss), "{loss}");
    assert!(count(&frame, 0) == 1 && frame[header::OWN_RECORD] == 0.0);
}

#[test]
fn a_cut_interrupts_and_the_return_resumes() {
    let mut server = GameServer::new(0.0, Mode::Cooperative);
    let mut client = Client::new();
    assert_eq!(
        client.start_server(0.0, 1_700_000_000.0, "Ada", &server.key, ""),
        None
    );
    run(&mut server, &mut client, 0, 3_000);
    // No session: what is sent is lost, and nothing comes.
    let mut told = Vec::new();
    for ms in (3_000..11_000).step_by(20) {
        let now = f64::from(ms);
        client.advance(now);
        while client.poll_transmit(now).is_some() {}
        told.extend(events(&mut client, now));
    }
    assert_eq!(kinds(&told), ["interrupted"]);
    let frame = client.frame(11_000.0).expect("a match");
    assert_eq!(frame[header::FLAGS] as u32, flags::INTERRUPTED);
    let (frame, told) = run(&mut server, &mut client, 11_000, 13_000);
    assert!(kinds(&told).contains(&"resumed"), "{:?}", kinds(&told));
    assert_eq!(frame[header::FLAGS] as u32, flags::CONNECTED);
}

#[test]
fn a_server_of_another_key_is_no_server() {
    let mut server = GameServer::new(0.0, Mode::Cooperative);
    let mut client = Client::new();
    let other = "22".repeat(32);
    assert_eq!(
        client.start_server(0.0, 1_700_000_000.0, "Ada", &other, ""),
        None
    );
    let (_, told) = run(&mut server, &mut client, 0, 20_000);
    assert_eq!(kinds(&told), ["closed"]);
    assert!(server.connection.is_none());
}
