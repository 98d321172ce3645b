//! The coded part of a packet: which slot, against which baseline, and what else stands before a row.
//!
//! All models start over in every packet, so that each can be decoded without any other. In a steady game the rows of a
//! packet are consecutive slots with baselines of one age, which takes a few hundredths of a bit a row.

use muse_wire::range::{BitModel, Decoder, Encoder, SignedModel, UnsignedModel};

use crate::coder::{Models, References, RowError};
use crate::events::{Content, EVENT_BYTES_MAX, Event, EventClass, Pending, Read};
use crate::prediction::{SPAWNS_PER_STEP_MAX, SpawnKey};
use crate::world::{ClientId, INPUT_BYTES_MAX, KindId, Kinds, PARTS_MAX};
use crate::{EntityId, Tick};

/// The part of a row besides its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowHead {
    pub slot: u32,
    pub ages: Ages,
    pub holds: Holds,
    /// Told when it changed since the baseline, and in rows without one.
    pub relation: Option<Relation>,
}

/// The older states that a row is coded with: how many ticks before it the baseline was, and by how many ticks each further
/// one was before the last; 0 from where there is none.
pub(crate) type Ages = [u32; References::COUNT_MAX];

/// Ticks around a row in which nothing changed, so that what rests is shown at rest although its states were not sent again or were lost. Both are 0
/// for what moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holds {
    /// The number of ticks before the row's for which its values have been the same already.
    pub since: u32,
    /// The number of ticks before the row's at which the values before were still the same.
    pub until: u32,
}

impl Holds {
    pub(crate) const NONE: Self = Self { since: 0, until: 0 };
}

/// Owner and parent of an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relation {
    pub owner: Option<ClientId>,
    pub parent: Option<EntityId>,
}

/// The entity that a slot stands for; told in rows without a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub entity: EntityId,
    /// The declared id of its kind.
    pub kind: u16,
    pub part: u8,
}

/// The models of a packet.
#[derive(Debug)]
pub(crate) struct Coding {
    plain: BitModel,
    next: BitModel,
    same_ages: BitModel,
    same_baseline: BitModel,
    has_relation: BitModel,
    has_holds: BitModel,
    has_input: BitModel,
    has_owner: BitModel,
    has_parent: BitModel,
    has_entity: BitModel,
    is_void: BitModel,
    has_key: BitModel,
    first_generation: BitModel,
    gap: UnsignedModel,
    age: UnsignedModel,
    step: UnsignedModel,
    hold: UnsignedModel,
    kind: UnsignedModel,
    number: UnsignedModel,
    index: SignedModel,
    slot: u32,
    ages: Ages,
    entity: u32,
    /// Models of the kinds, made when first used; the number says in which packet they were.
    kinds: Vec<Option<(u64, Models)>>,
    packet: u64,
}

impl Coding {
    pub(crate) fn new(kinds: &Kinds) -> Self {
        let likely = BitModel::with_probability(60_000, 8);
        let unlikely = BitModel::with_probability(3_000, 8);
        Self {
            plain: likely,
            next: BitModel::new(),
            same_ages: BitModel::new(),
            same_baseline: BitModel::new(),
            has_relation: unlikely,
            has_holds: BitModel::new(),
            has_input: BitModel::new(),
            has_owner: BitModel::new(),
            has_parent: unlikely,
            has_entity: BitModel::new(),
            is_void: unlikely,
            has_key: unlikely,
            first_generation: BitModel::new(),
            gap: UnsignedModel::new(),
            age: UnsignedModel::new(),
            step: UnsignedModel::new(),
            hold: UnsignedModel::new(),
            kind: UnsignedModel::new(),
            number: UnsignedModel::new(),
            index: SignedModel::new(),
            slot: SLOT_MASK,
            ages: [0; References::COUNT_MAX],
            entity: 0,
            kinds: (0..kinds.len()).map(|_| None).collect(),
            packet: 0,
        }
    }

    /// Begins another packet.
    pub(crate) fn begin(&mut self) {
        let fresh = Self {
            kinds: std::mem::take(&mut self.kinds),
            packet: self.packet + 1,
            ..Self::new(&Kinds::new())
        };
        *self = fresh;
    }

