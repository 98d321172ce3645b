//! The WebSocket of a player: what is pushed, and the keep-alive.

use std::sync::Arc;

use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::response::Response;
use muse_master_client::AccountId;
use muse_master_client::messages::{FromMaster, MESSAGE_LEN_MAX, ToMaster, decode, encode};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant, MissedTickBehavior};

use super::accounts::is_banned;
use super::failure::Failure;
use super::signed_in;
use crate::bus::Note;
use crate::clock;
use crate::hub::Entered;
use crate::secrets::Access;
use crate::serving::timed_out;
use crate::several;
use crate::shared::{Shared, queue_state};
use crate::store::StoreError;

/// Opens the connection. Programs name their access token in the `Authorization` header; browsers, which cannot, as a second
/// subprotocol: `muse.v1, bearer.TOKEN`.
pub(super) async fn push(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    let token = token(&headers).ok_or(Failure::SIGN_IN)?;
    let access = signed_in(&shared, token).await?;
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        .max_write_buffer_size(8 * MESSAGE_LEN_MAX)
        .max_frame_size(MESSAGE_LEN_MAX)
        .max_message_size(MESSAGE_LEN_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move { serve(&shared, access, socket).await }))
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let header = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    if let Some(token) = header.and_then(|value| value.strip_prefix("Bearer ")) {
        return Some(token);
    }
    let protocols = headers.get(SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let mut protocols = protocols.split(',').map(str::trim);
    protocols.find_map(|protocol| protocol.strip_prefix("bearer."))
}

async fn serve(shared: &Arc<Shared>, access: Access, mut socket: WebSocket) {
    let account = access.account;
    let (session, mut messages) = match shared.hub.enter(account, access.sign_in) {
        Entered::Admitted(session, messages) => (session, messages),
        Entered::Full(retry_after_s) => {
            let full = encode(&FromMaster::Full { retry_after_s });
            tell(shared, &mut socket, full.into()).await;
            return;
        }
    };
    shared.bus.publish(Note::Back(account));
    several::entered(shared, account).await;
    // What was revoked while the connection was opened did not find it yet.
    let is_valid = is_valid(shared, &access).await.unwrap_or(false);
    if is_valid && greet(shared, account, &mut socket).await.is_some() {
        tell_friends(shared, account, true).await;
        run(shared, &access, session, &mut socket, &mut messages).await;
    }
    if shared.hub.leave(session).is_some() {
        gone(shared, account).await;
    }
}

