//! Reports name what differs, with values as the game knows them.

use muse_schema::{Columns, State};

#[derive(State, Clone)]
struct Soldier {
    #[field(range = -500.0..=500.0, step = 0.01)]
    position: [f32; 2],
    #[field(range = 0.0..=2.0, step = 0.125)]
    speed: f64,
    #[field(rotation = 10)]
    facing: [f32; 4],
    #[field(angle, step = 0.5, range = 0.0..=360.0)]
    heading: f32,
    exact: (f32, f64),
    id: u64,
    debt: i64,
    number: u32,
    #[field(bits)]
    buttons: u8,
    #[field(max = 12)]
    name: String,
    #[field(max = 4)]
    blob: Vec<u8>,
    stance: Stance,
    pet: Option<Pet>,
}

#[derive(State, Clone)]
enum Stance {
    Stand,
    Prone { since: u16 },
}

#[derive(State, Clone)]
struct Pet {
    hungry: bool,
}

fn soldier() -> Soldier {
    Soldier {
        position: [0.3, 0.0],
        speed: 1.0,
        facing: [0.0, 0.0, 0.0, 1.0],
        heading: 90.0,
        exact: (0.1, 0.1),
        id: 1 << 40,
        debt: -1,
        number: 3_000_000_000,
        buttons: 0b101,
        name: "Ada".into(),
        blob: vec![1, 0xAB],
        stance: Stance::Prone { since: 7 },
        pet: Some(Pet { hungry: true }),
    }
}

fn differences(change: impl FnOnce(&mut Soldier)) -> Vec<String> {
    let mut other = soldier();
    change(&mut other);
    let columns = Columns::of::<Soldier>();
    let differences = columns.diff_states(&soldier(), &other);
    differences.iter().map(ToString::to_string).collect()
}

#[test]
fn the_same_has_no_differences() {
    assert!(differences(|_| {}).is_empty());
    // Less than the grid tells apart.
    assert!(differences(|soldier| soldier.position[0] += 0.001).is_empty());
}

#[test]
fn every_kind_of_value_is_shown_as_it_is() {
    let all = differences(|soldier| {
        soldier.position[0] = 0.35;
        soldier.speed = 0.125;
        soldier.facing = [0.0, 1.0, 0.0, 1.0];
        soldier.heading = 90.5;
        soldier.exact = (0.2, 0.3);
        soldier.id += 1 << 40;
        soldier.debt = 5;
        soldier.number += 1;
        soldier.buttons = 0b110;
        soldier.name = "Adam".into();
        soldier.blob = vec![];
        soldier.stance = Stance::Prone { since: 8 };
        soldier.pet = Some(Pet { hungry: false });
    });
    let expected = [
        "position.0: 0.3 here, 0.35 there",
        "speed: 1 here, 0.125 there",
        "facing: [0.0000, 0.0000, 0.0000, 1.0000] here, [0.0000, 0.7071, 0.0000, 0.7071] there",
        "heading: 90 here, 90.5 there",
        "exact.0: 0.1 here, 0.2 there",
        "exact.1: 0.1 here, 0.3 there",
        "id: 1099511627776 here, 2199023255552 there",
        "debt: -1 here, 5 there",
        "number: 3000000000 here, 3000000001 there",
        "buttons: 0b101 here, 0b110 there",
        "name: \"Ada\" here, \"Adam\" there",
        "blob: [01, ab] here, [] there",
        "stance.Prone.since: 7 here, 8 there",
        "pet.hungry: true here, false there",
    ];
    assert_eq!(all, expected);
}

#[test]
fn what_only_one_has_is_named_once() {
    let all = differences(|soldier| {
        soldier.stance = Stance::Stand;
        soldier.pet = None;
    });
    assert_eq!(
        all,
        [
            "stance: Prone here, Stand there",
            "pet: some here, none there"
        ]
    );
}

#[test]
fn any_integers_can_be_reported() {
    let columns = Columns::of::<Soldier>();
    let here = vec![i32::MAX; columns.len()];
    let there = vec![i32::MIN; columns.len() - 1];
    assert!(columns.diff(&here, &there).len() > 5);
}
