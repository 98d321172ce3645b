//! The ball as physics: the same for the same inputs, always inside, never faster than what drives it, and in everybody's way.
//! `MUSE_SEEDS` tries more than the seeds that every run tries.

use std::sync::Arc;

use glam::Vec3;
use muse::netcode::Tick;
use muse::netcode::prediction::{StepContext, run_step};
use muse::schema::State;
use muse_biobot::ball::{BallRules, Pusher, SPEED_MAX};
use muse_biobot::mover::GRAVITY;
use muse_biobot::{BALL_RADIUS, Ball, Command, Level, ROBOT_RADIUS, Robot, Rules};

/// A ball and robots on the pitch, without a server.
struct Pitch {
    tick: Tick,
    ball: Ball,
    robots: Vec<Robot>,
    rules: Rules,
    ball_rules: BallRules,
    kicks: u32,
}

impl Pitch {
    fn new(robots: u8) -> Self {
        let level = Arc::new(Level::pitch());
        let ball_rules = BallRules::new(Arc::clone(&level));
        let robot = |slot: u8| {
            let spawn = level.spawn(slot, 0);
            Robot::new(slot, spawn.at, spawn.yaw).snapped()
        };
        Self {
            tick: Tick(0),
            ball: ball_rules.kick_off(),
            robots: (0..robots).map(robot).collect(),
            rules: Rules::new(level),
            ball_rules,
            kicks: 0,
        }
    }

    fn step(&mut self, command: impl Fn(&Robot) -> Command) {
        self.tick = self.tick + 1;
        let mut pushers = Vec::new();
        for robot in &self.robots {
            let mut after = robot.clone();
            let mut effects = Vec::new();
            let emit = &mut |effect| effects.push(effect);
            let command = command(robot).snapped();
            let mut context = StepContext::new(self.tick, true, emit);
            run_step(&mut self.rules, &mut after, &command, &mut context);
            let mut pusher = Pusher::new(robot.clone(), after);
            pusher.effects = effects;
            pushers.push(pusher);
        }
        self.ball_rules
            .step(self.tick, &mut self.ball, &mut pushers);
        self.kicks += pushers.iter().filter(|pusher| pusher.kicked).count() as u32;
        self.robots = pushers.into_iter().map(|pusher| pusher.after).collect();
    }

    /// Of a ball of 1 kg: what it has by its speed and by its height.
    fn energy(&self) -> f32 {
        Vec3::from(self.ball.velocity).length_squared() / 2.0 + GRAVITY * self.ball.position[1]
    }

    /// The depth of the robot that is deepest inside of the ball.
    fn overlap(&self) -> f32 {
        let deep = |robot: &Robot| {
            let height = (self.ball.position[1] - robot.position[1]).clamp(0.4, 1.4);
            let nearest = robot.feet() + Vec3::Y * height;
            BALL_RADIUS + ROBOT_RADIUS - nearest.distance(self.ball.middle())
        };
        self.robots.iter().map(deep).fold(0.0, f32::max)
    }

    fn assert_inside(&self, seed: u64) {
        let ball = &self.ball;
        let level = self.rules.level();
        // A box within the ball: as deep inside of something as a corner of it is.
        let half = Vec3::splat(BALL_RADIUS * 0.5);
        assert!(
            !level.collision().overlaps(ball.middle(), half),
            "seed {seed}, tick {:?}: in a wall: {ball:?}",
            self.tick
        );
        let [x, y, z] = ball.position;
        let inside = x.abs() < 28.0 && z.abs() < 15.0 && (0.6..9.0).contains(&y);
        assert!(
            inside,
            "seed {seed}, tick {:?}: outside: {ball:?}",
            self.tick
        );
        let speed = Vec3::from(ball.velocity).length();
        assert!(speed < SPEED_MAX + 0.1, "seed {seed}: {speed} m/s");
    }
}

/// Robots that run after the ball most of the time, jump, kick, shoot, and sometimes do anything.
struct Crowd {
    rng: fastrand::Rng,
    moods: Vec<(u8, u32, f32)>,
}

impl Crowd {
    fn new(seed: u64, robots: u8) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            moods: vec![(0, 0, 0.0); usize::from(robots)],
        }
    }

    fn commands(&mut self, pitch: &Pitch) -> Vec<Command> {
        let mut commands = Vec::new();
        for robot in &pitch.robots {
            let mood = &mut self.moods[usize::from(robot.slot)];
            if pitch.tick.0 >= mood.1 {
                let angle = self.rng.f32() * std::f32::consts::TAU;
                *mood = (self.rng.u8(..6), pitch.tick.0 + self.rng.u32(5..80), angle);
            }
            let way = pitch.ball.middle() - robot.eye();
            let (yaw, pitch_up) = muse_biobot::weapons::angles(way);
            let seeks = mood.0 < 4;
            commands.push(Command {
                forward: if mood.0 == 5 { self.rng.i8(-1..=1) } else { 1 },
                right: if mood.0 >= 3 { self.rng.i8(-1..=1) } else { 0 },
                jump: self.rng.u32(..20) == 0,
                fire: self.rng.u32(..5) == 0,
                use_: self.rng.u32(..4) == 0,
                weapon: if self.rng.u32(..50) == 0 { 3 } else { 0 },
                yaw: if seeks { yaw } else { mood.2 },
                pitch: if seeks {
                    pitch_up
                } else {
                    self.rng.f32() - 0.5
                },
                ..Command::default()
            });
        }
        commands
    }
}

