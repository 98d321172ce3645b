//! Authority: who runs what, chosen for each message and for each property.
//!
//! - [`Authority::Server`]: the server runs it, and the client only asks; near enough and not too often.
//! - [`Authority::Validated`]: the client runs it, and the server checks it within a tolerance: speed, range, rate,
//!   distance, once in the air.
//! - [`Authority::Forwarded`]: the server passes it on unseen; not too large and not too often.
//!
//! Undeclared proposals are refused. Those that fail are dropped and counted, so that cheats are seen and never reach another
//! player: [`Referee::report`] tells how often, of which kind and by how much.

mod limits;
mod report;

use std::collections::BTreeMap;

use glam::Vec3;
use muse_wire::Instant;

use crate::{ClientId, EntityId};
use limits::State;

pub use limits::{Authority, ProposalLimits};
pub use report::{RefereeReport, Violation};

/// Judges what clients propose: what they ask for, and what they say has happened.
///
/// Declare authorities, [`join`](Self::join) clients, say what they [`own`](Self::own) and where it begins
/// ([`correct`](Self::correct)), then [`judge`](Self::judge) everything that arrives.
///
/// ```
/// use glam::Vec3;
/// use muse_netcode::authority::{Authority, Judgement, ProposalLimits, Proposal, Referee, Subject, Value, Violation};
/// use muse_netcode::{ClientId, EntityId};
/// use muse_wire::Instant;
///
/// const OPEN_DOOR: Subject = Subject::Message(4);
/// const POSITION: Subject = Subject::Property(0);
/// let mut referee = Referee::new()
///     .with(OPEN_DOOR, Authority::Server(ProposalLimits::new().reach(2.0)))
///     .with(POSITION, Authority::Validated(ProposalLimits::new().speed(6.0)));
///
/// let (client, body) = (ClientId(1), EntityId::from_bits(9));
/// referee.join(client);
/// referee.own(client, body);
/// referee.correct(Instant::ZERO, client, POSITION, body, Value::Place(Vec3::ZERO));
///
/// let later = Instant::from_millis(100);
/// let walk = Proposal::new(POSITION, body).value(Value::Place(Vec3::new(0.5, 0.0, 0.0)));
/// assert_eq!(referee.judge(later, client, &walk), Judgement::Accept);
/// let teleport = Proposal::new(POSITION, body).value(Value::Place(Vec3::new(90.0, 0.0, 0.0)));
/// assert_eq!(referee.judge(later, client, &teleport), Judgement::Refuse(Violation::Speed));
/// let door = Proposal::new(OPEN_DOOR, body).between(Vec3::ZERO, Vec3::new(1.0, 0.0, 1.0));
/// assert_eq!(referee.judge(later, client, &door), Judgement::Run);
/// ```
#[derive(Debug, Default)]
pub struct Referee {
    authorities: BTreeMap<Subject, Authority>,
    clients: BTreeMap<ClientId, Record>,
}

/// The thing that an authority is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A message, by its id.
    Message(u16),
    /// A property of entities, as the game numbers them.
    Property(u16),
}

/// A request or a statement of a client about one entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposal {
    subject: Subject,
    entity: EntityId,
    value: Value,
    between: Option<(Vec3, Vec3)>,
}

impl Proposal {
    /// About an entity of the client: who acts, or whose property it is.
    pub fn new(subject: Subject, entity: EntityId) -> Self {
        Self {
            subject,
            entity,
            value: Value::None,
            between: None,
        }
    }

    /// Sets the proposed value.
    pub fn value(mut self, value: Value) -> Self {
        self.value = value;
        self
    }

    /// Sets the place of the entity, as the server knows it, and the place where it claims to act: a lever, or the muzzle it shoots from.
    pub fn between(mut self, actor: Vec3, target: Vec3) -> Self {
        self.between = Some((actor, target));
        self
    }

    /// True if every number in it is finite and of a sane size.
    fn is_finite(&self) -> bool {
        let number = |value: f32| value.abs() <= NUMBER_MAX;
        let place = |place: Vec3| place.to_array().into_iter().all(number);
        let value = match self.value {
            Value::None | Value::Bytes(_) => true,
            Value::Number(value) => number(value),
            Value::Place(value) => place(value),
        };
        value
            && self
                .between
                .is_none_or(|(actor, target)| place(actor) && place(target))
    }
}

/// The value of a proposal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Something happens: a jump, a shot.
    None,
    /// A number.
    Number(f32),
    /// A position.
    Place(Vec3),
    /// So many bytes, for what is passed on unseen.
    Bytes(usize),
}

/// The decision about a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The server runs it.
    Run,
    /// The client ran it, and it is so.
    Accept,
    /// It is passed on.
    Forward,
    /// It is dropped; it has been counted.
    Refuse(Violation),
}

/// Everything that is known of a client.
#[derive(Debug, Default)]
struct Record {
    owned: Vec<EntityId>,
    /// In the order of what they are about.
    states: Vec<((Subject, EntityId), State)>,
    report: RefereeReport,
}

impl Referee {
    /// Clients at a time; more are not admitted.
    pub const CLIENTS_MAX: usize = 4_096;
    /// Entities that a client owns.
    pub const OWNED_MAX: usize = 256;
    /// Subjects of one client whose past is remembered.
    pub const STATES_MAX: usize = 1_024;

