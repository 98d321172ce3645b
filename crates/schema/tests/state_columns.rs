//! Columns, description and rows of a state, as recorded: none may change unnoticed.

use muse_schema::{
    Column, ColumnKind, Columns, DecodeError, Guard, Predict, RowReader, RowWriter, State,
    Template, Type,
};

#[derive(State, Clone)]
struct Soldier {
    #[field(range = -500.0..=500.0, step = 0.01, velocity = velocity, predict = quadratic)]
    position: [f32; 2],
    #[field(range = -50.0..=50.0, step = 0.1)]
    velocity: [f32; 2],
    #[field(rotation = 9)]
    facing: [f32; 4],
    #[field(angle = 8)]
    pitch: f32,
    #[field(range = 0..=100, predict = linear)]
    health: u8,
    #[field(bits)]
    buttons: u8,
    speed: f32,
    id: u64,
    #[field(max = 6)]
    name: String,
    weapon: Option<Weapon>,
    target: Target,
}

#[derive(State, Clone)]
enum Weapon {
    Fist,
    Bow { arrows: u8, drawn: bool },
}

#[derive(Clone)]
struct Target(u32);

impl State for Target {
    const TYPE: Type = Type::Opaque {
        name: "Target",
        columns: &[Template::new("", ColumnKind::Reference, i32::MIN, i32::MAX)],
    };

    fn store(&self, row: &mut RowWriter<'_>) {
        row.put(self.0 as i32);
    }

    fn load(row: &mut RowReader<'_>) -> Result<Self, DecodeError> {
        row.take().map(|bits| Self(bits as u32))
    }

    fn blend(&self, to: &Self, blend: muse_schema::Blend) -> Self {
        blend.step(self, to).clone()
    }

    fn differs(&self, other: &Self) -> bool {
        self.0 != other.0
    }
}

fn line(column: &Column) -> String {
    let Column {
        name,
        kind,
        min,
        max,
        field,
        ..
    } = column;
    let predict = match column.predict {
        Predict::Hold => "",
        Predict::Linear => " linear",
        _ => " quadratic",
    };
    let velocity = column.velocity.map(|of| format!(" velocity {of}"));
    let guard = column.guard.map(|guard| match guard {
        Guard::Equals { column, value } => format!(" if {column} = {value}"),
        Guard::Above { column, value } => format!(" if {column} > {value}"),
        _ => String::new(),
    });
    format!(
        "{field} {name}: {kind:?} {min}..={max}{predict}{}{}",
        velocity.unwrap_or_default(),
        guard.unwrap_or_default()
    )
}

#[test]
fn the_columns() {
    let lines: Vec<String> = Columns::of::<Soldier>().iter().map(line).collect();
    let whole = "-2147483648..=2147483647";
    let expected = [
        "0 position.0: Number -50000..=50000 quadratic velocity 2".to_owned(),
        "0 position.1: Number -50000..=50000 quadratic velocity 3".to_owned(),
        "1 velocity.0: Number -500..=500 linear".to_owned(),
        "1 velocity.1: Number -500..=500 linear".to_owned(),
        "2 facing: RotationLargest 0..=3".to_owned(),
        "2 facing.0: RotationPart -256..=255 linear".to_owned(),
        "2 facing.1: RotationPart -256..=255 linear".to_owned(),
        "2 facing.2: RotationPart -256..=255 linear".to_owned(),
        "3 pitch: Angle -128..=127 linear".to_owned(),
        "4 health: Number 0..=100 linear".to_owned(),
        "5 buttons: Bits 0..=255".to_owned(),
        format!("6 speed: Raw {whole}"),
        format!("7 id: Number {whole}"),
        format!("7 id.high: Number {whole}"),
        "8 name: Number 0..=6".to_owned(),
        format!("8 name.0: Raw {whole} if 14 > 0"),
        format!("8 name.1: Raw {whole} if 14 > 4"),
        "9 weapon: Flag 0..=1".to_owned(),
        "10 weapon: Choice 0..=1 if 17 = 1".to_owned(),
        "11 weapon.Bow.arrows: Number 0..=255 if 18 = 1".to_owned(),
        "12 weapon.Bow.drawn: Flag 0..=1 if 18 = 1".to_owned(),
        format!("13 target: Reference {whole}"),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn the_description() {
    let text = <Soldier as State>::TYPE.to_string();
    let expected = "Soldier { position: [f32; 2] range -500..=500 step 0.01 predict quadratic velocity velocity, \
                    velocity: [f32; 2] range -50..=50 step 0.1, facing: [f32; 4] rotation 9, \
                    pitch: f32 angle -3.141592653589793..=3.141592653589793 steps 256, \
                    health: u8 range 0..=100 predict linear, buttons: u8 bits 8, speed: f32, id: u64, \
                    name: text max 6, weapon: Weapon < Fist, Bow { arrows: u8, drawn: bool } >?, \
                    target: Target | Reference -2147483648..=2147483647 | }";
    assert_eq!(text, expected);
    assert_eq!(<Soldier as State>::TYPE.hash(), 539_137_151_827_900_069);
}

#[test]
fn a_row() {
    let soldier = Soldier {
        position: [1.0, -2.504],
        velocity: [3.11, -50.0],
        facing: [0.0, 0.6, 0.0, -0.8],
        pitch: -1.0,
        health: 90,
        buttons: 0b1001,
        speed: 1.5,
        id: 5 << 32 | 7,
        name: "Zoë".into(),
        weapon: Some(Weapon::Bow {
            arrows: 6,
            drawn: true,
        }),
        target: Target(77),
    };
    let expected = [
        100,
        -250,
        31,
        -500,
        3,
        0,
        -216,
        0,
        -41,
        90,
        9,
        0x3FC0_0000,
        7,
        5,
        4,
        0xABC3_6F5A_u32 as i32,
        0,
        1,
        1,
        6,
        1,
        77,
    ];
    assert_eq!(soldier.to_row(), expected);
}
