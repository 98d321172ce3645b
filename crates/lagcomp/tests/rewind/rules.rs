//! Bodies that a shot can hit: those that appear, leave, jump, move fast or ride, and nonsense.

use fastrand::Rng;
use glam::{Quat, Vec3};
use muse_lagcomp::{
    Blow, Claim, Except, Flight, HitVolume, Placement, Pose, Projectile, Rewind, RewindConfig,
    RewindError, Rig, RigId, Scope, Shooter, Shot, Volume,
};
use muse_netcode::{EntityId, Tick, TickTime};
use muse_wire::Duration;

use super::{id, record};

fn rewind(config: RewindConfig) -> (Rewind, RigId) {
    let mut rewind = Rewind::new(config);
    let sphere = HitVolume::new(Volume::Sphere { radius: 0.3 });
    let rig = rewind
        .add_rig(Rig::new([sphere]).expect("sane"))
        .expect("first");
    (rewind, rig)
}

/// True if a shot along z at `x` hits at a tick, judged at the present tick of `rewind`.
fn hits(rewind: &mut Rewind, ticks: f64, x: f32) -> bool {
    let age = (f64::from(rewind.now().0) - ticks) / 60.0;
    let known = Shooter {
        rtt: Duration::from_secs_f64(age),
        ..Shooter::default()
    };
    let admission = rewind.admit(Claim::at(TickTime::from_ticks(ticks)), &known);
    let shot = Shot::new(Vec3::new(x, 0.0, -20.0), Vec3::Z);
    rewind.hitscan(&admission, &shot, &mut ()).is_some()
}

#[test]
fn entities_are_there_between_their_first_and_last_tick() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60));
    for tick in 0..=30 {
        rewind.advance(Tick(tick)).expect("next");
        if tick == 20 {
            rewind.add(id(1), rig).expect("few");
        }
        if (20..=25).contains(&tick) {
            record(&mut rewind, id(1), Vec3::ZERO);
        }
        if tick == 26 {
            assert!(rewind.retire(id(1)));
            let more = rewind.record(id(1), Placement::new(Pose::IDENTITY));
            assert!(more.is_err());
        }
    }
    for (ticks, there) in [
        (19.9, false),
        (20.0, true),
        (25.0, true),
        (25.9, true),
        (26.1, false),
    ] {
        assert_eq!(hits(&mut rewind, ticks, 0.0), there, "{ticks}");
    }
    assert!(!hits(&mut rewind, 30.0, 0.0));
    // Forgotten once it is too long ago, and the place is free for another generation.
    rewind.advance(Tick(200)).expect("next");
    assert!(!rewind.retire(id(1)));
    let next = id(1).next_generation();
    rewind.add(next, rig).expect("few");
    record(&mut rewind, next, Vec3::ZERO);
    let unknown = rewind.record(id(1), Placement::new(Pose::IDENTITY));
    assert_eq!(unknown, Err(RewindError::UnknownEntity));
    assert!(hits(&mut rewind, 200.0, 0.0));
}

#[test]
fn nothing_is_between_the_two_ends_of_a_jump() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60));
    rewind.add(id(1), rig).expect("few");
    for tick in 0..=12 {
        rewind.advance(Tick(tick)).expect("next");
        let x = if tick < 10 { 0.0 } else { 2.0 };
        let placement = Placement::new(Pose::at(Vec3::new(x, 0.0, 0.0)));
        let placement = if tick == 10 {
            placement.jumped()
        } else {
            placement
        };
        rewind.record(id(1), placement).expect("sane");
    }
    assert!(hits(&mut rewind, 9.5, 0.0));
    assert!(!hits(&mut rewind, 9.5, 1.0));
    assert!(hits(&mut rewind, 10.0, 2.0));
}

#[test]
fn who_moved_too_far_is_judged_where_it_is() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60).displacement_max(3.0));
    rewind.add(id(1), rig).expect("few");
    for tick in 0..=60 {
        rewind.advance(Tick(tick)).expect("next");
        // A car: 30 m/s, half a metre a tick.
        record(&mut rewind, id(1), Vec3::new(tick as f32 * 0.5, 0.0, 0.0));
    }
    assert!(hits(&mut rewind, 55.0, 27.5), "two and a half metres");
    assert!(!hits(&mut rewind, 50.0, 25.0), "five metres");
    assert!(hits(&mut rewind, 50.0, 30.0), "where it is");
}

