//! Corrections lead to the server's state, effects happen once, and what is predicted together is corrected together.

use std::collections::BTreeMap;
use std::sync::Arc;

use muse_schema::State;

use super::group::Knowledge;
use super::{EffectChange, Game, Predictor, Reconciled, Scene, StepContext, run_step};
use crate::world::{Kind, KindId, KindOptions, Kinds};
use crate::{EntityId, Tick};

#[derive(State, Clone, Debug, PartialEq)]
struct Runner {
    #[field(range = -1000.0..=1000.0, step = 0.01)]
    x: f32,
    #[field(range = 0..=100)]
    ammo: u8,
}

/// Inputs above 9 shoot, if there is ammunition.
struct Rules;

impl Game for Rules {
    type Player = Runner;
    type Input = u8;
    type Event = u8;

    fn step(&mut self, state: &mut Runner, input: &u8, context: &mut StepContext<'_, u8>) {
        state.x += f32::from(*input) * 0.013;
        if *input > 9 && state.ammo > 0 {
            state.ammo -= 1;
            context.emit(*input);
        }
    }
}

fn server_step(state: &mut Runner, tick: Tick, input: u8) {
    let mut emit = |_| ();
    run_step(
        &mut Rules,
        state,
        &input,
        &mut StepContext::new(tick, true, &mut emit),
    );
}

#[test]
fn effects_happen_once_whatever_the_server_says() {
    for seed in 0..50 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut alone = alone();
        let mut server = Runner { x: 0.0, ammo: 60 };
        reconcile(&mut alone, Tick(0), &server);
        let mut inputs = vec![0];
        let mut told: BTreeMap<(u32, u8), Vec<EffectChange>> = BTreeMap::new();
        let mut server_tick = 0;
        for tick in 1..=300 {
            inputs.push(random.u8(0..12));
            alone
                .0
                .predict(&mut Rules, Tick(tick), inputs[tick as usize]);
            while server_tick + 6 < tick && random.u8(0..4) > 0 {
                server_tick += 1;
                // Now and then the server did not get the input, or hands out ammunition.
                let lost = random.u8(0..10) == 0;
                let input = if lost {
                    inputs[server_tick as usize - 1]
                } else {
                    inputs[server_tick as usize]
                };
                server_step(&mut server, Tick(server_tick), input);
                if random.u8(0..50) == 0 {
                    server.ammo = random.u8(0..40);
                }
                // Some snapshots are lost.
                if random.u8(0..5) > 0 {
                    reconcile(&mut alone, Tick(server_tick), &server);
                    let state = alone.0.state_at(Tick(server_tick));
                    assert_eq!(state, Some(&server), "seed {seed}");
                }
            }
            while let Some(effect) = alone.0.poll_effect() {
                told.entry((effect.tick.0, effect.event))
                    .or_default()
                    .push(effect.change);
            }
        }
        let corrected = alone.0.counters().corrected;
        assert!(
            told.len() > 10 && corrected > 5,
            "{} and {corrected}",
            told.len()
        );
        for (key, changes) in &told {
            // An event may be cancelled and then happen after all; it never happens twice at a time.
            for (index, change) in changes.iter().enumerate() {
                let is_raise = *change == EffectChange::Emitted;
                assert_eq!(
                    is_raise,
                    index % 2 == 0,
                    "seed {seed}, {key:?}: {changes:?}"
                );
            }
        }
    }
}

/// The states and inputs that a server told of one tick.
struct Told {
    tick: Tick,
    states: BTreeMap<EntityId, (KindId, Vec<i32>)>,
    inputs: BTreeMap<EntityId, Vec<u8>>,
}

impl Told {
    fn new<S: State>(tick: Tick, kind: Kind<S>, entity: EntityId, state: &S) -> Self {
        let told = Self {
            tick,
            states: BTreeMap::new(),
            inputs: BTreeMap::new(),
        };
        told.and(kind, entity, state)
    }

