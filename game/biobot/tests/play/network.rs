//! Prediction, interpolation and bytes over networks that delay and lose.

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::{Command, Player, StageConfig};
use muse_netem::{Conditions, Jitter};

use crate::table::{Table, yard};

fn network(round_trip_ms: u64, loss: f64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(round_trip_ms / 2))
        .jitter(Jitter::Uniform(Duration::from_millis(5)))
        .loss(loss)
}

/// Runs about, looks around, jumps and shoots, as a seed says.
pub(crate) struct Restless {
    rng: fastrand::Rng,
    pressed: Command,
    left: u32,
}

impl Restless {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            pressed: Command::default(),
            left: 0,
        }
    }

    /// Returns its command for the next 5 ms.
    pub(crate) fn act(&mut self) -> Command {
        if self.left == 0 {
            self.left = self.rng.u32(20..160);
            self.pressed.forward = self.rng.i8(-1..=1);
            self.pressed.right = self.rng.i8(-1..=1);
            self.pressed.fire = self.rng.u32(..4) == 0;
            self.pressed.aim = self.rng.u32(..4) == 0;
            self.pressed.reload = self.rng.u32(..8) == 0;
            self.pressed.weapon = self.rng.u8(0..4);
        }
        self.left -= 1;
        self.pressed.jump = self.rng.u32(..60) == 0;
        self.pressed.yaw += (self.rng.f32() - 0.47) * 0.06;
        self.pressed.pitch = (self.pressed.pitch + (self.rng.f32() - 0.5) * 0.02).clamp(-1.0, 1.0);
        self.pressed
    }
}

fn raft() -> &'static str {
    r#", "devices": [ { "id": "raft", "what": { "platform": { "min": [-3, 0, -4], "max": [3, 0.3, 2],
        "path": [ { "offset": [0, 0, 0], "wait": 20, "ticks": 100 }, { "offset": [0, 2, -8], "wait": 20, "ticks": 100 } ] } } } ]"#
}

/// Counts corrections and ticks without their input over a minute of two restless players.
fn predict(conditions: Conditions, seed: u64) -> (u64, u64, u64) {
    let level = Arc::new(yard("cooperative", raft()));
    let config = StageConfig::new(level).slots(2);
    let mut table = Table::new(config, 2, conditions, seed);
    table.begin();
    table.run(100, |_, _| Command::default());
    let count = |table: &Table| {
        let mut sums = [0; 3];
        for guest in &table.guests {
            let made = guest.player.client().prediction();
            let inputs = table.stage.server().input_counters(guest.client);
            let inputs = inputs.expect("it is there");
            sums[0] += made.corrected;
            sums[1] += made.confirmed;
            sums[2] += inputs.repeated + inputs.missing;
        }
        sums
    };
    let before = count(&table);
    let mut people = [Restless::new(seed), Restless::new(seed + 7)];
    table.run(1_500, |slot, _| people[slot].act());
    let after = count(&table);
    (
        after[0] - before[0],
        after[1] - before[1],
        after[2] - before[2],
    )
}

#[test]
fn predictions_are_exact_when_inputs_are_in_time() {
    for seed in 1..=3 {
        let (corrected, confirmed, late) = predict(network(100, 0.0), seed);
        assert_eq!(late, 0, "seed {seed}: inputs were late without loss");
        assert_eq!(corrected, 0, "seed {seed}");
        assert!(confirmed > 1_000, "seed {seed}: {confirmed}");
    }
}

#[test]
fn with_loss_only_what_came_late_is_corrected() {
    let mut sums = [0; 3];
    for seed in 1..=4 {
        let (corrected, confirmed, late) = predict(network(100, 0.05), seed);
        assert!(
            corrected <= late,
            "seed {seed}: {corrected} corrections, {late} late inputs"
        );
        assert!(confirmed > 1_000, "seed {seed}: {confirmed}");
        sums = [sums[0] + corrected, sums[1] + confirmed, sums[2] + late];
    }
    println!(
        "5 % loss: {} corrected, {} confirmed, {} ticks without their input",
        sums[0], sums[1], sums[2]
    );
    assert!(sums[0] * 100 < sums[1], "{sums:?}");
}

