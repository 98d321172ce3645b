//! The kinds of state: declared alike by server and clients, compared by hash.

use std::any::TypeId;
use std::marker::PhantomData;

use muse_schema::{Columns, State};
use thiserror::Error;

use crate::coder::RowCoder;
use crate::world::{MAIN, PARTS_MAX};

/// The kinds of state that are replicated, and how long states serve as baselines.
///
/// ```
/// use muse_netcode::{Audience, KindOptions, Kinds};
/// use muse_schema::State;
///
/// #[derive(State, Clone)]
/// struct Seen { health: u8 }
/// #[derive(State, Clone)]
/// struct Own { ammunition: u16 }
///
/// let declare = || {
///     let mut kinds = Kinds::new();
///     let seen = kinds.register::<Seen>(KindOptions::new(1)).expect("a new id");
///     let own = kinds.register::<Own>(KindOptions::new(2).part(Audience::Owner)).expect("a new id");
///     (kinds, seen, own)
/// };
/// let (server, ..) = declare();
/// let (client, ..) = declare();
/// assert_eq!(server.describe(), client.describe());
/// ```
#[derive(Clone, Debug)]
pub struct Kinds {
    list: Vec<Declared>,
    parts: u8,
    tick_rate: f64,
}

impl Kinds {
    /// Makes an empty list: no kinds yet, 60 ticks a second, and baselines up to 64 ticks old.
    pub const fn new() -> Self {
        Self {
            list: Vec::new(),
            parts: 1,
            tick_rate: TICK_RATE_DEFAULT,
        }
    }

    /// Sets the ticks per second, 60 by default: so far a declared velocity moves its field in a tick.
    #[must_use]
    pub fn with_tick_rate(mut self, ticks_per_second: f64) -> Self {
        self.tick_rate = ticks_per_second;
        for kind in &mut self.list {
            kind.coder = RowCoder::new(&kind.columns, ticks_per_second);
        }
        self
    }

    /// Returns the rate of [`with_tick_rate`](Self::with_tick_rate).
    pub const fn tick_rate(&self) -> f64 {
        self.tick_rate
    }

    /// Returns for how many ticks a state can serve others as a baseline. It should cover the longest round trip; beyond it states travel
    /// whole. Costs the server that many copies of all rows and the client as many of those it sees.
    pub const fn history(&self) -> u32 {
        HISTORY
    }

    /// Declares a kind. Only the order of parts matters; the hash tells when it differs.
    pub fn register<S: State>(&mut self, options: KindOptions) -> Result<Kind<S>, KindError> {
        let columns = Columns::of::<S>();
        let typed = Typed {
            id: TypeId::of::<S>(),
            differ: rows_differ::<S>,
        };
        let id = self.declare(S::TYPE.to_string(), columns, options, typed)?;
        Ok(Kind {
            id,
            state: PhantomData,
        })
    }

    fn declare(
        &mut self,
        description: String,
        columns: Columns,
        options: KindOptions,
        typed: Typed,
    ) -> Result<KindId, KindError> {
        if self.list.iter().any(|kind| kind.options.id == options.id) {
            return Err(KindError::DuplicateId(options.id));
        }
        if self.list.len() == KINDS_MAX {
            return Err(KindError::TooMany);
        }
        if columns.len() > COLUMNS_MAX {
            return Err(KindError::TooWide(columns.len()));
        }
        let part = match options.part {
            None => MAIN,
            Some(_) if usize::from(self.parts) == PARTS_MAX => return Err(KindError::TooManyParts),
            Some(_) => {
                self.parts += 1;
                self.parts - 1
            }
        };
        let id = KindId {
            id: options.id,
            place: self.list.len() as u16,
        };
        let is_plain = columns.iter().all(|column| column.guard.is_none());
        let bounds = columns.iter().map(|column| [column.min, column.max]);
        self.list.push(Declared {
            id,
            width: columns.len(),
            part,
            coder: RowCoder::new(&columns, self.tick_rate),
            bounds: is_plain.then(|| bounds.collect()),
            columns,
            description,
            options,
            typed,
        });
        Ok(id)
    }

