//! Retention: what is old enough goes, a bounded number of rows at a time, and nothing else does.

use muse_master::operators::{AuditLine, Sanction, Sentence};
use muse_master::secrets::SignInId;
use muse_master::store::{
    ChatTarget, Cutoffs, FriendStep, PRUNE_ROWS_MAX, Refreshed, Store, Successor,
};
use muse_master_client::{AccountId, MatchId};
use muse_wire::{Duration, Instant};

use super::tokens::named;
use super::{at, finished, leader, new_match, queued};

/// A guest who signed in then.
async fn guest(store: &dyn Store, device: u64, now: Instant) -> AccountId {
    let account = store.guest(format!("device {device}"), now).await;
    account.expect("made")
}

async fn sign_in(store: &dyn Store, account: AccountId, token: &str, now: Instant) {
    let expires = now + Duration::from_secs(100);
    let added = store.add_refresh(account, SignInId(1), token.to_owned(), expires, now);
    added.await.expect("added");
}

/// Plays a match of two to its end. It has the number of its first player.
async fn play(store: &dyn Store, players: [AccountId; 2], now: Instant) -> MatchId {
    let epoch = leader(store, 1, 0).await;
    let match_id = players[0].0;
    let tickets = [
        queued(store, players[0]).await,
        queued(store, players[1]).await,
    ];
    let new = new_match(match_id, &tickets);
    let created = store.create_match(epoch, new, now).await.expect("created");
    assert_eq!(created.gone, []);
    let ending = finished(match_id, &[(players[0], 2), (players[1], 1)]);
    store.end_match(epoch, ending, now).await.expect("ended");
    MatchId(match_id)
}

/// Deletes until nothing is left to delete, while others sign in between two batches. How many rows that were, and in how many batches.
async fn prune(store: &dyn Store, before: Instant, now: Instant) -> (u64, u64) {
    let before = Cutoffs {
        guests: Some(before),
        chat: Some(before),
        matches: Some(before),
        audit: Some(before),
    };
    let (mut rows, mut batches) = (0, 0);
    loop {
        let pruned = store.prune(before, now).await.expect("pruned");
        assert!(pruned.rows <= PRUNE_ROWS_MAX, "{pruned:?}");
        rows += pruned.rows;
        batches += 1;
        let between = guest(store, 10_000 + batches, now).await;
        queued(store, between).await;
        if !pruned.more {
            return (rows, batches);
        }
        assert!(batches < 1_000, "there is no end");
    }
}

pub(crate) async fn what_is_old_goes_in_batches_and_everything_else_stays(store: &dyn Store) {
    let (old, cutoff, now) = (at(1_000), at(500_000), at(600_000));
    // Asked for together, so that they share commits.
    let many = (0..1_300).map(|n| store.guest(format!("device {n}"), old));
    let mut guests = Vec::new();
    for made in many.collect::<Vec<_>>() {
        guests.push(made.await.expect("made"));
    }
    let [named_one, banned, used, chatty] = [0, 1, 2, 3].map(|n: usize| guests[n]);
    let keeps = store.set_password(named_one, named("ada", None), SignInId(1));
    keeps.await.expect("free");
    let sentence = Sentence {
        account: banned,
        sanction: Sanction::Ban,
        until: Some(now + Duration::from_secs(1)),
        reason: "for a test".to_owned(),
    };
    store
        .sanction("op".to_owned(), sentence, old)
        .await
        .expect("banned");
    for (account, token) in [(used, "a"), (chatty, "e")] {
        sign_in(store, account, token, old).await;
    }
    let fresh = Successor {
        salt: "salt".to_owned(),
        token: "b".to_owned(),
        expires: now + Duration::from_secs(100),
    };
    // Within a day it is not written again, after that it is.
    sign_in(store, used, "c", cutoff + Duration::from_secs(1)).await;
    sign_in(store, used, "d", now).await;
    let stays = store.rotate_refresh("d".to_owned(), fresh, now).await;
    assert!(
        matches!(stays, Ok(Refreshed::Exchanged { .. })),
        "{stays:?}"
    );
    for other in &guests[4..600] {
        store
            .befriend(chatty, *other, FriendStep::Block)
            .await
            .expect("blocked");
    }
    for (n, when) in [(0, 2_000), (1, 3_000), (2, 590_000)] {
        let say = store.say(chatty, ChatTarget::Direct(used), n.to_string(), at(when));
        say.await.expect("said");
        let line = AuditLine {
            at_ms: at(when).as_millis(),
            operator: "op".to_owned(),
            action: "announce".to_owned(),
            subject: String::new(),
            detail: n.to_string(),
        };
        store.audit(line).await.expect("written");
    }
    let old_match = play(store, [guests[4], named_one], old).await;
    let young_match = play(store, [guests[5], named_one], at(590_000)).await;

    let (rows, batches) = prune(store, cutoff, now).await;
    // Guests and a stamp for the one that is banned, blocked accounts, the token that nobody else deleted, lines (the youngest with its writer), entries, and a match
    // with its results. One result of the younger match goes with its guest, who has not signed in since.
    assert_eq!(rows, 1_297 + 1 + 596 + 1 + 3 + 3 + 3 + 1);
    assert!(batches >= rows / PRUNE_ROWS_MAX, "{batches}");
    for account in [named_one, banned, used] {
        store.account(account).await.expect("it stays");
    }
    for account in [chatty, guests[4], guests[1_299]] {
        store.account(account).await.expect_err("it is gone");
    }
    store.match_line(old_match).await.expect_err("it is gone");
    let young = store.match_line(young_match).await.expect("it stays");
    assert_eq!(young.players, [named_one]);
    let entries = store.audits().await.expect("read");
    assert_eq!(entries.len(), 1);
    assert_eq!(store.chat_lines(None).await.expect("read").len(), 0);
    // Points outlive the matches that gave them.
    assert_eq!(
        store.account(named_one).await.expect("known").view.points,
        2
    );
    // Nothing is left, and the banned one goes when the ban is over.
    assert_eq!(
        store
            .prune(Cutoffs::default(), now)
            .await
            .expect("pruned")
            .rows,
        0
    );
    let later = now + Duration::from_secs(1_000_000);
    let (rows, _) = prune(store, later - Duration::from_secs(1), later).await;
    store.account(banned).await.expect_err("it is gone");
    assert!(rows >= 2, "{rows}");
}
