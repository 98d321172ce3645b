//! Hosts that are killed, leave or are cut off: the match goes on with the heir, and nobody else leaves.

use muse::Duration;
use muse::deterministic::MatchEvent;
use muse::lockstep::replay::{Replay, verify};
use muse::lockstep::{Frame, MatchConfig, Seat, Status};
use muse_netem::Conditions;

use crate::party::{Melee, Party, seeds};

/// 100 ms from player to player and back through the relay, with 5 % loss each way.
fn bad_network() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(25))
        .loss(0.025)
}

fn good_network() -> Conditions {
    Conditions::default().delay(Duration::from_millis(20))
}

fn rollback(players: u8) -> MatchConfig {
    MatchConfig::rollback(players)
}

/// A match that runs, and whose relay knows an heir.
fn party(seed: u64, config: MatchConfig, network: Conditions, players: usize) -> Party {
    let mut party = Party::new(seed, config, network, players - 1);
    let all: Vec<usize> = (0..players).collect();
    let begun = |party: &Party| {
        let running = |index: &usize| party.session(*index).status() == Status::Running;
        all.iter().all(running) && heir(party, &all).is_some()
    };
    for _ in 0..40 {
        if begun(&party) {
            break;
        }
        party.run(250, &all);
    }
    assert!(begun(&party), "seed {seed}: it has not begun");
    party.run(1_200 + seed % 500, &all);
    party.seats = all.iter().map(|it| party.session(*it).seat()).collect();
    party
}

fn heir(party: &Party, players: &[usize]) -> Option<usize> {
    let mut heirs = players.iter().copied();
    heirs.find(|index| party.player(*index).participant.is_heir())
}

/// Time until all of these play on under one host, and each has heard more from it than it knew before.
fn time_to_go_on(party: &mut Party, players: &[usize], limit: Duration) -> Option<Duration> {
    let begin = party.simulation.now();
    let mut known: Vec<Option<Frame>> = vec![None; players.len()];
    while party.simulation.now() < begin + limit {
        party.run(10, players);
        let mut all = true;
        for (slot, index) in known.iter_mut().zip(players) {
            let changed = party
                .player(*index)
                .events
                .contains(&MatchEvent::HostChanged);
            let confirmed = party.session(*index).confirmed();
            if changed {
                slot.get_or_insert(confirmed);
            }
            all &= slot.is_some_and(|before| confirmed > before);
        }
        if all {
            return Some(party.simulation.now() - begin);
        }
    }
    None
}

fn assert_nobody_but_the_host_left(party: &Party, players: &[usize], seed: u64) {
    for &index in players {
        let player = party.player(index);
        assert_eq!(
            party.session(index).seat(),
            party.seats[index],
            "seed {seed}: a seat changed"
        );
        let left = player.events.iter().filter_map(|event| match event {
            MatchEvent::Left(seat, _) => Some(*seat),
            _ => None,
        });
        assert_eq!(
            left.collect::<Vec<_>>(),
            [Seat(0)],
            "seed {seed}, player {index}"
        );
        let joined = player.events.iter();
        let joined = joined.filter(|event| matches!(event, MatchEvent::Joined(..)));
        assert_eq!(joined.count(), 8.min(party.players.len()), "seed {seed}");
        let began = player.events.iter();
        let began = began.filter(|event| matches!(event, MatchEvent::Begun(_)));
        assert_eq!(began.count(), 1, "seed {seed}: predicted state was lost");
    }
}

fn hosts(party: &Party, players: &[usize]) -> Vec<usize> {
    let hosts = players.iter().copied();
    hosts
        .filter(|index| party.player(*index).participant.is_host())
        .collect()
}

/// Kills the host of matches of eight with these rules; returns how long it took until play went on, sorted.
fn kill_hosts(config: fn() -> MatchConfig, count: u64) -> Vec<Duration> {
    let survivors: Vec<usize> = (1..8).collect();
    let mut times = Vec::new();
    for seed in 1..=count {
        let mut party = party(seed, config(), bad_network(), 8);
        let expected = heir(&party, &survivors).expect("there is one");
        party.kill(0);
        let limit = Duration::from_secs(10);
        let time = time_to_go_on(&mut party, &survivors, limit);
        let time = time.unwrap_or_else(|| unreachable!("seed {seed}: it does not go on"));
        times.push(time);
        assert_eq!(hosts(&party, &survivors), [expected], "seed {seed}");
        party.run(3_000, &survivors);
        assert_eq!(hosts(&party, &survivors), [expected], "seed {seed}");
        assert_eq!(party.relay().stats().successions, 1, "seed {seed}");
        assert_nobody_but_the_host_left(&party, &survivors, seed);
        for index in &survivors {
            let desynced = party.player(*index).events.iter();
            let desynced = desynced.filter(|event| matches!(event, MatchEvent::Desynced(_)));
            assert_eq!(desynced.count(), 0, "seed {seed}");
        }
        let recorder = party
            .player_mut(survivors[0])
            .recorder
            .take()
            .expect("it records");
        let file = recorder.finish();
        let file = Replay::parse(&file).expect("a replay");
        let outcome = verify::<Melee>(&file).expect("it can be run");
        assert!(outcome.differs.is_none(), "seed {seed}: {outcome:?}");
        assert!(outcome.frames > 20 && outcome.compared > 10, "{outcome:?}");
    }
    times.sort();
    times
}

