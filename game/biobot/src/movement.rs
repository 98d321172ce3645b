//! Movement of the robots: by the server from what players press, or by players themselves while the server checks.
//!
//! If players move themselves, every command says where the robot is after it. The server believes that as long as the rules could have
//! led there: no faster than robots run, with 20 % of tolerance and half a second to catch up; not through what stands; no higher than a jump
//! from the ground leads, and standing only where there is something to stand on. What fails is dropped and counted, and the robot stays where it
//! was: with a new life, so that what the player has sent meanwhile, which went on from elsewhere, counts no more.

use glam::Vec3;
use muse::netcode::authority::{
    Authority, Judgement, Proposal, ProposalLimits, Referee, Subject, Value,
};
use muse::netcode::{ClientId, EntityId, Tick};
use muse::schema::Schema;
use muse::wire::Instant;
use serde::{Deserialize, Serialize};

use crate::cheats::Offence;
use crate::collision::{Body, Collision, HULL};
use crate::command::Place;
use crate::mover::{FALL_MAX, GRAVITY, JUMP_SPEED, RUN_SPEED, STEP_HEIGHT};
use crate::states::{Robot, SLOTS_MAX};
use crate::{TICK, TICK_SECONDS};

/// The side that moves the robots.
#[derive(Schema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movement {
    /// The server, by what players press; they predict it. Nothing can be claimed, and late inputs lead to corrections.
    #[default]
    Server,
    /// Players say where they are and the server checks it. Costs a player's link more, and is never corrected for what came late; a
    /// cheat can stay within the tolerance.
    Validated,
}

/// Judges where players say that their robots are.
#[derive(Debug)]
pub(crate) struct Validator {
    referee: Referee,
    robots: [Track; SLOTS_MAX],
    refused: Vec<(u8, Offence)>,
}

/// The knowledge of a robot that moves itself.
#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// The life in which it was judged last.
    lives: Option<u8>,
    /// The distance that it has been carried.
    carried: Vec3,
    /// The height from which it has left the ground, the tick, and how fast a jump rises from there; 0 for who only falls.
    base: f32,
    left: u32,
    rise: f32,
}

/// The obstacles of a robot at a tick.
pub(crate) struct Ground<'a> {
    pub tick: Tick,
    pub collision: &'a Collision,
    pub bodies: &'a [Body],
    pub moved: &'a [Vec3],
}

impl Validator {
    pub(crate) fn new() -> Self {
        let limits = ProposalLimits::new().speed(RUN_SPEED);
        let mut referee = Referee::new().with(ALONG, Authority::Validated(limits));
        for slot in 0..SLOTS_MAX as u32 {
            referee.join(ClientId(slot));
            referee.own(ClientId(slot), body(slot as u8));
        }
        Self {
            referee,
            robots: [Track::default(); SLOTS_MAX],
            refused: Vec::new(),
        }
    }

    /// True if a robot can be where it says.
    pub(crate) fn admits(&mut self, robot: &Robot, place: &Place, ground: &Ground<'_>) -> bool {
        let slot = usize::from(robot.slot).min(SLOTS_MAX - 1);
        let track = self.track(robot, ground);
        let verdict = self.judge(robot, place, ground, &track);
        self.robots[slot] = track;
        if let Err(offence) = verdict {
            // It stays where it was, in another life; from there it can only fall, wherever that is.
            self.robots[slot] = Track {
                lives: Some(robot.lives.wrapping_add(1)),
                base: robot.position[1],
                left: ground.tick.0,
                ..Track::default()
            };
            self.set_place(robot, ground.tick);
            if self.refused.len() < REFUSED_MAX {
                self.refused.push((robot.slot, offence));
            }
        }
        verdict.is_ok()
    }

    /// A robot makes a step by the rules: what carries it, and whether it stands, is known of the next place that it says.
    pub(crate) fn follow(&mut self, robot: &Robot, ground: &Ground<'_>) {
        let slot = usize::from(robot.slot).min(SLOTS_MAX - 1);
        self.robots[slot] = self.track(robot, ground);
    }

    /// Returns the knowledge of a robot that is like this before a tick.
    fn track(&mut self, robot: &Robot, ground: &Ground<'_>) -> Track {
        let slot = usize::from(robot.slot).min(SLOTS_MAX - 1);
        let mut track = self.robots[slot];
        if track.lives != Some(robot.lives) {
            track = Track {
                lives: Some(robot.lives),
                base: robot.position[1],
                left: ground.tick.0,
                ..Track::default()
            };
            // It was put there in the tick before.
            self.set_place(robot, ground.tick.back(1));
        }
        let carrier = ground.carrier(robot.standing);
        let moved = carrier.map_or(Vec3::ZERO, |(_, moved)| moved);
        track.carried += moved;
        if robot.standing > 0 {
            let lift = (moved.y / TICK_SECONDS).max(0.0);
            (track.base, track.left) = (robot.position[1], ground.tick.0);
            track.rise = JUMP_SPEED + lift;
        }
        track
    }

