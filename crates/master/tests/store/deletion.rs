//! An account's data, exported and deleted with one call each.

use muse_master::operators::{Sanction, Sentence};
use muse_master::store::{ChatTarget, FriendStep, Store, StoreError};

use super::tokens::named;
use super::{SignInId, at, finished, guests, leader, new_match, queued};

/// One call exports everything that is kept about an account, another deletes it; `count` counts rows beside the store.
pub(crate) async fn an_account_is_exported_and_deleted(
    store: &dyn Store,
    count: &dyn Fn(&str) -> i64,
) {
    let [one, other] = guests(store).await;
    let text = str::to_owned;
    let named = store.set_password(one, named("ada", None), SignInId(1));
    named.await.expect("free");
    let refresh = store.add_refresh(one, SignInId(1), text("token"), at(99), at(1));
    refresh.await.expect("added");
    for (from, to) in [(one, other), (other, one)] {
        let asked = store.befriend(from, to, FriendStep::Ask).await;
        asked.expect("asked");
    }
    store
        .say(one, ChatTarget::Direct(other), text("secret"), at(1))
        .await
        .expect("said");
    store
        .save_progress(one, text("g"), 0, text("{}"))
        .await
        .expect("saved");
    let sentence = Sentence {
        account: one,
        sanction: Sanction::Mute,
        until: Some(at(9)),
        reason: text("rude"),
    };
    let muted = store.sanction(text("op"), sentence, at(2));
    muted.await.expect("muted");
    store.arrived(1, one).await.expect("arrived");
    store
        .open_room(one, text("ABCDEF"), at(2))
        .await
        .expect("opened");
    let epoch = leader(store, 1, 0).await;
    let tickets = [queued(store, one).await, queued(store, other).await];
    let created = store.create_match(epoch, new_match(1, &tickets), at(2));
    created.await.expect("created");
    let busy = store.delete(one).await;
    assert!(matches!(busy, Err(StoreError::Conflict(_))));
    let ending = finished(1, &[(one, 10), (other, 30)]);
    store.end_match(epoch, ending, at(9)).await.expect("ended");
    queued(store, one).await;
    let export = store.export(one).await.expect("exported");
    assert_eq!(export["account"]["name"], "ada");
    assert_eq!(export["chat"][0]["text"], "secret");
    assert_eq!(export["progress"][0]["game"], "g");
    assert_eq!(export["results"][0]["points"], 10);
    assert_eq!(export["friends"][0]["state"], "friend");
    assert_eq!(export["sanctions"][0]["reason"], "rude");
    let owned = [
        "accounts",
        "refresh_tokens",
        "ticket_members",
        "seats",
        "results",
    ];
    let owned = owned
        .into_iter()
        .chain(["room_members", "progress", "sanctions", "presence"]);
    let mut kept: Vec<String> = owned
        .map(|table| format!("{table} WHERE account = "))
        .collect();
    for more in [
        "friends WHERE account = ",
        "friends WHERE other = ",
        "chat WHERE sender = ",
    ] {
        kept.push(more.to_owned());
    }
    let rows = |part: &String| count(&format!("SELECT count(*) FROM {part}{one}"));
    let before = kept.iter().filter(|part| rows(part) > 0).count();
    assert_eq!(
        before,
        kept.len() - 1,
        "all but the seat, which ended with the match"
    );
    store.delete(one).await.expect("deleted");
    for part in &kept {
        assert_eq!(rows(part), 0, "{part}");
    }
    assert_eq!(
        store.export(one).await,
        Err(StoreError::NotFound("account"))
    );
    assert_eq!(
        store.history(other, ChatTarget::Direct(one)).await,
        Ok(Vec::new())
    );
    let fresh = store.guest(text("device 0"), at(2)).await.expect("made");
    assert_ne!(fresh, one);
}
