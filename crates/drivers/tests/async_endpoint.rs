//! Client and server inside a tokio runtime.
#![cfg(feature = "tokio")]

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use muse_drivers::{
    AsyncClientDriver, AsyncEndpointDriver, AsyncUdp, Clock, Driver, RoomOptions, UdpOptions,
    new_key,
};
use muse_relay::{
    HostTokens, Invitation, Limits, LinkEvent, MasterKey, Refusal, Relay, RoomCode,
    host_token_issuer,
};
use muse_transport::token::{ConnectToken, TokenGrant};
use muse_transport::{
    ChannelConfig, Config, Connect, Delivery, Event, SeededEntropy, ServerOptions,
};

/// The wall-clock time that tokens are dated with.
const UNIX_S: u64 = 1_700_000_000;

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
fn relay() -> io::Result<SocketAddr> {
    run_relay(Relay::danger_open(
        Clock::start().now(),
        Limits::default(),
        [7; 32],
    ))
}

fn run_relay(mut relay: Relay) -> io::Result<SocketAddr> {
    let here = "127.0.0.1:0".parse().expect("an address");
    let mut udp = AsyncUdp::bind(here, &UdpOptions::default())?;
    let address = udp.driver().local_addr()?;
    tokio::spawn(async move { while udp.turn(&mut relay).await.is_ok() {} });
    Ok(address)
}

/// A relay that demands tokens, and one of these.
fn relay_with_tokens() -> io::Result<(SocketAddr, ConnectToken)> {
    let mut entropy = SeededEntropy::danger_seeded(1);
    let issuer = host_token_issuer(&[9; 32]);
    let tokens = HostTokens::new(new_key()?);
    let grant = TokenGrant::new(1, tokens.relay_key(), ([127, 0, 0, 1], 1).into());
    let token = issuer.issue(&grant, UNIX_S, &mut entropy).expect("a token");
    let tokens = tokens.master_key(&MasterKey::of(&issuer)).expect("a key");
    let now = Clock::start().now();
    let mut relay = Relay::new(now, Limits::default(), tokens, [7; 32]);
    relay.set_unix_time(now, UNIX_S);
    Ok((run_relay(relay)?, token))
}

#[test]
fn a_host_shows_its_token_to_the_relay_and_bans_a_guest_there() -> io::Result<()> {
    let session = async {
        let (relay, token) = relay_with_tokens()?;
        let config = Config::new(3).channel(ChannelConfig::new(Delivery::ReliableOrdered));
        let key = new_key()?;
        let how = Connect::pinned(key.public());
        let here = "127.0.0.1:0".parse().expect("an address");
        let mut host = AsyncEndpointDriver::bind(here, config.clone(), ServerOptions::new(key))?;
        host.open_room(relay)?;
        let refused = host.next_relay_event().await?;
        assert_eq!(refused, LinkEvent::Refused(Refusal::NoToken));
        let code = host.open_room_with(relay, RoomOptions::default().token(token))?;
        let opened = host.next_relay_event().await?;
        assert!(matches!(opened, LinkEvent::Opened { .. }), "{opened:?}");
        let mut guest =
            AsyncClientDriver::join(relay, code.room(), RoomOptions::default(), config, how)?;
        let banned = tokio::spawn(async move {
            loop {
                if let LinkEvent::Refused(reason) = guest.next_relay_event().await? {
                    return io::Result::Ok(reason);
                }
            }
        });
        let mut buffer = Vec::new();
        loop {
            match host.next_event(&mut buffer).await? {
                Event::Connected { connection, .. } => host.ban(connection, 1, "enough"),
                Event::Closed { .. } => break,
                _ => {}
            }
        }
        // The relay hears of it once the host has its turn.
        tokio::spawn(async move { host.next_event(&mut buffer).await.map(drop) });
        assert_eq!(banned.await.expect("no panic")?, Refusal::Banned);
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), session)
            .await
            .expect("the session ends")
    })
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
            LinkEvent::Opened { code: opened, .. } if opened == code.room()
        ));
        let served = tokio::spawn(serve(server));
        let invitation = Invitation {
            relay,
            code: code.room(),
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
        let code: RoomCode = "012345".parse().expect("a code");
        let how = Connect::pinned(new_key()?.public());
        let options = RoomOptions::default();
        let mut client = AsyncClientDriver::join(relay()?, code, options, config, how)?;
        let event = tokio::time::timeout(Duration::from_secs(30), client.next_relay_event())
            .await
            .expect("an answer")?;
        assert_eq!(event, LinkEvent::Refused(Refusal::NoSuchRoom));
        Ok(())
    })
}