#[test]
fn what_opens_moves_as_predicted() {
    // Both walk on a lift that rises under them: nobody is corrected, for it said beforehand that it would.
    let more = r#", "devices": [
        { "id": "plate", "what": { "plate": { "area": { "min": [-6, -0.2, 4], "max": [6, 5, 8] } } } },
        { "id": "lift", "what": { "lift": { "min": [-6, -0.5, 4], "max": [6, 0.02, 8], "travel": [0, 3, 0], "ticks": 80, "needs": { "of": ["plate"] } } } } ]"#;
    let config = StageConfig::new(Arc::new(yard("cooperative", more))).slots(2);
    let mut table = Table::new(config, 2, network(100, 0.0), 3);
    table.begin();
    let before: u64 = table
        .guests
        .iter()
        .map(|guest| guest.player.client().prediction().corrected)
        .sum();
    let ahead = |_: usize, player: &mut Player| {
        let there = player
            .predicted()
            .is_some_and(|robot| robot.position[2] < 6.5);
        Command {
            forward: i8::from(!there),
            ..Command::default()
        }
    };
    table.run(250, ahead);
    assert!(table.active("lift"));
    for slot in [0, 1] {
        let robot = table.robot(slot);
        assert!(
            robot.position[1] > 2.9,
            "robot {slot} is at {:?}",
            robot.position
        );
        assert_eq!(robot.standing, 3, "it stands on the lift");
    }
    let after: u64 = table
        .guests
        .iter()
        .map(|guest| guest.player.client().prediction().corrected)
        .sum();
    assert_eq!(after, before);
}

#[test]
fn nothing_jumps_at_200_ms_each_way_nor_at_20_percent_loss() {
    for (conditions, name) in [
        (network(400, 0.0), "200 ms each way"),
        (network(60, 0.2), "20 % loss"),
    ] {
        let level = Arc::new(yard("cooperative", raft()));
        let config = StageConfig::new(level).slots(2);
        let mut table = Table::new(config, 2, conditions, 5);
        table.begin();
        let mut people = [Restless::new(1), Restless::new(2)];
        let mut shown = 0;
        for _ in 0..1_500 * 4 {
            table.step(&mut |slot, _| people[slot].act());
            let now = table.now;
            for guest in &mut table.guests {
                shown += guest.player.frame(now).robots.len();
            }
        }
        for guest in &mut table.guests {
            let figures = guest.player.last_frame().statistics;
            assert_eq!(figures.jumps, 0, "{name}: by up to {} m", figures.jump_most);
        }
        assert!(shown > 10_000, "{name}: {shown}");
    }
}

#[test]
fn who_is_cut_off_sees_others_come_back_and_nothing_jump_later() {
    let level = Arc::new(yard("versus", ""));
    let mut table = Table::new(StageConfig::new(level).slots(2), 2, network(60, 0.0), 5);
    table.begin();
    let mut people = [Restless::new(1), Restless::new(2)];
    let mut play = |table: &mut Table, ticks: u32| {
        for _ in 0..ticks * 4 {
            table.step(&mut |slot, _| people[slot].act());
            let now = table.now;
            table.guests[0].player.frame(now);
        }
        table.guests[0].player.last_frame().statistics
    };
    play(&mut table, 250);
    table.guests[0].cut = true;
    play(&mut table, 250);
    table.guests[0].cut = false;
    let after = play(&mut table, 500);
    assert!(after.resumed > 0, "the other had gone on: {after:?}");
    assert_eq!(after.jumps, 0, "by up to {} m", after.jump_most);
}

