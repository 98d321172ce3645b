//! Tokens and passwords: exchanged, repeated, stolen, revoked; and writers whom a reader has blocked.

use muse_master::secrets::{Access, SignInId};
use muse_master::store::{
    ChatTarget, FriendStep, NewPassword, Refreshed, Store, StoreError, Successor,
};
use muse_master_client::AccountId;
use muse_wire::Instant;

use super::{at, guests};

/// A name with a password whose hash is `hash`.
pub(crate) fn named(name: &str, replaces: Option<&str>) -> NewPassword {
    NewPassword {
        name: name.to_owned(),
        hash: "hash".to_owned(),
        replaces: replaces.map(str::to_owned),
    }
}

/// Exchanges a token for another one, with a salt of the same name.
async fn rotate(
    store: &dyn Store,
    old: &str,
    fresh: &str,
    now: Instant,
) -> Result<Refreshed, StoreError> {
    let fresh = Successor {
        salt: format!("salt of {fresh}"),
        token: fresh.to_owned(),
        expires: at(1_000),
    };
    store.rotate_refresh(old.to_owned(), fresh, now).await
}

async fn signed_in(store: &dyn Store, account: AccountId, sign_in: u64, token: &str) {
    let token = token.to_owned();
    let added = store.add_refresh(account, SignInId(sign_in), token, at(1_000), at(0));
    added.await.expect("added");
}

fn exchanged(account: AccountId, sign_in: u64, fresh: &str) -> Result<Refreshed, StoreError> {
    Ok(Refreshed::Exchanged {
        account,
        sign_in: SignInId(sign_in),
        salt: format!("salt of {fresh}"),
    })
}

pub(crate) async fn refresh_tokens_are_used_once_and_repeated_at_once_only(store: &dyn Store) {
    let [account] = guests(store).await;
    let gone = Err(StoreError::NotFound("token"));
    signed_in(store, account, 7, "a").await;
    assert_eq!(
        rotate(store, "a", "b", at(1)).await,
        exchanged(account, 7, "b")
    );
    // The answer was lost: the same token again, once.
    assert_eq!(
        rotate(store, "a", "x", at(20)).await,
        exchanged(account, 7, "b")
    );
    assert_eq!(rotate(store, "x", "y", at(21)).await, gone);
    assert_eq!(
        rotate(store, "b", "c", at(900)).await,
        exchanged(account, 7, "c")
    );
    assert_eq!(rotate(store, "c", "d", at(2_000)).await, gone);
    // Too late for a repeat, although what it was exchanged for was never used.
    assert_eq!(
        rotate(store, "b", "e", at(961)).await,
        Ok(Refreshed::Stolen(account))
    );
    assert_eq!(rotate(store, "c", "f", at(962)).await, gone);
    assert_eq!(store.account(account).await.expect("known").generation, 1);
    // Nor a second time, nor when the answer was received and used.
    for (first, stolen) in [("g", ["h", "h"]), ("k", ["l", "m"])] {
        signed_in(store, account, 8, first).await;
        assert_eq!(
            rotate(store, first, stolen[0], at(1)).await,
            exchanged(account, 8, stolen[0])
        );
        let second = match stolen[0] == stolen[1] {
            true => rotate(store, first, "i", at(2)).await,
            false => rotate(store, stolen[0], stolen[1], at(2)).await,
        };
        assert_eq!(second, exchanged(account, 8, stolen[1]));
        let third = rotate(store, first, "j", at(3)).await;
        assert_eq!(third, Ok(Refreshed::Stolen(account)));
    }
}

pub(crate) async fn a_thief_who_follows_the_owner_at_once_is_found_at_the_next_token(
    store: &dyn Store,
) {
    let [account] = guests(store).await;
    signed_in(store, account, 7, "a").await;
    // Owner and thief have the same token now.
    assert_eq!(
        rotate(store, "a", "b", at(1)).await,
        exchanged(account, 7, "b")
    );
    assert_eq!(
        rotate(store, "a", "x", at(2)).await,
        exchanged(account, 7, "b")
    );
    assert_eq!(
        rotate(store, "b", "c", at(100)).await,
        exchanged(account, 7, "c")
    );
    assert_eq!(
        rotate(store, "b", "y", at(101)).await,
        Ok(Refreshed::Stolen(account))
    );
    assert_eq!(
        rotate(store, "c", "z", at(102)).await,
        Err(StoreError::NotFound("token"))
    );
}

pub(crate) async fn a_new_password_ends_all_sign_ins_but_one(store: &dyn Store) {
    let [account] = guests(store).await;
    let access = |generation, sign_in| Access {
        account,
        generation,
        sign_in: SignInId(sign_in),
    };
    for (sign_in, token) in [(7, "kept"), (8, "other")] {
        signed_in(store, account, sign_in, token).await;
    }
    let set =
        |replaces, keeps| store.set_password(account, named("ada", replaces), SignInId(keeps));
    set(None, 7).await.expect("it had none");
    let known = store.account(account).await.expect("known");
    assert_eq!(known.generation, 1);
    assert!(known.honours(&access(0, 7)) && known.honours(&access(1, 9)));
    assert!(!known.honours(&access(0, 8)) && !known.honours(&access(0, 0)));
    assert_eq!(
        rotate(store, "other", "x", at(1)).await,
        Err(StoreError::NotFound("token"))
    );
    assert_eq!(
        rotate(store, "kept", "next", at(1)).await,
        exchanged(account, 7, "next")
    );
    // Only who knows the password that it has now may set another.
    for wrong in [None, Some("another hash")] {
        assert!(matches!(set(wrong, 8).await, Err(StoreError::Conflict(_))));
    }
    let of = store.password_of(account).await;
    assert_eq!(of, Ok(Some(("ada".to_owned(), "hash".to_owned()))));
    set(Some("hash"), 8).await.expect("it is known");
    let known = store.account(account).await.expect("known");
    assert!(known.honours(&access(1, 8)) && !known.honours(&access(1, 7)));
    store
        .sign_out_everywhere(account)
        .await
        .expect("signed out");
    let known = store.account(account).await.expect("known");
    assert!(!known.honours(&access(2, 8)) && known.honours(&access(3, 8)));
}

pub(crate) async fn blocked_writers_are_not_in_the_history(store: &dyn Store) {
    let [reader, blocked, other] = guests(store).await;
    let code = "ABCDEF".to_owned();
    store
        .open_room(reader, code.clone(), at(1))
        .await
        .expect("opened");
    for guest in [blocked, other] {
        store
            .join_room(guest, code.clone(), at(1))
            .await
            .expect("joined");
    }
    let say = |from, target, text: &str| store.say(from, target, text.to_owned(), at(2));
    for from in [blocked, other, reader] {
        say(from, ChatTarget::Room, "hello").await.expect("said");
    }
    say(blocked, ChatTarget::Direct(reader), "you")
        .await
        .expect("said");
    store
        .befriend(reader, blocked, FriendStep::Block)
        .await
        .expect("blocked");
    let writers = |account, target| async move {
        let lines = store.history(account, target).await.expect("read");
        lines.iter().map(|line| line.from).collect::<Vec<_>>()
    };
    assert_eq!(writers(reader, ChatTarget::Room).await, [other, reader]);
    assert_eq!(writers(reader, ChatTarget::Direct(blocked)).await, []);
    // Everybody else reads it all.
    assert_eq!(
        writers(other, ChatTarget::Room).await,
        [blocked, other, reader]
    );
    assert_eq!(
        writers(blocked, ChatTarget::Direct(reader)).await,
        [blocked]
    );
}
