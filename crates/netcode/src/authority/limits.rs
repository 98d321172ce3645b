//! Limits on clients: rates, distances, speeds and ranges.

use glam::Vec3;
use muse_wire::{Duration, Instant};

use super::{Judgement, Value, Violation};

/// The side that runs something, with the limits on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Authority {
    /// The server runs it, the client asks.
    Server(ProposalLimits),
    /// The client runs it, the server checks. Speeds, rates and distances have a tolerance.
    Validated(ProposalLimits),
    /// The server passes it on unseen.
    Forwarded(ProposalLimits),
}

/// The limits on what a client asks for, does by itself or has passed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProposalLimits {
    rate: Option<f32>,
    burst: f32,
    reach: Option<f32>,
    range: Option<(f32, f32)>,
    speed: Option<f32>,
    window: Duration,
    tolerance: f32,
    once: bool,
    bytes_max: usize,
}

impl Default for ProposalLimits {
    fn default() -> Self {
        Self::new()
    }
}

impl ProposalLimits {
    /// Anything up to 1,024 bytes, with a tolerance of 20 % for what a client does by itself.
    pub fn new() -> Self {
        Self {
            rate: None,
            burst: 2.0,
            reach: None,
            range: None,
            speed: None,
            window: Duration::from_millis(500),
            tolerance: 0.2,
            once: false,
            bytes_max: 1_024,
        }
    }

    /// So many times a second in the long run, up to 10,000: the rate of fire. Default: any time.
    pub fn rate(mut self, per_second: f32) -> Self {
        let per_second = if per_second.is_nan() { 0.0 } else { per_second };
        self.rate = Some(per_second.clamp(0.0, 10_000.0));
        self
    }

    /// So many at once after a pause, 1 to 10,000, because networks bunch what was evenly spaced. A cheater can do as many.
    /// Default: 2.
    pub fn burst(mut self, times: f32) -> Self {
        let times = if times.is_nan() { 1.0 } else { times };
        self.burst = times.clamp(1.0, 10_000.0);
        self
    }

    /// A number within these. Default: any.
    pub fn range(mut self, min: f32, max: f32) -> Self {
        self.range = Some((min, max));
        self
    }

    /// A share added to speed, rate and distance of what a client does by itself, 0 to 10. Default: 0.2.
    pub fn tolerance(mut self, share: f32) -> Self {
        let share = if share.is_nan() { 0.0 } else { share };
        self.tolerance = share.clamp(0.0, 10.0);
        self
    }

    /// Not again before [`Referee::release`](super::Referee::release): no second jump in the air. Default: no.
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }
}

muse_wire::setters! { ProposalLimits:
    /// Only this near to where the server knows the actor: a lever, the muzzle of a shot. Proposals then have to say
    /// [`between`](super::Proposal::between) what. Default: anywhere.
    reach: f32 = Some(reach),
    /// ProposalLimits how fast a place or a number changes, per second. Measured over time: a slow client may catch up for as long as
    /// [`window`](Self::window). Needs a beginning, by [`Referee::correct`](super::Referee::correct). Default: at once.
    speed: f32 = Some(speed),
    /// Sets for how long a client may have been slow and catch up. Longer forgives worse links and lets cheaters jump
    /// further. Default: 500 ms.
    window: Duration,
    /// The longest message that is passed on. Default: 1,024.
    bytes_max: usize,
}

