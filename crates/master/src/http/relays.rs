//! Relays for games that players host themselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use muse_master_client::Preferences;
use muse_master_client::api::{ErrorBody, RelayKey, RelayPage, RelayPlace, RelayToken, RoundTrips};
use muse_relay::MasterKey;

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

/// A token with which this player opens a room at the relay of a region, at a relay that demands one.
#[utoipa::path(post, path = "/v1/relays/{region}/token", params(("region" = String, Path)), security(("bearer" = [])), responses(
    (status = 200, body = RelayToken), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn token(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(region): Path<String>,
) -> Result<Json<RelayToken>, Failure> {
    let place = shared.relays.place(&region);
    let token = place.and_then(|place| {
        let (address, token) = (place.address.clone(), shared.relay_token(account, place)?);
        Some(RelayToken { address, token })
    });
    Ok(Json(token.ok_or(StoreError::NotFound("relay"))?))
}

/// The public key with which relays check these tokens: `muse relay --master-key`.
#[utoipa::path(get, path = "/v1/relays/key", responses((status = 200, body = RelayKey)))]
pub(crate) async fn key(State(shared): State<Arc<Shared>>) -> Json<RelayKey> {
    let key = MasterKey::of(&shared.relay_tokens).to_string();
    Json(RelayKey { key })
}
