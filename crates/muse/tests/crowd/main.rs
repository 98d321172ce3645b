//! The examples' games over the real transport and bad networks, with fewer bytes than they would like.
//!
//! `cargo test -p muse-net --test crowd -- --nocapture` prints the figures of every client.

#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../../examples/hitscan.rs"]
mod hitscan;
mod stage;
#[allow(dead_code, reason = "the example's main is not called here")]
#[path = "../../examples/thousand_entities.rs"]
mod thousand_entities;

use muse::Instant;
use muse::netcode::{Remotes, Server};
use muse::prelude::*;
use muse_netem::{Conditions, Jitter};
use stage::{Play, Stage};

/// A usual way to a server.
fn good(millis: u64) -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(millis))
        .jitter(Jitter::Uniform(Duration::from_millis(6)))
        .loss(0.01)
}

/// A terrible one.
fn terrible() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(60))
        .jitter(Jitter::Uniform(Duration::from_millis(200)))
        .loss(0.3)
}

/// The outcome of a client's game.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    inputs_in_time: f64,
    predicted: f64,
    kilobytes: f64,
    /// Hits of shots, or updates.
    game: f64,
    longest_wait_ticks: u32,
}

impl Figures {
    fn of<G: Game>(stage: &mut Stage<G>, seat: usize) -> Self
    where
        G::Player: State,
    {
        let client = stage.client(seat);
        let counters = *stage.game.input_counters(client).expect("it plays");
        let missed = counters.repeated + counters.missing;
        let prediction = stage.seats[seat].game.prediction();
        let judged = prediction.confirmed + prediction.corrected;
        let bytes = stage
            .game
            .view_mut(client)
            .map_or(0, |(_, view)| view.stats().bytes);
        Self {
            inputs_in_time: counters.received as f64 / (counters.received + missed) as f64,
            predicted: prediction.confirmed as f64 / judged.max(1) as f64,
            kilobytes: bytes as f64 / 1e3,
            ..Self::default()
        }
    }
}

struct Shooters {
    judge: hitscan::Judge,
    screens: Vec<(hitscan::Screen, Remotes<hitscan::Player>)>,
}

impl Play<hitscan::Rules> for Shooters {
    fn join(&mut self, game: &mut hitscan::Match, client: ClientId) {
        let joined = game.join(client, &hitscan::Player::default());
        joined.expect("room");
    }

    fn emitted(&mut self, client: ClientId, fire: hitscan::Fire) {
        self.judge.shots.push((client, fire));
    }

    fn tick(&mut self, game: &mut hitscan::Match, tick: Tick) {
        self.judge.tick(game, tick).expect("sane poses");
    }

    fn frame(&mut self, seat: usize, me: &mut hitscan::Me) {
        let (screen, others) = &mut self.screens[seat];
        screen.draw_all(me, others);
    }

    fn keys(&mut self, seat: usize, tick: Tick) -> hitscan::Keys {
        self.screens[seat].0.keys(tick)
    }
}

fn shoot(seed: u64, links: &[Conditions]) -> Vec<Figures> {
    let (game, judge) = hitscan::new_game(Instant::ZERO).expect("one rig");
    let protocol = hitscan::protocol().for_game::<hitscan::Rules>();
    let mut stage = Stage::new(seed, &protocol, game, links, || {
        hitscan::new_view(Instant::ZERO).0
    });
    let new_screen = || {
        (
            hitscan::Screen::default(),
            hitscan::new_view(Instant::ZERO).1,
        )
    };
    let screens = links.iter().map(|_| new_screen());
    let mut play = Shooters {
        judge,
        screens: screens.collect(),
    };
    stage.run(Duration::from_secs(20), &mut hitscan::Rules, &mut play);
    let figures = play.screens.iter().enumerate().map(|(seat, (screen, _))| {
        assert!(screen.markers <= screen.flashes, "a hit was told twice");
        Figures {
            game: f64::from(screen.markers) / f64::from(screen.flashes.max(1)),
            ..Figures::of(&mut stage, seat)
        }
    });
    figures.collect()
}

struct Crowd {
    field: thousand_entities::Field,
    screens: Vec<thousand_entities::Screen>,
}

impl Play<thousand_entities::Rules> for Crowd {
    fn join(&mut self, game: &mut thousand_entities::Match, client: ClientId) {
        let player = game.join(client, &Default::default()).expect("room");
        self.field.join(client, player).expect("room");
    }

    fn emitted(&mut self, _: ClientId, (): ()) {}

