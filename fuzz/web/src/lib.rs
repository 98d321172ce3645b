//! A browser's connection over TCP, as the fuzzer sees it: the files of `crates/drivers/src/native/web` without those that need WebTransport,
//! whose libraries take longer to compile than everything else here.

#![allow(dead_code, reason = "what only WebTransport and the game loop use")]

#[path = "../../../crates/drivers/src/native/web/address.rs"]
mod address;
#[path = "../../../crates/drivers/src/native/web/doors.rs"]
mod doors;
#[path = "../../../crates/drivers/src/native/web/http.rs"]
mod http;
#[path = "../../../crates/drivers/src/native/web/options.rs"]
mod options;
#[path = "../../../crates/drivers/src/native/web/port.rs"]
mod port;
#[path = "../../../crates/drivers/src/native/web/shared.rs"]
mod shared;
#[path = "../../../crates/drivers/src/native/web/socket.rs"]
mod socket;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::doors::{Doors, Limits};
use crate::options::WebOptions;
use crate::port::{Harbour, WAITING_MAX};
use crate::shared::{FromWeb, Shared};
use crate::socket::Sockets;

/// As in `web.rs`.
#[derive(Clone, Copy, Debug)]
struct WebSession {
    remote: SocketAddr,
    kind: WebKind,
}

/// As in `web.rs`.
#[derive(Clone, Copy, Debug)]
enum WebKind {
    WebSocket,
}

/// The other side's view of a connection that is over.
#[derive(Debug, Default)]
pub struct Conversation {
    /// All that was answered.
    pub answer: Vec<u8>,
    /// The datagrams that reached the game loop, which takes none before the end.
    pub datagrams: Vec<Vec<u8>>,
}

/// Sends `parts`, in pieces of so many bytes, as a browser that waits for an answer after each part and then hangs up.
///
/// # Panics
/// If the connection does not end, or its place is not free afterwards.
pub fn converse(parts: &[&[u8]], piece: usize) -> Conversation {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime without sockets needs nothing");
    runtime.block_on(async {
        let (to_game, mut from_web) = mpsc::channel(QUEUE);
        let options = WebOptions::new(ADDRESS);
        let harbour = Harbour::new(to_game, Arc::new(Shared::default()), options.datagram_max);
        let doors = Doors::new(Limits {
            all: 1,
            per_address: 1,
            per_prefix: 1,
        });
        let pass = doors.enter(ADDRESS.ip()).expect("the first one");
        let sockets = Sockets {
            options,
            doors: doors.clone(),
            harbour,
            tls: None,
            transport_port: 1,
        };
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let mut conversation = Conversation::default();
        let browser = browse(ours, parts, piece, &mut conversation.answer);
        let served = sockets.converse(theirs, ADDRESS, pass);
        // An error is the end of a connection, too.
        let _ = tokio::join!(browser, served);
        assert_eq!(doors.inside(), 0, "the place is free again");
        while let Ok(news) = from_web.try_recv() {
            if let FromWeb::Datagram { bytes, .. } = news {
                conversation.datagrams.push(bytes);
            }
        }
        conversation
    })
}

async fn browse(
    mut stream: tokio::io::DuplexStream,
    parts: &[&[u8]],
    piece: usize,
    answer: &mut Vec<u8>,
) {
    for (index, part) in parts.iter().enumerate() {
        for piece in part.chunks(piece.max(1)) {
            if stream.write_all(piece).await.is_err() {
                break;
            }
            // Lets the other side read it before the next.
            tokio::task::yield_now().await;
        }
        if index + 1 < parts.len() {
            let mut buffer = [0; 1_024];
            let len = stream.read(&mut buffer).await.unwrap_or(0);
            answer.extend_from_slice(&buffer[..len]);
        }
    }
    // It hangs up; and what was answered is still read.
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(answer).await;
}

/// Datagrams that wait for the game loop at most.
pub const DATAGRAMS_MAX: usize = WAITING_MAX;
const ADDRESS: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
    7,
);
/// Messages to a game loop that takes none: opened, datagrams, closed.
const QUEUE: usize = DATAGRAMS_MAX + 2;
/// Bytes that wait in each direction.
const PIPE: usize = 64 << 10;
/// As in `web.rs`.
const DATAGRAM_MAX: usize = 1_200;
