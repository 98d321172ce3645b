// The game of the examples in the documentation, included by them: runners on a line, who run or stand.

use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::{Client, ClientId, Kind, KindOptions, Kinds, Server, SessionConfig};
use muse_schema::State;
use muse_wire::{Duration, Instant};

#[derive(State, Clone, Debug, PartialEq)]
struct Runner {
    #[field(range = -100.0..=100.0, step = 0.001)]
    x: f32,
}

struct Rules;
impl Game for Rules {
    type Player = Runner;
    type Input = bool;
    type Event = ();
    fn step(&mut self, runner: &mut Runner, run: &bool, _: &mut StepContext<'_, ()>) {
        runner.x += if *run { 0.1 } else { 0.0 };
    }
}

fn distance(a: &Runner, b: &Runner) -> f32 {
    (a.x - b.x).abs()
}

fn config() -> SessionConfig {
    SessionConfig::new(Duration::from_millis(20))
}

fn kinds() -> (Kinds, Kind<Runner>) {
    let mut kinds = Kinds::new();
    let runner = kinds.register(KindOptions::new(1)).expect("a new id");
    (kinds, runner)
}

fn server(now: Instant) -> Server<Rules> {
    let (kinds, runner) = kinds();
    Server::new(config(), kinds, runner, now)
}

fn client(now: Instant) -> Client<Rules> {
    let (kinds, runner) = kinds();
    Client::new(config(), kinds, runner, distance, now)
}
