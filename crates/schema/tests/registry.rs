//! Two sides find out whether they speak of the same messages, and what differs.

use muse_schema::{Difference, Message, Registry, RegistryError, diff};

#[derive(Message)]
#[message(id = 1)]
struct Join {
    name: String,
}

#[derive(Message)]
#[message(id = 2)]
struct Leave;

mod newer {
    use muse_schema::Message;

    #[derive(Message)]
    #[message(id = 1)]
    pub(crate) struct Join {
        #[field(max = 16)]
        name: String,
    }

    #[derive(Message)]
    #[message(id = 9)]
    pub(crate) enum Emote {
        Wave,
        Dance(u8),
    }
}

#[test]
fn the_order_of_registration_does_not_matter() -> Result<(), RegistryError> {
    let (mut one, mut other) = (Registry::new(), Registry::new());
    one.register::<Join>()?.register::<Leave>()?;
    other.register::<Leave>()?.register::<Join>()?;
    assert_eq!(
        (one.hash(), one.describe()),
        (other.hash(), other.describe())
    );
    assert_ne!(one.hash(), Registry::new().hash());
    assert!(diff(&one.describe(), &other.describe()).is_empty());
    assert_eq!(
        one.descriptor(2).map(|descriptor| descriptor.name()),
        Some("Leave")
    );
    assert_eq!(one.descriptors().len(), 2);
    Ok(())
}

#[test]
fn an_id_is_given_once() {
    let mut registry = Registry::new();
    registry.register::<Join>().expect("a free id");
    let error = registry.register::<newer::Join>().expect_err("a taken id");
    assert_eq!(
        error,
        RegistryError::Duplicate {
            id: 1,
            old: "Join",
            new: "Join"
        }
    );
    assert_eq!(
        error.to_string(),
        "message id 1 is taken: Join wants it, Join has it"
    );
}

#[test]
fn every_difference_is_named() -> Result<(), RegistryError> {
    let (mut here, mut there) = (Registry::new(), Registry::new());
    here.register::<Join>()?.register::<Leave>()?;
    there
        .register::<newer::Join>()?
        .register::<newer::Emote>()?;
    let differences = diff(&here.describe(), &there.describe());
    let expected = [
        "`1 Join` differs: name: text here, name: text max 16 there",
        "`2 Leave` only here",
        "`9 Emote < Wave, Dance { 0: u8 } >` only there",
    ];
    assert_eq!(
        differences
            .iter()
            .map(Difference::to_string)
            .collect::<Vec<_>>(),
        expected
    );
    Ok(())
}

/// The differences as text.
fn told(here: &str, there: &str) -> Vec<String> {
    let differences = diff(here, there);
    differences.iter().map(Difference::to_string).collect()
}

#[test]
fn lines_of_any_kind_are_compared_by_their_first_words() {
    let here = "10 Say { text: text }\nchannel 0 sequenced\ntick rate 50\nkind Player { x: f32, y: f32 }\n\nonly\n";
    let there = "2 Jump\n10 Say { text: text }\nchannel 0 unreliable\ntick rate 60\nkind Player { x: f32 range -1..=1 step 0.1, z: f32 }\n";
    let expected = [
        "`2 Jump` only there",
        "`channel 0 sequenced` here, `channel 0 unreliable` there",
        "`kind Player` differs: x: f32 here, x: f32 range -1..=1 step 0.1 there; y: f32 only here; z: f32 only there",
        "`only` only here",
        "`tick rate 50` here, `tick rate 60` there",
    ];
    assert_eq!(told(here, there), expected);
    assert!(told(here, here).is_empty());
}

#[test]
fn parts_are_found_however_deep_the_brackets_are() {
    let here = "1 A { list: [B < C, D { e: (u8, u16) } >] max 4, hand: F | g: Number 0..=1, Raw 0..=9 |, h: u8 }";
    for (there, expected) in [
        (
            here.replace("u16", "u32"),
            "`1 A` differs: list: [B < C, D { e: (u8, u16) } >] max 4 here, list: [B < C, D { e: (u8, u32) } >] max 4 there",
        ),
        (
            here.replace("Raw 0..=9", "Raw 0..=8"),
            "`1 A` differs: hand: F | g: Number 0..=1, Raw 0..=9 | here, hand: F | g: Number 0..=1, Raw 0..=8 | there",
        ),
        (
            "1 A { h: u8 }".to_owned(),
            "`1 A` differs: list: [B < C, D { e: (u8, u16) } >] max 4 only here; hand: F | g: Number 0..=1, Raw 0..=9 | only here",
        ),
    ] {
        assert_eq!(told(here, &there), [expected]);
    }
    let (one, other) = ("1 A { x: u8, y: u8 }", "1 A { y: u8, x: u8 }");
    assert_eq!(
        told(one, other),
        ["`1 A` differs: its parts are in another order"]
    );
    assert_eq!(
        told("1 A { x: u8 }", "1 A"),
        ["`1 A` differs: x: u8 only here"]
    );
    // Text of a hostile peer: any answer will do.
    assert_eq!(told("1 A { ] }, b", "1 A {{").len(), 1);
}