    /// Makes a referee that allows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses who has authority over a message or a property.
    pub fn with(mut self, subject: Subject, authority: Authority) -> Self {
        self.authorities.insert(subject, authority);
        self
    }

    /// A client has come. False when there are too many.
    pub fn join(&mut self, client: ClientId) -> bool {
        if self.clients.len() >= Self::CLIENTS_MAX && !self.clients.contains_key(&client) {
            return false;
        }
        self.clients.insert(client, Record::default());
        true
    }

    /// A client has gone; this was its report.
    pub fn leave(&mut self, client: ClientId) -> Option<RefereeReport> {
        self.clients.remove(&client).map(|record| record.report)
    }

    /// An entity belongs to a client. False when the client is unknown or owns too many.
    pub fn own(&mut self, client: ClientId, entity: EntityId) -> bool {
        let Some(record) = self.clients.get_mut(&client) else {
            return false;
        };
        if !record.owned.contains(&entity) {
            if record.owned.len() >= Self::OWNED_MAX {
                return false;
            }
            record.owned.push(entity);
        }
        true
    }

    /// An entity belongs to a client no longer; what was known of it is forgotten.
    pub fn disown(&mut self, client: ClientId, entity: EntityId) {
        if let Some(record) = self.clients.get_mut(&client) {
            record.owned.retain(|owned| *owned != entity);
            record.states.retain(|((_, known), _)| *known != entity);
        }
    }

    /// The server sets a property: where it begins, a teleport, a correction. False when there is no such client, the
    /// value is not a number, or too much is remembered of the client.
    pub fn correct(
        &mut self,
        now: Instant,
        client: ClientId,
        subject: Subject,
        entity: EntityId,
        value: Value,
    ) -> bool {
        let sane = Proposal::new(subject, entity).value(value).is_finite();
        let Some(record) = self.clients.get_mut(&client).filter(|_| sane) else {
            return false;
        };
        let Some(state) = record.state(subject, entity, now) else {
            return false;
        };
        state.set(now, value);
        true
    }

    /// An action that is allowed once may happen again: the player has landed.
    pub fn release(&mut self, client: ClientId, subject: Subject, entity: EntityId) {
        if let Some(record) = self.clients.get_mut(&client)
            && let Ok(at) = record.find(subject, entity)
        {
            record.states[at].1.release();
        }
    }

    /// The value that was accepted or set last: what a client is told that has gone astray.
    pub fn value(&self, client: ClientId, subject: Subject, entity: EntityId) -> Option<Value> {
        let record = self.clients.get(&client)?;
        let at = record.find(subject, entity).ok()?;
        record.states[at].1.value()
    }

    /// Judges what a client proposes, and counts it.
    pub fn judge(&mut self, now: Instant, client: ClientId, proposal: &Proposal) -> Judgement {
        let Some(record) = self.clients.get_mut(&client) else {
            return Judgement::Refuse(Violation::Stranger);
        };
        let verdict = match self.authorities.get(&proposal.subject) {
            Some(authority) => record.verdict(now, authority, proposal),
            None => Err((Violation::Undeclared, 1.0)),
        };
        match verdict {
            Ok(judgement) => {
                record.report.count_allowed();
                judgement
            }
            Err((violation, excess)) => {
                record.report.count(now, violation, excess);
                Judgement::Refuse(violation)
            }
        }
    }

    /// Returns the counts of a client so far.
    pub fn report(&self, client: ClientId) -> Option<&RefereeReport> {
        Some(&self.clients.get(&client)?.report)
    }

    /// Clients of whose proposals at least this share was refused, of at least `proposals`.
    pub fn suspects(
        &self,
        share: f64,
        proposals: u64,
    ) -> impl Iterator<Item = (ClientId, &RefereeReport)> {
        let reports = self
            .clients
            .iter()
            .map(|(client, record)| (*client, &record.report));
        reports.filter(move |(_, report)| {
            report.proposals() >= proposals && report.share_refused() >= share
        })
    }
}

impl Record {
    /// Decides about a proposal: what to do, or the violation and how many times beyond the limit it is.
    fn verdict(
        &mut self,
        now: Instant,
        authority: &Authority,
        proposal: &Proposal,
    ) -> Result<Judgement, (Violation, f32)> {
        if !proposal.is_finite() {
            return Err((Violation::NotANumber, 1.0));
        }
        if !self.owned.contains(&proposal.entity) {
            return Err((Violation::NotTheOwner, 1.0));
        }
        let state = self.state(proposal.subject, proposal.entity, now);
        let state = state.ok_or((Violation::TooMany, 1.0))?;
        authority.check(state, now, proposal.value, proposal.between)
    }

    fn find(&self, subject: Subject, entity: EntityId) -> Result<usize, usize> {
        self.states
            .binary_search_by_key(&(subject, entity), |(key, _)| *key)
    }

    /// The past of a subject, made when it is needed first; `None` when there are too many.
    fn state(&mut self, subject: Subject, entity: EntityId, now: Instant) -> Option<&mut State> {
        let at = match self.find(subject, entity) {
            Ok(at) => at,
            Err(_) if self.states.len() >= Referee::STATES_MAX => return None,
            Err(at) => {
                self.states.insert(at, ((subject, entity), State::new(now)));
                at
            }
        };
        Some(&mut self.states[at].1)
    }
}

/// Larger numbers mean nothing in single precision.
const NUMBER_MAX: f32 = 1e9;
