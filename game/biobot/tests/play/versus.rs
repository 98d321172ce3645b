//! Everyone against everyone: hits as they were seen, kills, the feed, the table.

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::player::Switches;
use muse_biobot::weapons::angles;
use muse_biobot::{Command, Level, Phase, Player, StageConfig, ToPlayer};
use muse_netem::{Conditions, Jitter};

use crate::table::{Table, yard};

/// Shots and hits of a player with a blaster on another that runs to and fro across its view.
fn duel(delay_ms: u64, loss: f64, switches: Switches) -> (u32, usize, Table) {
    let conditions = Conditions::default()
        .delay(Duration::from_millis(delay_ms))
        .jitter(Jitter::Uniform(Duration::from_millis(4)))
        .loss(loss);
    let config = StageConfig::new(Arc::new(yard("versus", "")))
        .slots(2)
        .kills_to_win(1_000);
    let mut table = Table::new(config, 2, conditions, 21);
    table.begin();
    table.guests[0].player.set_switches(switches);
    let heard = table.guests[0].heard.len();
    for turn in 0..3_000_u32 * 4 {
        let now = table.now;
        table.guests[0].player.frame(now);
        table.step(&mut |who, player| match who {
            0 => aim(player),
            // To and fro, about 3 m each way.
            _ => Command {
                forward: if (turn / 120).is_multiple_of(2) {
                    1
                } else {
                    -1
                },
                ..Command::default()
            },
        });
    }
    let shots = u32::from(table.robot(0).shots);
    let hits = table.guests[0].heard[heard..]
        .iter()
        .filter(|message| matches!(message, ToPlayer::Hit { .. }))
        .count();
    (shots, hits, table)
}

/// At what is on the screen; the weapon is held still between shots.
fn aim(player: &mut Player) -> Command {
    let frame = player.last_frame();
    let tick = frame.time.tick;
    let (Some(own), Some(other)) = (&frame.own, frame.robots.first()) else {
        return Command::default();
    };
    if !other.robot.alive() {
        return Command::default();
    }
    let way = other.robot.middle() - own.robot.eye();
    let (yaw, pitch) = angles(way);
    let fires = tick.0 % 40 < 2;
    Command {
        yaw,
        pitch: pitch - own.robot.recoil(tick),
        aim: true,
        fire: fires && own.robot.aiming() == 1.0,
        weapon: 1,
        ..Command::default()
    }
}

#[test]
fn shots_hit_what_was_seen() {
    for (delay, loss) in [(30, 0.0), (200, 0.0), (30, 0.2)] {
        let (shots, hits, table) = duel(delay, loss, Switches::default());
        println!("{delay} ms each way, loss {loss}: {hits} of {shots} shots hit");
        assert!(shots > 25, "{shots}");
        assert!(
            hits as f64 > f64::from(shots) * 0.85,
            "{delay} ms: {hits} of {shots}"
        );
        let conduct = &table.stage.report().players[0].conduct;
        let forged = conduct.count(muse_biobot::cheats::Offence::ClaimForged);
        assert!(
            forged * 1_000 <= shots,
            "{forged} honest claims were not believed"
        );
    }
}

/// Somebody on a platform is drawn on it, where it is by now, and hit there.
#[test]
fn riders_are_drawn_on_their_platform_and_hit_there() {
    let raft = r#", "devices": [ { "id": "raft", "what": { "platform": { "min": [1, -0.3, 7], "max": [7, 0.01, 13],
        "path": [ { "offset": [0, 0, 0], "wait": 20, "ticks": 80 }, { "offset": [0, 2, -8], "wait": 20, "ticks": 80 } ] } } } ]"#;
    let conditions = Conditions::default()
        .delay(Duration::from_millis(100))
        .jitter(Jitter::Uniform(Duration::from_millis(4)));
    let config = StageConfig::new(Arc::new(yard("versus", raft)))
        .slots(2)
        .kills_to_win(1_000);
    let mut table = Table::new(config, 2, conditions, 5);
    table.begin();
    let (mut rides, mut off) = (0, 0.0_f32);
    for _ in 0..2_000 * 4 {
        let now = table.now;
        let frame = table.guests[0].player.frame(now);
        if let (Some(other), Some(device)) = (frame.robots.first(), frame.devices.first())
            && other.robot.alive()
            && other.robot.carrier() == Some(0)
        {
            rides += 1;
            let deck = 0.01 + device.offset[1];
            off = off.max((other.robot.feet().y - deck).abs());
        }
        table.step(&mut |who, player| match who {
            0 => aim(player),
            _ => Command::default(),
        });
    }
    let shots = u32::from(table.robot(0).shots);
    let heard = table.guests[0].heard.iter();
    let hits = heard
        .filter(|message| matches!(message, ToPlayer::Hit { .. }))
        .count();
    println!("{rides} frames aboard, at most {off} m off the deck, {hits} of {shots} shots hit");
    assert!(rides > 1_000, "{rides}");
    assert!(off < 0.05, "{off} m off the deck");
    assert!(shots > 25, "{shots}");
    assert!(
        hits as f64 > f64::from(shots) * 0.85,
        "{hits} of {shots} shots hit"
    );
}

