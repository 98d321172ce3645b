//! Tests of who plays with whom.

use super::*;
use crate::ticket::Member;

fn at(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

fn ticket(id: u64, since_s: u64, preferences: Preferences) -> Ticket {
    rated(id, since_s, preferences, 1_500.0)
}

fn rated(id: u64, since_s: u64, preferences: Preferences, rating: f64) -> Ticket {
    Ticket {
        id: TicketId(id),
        party: vec![Member {
            account: AccountId(id),
            rating,
        }],
        preferences,
        since: at(since_s),
        attempts: 0,
    }
}

fn party(id: u64, since_s: u64, accounts: &[u64]) -> Ticket {
    let members = accounts.iter().map(|&account| Member {
        account: AccountId(account),
        rating: 1_500.0,
    });
    Ticket {
        party: members.collect(),
        ..ticket(id, since_s, Preferences::default())
    }
}

fn queue(tickets: impl IntoIterator<Item = Ticket>) -> Queue {
    queue_with(MatchingConfig::default(), tickets)
}

fn queue_with(config: MatchingConfig, tickets: impl IntoIterator<Item = Ticket>) -> Queue {
    let mut queue = Queue::new(config);
    for ticket in tickets {
        queue.insert(ticket);
    }
    queue
}

/// The tickets of each match of a pass.
fn matched(queue: &mut Queue, now: Instant) -> Vec<Vec<u64>> {
    let ids = |group: Group| group.tickets.iter().map(|ticket| ticket.id.0).collect();
    queue
        .pass(now, usize::MAX)
        .groups
        .into_iter()
        .map(ids)
        .collect()
}

fn any() -> Preferences {
    Preferences::default()
}

#[test]
fn the_longest_waiting_compatible_player_is_taken() {
    let mode = |name| any().choice("mode", name);
    let mut queue = queue([
        ticket(1, 0, mode("race")),
        ticket(2, 1, mode("war")),
        ticket(3, 2, any()),
        ticket(4, 3, mode("race")),
    ]);
    let passed = queue.pass(at(4), usize::MAX);
    assert_eq!(passed.groups.len(), 1);
    let group = &passed.groups[0];
    let ids: Vec<u64> = group.tickets.iter().map(|ticket| ticket.id.0).collect();
    assert_eq!(ids, [1, 3]);
    assert_eq!(group.preferences, mode("race"));
    assert_eq!(queue.len(), 2);
}

#[test]
fn a_number_of_players_that_anyone_asks_for_holds_for_all() {
    let mut waiting = queue([
        ticket(1, 0, any()),
        ticket(2, 1, any().players(3)),
        ticket(3, 2, any()),
    ]);
    assert_eq!(matched(&mut waiting, at(3)), [[1, 2, 3]]);
    let mut contrary = queue([
        ticket(1, 0, any().players(2)),
        ticket(2, 1, any().players(3)),
    ]);
    assert_eq!(matched(&mut contrary, at(3)), Vec::<Vec<u64>>::new());
}

#[test]
fn a_later_request_shuts_out_what_contradicts_it() {
    let mut queue = queue([
        ticket(1, 0, any().players(3)),
        ticket(2, 1, any().choice("mode", "race")),
        ticket(3, 2, any().choice("mode", "war")),
        ticket(4, 3, any().choice("mode", "race")),
    ]);
    assert_eq!(matched(&mut queue, at(4)), [[1, 2, 4]]);
}

#[test]
fn ratings_widen_with_waiting_time_until_anything_goes() {
    let pair = || queue([rated(1, 0, any(), 1_500.0), rated(2, 0, any(), 2_500.0)]);
    assert_eq!(matched(&mut pair(), at(1)), Vec::<Vec<u64>>::new());
    assert_eq!(matched(&mut pair(), at(44)), Vec::<Vec<u64>>::new());
    assert_eq!(matched(&mut pair(), at(45)), [[1, 2]]);
    let mut far = queue([rated(1, 0, any(), 0.0), rated(2, 59, any(), 9_000.0)]);
    assert_eq!(matched(&mut far, at(59)), Vec::<Vec<u64>>::new());
    assert_eq!(matched(&mut far, at(60)), [[1, 2]]);
}

#[test]
fn players_meet_in_a_region_that_is_near_to_all() {
    let config = || MatchingConfig::default().regions(&["eu", "us"]);
    let european = ticket(1, 0, any().latency("eu", 20).latency("us", 130));
    let american = ticket(2, 0, any().latency("eu", 120).latency("us", 30));
    let mut queue = queue_with(config(), [european, american]);
    assert_eq!(matched(&mut queue, at(1)), Vec::<Vec<u64>>::new());
    // 80 ms and 5 more a second: both reach the other side after 8 and 10 seconds.
    let passed = queue.pass(at(9), usize::MAX);
    assert_eq!(passed.groups.len(), 1);
    let best = regions_by_latency(&passed.groups[0].preferences, None);
    assert_eq!(best, ["eu", "us"]);
}

#[test]
fn parties_stay_together_and_fill_a_match() {
    let mut alone = queue([party(1, 0, &[10, 11])]);
    assert_eq!(matched(&mut alone, at(0)), [[1]]);
    let mut queue = queue([
        party(1, 0, &[10, 11]),
        party(2, 1, &[20, 21, 22]),
        party(3, 2, &[30, 31]),
    ]);
    let four = |id: u64| Ticket {
        preferences: any().players(4),
        ..queue.entries[&TicketId(id)].ticket.clone()
    };
    let changed: Vec<Ticket> = [1, 2, 3].map(four).into();
    for ticket in changed {
        queue.insert(ticket);
    }
    assert_eq!(matched(&mut queue, at(3)), [[1, 3]]);
}

#[test]
fn a_player_is_in_one_ticket_at_most() {
    let mut queue = queue([party(1, 0, &[10, 11])]);
    queue.insert(party(2, 1, &[11]));
    assert_eq!(queue.len(), 1);
    assert_eq!(queue.ticket_of(AccountId(10)), None);
    assert_eq!(
        queue.ticket_of(AccountId(11)).map(|ticket| ticket.id),
        Some(TicketId(2))
    );
}

#[test]
fn a_disconnected_player_keeps_his_place_for_a_grace_period_and_is_not_matched() {
    let mut queue = queue([
        ticket(1, 0, any()),
        ticket(2, 5, any()),
        ticket(3, 6, any()),
    ]);
    queue.handle_away(at(7), AccountId(1));
    assert_eq!(matched(&mut queue, at(8)), [[2, 3]]);
    assert_eq!(
        queue.handle_back(AccountId(1)).map(|ticket| ticket.since),
        Some(at(0))
    );
    queue.handle_away(at(20), AccountId(1));
    assert!(queue.pass(at(49), usize::MAX).ended.is_empty());
    assert_eq!(queue.pass(at(50), usize::MAX).ended.len(), 1);
    assert!(queue.is_empty());
}

#[test]
fn seats_of_running_matches_are_filled_first() {
    let mut queue = queue([
        ticket(1, 0, any().choice("mode", "war")),
        ticket(2, 1, any()),
        ticket(3, 2, any().choice("mode", "race")),
    ]);
    queue.set_backfill(Backfill {
        match_id: MatchId(9),
        seats: 2,
        preferences: any().choice("mode", "race").players(4),
        region: None,
        rating: 1_500.0,
        since: at(3),
        without: Vec::new(),
    });
    let passed = queue.pass(at(4), usize::MAX);
    let filled: Vec<u64> = passed
        .filled
        .iter()
        .map(|filled| filled.ticket.id.0)
        .collect();
    assert_eq!(filled, [2, 3]);
    assert!(queue.backfills.is_empty());
    assert_eq!(queue.len(), 1);
}

#[test]
fn nobody_gets_a_seat_of_a_match_that_they_left() {
    let mut queue = queue([ticket(1, 0, any()), ticket(2, 1, any())]);
    queue.set_backfill(Backfill {
        match_id: MatchId(9),
        seats: 2,
        preferences: any(),
        region: None,
        rating: 1_500.0,
        since: at(2),
        without: vec![AccountId(1)],
    });
    let filled = queue.pass(at(2), usize::MAX).filled;
    let filled: Vec<u64> = filled.iter().map(|filled| filled.ticket.id.0).collect();
    assert_eq!(filled, [2]);
}

#[test]
fn nobody_is_put_into_a_running_match_of_another_kind() {
    let mut queue = queue([ticket(1, 0, any().choice("mode", "war"))]);
    queue.set_backfill(Backfill {
        match_id: MatchId(9),
        seats: 1,
        preferences: any(),
        region: None,
        rating: 1_500.0,
        since: at(0),
        without: Vec::new(),
    });
    assert!(queue.pass(at(100), usize::MAX).filled.is_empty());
    queue.remove_backfill(MatchId(9));
    assert!(queue.backfills.is_empty());
}

#[test]
fn bots_are_offered_once_and_fill_only_for_who_accepts() {
    let config = MatchingConfig::default().bots_after(Some(Duration::from_secs(20)));
    let mut queue = queue_with(config, [ticket(1, 0, any())]);
    assert!(queue.pass(at(19), usize::MAX).bots_offered.is_empty());
    assert_eq!(queue.pass(at(20), usize::MAX).bots_offered, [AccountId(1)]);
    assert!(queue.pass(at(21), usize::MAX).bots_offered.is_empty());
    queue.insert(ticket(1, 0, any().accept_bots()));
    let passed = queue.pass(at(22), usize::MAX);
    assert_eq!(passed.groups.len(), 1);
    assert_eq!(passed.groups[0].bots, 1);
}

#[test]
fn words_of_players_who_are_gone_are_forgotten() {
    let mut queue = queue([ticket(1, 0, any().choice("mode", "race"))]);
    for n in 0..200_000_u64 {
        queue.insert(ticket(2, 1, any().choice("mode", &format!("nonsense {n}"))));
    }
    assert!(queue.interner.len() <= WORDS_MAX);
    queue.insert(ticket(2, 1, any().choice("mode", "race")));
    assert_eq!(matched(&mut queue, at(2)), [[1, 2]]);
}

#[test]
fn who_asks_for_more_players_than_there_are_holds_up_nobody() {
    let mut queue = queue([
        ticket(1, 0, any().players(4)),
        ticket(2, 1, any().choice("mode", "war")),
        ticket(3, 2, any()),
    ]);
    assert_eq!(matched(&mut queue, at(3)), [[2, 3]]);
}

#[test]
fn a_party_that_leaves_an_odd_seat_holds_up_nobody() {
    let four = |id, since_s, accounts: &[u64]| Ticket {
        preferences: any().players(4),
        ..party(id, since_s, accounts)
    };
    let mut queue = queue([
        four(1, 0, &[10]),
        four(2, 1, &[20, 21]),
        four(3, 2, &[30, 31]),
    ]);
    assert_eq!(matched(&mut queue, at(3)), [[2, 3]]);
}

/// Whatever is asked for, a pass leaves nobody behind who could make up a full match: every selection of those who are left is tried.
#[test]
fn random_queues_of_parties_leave_no_full_match_behind() {
    // The last one once left four behind: whomever one of them took first, two who contradict each other were all that fitted.
    for seed in (0..4_000).chain([125_940]) {
        let mut rng = fastrand::Rng::with_seed(seed);
        // Every other queue is of single players who ask for much.
        let choosy = seed % 2 == 0;
        let (names, players, tickets, one_of) = match choosy {
            true => (
                &["mode", "map", "speed", "side", "size"][..],
                4..6,
                11..14,
                2,
            ),
            false => (&["mode"][..], 1..5, 2..14, 3),
        };
        let mut queue = Queue::new(MatchingConfig::default().players(rng.u8(players)));
        for id in 1..=rng.u64(tickets) {
            let size = match choosy {
                true => 1,
                false => [1, 1, 1, 2, 2, 3][rng.u8(0..6) as usize],
            };
            let accounts: Vec<u64> = (0..size).map(|n| 10 * id + n).collect();
            let mut preferences = any();
            if !choosy && rng.bool() {
                preferences = preferences.players(rng.u8(size as u8..7));
            }
            for name in names {
                if rng.u8(0..one_of) == 0 {
                    preferences = preferences.choice(name, ["a", "b"][rng.u8(0..2) as usize]);
                }
            }
            queue.insert(Ticket {
                preferences,
                ..party(id, rng.u64(0..30), &accounts)
            });
        }
        for id in matched(&mut queue, at(30)).into_iter().flatten() {
            assert!(!queue.entries.contains_key(&TicketId(id)), "seed {seed}");
        }
        let left: Vec<&Ticket> = queue.tickets().collect();
        for chosen in 1..1_u32 << left.len() {
            let chosen = (0..left.len()).filter(|n| chosen & (1 << n) != 0);
            let chosen: Vec<&Ticket> = chosen.map(|n| left[n]).collect();
            let players: usize = chosen.iter().map(|ticket| ticket.party.len()).sum();
            let largest = chosen.iter().map(|ticket| ticket.party.len()).max();
            let together = chosen
                .iter()
                .try_fold(any(), |all, ticket| all.merged(&ticket.preferences));
            let full = together.is_some_and(|together| {
                let default = usize::from(queue.config.players).max(largest.unwrap_or(0));
                players == together.players.map_or(default, usize::from)
            });
            assert!(!full, "seed {seed}: {chosen:?} of {left:?}");
        }
    }
}

/// Whatever is asked for, a pass leaves no two tickets that could play together, and takes nobody twice.
#[test]
fn random_queues_leave_no_compatible_pair_behind() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut queue = Queue::new(MatchingConfig::default());
        for id in 1..=rng.u64(2..80) {
            let mut preferences = any();
            if rng.bool() {
                preferences = preferences.choice("mode", ["a", "b", "c"][rng.u8(0..3) as usize]);
            }
            if rng.bool() {
                preferences = preferences.choice("map", ["x", "y"][rng.u8(0..2) as usize]);
            }
            queue.insert(rated(id, rng.u64(0..30), preferences, rng.f64() * 3_000.0));
        }
        let before = queue.len();
        let groups = matched(&mut queue, at(30));
        let mut taken: Vec<u64> = groups.into_iter().flatten().collect();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len() + queue.len(), before, "seed {seed}");
        let left: Vec<&Entry> = queue.entries.values().collect();
        for one in &left {
            for other in left.iter().filter(|other| other.ticket.id != one.ticket.id) {
                let width =
                    |entry: &Entry| 100.0 + 20.0 * (30.0 - entry.ticket.since.as_secs_f64());
                let near = (one.rating - other.rating).abs() <= (width(one) + width(other)) / 2.0;
                let merges = one
                    .ticket
                    .preferences
                    .merged(&other.ticket.preferences)
                    .is_some();
                assert!(!(near && merges), "seed {seed}: {one:?} {other:?}");
            }
        }
    }
}

