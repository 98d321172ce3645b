//! Players who meet: how long from *play* to a seat, and how long a warm game server takes to be had.
//!
//! The matches are real ones, hosted by game servers that the master starts; players give their seats up at once, so that servers are soon
//! free again.

use std::time::{Duration, Instant};

use anyhow::bail;
use futures_util::{SinkExt, StreamExt};
use muse_master_client::Preferences;
use muse_master_client::messages::{FromMaster, ToMaster, decode, encode};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::load::{Http, open_push};

/// Seconds from *play* to the seat of every match that a crowd of players found: each waits for a random time, plays, gives up their seat, and
/// comes again.
pub(super) async fn times_to_match(authority: &str, window: Duration) -> anyhow::Result<Vec<f64>> {
    let until = Instant::now() + window;
    let mut players = Vec::new();
    for n in 0..CROWD {
        let mut player = Player::sign_in(authority, n).await?;
        let mut rng = fastrand::Rng::with_seed(n as u64);
        players.push(tokio::spawn(async move {
            let mut times = Vec::new();
            loop {
                player.idle(THINK_MAX.mul_f64(rng.f64())).await?;
                if Instant::now() >= until {
                    return anyhow::Ok((times, false));
                }
                match tokio::time::timeout_at((until + ALONE).into(), player.play()).await {
                    Ok(found) => times.push(found?.seated.as_secs_f64()),
                    Err(_) => return Ok((times, true)),
                }
            }
        }));
    }
    let (mut times, mut alone) = (Vec::new(), 0);
    for player in players {
        let (found, is_alone) = player.await??;
        times.extend(found);
        alone += usize::from(is_alone);
    }
    if alone > 1 {
        bail!(
            "{alone} players waited for each other for {} s",
            ALONE.as_secs()
        );
    }
    if times.is_empty() {
        bail!("nobody was matched");
    }
    Ok(times)
}

/// Seconds between a match and its seats, with a game server that waits for it: two players, one match after the other.
pub(super) async fn warm_allocations(authority: &str, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut first = Player::sign_in(authority, 0).await?;
    let mut second = Player::sign_in(authority, 1).await?;
    let mut times = Vec::new();
    for _ in 0..count {
        // The pool fills up meanwhile.
        tokio::try_join!(first.idle(REFILL), second.idle(REFILL))?;
        let (found, other) = tokio::try_join!(first.play(), second.play())?;
        times.push((found.seated - found.matched).as_secs_f64());
        times.push((other.seated - other.matched).as_secs_f64());
    }
    Ok(times)
}

struct Player {
    socket: WebSocketStream<TcpStream>,
}

/// Times of events after *play*.
#[derive(Clone, Copy)]
struct Found {
    matched: Duration,
    seated: Duration,
}

impl Player {
    async fn sign_in(authority: &str, n: usize) -> anyhow::Result<Self> {
        let token = Http::open(authority).await?.sign_in(n).await?.access_token;
        let socket = open_push(authority, &token).await?;
        Ok(Self { socket })
    }

    async fn send(&mut self, message: &ToMaster) -> anyhow::Result<()> {
        Ok(self.socket.send(Message::text(encode(message))).await?)
    }

    /// The next thing the master says, with a keep-alive each second until then.
    async fn hear(&mut self) -> anyhow::Result<FromMaster> {
        loop {
            let heard = tokio::time::timeout(KEEP_ALIVE, self.socket.next()).await;
            match heard {
                Err(_) => self.send(&ToMaster::KeepAlive).await?,
                Ok(Some(Ok(Message::Text(text)))) => return Ok(decode(&text)?),
                Ok(Some(Ok(_))) => {}
                Ok(_) => bail!("the master closed a session"),
            }
        }
    }

    /// Stays connected and does nothing else.
    async fn idle(&mut self, time: Duration) -> anyhow::Result<()> {
        let until = tokio::time::Instant::now() + time;
        while let Ok(heard) = tokio::time::timeout_at(until, self.hear()).await {
            heard?;
        }
        self.send(&ToMaster::KeepAlive).await
    }

    /// Plays, and leaves as soon as there is a seat.
    async fn play(&mut self) -> anyhow::Result<Found> {
        let begun = Instant::now();
        let preferences = Preferences::default();
        self.send(&ToMaster::Play { preferences }).await?;
        let mut matched = None;
        loop {
            match self.hear().await? {
                FromMaster::MatchFound { .. } => matched = Some(begun.elapsed()),
                // One without a match before it is a seat of the last match, told again.
                FromMaster::Seat(_) if matched.is_some() => {
                    let seated = begun.elapsed();
                    self.send(&ToMaster::LeaveMatch).await?;
                    let matched = matched.unwrap_or_default();
                    return Ok(Found { matched, seated });
                }
                FromMaster::Refused { code, message } => bail!("{code}: {message}"),
                _ => {}
            }
        }
    }
}

const CROWD: usize = 40;
/// Longest time between two matches of one player.
const THINK_MAX: Duration = Duration::from_secs(8);
/// Time after which the last player left knows that there is nobody to play with.
const ALONE: Duration = Duration::from_secs(5);
/// Time for the fleet to have a warm server again.
const REFILL: Duration = Duration::from_millis(700);
const KEEP_ALIVE: Duration = Duration::from_secs(1);