fn play(seed: u64, robots: u8, ticks: u32, mut look: impl FnMut(&Pitch)) -> Pitch {
    let mut pitch = Pitch::new(robots);
    let mut crowd = Crowd::new(seed, robots);
    for _ in 0..ticks {
        let commands = crowd.commands(&pitch);
        pitch.step(|robot| commands[usize::from(robot.slot)]);
        look(&pitch);
    }
    pitch
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("MUSE_SEEDS").ok();
    0..asked.and_then(|count| count.parse().ok()).unwrap_or(usual)
}

#[test]
fn the_same_inputs_are_the_same_rows() {
    for seed in seeds(3) {
        let log = || {
            let mut rows = Vec::new();
            play(seed, 8, 3_000, |pitch| {
                rows.push(pitch.ball.to_row());
                rows.extend(pitch.robots.iter().map(State::to_row));
            });
            rows
        };
        assert_eq!(log(), log(), "seed {seed}");
    }
}

#[test]
fn nothing_is_remembered_from_tick_to_tick() {
    for seed in seeds(3) {
        let mut pitch = Pitch::new(4);
        let mut crowd = Crowd::new(seed, 4);
        for _ in 0..1_500 {
            let commands = crowd.commands(&pitch);
            let command = |robot: &Robot| commands[usize::from(robot.slot)];
            // Somebody who begins here, with the rows alone.
            let mut fresh = Pitch::new(0);
            fresh.tick = pitch.tick;
            fresh.ball = Ball::from_row(&pitch.ball.to_row()).expect("a row of a ball");
            let robots = pitch.robots.iter().map(State::to_row);
            fresh.robots = robots
                .map(|row| Robot::from_row(&row).expect("a row of a robot"))
                .collect();
            fresh.step(command);
            pitch.step(command);
            assert_eq!(
                fresh.ball.to_row(),
                pitch.ball.to_row(),
                "seed {seed}, {:?}",
                pitch.tick
            );
            assert_eq!(fresh.robots, pitch.robots, "seed {seed}, {:?}", pitch.tick);
        }
    }
}

/// A client predicts whoever is near; that others are elsewhere must not matter.
#[test]
fn who_is_far_away_changes_nothing() {
    for seed in seeds(5) {
        let mut checked = 0;
        let mut pitch = Pitch::new(8);
        let mut crowd = Crowd::new(seed, 8);
        for _ in 0..1_000 {
            let commands = crowd.commands(&pitch);
            let command = |robot: &Robot| commands[usize::from(robot.slot)];
            let mut few = Pitch::new(0);
            (few.tick, few.ball) = (pitch.tick, pitch.ball.clone());
            let near = |robot: &&Robot| robot.middle().distance(pitch.ball.middle()) < 4.0;
            few.robots = pitch.robots.iter().filter(near).cloned().collect();
            // A shot from afar is another matter.
            let shoots = |robot: &Robot| !near(&robot) && command(robot).fire;
            let shot = pitch.robots.iter().any(shoots);
            few.step(command);
            pitch.step(command);
            if !shot && few.robots.len() < 8 {
                checked += 1;
                assert_eq!(few.ball, pitch.ball, "seed {seed}, {:?}", pitch.tick);
            }
        }
        assert!(checked > 50, "seed {seed}: {checked}");
    }
}

#[test]
fn the_ball_stays_inside_whatever_robots_do() {
    let mut kicks = 0;
    let mut far = 0.0_f32;
    for seed in seeds(60) {
        let robots = 1 + (seed % 8) as u8;
        let pitch = play(seed, robots, 600, |pitch| {
            pitch.assert_inside(seed);
            far = far.max(pitch.ball.position[0].abs());
        });
        kicks += pitch.kicks;
    }
    assert!(kicks > 50, "they played: {kicks} kicks");
    assert!(far > 20.0, "it got about: {far} m");
}