    /// Returns the claims that were refused since this was called last.
    pub(crate) fn take_refused(&mut self) -> Vec<(u8, Offence)> {
        std::mem::take(&mut self.refused)
    }

    fn judge(
        &mut self,
        robot: &Robot,
        place: &Place,
        ground: &Ground<'_>,
        track: &Track,
    ) -> Result<(), Offence> {
        let (from, to) = (robot.feet(), Vec3::from(place.position));
        let along = Vec3::new(1.0, 0.0, 1.0);
        let value = Value::Place((to - track.carried) * along);
        let proposal = Proposal::new(ALONG, body(robot.slot)).value(value);
        let client = ClientId(robot.slot.into());
        let verdict = self.referee.judge(time(ground.tick), client, &proposal);
        if verdict != Judgement::Accept {
            return Err(Offence::TooFast);
        }
        if !ground.is_free(from, to) {
            return Err(Offence::ThroughWalls);
        }
        check_height(place, ground, track, from, to)
    }

    fn set_place(&mut self, robot: &Robot, tick: Tick) {
        let along = robot.feet() * Vec3::new(1.0, 0.0, 1.0);
        let value = Value::Place(along);
        let client = ClientId(robot.slot.into());
        self.referee
            .correct(time(tick), client, ALONG, body(robot.slot), value);
    }
}

impl Ground<'_> {
    /// The body that carries who stands so, and how far it moved in this tick.
    fn carrier(&self, standing: u8) -> Option<(&Body, Vec3)> {
        let device = usize::from(standing).checked_sub(2)?;
        let mut all = self.bodies.iter().zip(self.moved);
        let found = all.find(|(body, _)| body.device == device);
        found.map(|(body, moved)| (body, *moved))
    }

    /// True if nothing stands between two places, nor where it leads.
    fn is_free(&self, from: Vec3, to: Vec3) -> bool {
        let chest = Vec3::Y * HULL.y;
        let inside = self.collision.overlaps(to + chest, HULL * 0.8);
        !inside && self.collision.sees(from + chest, to + chest, self.bodies)
    }

    /// True if there is something to stand on.
    fn carries(&self, feet: Vec3) -> bool {
        let (above, below) = (feet + Vec3::Y * 0.5, feet - Vec3::Y * STEP_HEIGHT);
        let flat = HULL * Vec3::new(1.0, 0.0, 1.0);
        let corners = [Vec3::ZERO, flat, -flat, flat * TURNED, -flat * TURNED];
        let stands = |corner: &Vec3| {
            !self
                .collision
                .sees(above + *corner, below + *corner, self.bodies)
        };
        corners.iter().any(stands)
    }
}

/// Not higher than a jump leads, not faster than things fall, and on the ground only where there is some.
fn check_height(
    place: &Place,
    ground: &Ground<'_>,
    track: &Track,
    from: Vec3,
    to: Vec3,
) -> Result<(), Offence> {
    if place.standing > 0 {
        return match ground.carries(to) {
            true => Ok(()),
            false => Err(Offence::Flight),
        };
    }
    let seconds = ground.tick.0.saturating_sub(track.left) as f32 * TICK_SECONDS;
    let speed = track.rise * TOLERANCE;
    // As after a jump, with some tolerance.
    let way = speed * seconds - GRAVITY * seconds * seconds / 2.0;
    let slack = if track.rise > 0.0 { STEP_HEIGHT } else { GRID };
    let highest = track.base + way + slack;
    let fastest = FALL_MAX * TOLERANCE * CATCH_UP_SECONDS;
    match to.y <= highest && from.y - to.y <= fastest {
        true => Ok(()),
        false => Err(Offence::Flight),
    }
}

/// Returns the place of a robot after a step, as a command says it.
pub(crate) fn place_of(robot: &Robot) -> Place {
    Place {
        position: robot.position,
        velocity: robot.velocity,
        standing: robot.standing,
        lives: robot.lives,
    }
}

fn time(tick: Tick) -> Instant {
    Instant::ZERO + TICK * u64::from(tick.0)
}

fn body(slot: u8) -> EntityId {
    EntityId::from_bits(u32::from(slot))
}

/// Along the ground; the height is judged apart.
const ALONG: Subject = Subject::Property(0);
/// The factor by which a player may rise or fall faster than the rules allow.
const TOLERANCE: f32 = 1.2;
const CATCH_UP_SECONDS: f32 = 0.5;
/// The error of rounding.
const GRID: f32 = 0.02;
/// From one pair of a hull's corners to the other.
const TURNED: Vec3 = Vec3::new(-1.0, 0.0, 1.0);
/// Refusals that wait to be taken.
const REFUSED_MAX: usize = 256;
