//! The models that a coder has learnt from the rows before.

use muse_wire::range::{BitModel, NibbleModel};

use super::lanes::Lanes;
use super::mix::Mixer;
use super::plan::{Item, Plan, Predictor};
use super::references::Factors;

/// The models learnt from the rows coded so far; encoder and decoder keep one each and start alike.
///
/// [`RowCoder::models`](super::RowCoder::models) makes one that knows nothing. Before each packet both sides call either
/// [`RowCoder::reset`](super::RowCoder::reset), which makes every packet stand for itself, or [`copy_from`](Self::copy_from) with the models as
/// they were after a packet that the receiver has for certain, which is smaller: what was learnt is not learnt again.
/// Neither allocates, but for once, when rows that mostly stay as they are first need the larger models. Then comes [`start_packet`](Self::start_packet).
///
/// A row that turned out too long for its packet is taken back by copying: keep a second `Models`, and `copy_from` in
/// either direction, but only near the end of the packet, where the next row may not fit.
#[derive(Clone, Debug)]
pub struct Models {
    /// Per column in the order of coding, for what is quick.
    pub(super) columns: Box<[ColumnModels]>,
    /// Models of whether a row changed, by how the two before did.
    pub(super) changed: [BitModel; 4],
    /// For what is thorough.
    pub(super) mixer: Mixer,
    pub(super) recent: Recent,
    pub(super) factors: Factors,
    /// The predictions that follow from factors and predictors for a whole row.
    pub(super) lanes: Lanes,
    /// One bit for each of the last 32 rows, set if it changed, the latest in the lowest bit.
    pub(super) history: u32,
    /// Rows coded, to take turns by.
    pub(super) turn: u32,
    /// The column that was judged last.
    judged: u16,
    /// Columns coded per row on average, in 1/65,536: see [`Models::is_dense`].
    pub(super) load: u32,
    /// The row coded last.
    pub(super) last: Box<[i32]>,
    /// The row being coded.
    pub(super) row: Box<[i32]>,
    /// True for each column of the row being coded that exists.
    pub(super) exists: Box<[bool]>,
    /// By how much each column of the row being coded was mispredicted; for a decoder, what the references say of it.
    pub(super) errors: Box<[i32]>,
}

/// The models of one column.
#[derive(Clone, Debug)]
pub(super) struct ColumnModels {
    /// By the age of the baseline.
    pub(super) numbers: [NumberModel; AGES],
    /// Equal or not; for flags by the value before.
    pub(super) equal: [BitModel; 2],
    pub(super) symbol: NibbleModel,
    pub(super) predictor: Predictor,
    /// The bits that each predictor's error has lately had, in 1/256.
    scores: [u16; Predictor::ALL.len()],
}

/// A model of the size of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberModel {
    pub(super) head: NibbleModel,
    /// The mean, in 1/16.
    mean: u32,
    /// The number of low bits that are coded without a model.
    low_bits: u8,
}

/// Rows that changed and were coded earlier in this packet.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// The places of the rows, three numbers each.
    places: Box<[[i32; 3]]>,
    /// By how much each column changed and was mispredicted.
    rows: Box<[[i32; 2]]>,
    width: usize,
    count: usize,
    /// The row that was found last.
    nearest: Option<usize>,
}

impl Models {
    pub(super) fn new(plan: &Plan) -> Self {
        let new = |item: &Item| ColumnModels::new(item.predictor);
        Self {
            columns: plan.items.iter().map(new).collect(),
            changed: [BitModel::new(); 4],
            mixer: Mixer::new(super::sparse::weight_sets(plan.width)),
            recent: Recent {
                places: vec![[0; 3]; RECENT_MAX].into_boxed_slice(),
                rows: vec![[0; 2]; RECENT_MAX * plan.width].into_boxed_slice(),
                width: plan.width,
                count: 0,
                nearest: None,
            },
            factors: Factors::NONE,
            lanes: Lanes::new(plan),
            history: 0,
            turn: 0,
            judged: 0,
            load: LOAD_START,
            last: plan.items_at_rest(),
            row: vec![0; plan.width].into_boxed_slice(),
            exists: vec![true; plan.width].into_boxed_slice(),
            errors: vec![0; plan.width].into_boxed_slice(),
        }
    }

    /// Forgets everything: as it was made for this coder.
    pub(super) fn reset(&mut self, plan: &Plan) {
        for (item, models) in plan.items.iter().zip(&mut self.columns) {
            models.reset(item.predictor);
            self.last[usize::from(item.column)] = item.rest();
        }
        self.changed = [BitModel::new(); 4];
        self.mixer.reset();
        self.lanes.forget();
        self.turn = 0;
        self.judged = 0;
        self.load = LOAD_START;
        self.start_packet();
    }

