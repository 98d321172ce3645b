//! The WebSocket of a game server, and how one that a cluster started gets its credential.

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
use muse_master_client::messages::{FromServer, MESSAGE_LEN_MAX, Phase, ToServer, decode, encode};

use super::failure::{Body, Failure};
use crate::bus::Note;
use crate::clock;
use crate::shared::Shared;

/// Opens the connection of a game server, which shows its own credential. It is admitted even when the master is full.
pub(super) async fn server(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Failure> {
    let server = shared
        .keys
        .check_server(credential(&headers)?)
        .map_err(|_| Failure::SIGN_IN)?;
    let upgrade = upgrade
        .read_buffer_size(4_096)
        .max_message_size(MESSAGE_LEN_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move { serve(&shared, server, socket).await }))
}

/// A credential for a game server that a cluster started, in exchange for the fleet's key.
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
    let server = shared.fleet.enrol(key, &request.name);
    let server = server.ok_or(Failure::SIGN_IN)?;
    tracing::info!(%server, name = request.name, "a game server enrolled");
    let credential = shared.keys.server(server);
    Ok(Json(Enrolled { credential }))
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
    let link = LINKS.fetch_add(1, Ordering::Relaxed);
    let mut messages = shared.hub.link_server(server, link);
    let mut known = Known::default();
    loop {
        let outgoing = tokio::select! {
            // Messages that have arrived are handled before the time is checked: it may have passed while this master was paused.
            biased;
            received = socket.recv() => match received {
                Some(Ok(Message::Text(text))) => match handle(shared, server, &mut known, &text).await {
                    Some(answer) => answer,
                    None => break,
                },
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => continue,
            },
            message = messages.recv() => match message {
                Some(message) => message,
                None => break,
            },
            () = tokio::time::sleep(crate::sessions::SILENCE.into()) => break,
        };
        if socket.send(Message::text(encode(&outgoing))).await.is_err() {
            break;
        }
    }
    if shared.hub.unlink_server(server, link) {
        shared.fleet.handle_unlinked(server);
    }
}

/// A server's words about itself.
#[derive(Default)]
struct Known {
    address: Option<String>,
    linked: bool,
}

/// Takes one message; none ends the connection.
async fn handle(
    shared: &Arc<Shared>,
    server: ServerId,
    known: &mut Known,
    text: &str,
) -> Option<ToServer> {
    let message = decode::<FromServer>(text)
        .inspect_err(|error| tracing::warn!(%server, %error, "a game server speaks nonsense"))
        .ok()?;
    match message {
        FromServer::Register {
            address,
            public_key,
        } => {
            let stored =
                shared
                    .store
                    .register_server(server, address.clone(), public_key, clock::now());
            stored.await.ok()?;
            known.address = Some(address);
        }
        FromServer::Report(report) => {
            // It counts as there when it has said both where it is and whether it is free.
            if let Some(address) = known.address.as_ref().filter(|_| !known.linked) {
                known.linked = true;
                let busy = report.match_id.is_some() || report.phase != Phase::Ready;
                shared.fleet.handle_linked(server, address, busy);
            }
            shared.bus.publish(Note::Report(server, report));
        }
        FromServer::Result(result) => {
            if let Some(address) = known.address.as_ref().filter(|_| !known.linked) {
                known.linked = true;
                shared.fleet.handle_linked(server, address, true);
            }
            shared.bus.publish(Note::Result(server, result));
        }
        FromServer::Profile { account, game } => {
            return Some(profiles::load(shared, account, &game).await);
        }
        FromServer::Progress {
            account,
            game,
            number,
            document,
        } => return Some(profiles::save(shared, account, &game, number, &document).await),
    }
    Some(ToServer::KeepAlive)
}

/// Longest name of an object in Kubernetes.
const NAME_LEN_MAX: usize = 253;
/// Numbers of connections, to tell a server's newest one.
static LINKS: AtomicU64 = AtomicU64::new(1);
