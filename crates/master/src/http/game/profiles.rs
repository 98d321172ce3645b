//! Profiles: what a game server asks about its players, and what it has the master keep of them.
//!
//! Progress that servers keep has a name of its own, which players can read and not write: what they unlock is the server's to say.

use std::sync::Arc;

use muse_master_client::AccountId;
use muse_master_client::messages::{PlayerProfile, ToServer};
use serde_json::Value;

use crate::http::accounts::{DOCUMENT_MAX, SERVER_PREFIX};
use crate::shared::Shared;
use crate::store::StoreError;

/// A player's name and progress. What cannot be had now is asked for again.
pub(super) async fn load(shared: &Arc<Shared>, account: AccountId, game: &str) -> ToServer {
    match find(shared, account, game).await {
        Ok(profile) => ToServer::Profile(profile),
        Err(error) => {
            tracing::warn!(%account, %error, "no profile for a game server");
            ToServer::KeepAlive
        }
    }
}

/// Keeps a player's progress, whatever was there before.
pub(super) async fn save(
    shared: &Arc<Shared>,
    account: AccountId,
    game: &str,
    number: u32,
    document: &Value,
) -> ToServer {
    let stored = ToServer::ProgressStored { account, number };
    let len = document.to_string().len();
    if len > DOCUMENT_MAX || !is_name(game) {
        tracing::warn!(%account, game, "progress that cannot be kept");
        return stored;
    }
    for _ in 0..TRIES_MAX {
        match write(shared, account, game, document).await {
            Ok(()) => return stored,
            // Somebody else wrote at the same time.
            Err(StoreError::Conflict(_)) => {}
            Err(error) => {
                tracing::warn!(%account, %error, "progress is not kept, it comes again");
                break;
            }
        }
    }
    ToServer::KeepAlive
}

async fn find(
    shared: &Arc<Shared>,
    account: AccountId,
    game: &str,
) -> Result<PlayerProfile, StoreError> {
    let known = shared.store.account(account).await?;
    let kept = shared.store.progress(account, kept_name(game)).await?;
    Ok(PlayerProfile {
        account,
        name: known.view.name,
        document: kept.document,
    })
}

async fn write(
    shared: &Arc<Shared>,
    account: AccountId,
    game: &str,
    document: &Value,
) -> Result<(), StoreError> {
    let name = kept_name(game);
    let before = shared.store.progress(account, name.clone()).await?;
    // It comes again until its answer has arrived.
    if before.document == *document {
        return Ok(());
    }
    let text = document.to_string();
    let saved = shared
        .store
        .save_progress(account, name, before.version, text);
    saved.await.map(drop)
}

fn kept_name(game: &str) -> String {
    format!("{SERVER_PREFIX}{game}")
}

fn is_name(game: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=24).contains(&game.len()) && game.bytes().all(letter)
}

/// Attempts against others who write.
const TRIES_MAX: u32 = 4;
