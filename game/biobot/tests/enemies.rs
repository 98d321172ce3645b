//! Enemies come to their range and fire at what they see, differ by seed and difficulty, and the boss falls to two hits at
//! a time only.
#![allow(clippy::panic, reason = "a test fails by it")]

use std::collections::BTreeSet;

use glam::Vec3;
use muse::netcode::{EntityId, Tick, World};
use muse_biobot::collision::Body;
use muse_biobot::enemies::{EnemyHit, Horde, HordeContext, RobotThere};
use muse_biobot::{Enemy, KindIds, Level, Mode, Robot, Round, Species, Stance, kinds};

/// A horde, and somebody who stands somewhere.
struct Yard {
    level: Level,
    horde: Horde,
    world: World,
    kinds: KindIds,
    robots: Vec<RobotThere>,
    round: Round,
    bolts: Vec<muse_biobot::Bolt>,
    bodies: Vec<Body>,
    tick: u32,
}

impl Yard {
    fn new(level: Level, seed: u64, difficulty: u8, robots: &[[f32; 3]]) -> Self {
        let (all, kinds) = kinds();
        let mut world = World::new(std::sync::Arc::new(all));
        let robots = robots.iter().enumerate().map(|(slot, at)| {
            let robot = Robot::new(slot as u8, *at, 0.0);
            let entity = world.spawn(kinds.robot, &robot).expect("room");
            RobotThere { entity, robot }
        });
        let robots = robots.collect();
        Self {
            horde: Horde::new(&level, seed, difficulty),
            level,
            world,
            kinds,
            robots,
            round: Round::new(Mode::Cooperative),
            bolts: Vec::new(),
            bodies: Vec::new(),
            tick: 1_000,
        }
    }

    fn run(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.tick += 1;
            self.horde.tick(&mut HordeContext {
                tick: Tick(self.tick),
                level: &self.level,
                bodies: &self.bodies,
                robots: &self.robots,
                kinds: self.kinds,
                world: &mut self.world,
                damage: &mut Vec::new(),
                bolts: &mut self.bolts,
                round: &mut self.round,
            });
        }
    }

    fn enemies(&self) -> Vec<(EntityId, Enemy)> {
        let of = |entity| Some((entity, self.world.state(self.kinds.enemy, entity)?));
        self.world.entities().filter_map(of).collect()
    }

    fn hit(&mut self, enemy: EntityId, part: u16) -> muse_biobot::enemies::HitOutcome {
        let hit = EnemyHit {
            enemy,
            slot: 0,
            damage: 14,
            part,
            point: Vec3::ZERO,
            tick: Tick(self.tick),
        };
        self.horde.handle_hit(&mut self.world, self.kinds, &hit)
    }
}

/// A floor with a wall across, a way around it, and a platform that hides from below who stands on it.
fn walled(enemies: &str) -> Level {
    let text = format!(
        r#"{{ "name": "Yard", "mode": "cooperative", "slots": 2, "kill_below": -9,
        "spawns": [ {{ "at": [0, 0.02, 20] }} ],
        "solids": [ {{ "min": [-30, -1, -30], "max": [30, 0, 30] }},
            {{ "min": [-20, 0, -1], "max": [20, 5, 0] }},
            {{ "min": [-30, 0, 4], "max": [-16, 2, 18] }} ],
        "enemies": [ {enemies} ] }}"#
    );
    Level::parse(&text).expect("the yard is whole")
}

