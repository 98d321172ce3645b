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
        "here: 1 Join { name: text }; at the peer: 1 Join { name: text max 16 }",
        "only this side knows: 2 Leave",
        "only the peer knows: 9 Emote < Wave, Dance { 0: u8 } >",
    ];
    assert_eq!(
        differences
            .iter()
            .map(Difference::to_string)
            .collect::<Vec<_>>(),
        expected
    );
    assert!(diff("nonsense\n\n70000 x\n", "").is_empty());
    Ok(())
}