    /// Becomes a copy of models of the same coder.
    ///
    /// # Panics
    /// If they belong to a coder of another number of columns.
    pub fn copy_from(&mut self, other: &Self) {
        self.columns.clone_from_slice(&other.columns);
        self.changed = other.changed;
        self.mixer.copy_from(&other.mixer);
        self.recent.copy_from(&other.recent);
        self.factors = other.factors;
        self.lanes.forget();
        self.history = other.history;
        self.turn = other.turn;
        self.judged = other.judged;
        self.load = other.load;
        self.last.copy_from_slice(&other.last);
    }

    /// Memory of a copy, in bytes: what it costs to keep the models of one packet. Before rows that mostly stay as they are
    /// have been coded, it is a few kilobytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.columns)
            + self.mixer.bytes()
            + self.recent.bytes()
            + 4 * size_of_val(&*self.last)
            + size_of::<Self>()
    }

    /// Forgets what only matters within a packet. Both sides call it at the start of each.
    pub fn start_packet(&mut self) {
        self.recent.count = 0;
        self.history = 0;
    }

    /// The row that was coded last.
    pub(super) fn last(&self) -> &[i32] {
        &self.last
    }

    /// Takes a row to be coded.
    #[inline]
    pub(super) fn take(&mut self, row: &[i32]) {
        // Rows are too short for a call to be worth while.
        for (own, value) in self.row.iter_mut().zip(row) {
            *own = *value;
        }
    }

    /// Notes whether a column of the row being coded exists, and says so. One that does not is 0.
    pub(super) fn admit(&mut self, item: &Item) -> bool {
        item.admit(&mut self.row, &mut self.exists)
    }

    /// The row being coded has been.
    #[inline]
    pub(super) fn keep_last(&mut self) {
        std::mem::swap(&mut self.last, &mut self.row);
    }

    /// True if so much changes that the quick way must be used.
    ///
    /// The thorough way costs some ten times as much per column. So it is taken where few columns are coded per row on average,
    /// because most rows stay as they are, and the cost of a row is bounded on average whatever the game does.
    #[inline]
    pub(super) fn is_dense(&self) -> bool {
        self.load > LOAD_DENSE
    }

    /// The rank of the column whose predictors are compared in this row, if any. Columns take turns, so that rows pay little.
    #[inline]
    pub(super) fn judged(&mut self, plan: &Plan) -> Option<usize> {
        let apart = if self.turn < TURNS_EARLY {
            TURNS_APART_EARLY
        } else {
            TURNS_APART
        };
        if !self.turn.is_multiple_of(apart) || plan.judged.is_empty() {
            return None;
        }
        self.judged += 1;
        if usize::from(self.judged) >= plan.judged.len() {
            self.judged = 0;
        }
        Some(usize::from(plan.judged[usize::from(self.judged)]))
    }

    /// True if this row's numbers change their models, which after many rows is not worth its time in each.
    #[inline]
    pub(super) const fn learns(&self) -> bool {
        self.turn < TURNS_EARLY || self.turn.is_multiple_of(TURNS_LEARNT)
    }

    /// Counts a row with so many coded columns.
    #[inline]
    pub(super) fn count_row(&mut self, columns: u32) {
        self.turn = self.turn.wrapping_add(1) | self.turn & TURNS_EARLY;
        let columns = columns.min(COLUMNS_COUNTED);
        self.load = self.load - self.load / LOAD_ROWS + columns * (LOAD_UNIT / LOAD_ROWS);
    }
}

impl Plan {
    fn items_at_rest(&self) -> Box<[i32]> {
        let mut row = vec![0; self.width];
        for item in &self.items {
            row[usize::from(item.column)] = item.rest();
        }
        row.into_boxed_slice()
    }
}

impl Item {
    /// The legal value nearest to zero.
    fn rest(&self) -> i32 {
        0.clamp(self.min, self.max)
    }
}

impl ColumnModels {
    fn new(predictor: Predictor) -> Self {
        let mut models = Self {
            numbers: [NumberModel::NEW; AGES],
            equal: [BitModel::new(); 2],
            symbol: NibbleModel::new(),
            predictor,
            scores: [0; Predictor::ALL.len()],
        };
        models.reset(predictor);
        models
    }

    fn reset(&mut self, predictor: Predictor) {
        self.numbers = [NumberModel::NEW; AGES];
        self.equal = [BitModel::new(); 2];
        self.symbol = const { NibbleModel::new() };
        self.predictor = predictor;
        self.scores = [SCORE_START + 128; Predictor::ALL.len()];
        self.scores[predictor as usize] = SCORE_START;
    }

