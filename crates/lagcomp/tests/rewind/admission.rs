//! Nobody rewinds further than allowed, whatever it claims.

use fastrand::Rng;
use glam::Vec3;
use muse_lagcomp::{Claim, HitVolume, Rewind, RewindConfig, Rig, Shooter, Shot, Verdict, Volume};
use muse_netcode::replication::AcknowledgedTicks;
use muse_netcode::{Tick, TickTime};
use muse_wire::Duration;

use super::{id, record};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// One target that runs along x at 6 m/s, 60 ticks a second, now at tick 100.
fn range() -> Rewind {
    let mut rewind = Rewind::new(RewindConfig::new(60));
    let sphere = HitVolume::new(Volume::Sphere { radius: 0.3 });
    let rig = rewind
        .add_rig(Rig::new([sphere]).expect("sane"))
        .expect("first");
    rewind.add(id(1), rig).expect("few");
    for tick in 0..=100 {
        rewind.advance(Tick(tick)).expect("next");
        record(&mut rewind, id(1), Vec3::new(tick as f32 * 0.1, 0.0, 50.0));
    }
    rewind
}

fn shooter(rtt: u64, interpolation: u64) -> Shooter {
    Shooter {
        rtt: MS(rtt),
        interpolation: MS(interpolation),
        ..Shooter::default()
    }
}

fn acknowledged(ticks: impl IntoIterator<Item = u32>) -> AcknowledgedTicks {
    let mut acknowledged = AcknowledgedTicks::default();
    for tick in ticks {
        acknowledged.insert(Tick(tick));
    }
    acknowledged
}

#[test]
fn what_is_plausible_is_granted_to_the_fraction() {
    let rewind = range();
    // 100 ms and 50 ms are nine ticks.
    for off in [-1.2, -0.3, 0.0, 0.26, 1.2] {
        let at = TickTime::from_ticks(91.0 + off);
        let admission = rewind.admit(Claim::at(at), &shooter(100, 50));
        assert_eq!(admission.verdict(), Verdict::Granted, "{off}");
        assert_eq!(admission.at(), at);
        let shot = Shot::new(Vec3::new(at.ticks() as f32 * 0.1 + 0.29, 0.0, 0.0), Vec3::Z);
        assert!(rewind.hitscan(&admission, &shot, &mut ()).is_some());
        let beside = Shot::new(Vec3::new(at.ticks() as f32 * 0.1 + 0.31, 0.0, 0.0), Vec3::Z);
        assert_eq!(rewind.hitscan(&admission, &beside, &mut ()), None);
    }
}

#[test]
fn a_hostile_client_gains_no_more_than_the_tolerance() {
    let rewind = range();
    let mut rng = Rng::with_seed(1);
    let (mut clamped, mut late) = (0, 0);
    for _ in 0..20_000 {
        let ticks = match rng.u8(0..4) {
            0 => rng.u32(..),
            1 => rng.u32(0..200),
            2 => u32::MAX - rng.u32(0..3),
            _ => 100 - rng.u32(0..30),
        };
        let at = TickTime {
            tick: Tick(ticks),
            fraction: rng.u16(..),
        };
        let claim = if rng.bool() {
            Claim::at(at)
        } else {
            Claim::between(Tick(rng.u32(..)), Tick(rng.u32(..)), at)
        };
        // The round trip is measured; the interpolation delay may be a lie.
        let known = Shooter {
            rtt: MS(rng.u64(0..400)),
            interpolation: Duration::from_micros(rng.u64(..)),
            buffered: MS(rng.u64(0..20)),
            acknowledged: acknowledged((0..100).filter(|_| rng.u8(..4) > 0)),
        };
        let admission = rewind.admit(claim, &known);
        assert!(admission.age() <= MS(250), "{admission:?}");
        let allowed = known.rtt + known.buffered + MS(150) + MS(25);
        assert!(admission.age() <= allowed, "{admission:?} {known:?}");
        let back = 100.0 - admission.at().ticks();
        assert!((0.0..=15.001).contains(&back), "{admission:?}");
        assert!(rewind.pose(id(1), &admission).is_some(), "{admission:?}");
        match admission.verdict() {
            Verdict::Clamped => clamped += 1,
            Verdict::Late => {
                late += 1;
                assert_eq!(admission.at(), Tick(100).into());
            }
            Verdict::Granted | Verdict::Present => {}
        }
    }
    assert!(clamped > 1_000 && late > 1_000, "{clamped} {late}");
}

#[test]
fn beyond_the_limit_the_shooter_leads() {
    let rewind = range();
    let claim = Claim::at(TickTime::from_ticks(82.0));
    let admission = rewind.admit(claim, &shooter(250, 50));
    assert_eq!(admission.verdict(), Verdict::Late);
    let at_then = Shot::new(Vec3::new(8.2, 0.0, 0.0), Vec3::Z);
    assert_eq!(rewind.hitscan(&admission, &at_then, &mut ()), None);
    let at_now = Shot::new(Vec3::new(10.0, 0.0, 0.0), Vec3::Z);
    let hit = rewind
        .hitscan(&admission, &at_now, &mut ())
        .expect("it led");
    assert!(!hit.rewound);
}

