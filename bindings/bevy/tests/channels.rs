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
use muse_bevy::muse::transport::AdmissionLimits;
use muse_bevy::muse::{
    self, ChannelConfig, Connect, Delivery, Outcome, SendOptions, ServerOptions,
};
use muse_bevy::prelude::*;
use muse_bevy::{ConnectionChanged, MessageFrom, MessageReceived, ReceiptReceived};
use predicted_runner::{Rules, protocol};

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

#[derive(muse::Message, Clone, Debug, PartialEq)]
#[message(id = 1)]
struct Say {
    #[field(max = 100)]
    text: String,
}

fn say(text: &str) -> Say {
    let text = text.to_owned();
    Say { text }
}

#[test]
fn messages_and_receipts_come_on_either_side() -> Result<(), Box<dyn std::error::Error>> {
    let protocol = || {
        let mut protocol = protocol().message::<Say>(Delivery::ReliableOrdered);
        let bytes = protocol.add_channel(ChannelConfig::new(Delivery::ReliableUnordered));
        (protocol, bytes)
    };
    let (_, bytes) = protocol();
    let config = protocol().0.transport(0x6265_7680);
    let key = muse::new_key()?;
    let connect = Connect::pinned(key.public());
    let options = ServerOptions::new(key);
    let link = muse::drivers::EndpointDriver::bind("127.0.0.1:0", config.clone(), options)?;
    let address = link.local_addr()?;
    let joined = muse::drivers::ClientDriver::connect(address, config, connect)?;
    let (mut server, mut client) = (App::new(), App::new());
    server.add_plugins(ServerPlugin::new(protocol().0));
    server
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link));
    client.add_plugins(ClientPlugin::new(protocol().0));
    client
        .insert_resource(Rules)
        .insert_resource(ConnectTo::new(joined));
    let mut apps = [server, client];
    let came: Vec<ClientJoined> = heard(&mut apps, 0);
    let receipt = SendOptions::default().receipt();

    let mut session = apps[1].world_mut().resource_mut::<NetClient<Rules>>();
    session.send_with(&say("is anybody there?"), &receipt)?;
    let asked: Vec<MessageFrom> = heard(&mut apps, 0);
    assert_eq!(asked[0].client, came[0].client);
    assert_eq!(asked[0].read(), Some(say("is anybody there?")));
    let receipts: Vec<ReceiptReceived> = heard(&mut apps, 1);
    assert_eq!(receipts[0].client, None);
    assert_eq!(receipts[0].receipt.outcome, Outcome::Delivered);

    let mut session = apps[0].world_mut().resource_mut::<NetServer<Rules>>();
    session.send_with(came[0].client, &say("yes"), &receipt)?;
    let answered: Vec<MessageReceived> = heard(&mut apps, 1);
    assert_eq!(answered[0].read(), Some(say("yes")));
    let receipts: Vec<ReceiptReceived> = heard(&mut apps, 0);
    assert_eq!(receipts[0].client, Some(came[0].client));
    assert_eq!(receipts[0].receipt.outcome, Outcome::Delivered);

    let mut session = apps[1].world_mut().resource_mut::<NetClient<Rules>>();
    session.send_bytes(bytes, b"bytes")?;
    let plain: Vec<MessageFrom> = heard(&mut apps, 0);
    let (client, payload) = (came[0].client, b"bytes".to_vec());
    let channel = bytes;
    assert_eq!(
        plain,
        [MessageFrom {
            client,
            channel,
            payload
        }]
    );
    let mut session = apps[0].world_mut().resource_mut::<NetServer<Rules>>();
    session.broadcast(&say("to everybody"))?;
    let told: Vec<MessageReceived> = heard(&mut apps, 1);
    assert_eq!(told[0].read(), Some(say("to everybody")));
    Ok(())
}

#[test]
fn a_server_decides_who_comes_in() -> Result<(), Box<dyn std::error::Error>> {
    let config = protocol().transport(0x6265_7681);
    let key = muse::new_key()?;
    let public = key.public();
    let options = ServerOptions::new(key).admission(AdmissionLimits::default());
    let link = muse::drivers::EndpointDriver::bind("127.0.0.1:0", config.clone(), options)?;
    let address = link.local_addr()?;
    let join = |name: &[u8]| {
        let how = Connect::pinned(public).hello(name);
        muse::drivers::ClientDriver::connect(address, config.clone(), how).map(ConnectTo::new)
    };
    let (mut server, mut client) = (App::new(), App::new());
    server.add_plugins(ServerPlugin::new(protocol()));
    server
        .insert_resource(Rules)
        .insert_resource(ServeOn::new(link));
    client.add_plugins(ClientPlugin::new(protocol()));
    client.insert_resource(Rules).insert_resource(join(b"Eve")?);
    let mut apps = [server, client];

    let asking: Vec<ClientAsking> = heard(&mut apps, 0);
    assert_eq!(asking[0].0.info.hello, b"Eve");
    let mut session = apps[0].world_mut().resource_mut::<NetServer<Rules>>();
    session.deny(&asking[0].0, "banned until Monday");
    let is_denied = |change: &ConnectionChanged| match &change.0 {
        ConnectionState::Refused(reason) => reason.to_string().contains("banned until Monday"),
        _ => false,
    };
    while !heard(&mut apps, 1).iter().any(is_denied) {}

    apps[1].world_mut().insert_resource(join(b"Ada")?);
    let asking: Vec<ClientAsking> = heard(&mut apps, 0);
    assert_eq!(asking[0].0.info.hello, b"Ada");
    let mut session = apps[0].world_mut().resource_mut::<NetServer<Rules>>();
    session.admit(&asking[0].0);
    let joined: Vec<ClientJoined> = heard(&mut apps, 0);
    assert_eq!(joined.len(), 1);
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
    let with_message = protocol().message::<Say>(Delivery::ReliableOrdered);
    assert!(with_message.describe().contains("message 1 on channel 2"));
    assert!(protocol().describe().contains("input type Keys {"));
}
