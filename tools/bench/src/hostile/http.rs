//! Attacks over TCP, all from one address: on a master, and on the port for browsers of a game server.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::ensure;
use clap::{Args, ValueEnum};
use muse_bench_workload::control::Control;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::task::JoinSet;

use super::requests::Reach;
use super::{LOOK, block_on, ready};

/// An attack over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HttpAttack {
    /// Connections that say nothing.
    Silent,
    /// Requests of which the second half never comes.
    HalfRequests,
    /// Attempts to sign in with wrong passwords.
    WrongPasswords,
    /// Questions for the ranking.
    Rankings,
    /// TLS handshakes whose first message comes byte by byte.
    SlowTls,
    /// Requests over TLS whose header comes byte by byte.
    SlowHeaders,
    /// TLS handshakes, after which nothing is asked for.
    TlsHandshakes,
    /// Frames of a WebSocket that was not opened, because nobody signed in.
    StrangersFrames,
    /// Frames of players who have signed in: keep-alives, nonsense, pings and what is not text.
    PlayersFrames,
    /// Requests of players who have signed in, and never read an answer.
    PlayersUnread,
    /// Frames at the port for browsers: datagrams of nobody's connection.
    BrowsersFrames,
}

/// The server and the attack.
#[derive(Args)]
pub(crate) struct HttpArguments {
    /// The server.
    #[arg(long)]
    server: SocketAddr,
    /// Its certificate, if it serves TLS.
    #[arg(long)]
    certificate: Option<PathBuf>,
    /// The attack.
    #[arg(long)]
    attack: HttpAttack,
    /// Connections at a time.
    #[arg(long)]
    connections: usize,
    /// Time until a connection that was answered or closed comes again, and between two frames.
    #[arg(long)]
    pause_ms: u64,
}

/// Bytes sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HttpReport {
    /// Connections that were opened.
    pub(crate) connections: u64,
    /// Bytes sent, with the headers of TCP and IP.
    pub(crate) bytes: u64,
}

/// Attacks from `go` to `stop`.
pub(super) fn run(arguments: &HttpArguments) -> anyhow::Result<ExitCode> {
    let control = Control::start();
    let reach = Reach::new(arguments.server, arguments.certificate.as_deref())?;
    let attacker = Attacker {
        reach: reach.clone(),
        attack: arguments.attack,
        pause: Duration::from_millis(arguments.pause_ms),
    };
    let report = block_on(async {
        let tokens = attacker.prepare(arguments.connections).await?;
        let before = (reach.connections(), reach.bytes());
        ready(&control).await;
        let mut attackers = JoinSet::new();
        for token in tokens {
            attackers.spawn(attacker.clone().attack(token));
        }
        while !control.has_stopped() {
            tokio::time::sleep(LOOK).await;
        }
        attackers.shutdown().await;
        anyhow::Ok(HttpReport {
            connections: reach.connections() - before.0,
            bytes: reach.bytes() - before.1,
        })
    })?;
    control.result(&report);
    Ok(ExitCode::SUCCESS)
}

/// One connection after the other.
#[derive(Clone)]
struct Attacker {
    reach: Reach,
    attack: HttpAttack,
    pause: Duration,
}

impl Attacker {
    /// Signs in for every connection, if the attack needs that; a token for each, or nothing.
    async fn prepare(&self, connections: usize) -> anyhow::Result<Vec<String>> {
        let mut tokens = vec![String::new(); connections];
        if matches!(
            self.attack,
            HttpAttack::PlayersFrames | HttpAttack::PlayersUnread
        ) {
            for (number, token) in tokens.iter_mut().enumerate() {
                let device = format!("attacker {number}");
                *token = self.reach.guest(Ipv4Addr::LOCALHOST, &device).await?;
            }
        }
        Ok(tokens)
    }

