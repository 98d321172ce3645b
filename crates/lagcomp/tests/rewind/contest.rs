//! Shot behind cover: who objects and was in cover is not hit.

use glam::Vec3;
use muse_lagcomp::{
    Claim, ContestError, Contests, Hit, HitVolume, Rewind, RewindConfig, Rig, Scope, Shooter, Shot,
    Volume,
};
use muse_netcode::{Tick, TickTime};
use muse_wire::Duration;

use super::{id, record};

/// A wall along z at x > 5, halfway to the target.
struct Wall;

impl Scope for Wall {
    fn blocked(&mut self, from: Vec3, to: Vec3) -> Option<f32> {
        let share = (25.0 - from.z) / (to.z - from.z);
        let crosses = (0.0..=1.0).contains(&share) && from.lerp(to, share).x > 5.0;
        crosses.then_some(share)
    }
}

/// The target runs at 12 m/s and is behind the wall, as seen from the shooter, after tick 50; the shot is judged at tick 60 and was
/// aimed at what it was at tick 48.
fn scene() -> (Rewind, Hit) {
    let mut rewind = Rewind::new(RewindConfig::new(60));
    let sphere = HitVolume::new(Volume::Sphere { radius: 0.3 });
    let rig = rewind
        .add_rig(Rig::new([sphere]).expect("sane"))
        .expect("first");
    rewind.add(id(1), rig).expect("few");
    for tick in 0..=60 {
        rewind.advance(Tick(tick)).expect("next");
        record(&mut rewind, id(1), Vec3::new(tick as f32 * 0.2, 0.0, 50.0));
    }
    let known = Shooter {
        rtt: Duration::from_millis(200),
        ..Shooter::default()
    };
    let admission = rewind.admit(Claim::at(TickTime::from_ticks(48.0)), &known);
    let target = Vec3::new(9.6, 0.0, 50.0);
    let shot = Shot::new(Vec3::ZERO, target);
    let hit = rewind
        .hitscan(&admission, &shot, &mut Wall)
        .expect("it was seen");
    assert!(hit.rewound);
    (rewind, hit)
}

fn provisional(contests: &mut Contests, rewind: &Rewind, hit: &Hit) -> muse_lagcomp::ContestId {
    let id = contests.open(rewind, hit, Duration::from_millis(40));
    id.expect("the victim is close")
}

#[test]
fn who_was_in_cover_is_not_hit() {
    let (rewind, hit) = scene();
    let mut contests = Contests::default();
    let contest = provisional(&mut contests, &rewind, &hit);
    let ruling = contests.contest(&rewind, contest, id(1), Tick(52), &mut Wall);
    assert_eq!(ruling, Ok(None));
    let again = contests.contest(&rewind, contest, id(1), Tick(52), &mut Wall);
    assert_eq!(again, Err(ContestError::Closed));
    assert_eq!(contests.poll(Tick(1_000)), None);
}

#[test]
fn who_was_not_is() {
    // Not yet in cover; before the shot; too short; in the future; never.
    for claimed in [49, 30, 59, 61, u32::MAX] {
        let (rewind, hit) = scene();
        let mut contests = Contests::default();
        let contest = provisional(&mut contests, &rewind, &hit);
        let ruling = contests.contest(&rewind, contest, id(1), Tick(claimed), &mut Wall);
        assert_eq!(ruling, Ok(Some(hit)), "{claimed}");
    }
    // Without a wall there is no cover.
    let (rewind, hit) = scene();
    let mut contests = Contests::default();
    let contest = provisional(&mut contests, &rewind, &hit);
    let ruling = contests.contest(&rewind, contest, id(1), Tick(52), &mut ());
    assert_eq!(ruling, Ok(Some(hit)));
}

#[test]
fn only_the_victim_may_object_and_only_in_time() {
    let (mut rewind, hit) = scene();
    let mut contests = Contests::default();
    let contest = provisional(&mut contests, &rewind, &hit);
    let other = contests.contest(&rewind, contest, id(2), Tick(52), &mut Wall);
    assert_eq!(other, Err(ContestError::NotTheVictim));
    // 40 ms and 50 ms of grace are six ticks.
    assert_eq!(contests.poll(Tick(66)), None);
    rewind.advance(Tick(67)).expect("next");
    let late = contests.contest(&rewind, contest, id(1), Tick(52), &mut Wall);
    assert_eq!(late, Err(ContestError::Closed));
    assert_eq!(contests.poll(Tick(67)), Some(hit));
    assert_eq!(contests.poll(Tick(67)), None);
}

#[test]
fn a_slow_link_is_no_armour_and_memory_is_bounded() {
    let (rewind, hit) = scene();
    let mut contests = Contests::default();
    let slow = contests.open(&rewind, &hit, Duration::from_millis(151));
    assert_eq!(slow, None);
    let in_the_present = Hit {
        rewound: false,
        ..hit
    };
    let present = contests.open(&rewind, &in_the_present, Duration::ZERO);
    assert_eq!(present, None);
    for _ in 0..Contests::OPEN_MAX {
        provisional(&mut contests, &rewind, &hit);
    }
    assert_eq!(contests.open(&rewind, &hit, Duration::ZERO), None);
}
