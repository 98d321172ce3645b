//! The weapons: a table of constants, and where shots go.

use glam::{Vec2, Vec3};
use muse::netcode::Tick;

/// The way in which a weapon hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// At once, along a line.
    Hitscan,
    /// Something flies.
    Projectile,
}

/// A weapon.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weapon {
    /// Its name.
    pub name: &'static str,
    /// The way in which it hits.
    pub sort: Sort,
    /// The damage of one pellet to health.
    pub damage: u8,
    /// Pellets of one shot.
    pub pellets: u8,
    /// The angle by which pellets stray, in radians; aiming down the sights makes it a third.
    pub spread: f32,
    /// Rounds of a magazine.
    pub magazine: u8,
    /// Ticks from one shot to the next.
    pub interval_ticks: u16,
    /// Ticks that reloading takes.
    pub reload_ticks: u16,
    /// The angle to which a shot throws it up, in milliradians.
    pub kick: u8,
    /// Its range.
    pub range: f32,
    /// Metres a second of what flies.
    pub speed: f32,
    /// The radius of the explosion of what flies; 0 for none.
    pub blast: f32,
    /// The radius of what flies.
    pub radius: f32,
}

/// The four weapons: blaster, launcher, scatter, and the hidden rail.
pub const TABLE: [Weapon; WEAPONS] = [
    Weapon {
        name: "blaster",
        sort: Sort::Hitscan,
        damage: 14,
        pellets: 1,
        spread: 0.012,
        magazine: 24,
        interval_ticks: 8,
        reload_ticks: 60,
        kick: 22,
        range: 90.0,
        speed: 0.0,
        blast: 0.0,
        radius: 0.0,
    },
    Weapon {
        name: "launcher",
        sort: Sort::Projectile,
        damage: 70,
        pellets: 1,
        spread: 0.0,
        magazine: 4,
        interval_ticks: 40,
        reload_ticks: 110,
        kick: 60,
        range: 120.0,
        speed: 30.0,
        blast: 3.0,
        radius: 0.15,
    },
    Weapon {
        name: "scatter",
        sort: Sort::Hitscan,
        damage: 9,
        pellets: 8,
        spread: 0.075,
        magazine: 6,
        interval_ticks: 35,
        reload_ticks: 90,
        kick: 80,
        range: 30.0,
        speed: 0.0,
        blast: 0.0,
        radius: 0.0,
    },
    Weapon {
        name: "rail",
        sort: Sort::Hitscan,
        damage: 90,
        pellets: 1,
        spread: 0.0,
        magazine: 3,
        interval_ticks: 75,
        reload_ticks: 130,
        kick: 120,
        range: 120.0,
        speed: 0.0,
        blast: 0.0,
        radius: 0.05,
    },
];

/// The weapon of a number; numbers that no weapon has are the first one's.
pub fn weapon(number: u8) -> &'static Weapon {
    let index = usize::from(number.saturating_sub(1));
    TABLE.get(index).unwrap_or(&TABLE[0])
}

/// Returns the direction of a look.
pub fn direction(yaw: f32, pitch: f32) -> Vec3 {
    let (sin_yaw, cos_yaw) = (libm::sinf(yaw), libm::cosf(yaw));
    let (sin_pitch, cos_pitch) = (libm::sinf(pitch), libm::cosf(pitch));
    Vec3::new(-sin_yaw * cos_pitch, sin_pitch, -cos_yaw * cos_pitch)
}

/// Yaw and pitch of a direction, the other way round.
pub fn angles(direction: Vec3) -> (f32, f32) {
    let flat = Vec2::new(direction.x, direction.z).length();
    let yaw = libm::atan2f(-direction.x, -direction.z);
    (yaw, libm::atan2f(direction.y, flat))
}

/// Returns the directions of a shot's pellets: rolled from tick and slot, so that both sides roll the same.
pub fn pellets(
    number: u8,
    (yaw, pitch): (f32, f32),
    aiming: f32,
    (tick, slot): (Tick, u8),
) -> impl Iterator<Item = Vec3> {
    let weapon = weapon(number);
    let spread = weapon.spread * (1.0 - aiming * (2.0 / 3.0));
    let seed = u64::from(tick.0) << 8 | u64::from(slot) << 4 | u64::from(number);
    let mut rng = fastrand::Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    (0..weapon.pellets).map(move |_| {
        if spread <= 0.0 {
            return direction(yaw, pitch);
        }
        let turn = rng.f32() * std::f32::consts::TAU;
        // The square root spreads them evenly over the disc.
        let far = libm::sqrtf(rng.f32()) * spread;
        direction(yaw + far * libm::cosf(turn), pitch + far * libm::sinf(turn))
    })
}

/// Returns the gravity of something that flies, in metres a second squared.
pub const fn bolt_gravity(weapon: u8) -> f32 {
    match weapon {
        2 => 4.0,
        _ => 0.0,
    }
}

/// Weapons there are.
pub const WEAPONS: usize = 4;
/// Bolts from this number on are fired by enemies: species [`Tank`](crate::Species::Tank) first.
pub const ENEMY_BOLT: u8 = 8;
/// Milliradians of recoil that go away in a tick.
pub const KICK_DECAY: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn angles_and_directions_are_inverse() {
        for (yaw, pitch) in [(0.0, 0.0), (1.0, 0.5), (-2.5, -1.2), (3.0, 1.5)] {
            let (back, up) = angles(direction(yaw, pitch));
            assert!((back - yaw).abs() < 1e-4 && (up - pitch).abs() < 1e-4);
        }
        assert!((direction(0.0, 0.0) - Vec3::NEG_Z).length() < 1e-6);
        assert!((direction(std::f32::consts::FRAC_PI_2, 0.0) - Vec3::NEG_X).length() < 1e-6);
    }

    #[test]
    fn both_sides_roll_the_same_pellets() {
        let roll =
            |tick, slot| -> Vec<Vec3> { pellets(3, (0.3, 0.1), 0.0, (Tick(tick), slot)).collect() };
        assert_eq!(roll(77, 1).len(), 8);
        assert_eq!(roll(77, 1), roll(77, 1));
        assert_ne!(roll(77, 1), roll(78, 1));
        assert_ne!(roll(77, 1), roll(77, 2));
    }

    #[test]
    fn aiming_brings_pellets_together() {
        let ahead = direction(0.0, 0.0);
        let far = |aiming: f32| {
            (0..200)
                .flat_map(|tick| pellets(3, (0.0, 0.0), aiming, (Tick(tick), 0)))
                .map(|pellet| pellet.distance(ahead))
                .fold(0.0_f32, f32::max)
        };
        assert!(far(1.0) < far(0.0) * 0.4);
        assert!(far(0.0) < 0.076);
    }
}
