//! Accounts: sign in, progress, ranking, export and deletion.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use muse_master_client::AccountId;
use muse_master_client::api::{
    AccountView, ErrorBody, GuestRequest, NewPasswordRequest, PasswordRequest, Progress,
    RankingPage, RefreshRequest, SignedIn,
};
use muse_wire::Instant;
use serde::Deserialize;

use super::failure::{Body, Failure, Path, Query};
use super::passwords::CallerNetwork;
use super::{Player, PlayerAccess};
use crate::bus::Note;
use crate::clock;
use crate::hashing::{Asker, Role};
use crate::secrets::{ACCESS_LIFE, Access, REFRESH_LIFE, SignInId, hashed, random_text, successor};
use crate::shared::Shared;
use crate::store::{
    NewPassword, RANKING_PAGE, RankingCursor, Refreshed, StoreError, StoredAccount, Successor,
};

/// Signs a guest in by the key of their device; the first time an account is made.
#[utoipa::path(post, path = "/v1/guest", request_body = GuestRequest, responses(
    (status = 200, body = SignedIn), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn guest(
    State(shared): State<Arc<Shared>>,
    Body(request): Body<GuestRequest>,
) -> Result<Json<SignedIn>, Failure> {
    if !(16..=256).contains(&request.device_key.chars().count()) {
        return Err(Failure::invalid("a device key has 16 to 256 characters"));
    }
    let device = hashed(&request.device_key);
    let account = shared.store.guest(device, clock::now()).await?;
    signed_in(&shared, account).await.map(Json)
}

/// Signs in by name and password.
#[utoipa::path(post, path = "/v1/sign-in", request_body = PasswordRequest, responses(
    (status = 200, body = SignedIn), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn sign_in(
    State(shared): State<Arc<Shared>>,
    CallerNetwork(network): CallerNetwork,
    Body(request): Body<PasswordRequest>,
) -> Result<Json<SignedIn>, Failure> {
    check_password(&request.name, &request.password)?;
    let asker = Asker {
        role: Role::Player,
        network,
        name: Some(request.name.clone()),
    };
    shared.passwords.check(&asker)?;
    let known = shared.store.password(request.name).await?;
    let (account, hash) = known.unzip();
    let right = shared.passwords.is_right(&asker, request.password, hash);
    let right = right.await?;
    match account.filter(|_| right) {
        Some(account) => signed_in(&shared, account).await.map(Json),
        None => Err(Failure::WRONG_PASSWORD),
    }
}

/// Exchanges a refresh token for a new pair. Each can be used once, and once more within a minute if the answer was lost, which is then the same; any other
/// second use signs the account out everywhere.
#[utoipa::path(post, path = "/v1/refresh", request_body = RefreshRequest, responses(
    (status = 200, body = SignedIn), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn refresh(
    State(shared): State<Arc<Shared>>,
    Body(request): Body<RefreshRequest>,
) -> Result<Json<SignedIn>, Failure> {
    let (salt, now) = (random_text(), clock::now());
    let token = |salt: &str| successor(&request.refresh_token, salt);
    let fresh = Successor {
        token: hashed(&token(&salt)),
        salt,
        expires: now + REFRESH_LIFE,
    };
    let old = hashed(&request.refresh_token);
    let refreshed = shared.store.rotate_refresh(old, fresh, now).await;
    let refreshed = refreshed.map_err(|error| match error {
        StoreError::NotFound(_) => Failure::SIGN_IN,
        other => other.into(),
    })?;
    let (account, sign_in, salt) = match refreshed {
        Refreshed::Exchanged {
            account,
            sign_in,
            salt,
        } => (account, sign_in, salt),
        Refreshed::Stolen(account) => {
            tracing::warn!(%account, "a refresh token was used twice");
            shared.bus.publish(Note::Revoked(account, SignInId::NONE));
            return Err(Failure::SIGN_IN);
        }
    };
    let known = shared.store.account(account).await?;
    if is_banned(&known, now) {
        return Err(Failure::BANNED);
    }
    Ok(Json(tokens(&shared, &known, sign_in, token(&salt))))
}

/// Voids every token of the account and closes its connection.
#[utoipa::path(post, path = "/v1/sign-out-everywhere", security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn sign_out_everywhere(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<StatusCode, Failure> {
    shared.store.sign_out_everywhere(account).await?;
    shared.bus.publish(Note::Revoked(account, SignInId::NONE));
    Ok(StatusCode::NO_CONTENT)
}

