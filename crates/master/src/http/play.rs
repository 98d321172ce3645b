//! Queue and matches.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use muse_master_client::api::{ErrorBody, PlayAnswer, PlayRequest, StateView};

use super::Player;
use super::failure::{Body, Failure};
use crate::shared::{Shared, queue_state};

/// *Play*: enters the queue, changes the preferences in place, or leaves if they are unchanged. A leader plays with the whole room.
#[utoipa::path(post, path = "/v1/ticket", request_body = PlayRequest, security(("bearer" = [])), responses(
    (status = 200, body = PlayAnswer), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn play(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Body(request): Body<PlayRequest>,
) -> Result<Json<PlayAnswer>, Failure> {
    request.preferences.check()?;
    let ticket = shared.play(account, request.preferences, false).await?;
    let ticket = ticket.as_ref().map(queue_state);
    Ok(Json(PlayAnswer { ticket }))
}

/// Leaves the queue.
#[utoipa::path(delete, path = "/v1/ticket", security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn leave(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<StatusCode, Failure> {
    shared.leave_queue(account).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The player's standing: queue, match, room. Asking gives a fresh connect token.
#[utoipa::path(get, path = "/v1/state", security(("bearer" = [])), responses(
    (status = 200, body = StateView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn state(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<StateView>, Failure> {
    let standing = shared.store.standing(account).await?;
    let seat = standing.seat.as_ref();
    Ok(Json(StateView {
        ticket: standing.ticket.as_ref().map(queue_state),
        match_id: standing.match_id,
        seat: seat.and_then(|stored| shared.seat(account, stored)),
        room: shared.store.room(account).await?.map(|room| room.code),
    }))
}