fn p95(times: &[Duration]) -> Duration {
    times[(times.len() * 95).div_ceil(100) - 1]
}

#[test]
fn a_match_of_eight_goes_on_when_its_host_is_killed() {
    let times = kill_hosts(|| rollback(8), seeds(40));
    println!(
        "rollback: p95 {:?} of {}, worst {:?}",
        p95(&times),
        times.len(),
        times.last()
    );
    assert!(p95(&times) <= Duration::from_secs(2), "{times:?}");
}

#[test]
fn turns_go_on_when_the_host_is_killed() {
    let times = kill_hosts(|| MatchConfig::lockstep(8), seeds(40));
    println!(
        "lockstep: p95 {:?} of {}, worst {:?}",
        p95(&times),
        times.len(),
        times.last()
    );
    assert!(p95(&times) <= Duration::from_secs(2), "{times:?}");
}

#[test]
fn a_host_that_leaves_hands_over_at_once() {
    for seed in 1..=seeds(4) {
        let survivors = [1, 2, 3];
        let mut party = party(seed, rollback(4), good_network(), 4);
        party.player_mut(0).participant.leave();
        let node = party.players[0];
        party.simulation.wake(node);
        let time = time_to_go_on(&mut party, &survivors, Duration::from_secs(5));
        let time = time.expect("it goes on");
        assert!(time < Duration::from_millis(800), "seed {seed}: {time:?}");
        party.run(1_000, &survivors);
        assert_nobody_but_the_host_left(&party, &survivors, seed);
        assert!(party.player(0).participant.is_over());
    }
}

#[test]
fn a_host_that_was_cut_off_comes_back_as_a_guest() {
    for seed in 1..=seeds(4) {
        let (all, survivors) = ([0, 1, 2, 3], [1, 2, 3]);
        let mut party = party(seed, rollback(4), good_network(), 4);
        party.cut_off(0, &good_network(), Duration::from_secs(5));
        let time = time_to_go_on(&mut party, &survivors, Duration::from_secs(4));
        time.expect("it goes on");
        // Alone it has confirmed nothing that the others have not: what it did is compared from here on, too.
        party.run(2_000, &all);
        assert!(
            party.player(0).participant.is_host(),
            "it does not know yet"
        );
        party.run(12_000, &all);
        assert_eq!(hosts(&party, &all).len(), 1, "seed {seed}");
        assert!(!party.player(0).participant.is_host(), "seed {seed}");
        for index in all {
            let session = party.session(index);
            assert_eq!(
                session.status(),
                Status::Running,
                "seed {seed}, player {index}"
            );
            assert_eq!(session.seat(), party.seats[index], "seed {seed}");
        }
        let frames = all.map(|index| party.session(index).confirmed().0);
        let apart = frames.iter().max().zip(frames.iter().min());
        assert!(
            apart.is_some_and(|(most, least)| most - least < 60),
            "{frames:?}"
        );
    }
}

#[test]
fn host_after_host_may_be_killed() {
    for seed in 1..=seeds(3) {
        let mut party = party(seed, rollback(5), bad_network(), 5);
        let mut left: Vec<usize> = (1..5).collect();
        let mut host = 0;
        for term in 1..=3 {
            party.kill(host);
            left.retain(|index| *index != host);
            party.run(8_000, &left);
            let [next] = hosts(&party, &left)[..] else {
                unreachable!("seed {seed}, term {term}: {:?}", hosts(&party, &left));
            };
            host = next;
            for index in &left {
                let player = party.player(*index);
                assert_eq!(player.participant.host_term(), term, "seed {seed}");
                assert_eq!(
                    party.session(*index).status(),
                    Status::Running,
                    "seed {seed}"
                );
            }
        }
    }
}

#[test]
fn without_somebody_who_would_host_the_match_ends_for_all() {
    let mut party = Party::new(3, rollback(3), good_network(), 0);
    party.join(muse::lockstep::Role::Player, false);
    party.join(muse::lockstep::Role::Player, false);
    party.run(4_000, &[0, 1, 2]);
    party.player_mut(0).participant.leave();
    let node = party.players[0];
    party.simulation.wake(node);
    party.run(2_000, &[]);
    for index in 0..3 {
        assert!(party.player(index).participant.is_over(), "player {index}");
    }
}
