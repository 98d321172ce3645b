//! Channels of a game's own, beside what the plugin replicates.

#[path = "../examples/predicted_runner.rs"]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "a program of its own, of which only the rules are needed"
)]
mod predicted_runner;

use std::time::{Duration, Instant};

use bevy_app::App;
use bevy_ecs::prelude::*;
use muse_bevy::muse::{
    self, ChannelConfig, Connect, Delivery, Outcome, SendOptions, ServerOptions,
};
use muse_bevy::prelude::*;
use muse_bevy::{MessageFrom, MessageReceived, OWN_CHANNELS, ReceiptReceived};
use predicted_runner::{Rules, client, protocol, server};

fn all<M: Message>(app: &mut App) -> Vec<M> {
    let mut messages = app.world_mut().resource_mut::<Messages<M>>();
    messages.drain().collect()
}

/// Runs both apps until one has messages of this kind: these.
fn heard<M: Message>(apps: &mut [App; 2], listener: usize) -> Vec<M> {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < end, "nothing came");
        for app in &mut *apps {
            app.update();
        }
        let found = all::<M>(&mut apps[listener]);
        if !found.is_empty() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn messages_and_receipts_come_on_either_side() -> Result<(), Box<dyn std::error::Error>> {
    let channel = ChannelConfig::new(Delivery::ReliableOrdered);
    let config = protocol().transport(0x6265_7680).channel(channel);
    let key = muse::new_key()?;
    let connect = Connect::pinned(key.public());
    let link = muse::drivers::EndpointDriver::bind(
        "127.0.0.1:0",
        config.clone(),
        ServerOptions::new(key),
    )?;
    let address = link.local_addr()?;
    let mut apps = [
        server(link),
        client(muse::drivers::ClientDriver::connect(
            address, config, connect,
        )?),
    ];
    let came: Vec<ClientJoined> = heard(&mut apps, 0);
    let receipt = SendOptions::default().receipt();

    let mut session = apps[1].world_mut().resource_mut::<NetClient<Rules>>();
    let link = session.link().ok_or("no session")?;
    link.send_with(OWN_CHANNELS, b"is anybody there?", &receipt)?;
    let asked: Vec<MessageFrom> = heard(&mut apps, 0);
    let expected = MessageFrom {
        client: came[0].client,
        channel: OWN_CHANNELS,
        payload: b"is anybody there?".to_vec(),
    };
    assert_eq!(asked, [expected]);
    let receipts: Vec<ReceiptReceived> = heard(&mut apps, 1);
    assert_eq!(receipts[0].client, None);
    assert_eq!(receipts[0].receipt.outcome, Outcome::Delivered);

    let mut session = apps[0].world_mut().resource_mut::<NetServer<Rules>>();
    let connection = session.connection(came[0].client).ok_or("it is there")?;
    session
        .link()
        .send_with(connection, OWN_CHANNELS, b"yes", &receipt)?;
    let answered: Vec<MessageReceived> = heard(&mut apps, 1);
    let expected = MessageReceived {
        channel: OWN_CHANNELS,
        payload: b"yes".to_vec(),
    };
    assert_eq!(answered, [expected]);
    let receipts: Vec<ReceiptReceived> = heard(&mut apps, 0);
    assert_eq!(receipts[0].client, Some(came[0].client));
    assert_eq!(receipts[0].receipt.outcome, Outcome::Delivered);
    Ok(())
}

#[test]
fn events_inputs_and_ticks_are_part_of_what_both_sides_share() {
    let with_event = protocol().client_event::<u32>(5).describe();
    let with_other_event = protocol().client_event::<u16>(5).describe();
    let told = |here: &str, there: &str| {
        let differences = muse::schema::diff(here, there);
        differences
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        told(&with_event, &with_other_event),
        ["`client-event 5 u32` here, `client-event 5 u16` there"]
    );
    assert_eq!(
        told(&protocol().describe(), &with_event),
        ["`client-event 5 u32` only there"]
    );
    assert!(protocol().describe().contains("input type Keys {"));
}
