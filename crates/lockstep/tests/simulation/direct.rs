//! Inputs from player to player: they save rollbacks, and nothing that they say is final.

use std::net::SocketAddr;

use muse_lockstep::{Frame, MatchConfig, Rng, Role, Seat, Statistics, Status, encode};
use muse_netem::Conditions;
use muse_wire::bits::{BitError, BitWriter};
use muse_wire::{Datagram, Duration, Ecn, Machine};

use crate::brawl::{Brawl, Push};
use crate::support::{Ledger, Match, address};

/// Four players next door to each other; the orderer, a server or the first of them, is far away.
fn neighbours(hosted: bool, directs: bool) -> Match<Brawl> {
    let near = Conditions::default()
        .delay(Duration::from_millis(10))
        .loss(0.05);
    let far = Conditions::default()
        .delay(Duration::from_millis(90))
        .loss(0.05);
    let config = MatchConfig::rollback(4).delay(0);
    let mut game = match hosted {
        true => Match::hosted(4, config, near, Brawl::new(4)),
        false => Match::with_server(4, config, near),
    };
    if directs {
        game = game.with_directs();
    }
    while game.players.len() < 4 {
        let node = game.join(Brawl::new(4), Role::Player);
        let hub = game.hub;
        game.simulation
            .network_mut()
            .set_links(node, hub, far.clone());
    }
    game
}

/// Plays for 30 s; `each` may meddle every 10 ms. What the players next door did.
fn play(game: &mut Match<Brawl>, mut each: impl FnMut(&mut Match<Brawl>)) -> Vec<Statistics> {
    let mut rng = Rng::new(8);
    let mut ledger = Ledger::default();
    game.run_secs(30, |game| {
        for node in game.players.clone() {
            if rng.below(20) == 0 {
                let push = Push::random(&mut rng);
                game.session_mut(node).set_input(push).expect("it is small");
            }
        }
        each(game);
        ledger.enter(game);
    });
    assert!(ledger.compared > 4_000, "{}", ledger.compared);
    for node in &game.players {
        assert_eq!(game.session(*node).status(), Status::Running);
    }
    let hub = game.hub;
    let others = game.players.iter().filter(|node| **node != hub);
    others
        .map(|node| *game.session(*node).statistics())
        .collect()
}

fn depth(statistics: &[Statistics]) -> f64 {
    let rollbacks: u64 = statistics.iter().map(|of| of.rollbacks).sum();
    let resimulated: u64 = statistics.iter().map(|of| of.resimulated).sum();
    resimulated as f64 / rollbacks.max(1) as f64
}

#[test]
fn neighbours_far_from_the_server_roll_back_a_fraction_of_the_frames() {
    let by_server = depth(&play(&mut neighbours(false, false), |_| ()));
    let direct = depth(&play(&mut neighbours(false, true), |_| ()));
    assert!(
        direct * 3.0 < by_server,
        "{direct:.2} frames directly, {by_server:.2} by way of the server"
    );
}

#[test]
fn players_of_a_hosted_match_need_no_way_over_the_host() {
    let by_host = depth(&play(&mut neighbours(true, false), |_| ()));
    let direct = depth(&play(&mut neighbours(true, true), |_| ()));
    // The host's own inputs come from far away in either case.
    assert!(
        direct < by_host * 0.9,
        "{direct:.2} frames directly, {by_host:.2} by way of the host"
    );
}

#[test]
fn a_player_who_tells_others_something_else_changes_nothing() {
    let mut game = neighbours(false, true);
    let mut rng = Rng::new(3);
    let honest = depth(&play(&mut neighbours(false, true), |_| ()));
    let lied_to = depth(&play(&mut game, |game| {
        // In the name of the first player, from its own address, whatever comes to mind.
        let near = game.session(game.players[1]).confirmed();
        tell(game, 1, address(2), Seat(0), near, &mut rng);
    }));
    assert!(lied_to > honest, "it was believed, until the orderer spoke");
}

#[test]
fn nobody_speaks_for_another_seat() {
    // Without the player's own inputs: it is the first, and never gives another one.
    let mut game = neighbours(false, true);
    game.run_secs(5, |_| ());
    let (node, mut rng) = (game.players[1], Rng::new(5));
    let before = game.session(node).statistics().rollbacks;
    game.run_secs(5, |game| {
        let near = game.session(node).confirmed();
        // The third player for the first, a stranger for the first, and the first player for this one.
        for (from, seat) in [(4, 0), (99, 0), (2, 1)] {
            tell(game, 1, address(from), Seat(seat), near, &mut rng);
        }
    });
    assert_eq!(game.session(node).statistics().rollbacks, before);
    // From its own address it would have been listened to.
    game.run_secs(2, |game| {
        let near = game.session(node).confirmed();
        tell(game, 1, address(2), Seat(0), near, &mut rng);
    });
    assert!(game.session(node).statistics().rollbacks > before);
}

/// A direct packet that claims that the player in `seat` pushes somehow for a second from `first` on.
fn tell(
    game: &mut Match<Brawl>,
    index: usize,
    from: SocketAddr,
    seat: Seat,
    first: Frame,
    rng: &mut Rng,
) {
    let mut push = Vec::new();
    encode(&Push::random(rng), &mut push).expect("it is small");
    let mut buffer = [0; 64];
    let mut writer = BitWriter::new(&mut buffer);
    let mut write = || -> Result<(), BitError> {
        writer.bits(0x15, 8)?;
        writer.bits(u64::from(seat.0), 8)?;
        writer.bits(u64::from(first.0 & 0xFFFF), 16)?;
        // No empty ones, then one that is given, then fifty-nine of the same, and no more.
        writer.gamma(0)?;
        writer.bool(true)?;
        writer.bool(false)?;
        writer.gamma(push.len() as u64)?;
        for byte in &push {
            writer.bits(u64::from(*byte), 8)?;
        }
        writer.gamma(59)?;
        writer.bool(false)
    };
    write().expect("it fits");
    let len = writer.finish();
    let (now, node) = (game.simulation.now(), game.players[index]);
    let datagram = Datagram {
        from,
        ecn: Ecn::NotCapable,
        payload: &mut buffer[..len],
    };
    game.simulation
        .node_mut(node)
        .handle_datagram(now, datagram);
}