/// True if a token could still open a connection.
async fn is_valid(shared: &Shared, access: &Access) -> Result<bool, StoreError> {
    match shared.store.account(access.account).await {
        Ok(account) => Ok(account.honours(access) && !is_banned(&account, clock::now())),
        Err(StoreError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The last messages over a connection whose token is void.
pub(crate) fn signed_out() -> [&'static str; 2] {
    [SIGNED_OUT, r#"{"type":"closing","come_back":false}"#]
}

/// A player's last connection is gone.
pub(crate) async fn gone(shared: &Arc<Shared>, account: AccountId) {
    if !several::left(shared, account).await {
        return;
    }
    shared.bus.publish(Note::Away(account));
    tell_friends(shared, account, false).await;
}

async fn greet(shared: &Arc<Shared>, account: AccountId, socket: &mut WebSocket) -> Option<()> {
    let standing = shared.store.standing(account).await.ok()?;
    let seat = standing.seat.as_ref();
    let welcome = FromMaster::Welcome {
        account,
        ticket: standing.ticket.as_ref().map(queue_state),
        seat: seat.and_then(|stored| shared.seat(account, stored)),
    };
    let told = tell(shared, socket, encode(&welcome).into()).await;
    told.then_some(())
}

/// Sends a message. False if the connection has ended, or does not take it in time: who never reads would keep their task and its socket for ever.
async fn tell(shared: &Shared, socket: &mut WebSocket, message: Utf8Bytes) -> bool {
    let sent = socket.send(Message::Text(message));
    match tokio::time::timeout(shared.config.request_time, sent).await {
        Ok(sent) => sent.is_ok(),
        Err(_) => {
            timed_out("reader of a WebSocket");
            false
        }
    }
}

async fn run(
    shared: &Arc<Shared>,
    access: &Access,
    session: crate::sessions::SessionId,
    socket: &mut WebSocket,
    messages: &mut mpsc::Receiver<Utf8Bytes>,
) {
    let account = access.account;
    // Refusals since a message was accepted.
    let mut refusals = 0;
    // When a keep-alive is answered next.
    let mut silent_until = Instant::now();
    let mut looks = tokio::time::interval_at(Instant::now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            // The end comes before what the client still has to say.
            biased;
            message = messages.recv() => {
                // Nobody sends to a session that was silent or revoked, or that a newer one has replaced.
                let Some(message) = message else { return };
                message
            }
            _ = looks.tick() => {
                if let Ok(false) = is_valid(shared, access).await {
                    shared.hub.end(session, &signed_out());
                }
                continue;
            }
            received = socket.recv() => {
                let Some(Ok(received)) = received else { return };
                // What is left to be sent to a session that is closed comes first.
                if !shared.hub.heard(session) {
                    continue;
                }
                let outcome = match received {
                    Message::Text(text) => answer(shared, account, &text, silent_until).await,
                    Message::Close(_) => return,
                    _ => match shared.limits.check(account) {
                        Ok(()) => Outcome::Alive(None),
                        Err(failure) => Outcome::Refused(refusal(failure)),
                    },
                };
                let Some(answer) = outcome.count(&mut refusals) else { continue };
                if refusals > REFUSALS_MAX {
                    tracing::debug!(%account, "a player was refused too often in a row");
                    return;
                }
                answer
            }
        };
        if !tell(shared, socket, message).await {
            return;
        }
        silent_until = Instant::now() + SILENCE;
    }
}

/// The fate of a message, and the answer to it.
enum Outcome {
    /// It says no more than that the player is still here.
    Alive(Option<Utf8Bytes>),
    /// It was done, or failed for a reason that a well-behaved player meets, too.
    Accepted(Option<Utf8Bytes>),
    /// It could not be read, or was one too many.
    Refused(Utf8Bytes),
}

impl Outcome {
    /// Counts refusals in a row. Returns the answer.
    fn count(self, refusals: &mut u32) -> Option<Utf8Bytes> {
        match self {
            Self::Alive(answer) => answer,
            Self::Accepted(answer) => {
                *refusals = 0;
                answer
            }
            Self::Refused(answer) => {
                *refusals += 1;
                Some(answer)
            }
        }
    }
}

/// An answer costs a master a fifth of what it does for a player who waits, so only one who has heard nothing for a while gets it.
fn keep_alive(silent_until: Instant) -> Option<Utf8Bytes> {
    (Instant::now() >= silent_until).then(|| Utf8Bytes::from_static(KEEP_ALIVE))
}

/// Does what a player says. What succeeds is told by what happens.
async fn answer(
    shared: &Arc<Shared>,
    account: AccountId,
    text: &str,
    silent_until: Instant,
) -> Outcome {
    // Nearly all that is said, and in these words.
    if text == KEEP_ALIVE {
        return Outcome::Alive(keep_alive(silent_until));
    }
    let message = decode::<ToMaster>(text);
    // What cannot be read counts as well.
    if !matches!(message, Ok(ToMaster::KeepAlive))
        && let Err(failure) = shared.limits.check(account)
    {
        return Outcome::Refused(refusal(failure));
    }
    let message = match message {
        Ok(message) => message,
        Err(error) => return Outcome::Refused(refused("invalid", &error.to_string())),
    };
    let failure: Option<Failure> = match message {
        ToMaster::KeepAlive => return Outcome::Alive(keep_alive(silent_until)),
        ToMaster::Play { preferences } => match preferences.check() {
            Ok(()) => shared
                .play(account, preferences, false)
                .await
                .err()
                .map(Into::into),
            Err(error) => Some(error.into()),
        },
        ToMaster::Queue { preferences } => match preferences.check() {
            Ok(()) => shared
                .play(account, preferences, true)
                .await
                .err()
                .map(Into::into),
            Err(error) => Some(error.into()),
        },
        ToMaster::LeaveQueue => shared.leave_queue(account).await.err().map(Into::into),
        ToMaster::LeaveMatch => shared.leave_match(account).await.err().map(Into::into),
        ToMaster::Rejoin => match shared.store.standing(account).await {
            Ok(standing) => return Outcome::Accepted(rejoin(shared, account, &standing)),
            Err(error) => Some(error.into()),
        },
    };
    Outcome::Accepted(failure.map(refusal))
}

/// The seat again, or the news that there is none.
fn rejoin(
    shared: &Shared,
    account: AccountId,
    standing: &crate::store::Standing,
) -> Option<Utf8Bytes> {
    let seat = standing
        .seat
        .as_ref()
        .and_then(|stored| shared.seat(account, stored));
    let message = match (seat, standing.match_id) {
        (Some(seat), _) => FromMaster::Seat(seat),
        // It is being placed; the seat comes by itself.
        (None, Some(_)) => return None,
        (None, None) => FromMaster::Welcome {
            account,
            ticket: standing.ticket.as_ref().map(queue_state),
            seat: None,
        },
    };
    Some(encode(&message).into())
}

fn refusal(failure: Failure) -> Utf8Bytes {
    refused(failure.code(), failure.message())
}

fn refused(code: &str, message: &str) -> Utf8Bytes {
    let refused = FromMaster::Refused {
        code: code.to_owned(),
        message: message.to_owned(),
    };
    encode(&refused).into()
}

async fn tell_friends(shared: &Arc<Shared>, account: AccountId, online: bool) {
    let friends = shared
        .store
        .friends(account, clock::now())
        .await
        .unwrap_or_default();
    for friend in friends.iter().filter(|friend| friend.state == "friend") {
        shared.tell(friend.account, &FromMaster::Presence { account, online });
    }
}

/// The subprotocol.
const PROTOCOL: &str = "muse.v1";
/// Bytes that one session keeps for reading; the library's default of 128 KiB is for few connections.
const READ_BUFFER: usize = 1_024;
/// Time for which nothing is said to a player after something was: with a keep-alive each second, they hear something every three.
const SILENCE: Duration = Duration::from_millis(2_500);
/// Refusals without a message that is accepted between them, after which a session ends: a program that goes by the limits never has so many.
const REFUSALS_MAX: u32 = 256;
/// Time between two looks whether the token of a session has been revoked, in case the note about it was lost.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Told when a token is void.
const SIGNED_OUT: &str =
    r#"{"type":"refused","code":"signed_out","message":"this account was signed out here"}"#;
/// A keep-alive, and the answer to it.
const KEEP_ALIVE: &str = r#"{"type":"keep_alive"}"#;
