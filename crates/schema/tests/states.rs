//! States and rows: what is loaded is stored as the same row again, whatever the row; what is stored is near what was given.

use muse_schema::{ColumnKind, Columns, DecodeError, Guard, State};
use proptest::prelude::*;

#[derive(State, Clone, Debug, PartialEq)]
struct Everything {
    #[field(range = -500.0..=500.0, step = 0.001, velocity = velocity, interpolate = hermite)]
    position: [f64; 3],
    #[field(range = -50.0..=50.0, step = 0.01)]
    velocity: [f64; 3],
    #[field(range = -1000.0..=1000.0, step = 0.0005)]
    fine: f32,
    #[field(range = 0.0..=1.0, step = 0.3)]
    uneven: Option<f32>,
    #[field(rotation = 10)]
    rotation: [f32; 4],
    #[field(rotation = 16)]
    bones: [[f32; 4]; 2],
    #[field(rotation = 2)]
    coarse: [f64; 4],
    #[field(angle = 12)]
    yaw: f32,
    #[field(angle, step = 1.0, range = 0.0..=360.0)]
    heading: f64,
    exact: (f32, f64, bool),
    #[field(range = -10..=90)]
    health: i16,
    #[field(range = 3_000_000_000..=4_000_000_000)]
    shifted: u64,
    #[field(range = -5_000_000_000..=5_000_000_000)]
    wide: i64,
    #[field(range = 0..=4_294_967_295)]
    whole: i64,
    numbers: (u8, i8, u16, i16, u32, i32, u64, i64),
    #[field(bits = 5)]
    buttons: u8,
    #[field(bits)]
    long_set: u64,
    #[field(bits)]
    set: [bool; 35],
    flags: [bool; 2],
    #[field(max = 10)]
    name: String,
    #[field(max = 5)]
    bytes: Vec<u8>,
    #[field(max = 3, range = 0..=9)]
    digits: Vec<u8>,
    #[field(max = 2)]
    items: Vec<Item>,
    item: Option<Item>,
    only: Only,
    nothing: Nothing,
}

