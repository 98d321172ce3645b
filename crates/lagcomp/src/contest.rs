//! Shot behind cover: a hit is provisional for a moment, the victim may object, and the server looks for itself.

use glam::Vec3;
use muse_wire::Duration;

use super::admission::Moment;
use super::query::{Hit, Scope};
use super::{Rewind, find};
use muse_netcode::{EntityId, Tick};

/// Settings of [`Contests`].
#[derive(Clone, Debug)]
pub struct ContestConfig {
    victim_rtt_max: Duration,
    cover_min: Duration,
    grace: Duration,
    window_max: Duration,
    open_max: usize,
}

impl Default for ContestConfig {
    fn default() -> Self {
        Self {
            victim_rtt_max: Duration::from_millis(150),
            cover_min: Duration::from_millis(50),
            grace: Duration::from_millis(50),
            window_max: Duration::from_millis(250),
            open_max: 256,
        }
    }
}

impl ContestConfig {
    /// A victim with a longer round trip cannot object: its hits are confirmed at once, so that a bad link is no
    /// armour. Default: 150 ms.
    pub fn victim_rtt_max(mut self, rtt: Duration) -> Self {
        self.victim_rtt_max = rtt;
        self
    }

    /// Sets how long before the hit was judged the victim must have been in cover. Default: 50 ms.
    pub fn cover_min(mut self, time: Duration) -> Self {
        self.cover_min = time;
        self
    }

    /// Sets how long a victim may think, besides its round trip; and how long in all. Hits stay provisional for as long.
    /// Default: 50 ms, and 250 ms in all.
    pub fn window(mut self, grace: Duration, max: Duration) -> Self {
        self.grace = grace;
        self.window_max = max;
        self
    }

    /// Hits that are open at a time; beyond it they are confirmed at once. Default: 256.
    pub fn open_max(mut self, hits: usize) -> Self {
        self.open_max = hits;
        self
    }
}

/// Hits that are not final yet.
///
/// Give each hit to [`open`](Self::open) and tell the victim of it if it is provisional; give its objection to
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
/// use muse_lagcomp::{ContestConfig, Contests, Decision};
/// # fn main() -> Result<(), RewindError> {
/// # let (mut rewind, hit) = fire()?;
/// let mut contests = Contests::new(ContestConfig::default());
/// let decision = contests.open(&rewind, &hit, Duration::from_millis(50));
/// assert!(matches!(decision, Decision::Provisional(_)));
/// assert_eq!(contests.poll(rewind.now()), None);
/// // The victim had 100 ms to object and did not: the hit is final.
/// rewind.advance(rewind.now() + 6)?;
/// assert_eq!(contests.poll(rewind.now()), Some(hit));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Contests {
    config: ContestConfig,
    /// In the order in which they were opened.
    open: Vec<Contest>,
    next: u32,
    counts: ContestCounts,
}

/// A hit that is not final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContestId(pub u32);

/// The decision about a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It is final.
    Confirmed,
    /// The victim is told, and may object.
    Provisional(ContestId),
}

/// The ruling on an objection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ruling {
    /// The hit stands: it is final.
    Upheld(Hit),
    /// The victim was in cover: there was no hit.
    Overturned(Hit),
}

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

/// Counts of each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContestCounts {
    /// Final at once.
    pub confirmed_at_once: u64,
    /// Final because nobody objected in time.
    pub confirmed_by_silence: u64,
    /// Objections in vain.
    pub upheld: u64,
    /// Objections that were right.
    pub overturned: u64,
    /// Objections to hits that were closed, or of others.
    pub refused: u64,
}

#[derive(Clone, Copy, Debug)]
struct Contest {
    id: ContestId,
    hit: Hit,
    judged: Tick,
    deadline: Tick,
}

impl Contests {
    /// None yet.
    pub fn new(config: ContestConfig) -> Self {
        Self {
            config,
            open: Vec::new(),
            next: 0,
            counts: ContestCounts::default(),
        }
    }

    /// A hit was judged in the present tick of `rewind`. A hit on what was not rewound is final, for the victim was
    /// where it was hit.
    pub fn open(&mut self, rewind: &Rewind, hit: &Hit, victim_rtt: Duration) -> Decision {
        let at_once = !hit.rewound
            || victim_rtt > self.config.victim_rtt_max
            || self.open.len() >= self.config.open_max;
        if at_once {
            self.counts.confirmed_at_once += 1;
            return Decision::Confirmed;
        }
        let window = (victim_rtt + self.config.grace).min(self.config.window_max);
        let id = ContestId(self.next);
        self.next = self.next.wrapping_add(1);
        self.open.push(Contest {
            id,
            hit: *hit,
            judged: rewind.now(),
            deadline: rewind.now() + ticks(rewind, window),
        });
        Decision::Provisional(id)
    }

    /// The victim says that it was in cover since a tick. The server believes it when at every tick from then until the
    /// hit was judged, and for long enough, `scope` says that the world was between the shooter and every volume of
    /// the victim. What the victim claims is only where to look.
    pub fn contest(
        &mut self,
        rewind: &Rewind,
        id: ContestId,
        victim: EntityId,
        covered_since: Tick,
        scope: &mut impl Scope,
    ) -> Result<Ruling, ContestError> {
        let found = self.open.iter().position(|contest| contest.id == id);
        let at = found.filter(|at| rewind.now() <= self.open[*at].deadline);
        let Some(at) = at else {
            self.counts.refused += 1;
            return Err(ContestError::Closed);
        };
        if self.open[at].hit.entity != victim {
            self.counts.refused += 1;
            return Err(ContestError::NotTheVictim);
        }
        // One objection for each hit, whatever comes of it.
        let contest = self.open.remove(at);
        let cover = ticks(rewind, self.config.cover_min);
        let early = covered_since + cover <= contest.judged;
        // Before the instant that the shooter saw, cover proves nothing: the shot did not fly then.
        let after = covered_since >= contest.hit.at.tick;
        let hit = contest.hit;
        if early && after && was_covered(rewind, &hit, covered_since, contest.judged, scope) {
            self.counts.overturned += 1;
            return Ok(Ruling::Overturned(hit));
        }
        self.counts.upheld += 1;
        Ok(Ruling::Upheld(hit))
    }

    /// The next hit against which nobody objected in time: it is final.
    pub fn poll(&mut self, now: Tick) -> Option<Hit> {
        let over = self
            .open
            .iter()
            .position(|contest| contest.deadline < now)?;
        self.counts.confirmed_by_silence += 1;
        Some(self.open.remove(over).hit)
    }

    /// Returns the counts of the outcomes so far.
    pub fn counts(&self) -> ContestCounts {
        self.counts
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
