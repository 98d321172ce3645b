//! Measures what matches cost: `cargo run --release -p muse-biobot --example cost`.
//!
//! Two bots play the co-operative level; ticks of the server in which at least eight enemies are awake are timed: inputs, simulation, snapshots,
//! messages. Then eight robots crowd around the ball: ticks of all of them, and twelve in a row, as a client simulates them again after a correction.

use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use muse::netcode::prediction::{StepContext, run_step};
use muse::netcode::{ClientId, Tick};
use muse::wire::Instant;
use muse_biobot::ball::{BallRules, Pusher};
use muse_biobot::bots::Brain;
use muse_biobot::weapons::angles;
use muse_biobot::{Ball, Command, Level, Player, Profile, Robot, Rules, Stage, StageConfig};

/// Times of ticks, in microseconds.
#[derive(Default)]
struct Times(Vec<f64>);

impl Times {
    fn add(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1e6);
    }

    fn print(&mut self, what: &str) {
        self.0.sort_by(f64::total_cmp);
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share) as usize];
        if self.0.is_empty() {
            return println!("{what}: never");
        }
        let mean = self.0.iter().sum::<f64>() / self.0.len() as f64;
        println!(
            "{what}: {} ticks, mean {mean:.1} us ({:.2} % of a core at 50 a second), median {:.1}, p99 {:.1}",
            self.0.len(),
            mean * 50.0 / 1e4,
            at(0.5),
            at(0.99),
        );
    }
}

fn main() {
    let asleep = Level::escape();
    let mut awake = asleep.clone();
    // Nobody sleeps: everybody looks for a way to the players from the beginning.
    awake.enemies.iter_mut().for_each(|enemy| enemy.wake = None);
    for (name, level) in [("the level", asleep), ("everybody awake", awake)] {
        let level = Arc::new(level);
        let (mut few, mut many, mut most) = (Times::default(), Times::default(), 0);
        for seed in 1..=3 {
            most = most.max(play(seed, &level, &mut few, &mut many));
        }
        few.print(&format!("{name}, fewer than 8 awake"));
        many.print(&format!("{name}, 8 to {most} awake"));
    }
    crowd();
}

/// Eight robots that all run at the ball, jump and kick.
fn crowd() {
    let level = Arc::new(Level::pitch());
    let mut rules = Rules::new(Arc::clone(&level));
    let mut ball_rules = BallRules::new(Arc::clone(&level));
    let mut ball = ball_rules.kick_off();
    let robot = |slot: u8| Robot::new(slot, level.spawn(slot, 0).at, 0.0);
    let mut robots: Vec<Robot> = (0..8).map(robot).collect();
    let (mut ticks, mut rollbacks, mut balls) = <(Times, Times, Times)>::default();
    for round in 0..2_000_u32 {
        let began = clock();
        for step in 0..12 {
            let one = clock();
            let tick = Tick(round * 12 + step);
            let mut pushers = walk(&mut rules, &robots, &ball, tick);
            let before_ball = clock();
            ball_rules.step(tick, &mut ball, &mut pushers);
            balls.add(before_ball.elapsed());
            robots = pushers.into_iter().map(|pusher| pusher.after).collect();
            ticks.add(one.elapsed());
        }
        rollbacks.add(began.elapsed());
    }
    balls.print("the ball alone among 8 robots");
    ticks.print("8 robots and the ball");
    rollbacks.print("12 ticks of 8 robots and the ball");
}

fn walk(rules: &mut Rules, robots: &[Robot], ball: &Ball, tick: Tick) -> Vec<Pusher> {
    let step = |before: &Robot| {
        let (yaw, pitch) = angles(ball.middle() - before.eye());
        let command = Command {
            forward: 1,
            jump: (tick.0 + u32::from(before.slot)).is_multiple_of(40),
            use_: (tick.0 + u32::from(before.slot)).is_multiple_of(25),
            yaw,
            pitch,
            ..Command::default()
        };
        let mut after = before.clone();
        let emit = &mut |_| ();
        let mut context = StepContext::new(tick, false, emit);
        run_step(rules, &mut after, &command.snapped(), &mut context);
        Pusher::new(before.clone(), after)
    };
    robots.iter().map(step).collect()
}

fn play(seed: u64, level: &Arc<Level>, few: &mut Times, many: &mut Times) -> usize {
    let config = StageConfig::new(Arc::clone(level)).seed(seed).slots(2);
    let mut stage = Stage::new(config, Instant::ZERO);
    let mut players = Vec::new();
    for slot in 0..2_u32 {
        let profile = Profile {
            id: u64::from(slot),
            ..Profile::default()
        };
        if stage.join(ClientId(slot), profile).is_ok() {
            players.push(Player::new(Instant::ZERO, Arc::clone(level), "bot"));
        }
    }
    let mut brains = [1, 2].map(|bot| Brain::new(Arc::clone(level), seed * 10 + bot));
    let mut buffer = vec![0; 1_400];
    let mut most = 0;
    for tick in 1..=20_000_u64 {
        let now = Instant::from_millis(tick * 20);
        let mut inputs: Vec<(usize, Vec<u8>)> = Vec::new();
        for (slot, player) in players.iter_mut().enumerate() {
            while let Some(message) = player.poll_message() {
                stage.handle_message(ClientId(slot as u32), &message);
            }
            let command: Command = brains[slot].act(now, player);
            while let Some(len) = player.poll_packet(now, command, &mut buffer) {
                inputs.push((slot, buffer[..len].to_vec()));
            }
        }
        let mut outputs: Vec<(usize, Vec<u8>)> = Vec::with_capacity(4);
        let began = clock();
        for (slot, bytes) in &inputs {
            // A bot's own packets are well-formed.
            let _ = stage.handle_packet(now, ClientId(*slot as u32), bytes);
        }
        while stage.poll_tick(now).is_some() {
            while let Some((client, len)) = stage.poll_packet(now, &mut buffer) {
                outputs.push((client.0 as usize, buffer[..len].to_vec()));
            }
        }
        let took = began.elapsed();
        while let Some((_, message)) = stage.poll_message() {
            players
                .iter_mut()
                .for_each(|player| player.handle_message(&message));
        }
        for (slot, bytes) in outputs {
            // The stage's packets are well-formed.
            let _ = players[slot].handle_packet(now, &bytes);
        }
        let awake = stage.horde().active();
        most = most.max(awake);
        match awake >= 8 {
            true => many.add(took),
            false => few.add(took),
        }
        if stage.outcome().is_some() {
            break;
        }
    }
    most
}

#[expect(clippy::disallowed_methods, reason = "it measures what time passes")]
fn clock() -> Clock {
    Clock::now()
}
