//! Levels: those of the game are whole, and what would not work in play is refused with a word on what it is.

use muse_biobot::{Level, LevelError, Mode};

/// A level that works, with a piece replaced.
fn changed(from: &str, to: &str) -> Result<Level, LevelError> {
    let text = r#"{
        "name": "Test", "mode": "cooperative", "slots": 2, "kill_below": -9,
        "solids": [ { "note": "floor", "min": [-9, -1, -9], "max": [9, 0, 9] } ],
        "spawns": [ { "at": [0, 0.1, 0] } ],
        "checkpoints": [ { "name": "start", "area": { "min": [-1, 0, -1], "max": [1, 2, 1] }, "spawns": [ { "at": [0, 0.1, 0] } ], "opens": ["door"] } ],
        "devices": [
            { "id": "lever", "only": 1, "what": { "lever": { "at": [1, 1, 1] } } },
            { "id": "door", "what": { "door": { "min": [2, 0, 2], "max": [3, 2, 3], "slide": [0, 2, 0], "ticks": 20, "needs": { "of": ["lever"] } } } },
            { "id": "raft", "what": { "platform": { "min": [5, 0, 5], "max": [6, 1, 6], "path": [ { "offset": [0, 0, 0], "ticks": 50 }, { "offset": [2, 0, 0], "ticks": 50 } ] } } },
            { "id": "gun", "what": { "pickup": { "at": [1, 1, 1], "weapon": 4 } } }
        ],
        "enemies": [ { "species": "cat", "at": [4, 0.1, 4], "group": "cats" } ],
        "objectives": [ { "name": "go", "tasks": [ { "act": { "use": { "device": "lever" } } } ], "until": { "active": { "device": "door" } } } ]
    }"#;
    assert!(text.contains(from), "nothing to replace: {from}");
    Level::parse(&text.replacen(from, to, 1))
}

#[test]
fn the_levels_of_the_game_are_whole() {
    let escape = Level::escape();
    assert_eq!((escape.mode, escape.slots), (Mode::Cooperative, 2));
    assert!(
        escape.checkpoints.len() >= 6,
        "checkpoints between the rooms"
    );
    assert!(escape.exit.is_some() && escape.boss.is_some());
    for only in [0, 1] {
        let own = escape
            .devices
            .iter()
            .filter(|device| device.only == Some(only));
        assert!(own.count() >= 2, "elements for robot {only} alone");
    }
    let arena = Level::arena();
    assert_eq!((arena.mode, arena.slots), (Mode::Versus, 16));
    assert!(arena.spawns.len() >= 16);
    // What is on the one side is on the other.
    let volume = |side: f32| -> f32 {
        let on_side = arena
            .solids
            .iter()
            .filter(|solid| (solid.min[0] + solid.max[0]) * side > 0.0);
        on_side
            .map(|solid| {
                (0..3)
                    .map(|axis| solid.max[axis] - solid.min[axis])
                    .product::<f32>()
            })
            .sum()
    };
    assert!((volume(1.0) - volume(-1.0)).abs() < 1.0);
}

#[test]
fn the_pitch_is_the_same_for_both_teams() {
    let pitch = Level::pitch();
    assert_eq!((pitch.mode, pitch.slots), (Mode::Ball, 8));
    let mirrored = |at: [f32; 3]| [-at[0], at[1], -at[2]];
    for pair in pitch.spawns.chunks(2) {
        let [one, other] = pair else {
            unreachable!("the spawns are even in number");
        };
        assert_eq!(mirrored(one.at), other.at);
        assert!(one.at[0] < 0.0, "team 0 begins on its own side");
    }
    let [one, other] = pitch.goals.as_slice() else {
        unreachable!("the level was checked");
    };
    let corners = |area: muse_biobot::level::Area| [area.min, area.max];
    let [low, high] = corners(one.area).map(|at| [-at[0], at[1], at[2]]);
    assert_eq!(corners(other.area).map(|at| at[0]), [high[0], low[0]]);
    assert_eq!(
        corners(other.area).map(|at| at[1..].to_vec()),
        [low, high].map(|at| at[1..].to_vec())
    );
}

