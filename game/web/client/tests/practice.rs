//! A match without a server: it begins, it plays, it is told, and the sliders make it worse.

#[path = "support/page.rs"]
mod support;

use muse_biobot_web::Client;
use muse_biobot_web::frame::{effect, effect_kind, flags, header, net, robot, round};
use support::{count, events, field};

const ROBOTS: usize = 0;
const EFFECTS: usize = 4;
const ROUND: usize = 5;
const NET: usize = 6;

/// Plays from `from` to `to` milliseconds and returns the last frame; `look` sees each.
fn play(client: &mut Client, from: u32, to: u32, mut look: impl FnMut(&[f32])) -> Vec<f32> {
    let mut last = Vec::new();
    for ms in (from..to).step_by(4) {
        let now = f64::from(ms);
        client.advance(now);
        if ms % 16 == 0
            && let Some(frame) = client.frame(now)
        {
            look(&frame);
            last = frame;
        }
    }
    last
}

fn practice() -> Client {
    let mut client = Client::new();
    let wanted = r#"{"kind":"start","mode":"practice","game":"cooperative","name":"Ada","bots":1,"difficulty":1,"seed":7}"#;
    client.start_practice(0.0, wanted);
    client
}

#[test]
fn practice_begins_by_itself_and_the_robot_walks() {
    let mut client = practice();
    let begun = play(&mut client, 0, 3_000, |_| {});
    let told = events(&mut client, 3_000.0);
    let kinds: Vec<_> = told
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect();
    assert_eq!(kinds[..2], ["connected", "welcome"], "{kinds:?}");
    assert!(
        told[1]["level"]["solids"]
            .as_array()
            .is_some_and(|solids| solids.len() > 10)
    );
    assert!(kinds.contains(&"names"), "{kinds:?}");
    assert_eq!(
        begun[header::FLAGS] as u32,
        flags::CONNECTED | flags::PRACTICE
    );
    assert_eq!(field(&begun, ROUND, 0, round::PHASE), 2.0, "it is played");
    assert_eq!(count(&begun, ROBOTS), 2);
    let own = begun[header::OWN_RECORD] as usize;
    let place = |frame: &[f32]| [robot::X, robot::Z].map(|axis| field(frame, ROBOTS, own, axis));
    let before = place(&begun);
    let yaw = field(&begun, ROBOTS, own, robot::YAW);
    client.input(1, 0, 0, 0, yaw, 0.0);
    let after = place(&play(&mut client, 3_000, 3_600, |_| {}));
    let walked = (after[0] - before[0]).hypot(after[1] - before[1]);
    assert!((1.0..4.0).contains(&walked), "{walked} m in 0.6 s");
}

#[test]
fn a_shot_is_seen_at_once_and_once() {
    let mut client = practice();
    play(&mut client, 0, 3_000, |_| {});
    // Pressed and let go before a tick: fired all the same.
    client.input(0, 0, 0b10, 0, 0.0, 0.0);
    client.input(0, 0, 0, 0, 0.0, 0.0);
    let (mut shots, mut first) = (0, None);
    let mut frames = 0;
    play(&mut client, 3_000, 4_000, |frame| {
        frames += 1;
        let own_slot = frame[header::OWN_SLOT];
        for record in 0..count(frame, EFFECTS) {
            let kind = field(frame, EFFECTS, record, effect::KIND) as u32;
            if kind == effect_kind::SHOT && field(frame, EFFECTS, record, effect::SLOT) == own_slot
            {
                shots += 1;
                first = first.or(Some(frames));
            }
        }
    });
    assert_eq!(shots, 1);
    assert!(first.is_some_and(|first| first <= 3), "in frame {first:?}");
}

#[test]
fn the_sliders_make_it_worse_and_prediction_hides_it() {
    let mut client = practice();
    client.handle(
        0.0,
        r#"{"kind":"conditions","delayMs":150,"jitterMs":0,"lossPercent":5}"#,
    );
    let frame = play(&mut client, 0, 6_000, |_| {});
    let rtt = field(&frame, NET, 0, net::RTT_MS);
    assert!((280.0..400.0).contains(&rtt), "{rtt} ms");
    assert!(field(&frame, NET, 0, net::LOSS) > 0.0);
    assert_eq!(field(&frame, NET, 0, net::CONDITION_DELAY_MS), 150.0);
    let own = frame[header::OWN_RECORD] as usize;
    let place = |frame: &[f32]| [robot::X, robot::Z].map(|axis| field(frame, ROBOTS, own, axis));
    let moved = |a: [f32; 2], b: [f32; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
    client.input(1, 0, 0, 0, field(&frame, ROBOTS, own, robot::YAW), 0.0);
    let soon = play(&mut client, 6_000, 6_200, |_| {});
    assert!(
        moved(place(&frame), place(&soon)) > 0.2,
        "it walks before the server knows"
    );

    client.input(0, 0, 0, 0, 0.0, 0.0);
    client.handle(
        6_200.0,
        r#"{"kind":"switches","prediction":false,"interpolation":true,"lagCompensation":true}"#,
    );
    let still = play(&mut client, 6_200, 8_000, |_| {});
    client.input(-1, 0, 0, 0, field(&still, ROBOTS, own, robot::YAW), 0.0);
    let soon = play(&mut client, 8_000, 8_200, |_| {});
    assert!(
        moved(place(&still), place(&soon)) < 0.05,
        "without prediction it waits for the server"
    );
    let late = play(&mut client, 8_200, 9_000, |_| {});
    assert!(moved(place(&still), place(&late)) > 0.3);
}

#[test]
fn what_makes_no_sense_is_passed_over() {
    let mut client = Client::new();
    client.start_practice(0.0, "{}");
    assert_eq!(events(&mut client, 0.0)[0]["type"], "error");
    for text in ["", "{", r#"{"kind":"chat"}"#, r#"{"kind":"fly"}"#] {
        client.handle(0.0, text);
    }
    client.input(127, -128, 255, 255, f32::NAN, f32::INFINITY);
    client.advance(f64::NAN);
    client.handle_datagram(1.0, vec![1, 2, 3]);
    assert_eq!((client.frame(1.0), client.poll_transmit(1.0)), (None, None));
    assert!(client.start_server(1.0, 0.0, "Ada", "zz", "").is_some());
    assert!(
        client
            .start_server(1.0, 0.0, "Ada", "", "no token")
            .is_some()
    );
}
