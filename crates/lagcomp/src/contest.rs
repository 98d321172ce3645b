//! Shot behind cover: a hit is provisional for a moment, the victim may object, and the server looks for itself.

use glam::Vec3;
use muse_wire::Duration;

use super::admission::Moment;
use super::query::{Hit, Scope};
use super::{Rewind, find};
use muse_netcode::{EntityId, Tick};

/// Hits that are not final yet.
///
/// Give each hit to [`open`](Self::open) and tell the victim of it if it gives an id; give its objection to
/// [`contest`](Self::contest); and [`poll`](Self::poll) each tick for hits against which none came.
///
/// ```
/// # use glam::Vec3;
/// # use muse_lagcomp::{Claim, Hit, HitVolume, Placement, Pose, Rewind, RewindConfig, RewindError, Rig, Shooter, Shot, Volume};
/// # use muse_netcode::{EntityId, Tick, TickTime};
/// use muse_wire::Duration;
/// # /// A shot at a target as it was 4.5 ticks before tick 110.
/// # fn fire() -> Result<(Rewind, Hit), RewindError> {
/// #     let mut rewind = Rewind::new(RewindConfig::new(50));
/// #     let rig = rewind.add_rig(Rig::new([HitVolume::new(Volume::Sphere { radius: 0.5 })])?)?;
/// #     rewind.add(EntityId::from_bits(2), rig)?;
/// #     for tick in 100..=110 {
/// #         rewind.advance(Tick(tick))?;
/// #         rewind.record(EntityId::from_bits(2), Placement::new(Pose::at(Vec3::Z * 20.0)))?;
/// #     }
/// #     let known = Shooter { rtt: Duration::from_millis(90), ..Shooter::default() };
/// #     let admission = rewind.admit(Claim::at(TickTime::from_ticks(105.5)), &known);
/// #     let hit = rewind.hitscan(&admission, &Shot::new(Vec3::ZERO, Vec3::Z), &mut ()).expect("it was there");
/// #     Ok((rewind, hit))
/// # }
/// use muse_lagcomp::Contests;
/// # fn main() -> Result<(), RewindError> {
/// # let (mut rewind, hit) = fire()?;
/// let mut contests = Contests::default();
/// assert!(contests.open(&rewind, &hit, Duration::from_millis(50)).is_some());
/// assert_eq!(contests.poll(rewind.now()), None);
/// // The victim had 100 ms to object and did not: the hit is final.
/// rewind.advance(rewind.now() + 6)?;
/// assert_eq!(contests.poll(rewind.now()), Some(hit));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Contests {
    /// In the order in which they were opened.
    open: Vec<Contest>,
    next: u32,
}

/// A hit that is not final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContestId(pub u32);

/// The reason for which an objection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContestError {
    /// There is no such hit, or it is final by now.
    #[error("no such open hit")]
    Closed,
    /// Another was hit.
    #[error("the hit is on another entity")]
    NotTheVictim,
}

#[derive(Clone, Copy, Debug)]
struct Contest {
    id: ContestId,
    hit: Hit,
    judged: Tick,
    deadline: Tick,
}

impl Contests {
    /// Hits that are open at a time; beyond it they are final at once.
    pub const OPEN_MAX: usize = 256;
    /// The longest round trip of a victim that may object: a bad link is no armour.
    pub const VICTIM_RTT_MAX: Duration = Duration::from_millis(150);

    /// A hit was judged in the present tick of `rewind`. Returns the id under which the victim may object, or `None` if the hit is
    /// final at once. So is a hit on what was not rewound, for the victim was where it was hit.
    pub fn open(&mut self, rewind: &Rewind, hit: &Hit, victim_rtt: Duration) -> Option<ContestId> {
        let is_final =
            !hit.rewound || victim_rtt > Self::VICTIM_RTT_MAX || self.open.len() >= Self::OPEN_MAX;
        if is_final {
            return None;
        }
        let window = (victim_rtt + GRACE).min(WINDOW_MAX);
        let id = ContestId(self.next);
        self.next = self.next.wrapping_add(1);
        self.open.push(Contest {
            id,
            hit: *hit,
            judged: rewind.now(),
            deadline: rewind.now() + ticks(rewind, window),
        });
        Some(id)
    }

    /// The victim says that it was in cover since a tick. The server believes it when at every tick from then until the
    /// hit was judged, and for long enough, `scope` says that the world was between the shooter and every volume of
    /// the victim. What the victim claims is only where to look. Returns the hit if it stands, which is final then, and `None` if
    /// there was none.
    pub fn contest(
        &mut self,
        rewind: &Rewind,
        id: ContestId,
        victim: EntityId,
        covered_since: Tick,
        scope: &mut impl Scope,
    ) -> Result<Option<Hit>, ContestError> {
        let found = self.open.iter().position(|contest| contest.id == id);
        let at = found.filter(|at| rewind.now() <= self.open[*at].deadline);
        let at = at.ok_or(ContestError::Closed)?;
        if self.open[at].hit.entity != victim {
            return Err(ContestError::NotTheVictim);
        }
        // One objection for each hit, whatever comes of it.
        let contest = self.open.remove(at);
        let cover = ticks(rewind, COVER_MIN);
        let early = covered_since + cover <= contest.judged;
        // Before the instant that the shooter saw, cover proves nothing: the shot did not fly then.
        let after = covered_since >= contest.hit.at.tick;
        let hit = contest.hit;
        let covered =
            early && after && was_covered(rewind, &hit, covered_since, contest.judged, scope);
        Ok((!covered).then_some(hit))
    }

    /// The next hit against which nobody objected in time: it is final.
    pub fn poll(&mut self, now: Tick) -> Option<Hit> {
        let over = self
            .open
            .iter()
            .position(|contest| contest.deadline < now)?;
        Some(self.open.remove(over).hit)
    }
}

/// True if the world was between the origin of a shot and its victim at every tick.
fn was_covered(
    rewind: &Rewind,
    hit: &Hit,
    since: Tick,
    until: Tick,
    scope: &mut impl Scope,
) -> bool {
    let Some(track) = find(&rewind.tracks, hit.entity) else {
        return false;
    };
    (since.0..=until.0)
        // The claim is the client's, the work is ours.
        .take(rewind.ticks() as usize)
        .all(|tick| {
            let mut covered = true;
            let known = rewind.centres(track, &Moment::tick(Tick(tick)), |centre: Vec3| {
                covered = covered && scope.blocked(hit.origin, centre).is_some();
            });
            known && covered
        })
}

fn ticks(rewind: &Rewind, span: Duration) -> u32 {
    let ticks = span.as_micros().div_ceil(rewind.config.tick.as_micros());
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// Time before the hit was judged for which the victim must have been in cover.
const COVER_MIN: Duration = Duration::from_millis(50);
/// Time that a victim may take to object, besides its round trip.
const GRACE: Duration = Duration::from_millis(50);
/// Longest time that a hit stays provisional.
const WINDOW_MAX: Duration = Duration::from_millis(250);
