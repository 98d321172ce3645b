//! Friends, rooms and chat.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use muse_master_client::AccountId;
use muse_master_client::api::{ChatHistory, ChatRequest, ErrorBody, FriendView, RoomView};
use muse_master_client::messages::{ChatLine, FromMaster};

use super::Player;
use super::failure::{Body, Failure, Path};
use crate::clock;
use crate::secrets::room_code;
use crate::shared::Shared;
use crate::store::{ChatTarget, FriendStep, StoreError};

/// Friends, requests both ways and blocked accounts.
#[utoipa::path(get, path = "/v1/friends", security(("bearer" = [])), responses(
    (status = 200, body = Vec<FriendView>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn friends(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<Vec<FriendView>>, Failure> {
    let mut friends = shared.store.friends(account).await?;
    for friend in &mut friends {
        friend.online = friend.state == "friend" && shared.hub.is_online(friend.account);
    }
    Ok(Json(friends))
}

/// Asks to be friends, or accepts.
#[utoipa::path(put, path = "/v1/friends/{account}", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn befriend(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(other): Path<AccountId>,
) -> Result<StatusCode, Failure> {
    let accepted = shared
        .store
        .befriend(account, other, FriendStep::Ask)
        .await?;
    let friends = shared.store.friends(other).await?;
    // Only who sees the request is told of it.
    if friends
        .iter()
        .any(|friend| friend.account == account && friend.state != "blocked")
    {
        shared.tell(other, &FromMaster::Friend { account, accepted });
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Ends a friendship, takes a request back or declines it.
#[utoipa::path(delete, path = "/v1/friends/{account}", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn unfriend(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(other): Path<AccountId>,
) -> Result<StatusCode, Failure> {
    shared
        .store
        .befriend(account, other, FriendStep::Remove)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Wants nothing to do with an account.
#[utoipa::path(post, path = "/v1/friends/{account}/block", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn block(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(other): Path<AccountId>,
) -> Result<StatusCode, Failure> {
    shared
        .store
        .befriend(account, other, FriendStep::Block)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Invites a friend to the room.
#[utoipa::path(post, path = "/v1/friends/{account}/invite", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn invite(
    State(shared): State<Arc<Shared>>,
    Player(from): Player,
    Path(other): Path<AccountId>,
) -> Result<StatusCode, Failure> {
    let friends = shared.store.friends(from).await?;
    if !friends
        .iter()
        .any(|friend| friend.account == other && friend.state == "friend")
    {
        return Err(StoreError::NotFound("friend").into());
    }
    let room = shared.store.room(from).await?;
    let room = room.ok_or(StoreError::NotFound("room"))?.code;
    shared.tell(other, &FromMaster::Invitation { from, room });
    Ok(StatusCode::NO_CONTENT)
}

/// Opens a room.
#[utoipa::path(post, path = "/v1/room", security(("bearer" = [])), responses(
    (status = 200, body = RoomView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn open_room(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<RoomView>, Failure> {
    let mut last = None;
    for _ in 0..CODES_TRIED {
        match shared
            .store
            .open_room(account, room_code(), clock::now())
            .await
        {
            Ok(room) => return Ok(Json(room)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(StoreError::NotFound("code")).into())
}

/// Enters the room of this code.
#[utoipa::path(post, path = "/v1/room/{code}", params(("code" = String, Path)), security(("bearer" = [])), responses(
    (status = 200, body = RoomView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn join_room(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(code): Path<String>,
) -> Result<Json<RoomView>, Failure> {
    let code = code.to_ascii_uppercase();
    if code.len() != 6 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(StoreError::NotFound("room").into());
    }
    Ok(Json(
        shared.store.join_room(account, code, clock::now()).await?,
    ))
}

/// The room.
#[utoipa::path(get, path = "/v1/room", security(("bearer" = [])), responses(
    (status = 200, body = RoomView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn room(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<RoomView>, Failure> {
    let room = shared.store.room(account).await?;
    Ok(Json(room.ok_or(StoreError::NotFound("room"))?))
}

/// Leaves the room.
#[utoipa::path(delete, path = "/v1/room", security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn leave_room(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<StatusCode, Failure> {
    shared.store.leave_room(account).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Says something in the room.
#[utoipa::path(post, path = "/v1/chat/room", request_body = ChatRequest, security(("bearer" = [])), responses(
    (status = 200, body = ChatLine), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn say_room(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Body(request): Body<ChatRequest>,
) -> Result<Json<ChatLine>, Failure> {
    say(&shared, account, ChatTarget::Room, request).await
}

/// Says something in the match.
#[utoipa::path(post, path = "/v1/chat/match", request_body = ChatRequest, security(("bearer" = [])), responses(
    (status = 200, body = ChatLine), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn say_match(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Body(request): Body<ChatRequest>,
) -> Result<Json<ChatLine>, Failure> {
    say(&shared, account, ChatTarget::Match, request).await
}

/// Says something to one player.
#[utoipa::path(post, path = "/v1/chat/direct/{account}", params(("account" = u64, Path)), request_body = ChatRequest,
    security(("bearer" = [])), responses(
    (status = 200, body = ChatLine), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn say_direct(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(other): Path<AccountId>,
    Body(request): Body<ChatRequest>,
) -> Result<Json<ChatLine>, Failure> {
    say(&shared, account, ChatTarget::Direct(other), request).await
}

/// The last lines of the room.
#[utoipa::path(get, path = "/v1/chat/room", security(("bearer" = [])), responses(
    (status = 200, body = ChatHistory), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn room_history(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<ChatHistory>, Failure> {
    history(&shared, account, ChatTarget::Room).await
}

/// The last lines of the match.
#[utoipa::path(get, path = "/v1/chat/match", security(("bearer" = [])), responses(
    (status = 200, body = ChatHistory), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn match_history(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
) -> Result<Json<ChatHistory>, Failure> {
    history(&shared, account, ChatTarget::Match).await
}

/// The last lines with one player.
#[utoipa::path(get, path = "/v1/chat/direct/{account}", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 200, body = ChatHistory), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn direct_history(
    State(shared): State<Arc<Shared>>,
    Player(account): Player,
    Path(other): Path<AccountId>,
) -> Result<Json<ChatHistory>, Failure> {
    history(&shared, account, ChatTarget::Direct(other)).await
}

async fn say(
    shared: &Shared,
    account: AccountId,
    target: ChatTarget,
    request: ChatRequest,
) -> Result<Json<ChatLine>, Failure> {
    let text = request.text;
    let length = text.chars().count();
    if !(1..=TEXT_MAX).contains(&length) || text.chars().any(char::is_control) {
        return Err(Failure::invalid(
            "a line has 1 to 500 characters and no control characters",
        ));
    }
    let said = shared
        .store
        .say(account, target, text, clock::now())
        .await?;
    for reader in said.readers {
        shared.tell(reader, &FromMaster::Chat(said.line.clone()));
    }
    Ok(Json(said.line))
}

async fn history(
    shared: &Shared,
    account: AccountId,
    target: ChatTarget,
) -> Result<Json<ChatHistory>, Failure> {
    let lines = shared.store.history(account, target).await?;
    Ok(Json(ChatHistory { lines }))
}

/// Characters of one line.
const TEXT_MAX: usize = 500;
/// Codes that are tried before it is given up; each is taken once in millions.
const CODES_TRIED: usize = 4;
