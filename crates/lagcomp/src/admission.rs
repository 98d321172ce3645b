//! Chooses the instant that a shot is judged at: what the client claims, bounded by what the server knows of it.

use muse_netcode::{Claim, Shooter, Tick, TickTime};
use muse_wire::Duration;

use super::config::RewindConfig;

/// An instant at which a shot may be judged; made by [`Rewind::admit`](crate::Rewind::admit) and
/// [`Rewind::present`](crate::Rewind::present) only.
///
/// ```
/// # use muse_netcode::{Tick, TickTime};
/// use muse_lagcomp::{Claim, Rewind, RewindConfig, Shooter};
/// use muse_wire::Duration;
/// # let mut rewind = Rewind::new(RewindConfig::new(50));
/// # rewind.advance(Tick(110))?;
/// let known = Shooter { rtt: Duration::from_millis(90), ..Shooter::default() };
/// let admission = rewind.admit(Claim::at(TickTime::from_ticks(105.5)), &known);
/// assert_eq!(admission.at(), TickTime::from_ticks(105.5));
/// assert_eq!(admission.age(), Duration::from_millis(90));
/// assert_eq!(rewind.present().age(), Duration::ZERO);
/// # Ok::<(), muse_lagcomp::RewindError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Admission {
    pub(super) moment: Moment,
    pub(super) age: Duration,
    pub(super) verdict: Verdict,
}

impl Admission {
    /// The instant at which targets are looked at.
    pub fn at(&self) -> TickTime {
        self.moment.at
    }

    /// The time since then.
    pub fn age(&self) -> Duration {
        self.age
    }

    /// The verdict on the claim.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }
}

/// The verdict on a claimed instant.
///
/// ```
/// # use muse_netcode::{Tick, TickTime};
/// use muse_lagcomp::{Claim, Rewind, RewindConfig, Shooter, Verdict};
/// use muse_wire::Duration;
/// # let mut rewind = Rewind::new(RewindConfig::new(50));
/// # rewind.advance(Tick(110))?;
/// // 20 ticks ago: what this client sees is honest, and older than the limit of 250 ms.
/// let slow = Shooter { rtt: Duration::from_millis(400), ..Shooter::default() };
/// let admission = rewind.admit(Claim::at(TickTime::from_ticks(90.0)), &slow);
/// assert_eq!(admission.verdict(), Verdict::Late);
/// assert_eq!(admission.at(), TickTime::from(Tick(110)));
/// # Ok::<(), muse_lagcomp::RewindError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It is what the server expected of this client.
    Granted,
    /// The client can't have been shown that; the true path at the nearest instant that is plausible has taken its place. An honest client is
    /// hardly ever told so.
    Clamped,
    /// It is older than the limit: nothing is rewound, and the shooter has to lead.
    Late,
    /// It was about the present from the beginning.
    Present,
}

/// An instant, and the two ticks whose states are blended for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment {
    pub(super) at: TickTime,
    pub(super) from: Tick,
    pub(super) to: Tick,
    pub(super) share: f32,
}

impl Moment {
    /// Exactly a tick.
    pub(super) fn tick(tick: Tick) -> Self {
        Self {
            at: tick.into(),
            from: tick,
            to: tick,
            share: 0.0,
        }
    }

    /// Between two ticks that follow each other.
    pub(super) fn new(at: TickTime) -> Self {
        Self {
            at,
            from: at.tick,
            to: at.tick + 1,
            share: at.share(),
        }
    }

    /// Between two ticks further apart.
    fn between(at: TickTime, from: Tick, to: Tick) -> Self {
        let share = (at.ticks() - f64::from(from.0)) / (to - from).max(1) as f64;
        Self {
            at,
            from,
            to,
            share: share as f32,
        }
    }
}

/// Bounds a claim by what is known of the client.
pub(super) fn admit(
    config: &RewindConfig,
    now: Tick,
    claim: Claim,
    shooter: &Shooter,
) -> Admission {
    let tick = config.tick.as_micros() as f64;
    let ticks = |span: Duration| span.as_micros() as f64 / tick;
    let interpolation = shooter.interpolation.min(config.interpolation_max);
    let expected = ticks(shooter.rtt + interpolation + shooter.buffered);
    let tolerance = ticks(config.tolerance);
    let claimed = f64::from(now.0) - claim.time().ticks();
    let lowest = (expected - tolerance).max(0.0);
    let age = claimed.clamp(lowest, expected + tolerance);
    let clamped = (age - claimed).abs() > 1e-3;
    let forged = clamped || !shooter.can_have_seen(claim);
    if age > ticks(config.limit) {
        return Admission {
            moment: Moment::tick(now),
            age: Duration::ZERO,
            verdict: Verdict::Late,
        };
    }
    let at = if clamped {
        TickTime::from_ticks(f64::from(now.0) - age)
    } else {
        claim.time()
    };
    // Over a longer gap the true path counts: nobody should be hit far from everywhere they were.
    let moment = match claim.span() {
        Some((from, to)) if !forged && ticks(SPAN_MAX) >= (to - from) as f64 => {
            Moment::between(at, from, to)
        }
        _ => Moment::new(at),
    };
    Admission {
        moment,
        age: Duration::from_micros((age * tick) as u64),
        verdict: match forged {
            true => Verdict::Clamped,
            false => Verdict::Granted,
        },
    }
}

/// The longest gap between two snapshots over which a shot is judged by the straight line that the client drew.
const SPAN_MAX: Duration = Duration::from_millis(150);
