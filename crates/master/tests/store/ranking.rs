//! The ranking, page by page.

use muse_master::store::{RankingCursor, Store};

use crate::{at, finished, guests, leader, new_match, queued};

/// Nobody is left out or listed twice, also among those with as many points; places go on from page to page.
pub(crate) async fn the_ranking_is_paged_from_line_to_line(store: &dyn Store) {
    let accounts = guests::<250>(store).await;
    let epoch = leader(store, 1, 0).await;
    let [third, second, first] = [accounts[7], accounts[99], accounts[249]];
    let mut tickets = Vec::new();
    for account in [third, second, first] {
        tickets.push(queued(store, account).await);
    }
    let created = store.create_match(epoch, new_match(1, &tickets), at(2));
    assert!(created.await.expect("stored").gone.is_empty());
    let ending = finished(1, &[(third, 10), (second, 20), (first, 30)]);
    store.end_match(epoch, ending, at(3)).await.expect("stored");
    let (mut lines, mut after, mut pages) = (Vec::new(), None, Vec::new());
    loop {
        let page = store.ranking(after).await.expect("read");
        let Some(last) = page.last() else { break };
        after = Some(RankingCursor::from(last));
        pages.push(page.len());
        lines.extend(page);
    }
    assert_eq!(pages, [100, 100, 50]);
    let places: Vec<u64> = lines.iter().map(|line| line.place).collect();
    assert_eq!(places, (1..=250).collect::<Vec<u64>>());
    let mut rest: Vec<_> = accounts.to_vec();
    rest.retain(|account| ![third, second, first].contains(account));
    rest.sort_unstable();
    let expected: Vec<_> = [first, second, third].into_iter().chain(rest).collect();
    let listed: Vec<_> = lines.iter().map(|line| line.account).collect();
    assert_eq!(listed, expected);
}