    fn and<S: State>(mut self, kind: Kind<S>, entity: EntityId, state: &S) -> Self {
        self.states.insert(entity, (kind.id(), state.to_row()));
        self
    }
}

impl Knowledge for Told {
    fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.states.keys().copied()
    }

    fn kind(&self, entity: EntityId) -> Option<KindId> {
        Some(self.states.get(&entity)?.0)
    }

    fn row_at(&self, _: KindId, entity: EntityId, tick: Tick) -> Option<&[i32]> {
        (tick == self.tick).then(|| self.states.get(&entity).map(|(_, row)| row.as_slice()))?
    }

    fn input(&self, entity: EntityId) -> Option<&[u8]> {
        self.inputs.get(&entity).map(Vec::as_slice)
    }

    fn spawn_key(&self, _: EntityId) -> Option<super::SpawnKey> {
        None
    }
}

const OWN: EntityId = EntityId::from_bits(3);

/// A predictor of one runner.
fn alone() -> (Predictor<Rules>, Kind<Runner>) {
    let mut kinds = Kinds::new();
    let kind = kinds.register::<Runner>(KindOptions::new(1)).expect("new");
    (Predictor::new(Arc::new(kinds), kind, Some(OWN)), kind)
}

/// Tells a predictor of one runner what it is after a tick.
fn reconcile(
    (predictor, kind): &mut (Predictor<Rules>, Kind<Runner>),
    tick: Tick,
    state: &Runner,
) -> Reconciled<Runner> {
    predictor.reconcile(&mut Rules, tick, &Told::new(tick, *kind, OWN, state))
}

#[test]
fn a_server_that_falls_silent_stops_prediction_and_a_late_client_starts_anew() {
    let mut alone = alone();
    let start = Runner { x: 0.0, ammo: 0 };
    alone.0.predict(&mut Rules, Tick(1), 5);
    assert_eq!(alone.0.state(), None, "there is nothing to start from");
    assert_eq!(reconcile(&mut alone, Tick(10), &start), Reconciled::Started);
    for tick in 11..500 {
        alone.0.predict(&mut Rules, Tick(tick), 5);
    }
    let ahead = Predictor::<Rules>::AHEAD_MAX as u32;
    assert_eq!(alone.0.tick(), Some(Tick(10 + ahead)));
    assert_eq!(reconcile(&mut alone, Tick(5), &start), Reconciled::Outdated);
    assert_eq!(
        reconcile(&mut alone, Tick(400), &start),
        Reconciled::Started
    );
    // Skipped ticks hold the input before them.
    alone.0.predict(&mut Rules, Tick(401), 5);
    alone.0.predict(&mut Rules, Tick(404), 5);
    assert_eq!(alone.0.tick(), Some(Tick(404)));
    let x = alone.0.state().expect("predicted").x;
    assert!((x - 0.26).abs() < 0.03, "{x}");
}

#[derive(State, Clone, Debug, PartialEq)]
struct Ball {
    #[field(range = -1000.0..=1000.0, step = 0.01)]
    x: f32,
}

/// Carts that push a ball, and each other.
struct Carts;

impl Game for Carts {
    type Player = Runner;
    type Input = u8;
    type Event = ();
    const PREDICTED_MAX: usize = 3;

    fn step(&mut self, cart: &mut Runner, input: &u8, _: &mut StepContext<'_, ()>) {
        cart.x += f32::from(*input) * 0.1;
    }

    fn step_scene(&mut self, scene: &mut Scene<Self>) {
        scene.step_players(self);
        for (entity, mut ball) in scene.all::<Ball>() {
            for cart in scene.players().filter_map(|player| scene.player(player)) {
                if ball.x > cart.x - 1.0 && ball.x < cart.x {
                    ball.x = cart.x;
                }
            }
            assert!(scene.set(entity, &ball));
        }
    }

