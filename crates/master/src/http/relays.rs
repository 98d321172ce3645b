//! Relays for games that players host themselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use muse_master_client::Preferences;
use muse_master_client::api::{ErrorBody, RelayPage, RelayPlace, RoundTrips};

use super::Player;
use super::failure::{Body, Failure};
use crate::bus::Note;
use crate::clock;
use crate::shared::Shared;
use crate::store::StoreError;

/// Every relay, to be measured.
#[utoipa::path(get, path = "/v1/relays", security(("bearer" = [])), responses(
    (status = 200, body = RelayPage), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn relays(
    State(shared): State<Arc<Shared>>,
    Player(_): Player,
) -> Result<Json<RelayPage>, Failure> {
    let relays = shared.relays.places().to_vec();
    Ok(Json(RelayPage { relays }))
}

/// The relay for this player, or for their room, by what its members measured. Tells the master what the player measured.
#[utoipa::path(post, path = "/v1/relay", request_body = RoundTrips, security(("bearer" = [])), responses(
    (status = 200, body = RelayPlace), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn relay(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Body(request): Body<RoundTrips>,
) -> Result<Json<RelayPlace>, Failure> {
    // The limits are those of a ticket's latencies, which are the same figures.
    let preferences = Preferences {
        latency_ms: request.latency_ms,
        ..Preferences::default()
    };
    preferences.check()?;
    let now = clock::now();
    let measured = preferences.latency_ms;
    shared.relays.handle_measured(now, account, &measured);
    shared.bus.publish(Note::Measured(account, measured));
    let room = shared.store.room(account).await?;
    let members = room.map_or_else(|| vec![account], |room| room.members);
    let chosen = shared.relays.choose(now, &members);
    let chosen = chosen.ok_or(StoreError::NotFound("relay"))?;
    Ok(Json(chosen.clone()))
}