    /// The slots that are told gone come first and count from the beginning; so do rows after them.
    pub(crate) fn rewind(&mut self) {
        self.slot = SLOT_MASK;
    }

    pub(crate) fn encode_gone(&mut self, encoder: &mut Encoder<'_>, slot: u32) {
        self.encode_slot(encoder, slot);
    }

    pub(crate) fn decode_gone(&mut self, decoder: &mut Decoder<'_>) -> u32 {
        self.decode_slot(decoder)
    }

    #[inline]
    pub(crate) fn encode_head(&mut self, encoder: &mut Encoder<'_>, head: &RowHead) {
        let next = head.slot == self.slot.wrapping_add(1) & SLOT_MASK;
        let moves = head.holds == Holds::NONE && head.relation.is_none();
        let plain = next && moves && head.ages == self.ages && head.ages[0] != 0;
        encoder.bit(plain, &mut self.plain);
        if plain {
            self.slot = head.slot;
        } else {
            self.encode_slot(encoder, head.slot);
            self.encode_ages(encoder, &head.ages);
            self.encode_holds(encoder, head.holds);
            // Rows without a baseline always tell it.
            if head.ages[0] != 0 {
                encoder.bit(head.relation.is_some(), &mut self.has_relation);
            }
            if let Some(relation) = head.relation {
                encode_optional(
                    encoder,
                    relation.owner.map(|owner| owner.0),
                    &mut self.has_owner,
                );
                let parent = relation.parent.map(EntityId::bits);
                encode_optional(encoder, parent, &mut self.has_parent);
            }
        }
    }

    #[inline]
    pub(crate) fn decode_head(&mut self, decoder: &mut Decoder<'_>) -> RowHead {
        if decoder.bit(&mut self.plain) {
            self.slot = self.slot.wrapping_add(1) & SLOT_MASK;
            return RowHead {
                slot: self.slot,
                ages: self.ages,
                holds: Holds::NONE,
                relation: None,
            };
        }
        let slot = self.decode_slot(decoder);
        self.decode_ages(decoder);
        let holds = self.decode_holds(decoder);
        let told = self.ages[0] == 0 || decoder.bit(&mut self.has_relation);
        let relation = told.then(|| Relation {
            owner: decode_optional(decoder, &mut self.has_owner).map(ClientId),
            parent: decode_optional(decoder, &mut self.has_parent).map(EntityId::from_bits),
        });
        RowHead {
            slot,
            ages: self.ages,
            holds,
            relation,
        }
    }

    pub(crate) fn encode_identity(&mut self, encoder: &mut Encoder<'_>, identity: &Identity) {
        let Identity { entity, kind, part } = *identity;
        encoder.even(u32::from(part), PART_BITS);
        self.kind.encode(encoder, u32::from(kind));
        let step = entity.index() as i32 - self.entity as i32;
        self.index.encode(encoder, step);
        let first = entity.generation() == 0;
        encoder.bit(first, &mut self.first_generation);
        if !first {
            encoder.even(entity.generation(), GENERATION_BITS);
        }
        self.entity = entity.index();
    }

    pub(crate) fn decode_identity(&mut self, decoder: &mut Decoder<'_>) -> Option<Identity> {
        let part = decoder.even(PART_BITS) as u8;
        let kind = u16::try_from(self.kind.decode(decoder)).ok()?;
        let step = self.index.decode(decoder);
        let index = self.entity.checked_add_signed(step)?;
        let first = decoder.bit(&mut self.first_generation);
        let generation = if first {
            0
        } else {
            decoder.even(GENERATION_BITS)
        };
        let entity = EntityId::new(index, generation)?;
        self.entity = index;
        Some(Identity { entity, kind, part })
    }

    /// For entities that somebody owns, and their owner alone: the key of the step that spawned them.
    pub(crate) fn encode_key(
        &mut self,
        encoder: &mut Encoder<'_>,
        key: Option<SpawnKey>,
        tick: Tick,
    ) {
        encoder.bit(key.is_some(), &mut self.has_key);
        let Some(key) = key else { return };
        let age = u32::try_from(tick - key.tick).unwrap_or(0);
        self.number.encode(encoder, age);
        encoder.even(u32::from(key.ordinal), ORDINAL_BITS);
    }