#[test]
fn no_more_matches_are_made_than_there_is_room_for() {
    let mut queue = Queue::new(MatchingConfig::default());
    for n in 1..=6 {
        queue.insert(ticket(n, 0, Preferences::default()));
    }
    assert!(queue.pass(at(1), 0).groups.is_empty());
    let first = queue.pass(at(2), 1).groups;
    let ids: Vec<u64> = first[0].tickets.iter().map(|ticket| ticket.id.0).collect();
    assert_eq!((first.len(), ids), (1, vec![1, 2]));
    assert_eq!(queue.pass(at(3), 5).groups.len(), 2);
}

fn named(id: u64, since_s: u64, name: &str) -> Ticket {
    ticket(id, since_s, Preferences::queue(name))
}

fn rules(text: &str) -> QueueRules {
    QueueRules::parse(text).expect("rules")
}

fn groups(queues: &mut Queues, now: Instant) -> Vec<Vec<u64>> {
    let groups = queues.pass(now, usize::MAX).groups;
    let ids = |group: &Group| group.tickets.iter().map(|ticket| ticket.id.0).collect();
    groups.iter().map(ids).collect()
}

#[test]
fn queues_with_rules_are_apart_and_decide_how_many_play() {
    let rules = rules("[ranked]\nplayers = 2\n[war]\nplayers = 3");
    let mut queues = Queues::new(MatchingConfig::default(), rules);
    queues.insert(named(1, 0, "ranked"));
    queues.insert(ticket(2, 0, any()));
    assert!(groups(&mut queues, at(100)).is_empty(), "nobody alike");
    // They ask for other numbers, which this queue does not hear.
    let two = Preferences::queue("war").players(2);
    queues.insert(ticket(3, 0, two));
    queues.insert(ticket(4, 0, Preferences::queue("war").players(8)));
    assert!(groups(&mut queues, at(100)).is_empty(), "one is missing");
    queues.insert(named(5, 0, "war"));
    let passed = queues.pass(at(100), usize::MAX);
    assert_eq!(passed.groups.len(), 1);
    assert_eq!(passed.groups[0].tickets.len(), 3);
    assert_eq!(passed.groups[0].preferences.players, Some(3));
    assert_eq!(queues.len(), 2);
    // A name without rules is a choice like any other.
    queues.insert(named(6, 0, "race"));
    assert_eq!(groups(&mut queues, at(100)), [[2, 6]]);
}