    fn predicts(&self, own: &Runner, other: &super::Candidate<'_>) -> Option<f32> {
        let cart = other.state::<Runner>().map(|cart| cart.x);
        let x = cart.or_else(|| other.state::<Ball>().map(|ball| ball.x))?;
        Some((x - own.x).abs()).filter(|distance| *distance < 20.0)
    }
}

struct Pitch {
    cart: Kind<Runner>,
    ball: Kind<Ball>,
    predictor: Predictor<Carts>,
}

const OTHER: EntityId = EntityId::from_bits(2);
const BALL: EntityId = EntityId::from_bits(9);

fn cart(x: f32) -> Runner {
    Runner { x, ammo: 0 }
}

impl Pitch {
    fn new() -> Self {
        let mut kinds = Kinds::new();
        let cart = kinds.register(KindOptions::new(1).inputs()).expect("new");
        let ball = KindOptions::new(2).predicted();
        let ball = kinds.register(ball).expect("new");
        Self {
            cart,
            ball,
            predictor: Predictor::new(Arc::new(kinds), cart, Some(OWN)),
        }
    }

    fn told(&self, tick: u32, own: f32, other: f32, ball: f32) -> Told {
        let told = Told::new(Tick(tick), self.cart, OWN, &cart(own));
        let told = told.and(self.cart, OTHER, &cart(other));
        told.and(self.ball, BALL, &Ball { x: ball })
    }

    fn ball(&self) -> f32 {
        let newest = self.predictor.tick().expect("it plays");
        let ball: Option<Ball> = self.predictor.other_at(BALL, newest);
        ball.expect("it is predicted").x
    }

    fn reconcile(&mut self, told: &Told) -> Reconciled<Runner> {
        self.predictor.reconcile(&mut Carts, told.tick, told)
    }
}

#[test]
fn what_the_player_pushes_moves_at_once_and_agrees_with_the_server() {
    let mut pitch = Pitch::new();
    let told = pitch.told(0, 0.0, -9.0, 0.5);
    assert_eq!(pitch.reconcile(&told), Reconciled::Started);
    for tick in 1..=10 {
        pitch.predictor.predict(&mut Carts, Tick(tick), 2);
    }
    assert_eq!(pitch.ball(), 2.0, "it is pushed along");
    for tick in 1..=5 {
        let own = tick as f32 * 0.2;
        let told = pitch.told(tick, own, -9.0, own.max(0.5));
        assert_eq!(pitch.reconcile(&told), Reconciled::Confirmed, "{tick}");
    }
    assert_eq!(pitch.predictor.counters().others, 2);
}

/// The other cart was at the ball first, which nobody could foresee: the ball is corrected, one's own cart is not.
#[test]
fn what_others_do_is_corrected_and_their_last_input_goes_on() {
    let mut pitch = Pitch::new();
    let told = pitch.told(0, 0.0, 4.0, 4.5);
    pitch.reconcile(&told);
    for tick in 1..=10 {
        pitch.predictor.predict(&mut Carts, Tick(tick), 0);
    }
    assert_eq!(pitch.ball(), 4.5);
    let mut told = pitch.told(4, 0.0, 4.8, 4.8);
    told.inputs.insert(OTHER, vec![3]);
    let corrected = pitch.reconcile(&told);
    let before = cart(0.0);
    assert_eq!(corrected, Reconciled::Corrected { before, again: 6 });
    // 6 more ticks of what it did last.
    assert!((pitch.ball() - 6.6).abs() < 0.001, "{}", pitch.ball());
    let counters = pitch.predictor.counters();
    assert_eq!((counters.corrected, counters.corrected_others), (0, 1));
    let change = pitch.predictor.corrections().back().expect("one");
    let (before, after) = change.of::<Ball>(BALL).expect("it was in both");
    assert!(
        before.x == 4.5 && (after.x - 6.6).abs() < 0.001,
        "{before:?} {after:?}"
    );
}