#[test]
fn steady_play_fits_into_its_bytes() {
    for loss in [0.0, 0.05] {
        let level = Arc::new(yard("cooperative", raft()));
        let config = StageConfig::new(level).slots(2);
        let mut table = Table::new(config, 2, network(60, loss), 9);
        table.begin();
        let mut people = [Restless::new(4), Restless::new(5)];
        table.run(250, |slot, _| people[slot].act());
        let start: Vec<_> = table
            .guests
            .iter()
            .map(|guest| (guest.bytes, guest.packets))
            .collect();
        table.run(1_500, |slot, _| people[slot].act());
        for (guest, (bytes, packets)) in table.guests.iter().zip(start) {
            let rate = |way: usize| (guest.bytes[way] - bytes[way]) as f64 / 30.0;
            let per_second = |way: usize| (guest.packets[way] - packets[way]) as f64 / 30.0;
            // What the transport adds to a datagram of one message.
            let payload = |way: usize| (rate(way) + per_second(way) * TRANSPORT_BYTES) * 8.0 / 1e3;
            println!(
                "loss {loss}: up {:.0} B/s in {:.1} packets/s, {:.1} kbit/s; down {:.0} B/s in {:.1}, {:.1} kbit/s",
                rate(0),
                per_second(0),
                payload(0),
                rate(1),
                per_second(1),
                payload(1)
            );
            assert!(payload(0) < 24.0, "up {:.1} kbit/s", payload(0));
            assert!(payload(1) < 24.0, "down {:.1} kbit/s", payload(1));
        }
    }
}

/// Bytes that the transport adds to a datagram, about: a header of 7, a tag of 16, the head of a frame, acknowledgements.
const TRANSPORT_BYTES: f64 = 28.0;

#[test]
fn the_same_match_gives_the_same_sums() {
    let play = || {
        let config = StageConfig::new(Arc::new(muse_biobot::Level::arena()))
            .slots(4)
            .seed(11);
        let mut table = Table::new(config, 4, network(80, 0.03), 11);
        let mut people: Vec<Restless> = (0..4).map(Restless::new).collect();
        let mut sums = Vec::new();
        for _ in 0..20 {
            table.run(50, |slot, _| people[slot].act());
            sums.push(table.stage.checksum());
        }
        sums
    };
    let first = play();
    assert_eq!(first, play());
    assert!(first.windows(2).all(|pair| pair[0] != pair[1]));
}

#[test]
fn a_fight_fits_into_its_bytes() {
    // Two bots in the hall of cats.
    let level = Arc::new(muse_biobot::Level::escape());
    let config = StageConfig::new(Arc::clone(&level)).slots(2).seed(5);
    let mut table = Table::at_checkpoint(config, network(60, 0.0), 5);
    table.begin();
    let mut brains = [1, 2].map(|bot| muse_biobot::bots::Brain::new(Arc::clone(&level), bot));
    table.run(100, |_, _| Command::default());
    let start: Vec<_> = table
        .guests
        .iter()
        .map(|guest| (guest.bytes, guest.packets))
        .collect();
    let (mut awake, mut most) = (0, 0);
    for _ in 0..1_000 {
        let now = table.now;
        table.run(1, |slot, player| brains[slot].act(now, player));
        awake += table.stage.horde().active();
        most = most.max(table.stage.horde().active());
    }
    for (guest, (bytes, packets)) in table.guests.iter().zip(start) {
        let payload = |way: usize| {
            let bytes = (guest.bytes[way] - bytes[way]) as f64 / 20.0;
            let packets = (guest.packets[way] - packets[way]) as f64 / 20.0;
            (bytes + packets * TRANSPORT_BYTES) * 8.0 / 1e3
        };
        println!(
            "FIGURE fight with {:.1} enemies in the mean, {most} at most: up {:.1} kbit/s, down {:.1} kbit/s",
            awake as f64 / 1e3,
            payload(0),
            payload(1)
        );
        assert!(
            payload(0) < 24.0 && payload(1) < 24.0,
            "{:.1}, {:.1}",
            payload(0),
            payload(1)
        );
    }
    assert!(most >= 4, "{most} enemies were awake");
}