#[test]
fn without_compensation_they_do_not() {
    let off = Switches {
        lag_compensation: false,
        ..Switches::default()
    };
    let (shots, hits, _) = duel(200, 0.0, off);
    assert!((hits as f64) < f64::from(shots) * 0.7, "{hits} of {shots}");
}

#[test]
fn kills_are_told_counted_and_end_the_match() {
    let config = StageConfig::new(Arc::new(yard("versus", "")))
        .slots(2)
        .kills_to_win(2);
    let mut table = Table::new(config, 2, Conditions::default(), 2);
    table.begin();
    for _ in 0..6_000 * 4 {
        let now = table.now;
        table.guests[0].player.frame(now);
        table.step(&mut |who, player| match who {
            0 => aim(player),
            _ => Command::default(),
        });
        if table.stage.outcome().is_some() {
            break;
        }
    }
    table.run(3, |_, _| Command::default());
    let outcome = table.stage.outcome().expect("two kills").clone();
    assert_eq!(outcome.phase, Phase::Over);
    assert_eq!((outcome.table[0].slot, outcome.table[0].kills), (0, 2));
    assert_eq!((outcome.table[1].slot, outcome.table[1].deaths), (1, 2));
    for guest in &table.guests {
        let feed = guest.heard.iter().filter(|message| {
            matches!(
                message,
                ToPlayer::KillFeed {
                    killer: Some(0),
                    victim: 1,
                    weapon: 1
                }
            )
        });
        assert_eq!(feed.count(), 2);
        assert!(
            guest
                .heard
                .iter()
                .any(|message| matches!(message, ToPlayer::Result { .. }))
        );
    }
    let hurt = |message: &&ToPlayer| matches!(message, ToPlayer::Hurt { .. });
    let victim = table.guests[1].heard.iter().find(hurt).expect("it was hit");
    // The shooter stands at x -4, the victim at 4: it comes from the left, along -x.
    let ToPlayer::Hurt { direction, .. } = victim else {
        return;
    };
    assert!(direction.abs() > 0.1, "{direction}");
    assert!(!table.guests[0].heard.iter().any(|message| hurt(&message)));
}

#[test]
fn sixteen_fit() {
    let config = StageConfig::new(Arc::new(muse_biobot::Level::arena())).slots(16);
    let mut table = Table::new(config, 16, Conditions::default(), 3);
    table.begin();
    let mut people: Vec<_> = (0..16).map(crate::network::Restless::new).collect();
    table.run(200, |slot, _| people[slot].act());
    let before: Vec<u64> = table.guests.iter().map(|guest| guest.bytes[1]).collect();
    table.run(400, |slot, _| people[slot].act());
    let now = table.now;
    let mut most = 0.0_f64;
    for (guest, before) in table.guests.iter_mut().zip(before) {
        assert_eq!(guest.player.frame(now).robots.len(), 15);
        // 8 s; 25 datagrams a second, to each of which the transport adds.
        let bytes = (guest.bytes[1] - before) as f64 / 8.0 + 25.0 * 28.0;
        most = most.max(bytes * 8.0 / 1e3);
    }
    println!("FIGURE sixteen restless players: {most:.1} kbit/s down at most");
    assert!(most < 64.0, "{most} kbit/s");
}

#[test]
fn who_comes_back_is_there_at_once_and_flies_nowhere() {
    let level = Arc::new(Level::arena());
    let config = StageConfig::new(Arc::clone(&level)).slots(4).seed(2);
    let mut table = Table::new(config, 4, Conditions::default(), 2);
    table.begin();
    let brain = |bot| muse_biobot::bots::Brain::new(Arc::clone(&level), bot);
    let mut brains: Vec<_> = (0..4).map(brain).collect();
    for _ in 0..60 * 50 {
        let now = table.now;
        table.run(1, |slot, player| brains[slot].act(now, player));
    }
    let deaths: u16 = table.stage.round().deaths.iter().sum();
    assert!(deaths >= 2, "{deaths} deaths");
    for guest in &mut table.guests {
        let figures = guest.player.last_frame().statistics;
        assert!(figures.jump_most < 0.2, "by up to {} m", figures.jump_most);
    }
}
