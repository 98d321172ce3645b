//! The WebSocket of a game server, and how one that a cluster started gets its credential.
//!
//! A game server speaks only for its match and its seats: everything that it says is checked here before it is passed on (`host.rs`).

mod host;
mod profiles;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Json;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::response::Response;
use muse_master_client::ServerId;
use muse_master_client::api::{EnrolRequest, Enrolled, ErrorBody};
use muse_master_client::messages::{
    MESSAGE_LEN_MAX, ServerMessage, ServerRefusal, ToServer, encode,
};

use super::failure::{Body, Failure};
use crate::clock;
use crate::serving::timed_out;
use crate::shared::Shared;
use host::{Host, Said};

/// Opens the connection of a game server, which shows its own credential. It is admitted even when the master is full.
pub(super) async fn server(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    let enrolment = shared
        .keys
        .check_server(credential(&headers)?)
        .map_err(|_| Failure::SIGN_IN)?;
    let server = enrolment.server;
    let standing = shared.store.server_standing(server).await?;
    if !standing.admits(enrolment, clock::now()) {
        metrics::counter!("muse_servers_refused", "message" => "connect").increment(1);
        tracing::warn!(%server, ?standing, "the credential of a game server holds no longer");
        return Err(Failure::SIGN_IN);
    }
    let upgrade = upgrade
        .read_buffer_size(4_096)
        .max_message_size(MESSAGE_LEN_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move { serve(&shared, server, socket).await }))
}

/// A credential for a game server that a cluster started, in exchange for the fleet's key, its name and its unique id.
#[utoipa::path(post, path = "/v1/server/enrol", request_body = EnrolRequest, security(("bearer" = [])), responses(
    (status = 200, body = Enrolled), (status = "4XX", body = ErrorBody)))]
pub(crate) async fn enrol(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Body(request): Body<EnrolRequest>,
) -> Result<Json<Enrolled>, Failure> {
    let key = credential(&headers)?;
    if !(1..=NAME_LEN_MAX).contains(&request.name.len()) {
        return Err(Failure::invalid("a name has 1 to 253 characters"));
    }
    if !(1..=UID_LEN_MAX).contains(&request.uid.len()) {
        return Err(Failure::invalid("a unique id has 1 to 64 characters"));
    }
    let Some(server) = shared.fleet.enrol(key, &request.name, &request.uid) else {
        metrics::counter!("muse_servers_refused", "message" => "enrol").increment(1);
        tracing::warn!(name = request.name, "a game server may not enrol");
        return Err(Failure::SIGN_IN);
    };
    tracing::info!(%server, name = request.name, "a game server enrolled");
    let credential = shared.keys.server(server, clock::now());
    Ok(Json(Enrolled { credential }))
}

/// Counts and logs what a game server is refused.
pub(crate) fn count_refusal(server: ServerId, message: ServerMessage, refusal: &ServerRefusal) {
    let label = match message {
        ServerMessage::Register => "register",
        ServerMessage::Report => "report",
        ServerMessage::Result => "result",
        ServerMessage::Profile => "profile",
        ServerMessage::Progress => "progress",
    };
    metrics::counter!("muse_servers_refused", "message" => label).increment(1);
    tracing::warn!(%server, what = label, %refusal, "a game server is refused");
}

fn credential(headers: &HeaderMap) -> Result<&str, Failure> {
    let header = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    header
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or(Failure::SIGN_IN)
}

async fn serve(shared: &Arc<Shared>, server: ServerId, mut socket: WebSocket) {
    // An older connection of this server goes on until this one has shown that it is the same server.
    let Some(mut host) = introduce(shared, server, &mut socket).await else {
        return;
    };
    let link = LINKS.fetch_add(1, Ordering::Relaxed);
    let mut messages = shared.hub.link_server(server, link);
    loop {
        let said = tokio::select! {
            // Messages that have arrived are handled before the time is checked: it may have passed while this master was paused.
            biased;
            received = receive(&mut socket) => match received {
                Some(text) => host.handle(shared, &text).await,
                None => break,
            },
            message = messages.recv() => match message {
                Some(message) => {
                    host.handle_told(&message);
                    Said::Answer(message)
                }
                None => break,
            },
            () = tokio::time::sleep(crate::sessions::SILENCE.into()) => break,
        };
        if !send(shared, &mut socket, said).await {
            break;
        }
    }
    if shared.hub.unlink_server(server, link) {
        shared.fleet.handle_unlinked(server);
    }
}

/// The first message says where the server is and which key it has; none if it may not stay.
async fn introduce(shared: &Arc<Shared>, server: ServerId, socket: &mut WebSocket) -> Option<Host> {
    let silence = crate::sessions::SILENCE.into();
    let first = tokio::time::timeout(silence, receive(socket))
        .await
        .ok()??;
    match Host::register(shared, server, &first).await? {
        Ok(host) => {
            let answered = send(shared, socket, Said::Answer(ToServer::KeepAlive)).await;
            answered.then_some(host)
        }
        Err(refusal) => {
            let message = ServerMessage::Register;
            count_refusal(server, message, &refusal);
            send(
                shared,
                socket,
                Said::Last(ToServer::Refused { message, refusal }),
            )
            .await;
            None
        }
    }
}

/// The next text; none if the connection ended.
async fn receive(socket: &mut WebSocket) -> Option<axum::extract::ws::Utf8Bytes> {
    loop {
        match socket.recv().await? {
            Ok(Message::Text(text)) => return Some(text),
            Ok(Message::Close(_)) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

/// Sends an answer. False if the connection ends, or does not take it in time.
async fn send(shared: &Shared, socket: &mut WebSocket, said: Said) -> bool {
    let (message, goes_on) = match said {
        Said::Answer(message) => (message, true),
        Said::Last(message) => (message, false),
        Said::Nonsense => return false,
    };
    let sending = async {
        let sent = socket.send(Message::text(encode(&message))).await.is_ok();
        if !goes_on {
            let _ = socket.send(Message::Close(None)).await;
        }
        sent && goes_on
    };
    let sent = tokio::time::timeout(shared.config.request_time, sending).await;
    sent.unwrap_or_else(|_| {
        timed_out("game server that reads");
        false
    })
}

/// Longest name of an object in Kubernetes.
const NAME_LEN_MAX: usize = 253;
/// Longest unique id of an object; they have 36 characters.
const UID_LEN_MAX: usize = 64;
/// Numbers of connections, to tell a server's newest one.
static LINKS: AtomicU64 = AtomicU64::new(1);