    /// Notes by how much each predictor was wrong, and takes the best from now on. Whether that is another than before.
    pub(super) fn judge(&mut self, errors: [i32; Predictor::ALL.len()]) -> bool {
        let mut best = self.predictor;
        for (score, error) in self.scores.iter_mut().zip(errors) {
            let bits = error.unsigned_abs().saturating_add(1).ilog2() * 256;
            *score = (i32::from(*score) + ((bits as i32 - i32::from(*score)) >> 3)) as u16;
        }
        for predictor in Predictor::ALL {
            if self.scores[predictor as usize] + SCORE_MARGIN < self.scores[best as usize] {
                best = predictor;
            }
        }
        std::mem::replace(&mut self.predictor, best) != best
    }
}

impl NumberModel {
    const NEW: Self = Self {
        head: NibbleModel::falling(),
        mean: 2 << 4,
        low_bits: 0,
    };

    /// Returns the number of low bits that are coded without a model: updated when something is learnt, because that happens less often.
    #[inline(always)]
    pub(super) const fn low_bits(&self) -> u32 {
        self.low_bits as u32
    }

    #[inline(always)]
    pub(super) fn learn(&mut self, value: u32) {
        let goal = (value.min(VALUE_MAX) << 4) as i32;
        self.mean = (self.mean as i32 + ((goal - self.mean as i32) >> 4)) as u32;
        // The mean is less than 2^17 by this.
        self.low_bits = (self.mean >> 5 | 1).ilog2() as u8;
    }
}

impl Recent {
    fn bytes(&self) -> usize {
        size_of_val(&*self.places) + size_of_val(&*self.rows)
    }

    pub(super) fn copy_from(&mut self, other: &Self) {
        let count = other.count.min(RECENT_MAX);
        self.places[..count].copy_from_slice(&other.places[..count]);
        self.rows[..count * self.width].copy_from_slice(&other.rows[..count * self.width]);
        self.count = other.count;
    }

    /// Keeps a row; the one kept longest goes, if there are too many.
    pub(super) fn push(&mut self, place: [i32; 3], changes: impl Iterator<Item = [i32; 2]>) {
        let index = self.count % RECENT_MAX;
        self.places[index] = place;
        let start = index * self.width;
        for (kept, change) in self.rows[start..start + self.width].iter_mut().zip(changes) {
            *kept = change;
        }
        self.count += 1;
    }

    /// Looks for the row nearest to a place and says how near it is on a coarse scale, 0 if there is none.
    pub(super) fn find(&mut self, place: [i32; 3]) -> u32 {
        let distance = |other: &[i32; 3]| -> u64 {
            (0..3)
                .map(|axis| {
                    let apart = u64::from(other[axis].abs_diff(place[axis]).min(1 << 30));
                    apart * apart
                })
                .sum()
        };
        let count = self.count.min(RECENT_MAX);
        let found = self.places[..count]
            .iter()
            .enumerate()
            .map(|(index, other)| (distance(other), index))
            .min();
        self.nearest = found.map(|(_, index)| index);
        found.map_or(0, |(distance, _)| 1 + (distance | 1).ilog2() / 2)
    }

    /// Changes and errors, per column, of the row that was found.
    #[inline]
    pub(super) fn nearest_row(&self) -> Option<&[[i32; 2]]> {
        self.nearest.map(|index| {
            let start = index * self.width;
            &self.rows[start..start + self.width]
        })
    }
}

/// Classes of the baseline's age.
pub(super) const AGES: usize = 5;
/// Rows that are kept to find the nearest in.
const RECENT_MAX: usize = 64;
/// So many rows compare predictors often, because little is known yet.
const TURNS_EARLY: u32 = 32;
/// After how many rows predictors of a column are compared, early and late.
const TURNS_APART_EARLY: u32 = 4;
const TURNS_APART: u32 = 32;
/// After how many rows it is learnt how large numbers are, once early rows are over.
const TURNS_LEARNT: u32 = 8;
/// Over how many rows the load is averaged.
const LOAD_ROWS: u32 = 1_024;
const LOAD_UNIT: u32 = 1 << 16;
/// More columns per row on average are too many for the thorough way.
const LOAD_DENSE: u32 = 2 * LOAD_UNIT;
/// Rows count as having no more columns than this, so that sums fit.
const COLUMNS_COUNTED: u32 = 1_024;
/// Starts just above dense: a stream in which few rows change shows it soon, and if not, little was lost.
const LOAD_START: u32 = LOAD_DENSE + LOAD_UNIT / 64;
/// Numbers count as no larger than this, so that no more than 16 bits are left to chance.
const VALUE_MAX: u32 = 1 << 17;
const SCORE_START: u16 = 2 * 256;
/// By how much another predictor must be better.
const SCORE_MARGIN: u16 = 16;
