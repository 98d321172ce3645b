//! What a co-operative match costs its server: `cargo run --release -p muse-biobot --example cost`.
//!
//! Two bots play the level; ticks in which at least eight enemies are awake are timed: inputs, simulation, snapshots, messages.

use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use muse_biobot::bots::Brain;
use muse_biobot::{Command, Level, Player, Profile, Stage, StageConfig};
use muse_netcode::ClientId;
use muse_wire::Instant;

/// Times of ticks with so many enemies awake.
#[derive(Default)]
struct Times {
    ticks: u32,
    sum: Duration,
    most: Duration,
}

impl Times {
    fn add(&mut self, time: Duration) {
        self.ticks += 1;
        self.sum += time;
        self.most = self.most.max(time);
    }

    fn print(&self, what: &str) {
        let mean = self.sum.as_secs_f64() * 1e6 / f64::from(self.ticks.max(1));
        println!(
            "{what}: {} ticks, {mean:.1} us a tick ({:.3} % of a core at 50 a second), slowest {:.1} us",
            self.ticks,
            mean * 50.0 / 1e4,
            self.most.as_secs_f64() * 1e6
        );
    }
}

fn main() {
    let level = Arc::new(Level::escape());
    let (mut few, mut many, mut horde) = (Times::default(), Times::default(), 0);
    for seed in 1..=5 {
        horde = horde.max(play(seed, &level, &mut few, &mut many));
    }
    few.print("fewer than 8 enemies awake");
    many.print("8 or more enemies awake");
    println!("most enemies awake: {horde}");
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
    for tick in 1..=45_000_u64 {
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
