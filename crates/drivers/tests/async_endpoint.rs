//! Client and server inside a tokio runtime.
#![cfg(feature = "tokio")]

use std::io;
use std::time::Duration;

use muse_drivers::{
    AsyncClientDriver, AsyncEndpointDriver, AsyncUdp, Clock, Driver, UdpOptions, new_key,
};
use muse_relay::{Invitation, Limits, LinkEvent, Refusal, Relay, RoomCode};
use muse_transport::{ChannelConfig, Config, Connect, Delivery, Event, ServerOptions};

async fn serve(mut server: AsyncEndpointDriver) -> io::Result<usize> {
    let (mut buffer, mut echoed) = (Vec::new(), 0);
    loop {
        match server.next_event(&mut buffer).await? {
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                server
                    .send(connection, channel, payload)
                    .expect("room in the queue");
                echoed += 1;
            }
            Event::Closed { .. } => return Ok(echoed),
            _ => {}
        }
    }
}

async fn ask(mut client: AsyncClientDriver) -> io::Result<Vec<u8>> {
    let (mut buffer, mut answers) = (Vec::new(), Vec::new());
    while answers.len() < 50 {
        match client.next_event(&mut buffer).await? {
            Event::Connected { .. } => client.send(0, &[0]).map(drop).expect("just connected"),
            Event::Message { payload, .. } => {
                answers.extend_from_slice(payload);
                client
                    .send(0, &[answers.len() as u8])
                    .expect("room in the queue");
            }
            other => unreachable!("nothing here leads to {other:?}"),
        }
    }
    Ok(answers)
}

#[test]
fn questions_are_answered_and_dropping_the_client_ends_it() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = Config::new(3).channel(ChannelConfig::new(Delivery::ReliableOrdered));
        let key = new_key()?;
        let how = Connect::pinned(key.public());
        let here = "127.0.0.1:0".parse().expect("an address");
        let server = AsyncEndpointDriver::bind(here, config.clone(), ServerOptions::new(key))?;
        let client = AsyncClientDriver::connect(server.local_addr()?, config, how).await?;
        let served = tokio::spawn(serve(server));
        let patience = Duration::from_secs(30);
        let answers = tokio::time::timeout(patience, ask(client))
            .await
            .expect("answers come")?;
        assert_eq!(answers, (0..50).collect::<Vec<u8>>());
        let echoed = tokio::time::timeout(patience, served)
            .await
            .expect("the server hears the end");
        assert!(echoed.expect("no panic")? >= 50);
        Ok(())
    })
}

/// Runs a relay at a port of its own until the runtime ends.
fn relay() -> io::Result<std::net::SocketAddr> {
    let here = "127.0.0.1:0".parse().expect("an address");
    let mut udp = AsyncUdp::bind(here, &UdpOptions::default())?;
    let address = udp.driver().local_addr()?;
    let mut relay = Relay::new(Clock::start().now(), Limits::default(), [7; 32]);
    tokio::spawn(async move { while udp.turn(&mut relay).await.is_ok() {} });
    Ok(address)
}

#[test]
fn a_room_is_joined_by_its_invitation_and_the_relay_is_left() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let patience = Duration::from_secs(30);
    let session = async {
        let relay = relay()?;
        let config = Config::new(3).channel(ChannelConfig::new(Delivery::ReliableOrdered));
        let key = new_key()?;
        let host_key = *key.public().as_bytes();
        let here = "127.0.0.1:0".parse().expect("an address");
        let mut server = AsyncEndpointDriver::bind(here, config.clone(), ServerOptions::new(key))?;
        let code = server.open_room(relay)?;
        assert!(matches!(
            server.next_relay_event().await?,
            LinkEvent::Opened { code: opened, .. } if opened == code
        ));
        let served = tokio::spawn(serve(server));
        let invitation = Invitation {
            relay,
            code,
            host_key,
        };
        let mut client = AsyncClientDriver::accept_invitation(&invitation, config)?;
        assert!(matches!(
            client.next_relay_event().await?,
            LinkEvent::Joined { .. }
        ));
        // Events of the connection wait meanwhile.
        assert!(matches!(
            client.next_relay_event().await?,
            LinkEvent::Direct { .. }
        ));
        let (mut buffer, mut answers) = (Vec::new(), Vec::new());
        while answers.len() < 50 {
            match client.next_event(&mut buffer).await? {
                Event::Connected { .. } => {
                    for number in 0..50 {
                        client.send(0, &[number]).expect("room in the queue");
                    }
                }
                Event::Message { payload, .. } => answers.extend_from_slice(payload),
                other => assert!(matches!(other, Event::AddressChanged { .. }), "{other:?}"),
            }
        }
        assert_eq!(answers, (0..50).collect::<Vec<u8>>());
        let link = client.relay().expect("it joined through one");
        assert!(link.is_direct(muse_relay::Link::host_address()));
        drop(client);
        assert_eq!(served.await.expect("no panic")?, 50);
        Ok(())
    };
    runtime.block_on(async {
        tokio::time::timeout(patience, session)
            .await
            .expect("the session ends")
    })
}

#[test]
fn a_room_that_is_not_there_is_refused() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let config = Config::new(3).channel(ChannelConfig::new(Delivery::ReliableOrdered));
        let code: RoomCode = "0123-4567-89AB".parse().expect("a code");
        let how = Connect::pinned(new_key()?.public());
        let mut client = AsyncClientDriver::join(relay()?, code, config, how)?;
        let event = tokio::time::timeout(Duration::from_secs(30), client.next_relay_event())
            .await
            .expect("an answer")?;
        assert_eq!(event, LinkEvent::Refused(Refusal::NoSuchRoom));
        Ok(())
    })
}
