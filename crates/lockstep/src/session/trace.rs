//! The trace of a desynchronisation and the report that is made of two of them.

use core::fmt;

use muse_wire::bytes::{EndOfBytes, Reader};

use crate::diff::{Difference, differences};
use crate::frame::Frame;
use crate::game::{DeterministicGame, encode};
use crate::orderer::BLOB_TRACE;
use crate::session::Session;

/// A machine's memory of the last frames: the checksum of each, and the states around where it went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The last check at which both sides agreed, and the one at which they did not.
    pub agreed: Frame,
    /// See [`agreed`](Self::agreed).
    pub differed: Frame,
    /// Checksums of the states of the last 512 frames that were saved, before each frame was run, in order.
    pub sums: Vec<(Frame, u32)>,
    /// States in between, encoded, in order.
    pub states: Vec<(Frame, Vec<u8>)>,
}

/// A report of a desynchronisation: the first frame, entity and field that differ between this machine and the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The frame whose run made the difference: states before it were the same.
    pub frame: Option<Frame>,
    /// The fields that differ after it, the first of them in order of declaration first.
    pub fields: Vec<Difference>,
    /// Frames that could be compared.
    pub compared: usize,
    /// The last check at which both sides agreed, and the one at which they did not.
    pub checks: (Frame, Frame),
    /// The inputs that the frame was run with here.
    pub inputs: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (agreed, differed) = self.checks;
        match self.frame {
            Some(frame) => writeln!(f, "the states parted when frame {frame} was run")?,
            None => writeln!(f, "the states parted at a frame that is no longer known")?,
        }
        writeln!(
            f,
            "  agreed at check {agreed}, differed at check {differed}; {} frames compared",
            self.compared
        )?;
        for field in &self.fields {
            writeln!(f, "  {field}")?;
        }
        write!(f, "  inputs: {}", self.inputs)
    }
}

impl Trace {
    /// Takes the trace of a session, before anything is repaired.
    pub(crate) fn take<G: DeterministicGame>(
        session: &Session<G>,
        agreed: Frame,
        differed: Frame,
    ) -> Self {
        let end = session.confirmed.min(session.frame) + 1;
        let first = end - TRACE_FRAMES;
        let mut bytes = Vec::new();
        let (mut sums, mut states) = (Vec::new(), Vec::new());
        for (frame, state) in session.history.range(first, end) {
            sums.push((frame, state.checksum(&mut bytes) as u32));
            if frame >= agreed && frame <= differed {
                bytes.clear();
                if encode(state, &mut bytes).is_ok() {
                    states.push((frame, bytes.clone()));
                }
            }
        }
        let now = session.frame;
        if now < end && now <= differed && session.step_index == 0 {
            sums.push((now, session.state.checksum(&mut bytes) as u32));
            bytes.clear();
            if encode(&session.state, &mut bytes).is_ok() {
                states.push((now, bytes));
            }
        }
        Self {
            agreed,
            differed,
            sums,
            states,
        }
    }

    /// Compares this machine's trace with the other side's.
    pub fn compare<G: DeterministicGame>(&self, theirs: &Self) -> Report {
        let sum_there = |frame: Frame| {
            let at = theirs
                .sums
                .binary_search_by_key(&frame, |(frame, _)| *frame);
            at.ok().map(|index| theirs.sums[index].1)
        };
        let both = || {
            let ours = self.sums.iter();
            ours.filter_map(|(frame, sum)| Some((*frame, *sum, sum_there(*frame)?)))
        };
        let first = both().find(|(_, here, there)| here != there);
        let state_of = |trace: &Self, frame: Frame| {
            let found = trace.states.iter().find(|(at, _)| *at == frame);
            found.map(|(_, bytes)| bytes.clone())
        };
        let fields = first.and_then(|(frame, ..)| {
            let (ours, theirs) = (state_of(self, frame)?, state_of(theirs, frame)?);
            Some(differences(&G::TYPE, &ours, &theirs, FIELDS_MAX))
        });
        Report {
            // The state of a frame is that before it is run: the frame before made it.
            frame: first.map(|(frame, ..)| frame - 1),
            fields: fields.unwrap_or_default(),
            compared: both().count(),
            checks: (self.agreed, self.differed),
            inputs: "the same on both sides, as ordered".to_owned(),
        }
    }

    /// As it travels. States are left out, the last first, when there are too many bytes.
    pub fn to_bytes(&self, bytes_max: usize) -> Vec<u8> {
        let mut bytes = vec![BLOB_TRACE];
        bytes.extend(self.agreed.0.to_le_bytes());
        bytes.extend(self.differed.0.to_le_bytes());
        bytes.extend((self.sums.len() as u32).to_le_bytes());
        for (frame, sum) in &self.sums {
            bytes.extend(frame.0.to_le_bytes());
            bytes.extend(sum.to_le_bytes());
        }
        for (frame, state) in &self.states {
            if bytes.len() + state.len() + 8 > bytes_max {
                break;
            }
            bytes.extend(frame.0.to_le_bytes());
            bytes.extend((state.len() as u32).to_le_bytes());
            bytes.extend(state);
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote, without its first byte.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        Self::read(&mut Reader::new(bytes)).ok()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, EndOfBytes> {
        let agreed = Frame(reader.u32()?);
        let differed = Frame(reader.u32()?);
        let count = reader.u32()?;
        if count > TRACE_FRAMES + 1 {
            return Err(EndOfBytes);
        }
        let mut sums = Vec::new();
        for _ in 0..count {
            sums.push((Frame(reader.u32()?), reader.u32()?));
        }
        let mut states = Vec::new();
        while !reader.is_empty() {
            let frame = Frame(reader.u32()?);
            let len = reader.u32()? as usize;
            states.push((frame, reader.slice(len)?.to_vec()));
        }
        Ok(Self {
            agreed,
            differed,
            sums,
            states,
        })
    }
}

/// Frames of a trace.
const TRACE_FRAMES: u32 = 512;
/// Fields that a report names.
const FIELDS_MAX: usize = 16;
