//! How a packet is filled: who is gone, events with the states they need, then states by their turn.

use muse_wire::bytes::Writer;
use muse_wire::range::Encoder;

use super::View;
use super::sent::Entry;
use super::slots::{Life, Slot};
use crate::Tick;
use crate::coder::References;
use crate::events::Pending;
use crate::snapshot::coding::{Ages, Coding, Identity, Relation, RowHead};
use crate::snapshot::{EVENTS_MAX, GONE_MAX, Header, ROWS_MAX};
use crate::world::{KindId, NEVER, Object, World};

/// What is being written.
struct Draft<'a> {
    encoder: Encoder<'a>,
    /// Where the encoder must not go beyond.
    room: usize,
    entries: Vec<Entry>,
    rows: usize,
    rows_whole: usize,
    bytes: usize,
    bytes_whole: usize,
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Written,
    /// There is nothing to write.
    Skipped,
    Full,
}

impl View {
    /// Whether another packet of this tick would have something to carry.
    pub(super) fn has_more(&self) -> bool {
        self.game_loaded && (!self.round.gone.is_empty() || !self.plan.is_empty())
    }

    /// Fills one packet; `None` if something wants to be sent but nothing more fits.
    pub(super) fn fill_packet(&mut self, world: &World, buffer: &mut [u8]) -> Option<usize> {
        let mut entries = std::mem::take(&mut self.scratch);
        let mut events = if self.game_loaded {
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
    fn try_packet(
        &mut self,
        world: &World,
        buffer: &mut [u8],
        events: &[u32],
        entries: Vec<Entry>,
    ) -> (Option<usize>, Vec<Entry>, bool) {
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
    fn write_needed(&mut self, world: &World, draft: &mut Draft<'_>, events: &[u32]) -> bool {
        let mut needed = Vec::new();
        for event in events.iter().filter_map(|number| self.events.get(*number)) {
            needed.extend(self.stateless(world, event).map(|(number, _)| number));
        }
        needed.sort_unstable();
        needed.dedup();
        let mut reach = Reach::default();
        needed
            .into_iter()
            .all(|number| self.write_row(world, draft, &mut reach, number) != Outcome::Full)
    }

    fn write_planned(&mut self, world: &World, draft: &mut Draft<'_>) {
        let mut reach = Reach::default();
        while draft.rows < usize::from(ROWS_MAX)
            && let Some(number) = self.plan.peek(self.round.bytes_left)
        {
            match self.write_row(world, draft, &mut reach, number) {
                Outcome::Written | Outcome::Skipped => self.plan.pass(),
                Outcome::Full => {
                    let alone = draft.entries.is_empty() && draft.room >= ROOM_WHOLE;
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
    fn write_row<'w>(
        &mut self,
        world: &'w World,
        draft: &mut Draft<'_>,
        reach: &mut Reach<'w>,
        number: u32,
    ) -> Outcome {
        let tick = self.round.tick;
        let attempt = self.attempts;
        let Some(slot) = self.slots.get_mut(number) else {
            return Outcome::Skipped;
        };
        if slot.life != Life::Active || slot.newest == tick || slot.attempt == attempt {
            return Outcome::Skipped;
        }
        let Some(object) = world
            .object(slot.object)
            .filter(|object| object.since <= tick)
        else {
            return Outcome::Skipped;
        };
        let Some((row, ages, references)) = reach.of(world, slot, object, tick) else {
            return Outcome::Skipped;
        };
        let whole = references.is_empty();
        let before = draft.encoder.checkpoint();
        let len_before = draft.encoder.len_max();
        write_head(
            &mut self.coding,
            &mut draft.encoder,
            world,
            (number, slot, object),
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

/// Which older states of an entity this tick's is coded with. Neighbours mostly have acknowledged the same ticks: what was found for one
/// serves the next.
#[derive(Default)]
struct Reach<'w> {
    /// Of what it was found: kind, and what the slot knew.
    key: Option<Key>,
    steps: Ages,
    ages: Ages,
    count: usize,
    width: usize,
    /// All rows of this tick, and of the ticks of the references.
    now: &'w [i32],
    past: [&'w [i32]; References::COUNT_MAX],
}

/// All that the choice of references depends on, besides which rows there are.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    kind: KindId,
    tick: u32,
    baseline: u32,
    read: u32,
    known: u64,
    since: u32,
}

impl<'w> Reach<'w> {
    /// The row of the tick, and the states to code it with: the baseline and older ones that the client has acknowledged, as far as both
    /// sides still have them.
    #[inline]
    fn of(
        &mut self,
        world: &'w World,
        slot: &Slot,
        object: &Object,
        tick: u32,
    ) -> Option<(&'w [i32], Ages, References<'w>)> {
        let history = world.kinds().history();
        // The client keeps a state for so long after it got another.
        let kept = slot.after == NEVER || tick - slot.after <= history;
        if slot.baseline == NEVER || slot.baseline < object.since || !kept {
            let none = ([0; References::COUNT_MAX], References::new());
            return world.past(object, tick).map(|row| (row, none.0, none.1));
        }
        let key = Key {
            kind: object.kind,
            tick,
            baseline: slot.baseline,
            read: slot.read,
            known: slot.known,
            since: object.since,
        };
        if self.key == Some(key) {
            let start = object.row as usize * self.width;
            let span = start..start + self.width;
            if let Some(row) = self.now.get(span.clone())
                && let Some(newest) = self.past[0].get(span.clone())
                && let Some(near) = self.past[1].get(span.clone())
                && let Some(middle) = self.past[2].get(span.clone())
                && let Some(far) = self.past[3].get(span)
            {
                let rows = [newest, near, middle, far];
                let references = References::from_parts(rows, self.ages, self.count);
                return Some((row, self.steps, references));
            }
        }
        self.find(world, key, object)
    }

    #[inline(never)]
    fn find(
        &mut self,
        world: &'w World,
        key: Key,
        object: &Object,
    ) -> Option<(&'w [i32], Ages, References<'w>)> {
        self.key = None;
        let table = world.table(object.kind);
        let now = world.past(object, key.tick)?;
        let Some(newest) = world.past(object, key.read) else {
            return Some((now, [0; References::COUNT_MAX], References::new()));
        };
        let age = key.tick - key.baseline;
        self.steps = [age, 0, 0, 0];
        self.ages = [age, 0, 0, 0];
        self.past = [table.past_rows(key.read)?; References::COUNT_MAX];
        self.count = 1;
        let mut rows = [newest; References::COUNT_MAX];
        // Only those count that have been of this kind, and are remembered.
        let reach = world
            .kinds()
            .history()
            .saturating_sub(age)
            .min(key.baseline - key.since + 1);
        let known = key.known & u64::MAX.checked_shr(64 - reach.min(64)).unwrap_or(0);
        let mut last = 0;
        for apart in REFERENCES_APART {
            let rest = known & u64::MAX.checked_shl(last + apart).unwrap_or(0);
            let back = rest.trailing_zeros();
            let Some((row, all)) = (back < 64)
                .then(|| {
                    let then = key.baseline - back;
                    world.past(object, then).zip(table.past_rows(then))
                })
                .flatten()
            else {
                break;
            };
            self.steps[self.count] = back - last;
            self.ages[self.count] = age + back;
            self.past[self.count..].fill(all);
            rows[self.count..].fill(row);
            self.count += 1;
            last = back;
        }
        self.now = table.past_rows(key.tick)?;
        self.width = table.width();
        self.key = Some(key);
        let references = References::from_parts(rows, self.ages, self.count);
        Some((now, self.steps, references))
    }
}

/// What stands before the row.
#[inline]
fn write_head(
    coding: &mut Coding,
    encoder: &mut Encoder<'_>,
    world: &World,
    (number, slot, object): (u32, &Slot, &Object),
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
    }
    if declared.inputs() {
        let input = record.filter(|_| steered).map(|record| &record.input[..]);
        coding.encode_input(encoder, input);
    }
}

/// How many ticks at least each further reference is before the one before it: the first tells the speed, the others how it
/// changes.
const REFERENCES_APART: [u32; References::COUNT_MAX - 1] = [1, 2, 3];
/// Bytes of an event besides its parameters, at most.
const EVENT_OVERHEAD: usize = 20;
/// A packet with so much room that a row which does not fit will never fit.
const ROOM_WHOLE: usize = 1_000;