#[test]
fn a_level_with_a_ball_has_goals_and_nothing_that_moves() {
    use LevelError::*;
    let text = include_str!("../levels/pitch.json");
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "nothing to replace: {from}");
        Level::parse(&text.replacen(from, to, 1)).expect_err(to)
    };
    let inside = refused("[0, 0.703125, 0]", "[0, 0.5, 0]");
    assert!(
        matches!(
            inside,
            Inside {
                what: "the kick-off",
                ..
            }
        ),
        "{inside}"
    );
    let many = refused("\"slots\": 8", "\"slots\": 16");
    assert!(
        matches!(
            many,
            Count {
                what: "slots",
                max: 8,
                ..
            }
        ),
        "{many}"
    );
    let team = refused("\"team\": 1", "\"team\": 0");
    assert!(matches!(team, Range { what: "team", .. }), "{team}");
    let mode = refused("\"mode\": \"ball\"", "\"mode\": \"versus\"");
    assert!(
        matches!(
            mode,
            Range {
                what: "kick_off",
                ..
            }
        ),
        "{mode}"
    );
    let without = refused("\"kick_off\": [0, 0.703125, 0],", "");
    assert!(
        matches!(
            without,
            Range {
                what: "kick_off",
                ..
            }
        ),
        "{without}"
    );
    let raft = r#""devices": [ { "id": "gun", "what": { "pickup": { "at": [1, 1, 1], "weapon": 4 } } } ], "goals""#;
    let moving = refused("\"goals\"", raft);
    assert!(
        matches!(
            moving,
            Count {
                what: "devices",
                max: 0,
                ..
            }
        ),
        "{moving}"
    );
}

#[test]
fn a_level_that_works_is_taken() {
    let level = changed("Test", "Other").expect("it is whole");
    let door = level.device("door").expect("it is there");
    assert_eq!(level.needs(door), &[0]);
}

#[test]
fn what_would_not_work_is_refused() {
    use LevelError::*;
    let refused = |from: &str, to: &str| changed(from, to).expect_err(to);
    assert!(matches!(
        refused("\"slots\": 2", "\"slots\": 2, \"colour\": 1"),
        Syntax { .. }
    ));
    assert!(matches!(
        refused("\"slots\": 2", "\"slots\": 17"),
        Count { what: "slots", .. }
    ));
    assert!(matches!(
        refused("[9, 0, 9]", "[9, 0, 900]"),
        Place { what: "solid", .. }
    ));
    assert!(matches!(
        refused("[9, 0, 9]", "[9, -2, 9]"),
        Place { what: "solid", .. }
    ));
    assert!(matches!(
        refused("\"of\": [\"lever\"]", "\"of\": [\"nothing\"]"),
        Unknown { .. }
    ));
    assert!(matches!(
        refused("\"of\": [\"lever\"]", "\"of\": [\"raft\"]"),
        Unknown { .. }
    ));
    assert!(matches!(
        refused("\"of\": [\"lever\"]", "\"of\": []"),
        Count { what: "needs", .. }
    ));
    assert!(matches!(
        refused("\"id\": \"raft\"", "\"id\": \"door\""),
        Twice(_)
    ));
    assert!(matches!(
        refused("\"only\": 1", "\"only\": 2"),
        Range { what: "only", .. }
    ));
    assert!(matches!(
        refused("\"weapon\": 4", "\"weapon\": 5"),
        Range { what: "weapon", .. }
    ));
    assert!(matches!(
        refused("\"ticks\": 20", "\"ticks\": 0"),
        Range { what: "ticks", .. }
    ));
    assert!(matches!(
        refused("\"slide\": [0, 2, 0]", "\"slide\": [0, 200, 0]"),
        Place { .. }
    ));
    assert!(matches!(
        refused(
            "{ \"at\": [0, 0.1, 0] } ],\n",
            "{ \"at\": [0, -0.5, 0] } ],\n"
        ),
        Inside { .. }
    ));
    assert!(matches!(
        refused("\"at\": [4, 0.1, 4]", "\"at\": [4, -0.8, 4]"),
        Inside { .. }
    ));
    assert!(matches!(
        refused("\"opens\": [\"door\"]", "\"opens\": [\"lever\"]"),
        Unknown { .. }
    ));
    assert!(matches!(
        refused(
            "\"use\": { \"device\": \"lever\"",
            "\"use\": { \"device\": \"levers\""
        ),
        Unknown { .. }
    ));
    assert!(matches!(
        refused("\"species\": \"cat\"", "\"species\": \"dog\""),
        Syntax { .. }
    ));
    let message = refused("\"of\": [\"lever\"]", "\"of\": [\"nothing\"]").to_string();
    assert!(
        message.contains("door") && message.contains("nothing"),
        "{message}"
    );
}

#[test]
fn random_bytes_are_no_level() {
    let mut rng = fastrand::Rng::with_seed(7);
    let whole = include_str!("../levels/escape.json");
    for _ in 0..300 {
        let mut bytes = whole.as_bytes().to_vec();
        for _ in 0..rng.u32(1..6) {
            let at = rng.u64(..) as usize % bytes.len();
            bytes[at] = rng.u8(32..127);
        }
        let text = String::from_utf8_lossy(&bytes);
        // Whatever comes out of it, nothing panics, and what is taken has what play needs.
        if let Ok(level) = Level::parse(&text) {
            assert!(!level.spawns.is_empty() && level.slots >= 1);
        }
    }
}
