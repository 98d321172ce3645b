//! The layout of a frame: everything to draw at one moment, as one flat array of 32-bit floats, which a Worker hands to its page without
//! a copy. `game/web/src/frame.ts` has the same numbers; a test compares them.
//!
//! | floats | what |
//! | --- | --- |
//! | 0 to 23 | the header, [`header`] |
//! | then | sections of records, in the order of [`SECTIONS`]; the header says where each begins and how many records it has |
//!
//! The records: [`robot`], [`enemy`], [`device`], [`bolt`], [`effect`], [`round`], [`net`], [`ball`]. Each module lists its fields as places within a
//! record and ends with its `STRIDE`. Numbers that name something (entities, ticks) stay below 2^24 and are exact.

mod effects;
mod layout;
mod write;

pub use self::effects::Happenings;
pub use self::layout::{
    LAYOUT_VERSION, SECTIONS, ball, bolt, device, effect, effect_kind, enemy, flags, header, net,
    robot, round,
};
pub use self::write::{Connection, write};

/// A frame being written.
#[derive(Debug)]
pub struct Floats {
    floats: Vec<f32>,
}

impl Floats {
    /// A frame with nothing but its header.
    pub fn new() -> Self {
        let mut floats = Vec::with_capacity(CAPACITY);
        floats.resize(header::LEN, 0.0);
        floats[header::VERSION] = LAYOUT_VERSION as f32;
        floats[header::OWN_RECORD] = -1.0;
        Self { floats }
    }

    /// Writes a field of the header.
    pub fn set(&mut self, place: usize, value: f32) {
        self.floats[place] = value;
    }

    /// Writes a section: each record is given to `fill` as zeros.
    pub fn section<T>(
        &mut self,
        section: usize,
        records: impl IntoIterator<Item = T>,
        mut fill: impl FnMut(&mut [f32], T),
    ) {
        let (_, stride) = SECTIONS[section];
        let begin = self.floats.len();
        let mut count = 0;
        for record in records.into_iter().take(RECORDS_MAX) {
            let at = self.floats.len();
            self.floats.resize(at + stride, 0.0);
            fill(&mut self.floats[at..], record);
            count += 1;
        }
        self.floats[header::SECTIONS + 2 * section] = begin as f32;
        self.floats[header::SECTIONS + 2 * section + 1] = count as f32;
    }

    /// The whole frame.
    pub fn finish(mut self) -> Vec<f32> {
        self.floats[header::LENGTH] = self.floats.len() as f32;
        self.floats
    }
}

impl Default for Floats {
    fn default() -> Self {
        Self::new()
    }
}

/// Most records of a section.
const RECORDS_MAX: usize = 512;
/// Floats of an ordinary frame.
const CAPACITY: usize = 2_048;