    async fn attack(self, token: String) {
        loop {
            // A server that refuses or closes is what an attacker meets; it tries again.
            let _ = self.attack_once(&token).await;
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn attack_once(&self, token: &str) -> anyhow::Result<()> {
        let home = Ipv4Addr::LOCALHOST;
        match self.attack {
            HttpAttack::Silent => {
                let mut stream = self.reach.plain(home).await?;
                self.await_end(&mut stream).await
            }
            HttpAttack::HalfRequests => self.request(HALF).await,
            HttpAttack::WrongPasswords => self.request(WRONG_PASSWORD).await,
            HttpAttack::Rankings => self.request(RANKING).await,
            HttpAttack::SlowTls => {
                let hello = self.reach.client_hello()?;
                let mut stream = self.reach.plain(home).await?;
                self.trickle(&mut stream, &hello).await
            }
            HttpAttack::SlowHeaders => {
                let mut stream = self.reach.open(home).await?;
                self.trickle(&mut stream, HALF.as_bytes()).await
            }
            HttpAttack::TlsHandshakes => self.reach.open(home).await.map(drop).map_err(Into::into),
            HttpAttack::StrangersFrames => {
                let request = upgrade("/v1/push", "");
                let mut stream = self.reach.open(home).await?;
                self.reach.send(&mut stream, request.as_bytes()).await?;
                self.reach.send(&mut stream, &frames()).await?;
                self.await_end(&mut stream).await
            }
            HttpAttack::PlayersFrames => self.flood(&push(token), &frames()).await,
            HttpAttack::PlayersUnread => {
                let mut stream = self.reach.open(home).await?;
                self.reach.send(&mut stream, push(token).as_bytes()).await?;
                let rejoin = frame(0x81, br#"{"type":"rejoin"}"#);
                loop {
                    self.reach.send(&mut stream, &rejoin).await?;
                    tokio::time::sleep(self.pause).await;
                }
            }
            HttpAttack::BrowsersFrames => {
                let datagram = frame(0x82, &[0xC3; 1_100]);
                self.flood(&upgrade("/muse", ""), &datagram).await
            }
        }
    }

    /// Sends a request, or a part of one, and waits for the end.
    async fn request(&self, request: &str) -> anyhow::Result<()> {
        let mut stream = self.reach.open(Ipv4Addr::LOCALHOST).await?;
        self.reach.send(&mut stream, request.as_bytes()).await?;
        self.await_end(&mut stream).await
    }

    /// Opens a WebSocket, and sends frames until the server has had enough.
    async fn flood(&self, request: &str, frames: &[u8]) -> anyhow::Result<()> {
        let mut stream = self.reach.open(Ipv4Addr::LOCALHOST).await?;
        self.reach.send(&mut stream, request.as_bytes()).await?;
        let mut answer = [0; 512];
        let len = stream.read(&mut answer).await?;
        ensure!(answer[..len].starts_with(b"HTTP/1.1 101"), "not opened");
        let (mut read, mut write) = tokio::io::split(stream);
        let mut answer = [0; 4_096];
        loop {
            self.reach.send(&mut write, frames).await?;
            // Answers are taken in, or the server would stop reading.
            match tokio::time::timeout(self.pause, read.read(&mut answer)).await {
                Ok(Ok(len)) if len > 0 => tokio::time::sleep(self.pause).await,
                Ok(_) => return Ok(()),
                Err(_) => {}
            }
        }
    }

    async fn trickle(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        bytes: &[u8],
    ) -> anyhow::Result<()> {
        for byte in bytes {
            self.reach.send(stream, &[*byte]).await?;
            tokio::time::sleep(TRICKLE).await;
        }
        self.await_end(stream).await
    }

    async fn await_end(&self, stream: &mut (impl AsyncRead + Unpin)) -> anyhow::Result<()> {
        let mut answer = [0; 4_096];
        while stream.read(&mut answer).await? > 0 {}
        Ok(())
    }
}

/// Asks for the WebSocket of a player.
fn push(token: &str) -> String {
    let headers = format!("Authorization: Bearer {token}\r\nSec-WebSocket-Protocol: muse.v1\r\n");
    upgrade("/v1/push", &headers)
}

/// Asks for a WebSocket.
pub(super) fn upgrade(path: &str, headers: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )
}

/// A few frames of each kind.
fn frames() -> Vec<u8> {
    [
        frame(0x81, br#"{"type":"keep_alive"}"#),
        frame(0x81, br#"{"type":"nonsense"}"#),
        frame(0x81, br#"{"type":"leave_queue"}"#),
        frame(0x82, &[7; 32]),
        frame(0x89, b"ping"),
    ]
    .concat()
}

/// A frame of a client, under a mask of zeros.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    match u8::try_from(payload.len()) {
        Ok(len) if len < 126 => frame.push(0x80 | len),
        _ => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// The first half of a request.
const HALF: &str = "POST /v1/guest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Padding: some more text that keeps it going for a while, byte by byte, without ever coming to an end; as slow as can be, and \
still not done: a header of many bytes, each of which comes alone, and after each of which the server has to look at all";
const WRONG_PASSWORD: &str = concat!(
    "POST /v1/sign-in HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n",
    r#"{"name":"somebody","password":"not theirs at all"}"#
);
const RANKING: &str = "GET /v1/ranking HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
/// Time between two bytes of a request that trickles.
const TRICKLE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_masked_and_say_their_length() {
        assert_eq!(frame(0x81, b"ab"), [0x81, 0x82, 0, 0, 0, 0, b'a', b'b']);
        let long = frame(0x82, &[1; 300]);
        assert_eq!(long[..4], [0x82, 0xFE, 1, 44]);
        assert_eq!(long.len(), 308);
        let (_, body) = WRONG_PASSWORD.split_once("\r\n\r\n").expect("a body");
        assert_eq!(body.len(), 50);
        assert!(!HALF.contains("\r\n\r\n"));
    }
}