    /// Returns all declarations, a line each: two sides whose lines differ do not understand each other.
    pub fn describe(&self) -> String {
        let mut lines: Vec<String> = self.list.iter().map(Declared::line).collect();
        lines.sort();
        lines.push(format!("history {} rate {}", HISTORY, self.tick_rate));
        lines.join("\n")
    }

    /// Returns the kind that was declared for this type; `None` if there is none, or if several were.
    pub fn of<S: State>(&self) -> Option<Kind<S>> {
        let description = S::TYPE.to_string();
        let mut found = self
            .list
            .iter()
            .filter(|kind| kind.description == description);
        let (first, second) = (found.next()?, found.next());
        second.is_none().then_some(Kind {
            id: first.id,
            state: PhantomData,
        })
    }

    /// Returns the number of kinds.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The kind of this id, for code that works with rows.
    pub fn find(&self, id: u16) -> Option<KindId> {
        self.list
            .iter()
            .map(|kind| kind.id)
            .find(|kind| kind.id == id)
    }

    /// The columns of a kind.
    pub fn columns(&self, kind: KindId) -> Option<&Columns> {
        Some(&self.kind(kind)?.columns)
    }

    /// The kinds that are simulated together with players, besides the players' own.
    pub(crate) fn predicted(&self, players: KindId) -> impl Iterator<Item = KindId> + '_ {
        let predicted = self.list.iter().filter(|kind| kind.is_predicted());
        let predicted = predicted.map(|kind| kind.id);
        predicted.filter(move |kind| *kind != players)
    }

    /// True if states of this kind are of this type.
    pub(crate) fn is<S: State>(&self, kind: KindId) -> bool {
        self.at(kind.place()).typed.id == TypeId::of::<S>()
    }

    /// The first main kind of a type of state.
    pub(crate) fn main_of(&self, state: TypeId) -> Option<KindId> {
        let is_its = |kind: &&Declared| kind.typed.id == state && kind.part == MAIN;
        Some(self.list.iter().find(is_its)?.id)
    }

    /// True if two states of a kind differ beyond the tolerance of their fields.
    pub(crate) fn differ(&self, kind: KindId, one: &[i32], other: &[i32]) -> bool {
        one != other && (self.at(kind.place()).typed.differ)(one, other)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Declared> {
        self.list.iter()
    }

    #[inline]
    pub(crate) fn kind(&self, kind: KindId) -> Option<&Declared> {
        self.list
            .get(kind.place())
            .filter(|declared| declared.id == kind)
    }

    /// The kind at a place, without asking for its id.
    #[inline]
    pub(crate) fn at(&self, place: usize) -> &Declared {
        &self.list[place]
    }
}

impl Default for Kinds {
    fn default() -> Self {
        Self::new()
    }
}

/// A registered kind of state.
pub struct Kind<S> {
    id: KindId,
    state: PhantomData<fn() -> S>,
}

impl<S> Kind<S> {
    /// The kind without its type.
    pub const fn id(self) -> KindId {
        self.id
    }
}

impl<S> Clone for Kind<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Kind<S> {}

impl<S> std::fmt::Debug for Kind<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kind({})", self.id.id)
    }
}

impl<S> From<Kind<S>> for KindId {
    fn from(kind: Kind<S>) -> Self {
        kind.id
    }
}

/// A kind among those of a [`Kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KindId {
    id: u16,
    /// The place in the list: differs between programs that register in another order.
    place: u16,
}

impl KindId {
    /// The declared id.
    pub const fn id(self) -> u16 {
        self.id
    }

    #[inline]
    pub(crate) const fn place(self) -> usize {
        self.place as usize
    }
}

/// The replication of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindOptions {
    id: u16,
    part: Option<Audience>,
    inputs: bool,
    predicted: bool,
}

impl KindOptions {
    /// A main kind: an entity is of one main kind at a time, and everyone who sees it gets that. Ids are the game's choice.
    pub const fn new(id: u16) -> Self {
        Self {
            id,
            part: None,
            inputs: false,
            predicted: false,
        }
    }