#[derive(State, Clone, Debug, PartialEq)]
enum Item {
    Nothing,
    Weapon {
        ammunition: u16,
        #[field(max = 4)]
        owner: Option<String>,
    },
    Key(#[field(range = 0..=4)] u8, Pair<bool>),
}

#[derive(State, Clone, Debug, PartialEq)]
enum Only {
    One(u8),
}

#[derive(State, Clone, Debug, PartialEq)]
struct Pair<T>(T, T);

#[derive(State, Clone, Debug, PartialEq)]
struct Nothing;

/// Legal rows: each column within its bounds, absent ones 0, texts of letters, parts of rotations small enough.
fn row() -> impl Strategy<Value = Vec<i32>> {
    let columns = Columns::of::<Everything>();
    prop::collection::vec(any::<(u32, u8)>(), columns.len()).prop_map(move |draws| {
        let mut row = vec![0; draws.len()];
        for (index, (draw, small)) in draws.into_iter().enumerate() {
            if columns.exists(index, &row) {
                row[index] = legal(&columns, index, draw, small, &row);
            }
        }
        row
    })
}

fn legal(columns: &Columns, index: usize, draw: u32, small: u8, row: &[i32]) -> i32 {
    let column = &columns[index];
    if let (ColumnKind::Raw, Some(Guard::Above { column, value })) = (column.kind, column.guard) {
        let used = (row[usize::from(column)] - value).min(4) as usize;
        let mut bytes = [0; 4];
        bytes[..used].fill(b'a' + small % 26);
        return i32::from_le_bytes(bytes);
    }
    let (mut min, mut max) = (i64::from(column.min), i64::from(column.max));
    if column.kind == ColumnKind::RotationPart {
        (min, max) = (-(max / 2), max / 2);
    } else if column.name == "wide.high" {
        (min, max) = (-1, 0);
    }
    let value = match small % 4 {
        0 => i64::from(draw % 3),
        _ => min + (u64::from(draw) % (max - min + 1) as u64) as i64,
    };
    value.clamp(min, max) as i32
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_loaded_is_stored_as_the_same_row(row in row()) {
        let state = Everything::from_row(&row).expect("a legal row");
        prop_assert_eq!(state.to_row(), row);
    }

    #[test]
    fn damaged_rows_load_as_what_they_are_or_fail(
        row in row(),
        damage in prop::collection::vec(any::<(u16, i32)>(), 1..4),
    ) {
        let mut row = row;
        for (index, value) in damage {
            let index = usize::from(index) % row.len();
            row[index] = value;
        }
        if let Ok(state) = Everything::from_row(&row) {
            prop_assert_eq!(state.to_row(), row);
        }
    }

    #[test]
    fn any_integers_load_or_fail(row in prop::collection::vec(any::<i32>(), 0..200)) {
        if let Ok(state) = Everything::from_row(&row) {
            prop_assert_eq!(state.to_row(), row);
        }
    }
}

fn everything() -> Everything {
    Everything {
        position: [1.2345, -500.0, 600.0],
        velocity: [0.005, f64::NAN, 3.0],
        fine: 999.9999,
        uneven: Some(0.5),
        rotation: [0.0, 0.0, 0.6, -0.8],
        bones: [[0.5; 4], [0.0, 3.0, 0.0, 3.0]],
        coarse: [f64::NAN; 4],
        yaw: 7.0,
        heading: -0.2,
        exact: (f32::MIN_POSITIVE, -0.1, true),
        health: 100,
        shifted: 3_500_000_000,
        wide: -5_000_000_001,
        whole: 4_294_967_295,
        numbers: (
            255,
            -128,
            65_535,
            i16::MIN,
            u32::MAX,
            i32::MIN,
            u64::MAX - 5,
            i64::MIN,
        ),
        buttons: 0xFF,
        long_set: 1 << 63 | 5,
        set: core::array::from_fn(|index| index % 3 == 0),
        flags: [true, false],
        name: "Zoë und Ünal".into(),
        bytes: vec![1, 2, 3, 4, 255, 6],
        digits: vec![7, 12],
        items: vec![
            Item::Nothing,
            Item::Key(9, Pair(true, false)),
            Item::Nothing,
        ],
        item: Some(Item::Weapon {
            ammunition: 30,
            owner: Some("Bo".into()),
        }),
        only: Only::One(4),
        nothing: Nothing,
    }
}

#[test]
fn what_is_stored_is_the_nearest_legal_value() {
    let snapped = everything().snapped();
    // -0.0 is a bit pattern of its own only where floats are exact.
    assert_eq!(snapped.position, [1.235, -500.0, 500.0]);
    assert_eq!(snapped.velocity[1..], [0.0, 3.0]);
    assert_eq!(snapped.fine, 1000.0);
    assert_eq!(snapped.uneven, Some(0.6));
    let [x, y, z, w] = snapped.rotation;
    assert_eq!((x, y), (0.0, 0.0));
    assert!((z + 0.6).abs() < 0.001 && (w - 0.8).abs() < 0.001);
    assert!((snapped.bones[0][3] - 0.5).abs() < 3e-5);
    assert!((snapped.bones[1][1] - core::f32::consts::FRAC_1_SQRT_2).abs() < 1e-7);
    assert_eq!(snapped.coarse, [0.0, 0.0, 0.0, 1.0]);
    assert!((f64::from(snapped.yaw) - (7.0 - core::f64::consts::TAU)).abs() < 0.001);
    assert_eq!(snapped.heading, 0.0);
    assert_eq!(snapped.exact, everything().exact);
    assert_eq!((snapped.health, snapped.shifted), (90, 3_500_000_000));
    assert_eq!(
        (snapped.wide, snapped.whole),
        (-5_000_000_000, 4_294_967_295)
    );
    assert_eq!(snapped.numbers, everything().numbers);
    assert_eq!((snapped.buttons, snapped.long_set), (31, 1 << 63 | 5));
    assert_eq!(
        (snapped.set, snapped.flags),
        (everything().set, [true, false])
    );
    assert_eq!(
        (snapped.name.as_str(), snapped.bytes.len()),
        ("Zoë und ", 5)
    );
    assert_eq!(snapped.digits, [7, 9]);
    assert_eq!(
        snapped.items,
        [Item::Nothing, Item::Key(4, Pair(true, false))]
    );
    assert_eq!(snapped.item, everything().item);
    // And once more changes nothing.
    assert_eq!(snapped.snapped(), snapped);
}

#[test]
fn the_width_is_the_number_of_columns() {
    let columns = Columns::of::<Everything>();
    assert_eq!(Everything::width(), columns.len());
    assert_eq!(everything().to_row().len(), columns.len());
    for (index, column) in columns.iter().enumerate() {
        assert!(column.min <= column.max, "{}", column.name);
        if let Some(guard) = column.guard {
            assert!(usize::from(guard.column()) < index, "{}", column.name);
        }
    }
    let row = everything().to_row();
    for (column, &value) in columns.iter().zip(&row) {
        assert!(
            (column.min..=column.max).contains(&value),
            "{}",
            column.name
        );
    }
}

#[test]
fn rows_of_another_length_are_refused() {
    let mut row = everything().to_row();
    row.push(0);
    assert_eq!(Everything::from_row(&row), Err(DecodeError::Trailing));
    row.truncate(row.len() - 2);
    assert_eq!(Everything::from_row(&row), Err(DecodeError::End));
    assert_eq!(Item::from_row(&[3]), Err(DecodeError::OutOfRange));
}

#[test]
fn what_does_not_exist_must_be_zero() {
    let mut row = Item::Nothing.to_row();
    assert_eq!(row, [0; 8]);
    row[1] = 5;
    assert_eq!(Item::from_row(&row), Err(DecodeError::NotCanonical));
}

#[test]
fn every_step_comes_back() {
    let columns = Columns::of::<Everything>();
    let base = everything().to_row();
    for name in ["position.0", "fine", "uneven", "yaw", "heading", "shifted"] {
        // The last of the name: an option's value, not whether there is one.
        let index = columns
            .iter()
            .rposition(|column| column.name == name)
            .expect("a column of this name");
        let column = &columns[index];
        let (min, max) = (i64::from(column.min), i64::from(column.max));
        let stride = ((max - min) / 20_000).max(1) as usize;
        for value in (min..=max).step_by(stride).chain([max]) {
            let mut row = base.clone();
            row[index] = value as i32;
            let state = Everything::from_row(&row).expect("within the bounds");
            assert_eq!(state.to_row()[index], value as i32, "{name}");
        }
    }
}

#[test]
fn the_distance_of_states_is_that_of_what_moves() {
    #[derive(State, Clone)]
    struct Ball {
        #[field(range = -10.0..=10.0, step = 0.001, velocity = velocity)]
        position: [f32; 2],
        #[field(range = -10.0..=10.0, step = 0.001)]
        velocity: [f32; 2],
        bounces: u8,
    }
    let at = |x, y| Ball {
        position: [x, y],
        velocity: [x * 3.0, 9.0],
        bounces: x as u8,
    };
    assert_eq!(at(1.0, 1.0).distance(&at(4.0, 5.0)), 5.0);

    #[derive(State, Clone)]
    enum Thing {
        Gone,
        There {
            #[field(range = -10.0..=10.0, step = 0.001)]
            x: f32,
            #[field(range = -3.0..=3.0, step = 0.001, interpolate = none)]
            mood: f32,
        },
    }
    let there = |x, mood| Thing::There { x, mood };
    assert_eq!(there(1.0, 2.0).distance(&there(3.0, 1.0)), 2.0);
    assert_eq!(Thing::Gone.distance(&there(3.0, 1.0)), 0.0);
}