#[test]
fn who_asks_for_another_queue_leaves_the_first() {
    let rules = rules("[ranked]\n[casual]");
    let mut queues = Queues::new(MatchingConfig::default(), rules);
    queues.insert(named(1, 0, "ranked"));
    queues.insert(named(1, 0, "casual"));
    assert_eq!(queues.len(), 1);
    let ticket = queues.ticket_of(AccountId(1)).expect("it waits");
    assert_eq!(ticket.preferences.queue_name(), Some("casual"));
    assert!(queues.remove(TicketId(1)).is_some() && queues.is_empty());
}

#[test]
fn changed_rules_hold_for_those_who_wait_already() {
    let mut queues = Queues::new(MatchingConfig::default(), rules("[ranked]\nplayers = 3"));
    for id in 1..=2 {
        queues.insert(named(id, id, "ranked"));
    }
    queues.insert(named(3, 3, "ranked"));
    queues.handle_away(at(3), AccountId(3));
    assert!(groups(&mut queues, at(4)).is_empty());
    queues.set_rules(rules("[ranked]\nplayers = 2"));
    assert_eq!(groups(&mut queues, at(5)), [[1, 2]]);
    // Who is away is still away, and their ticket ends when it would have.
    queues.insert(named(4, 4, "ranked"));
    assert!(groups(&mut queues, at(6)).is_empty());
    let ended = queues.pass(at(33), 0).ended;
    assert_eq!(ended.len(), 1);
    // Without rules everybody is in the queue for all again.
    queues.insert(ticket(5, 5, any()));
    queues.set_rules(QueueRules::default());
    assert_eq!(groups(&mut queues, at(34)), [[4, 5]]);
}

