//! The driver inside a tokio runtime.
#![cfg(feature = "tokio")]

#[path = "support/node.rs"]
mod support;

use std::io;
use std::net::SocketAddr;

use muse_drivers::{AsyncUdp, Driver, UdpOptions};
use muse_wire::Duration;
use support::Node;

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime starts").block_on(future)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

#[test]
fn questions_and_answers_wake_both_sides() -> io::Result<()> {
    run(async {
        let mut server = AsyncUdp::bind(loopback(), &UdpOptions::default())?;
        let mut client = AsyncUdp::bind(loopback(), &UdpOptions::default())?;
        let address = server.driver().local_addr()?;
        let (mut at_server, mut at_client) = (
            Node {
                echo: true,
                ..Node::default()
            },
            Node::default(),
        );
        for round in 0..50_u8 {
            for part in 0..10 {
                at_client.say(address, &[round, part]);
            }
            let wanted = 10 * (usize::from(round) + 1);
            // A turn sends before it sleeps, so the client's first poll starts the round.
            while at_client.received.len() < wanted {
                let patience = support::PATIENCE.into();
                let turn = async {
                    let first = std::pin::pin!(client.turn(&mut at_client));
                    let second = std::pin::pin!(server.turn(&mut at_server));
                    either(first, second).await
                };
                tokio::time::timeout(patience, turn)
                    .await
                    .expect("somebody is woken")?;
            }
        }
        let expected: Vec<[u8; 2]> = (0..50)
            .flat_map(|round| (0..10).map(move |part| [round, part]))
            .collect();
        assert_eq!(at_client.payloads(), expected);
        Ok(())
    })
}

#[test]
fn a_time_out_wakes_the_machine() -> io::Result<()> {
    run(async {
        let mut udp = AsyncUdp::bind(loopback(), &UdpOptions::default())?;
        let due = udp.clock().now() + Duration::from_millis(5);
        let mut node = Node {
            timeout: Some(due),
            ..Node::default()
        };
        while node.timeouts_handled == 0 {
            udp.turn(&mut node).await?;
        }
        assert!(udp.clock().now() >= due);
        Ok(())
    })
}

/// Whichever ends first; the other is dropped at its await, which a turn must bear.
async fn either<T>(
    mut first: std::pin::Pin<&mut impl Future<Output = T>>,
    mut second: std::pin::Pin<&mut impl Future<Output = T>>,
) -> T {
    std::future::poll_fn(|context| match first.as_mut().poll(context) {
        std::task::Poll::Pending => second.as_mut().poll(context),
        ready => ready,
    })
    .await
}