#[test]
fn there_is_no_energy_from_nothing() {
    for seed in seeds(40) {
        let mut rng = fastrand::Rng::with_seed(seed);
        // Robots stand about and do nothing.
        let mut pitch = Pitch::new(8);
        let place =
            |rng: &mut fastrand::Rng| [rng.f32() * 40.0 - 20.0, 0.01, rng.f32() * 26.0 - 13.0];
        for robot in &mut pitch.robots {
            robot.position = place(&mut rng);
            *robot = robot.snapped();
        }
        let [x, _, z] = place(&mut rng);
        pitch.ball.position = [x, 1.0 + rng.f32() * 6.0, z];
        pitch.ball.velocity = [(); 3].map(|()| rng.f32() * 34.0 - 17.0);
        pitch.ball = pitch.ball.snapped();
        let mut most = pitch.energy();
        let clear = pitch.overlap() <= 0.0;
        for _ in 0..2_500 {
            pitch.step(|_| Command::default());
            pitch.assert_inside(seed);
            let energy = pitch.energy();
            // Rounding to the grid may add a little.
            assert!(
                !clear || energy < most + 0.2,
                "seed {seed}, {:?}: {energy} after {most}",
                pitch.tick
            );
            most = most.min(energy);
        }
        // It comes to rest, and then nothing of it changes any more.
        assert_eq!(
            pitch.ball.velocity, [0.0; 3],
            "seed {seed}: {:?}",
            pitch.ball
        );
        let rests = pitch.ball.clone();
        for _ in 0..200 {
            pitch.step(|_| Command::default());
            assert_eq!(pitch.ball, rests, "seed {seed}");
        }
        assert!((rests.position[1] - BALL_RADIUS).abs() < 0.01, "{rests:?}");
    }
}

#[test]
fn a_robot_pushes_the_ball_and_is_slowed_down_by_it() {
    let mut pitch = Pitch::new(1);
    let run = Command {
        forward: 1,
        yaw: -std::f32::consts::FRAC_PI_2,
        ..Command::default()
    };
    let mut slowest = 6.0_f32;
    let mut touched = false;
    for _ in 0..150 {
        pitch.step(|_| run);
        assert!(
            pitch.overlap() < 0.02,
            "{:?}: {}",
            pitch.tick,
            pitch.overlap()
        );
        touched |= pitch.ball.last_touch() == Some(0);
        if touched {
            slowest = slowest.min(pitch.robots[0].velocity[0]);
        }
    }
    assert!(touched && pitch.ball.position[0] > 5.0, "{:?}", pitch.ball);
    assert!((2.0..5.0).contains(&slowest), "it is heavy: {slowest} m/s");
    assert!(
        pitch.ball.position[2].abs() < 0.2,
        "straight on: {:?}",
        pitch.ball
    );
}

#[test]
fn nobody_runs_through_a_ball_at_a_wall() {
    for (jump, seed) in [(false, 1), (true, 2)] {
        let mut pitch = Pitch::new(2);
        pitch.ball.position = [3.0, BALL_RADIUS, 15.0 - BALL_RADIUS];
        pitch.ball = pitch.ball.snapped();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut most = 0.0_f32;
        for (robot, x) in pitch.robots.iter_mut().zip([2.6, 3.4]) {
            robot.position = [x, 0.01, 10.0];
            *robot = robot.snapped();
        }
        for _ in 0..500 {
            let jumps = jump && rng.u32(..10) == 0;
            // Along +z, into the wall.
            pitch.step(|_| Command {
                forward: 1,
                yaw: std::f32::consts::PI,
                jump: jumps,
                ..Command::default()
            });
            most = most.max(pitch.overlap());
            pitch.assert_inside(seed);
        }
        assert!(most < 0.12, "jumping {jump}: {most} m inside of each other");
    }
}

#[test]
fn a_shot_pushes_the_ball_a_little() {
    let mut pitch = Pitch::new(1);
    let ahead = pitch.ball.middle() - pitch.robots[0].eye();
    let (yaw, up) = muse_biobot::weapons::angles(ahead);
    for tick in 0..60 {
        pitch.step(|_| Command {
            yaw,
            pitch: up,
            fire: tick == 30,
            aim: true,
            ..Command::default()
        });
    }
    let moved = pitch.ball.position[0];
    assert!((0.02..1.5).contains(&moved), "{moved} m");
    assert_eq!(pitch.ball.last_touch(), Some(0));
}

#[test]
fn a_kick_needs_the_ball_and_time() {
    let mut pitch = Pitch::new(1);
    let look = -std::f32::consts::FRAC_PI_2;
    // Too far away.
    for tick in 0..20 {
        pitch.step(|_| Command {
            use_: tick % 2 == 0,
            yaw: look,
            ..Command::default()
        });
    }
    assert_eq!((pitch.kicks, pitch.ball.velocity), (0, [0.0; 3]));
    pitch.robots[0].position[0] = -1.3;
    pitch.robots[0] = pitch.robots[0].snapped();
    for tick in 0..20 {
        // It runs after the ball, and presses as fast as it can.
        pitch.step(|_| Command {
            forward: 1,
            use_: tick % 2 == 0,
            yaw: look,
            ..Command::default()
        });
    }
    assert_eq!(pitch.kicks, 1);
    assert!(pitch.ball.velocity[0] > 8.0, "{:?}", pitch.ball);
}