#[test]
fn they_approach_while_something_is_between_and_fire_when_nothing_is() {
    for (species, range) in [("tank", 22.0), ("cat", 14.0)] {
        let enemies =
            format!(r#"{{ "species": "{species}", "at": [0, 0.02, -15], "group": "it" }}"#);
        let mut yard = Yard::new(walled(&enemies), 1, 1, &[[0.0, 0.0, 15.0]]);
        let wall = |at: Vec3| at.z < 0.0 && at.x.abs() < 20.0;
        for _ in 0..1_500 {
            yard.run(1);
            let at = Vec3::from(yard.enemies()[0].1.position);
            if wall(at) {
                let eye = at + Vec3::Y * 0.6;
                let robot = Vec3::new(0.0, 0.9, 15.0);
                let sees = yard.level.collision().sees(eye, robot, &[]);
                assert!(
                    yard.bolts.is_empty() || sees,
                    "{species} fires through a wall"
                );
            }
        }
        let at = Vec3::from(yard.enemies()[0].1.position);
        let far = at.distance(Vec3::new(0.0, 0.0, 15.0));
        assert!(far <= range + 6.0, "{species} stays at {at}");
        assert!(yard.bolts.len() >= 3, "{species} fires");
        let speed = Vec3::from(yard.bolts[0].velocity).length();
        assert!(speed > 10.0 && speed < 30.0);
    }
}

#[test]
fn a_cat_follows_onto_a_platform_and_a_tank_does_not() {
    for (species, follows) in [("cat", true), ("tank", false)] {
        let enemies =
            format!(r#"{{ "species": "{species}", "at": [10, 0.02, 20], "group": "it" }}"#);
        let mut yard = Yard::new(walled(&enemies), 1, 1, &[[-23.0, 2.0, 11.0]]);
        let mut leapt = false;
        let mut highest = 0.0_f32;
        for _ in 0..2_000 {
            yard.run(1);
            let enemy = &yard.enemies()[0].1;
            leapt |= enemy.stance == Stance::Jump;
            highest = highest.max(enemy.position[1]);
        }
        assert_eq!(leapt, follows, "{species}");
        assert_eq!(highest > 1.9, follows, "{species}: {highest}");
    }
}

#[test]
fn who_is_hit_enough_dies_and_its_group_is_cleared() {
    let enemies = r#"{ "species": "cat", "at": [10, 0.02, 20], "group": "cats" }"#;
    let mut hits = [0; 3];
    for difficulty in 0..3_u8 {
        let mut yard = Yard::new(walled(enemies), 1, difficulty, &[[0.0, 0.0, 15.0]]);
        yard.run(2);
        let (cat, _) = yard.enemies()[0];
        assert!(!yard.horde.is_cleared("cats"));
        let killed = loop {
            let outcome = yard.hit(cat, 0);
            hits[usize::from(difficulty)] += 1;
            if outcome.killed {
                break outcome;
            }
        };
        assert!(killed.points > 0 && yard.horde.is_cleared("cats"));
        assert_eq!(yard.hit(cat, 0).damage, 0, "the dead are not hit");
        let shots = yard.bolts.len();
        yard.run(100);
        assert!(yard.enemies().is_empty(), "it is gone");
        assert_eq!(yard.bolts.len(), shots, "and does not fire");
    }
    assert!(hits[0] < hits[1] && hits[1] < hits[2], "{hits:?}");
}

#[test]
fn matches_differ_by_seed_and_repeat_by_it() {
    let play = |seed: u64| {
        // Somebody walks through the rooms in which swarms may appear.
        let mut yard = Yard::new(Level::escape(), seed, 1, &[[0.0, 0.0, -25.0]]);
        let mut seen = Vec::new();
        for at in [[0.0, 0.0, -25.0], [0.0, 0.0, -46.0], [0.0, 0.0, -94.0]] {
            yard.robots[0].robot.position = at;
            yard.run(700);
            let wasps = yard
                .enemies()
                .into_iter()
                .filter(|(_, enemy)| enemy.species == Species::Wasp);
            seen.push(
                wasps
                    .map(|(_, enemy)| format!("{:?}", enemy.position))
                    .collect::<Vec<_>>(),
            );
        }
        (seen, yard.bolts.len())
    };
    assert_eq!(play(3), play(3));
    let counts: BTreeSet<Vec<usize>> = (0..12)
        .map(|seed| play(seed).0.iter().map(Vec::len).collect())
        .collect();
    assert!(counts.len() > 3, "{counts:?}");
}

#[test]
fn the_boss_is_struck_by_two_hits_within_half_a_second_only() {
    let at = [[100.0, 0.0, -92.0], [100.0, 0.0, -104.0]];
    let mut yard = Yard::new(Level::escape(), 1, 1, &at);
    yard.run(2);
    let boss = |yard: &Yard| {
        let mut all = yard.enemies().into_iter();
        all.find(|(_, enemy)| enemy.species == Species::Boss)
    };
    let (entity, _) = boss(&yard).expect("it is there");
    let open = |yard: &mut Yard| {
        for _ in 0..2_000 {
            yard.run(1);
            if boss(yard).is_some_and(|(_, enemy)| enemy.stance == Stance::Chase) {
                return;
            }
        }
        panic!("it never opens");
    };
    open(&mut yard);
    assert_eq!(yard.hit(entity, 0).damage, 0, "its body is armour");
    assert!(yard.hit(entity, 1).critical);
    yard.run(26);
    assert!(yard.hit(entity, 2).critical);
    let whole = boss(&yard).expect("it is there").1.health;
    assert_eq!(whole, 100, "one after the other is not at the same time");
    yard.run(30);
    let strikes = yard.level.boss.as_ref().expect("it has one").strikes;
    for strike in 1..=strikes {
        open(&mut yard);
        yard.hit(entity, 1);
        let outcome = yard.hit(entity, 2);
        assert!(outcome.points > 0);
        assert_eq!(outcome.killed, strike == strikes);
        assert_eq!(yard.hit(entity, 1).damage, 0, "it reels, or is dead");
    }
    assert!(yard.horde.is_cleared("boss"));
}

#[test]
fn the_boss_shows_what_it_will_do() {
    let at = [[100.0, 0.0, -92.0], [100.0, 0.0, -104.0]];
    let mut yard = Yard::new(Level::escape(), 5, 2, &at);
    let mut charging = 0;
    for _ in 0..6_000 {
        let before = yard.bolts.len();
        yard.run(1);
        let owner = yard.bolts.last().map(|bolt| bolt.owner);
        let enemies = yard.enemies();
        let boss = enemies
            .iter()
            .find(|(_, enemy)| enemy.species == Species::Boss);
        let (entity, boss) = boss.expect("it is there");
        let fired = yard.bolts.len() > before && owner == Some(entity.bits());
        assert!(
            !fired || charging >= 50,
            "after {charging} ticks of charging"
        );
        match boss.stance {
            Stance::Fire => charging += 1,
            _ => charging = 0,
        }
    }
    assert!(yard.bolts.len() > 50);
}