#[test]
fn a_client_that_interpolates_over_a_gap_is_judged_over_the_same_gap() {
    let mut rewind = Rewind::new(RewindConfig::new(60));
    let sphere = HitVolume::new(Volume::Sphere { radius: 0.1 });
    let rig = rewind
        .add_rig(Rig::new([sphere]).expect("sane"))
        .expect("first");
    rewind.add(id(1), rig).expect("few");
    for tick in 0..=100 {
        rewind.advance(Tick(tick)).expect("next");
        // Up and down every six ticks.
        let y = if tick % 6 < 3 { 0.0 } else { 1.0 };
        record(&mut rewind, id(1), Vec3::new(0.0, y, 50.0));
    }
    let at = TickTime::from_ticks(94.5);
    let seen_over_gap = Claim::between(Tick(90), Tick(96), at);
    let known = Shooter {
        acknowledged: acknowledged([60, 89, 90, 96, 97, 99]),
        ..shooter(90, 0)
    };
    let shot = Shot::new(Vec3::ZERO, Vec3::Z);
    let admission = rewind.admit(seen_over_gap, &known);
    assert_eq!(admission.verdict(), Verdict::Granted);
    assert!(rewind.hitscan(&admission, &shot, &mut ()).is_some());
    let admission = rewind.admit(Claim::at(at), &known);
    assert_eq!(rewind.hitscan(&admission, &shot, &mut ()), None);
    // A gap that does not contain the instant, that has a snapshot in it, or one that the client has not said that it has: these it was not shown.
    for (from, to) in [
        (60, 96),
        (89, 96),
        (90, 97),
        (90, 94),
        (96, 90),
        (90, 98),
        (90, 101),
        (0, 100),
    ] {
        let admission = rewind.admit(Claim::between(Tick(from), Tick(to), at), &known);
        assert_eq!(admission.verdict(), Verdict::Clamped, "{from} {to}");
        assert_eq!(
            rewind.hitscan(&admission, &shot, &mut ()),
            None,
            "{from} {to}"
        );
    }
    // A long one is possible, and judged by where the target truly was.
    let known = Shooter {
        acknowledged: acknowledged([85, 96]),
        ..known
    };
    let admission = rewind.admit(Claim::between(Tick(85), Tick(96), at), &known);
    assert_eq!(admission.verdict(), Verdict::Granted);
    assert_eq!(rewind.hitscan(&admission, &shot, &mut ()), None);
}

/// Claims between ticks that the client was never shown hit nobody where they never were.
#[test]
fn forged_gaps_never_bend_a_path() {
    let mut rewind = Rewind::new(RewindConfig::new(50));
    let sphere = HitVolume::new(Volume::Sphere { radius: RADIUS });
    let rig = rewind
        .add_rig(Rig::new([sphere]).expect("sane"))
        .expect("first");
    rewind.add(id(1), rig).expect("few");
    let path = |tick: f64| {
        let angle = (tick * 0.06) as f32;
        Vec3::new(angle.sin() * 2.0, 0.0, 20.0 + angle.cos() * 2.0)
    };
    for tick in 0..=200 {
        rewind.advance(Tick(tick)).expect("next");
        record(&mut rewind, id(1), path(f64::from(tick)));
    }
    // 100 ms away, and it has every second snapshot until then.
    let known = Shooter {
        acknowledged: acknowledged((100..=194).step_by(2)),
        ..shooter(100, 40)
    };
    let mut rng = Rng::with_seed(7);
    let (mut granted, mut forged) = (0, 0);
    for _ in 0..100_000 {
        let at = TickTime::from_ticks(193.0 + f64::from(rng.f32() - 0.5) * 2.0);
        let (from, to) = (at.tick.back(rng.u32(..32)), at.tick + rng.u32(..8));
        let admission = rewind.admit(Claim::between(from, to, at), &known);
        let even = from.0.is_multiple_of(2) && to - from == 2;
        let inside = TickTime::from(from) <= at && at <= TickTime::from(to);
        let is_honest = even && inside && to <= Tick(194);
        let expected = match is_honest {
            true => Verdict::Granted,
            false => Verdict::Clamped,
        };
        assert_eq!(admission.verdict(), expected, "{from:?} {to:?} {at:?}");
        let pose = rewind.pose(id(1), &admission).expect("it was there");
        let off = pose.position.distance(path(at.ticks()));
        assert!(off < 0.01, "{off} m off the path: {from:?} {to:?} {at:?}");
        granted += u32::from(is_honest);
        forged += u32::from(!is_honest);
    }
    assert!(granted > 200 && forged > 90_000, "{granted} {forged}");
}

const RADIUS: f32 = 0.3;