/// Two players stand still on a train that passes at 40 m/s and turns; one shoots the other.
#[test]
fn on_a_platform_only_the_way_on_it_counts() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60).displacement_max(1.0));
    let nothing = rewind.add_rig(Rig::default()).expect("few");
    let (train, shooter, target) = (id(0), id(1), id(2));
    rewind.add(train, nothing).expect("few");
    rewind.add(shooter, rig).expect("few");
    rewind.add(target, rig).expect("few");
    for tick in 0..=60 {
        rewind.advance(Tick(tick)).expect("next");
        let at = Vec3::new(tick as f32 * 0.66, 0.0, 0.0);
        let pose = Pose::new(at, Quat::from_rotation_y(tick as f32 * 0.02));
        rewind.record(train, Placement::new(pose)).expect("sane");
        for (entity, z) in [(shooter, -3.0), (target, 3.0)] {
            let pose = Pose::at(Vec3::new(0.0, 1.0, z));
            rewind
                .record(entity, Placement::new(pose).on(train))
                .expect("sane");
        }
    }
    let known = Shooter {
        rtt: Duration::from_millis(150),
        ..Shooter::default()
    };
    let admission = rewind.admit(Claim::at(TickTime::from_ticks(51.3)), &known);
    let shot = Shot::new(Vec3::new(0.0, 1.0, -3.0), Vec3::Z).on(train);
    let hit = rewind
        .hitscan(&admission, &shot, &mut Except(shooter))
        .expect("straight ahead");
    assert_eq!((hit.entity, hit.rewound), (target, true));
    let train_then = rewind.pose(train, &admission).expect("it was there");
    assert!((train_then.position.x - 51.3 * 0.66).abs() < 1e-3);
    let where_hit = train_then.inverse_point(hit.point);
    assert!(
        (where_hit - Vec3::new(0.0, 1.0, 2.7)).length() < 1e-3,
        "{where_hit}"
    );
    // A platform on itself, on nothing, or gone: no harm.
    let own = rewind.record(train, Placement::new(Pose::IDENTITY).on(train));
    assert_eq!(own, Err(RewindError::UnknownEntity));
    let nowhere = rewind.record(target, Placement::new(Pose::IDENTITY).on(id(77)));
    assert_eq!(nowhere, Err(RewindError::UnknownEntity));
    rewind.advance(Tick(61)).expect("next");
    rewind
        .record(train, Placement::new(Pose::IDENTITY).on(target))
        .expect("allowed");
    rewind
        .record(target, Placement::new(Pose::IDENTITY).on(train))
        .expect("allowed");
    assert_eq!(rewind.pose(target, &rewind.present()), None);
    assert_eq!(rewind.hitscan(&rewind.present(), &shot, &mut ()), None);
}

#[test]
fn walls_stop_shots_and_projectiles() {
    struct Wall(f32);
    impl Scope for Wall {
        fn blocked(&mut self, from: Vec3, to: Vec3) -> Option<f32> {
            let share = (self.0 - from.z) / (to.z - from.z);
            (0.0..=1.0).contains(&share).then_some(share)
        }
    }
    let (mut rewind, rig) = rewind(RewindConfig::new(60));
    rewind.add(id(1), rig).expect("few");
    for tick in 0..=60 {
        rewind.advance(Tick(tick)).expect("next");
        record(&mut rewind, id(1), Vec3::ZERO);
    }
    let known = Shooter {
        rtt: Duration::from_millis(200),
        ..Shooter::default()
    };
    let admission = rewind.admit(Claim::at(TickTime::from_ticks(48.0)), &known);
    let shot = Shot::new(Vec3::new(0.0, 0.0, -10.0), Vec3::Z);
    assert_eq!(rewind.hitscan(&admission, &shot, &mut Wall(-1.0)), None);
    assert!(rewind.hitscan(&admission, &shot, &mut Wall(1.0)).is_some());
    let rocket = Projectile {
        position: Vec3::new(0.0, 0.0, -2.0),
        velocity: Vec3::Z * 30.0,
        acceleration: Vec3::ZERO,
        radius: 0.1,
    };
    let flight = rewind.launch(&admission, &rocket, &mut Wall(-1.0));
    assert!(matches!(flight, Flight::Blocked { point, .. } if (point.z + 1.0).abs() < 1e-4));
    let Flight::Hit(hit) = rewind.launch(&admission, &rocket, &mut Wall(1.0)) else {
        unreachable!("it flies six metres");
    };
    // 1.6 m at half a metre a tick.
    assert!((hit.at.ticks() - 51.2).abs() < 0.01, "{hit:?}");
    // In the present it has all the way before it.
    let flight = rewind.launch(&rewind.present(), &rocket, &mut ());
    assert_eq!(flight, Flight::Flying(rocket));
    let Flight::Flying(later) = rewind.fly(&rocket, &mut ()) else {
        unreachable!("half a metre");
    };
    assert!((later.position.z + 1.5).abs() < 1e-3);
}

#[test]
fn a_blow_touches_no_more_than_the_limit() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60));
    for index in 0..100 {
        rewind.add(id(index), rig).expect("few");
    }
    rewind.advance(Tick(0)).expect("first");
    for index in 0..100 {
        record(
            &mut rewind,
            id(index),
            Vec3::new(0.0, 0.0, 100.0 - index as f32),
        );
    }
    let mut hits = Vec::new();
    let blade = (Vec3::ZERO, Vec3::Z * 99.0);
    let blow = Blow {
        from: blade,
        to: blade,
        radius: 1.5,
    };
    rewind.strike(&rewind.present(), &blow, &mut (), &mut hits);
    assert_eq!(hits.len(), Rewind::HITS_MAX);
    let expected: Vec<EntityId> = (0..64).map(id).collect();
    let found: Vec<EntityId> = hits.iter().map(|hit| hit.entity).collect();
    assert_eq!(found, expected);
}

