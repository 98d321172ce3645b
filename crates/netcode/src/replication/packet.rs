//! Fills packets: entities that are gone, events with the states they need, then states by their turn.

use muse_wire::bytes::Writer;
use muse_wire::range::Encoder;

use super::ClientView;
use super::pattern::Pattern;
use super::sent::Entry;
use super::slots::{Life, Slot};
use crate::Tick;
use crate::events::Pending;
use crate::snapshot::coding::{Ages, Coding, Identity, Relation, RowHead};
use crate::snapshot::{EVENTS_MAX, GONE_MAX, Header, ROWS_MAX};
use crate::world::{ClientId, NEVER, Object, World};

/// The packet that is being written.
struct Draft<'a> {
    encoder: Encoder<'a>,
    /// The length that the encoder must not exceed.
    room: usize,
    entries: Vec<Entry>,
    rows: usize,
    rows_whole: usize,
    bytes: usize,
    bytes_whole: usize,
    pattern: Pattern<'a>,
}

/// The outcome of writing a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Written,
    /// There is nothing to write.
    Skipped,
    Full,
}

impl ClientView {
    /// True if another packet of this tick would have something to carry.
    pub(super) fn has_more(&self) -> bool {
        self.game_loaded && (!self.round.gone.is_empty() || !self.plan.is_empty())
    }

    /// Fills one packet; `None` if something wants to be sent but nothing more fits.
    pub(super) fn fill_packet(&mut self, world: &World, buffer: &mut [u8]) -> Option<usize> {
        let mut entries = std::mem::take(&mut self.scratch);
        let mut events = if self.game_loaded {
            // Half of the packet at most, so that states still come through while there are many events.
            self.choose_events(world, buffer.len() / 2)
        } else {
            Vec::new()
        };
        let result = loop {
            entries.clear();
            let (len, returned, fitted) = self.try_packet(world, buffer, &events, entries);
            entries = returned;
            if fitted {
                break len;
            }
            // The states that the events need are too much for one packet: fewer events.
            events.truncate(events.len() / 2);
        };
        if let Some(len) = result {
            self.note_sent(&entries);
            self.scratch = entries;
            return Some(len);
        }
        self.scratch = entries;
        None
    }

    /// Numbers of the events for the next packet, of at most so many bytes in all.
    fn choose_events(&mut self, world: &World, bytes: usize) -> Vec<u32> {
        let tick = self.round.tick;
        let mut left = bytes;
        let mut chosen = Vec::new();
        for (number, event) in self.events.wanting().take(usize::from(EVENTS_MAX)) {
            let size = EVENT_OVERHEAD + event.bytes.len();
            // Not the next smaller one: events of a class keep their order.
            if size > left {
                break;
            }
            // A state sent in an earlier packet of this tick may be lost without this one: wait for the next tick.
            let late = self
                .stateless(world, event)
                .any(|(_, slot)| slot.newest == tick);
            if late {
                break;
            }
            left -= size;
            chosen.push(number);
        }
        chosen
    }

