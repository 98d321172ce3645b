//! Friends, rooms and chat.

use std::sync::Arc;

use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use muse_master_client::AccountId;
use muse_master_client::api::{ChatHistory, ChatRequest, ErrorBody, FriendView, RoomView};
use muse_master_client::messages::{ChatLine, FromMaster};

use super::Player;
use super::failure::{Body, Failure, Path};
use crate::clock;
use crate::secrets::room_code;
use crate::shared::Shared;
use crate::store::{ChatTarget, FriendStep, StoreError};

/// A signed-in player, and the master that they ask.
pub(crate) struct Asks {
    shared: Arc<Shared>,
    account: AccountId,
}

impl FromRequestParts<Arc<Shared>> for Asks {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Failure> {
        let Player(account) = Player::from_request_parts(parts, shared).await?;
        let shared = Arc::clone(shared);
        Ok(Self { shared, account })
    }
}

impl Asks {
    /// Takes a step between this player and another one. True if they are friends now.
    async fn steps(&self, other: AccountId, step: FriendStep) -> Result<bool, Failure> {
        Ok(self
            .shared
            .store
            .befriend(self.account, other, step)
            .await?)
    }

    async fn says(self, target: ChatTarget, request: ChatRequest) -> Answer<ChatLine> {
        // Counted whether it is stored or not.
        self.shared.limits.check_line(self.account)?;
        let text = request.text;
        let length = text.chars().count();
        if !(1..=TEXT_MAX).contains(&length) || text.chars().any(char::is_control) {
            return Err(Failure::invalid(
                "a line has 1 to 500 characters and no control characters",
            ));
        }
        let store = &self.shared.store;
        let said = store.say(self.account, target, text, clock::now()).await?;
        for reader in said.readers {
            let line = FromMaster::Chat(said.line.clone());
            self.shared.tell(reader, &line);
        }
        Ok(Json(said.line))
    }

    async fn reads(self, target: ChatTarget) -> Answer<ChatHistory> {
        let lines = self.shared.store.history(self.account, target).await?;
        Ok(Json(ChatHistory { lines }))
    }
}

/// Friends, requests both ways and blocked accounts.
#[utoipa::path(get, path = "/v1/friends", security(("bearer" = [])), responses(
    (status = 200, body = Vec<FriendView>), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn friends(asks: Asks) -> Answer<Vec<FriendView>> {
    let Asks { shared, account } = asks;
    let mut friends = shared.store.friends(account, clock::now()).await?;
    for friend in &mut friends {
        friend.online |= friend.state == "friend" && shared.hub.is_online(friend.account);
    }
    Ok(Json(friends))
}

/// Asks to be friends, or accepts.
#[utoipa::path(put, path = "/v1/friends/{account}", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn befriend(asks: Asks, Path(other): Path<AccountId>) -> Done {
    let accepted = asks.steps(other, FriendStep::Ask).await?;
    let Asks { shared, account } = asks;
    let friends = shared.store.friends(other, clock::now()).await?;
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
pub(crate) async fn unfriend(asks: Asks, Path(other): Path<AccountId>) -> Done {
    asks.steps(other, FriendStep::Remove).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Wants nothing to do with an account.
#[utoipa::path(post, path = "/v1/friends/{account}/block", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn block(asks: Asks, Path(other): Path<AccountId>) -> Done {
    asks.steps(other, FriendStep::Block).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Invites a friend to the room.
#[utoipa::path(post, path = "/v1/friends/{account}/invite", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn invite(asks: Asks, Path(other): Path<AccountId>) -> Done {
    let Asks {
        shared,
        account: from,
    } = asks;
    let friends = shared.store.friends(from, clock::now()).await?;
    if !friends
        .iter()
        .any(|friend| friend.account == other && friend.state == "friend")
    {
        return Err(StoreError::NotFound("friend").into());
    }
    let room = room_of(&shared, from).await?.code;
    shared.tell(other, &FromMaster::Invitation { from, room });
    Ok(StatusCode::NO_CONTENT)
}