#[test]
fn nobody_plays_above_the_limit_of_latency_however_long_they_wait() {
    let config = MatchingConfig::default()
        .regions(&["eu", "us"])
        .latency_max_ms(Some(100));
    let here = || any().latency("eu", 20).latency("us", 90);
    let far = ticket(2, 0, any().latency("eu", 101).latency("us", 200));
    let mut queue = queue_with(config, [ticket(1, 0, here()), far, ticket(3, 0, any())]);
    assert!(matched(&mut queue, at(1_000)).is_empty());
    queue.insert(ticket(4, 0, any().latency("eu", 140).latency("us", 30)));
    assert_eq!(matched(&mut queue, at(1_000)), [[1, 4]]);
    let both = here().latency("eu", 140);
    assert_eq!(queue.regions(&both), ["us"], "and only there");
}

#[test]
fn a_queue_with_much_work_does_not_keep_the_others_waiting_for_ever() {
    let mut queues = Queues::new(MatchingConfig::default(), rules("[many]\n[few]"));
    for id in 0..20_000 {
        let room = Preferences::queue("many").choice("room", &format!("{}", id % 10_000));
        queues.insert(ticket(id, 0, room.choice("alone", &format!("{id}"))));
    }
    queues.insert(named(50_001, 0, "few"));
    queues.insert(named(50_002, 0, "few"));
    let found = (1..=3).any(|n| groups(&mut queues, at(n)) == [[50_001, 50_002]]);
    assert!(found);
}