    /// Slots of the event's entity of which the client may not have the state at the event yet.
    fn stateless<'a>(
        &'a self,
        world: &'a World,
        event: &'a Pending,
    ) -> impl Iterator<Item = (u32, &'a Slot)> {
        let entity = event.entity.into_iter();
        entity
            .flat_map(|entity| self.slots.of(entity))
            .filter(move |(_, slot)| {
                let current = slot.baseline != NEVER
                    && (slot.baseline >= event.tick.0
                        || world
                            .object(slot.object)
                            .is_none_or(|object| object.touched <= slot.baseline));
                slot.life == Life::Active && !current
            })
    }

    /// Writes a packet with these events. Gives the length, and whether the states that they need found room.
    fn try_packet<'a>(
        &mut self,
        world: &'a World,
        buffer: &'a mut [u8],
        events: &[u32],
        entries: Vec<Entry>,
    ) -> (Option<usize>, Vec<Entry>, bool) {
        // Slots note the attempt that wrote them, so that an attempt that is given up leaves nothing to undo.
        self.attempts = self.attempts.wrapping_add(1);
        self.coding.begin();
        let gone = if self.game_loaded {
            self.round
                .gone
                .len()
                .min(usize::from(GONE_MAX))
                .min(buffer.len() / 8)
        } else {
            0
        };
        let mut header = Header {
            number: self.sent.next() as u16,
            tick: Tick(self.round.tick),
            game: self.game,
            complete: self.complete,
            gone: gone as u16,
            events: events.len() as u16,
            rows: 0,
        };
        let head_len = header.len();
        let (head, body) = buffer.split_at_mut(head_len);
        let mut draft = Draft {
            room: body.len(),
            encoder: Encoder::new(body),
            entries,
            rows: 0,
            rows_whole: 0,
            bytes: 0,
            bytes_whole: 0,
            pattern: Pattern::default(),
        };
        self.write_gone(&mut draft, gone);
        let mut sequence = self.events.sequencer();
        for number in events {
            if let Some(event) = self.events.get(*number) {
                let sequence = sequence(event);
                self.coding
                    .encode_event(&mut draft.encoder, event, sequence, header.tick);
                draft.entries.push(Entry::Event(*number));
            }
        }
        let mut fitted = draft.encoder.len_max() <= draft.room;
        fitted &= self.write_needed(world, &mut draft, events);
        if !fitted && !events.is_empty() {
            return (None, draft.entries, false);
        }
        if self.game_loaded {
            self.write_planned(world, &mut draft);
        }
        let Draft {
            encoder,
            entries,
            rows,
            rows_whole,
            bytes,
            bytes_whole,
            ..
        } = draft;
        let stuck = entries.is_empty() && self.has_more();
        let Ok(len) = encoder.finish() else {
            return (None, entries, true);
        };
        // The first packet of a tick goes even if it is empty, since it tells the time.
        if stuck && self.round.packets > 0 {
            return (None, entries, true);
        }
        self.plan
            .learn(bytes, rows - rows_whole, bytes_whole, rows_whole);
        self.stats.rows += rows as u64;
        self.stats.rows_whole += rows_whole as u64;
        self.round.gone.truncate(self.round.gone.len() - gone);
        header.rows = rows as u16;
        header
            .emit(&mut Writer::new(head))
            .expect("its length was asked for");
        (Some(head_len + len), entries, true)
    }

    fn write_gone(&mut self, draft: &mut Draft<'_>, count: usize) {
        for number in self.round.gone.iter().rev().take(count) {
            self.coding.encode_gone(&mut draft.encoder, *number);
            if let Some(slot) = self.slots.get(*number) {
                draft.entries.push(Entry::Gone {
                    slot: *number,
                    incarnation: slot.incarnation,
                });
            }
        }
        self.coding.rewind();
    }

    /// Writes the states without which the events make no sense. Whether they all fit.
    fn write_needed<'a>(
        &mut self,
        world: &'a World,
        draft: &mut Draft<'a>,
        events: &[u32],
    ) -> bool {
        let mut needed = Vec::new();
        for event in events.iter().filter_map(|number| self.events.get(*number)) {
            needed.extend(self.stateless(world, event).map(|(number, _)| number));
        }
        // Slots that follow each other cost next to nothing to name.
        needed.sort_unstable();
        needed.dedup();
        needed
            .into_iter()
            .all(|number| self.write_row(world, draft, number) != Outcome::Full)
    }

    fn write_planned<'a>(&mut self, world: &'a World, draft: &mut Draft<'a>) {
        while draft.rows < usize::from(ROWS_MAX)
            && let Some(number) = self.plan.peek(self.round.bytes_left)
        {
            match self.write_row(world, draft, number) {
                Outcome::Written | Outcome::Skipped => self.plan.pass(),
                Outcome::Full => {
                    let alone = draft.entries.is_empty() && draft.room >= ROOM_WHOLE;
                    // It would not fit into the next packet either, and must not hold up all others.
                    if alone {
                        self.stats.rows_too_large += 1;
                        self.plan.pass();
                    } else {
                        break;
                    }
                }
            }
        }
    }

    /// Writes the state of a slot, unless it is in this tick's packets already or does not fit.
    #[inline]
    fn write_row<'a>(&mut self, world: &'a World, draft: &mut Draft<'a>, number: u32) -> Outcome {
        let tick = self.round.tick;
        let attempt = self.attempts;
        let Some(slot) = self.slots.get_mut(number) else {
            return Outcome::Skipped;
        };
        // Once in a tick: an earlier packet has it, or the events of this one needed it.
        if slot.life != Life::Active || slot.newest == tick || slot.attempt == attempt {
            return Outcome::Skipped;
        }
        let Some(object) = world
            .object(slot.object)
            .filter(|object| object.since <= tick)
        else {
            return Outcome::Skipped;
        };
        let Some(row) = world.past(object, tick) else {
            return Outcome::Skipped;
        };
        let (ages, references) = draft.pattern.references(world, slot, object, tick);
        let whole = references.is_empty();
        let before = draft.encoder.checkpoint();
        let len_before = draft.encoder.len_max();
        write_head(
            &mut self.coding,
            &mut draft.encoder,
            world,
            (object, tick),
            (number, self.client),
            slot,
            ages,
        );
        let coded = self.coding.encode_row(
            &mut draft.encoder,
            world.kinds(),
            object.kind,
            &references,
            row,
        );
        debug_assert_eq!(coded, Ok(()), "rows of the world are legal");
        let len = draft.encoder.len_max();
        if len > draft.room {
            draft.encoder.restore(before);
            return Outcome::Full;
        }
        slot.attempt = attempt;
        draft.entries.push(Entry::Row {
            slot: number,
            incarnation: slot.incarnation,
        });
        draft.rows += 1;
        if whole {
            draft.rows_whole += 1;
            draft.bytes_whole += len - len_before;
        } else {
            draft.bytes += len - len_before;
        }
        Outcome::Written
    }

    /// The packet is made: what it carries is on its way.
    fn note_sent(&mut self, entries: &[Entry]) {
        let tick = self.round.tick;
        for entry in entries {
            match *entry {
                Entry::Row { slot, .. } => {
                    if let Some(slot) = self.slots.get_mut(slot) {
                        if slot.after == NEVER {
                            slot.after = tick;
                        }
                        slot.sent = tick;
                        slot.newest = tick;
                        slot.served = tick;
                        slot.priority = 0;
                    }
                }
                Entry::Gone { slot, .. } => {
                    if let Some(slot) = self.slots.get_mut(slot) {
                        slot.sent = tick;
                    }
                }
                Entry::Event(number) => {
                    if let Some(entity) = self.events.mark_sent(number) {
                        super::release(&mut self.slots, entity);
                    }
                }
            }
        }
        self.sent.push(tick, entries);
    }
}