/// Opens a room.
#[utoipa::path(post, path = "/v1/room", security(("bearer" = [])), responses(
    (status = 200, body = RoomView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn open_room(asks: Asks) -> Answer<RoomView> {
    let mut last = None;
    for _ in 0..CODES_TRIED {
        let store = &asks.shared.store;
        let opened = store.open_room(asks.account, room_code(), clock::now());
        match opened.await {
            Ok(room) => return Ok(Json(room)),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or(StoreError::NotFound("code")).into())
}

/// Enters the room of this code.
#[utoipa::path(post, path = "/v1/room/{code}", params(("code" = String, Path)), security(("bearer" = [])), responses(
    (status = 200, body = RoomView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn join_room(asks: Asks, Path(code): Path<String>) -> Answer<RoomView> {
    let code = code.to_ascii_uppercase();
    if code.len() != 6 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(StoreError::NotFound("room").into());
    }
    let store = &asks.shared.store;
    let joined = store.join_room(asks.account, code, clock::now());
    Ok(Json(joined.await?))
}

/// The room.
#[utoipa::path(get, path = "/v1/room", security(("bearer" = [])), responses(
    (status = 200, body = RoomView), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn room(asks: Asks) -> Answer<RoomView> {
    room_of(&asks.shared, asks.account).await.map(Json)
}

/// Leaves the room.
#[utoipa::path(delete, path = "/v1/room", security(("bearer" = [])), responses(
    (status = 204), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn leave_room(asks: Asks) -> Done {
    asks.shared.store.leave_room(asks.account).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Says something in the room.
#[utoipa::path(post, path = "/v1/chat/room", request_body = ChatRequest, security(("bearer" = [])), responses(
    (status = 200, body = ChatLine), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn say_room(asks: Asks, Body(request): Body<ChatRequest>) -> Answer<ChatLine> {
    asks.says(ChatTarget::Room, request).await
}

/// Says something in the match.
#[utoipa::path(post, path = "/v1/chat/match", request_body = ChatRequest, security(("bearer" = [])), responses(
    (status = 200, body = ChatLine), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn say_match(asks: Asks, Body(request): Body<ChatRequest>) -> Answer<ChatLine> {
    asks.says(ChatTarget::Match, request).await
}

/// Says something to one player.
#[utoipa::path(post, path = "/v1/chat/direct/{account}", params(("account" = u64, Path)), request_body = ChatRequest,
    security(("bearer" = [])), responses(
    (status = 200, body = ChatLine), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn say_direct(
    asks: Asks,
    Path(other): Path<AccountId>,
    Body(request): Body<ChatRequest>,
) -> Answer<ChatLine> {
    asks.says(ChatTarget::Direct(other), request).await
}

/// The last lines of the room.
#[utoipa::path(get, path = "/v1/chat/room", security(("bearer" = [])), responses(
    (status = 200, body = ChatHistory), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn room_history(asks: Asks) -> Answer<ChatHistory> {
    asks.reads(ChatTarget::Room).await
}

/// The last lines of the match.
#[utoipa::path(get, path = "/v1/chat/match", security(("bearer" = [])), responses(
    (status = 200, body = ChatHistory), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn match_history(asks: Asks) -> Answer<ChatHistory> {
    asks.reads(ChatTarget::Match).await
}

/// The last lines with one player.
#[utoipa::path(get, path = "/v1/chat/direct/{account}", params(("account" = u64, Path)), security(("bearer" = [])), responses(
    (status = 200, body = ChatHistory), (status = "4XX", body = ErrorBody), (status = 503, body = ErrorBody)))]
pub(crate) async fn direct_history(
    asks: Asks,
    Path(other): Path<AccountId>,
) -> Answer<ChatHistory> {
    asks.reads(ChatTarget::Direct(other)).await
}

async fn room_of(shared: &Shared, account: AccountId) -> Result<RoomView, Failure> {
    let room = shared.store.room(account).await?;
    Ok(room.ok_or(StoreError::NotFound("room"))?)
}

type Done = Result<StatusCode, Failure>;
type Answer<T> = Result<Json<T>, Failure>;

/// Characters of one line.
const TEXT_MAX: usize = 500;
/// Codes that are tried before it is given up; each is taken once in millions.
const CODES_TRIED: usize = 4;