impl Authority {
    /// Returns the judgement of a proposal within the limits, or the violation and how many times beyond the limit it is.
    pub(super) fn check(
        &self,
        state: &mut State,
        now: Instant,
        value: Value,
        between: Option<(Vec3, Vec3)>,
    ) -> Result<Judgement, (Violation, f32)> {
        let (limits, slack, judgement) = match self {
            Self::Server(limits) => (limits, 1.0, Judgement::Run),
            Self::Validated(limits) => (limits, 1.0 + limits.tolerance, Judgement::Accept),
            Self::Forwarded(limits) => (limits, 1.0, Judgement::Forward),
        };
        check_reach(limits.reach, slack, between)?;
        match (value, limits.range) {
            (Value::Number(number), Some((min, max))) if !(min..=max).contains(&number) => {
                return Err((Violation::Range, 1.0));
            }
            (Value::Bytes(bytes), _) if bytes > limits.bytes_max => {
                let excess = bytes as f32 / limits.bytes_max.max(1) as f32;
                return Err((Violation::Size, excess));
            }
            _ => {}
        }
        if limits.once && state.held {
            return Err((Violation::Again, 1.0));
        }
        let used = match limits.speed {
            Some(speed) => state.check_speed(now, value, speed * slack, limits.window)?,
            None => 0.0,
        };
        state.take(now, limits, slack)?;
        state.held = limits.once;
        if value != Value::None {
            state.budget -= used;
            state.value = Some(value);
        }
        Ok(judgement)
    }
}

/// The memory of one subject of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// The number of times it may still happen at once, and since when; `None` before the first time.
    tokens: Option<f32>,
    tokens_at: Instant,
    /// The distance that the value may still move, and since when.
    budget: f32,
    budget_at: Instant,
    value: Option<Value>,
    /// It happened, and was not released.
    held: bool,
}

impl State {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            tokens: None,
            tokens_at: now,
            budget: 0.0,
            budget_at: now,
            value: None,
            held: false,
        }
    }

    pub(super) fn value(&self) -> Option<Value> {
        self.value
    }

    /// The server says so; what could have been caught up is forfeit.
    pub(super) fn set(&mut self, now: Instant, value: Value) {
        (self.value, self.budget, self.budget_at) = (Some(value), 0.0, now);
    }

    pub(super) fn release(&mut self) {
        self.held = false;
    }

    fn take(
        &mut self,
        now: Instant,
        limits: &ProposalLimits,
        slack: f32,
    ) -> Result<(), (Violation, f32)> {
        let Some(rate) = limits.rate else {
            return Ok(());
        };
        let passed = (now - self.tokens_at).as_micros() as f32 / 1e6;
        let known = self.tokens.unwrap_or(limits.burst);
        let tokens = (known + passed * rate * slack).min(limits.burst);
        self.tokens_at = self.tokens_at.max(now);
        if tokens < 1.0 {
            self.tokens = Some(tokens);
            return Err((Violation::Rate, 1.0 / tokens.max(0.01)));
        }
        self.tokens = Some(tokens - 1.0);
        Ok(())
    }

    /// Returns the distance that the value moves, if it is within the limit.
    fn check_speed(
        &mut self,
        now: Instant,
        value: Value,
        speed: f32,
        window: Duration,
    ) -> Result<f32, (Violation, f32)> {
        let way = match (self.value, value) {
            (Some(Value::Place(from)), Value::Place(to)) => from.distance(to),
            (Some(Value::Number(from)), Value::Number(to)) => (to - from).abs(),
            _ => return Err((Violation::Undeclared, 1.0)),
        };
        let passed = (now - self.budget_at).as_micros() as f32 / 1e6;
        let most = speed * window.as_micros() as f32 / 1e6;
        self.budget = (self.budget + speed * passed).min(most);
        self.budget_at = self.budget_at.max(now);
        // Rounding alone must not refuse what moves exactly as fast as it may.
        if way <= self.budget + 1e-4 {
            Ok(way)
        } else {
            Err((Violation::Speed, way / self.budget.max(0.01)))
        }
    }
}

fn check_reach(
    reach: Option<f32>,
    slack: f32,
    between: Option<(Vec3, Vec3)>,
) -> Result<(), (Violation, f32)> {
    let Some(reach) = reach else {
        return Ok(());
    };
    // A proposal without a place could be from anywhere, so it is out of reach.
    let distance = between.map_or(f32::INFINITY, |(actor, target)| actor.distance(target));
    if distance <= reach * slack {
        Ok(())
    } else {
        Err((Violation::Distance, distance / reach.max(0.01)))
    }
}