    /// `Err` if it is of a tick before the first.
    pub(crate) fn decode_key(
        &mut self,
        decoder: &mut Decoder<'_>,
        tick: Tick,
    ) -> Result<Option<SpawnKey>, RowError> {
        if !decoder.bit(&mut self.has_key) {
            return Ok(None);
        }
        let age = self.number.decode(decoder);
        let ordinal = decoder.even(ORDINAL_BITS) as u8;
        let tick = tick
            .0
            .checked_sub(age)
            .map(Tick)
            .ok_or(RowError::OutOfRange)?;
        Ok(Some(SpawnKey { tick, ordinal }))
    }

    /// For kinds that have inputs: the input, if it changed since the baseline.
    pub(crate) fn encode_input(&mut self, encoder: &mut Encoder<'_>, input: Option<&[u8]>) {
        encoder.bit(input.is_some(), &mut self.has_input);
        let Some(input) = input else { return };
        encoder.even(input.len() as u32, INPUT_LENGTH_BITS);
        for byte in input {
            encoder.even(u32::from(*byte), 8);
        }
    }

    /// Appends the input to `bytes` and says whether there was one.
    pub(crate) fn decode_input(&mut self, decoder: &mut Decoder<'_>, bytes: &mut Vec<u8>) -> bool {
        if !decoder.bit(&mut self.has_input) {
            return false;
        }
        let len = decoder.even(INPUT_LENGTH_BITS);
        bytes.extend((0..len).map(|_| decoder.even(8) as u8));
        true
    }

    pub(crate) fn encode_event(
        &mut self,
        encoder: &mut Encoder<'_>,
        event: &Pending,
        sequence: u32,
        tick: Tick,
    ) {
        encoder.even(event.class as u32, CLASS_BITS);
        if event.class != EventClass::Unreliable {
            encoder.even(sequence & 0xFFFF, 16);
        }
        encoder.bit(event.void, &mut self.is_void);
        if event.void {
            return;
        }
        let age = u32::try_from(tick - event.tick).unwrap_or(0);
        self.number.encode(encoder, age);
        self.kind.encode(encoder, u32::from(event.id));
        encode_optional(
            encoder,
            event.entity.map(EntityId::bits),
            &mut self.has_entity,
        );
        self.number.encode(encoder, event.bytes.len() as u32);
        for byte in event.bytes.iter() {
            encoder.even(u32::from(*byte), 8);
        }
    }

    pub(crate) fn decode_event(&mut self, decoder: &mut Decoder<'_>, tick: Tick) -> Option<Read> {
        let class = EventClass::from_code(decoder.even(CLASS_BITS))?;
        let sequence = match class {
            EventClass::Unreliable => 0,
            EventClass::Guaranteed | EventClass::Quickest => decoder.even(16) as u16,
        };
        if decoder.bit(&mut self.is_void) {
            let content = Content::Void;
            return Some(Read {
                class,
                sequence,
                content,
            });
        }
        let age = self.number.decode(decoder);
        let id = u16::try_from(self.kind.decode(decoder)).ok()?;
        let entity = decode_optional(decoder, &mut self.has_entity).map(EntityId::from_bits);
        let len = self.number.decode(decoder) as usize;
        if len > EVENT_BYTES_MAX || decoder.is_overrun() {
            return None;
        }
        let bytes = (0..len).map(|_| decoder.even(8) as u8).collect();
        let event = Event {
            tick: tick.0.checked_sub(age).map(Tick)?,
            entity,
            class,
            id,
            bytes,
        };
        let content = Content::Event(event);
        Some(Read {
            class,
            sequence,
            content,
        })
    }

    #[inline]
    pub(crate) fn encode_row(
        &mut self,
        encoder: &mut Encoder<'_>,
        kinds: &Kinds,
        kind: KindId,
        references: &References<'_>,
        row: &[i32],
    ) -> Result<(), RowError> {
        let coder = &kinds.at(kind.place()).coder;
        let models = ready(&mut self.kinds, self.packet, kinds, kind);
        coder.encode_legal_row(encoder, models, references, row)
    }

    #[inline]
    pub(crate) fn decode_row(
        &mut self,
        decoder: &mut Decoder<'_>,
        kinds: &Kinds,
        kind: KindId,
        references: &References<'_>,
        row: &mut [i32],
    ) -> Result<(), RowError> {
        let coder = &kinds.at(kind.place()).coder;
        let models = ready(&mut self.kinds, self.packet, kinds, kind);
        coder.decode_row(decoder, models, references, row)
    }