    fn tick(&mut self, game: &mut thousand_entities::Match, tick: Tick) {
        self.field.tick(game, tick).expect("sane places");
    }

    fn frame(&mut self, seat: usize, me: &mut thousand_entities::Me) {
        self.screens[seat].draw(me);
    }

    fn keys(&mut self, _: usize, tick: Tick) -> thousand_entities::Heading {
        thousand_entities::keys(tick)
    }
}

fn crowd(seed: u64, links: &[Conditions]) -> Vec<Figures> {
    crowd_within(thousand_entities::BYTES_PER_SNAPSHOT, seed, links)
}

fn crowd_within(bytes_max: usize, seed: u64, links: &[Conditions]) -> Vec<Figures> {
    let protocol = thousand_entities::protocol().for_game::<thousand_entities::Rules>();
    let config = thousand_entities::Rules::session().bytes_per_snapshot(bytes_max);
    let (kinds, kind) = (protocol.kinds().clone(), thousand_entities::kind());
    let mut game = Server::new(config, kinds, kind, Instant::ZERO);
    let field = thousand_entities::populate(&mut game, 1_000).expect("room");
    let mut stage = Stage::new(seed, &protocol, game, links, || {
        thousand_entities::new_view(Instant::ZERO)
    });
    let screens = links.iter().map(|_| thousand_entities::Screen::default());
    let mut play = Crowd {
        field,
        screens: screens.collect(),
    };
    let rules = &mut thousand_entities::Rules;
    stage.run(Duration::from_secs(15), rules, &mut play);
    let figures = play.screens.iter().enumerate().map(|(seat, screen)| {
        assert!(screen.known.len() > 100, "{}", screen.known.len());
        Figures {
            game: screen.updates as f64,
            longest_wait_ticks: screen.longest_wait,
            ..Figures::of(&mut stage, seat)
        }
    });
    figures.collect()
}

/// Runs a game with five good links and with one of them terrible, and compares the other four.
fn compare(play: impl Fn(u64, &[Conditions]) -> Vec<Figures>, tolerance: f64) {
    let mut links: Vec<Conditions> = [20, 30, 45, 60, 30].map(good).into();
    let calm = play(31, &links);
    links[4] = terrible();
    let beside = play(31, &links);
    for (seat, (calm, beside)) in calm.iter().zip(&beside).enumerate() {
        println!("{seat}: {calm:?}\n   {beside:?}");
    }
    let far = |a: f64, b: f64, share: f64| (a - b).abs() > share * a.abs().max(1e-9);
    for (calm, beside) in calm.iter().zip(&beside).take(4) {
        let same = !far(calm.inputs_in_time, beside.inputs_in_time, 0.003)
            && !far(calm.predicted, beside.predicted, tolerance)
            && !far(calm.kilobytes, beside.kilobytes, 0.05)
            && !far(calm.game, beside.game, tolerance);
        assert!(same, "{calm:?} became {beside:?}");
        assert!(beside.inputs_in_time > 0.99, "{beside:?}");
    }
    let (calm, beside) = (calm[4], beside[4]);
    let worse = beside.game < calm.game * 0.8;
    assert!(worse, "it is terrible: {calm:?} {beside:?}");
}

#[test]
fn shooters_do_not_notice_a_terrible_connection_among_them() {
    // Being hit is what nobody can predict.
    compare(shoot, 0.05);
}

#[test]
fn a_crowd_does_not_notice_a_terrible_connection_among_it() {
    compare(crowd, 0.02);
}

#[test]
fn nothing_waits_for_a_second_however_few_bytes_there_are() {
    // Everything in sight would need three times as much.
    let cases = [
        (
            thousand_entities::BYTES_PER_SNAPSHOT,
            good(30).loss(0.0).rate(120_000),
        ),
        (600, good(30).loss(0.02)),
        (500, good(30).loss(0.05)),
    ];
    for (bytes_max, link) in cases {
        let figures = crowd_within(bytes_max, 7, &[link.clone(), link]);
        println!("{figures:?}");
        for figures in figures {
            assert!(figures.longest_wait_ticks < 20, "{figures:?}");
            assert!(figures.game > 5_000.0, "{figures:?}");
        }
    }
    // A shooter whose link carries hardly more than its headers still hits.
    let link = good(30).rate(64_000);
    for figures in shoot(8, &[link.clone(), link]) {
        assert!(figures.game > 0.9, "{figures:?}");
    }
}