/// Writes what stands before the row.
#[inline]
fn write_head(
    coding: &mut Coding,
    encoder: &mut Encoder<'_>,
    world: &World,
    (object, tick): (&Object, u32),
    (number, client): (u32, ClientId),
    slot: &Slot,
    ages: Ages,
) {
    let whole = ages[0] == 0;
    let declared = world.kinds().at(object.kind.place());
    let related = whole || object.related > slot.baseline;
    // A row that the kind's inputs go with tells them when they changed.
    let steered = declared.inputs() && (whole || object.steered > slot.baseline);
    let record = if related || steered {
        world.record(object.entity)
    } else {
        None
    };
    let head = RowHead {
        slot: number,
        ages,
        holds: slot.holds(object, tick),
        relation: related.then(|| Relation {
            owner: record.and_then(|record| record.owner),
            parent: record.and_then(|record| record.parent),
        }),
    };
    coding.encode_head(encoder, &head);
    if whole {
        let identity = Identity {
            entity: object.entity,
            kind: object.kind.id(),
            part: slot.part,
        };
        coding.encode_identity(encoder, &identity);
        if let Some(owner) = record.and_then(|record| record.owner) {
            let own = record.filter(|_| owner == client);
            coding.encode_key(encoder, own.and_then(|own| own.spawn_key), Tick(tick));
        }
    }
    if declared.inputs() {
        let input = record.filter(|_| steered).map(|record| &record.input[..]);
        coding.encode_input(encoder, input);
    }
}

/// Bytes of an event besides its parameters, at most.
const EVENT_OVERHEAD: usize = 20;
/// A packet with so much room that a row which does not fit will never fit.
const ROOM_WHOLE: usize = 1_000;