    fn encode_ages(&mut self, encoder: &mut Encoder<'_>, ages: &Ages) {
        let same = *ages == self.ages;
        encoder.bit(same, &mut self.same_ages);
        if same {
            return;
        }
        let [age, steps @ ..] = ages;
        encoder.bit(*age == self.ages[0], &mut self.same_baseline);
        if *age != self.ages[0] {
            self.age.encode(encoder, *age);
        }
        self.ages = *ages;
        if *age != 0 {
            for step in steps {
                self.step.encode(encoder, *step);
                if *step == 0 {
                    break;
                }
            }
        }
    }

    fn decode_ages(&mut self, decoder: &mut Decoder<'_>) {
        if decoder.bit(&mut self.same_ages) {
            return;
        }
        let same = decoder.bit(&mut self.same_baseline);
        let age = if same {
            self.ages[0]
        } else {
            self.age.decode(decoder)
        };
        self.ages = [age, 0, 0, 0];
        if age != 0 {
            for step in &mut self.ages[1..] {
                *step = self.step.decode(decoder);
                if *step == 0 {
                    break;
                }
            }
        }
    }

    fn encode_holds(&mut self, encoder: &mut Encoder<'_>, holds: Holds) {
        let some = holds != Holds::NONE;
        encoder.bit(some, &mut self.has_holds);
        if some {
            self.hold.encode(encoder, holds.since);
            self.hold.encode(encoder, holds.until);
        }
    }

    fn decode_holds(&mut self, decoder: &mut Decoder<'_>) -> Holds {
        if !decoder.bit(&mut self.has_holds) {
            return Holds::NONE;
        }
        Holds {
            since: self.hold.decode(decoder),
            until: self.hold.decode(decoder),
        }
    }

    fn encode_slot(&mut self, encoder: &mut Encoder<'_>, slot: u32) {
        let gap = slot.wrapping_sub(self.slot).wrapping_sub(1) & SLOT_MASK;
        encoder.bit(gap == 0, &mut self.next);
        if gap != 0 {
            self.gap.encode(encoder, gap - 1);
        }
        self.slot = slot;
    }

    fn decode_slot(&mut self, decoder: &mut Decoder<'_>) -> u32 {
        let mut gap = 0;
        if !decoder.bit(&mut self.next) {
            gap = self.gap.decode(decoder).wrapping_add(1);
        }
        self.slot = self.slot.wrapping_add(1).wrapping_add(gap) & SLOT_MASK;
        self.slot
    }
}

/// The models of a kind, as new at their first use in a packet.
#[inline]
fn ready<'a>(
    all: &'a mut [Option<(u64, Models)>],
    packet: u64,
    kinds: &Kinds,
    kind: KindId,
) -> &'a mut Models {
    let coder = &kinds.at(kind.place()).coder;
    let (used, models) = all[kind.place()].get_or_insert_with(|| (packet, coder.models()));
    if *used != packet {
        *used = packet;
        coder.reset(models);
    }
    models
}

fn encode_optional(encoder: &mut Encoder<'_>, value: Option<u32>, present: &mut BitModel) {
    encoder.bit(value.is_some(), present);
    if let Some(value) = value {
        encoder.even(value, 32);
    }
}

fn decode_optional(decoder: &mut Decoder<'_>, present: &mut BitModel) -> Option<u32> {
    decoder.bit(present).then(|| decoder.even(32))
}

/// Slots that a client can have; gaps between them are taken modulo this, so that a packet may also go backwards.
pub(crate) const SLOTS_MAX: u32 = 1 << 20;
/// Slots that both sides have by default.
pub(crate) const SLOTS_DEFAULT: u32 = 65_536;
const SLOT_MASK: u32 = SLOTS_MAX - 1;
const PART_BITS: u32 = PARTS_MAX.ilog2();
const GENERATION_BITS: u32 = 12;
const INPUT_LENGTH_BITS: u32 = (INPUT_BYTES_MAX + 1).ilog2();
const CLASS_BITS: u32 = 2;
const ORDINAL_BITS: u32 = SPAWNS_PER_STEP_MAX.ilog2();