#[test]
fn the_group_follows_what_is_near_and_has_a_limit() {
    let mut pitch = Pitch::new();
    let told = pitch.told(0, 0.0, 50.0, 5.0);
    pitch.reconcile(&told);
    let others = |pitch: &Pitch| pitch.predictor.others().collect::<Vec<_>>();
    assert_eq!(others(&pitch), [BALL]);
    pitch.predictor.predict(&mut Carts, Tick(1), 0);
    let told = pitch.told(1, 0.0, 10.0, 5.0);
    pitch.reconcile(&told);
    assert_eq!(others(&pitch), [OTHER, BALL]);
    assert_eq!(pitch.predictor.counters().regrouped, 1);
    // It stays for a moment, so that nothing comes and goes at the border.
    for tick in 2..60 {
        pitch.predictor.predict(&mut Carts, Tick(tick), 0);
        let told = pitch.told(tick, 0.0, 21.0, 5.0);
        pitch.reconcile(&told);
        assert_eq!(others(&pitch).contains(&OTHER), tick <= 31, "{tick}");
    }
    pitch.predictor.set_limit(0);
    pitch.predictor.predict(&mut Carts, Tick(60), 0);
    let told = pitch.told(60, 0.0, 1.0, 5.0);
    pitch.reconcile(&told);
    assert_eq!(others(&pitch), []);
    assert_eq!(pitch.predictor.counters().left_out, 2);
    // What is gone is predicted no longer.
    pitch.predictor.set_limit(3);
    pitch.predictor.predict(&mut Carts, Tick(61), 0);
    let told = Told::new(Tick(61), pitch.cart, OWN, &cart(0.0));
    pitch.reconcile(&told.and(pitch.ball, BALL, &Ball { x: 5.0 }));
    assert_eq!(others(&pitch), [BALL]);
    pitch.predictor.predict(&mut Carts, Tick(62), 0);
    let told = Told::new(Tick(62), pitch.cart, OWN, &cart(0.0));
    pitch.reconcile(&told);
    assert_eq!(others(&pitch), []);
}

/// A snapshot of two packets: the second one says of the same tick that something else was wrong.
#[test]
fn a_second_packet_of_a_tick_corrects_what_the_first_did_not_tell_of() {
    let mut pitch = Pitch::new();
    let told = pitch.told(0, 0.0, -9.0, 3.0);
    pitch.reconcile(&told);
    for tick in 1..=4 {
        pitch.predictor.predict(&mut Carts, Tick(tick), 0);
    }
    let first = Told::new(Tick(2), pitch.cart, OWN, &cart(0.0));
    let mut first = first.and(pitch.ball, BALL, &Ball { x: 3.0 });
    first = first.and(pitch.cart, OTHER, &cart(-9.0));
    assert_eq!(pitch.reconcile(&first), Reconciled::Confirmed);
    let second = pitch.told(2, 0.0, -9.0, 7.0);
    let corrected = pitch.reconcile(&second);
    assert!(
        matches!(corrected, Reconciled::Corrected { again: 2, .. }),
        "{corrected:?}"
    );
    assert_eq!(pitch.ball(), 7.0);
    assert_eq!(pitch.reconcile(&second), Reconciled::Outdated);
}

