//! Requests that come in crowds are batched: nobody may notice.

use muse_master::store::{Store, StoreError};
use muse_master::ticket::Play;
use muse_master_client::{AccountId, MatchId, Preferences};

use super::{at, guests, leader, new_match, queued};

/// Players of each of two crowds who do the same, one of them all at once and the other one after the other.
const PLAYERS: usize = 12;

/// The outcome of *play* as a player sees it: what it meant, and with whom they wait for what.
type Seen = Result<(Play, Vec<usize>, Preferences), StoreError>;

pub(crate) async fn a_crowd_that_plays_at_once_is_treated_as_one_by_one(store: &dyn Store) {
    let accounts = guests::<{ 2 * PLAYERS }>(store).await;
    let (at_once, one_by_one) = accounts.split_at(PLAYERS);
    for (crowd, codes) in [
        (at_once, ["AAAAAA", "BBBBBB"]),
        (one_by_one, ["CCCCCC", "DDDDDD"]),
    ] {
        // Some alone, a room of three and one of two, and one who is in a match.
        for (room, code) in [(&crowd[5..8], codes[0]), (&crowd[8..10], codes[1])] {
            let opened = store.open_room(room[0], code.to_owned(), at(1)).await;
            opened.expect("opened");
            for (&member, second) in room[1..].iter().zip(2..) {
                let joined = store.join_room(member, code.to_owned(), at(second)).await;
                joined.expect("joined");
            }
        }
    }
    let epoch = leader(store, 1, 0).await;
    let seated = [
        queued(store, at_once[10]).await,
        queued(store, one_by_one[10]).await,
    ];
    let created = store
        .create_match(epoch, new_match(1, &seated), at(5))
        .await;
    assert_eq!(created.expect("created").gone, []);
    assert_eq!(
        store.standing(at_once[10]).await.expect("read").match_id,
        Some(MatchId(1))
    );
    // And one who does not exist.
    let known = |crowd: &[AccountId]| {
        let mut crowd = crowd.to_vec();
        crowd[11] = AccountId(u64::MAX);
        crowd
    };
    let (at_once, one_by_one) = (known(at_once), known(one_by_one));

    let wishes = [
        Preferences::default(),
        Preferences::default().players(2),
        Preferences::default()
            .players(4)
            .choice("mode", "'\\\" \u{0}ü"),
    ];
    let mut meant = [0; 4];
    for seed in 0..40 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut below = |limit: u8| usize::from(rng.u8(0..limit));
        let presses: Vec<_> = (0..30)
            .map(|_| (below(PLAYERS as u8), &wishes[below(3)], below(4) == 0))
            .collect();
        let press = |crowd: &[AccountId],
                     &(player, wish, insists): &(usize, &Preferences, bool)| {
            store.play(crowd[player], wish.clone(), insists, at(10))
        };
        let together: Vec<_> = presses.iter().map(|one| press(&at_once, one)).collect();
        let mut answers = Vec::new();
        for answer in together {
            answers.push(answer.await);
        }
        for (answer, one) in answers.into_iter().zip(&presses) {
            let expected = press(&one_by_one, one).await;
            let see =
                |crowd: &[AccountId], played: Result<muse_master::store::Played, _>| -> Seen {
                    let played = played?;
                    let place = |account| crowd.iter().position(|one| *one == account);
                    let party = played.ticket.party.iter();
                    let party = party.map(|member| place(member.account).expect("of this crowd"));
                    Ok((played.play, party.collect(), played.ticket.preferences))
                };
            let seen = see(&at_once, answer);
            assert_eq!(seen, see(&one_by_one, expected), "{one:?} of seed {seed}");
            if let Ok((play, ..)) = seen {
                meant[play as usize] += 1;
            }
        }
        for (one, other) in at_once.iter().zip(&one_by_one) {
            let ticket = async |account: &AccountId| {
                let ticket = store.standing(*account).await.expect("read").ticket;
                ticket.map(|ticket| (ticket.party.len(), ticket.preferences, ticket.since))
            };
            assert_eq!(ticket(one).await, ticket(other).await, "of seed {seed}");
        }
    }
    assert!(meant.iter().all(|count| *count > 20), "{meant:?}");
}

/// Everybody is asked about at once, and one row is no use: that is the trouble of its player alone.
pub(crate) async fn a_broken_row_is_its_own_players_trouble(
    store: &dyn Store,
    change: &dyn Fn(&str),
) {
    let accounts = guests::<20>(store).await;
    let broken = queued(store, accounts[7]).await;
    change(&format!(
        "UPDATE tickets SET preferences = 'broken' WHERE ticket = {}",
        broken.id
    ));
    let play = |account: &AccountId| store.play(*account, Preferences::default(), false, at(2));
    let answers: Vec<_> = accounts.iter().map(play).collect();
    for (n, answer) in answers.into_iter().enumerate() {
        match (n, answer.await) {
            (7, answer) => assert!(
                matches!(answer, Err(StoreError::Unavailable(_))),
                "{answer:?}"
            ),
            (_, answer) => assert_eq!(answer.expect("played").play, Play::Enter, "{n}"),
        }
    }
    let asked: Vec<_> = accounts
        .iter()
        .map(|account| store.account(*account))
        .collect();
    for (account, answer) in accounts.iter().zip(asked) {
        assert_eq!(answer.await.expect("known").view.account, *account);
    }
}
