//! From the bytes of a packet to rows, without changing anything yet.

use std::ops::Range;

use muse_wire::range::Decoder;

use super::{Occupant, Receiver, Refused};
use crate::Tick;
use crate::coder::References;
use crate::events::Read;
use crate::prediction::SpawnKey;
use crate::snapshot::Header;
use crate::snapshot::coding::Relation;

/// The contents of a packet, until all of it is known to be sound.
#[derive(Debug, Default)]
pub(super) struct Staged {
    pub gone: Vec<u32>,
    pub events: Vec<Read>,
    pub rows: Vec<StagedRow>,
    pub values: Vec<i32>,
    pub inputs: Vec<u8>,
    /// The last packet that each slot had a row in.
    seen: Vec<u64>,
    packet: u64,
}

#[derive(Debug)]
pub(super) struct StagedRow {
    pub slot: u32,
    pub occupant: Occupant,
    pub relation: Option<Relation>,
    pub key: Option<SpawnKey>,
    pub input: Option<Range<usize>>,
    pub values: Range<usize>,
    /// The first tick at which its values were the same.
    pub since: u32,
    /// The last tick at which the values before were still the same.
    pub until: u32,
}

impl Staged {
    fn clear(&mut self) {
        self.gone.clear();
        self.events.clear();
        self.rows.clear();
        self.values.clear();
        self.inputs.clear();
        self.packet += 1;
    }

    /// True if the slot has no row in this packet so far.
    fn is_first(&mut self, slot: u32) -> bool {
        let index = slot as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, 0);
        }
        std::mem::replace(&mut self.seen[index], self.packet) != self.packet
    }
}

impl Receiver {
    /// Decodes the part behind the header into [`Staged`].
    pub(super) fn decode(&mut self, header: &Header, bytes: &[u8]) -> Result<(), Refused> {
        let mut staged = std::mem::take(&mut self.staged);
        staged.clear();
        let mut decoder = Decoder::new(bytes);
        let result = self.decode_all(header, &mut decoder, &mut staged);
        self.staged = staged;
        result
    }

    fn decode_all(
        &mut self,
        header: &Header,
        decoder: &mut Decoder<'_>,
        staged: &mut Staged,
    ) -> Result<(), Refused> {
        self.coding.begin();
        for _ in 0..header.gone {
            // An arithmetic decoder never ends by itself: behind the last byte it invents symbols, so every loop looks
            // for the overrun.
            let slot = self.coding.decode_gone(decoder);
            if slot >= self.slots_max || decoder.is_overrun() {
                return Err(Refused::Malformed);
            }
            staged.gone.push(slot);
        }
        self.coding.rewind();
        for _ in 0..header.events {
            let read = self.coding.decode_event(decoder, header.tick);
            let read = read.ok_or(Refused::Malformed)?;
            if !self.events.admits(read.class, read.sequence) || decoder.is_overrun() {
                return Err(Refused::Malformed);
            }
            staged.events.push(read);
        }
        for _ in 0..header.rows {
            self.decode_row(header.tick.0, decoder, staged)?;
            if decoder.is_overrun() {
                return Err(Refused::Malformed);
            }
        }
        Ok(())
    }

    fn decode_row(
        &mut self,
        tick: u32,
        decoder: &mut Decoder<'_>,
        staged: &mut Staged,
    ) -> Result<(), Refused> {
        let head = self.coding.decode_head(decoder);
        // Bounds memory by what was agreed, and work by one row for each slot.
        if head.slot >= self.slots_max || !staged.is_first(head.slot) {
            return Err(Refused::Malformed);
        }
        let mut references = References::new();
        let mut key = None;
        let occupant = if head.ages[0] == 0 {
            let identity = self.coding.decode_identity(decoder);
            let identity = identity.ok_or(Refused::Malformed)?;
            let kind = self.kinds.find(identity.kind).ok_or(Refused::Malformed)?;
            if self.kinds.at(kind.place()).part != identity.part {
                return Err(Refused::Malformed);
            }
            if head
                .relation
                .is_some_and(|relation| relation.owner.is_some())
            {
                let read = self.coding.decode_key(decoder, Tick(tick));
                key = read.map_err(|_| Refused::Malformed)?;
            }
            Occupant {
                entity: identity.entity,
                kind,
                part: identity.part,
            }
        } else {
            let slot = self.slots.get(head.slot as usize);
            // Not malformed: the packet that brought the baseline may have been lost.
            let slot = slot.ok_or(Refused::NoBaseline)?;
            let mut age = 0u32;
            for step in head.ages.into_iter().take_while(|step| *step != 0) {
                age = age.saturating_add(step);
                let tick = tick.checked_sub(age).ok_or(Refused::Malformed)?;
                let (_, row) = slot.history.find(tick).ok_or(Refused::NoBaseline)?;
                references = references.with(age, row);
            }
            slot.occupant.ok_or(Refused::NoBaseline)?
        };
        let declared = self.kinds.at(occupant.kind.place());
        let inputs_start = staged.inputs.len();
        let has_input = declared.inputs() && self.coding.decode_input(decoder, &mut staged.inputs);
        let start = staged.values.len();
        staged.values.resize(start + declared.width, 0);
        let row = &mut staged.values[start..];
        self.coding
            .decode_row(decoder, &self.kinds, occupant.kind, &references, row)
            .map_err(|_| Refused::Malformed)?;
        staged.rows.push(StagedRow {
            slot: head.slot,
            occupant,
            relation: head.relation,
            key,
            input: has_input.then_some(inputs_start..staged.inputs.len()),
            values: start..start + declared.width,
            since: tick.saturating_sub(head.holds.since),
            until: tick.saturating_sub(head.holds.until),
        });
        Ok(())
    }
}
