//! Each mechanic of the level does what it should, for whom it should.

use muse_biobot::{Command, Level, Phase, Player};

use crate::table::{Table, towards, yard};

const DOOR: &str = r#"{ "id": "door", "what": { "door": { "min": [-2, 0, -5.5], "max": [2, 3, -5], "slide": [0, 3.1, 0], "ticks": 20, "needs": NEEDS } } }"#;

fn with(devices: &str, needs: &str) -> Table {
    let door = DOOR.replace("NEEDS", needs);
    let more = format!(r#", "devices": [ {devices}, {door} ]"#);
    let mut table = Table::near(yard("cooperative", &more), 2);
    table.begin();
    table
}

fn lever(id: &str, at: [f32; 3], only: Option<u8>) -> String {
    switch("lever", id, at, only)
}

fn switch(kind: &str, id: &str, at: [f32; 3], only: Option<u8>) -> String {
    let only = only.map_or(String::new(), |slot| format!(r#""only": {slot}, "#));
    format!(r#"{{ "id": "{id}", {only}"what": {{ "{kind}": {{ "at": {at:?} }} }} }}"#)
}

/// Uses whatever is near, by pressing and letting go.
fn use_now(table: &mut Table, slot: usize) {
    let press = move |who: usize, _: &mut Player| Command {
        use_: who == slot,
        ..Command::default()
    };
    table.run(5, press);
    table.run(5, |_, _| Command::default());
}

/// Walks a robot somewhere, while the other does something.
fn walk(table: &mut Table, slot: usize, to: [f32; 3], other: Command) {
    let mut there = false;
    for _ in 0..4_000 {
        table.step(&mut |who, player| {
            let Some(robot) = player.predicted().filter(|_| who == slot) else {
                return other;
            };
            let (command, near) = towards(robot, to);
            there |= near;
            command
        });
        if there {
            break;
        }
    }
    assert!(
        there,
        "robot {slot} did not come to {to:?}: it is at {:?}",
        table.robot(slot as u8).position
    );
}

#[test]
fn a_lever_opens_a_door_for_good() {
    let mut table = with(
        &lever("lever", [-4.0, 1.2, 8.0], None),
        r#"{ "of": ["lever"], "latch": true }"#,
    );
    use_now(&mut table, 1);
    assert!(!table.active("lever"), "too far away");
    walk(&mut table, 0, [-4.0, 0.0, 9.0], Command::default());
    use_now(&mut table, 0);
    table.run(60, |_, _| Command::default());
    assert!(table.active("lever") && table.active("door"));
    let robot = |table: &Table| table.robot(0).position[2];
    walk(&mut table, 0, [0.0, 0.0, -3.0], Command::default());
    walk(&mut table, 0, [0.0, 0.0, -8.0], Command::default());
    assert!(robot(&table) < -7.0);
}

#[test]
fn a_closed_door_blocks() {
    let mut table = with(
        &lever("lever", [-4.0, 1.2, 8.0], None),
        r#"{ "of": ["lever"] }"#,
    );
    walk(&mut table, 0, [0.0, 0.0, 0.0], Command::default());
    table.run(150, |who, _| Command {
        forward: i8::from(who == 0),
        ..Command::default()
    });
    let z = table.robot(0).position[2];
    assert!(
        (-4.65..-4.5).contains(&z),
        "it stands before the door, at {z}"
    );
}

#[test]
fn what_is_for_one_robot_is_for_no_other() {
    let mut table = with(
        &lever("lever", [0.0, 1.2, 10.0], Some(1)),
        r#"{ "of": ["lever"] }"#,
    );
    walk(&mut table, 0, [-1.0, 0.0, 10.0], Command::default());
    use_now(&mut table, 0);
    assert!(!table.active("lever"));
    walk(&mut table, 1, [1.0, 0.0, 10.0], Command::default());
    use_now(&mut table, 1);
    assert!(table.active("lever"));
}

#[test]
fn a_gate_lets_one_robot_through() {
    let gate = r#"{ "id": "gate", "only": 0, "what": { "door": { "min": [-30, 0, -0.5], "max": [30, 3, 0], "slide": [0, 3.1, 0], "ticks": 20, "needs": { "of": ["lever"] } } } }"#;
    let devices = format!("{}, {gate}", lever("lever", [25.0, 1.2, -20.0], None));
    let mut table = with(&devices, r#"{ "of": ["lever"] }"#);
    table.run(150, |_, _| Command {
        forward: 1,
        ..Command::default()
    });
    assert!(table.robot(0).position[2] < -2.0, "its own gate");
    assert!(table.robot(1).position[2] > 0.3, "the other's gate");
}

#[test]
fn two_buttons_count_at_the_same_time_only() {
    let buttons = [
        switch("button", "one", [-4.0, 1.2, 9.0], None),
        switch("button", "two", [4.0, 1.2, 9.0], None),
    ];
    let needs = r#"{ "of": ["one", "two"], "within": 25, "latch": true }"#;
    let mut table = with(&buttons.join(", "), needs);
    use_now(&mut table, 0);
    table.run(60, |_, _| Command::default());
    use_now(&mut table, 1);
    table.run(60, |_, _| Command::default());
    assert!(!table.active("door"), "one after the other");
    table.run(4, |_, _| Command {
        use_: true,
        ..Command::default()
    });
    table.run(60, |_, _| Command::default());
    assert!(table.active("door"), "together");
}

#[test]
fn a_held_button_opens_as_long_as_it_is_held() {
    let mut table = with(
        &switch("hold", "hold", [-4.0, 1.2, 9.0], None),
        r#"{ "of": ["hold"] }"#,
    );
    let held = |who: usize, _: &mut Player| Command {
        use_: who == 0,
        ..Command::default()
    };
    table.run(60, held);
    assert!(table.active("hold") && table.active("door"));
    let holding = Command {
        use_: true,
        ..Command::default()
    };
    walk(&mut table, 1, [0.0, 0.0, -3.0], holding);
    walk(&mut table, 1, [0.0, 0.0, -8.0], holding);
    table.run(60, |_, _| Command::default());
    assert!(!table.active("hold") && !table.active("door"));
}

#[test]
fn a_plate_opens_as_long_as_somebody_stands_on_it_and_a_door_spares_who_is_in_it() {
    let plate = r#"{ "id": "plate", "what": { "plate": { "area": { "min": [-8, -0.2, 8], "max": [-6, 1, 12] } } } }"#;
    let mut table = with(plate, r#"{ "of": ["plate"] }"#);
    assert!(!table.active("plate"));
    walk(&mut table, 0, [-7.0, 0.0, 10.0], Command::default());
    table.run(60, |_, _| Command::default());
    assert!(table.active("plate") && table.active("door"));
    // One stands in the door: it does not close.
    walk(&mut table, 1, [0.0, 0.0, -2.0], Command::default());
    walk(&mut table, 1, [0.0, 0.0, -5.25], Command::default());
    walk(&mut table, 0, [-3.0, 0.0, 10.0], Command::default());
    table.run(60, |_, _| Command::default());
    assert!(!table.active("plate") && table.active("door"));
    walk(&mut table, 1, [0.0, 0.0, -8.0], Command::default());
    table.run(60, |_, _| Command::default());
    assert!(!table.active("door"));
}

#[test]
fn a_hidden_weapon_is_found_by_each() {
    let rail = r#"{ "id": "rail", "what": { "pickup": { "at": [-4, 1, 6], "weapon": 4 } } }"#;
    let mut table = with(
        &format!("{rail}, {}", lever("lever", [20.0, 1.0, 20.0], None)),
        r#"{ "of": ["lever"] }"#,
    );
    assert!(!table.robot(0).owns(4));
    walk(&mut table, 0, [-4.0, 0.0, 6.0], Command::default());
    table.run(10, |_, _| Command::default());
    assert!(table.robot(0).owns(4) && !table.robot(1).owns(4));
    let told = table.guests[0].heard.iter().any(|message| {
        matches!(message, muse_biobot::ToPlayer::Progress { owned, .. } if owned & 0b1000 != 0)
    });
    assert!(told, "to be saved");
    walk(&mut table, 1, [-4.0, 0.0, 6.0], Command::default());
    table.run(10, |_, _| Command::default());
    assert!(table.robot(1).owns(4));
}

#[test]
fn who_falls_comes_back_at_the_checkpoint() {
    let mut table = Table::near(Level::escape(), 2);
    table.begin();
    let start = table.robot(0);
    // Over the barrier and into the pit.
    table.until(
        600,
        |who, player| {
            let near = player
                .predicted()
                .is_some_and(|robot| robot.position[2] < -1.5 && robot.position[2] > -3.0);
            Command {
                forward: i8::from(who == 0),
                jump: who == 0 && near,
                ..Command::default()
            }
        },
        |table| !table.robot(0).alive(),
    );
    assert_eq!(table.stage.round().deaths[0], 1);
    table.run(260, |_, _| Command::default());
    let back = table.robot(0);
    assert!(back.alive() && back.lives != start.lives);
    assert!((back.position[2] - 5.0).abs() < 0.5, "{:?}", back.position);
}

#[test]
fn checkpoints_count_for_both_and_the_exit_wins() {
    let more = r#", "checkpoints": [
        { "name": "first", "area": { "min": [-30, -1, 8], "max": [30, 4, 16] }, "spawns": [ { "at": [-4, 0.02, 10] }, { "at": [4, 0.02, 10] } ] },
        { "name": "second", "area": { "min": [-30, -1, -4], "max": [30, 4, 2] }, "spawns": [ { "at": [0, 0.02, 0] }, { "at": [2, 0.02, 0] } ] } ],
        "exit": { "min": [-30, -1, -30], "max": [30, 4, -14] }"#;
    let mut table = Table::near(yard("cooperative", more), 2);
    table.begin();
    walk(&mut table, 1, [4.0, 0.0, 0.0], Command::default());
    table.run(5, |_, _| Command::default());
    assert_eq!(table.stage.round().checkpoint, 1);
    assert_eq!(table.robot(0).checkpoint, 1);
    walk(&mut table, 1, [4.0, 0.0, -18.0], Command::default());
    table.run(5, |_, _| Command::default());
    assert_eq!(table.stage.round().phase, Phase::Playing, "one is missing");
    walk(&mut table, 0, [0.0, 0.0, -18.0], Command::default());
    table.run(5, |_, _| Command::default());
    assert_eq!(table.stage.round().phase, Phase::Won);
    let outcome = table.stage.outcome().expect("it is over");
    assert_eq!(
        (outcome.phase, outcome.cancelled, outcome.table.len()),
        (Phase::Won, false, 2)
    );
    assert!(outcome.table[0].points > 1_000);
}
