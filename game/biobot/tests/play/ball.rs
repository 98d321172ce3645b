//! Two teams and a ball: goals count once, matches of bots end with a result, and all of it fits into a player's link.

use std::sync::Arc;

use muse::wire::Duration;
use muse_biobot::bots::Brain;
use muse_biobot::{Command, Level, Mode, Phase, Player, StageConfig, ToPlayer, team_of};
use muse_netem::{Conditions, Jitter};

use crate::table::Table;

/// 150 ms there and back, one packet in twenty lost.
fn network() -> Conditions {
    Conditions::default()
        .delay(Duration::from_millis(75))
        .jitter(Jitter::Uniform(Duration::from_millis(5)))
        .loss(0.05)
}

fn brains(level: &Arc<Level>, seed: u64, players: u8) -> Vec<Brain> {
    let brain = |slot: u8| Brain::new(Arc::clone(level), seed * 100 + u64::from(slot));
    (0..players).map(brain).collect()
}

/// A match of bots until it ends or so many seconds have passed.
fn play(
    seed: u64,
    players: u8,
    seconds: u32,
    config: impl Fn(StageConfig) -> StageConfig,
) -> Table {
    let level = Arc::new(Level::pitch());
    let settings = StageConfig::new(Arc::clone(&level))
        .seed(seed)
        .slots(players);
    let mut table = Table::new(config(settings), players, network(), seed);
    let mut brains = brains(&level, seed, players);
    for _ in 0..seconds * 200 {
        let now = table.now + Duration::from_millis(5);
        table.step(&mut |slot, player| brains[slot].act(now, player));
        if table.stage.outcome().is_some() {
            break;
        }
    }
    // What was said last is still under way.
    table.run(50, |_, _| Command::default());
    table
}

fn goals_told(table: &Table) -> usize {
    let told = |message: &&ToPlayer| matches!(message, ToPlayer::Goal { .. });
    table.guests[0].heard.iter().filter(told).count()
}

#[test]
fn bots_play_a_match_to_its_end() {
    for (seed, players) in [(1, 8), (2, 4), (3, 2)] {
        let table = play(seed, players, 330, |config| config.goals_to_win(3));
        let outcome = table.stage.outcome().expect("it ends by goals or by time");
        let round = table.stage.round();
        println!(
            "seed {seed}, {players} bots: {:?} after {} s, {:?}",
            round.goals,
            outcome.ticks / 50,
            outcome.table
        );
        assert_eq!((outcome.phase, outcome.cancelled), (Phase::Over, false));
        assert!(
            round.goals.iter().any(|goals| *goals > 0),
            "somebody scores"
        );
        assert_eq!(outcome.table.len(), usize::from(players));
        let [first, second] = round.goals;
        if first != second {
            let winner = u8::from(second > first);
            let half = usize::from(players / 2);
            let before = outcome.table[..half].iter();
            assert!(
                before
                    .map(|line| team_of(line.slot))
                    .all(|team| team == winner),
                "the winners come first: {:?}",
                outcome.table
            );
        }
        let told = goals_told(&table);
        assert_eq!(told, usize::from(first) + usize::from(second));
        for player in &table.stage.report().players {
            assert!(
                !player.suspect,
                "seed {seed}: bots do not cheat: {player:?}"
            );
        }
    }
}

/// Somebody who goes straight to the ball and kicks it where they look.
fn kicker(player: &mut Player, yaw: f32) -> Command {
    let frame = player.last_frame();
    let (Some(own), Some(shown)) = (&frame.own, &frame.ball) else {
        return Command::default();
    };
    let near = shown.ball.middle().distance(own.robot.middle()) < 1.7;
    Command {
        forward: 1,
        use_: near && frame.time.tick.0.is_multiple_of(2),
        yaw,
        ..Command::default()
    }
}

#[test]
fn a_goal_counts_once_and_the_ball_is_put_back() {
    let config = StageConfig::new(Arc::new(Level::pitch())).slots(2);
    let mut table = Table::new(config, 2, Conditions::default(), 5);
    table.begin();
    let kick_off = table.stage.ball().expect("there is a ball");
    let mut goals = Vec::new();
    for _ in 0..60 * 50 {
        let now = table.now;
        table.guests[0].player.frame(now);
        // Along +x, where the goal of the other team is; the other only looks on.
        table.run(1, |slot, player| match slot {
            0 => kicker(player, -std::f32::consts::FRAC_PI_2),
            _ => Command {
                right: 1,
                yaw: 1.571,
                ..Command::default()
            },
        });
        let [first, second] = table.stage.round().goals;
        assert_eq!(second, 0, "nobody kicks the other way");
        if goals.len() < usize::from(first) {
            goals.push(table.stage.tick().0);
        }
        if goals.len() == 2 {
            break;
        }
    }
    assert_eq!(goals.len(), 2, "{goals:?}");
    table.run(5, |_, _| Command::default());
    assert!(
        goals[1] - goals[0] >= 100,
        "it is put back in between: {goals:?}"
    );
    assert_eq!(goals_told(&table), 2);
    let round = table.stage.round();
    assert_eq!((round.goals, round.kills[0]), ([2, 0], 2));
    // After the pause everything is where it began.
    let lives = table.robot(0).lives;
    let restart = table.stage.ball().expect("there is a ball").restart;
    while table.stage.tick().0 < restart {
        table.run(1, |_, _| Command::default());
    }
    let ball = table.stage.ball().expect("there is a ball");
    assert_eq!((ball.restart, ball.position), (0, kick_off.position));
    assert_ne!(ball.serves, kick_off.serves);
    assert_eq!(table.robot(0).lives, lives + 1);
    let spawn = table.stage.level().spawn(0, 0);
    assert!(table.robot(0).feet().distance(spawn.at.into()) < 0.5);
}