#[test]
fn nonsense_is_refused() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60).entities_max(10));
    assert_eq!(rewind.add(id(10), rig), Err(RewindError::EntityLimit));
    rewind.add(id(1), rig).expect("few");
    rewind.advance(Tick(5)).expect("first");
    assert_eq!(rewind.advance(Tick(5)), Err(RewindError::Order));
    assert_eq!(rewind.advance(Tick(4)), Err(RewindError::Order));
    for bad in [f32::NAN, f32::INFINITY, -f32::INFINITY, 1e30] {
        let position = Pose::at(Vec3::new(0.0, 0.0, bad));
        let refused = rewind.record(id(1), Placement::new(position));
        assert_eq!(refused, Err(RewindError::Pose));
        let rotation = Pose::new(Vec3::ZERO, Quat::from_xyzw(bad, 0.0, 0.0, 0.0));
        let refused = rewind.record(id(1), Placement::new(rotation));
        assert_eq!(refused, Err(RewindError::Pose));
    }
    let bones = [Pose::IDENTITY];
    let refused = rewind.record(id(1), Placement::new(Pose::IDENTITY).bones(&bones));
    assert_eq!(refused, Err(RewindError::Bones));
    record(&mut rewind, id(1), Vec3::ZERO);
    rewind.advance(Tick(u32::MAX)).expect("later");
    record(&mut rewind, id(1), Vec3::ZERO);
    assert!(rewind.pose(id(1), &rewind.present()).is_some());
}

/// Numbers of every size into every query: no panic, and a hit is always somewhere.
#[test]
fn hostile_numbers_do_no_harm() {
    let (mut rewind, rig) = rewind(RewindConfig::new(60));
    let boxes = HitVolume::new(Volume::Box {
        half: Vec3::new(0.3, 1.0, 0.3),
    });
    let boxes = rewind
        .add_rig(Rig::new([boxes]).expect("sane"))
        .expect("few");
    for index in 0..20 {
        let rig = if index % 2 == 0 { rig } else { boxes };
        rewind.add(id(index), rig).expect("few");
    }
    for tick in 0..40 {
        rewind.advance(Tick(tick)).expect("next");
        for index in 0..20 {
            let far = [0.0, 10.0, 1e3, 1e6][index as usize % 4];
            record(&mut rewind, id(index), Vec3::new(far, 0.0, index as f32));
        }
    }
    let mut rng = Rng::with_seed(9);
    let values = [
        0.0,
        -0.0,
        1e-30,
        1e-7,
        0.3,
        1.0,
        25.0,
        1e3,
        1e6,
        1e9,
        1e30,
        f32::MAX,
    ];
    let odd = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MIN_POSITIVE,
    ];
    let mut number = || match rng.u8(0..20) {
        0 => odd[rng.u32(0..4) as usize],
        _ => values[rng.u32(0..12) as usize] * if rng.bool() { 1.0 } else { -1.0 },
    };
    let mut found = 0;
    let mut hits = Vec::new();
    for _ in 0..40_000 {
        let mut vector = || Vec3::new(number(), number(), number());
        let (a, b, c, d) = (vector(), vector(), vector(), vector());
        let (x, y) = (number(), number());
        let admission = rewind.present();
        let shot = Shot::new(a, b).range(x).radius(y);
        let hit = rewind.hitscan(&admission, &shot, &mut ());
        assert!(hit.is_none_or(|hit| hit.point.is_finite() && hit.share <= 1.0));
        found += u32::from(hit.is_some());
        let projectile = Projectile {
            position: a,
            velocity: b,
            acceleration: c,
            radius: x,
        };
        let claim = Claim::at(TickTime::from_ticks(f64::from(y)));
        let rtt = Duration::from_millis(100);
        let admission = rewind.admit(
            claim,
            &Shooter {
                rtt,
                ..Shooter::default()
            },
        );
        if let Flight::Hit(hit) = rewind.launch(&admission, &projectile, &mut ()) {
            assert!(hit.point.is_finite());
            found += 1;
        }
        let blow = Blow {
            from: (a, b),
            to: (c, d),
            radius: x,
        };
        rewind.strike(&admission, &blow, &mut (), &mut hits);
        found += hits.len() as u32;
    }
    assert!(found > 100, "{found}");
}

#[test]
fn a_rig_belongs_to_its_history() {
    let mut rewind = Rewind::new(RewindConfig::new(50));
    let rig = Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })]).expect("a legal volume");
    let rig = rewind.add_rig(rig).expect("room for one");
    assert_eq!(rewind.add(EntityId::from_bits(0), rig), Ok(()));
    let mut other = Rewind::new(RewindConfig::new(50));
    assert_eq!(
        other.add(EntityId::from_bits(0), rig),
        Err(RewindError::UnknownRig)
    );
}