/// A snapshot may leave out the own player, where bytes are short: what it tells of others counts all the same, and says nothing of the player's effects.
#[test]
fn a_snapshot_without_the_own_player_corrects_others() {
    let mut pitch = Pitch::new();
    let told = pitch.told(0, 0.0, 4.0, 4.5);
    pitch.reconcile(&told);
    for tick in 1..=10 {
        pitch.predictor.predict(&mut Carts, Tick(tick), 1);
    }
    let own = pitch.predictor.state().cloned().expect("it plays");
    let mut told = pitch.told(4, 0.0, 4.8, 4.8);
    told.states.remove(&OWN);
    told.inputs.insert(OTHER, vec![3]);
    let corrected = pitch.reconcile(&told);
    assert!(
        matches!(corrected, Reconciled::Corrected { again: 6, .. }),
        "{corrected:?}"
    );
    assert!((pitch.ball() - 6.6).abs() < 0.001, "{}", pitch.ball());
    assert_eq!(pitch.predictor.state(), Some(&own));
    // The next one confirms the own player, from the server's state before on.
    let told = pitch.told(6, 0.6, 5.4, 5.4);
    assert_eq!(pitch.reconcile(&told), Reconciled::Confirmed);
    let counters = pitch.predictor.counters();
    assert_eq!((counters.confirmed, counters.corrected_others), (1, 1));
    // Nor does prediction begin without it.
    let mut pitch = Pitch::new();
    let mut told = pitch.told(0, 0.0, 4.0, 4.5);
    told.states.remove(&OWN);
    assert_eq!(pitch.reconcile(&told), Reconciled::Outdated);
}

/// An effect of a tick of which the server says something else may not have happened.
#[test]
fn an_effect_that_the_server_contradicts_is_not_called_confirmed() {
    let mut alone = alone();
    let start = Runner { x: 0.0, ammo: 5 };
    reconcile(&mut alone, Tick(0), &start);
    alone.0.predict(&mut Rules, Tick(1), 10);
    alone.0.predict(&mut Rules, Tick(2), 10);
    // The server had no shot in tick 1.
    let (mut server, mut emit) = (start, |_| ());
    let mut context = StepContext::new(Tick(1), true, &mut emit);
    run_step(&mut Rules, &mut server, &0, &mut context);
    reconcile(&mut alone, Tick(1), &server);
    run_step(&mut Rules, &mut server, &10, &mut context);
    reconcile(&mut alone, Tick(2), &server);
    let news: Vec<_> = std::iter::from_fn(|| alone.0.poll_effect()).collect();
    let news: Vec<_> = news.iter().map(|e| (e.tick.0, e.change)).collect();
    assert_eq!(
        news,
        [
            (1, EffectChange::Emitted),
            (2, EffectChange::Emitted),
            (1, EffectChange::Contradicted),
            (2, EffectChange::Confirmed)
        ]
    );
}

/// Others are simulated again from a tick of which the server said nothing of the own player: its effects until then stay as they are.
#[test]
fn effects_wait_for_a_word_about_the_own_player() {
    let mut effects = super::effects::Effects::new();
    for tick in 1..=4 {
        effects.emit(Tick(tick), tick);
    }
    effects.begin_again(Tick(2));
    effects.emit(Tick(3), 3);
    effects.end_again();
    effects.confirm(Tick(3));
    let news: Vec<_> = std::iter::from_fn(|| effects.poll()).skip(4).collect();
    let news: Vec<_> = news.iter().map(|e| (e.tick.0, e.change)).collect();
    assert_eq!(
        news,
        [
            (4, EffectChange::Cancelled),
            (1, EffectChange::Confirmed),
            (2, EffectChange::Confirmed),
            (3, EffectChange::Confirmed)
        ]
    );
}

/// A server that is ahead of what was predicted cannot have agreed with it.
#[test]
fn an_effect_that_was_never_compared_is_not_called_confirmed() {
    let mut alone = alone();
    let start = Runner { x: 0.0, ammo: 5 };
    reconcile(&mut alone, Tick(0), &start);
    alone.0.predict(&mut Rules, Tick(1), 10);
    assert_eq!(reconcile(&mut alone, Tick(9), &start), Reconciled::Started);
    let news: Vec<_> = std::iter::from_fn(|| alone.0.poll_effect()).collect();
    let news: Vec<_> = news.iter().map(|e| (e.tick.0, e.change)).collect();
    assert_eq!(
        news,
        [(1, EffectChange::Emitted), (1, EffectChange::Contradicted)]
    );
}
