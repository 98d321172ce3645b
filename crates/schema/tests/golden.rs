//! The wire format and the hash, as recorded: neither may change unnoticed.

use muse_schema::{Message, Registry, Schema};

#[derive(Message)]
#[message(id = 500)]
struct Player {
    id: u32,
    name: String,
    #[field(range = 0..=100)]
    health: u8,
    #[field(range = -500.0..=500.0, step = 0.01)]
    position: [f32; 3],
    speed: f32,
    #[field(fixed)]
    key: u16,
    alive: bool,
    frozen: bool,
    #[field(max = 4)]
    items: Vec<Item>,
    team: Option<i16>,
    pair: (i8, u64),
}

#[derive(Schema)]
enum Item {
    Nothing,
    Weapon { ammunition: u16 },
    Key(u8, Empty),
}

#[derive(Schema)]
struct Empty;

#[derive(Message)]
#[message(id = 2)]
struct Ping;

fn player() -> Player {
    Player {
        id: 70_000,
        name: "Ada".into(),
        health: 100,
        position: [0.0, -500.0, 499.99],
        speed: 1.5,
        key: 0xBEEF,
        alive: true,
        frozen: false,
        items: vec![
            Item::Weapon { ammunition: 30 },
            Item::Nothing,
            Item::Key(9, Empty),
        ],
        team: Some(-2),
        pair: (-1, 5),
    }
}

#[test]
fn the_bytes_of_a_message() {
    let mut bytes = Vec::new();
    player().encode(&mut bytes).expect("a valid player");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        "848b0826882c8c0c350c00c0a7610000e09f77df561e9890f98702"
    );
}

#[test]
fn the_description_of_a_message() {
    let expected = "500 Player { id: u32, name: text, health: u8 range 0..=100, \
                    position: [f32; 3] range -500..=500 step 0.01, speed: f32, key: u16 fixed, \
                    alive: bool, frozen: bool, items: [Item < Nothing, Weapon { ammunition: u16 }, \
                    Key { 0: u8, 1: Empty } >] max 4, team: i16?, pair: (i8, u64) }";
    assert_eq!(Player::DESCRIPTOR.to_string(), expected);
    assert_eq!(Player::DESCRIPTOR.name(), "Player");
}

#[test]
fn the_hashes() {
    let mut registry = Registry::new();
    registry
        .register::<Player>()
        .expect("a free id")
        .register::<Ping>()
        .expect("a free id");
    let hashes = [
        Player::DESCRIPTOR.hash(),
        Ping::DESCRIPTOR.hash(),
        registry.hash(),
    ];
    assert_eq!(
        hashes,
        [
            38_300_831_041_334_352,
            14_829_040_866_600_672_275,
            2_585_266_866_925_600_676
        ]
    );
}

#[test]
fn a_message_without_content_takes_no_bytes() {
    let mut bytes = Vec::new();
    Ping.encode(&mut bytes).expect("nothing to go wrong");
    assert!(bytes.is_empty() && Ping::decode(&bytes).is_ok());
}