/// Whoever is alone with the ball predicts it to the last digit, over any distance, as long as their inputs come in time.
#[test]
fn a_ball_that_nobody_else_touches_is_where_its_player_predicted_it() {
    let conditions = Conditions::default().delay(Duration::from_millis(75));
    let config = StageConfig::new(Arc::new(Level::pitch())).slots(2);
    let mut table = Table::new(config, 2, conditions, 4);
    table.begin();
    // The other makes room.
    table.run(60, |slot, _| Command {
        right: i8::from(slot == 1),
        yaw: 1.571,
        ..Command::default()
    });
    table.run(30, |_, _| Command::default());
    let before = table.guests[0].player.client().prediction();
    let (mut kicked, mut most) = (false, 0.0_f32);
    let mut turns = 0;
    while table.stage.ball().is_some_and(|ball| ball.restart == 0) && turns < 15 * 50 {
        turns += 1;
        let now = table.now;
        table.guests[0].player.frame(now);
        table.run(1, |slot, player| match slot {
            // A bit beside the goal, so that it comes back from the wall.
            0 => kicker(player, -1.5),
            _ => Command::default(),
        });
        let ball = table.stage.ball().expect("there is a ball");
        kicked |= ball.velocity[0] > 8.0;
        most = most.max(ball.position[0]);
    }
    let after = table.guests[0].player.client().prediction();
    assert!(kicked && most > 10.0, "it was kicked: {most} m");
    assert!(
        after.confirmed > before.confirmed + 30,
        "{before:?}, then {after:?}"
    );
    let wrong =
        after.corrected + after.corrected_others - before.corrected - before.corrected_others;
    assert_eq!(wrong, 0, "{before:?}, then {after:?}");
}

#[test]
fn nobody_is_hurt_beside_the_ball() {
    let table = play(7, 4, 40, |config| config.goals_to_win(50));
    let shots: u32 = (0..4).map(|slot| u32::from(table.robot(slot).shots)).sum();
    assert!(shots > 0, "they shoot at the ball");
    assert!((0..4).all(|slot| table.robot(slot).health == 100));
    assert_eq!(table.stage.round().deaths.iter().sum::<u16>() as usize, {
        let own = |message: &&ToPlayer| matches!(message, ToPlayer::Goal { team, scorer: Some(slot), .. } if team_of(*slot) != *team);
        table.guests[0].heard.iter().filter(own).count()
    });
}

#[test]
fn eight_players_fit_into_their_links() {
    for seed in 3..9 {
        eight_players(seed);
    }
}

fn eight_players(seed: u64) {
    let level = Arc::new(Level::pitch());
    let config = StageConfig::new(Arc::clone(&level))
        .slots(8)
        .goals_to_win(250);
    let mut table = Table::new(config, 8, network(), seed);
    table.begin();
    let mut brains = brains(&level, seed, 8);
    let mut run = |table: &mut Table, seconds: u32| {
        for _ in 0..seconds * 200 {
            let now = table.now + Duration::from_millis(5);
            table.step(&mut |slot, player| brains[slot].act(now, player));
        }
    };
    run(&mut table, 5);
    let before: Vec<u64> = table.guests.iter().map(|guest| guest.bytes[1]).collect();
    run(&mut table, 30);
    let rates = table.guests.iter().zip(before).map(|(guest, before)| {
        // 30 s; 25 datagrams a second, to each of which the transport adds.
        let bytes = (guest.bytes[1] - before) as f64 / 30.0 + 25.0 * 28.0;
        bytes * 8.0 / 1e3
    });
    let most = rates.fold(0.0, f64::max);
    println!("FIGURE eight players and the ball: {most:.1} kbit/s down at most");
    assert!(most < 40.0, "{most} kbit/s");
    let now = table.now;
    for guest in &mut table.guests {
        let frame = guest.player.frame(now);
        let shown = frame.statistics;
        println!(
            "FIGURE 150 ms, 5 % loss: {} confirmed, {} corrected, {} jumps of others, {:.2} m at most",
            shown.confirmed, shown.mispredictions, shown.jumps, shown.jump_most
        );
        // Kicks of others and kick-offs included, after which nobody runs as they were predicted to.
        assert!(shown.jump_most < JUMP_MAX, "{shown:?}");
        assert_eq!(frame.robots.len(), 7);
        assert!(frame.ball.is_some());
        assert_eq!(
            frame.round.as_ref().map(|round| round.mode),
            Some(Mode::Ball)
        );
    }
}

#[test]
fn a_recorded_match_runs_again() {
    let level = Arc::new(Level::pitch());
    let config = StageConfig::new(Arc::clone(&level)).slots(4).seed(9);
    let mut table = Table::recorded(config, 4, network(), 9);
    let mut brains = brains(&level, 9, 4);
    for _ in 0..20 * 200 {
        let now = table.now + Duration::from_millis(5);
        table.step(&mut |slot, player| brains[slot].act(now, player));
    }
    let file = table.stage.finish_recording();
    let (compared, _) = muse_biobot::replay::verify(&file).expect("it goes as it went");
    assert!(compared > 10, "{compared}");
    let mut recording = muse_biobot::replay::Recording::parse(file).expect("it can be watched");
    let (_, last) = recording.ticks();
    let shown = recording.frame(f64::from(last), 0).ball.clone();
    let ball = table.stage.ball().expect("there is a ball");
    let far = shown
        .expect("it is shown")
        .ball
        .middle()
        .distance(ball.middle());
    assert!(far < 1.0, "{far} m");
}

/// Metres of a frame beyond what somebody may move: errors go away by 10 metres a second at most, a fifth of a metre a frame, while they run on.
const JUMP_MAX: f32 = 0.3;