/// The account.
#[utoipa::path(get, path = "/v1/account", security(("bearer" = [])), responses(
    (status = 200, body = AccountView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn account(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<AccountView>, Failure> {
    Ok(Json(shared.store.account(account).await?.view))
}

/// Gives the account a name and a password, or new ones: a guest can then sign in elsewhere. An account that has a password names it as the old one. All
/// other sign-ins of the account end, and their connections are closed.
#[utoipa::path(put, path = "/v1/account/password", request_body = NewPasswordRequest, security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn set_password(
    State(shared): State<Arc<Shared>>,
    PlayerAccess(access): PlayerAccess,
    CallerNetwork(network): CallerNetwork,
    Body(request): Body<NewPasswordRequest>,
) -> Result<StatusCode, Failure> {
    let NewPasswordRequest {
        name,
        password,
        old_password,
    } = request;
    check_password(&name, &password)?;
    let Access {
        account, sign_in, ..
    } = access;
    let mut asker = Asker {
        role: Role::Player,
        network,
        name: None,
    };
    let mut replaces = None;
    if let Some((known, hash)) = shared.store.password_of(account).await? {
        let old = old_password.ok_or(Failure::OLD_PASSWORD)?;
        asker.name = Some(known);
        let right = shared.passwords.is_right(&asker, old, Some(hash.clone()));
        if !right.await? {
            return Err(Failure::WRONG_OLD_PASSWORD);
        }
        replaces = Some(hash);
        asker.name = None;
    }
    let hash = shared.passwords.hash(&asker, password).await?;
    let named = NewPassword {
        name,
        hash,
        replaces,
    };
    shared.store.set_password(account, named, sign_in).await?;
    shared.bus.publish(Note::Revoked(account, sign_in));
    Ok(StatusCode::NO_CONTENT)
}

/// Everything that is kept about the account.
#[utoipa::path(get, path = "/v1/account/export", security(("bearer" = [])), responses(
    (status = 200, body = serde_json::Value), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn export(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<serde_json::Value>, Failure> {
    Ok(Json(shared.store.export(account).await?))
}

/// Deletes the account and everything that is kept about it, and closes its connection.
#[utoipa::path(delete, path = "/v1/account", security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn delete(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<StatusCode, Failure> {
    shared.leave_queue(account).await?;
    shared.store.delete(account).await?;
    shared.bus.publish(Note::Revoked(account, SignInId::NONE));
    Ok(StatusCode::NO_CONTENT)
}

/// Saved progress of a game; version 0 and null if there is none.
#[utoipa::path(get, path = "/v1/progress/{game}", params(("game" = String, Path)), security(("bearer" = [])), responses(
    (status = 200, body = Progress), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn progress(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(game): Path<String>,
) -> Result<Json<Progress>, Failure> {
    check_game(&game)?;
    Ok(Json(shared.store.progress(account, game).await?))
}

/// Saves progress that is based on the version it names, and answers with the new version.
#[utoipa::path(put, path = "/v1/progress/{game}", params(("game" = String, Path)), request_body = Progress,
    security(("bearer" = [])), responses(
    (status = 200, body = Progress), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn save_progress(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(game): Path<String>,
    Body(progress): Body<Progress>,
) -> Result<Json<Progress>, Failure> {
    check_game(&game)?;
    if game.starts_with(SERVER_PREFIX) {
        return Err(Failure::invalid("this progress is kept by game servers"));
    }
    let text = progress.document.to_string();
    if text.len() > DOCUMENT_MAX {
        return Err(Failure::invalid("progress has 16 kB at most"));
    }
    let version = shared
        .store
        .save_progress(account, game, progress.version, text)
        .await?;
    let document = progress.document;
    Ok(Json(Progress { version, document }))
}

/// The requested part of the ranking.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RankingPart {
    after: Option<String>,
}

/// A hundred places of the season's ranking: the first ones, or those after another page.
#[utoipa::path(get, path = "/v1/ranking", params(("after" = Option<String>, Query, description = "`next` of the page before")), responses(
    (status = 200, body = RankingPage), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn ranking(
    State(shared): State<Arc<Shared>>,
    Query(part): Query<RankingPart>,
) -> Result<Json<RankingPage>, Failure> {
    let after = part.after.map(|after| {
        RankingCursor::parse(&after)
            .ok_or_else(|| Failure::invalid("`after` is not the `next` of a page"))
    });
    let lines = shared.store.ranking(after.transpose()?).await?;
    let last = lines.last().filter(|_| lines.len() == RANKING_PAGE);
    let next = last.map(|line| RankingCursor::from(line).to_string());
    Ok(Json(RankingPage { lines, next }))
}

async fn signed_in(shared: &Shared, account: AccountId) -> Result<SignedIn, Failure> {
    let (refresh, sign_in) = (random_text(), SignInId::fresh());
    let now = clock::now();
    // A banned player gets no token that would outlive the ban.
    let known = shared.store.account(account).await?;
    if is_banned(&known, now) {
        return Err(Failure::BANNED);
    }
    shared
        .store
        .add_refresh(account, sign_in, hashed(&refresh), now + REFRESH_LIFE, now)
        .await?;
    Ok(tokens(shared, &known, sign_in, refresh))
}

fn tokens(
    shared: &Shared,
    known: &StoredAccount,
    sign_in: SignInId,
    refresh_token: String,
) -> SignedIn {
    let account = known.view.account;
    let access = Access {
        account,
        generation: known.generation,
        sign_in,
    };
    metrics::counter!("muse_sign_ins").increment(1);
    SignedIn {
        account,
        access_token: shared.keys.access(access, clock::now()),
        refresh_token,
        expires_s: ACCESS_LIFE.as_micros() / 1_000_000,
    }
}

/// True if an operator keeps this account out.
pub(super) fn is_banned(account: &StoredAccount, now: Instant) -> bool {
    account.banned_until.is_some_and(|until| until > now)
}

fn check_password(name: &str, password: &str) -> Result<(), Failure> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !(3..=24).contains(&name.len()) || !name.bytes().all(letter) {
        return Err(Failure::invalid(
            "a name has 3 to 24 letters, digits, - or _",
        ));
    }
    if !(8..=128).contains(&password.chars().count()) {
        return Err(Failure::invalid("a password has 8 to 128 characters"));
    }
    Ok(())
}

fn check_game(game: &str) -> Result<(), Failure> {
    if game.is_empty() || game.len() > 32 || game.chars().any(char::is_control) {
        return Err(Failure::invalid("a game's name has 1 to 32 bytes"));
    }
    Ok(())
}

/// Longest document of progress.
pub(super) const DOCUMENT_MAX: usize = 16 * 1024;
/// The beginning of the names of progress that game servers keep: players read it and do not write it.
pub(super) const SERVER_PREFIX: &str = "server:";
