//! The HTTP interface: JSON, described by `/openapi.json`, which is generated from this code.

pub(crate) mod accounts;
pub(crate) mod admin;
pub(crate) mod failure;
mod game;
pub(crate) mod limits;
mod operations;
pub(crate) mod passwords;
mod play;
mod push;
mod relays;
mod social;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, FromRequestParts};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use axum::routing::{get, post, put};
use muse_master_client::AccountId;
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use crate::clock;
use crate::secrets::Access;
use crate::server::StartError;
use crate::shared::Shared;
use crate::store::StoreError;
use failure::Failure;

/// Routes for players and game servers, and `others` beside them; also those for operators, unless they have an address of their own.
pub(crate) fn router(
    shared: Arc<Shared>,
    others: Option<Router>,
    operators_elsewhere: bool,
) -> Router {
    let enrolment = Router::new().route("/v1/server/enrol", post(game::enrol));
    let api = shared.limits.by_address(players().merge(enrolment));
    let own = api
        .merge(probes())
        .route("/v1/server", get(game::server))
        .route("/openapi.json", get(operations::openapi));
    let own = match operators_elsewhere {
        true => own,
        false => own.merge(operators(&shared)),
    };
    let own = finish(own, shared);
    match others {
        Some(others) => own.fallback_service(others),
        None => own.fallback(failure::nothing_here),
    }
}

/// Routes for operators and Prometheus at an address of their own.
pub(crate) fn operator_router(shared: Arc<Shared>) -> Router {
    let own = operators(&shared).merge(probes());
    finish(own, shared).fallback(failure::nothing_here)
}

fn operators(shared: &Shared) -> Router<Arc<Shared>> {
    let api = shared.limits.by_address(admin::router());
    api.route("/metrics", get(operations::metrics))
}

/// Routes for load balancers.
fn probes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/health", get(operations::health))
        .route("/ready", get(operations::ready))
}

fn finish(routes: Router<Arc<Shared>>, shared: Arc<Shared>) -> Router {
    routes
        .method_not_allowed_fallback(failure::wrong_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(shared)
}

/// Routes for game servers on this machine, without TLS.
pub(crate) fn server_router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/server", get(game::server))
        .route("/v1/server/enrol", post(game::enrol))
        .fallback(failure::nothing_here)
        .with_state(shared)
}

/// Routes for players.
fn players() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/guest", post(accounts::guest))
        .route("/v1/sign-in", post(accounts::sign_in))
        .route("/v1/refresh", post(accounts::refresh))
        .route(
            "/v1/sign-out-everywhere",
            post(accounts::sign_out_everywhere),
        )
        .route(
            "/v1/account",
            get(accounts::account).delete(accounts::delete),
        )
        .route("/v1/account/password", put(accounts::set_password))
        .route("/v1/account/export", get(accounts::export))
        .route(
            "/v1/progress/{game}",
            get(accounts::progress).put(accounts::save_progress),
        )
        .route("/v1/ranking", get(accounts::ranking))
        .route("/v1/ticket", post(play::play).delete(play::leave))
        .route("/v1/state", get(play::state))
        .route("/v1/friends", get(social::friends))
        .route(
            "/v1/friends/{account}",
            put(social::befriend).delete(social::unfriend),
        )
        .route("/v1/friends/{account}/block", post(social::block))
        .route("/v1/friends/{account}/invite", post(social::invite))
        .route(
            "/v1/room",
            post(social::open_room)
                .get(social::room)
                .delete(social::leave_room),
        )
        .route("/v1/room/{code}", post(social::join_room))
        .route(
            "/v1/chat/room",
            post(social::say_room).get(social::room_history),
        )
        .route(
            "/v1/chat/match",
            post(social::say_match).get(social::match_history),
        )
        .route(
            "/v1/chat/direct/{account}",
            post(social::say_direct).get(social::direct_history),
        )
        .route("/v1/relays", get(relays::relays))
        .route("/v1/relays/key", get(relays::key))
        .route("/v1/relays/{region}/token", post(relays::token))
        .route("/v1/relay", post(relays::relay))
        .route("/v1/push", get(push::push))
}