    /// A part that entities have besides their main state, each with its own baselines and for its own audience: it can
    /// be added and removed at any time. There can be 7 such kinds. Costs as much as another entity.
    #[must_use]
    pub const fn part(mut self, audience: Audience) -> Self {
        self.part = Some(audience);
        self
    }

    /// Makes entities of this kind carry the latest input of their player ([`World::set_input`](crate::World::set_input));
    /// off by default. Costs a fraction of a bit a row while inputs stay the same.
    #[must_use]
    pub const fn inputs(mut self) -> Self {
        self.inputs = true;
        self
    }

    /// Makes entities of this kind part of the scene that players are simulated in ([`Game::step_scene`](crate::prediction::Game::step_scene)), so that
    /// clients can predict them; off by default. The players' own kind need not say so.
    #[must_use]
    pub const fn predicted(mut self) -> Self {
        self.predicted = true;
        self
    }
}

/// The clients that get a part of an entity, among those in whose interest it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    /// Everyone.
    All,
    /// Only its owner: the full state of the own player.
    Owner,
    /// Everyone but its owner.
    Others,
}

/// The reason for which a kind cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KindError {
    /// Each kind has its own id.
    #[error("there is another kind with the id {0}")]
    DuplicateId(u16),
    /// At most [`KINDS_MAX`].
    #[error("there are more than {KINDS_MAX} kinds")]
    TooMany,
    /// At most [`PARTS_MAX`] with the main one.
    #[error("there are more than {} kinds that are parts", PARTS_MAX - 1)]
    TooManyParts,
    /// A state must fit into a packet.
    #[error("a state of {0} columns is too large, at most {COLUMNS_MAX} are possible")]
    TooWide(usize),
}

/// A kind as it was declared.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub id: KindId,
    pub width: usize,
    pub part: u8,
    pub coder: RowCoder,
    columns: Columns,
    /// Smallest and largest value per column, if all columns always exist.
    bounds: Option<Box<[[i32; 2]]>>,
    description: String,
    options: KindOptions,
    typed: Typed,
}

/// The type of a kind's states.
#[derive(Clone, Copy, Debug)]
struct Typed {
    id: TypeId,
    differ: fn(&[i32], &[i32]) -> bool,
}

fn rows_differ<S: State>(one: &[i32], other: &[i32]) -> bool {
    match (S::from_row(one), S::from_row(other)) {
        (Ok(one), Ok(other)) => one.differs(&other),
        _ => true,
    }
}

impl Declared {
    pub(crate) fn audience(&self) -> Audience {
        self.options.part.unwrap_or(Audience::All)
    }

    #[inline]
    pub(crate) const fn inputs(&self) -> bool {
        self.options.inputs
    }

    pub(crate) const fn is_predicted(&self) -> bool {
        self.options.predicted
    }

    /// Moves every value to the nearest one that its column allows.
    pub(crate) fn legalise(&self, row: &mut [i32]) {
        if let Some(bounds) = &self.bounds {
            for (value, [min, max]) in row.iter_mut().zip(bounds) {
                *value = (*value).min(*max).max(*min);
            }
            return;
        }
        for (index, column) in self.columns.iter().enumerate() {
            row[index] = if self.columns.exists(index, row) {
                row[index].clamp(column.min, column.max)
            } else {
                0
            };
        }
    }

    fn line(&self) -> String {
        let Self {
            options,
            description,
            part,
            ..
        } = self;
        let audience = match options.part {
            None => "main",
            Some(Audience::All) => "all",
            Some(Audience::Owner) => "owner",
            Some(Audience::Others) => "others",
        };
        let inputs = if options.inputs { " inputs" } else { "" };
        let predicted = if options.predicted { " predicted" } else { "" };
        let id = options.id;
        format!("{id} {audience} {part}{inputs}{predicted} {description}")
    }
}

/// Kinds that can be registered.
pub const KINDS_MAX: usize = 1_024;
/// Columns that a state can have, so that its worst encoding fits a packet.
pub const COLUMNS_MAX: usize = 160;
/// A power of two.
const HISTORY: u32 = 64;
const TICK_RATE_DEFAULT: f64 = 60.0;
