//! Client and server inside a tokio runtime.
#![cfg(feature = "tokio")]

use std::io;
use std::time::Duration;

use muse_drivers::{AsyncClient, AsyncServer, new_key};
use muse_transport::{ChannelConfig, Config, Connect, Delivery, Event, ServerOptions};

async fn serve(mut server: AsyncServer) -> io::Result<usize> {
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

async fn ask(mut client: AsyncClient) -> io::Result<Vec<u8>> {
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
        let server = AsyncServer::bind(here, config.clone(), ServerOptions::new(key))?;
        let client = AsyncClient::connect(server.local_addr()?, config, how)?;
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