/// Lets pages of these origins use the interface.
pub(crate) fn with_origins(routes: Router, origins: &[String]) -> Result<Router, StartError> {
    if origins.is_empty() {
        return Ok(routes);
    }
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        let value = |origin: &String| {
            let value = HeaderValue::from_str(origin).ok();
            let scheme = origin.starts_with("http://") || origin.starts_with("https://");
            value
                .filter(|_| scheme && !origin.ends_with('/'))
                .ok_or_else(|| StartError::Origin(origin.clone()))
        };
        AllowOrigin::list(origins.iter().map(value).collect::<Result<Vec<_>, _>>()?)
    };
    let layer = CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers([AUTHORIZATION, CONTENT_TYPE])
        .expose_headers([RETRY_AFTER])
        .max_age(std::time::Duration::from_secs(3_600));
    Ok(routes.layer(layer))
}

pub(crate) use admin::{check_operator, sample};
pub(crate) use game::count_refusal;
pub(crate) use passwords::hash_password;
pub(crate) use push::{gone as player_gone, signed_out};

/// Installs the recorder of figures, once.
pub(crate) fn install_recorder() {
    if operations::recorder().is_none() {
        tracing::warn!("another recorder of figures is installed: /metrics stays empty");
    }
}

/// The signed-in player who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Player(pub(crate) AccountId);

impl FromRequestParts<Arc<Shared>> for Player {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Failure> {
        let token = bearer(parts).ok_or(Failure::SIGN_IN)?;
        let access = signed_in(shared, token).await?;
        Ok(Self(access.account))
    }
}

/// The token of the player who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlayerAccess(pub(crate) Access);

impl FromRequestParts<Arc<Shared>> for PlayerAccess {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Failure> {
        let token = bearer(parts).ok_or(Failure::SIGN_IN)?;
        signed_in(shared, token).await.map(Self)
    }
}

/// Returns the contents of a token, if it is still valid.
pub(crate) async fn signed_in(shared: &Shared, token: &str) -> Result<Access, Failure> {
    let access = shared.keys.check_access(token, clock::now());
    let access = access.map_err(|_| Failure::SIGN_IN)?;
    shared.limits.check(access.account)?;
    match shared.store.account(access.account).await {
        Ok(account) if accounts::is_banned(&account, clock::now()) => Err(Failure::BANNED),
        Ok(account) if account.honours(&access) => Ok(access),
        Ok(_) | Err(StoreError::NotFound(_)) => Err(Failure::SIGN_IN),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn bearer(parts: &Parts) -> Option<&str> {
    let header = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    header.strip_prefix("Bearer ")
}

/// The description of the interface.
#[derive(OpenApi)]
#[openapi(
    info(title = "Muse master server"),
    modifiers(&Bearer),
    // Named by a path alone, which does not bring it along.
    components(schemas(crate::operators::Sanction)),
    paths(
        accounts::guest, accounts::sign_in, accounts::refresh, accounts::sign_out_everywhere, accounts::account,
        accounts::delete, accounts::set_password, accounts::export, accounts::progress, accounts::save_progress,
        accounts::ranking, play::play, play::leave, play::state, social::friends, social::befriend, social::unfriend,
        social::block, social::invite, social::open_room, social::room, social::leave_room, social::join_room,
        social::say_room, social::room_history, social::say_match, social::match_history, social::say_direct,
        social::direct_history, relays::relays, relays::relay, relays::key, relays::token, admin::sign_in, admin::overview, admin::players, admin::kick, admin::impose,
        admin::lift, admin::queue, admin::matches, admin::match_log, admin::end_match, admin::servers,
        admin::chat, admin::delete_line, admin::drain, admin::announce, admin::audit, admin::operators,
        admin::set_operator, admin::remove_operator, game::enrol, operations::health, operations::ready, operations::metrics,
    )
)]
pub(crate) struct Description;

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = description.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// Longest body of a request; progress is the largest.
const BODY_MAX: usize = 20 * 1024;
