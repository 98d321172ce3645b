//! Everybody's inputs, as a machine of the match knows them: final, told early, or guessed.

use crate::frame::{Frame, Seat};
use crate::game::{DeterministicGame, encode};
use crate::stream::{Entry, InputBytes, Stream};

/// A window of inputs by frame and seat.
#[derive(Debug)]
pub(crate) struct Inputs<G: DeterministicGame> {
    /// A power of two.
    capacity: u32,
    cells: Vec<Cell<G::Input>>,
    /// Inputs that each frame was last run with: `seats` entries per frame.
    used: Vec<Option<G::Input>>,
    seats: Vec<SeatInputs>,
}

#[derive(Clone, Debug, Default)]
struct Cell<I> {
    value: I,
    /// The last input that the player itself gave, and how many frames before.
    given: I,
    age: u32,
}

#[derive(Debug)]
struct SeatInputs {
    /// Inputs before this are final.
    known: Frame,
    /// Inputs before this are known, if not final: our own, and those received from the player directly.
    hinted: Frame,
    /// From which frames on somebody sits there, or nobody.
    presence: Vec<(Frame, bool)>,
}

/// An input as the session knows it.
pub(crate) enum Value<I> {
    Given(I),
    Repeated,
}

impl<G: DeterministicGame> Inputs<G> {
    pub(crate) fn new(seats: usize, frames: u32) -> Self {
        let capacity = frames.next_power_of_two();
        let cells = capacity as usize * seats;
        let seat = || SeatInputs {
            known: Frame(0),
            hinted: Frame(0),
            presence: Vec::new(),
        };
        Self {
            capacity,
            cells: vec![Cell::default(); cells],
            used: vec![None; cells],
            seats: (0..seats).map(|_| seat()).collect(),
        }
    }

    pub(crate) fn known(&self, seat: Seat) -> Frame {
        self.seats[seat.index()].known
    }

    pub(crate) fn hinted(&self, seat: Seat) -> Frame {
        self.seats[seat.index()].hinted
    }

    /// The first frame from `from` on for which somebody's final input is missing.
    pub(crate) fn confirmed_from(&self, from: Frame) -> Frame {
        let mut frame = from;
        let limit = from + self.capacity / 2;
        while frame < limit {
            let mut anybody = false;
            let missing = self.seats.iter().any(|seat| {
                let present = seat.present(frame);
                anybody |= present;
                present && seat.known <= frame
            });
            if missing || !anybody {
                break;
            }
            frame += 1;
        }
        frame
    }

    /// The seats whose final input for `frame` is missing, as a mask.
    pub(crate) fn missing(&self, frame: Frame) -> u32 {
        let missing = |seat: &SeatInputs| seat.present(frame) && seat.known <= frame;
        let seats = self.seats.iter().enumerate();
        seats.fold(0, |mask, (index, seat)| {
            mask | u32::from(missing(seat)) << index
        })
    }

    pub(crate) fn present(&self, seat: Seat, frame: Frame) -> bool {
        self.seats[seat.index()].present(frame)
    }

    /// Somebody sits down or leaves at `frame`. Who sits down has given nothing yet.
    pub(crate) fn set_presence(&mut self, seat: Seat, frame: Frame, present: bool) {
        let before = self.index_before(frame, seat);
        let Some(inputs) = self.seats.get_mut(seat.index()) else {
            return;
        };
        if inputs.presence.len() >= PRESENCE_MAX {
            // The oldest are far before any frame that is run again.
            inputs.presence.remove(0);
        }
        inputs.presence.push((frame, present));
        if present && frame >= inputs.known {
            (inputs.known, inputs.hinted) = (frame, frame);
            self.cells[before] = Cell::default();
        } else if !present {
            inputs.hinted = inputs.hinted.min(frame);
        }
    }

    /// A state of this frame was given, with each player's last input before it and how old that was: nothing before matters.
    pub(crate) fn restart(&mut self, frame: Frame, given: Vec<(u32, G::Input)>) {
        for (index, (age, given)) in given.into_iter().enumerate().take(self.seats.len()) {
            let before = self.index_before(frame, Seat(index as u8));
            let seat = &mut self.seats[index];
            if seat.known >= frame && seat.known > Frame(0) {
                continue;
            }
            seat.known = frame;
            seat.hinted = seat.hinted.max(frame);
            let value = G::predict(&given, age);
            self.cells[before] = Cell { value, given, age };
        }
    }

    /// The last input that a player gave before `frame`, and how long before.
    pub(crate) fn given_before(&self, frame: Frame, seat: Seat) -> (u32, &G::Input) {
        let cell = &self.cells[self.index_before(frame, seat)];
        (cell.age, &cell.given)
    }

    /// Stores the input of the next frame of a seat, final or early. True if the frame was run with another.
    pub(crate) fn set(
        &mut self,
        seat: Seat,
        frame: Frame,
        value: Value<G::Input>,
        is_final: bool,
        run_until: Frame,
    ) -> bool {
        let index = self.index(frame, seat);
        match value {
            Value::Given(input) => {
                let cell = &mut self.cells[index];
                cell.given.clone_from(&input);
                cell.value = input;
                cell.age = 0;
            }
            Value::Repeated => {
                let before = &self.cells[self.index_before(frame, seat)];
                let age = before.age.saturating_add(1);
                let given = before.given.clone();
                let value = G::predict(&given, age);
                self.cells[index] = Cell { value, given, age };
            }
        }
        let inputs = &mut self.seats[seat.index()];
        if is_final {
            inputs.known = frame + 1;
        }
        inputs.hinted = inputs.hinted.max(frame + 1);
        self.was_run_with_another(index, frame, run_until)
    }

    /// Notes that our own input was accepted as it is. True if the frame was run with another.
    pub(crate) fn confirm(&mut self, seat: Seat, frame: Frame, run_until: Frame) -> bool {
        let index = self.index(frame, seat);
        let seat = &mut self.seats[seat.index()];
        seat.known = frame + 1;
        seat.hinted = seat.hinted.max(seat.known);
        self.was_run_with_another(index, frame, run_until)
    }

    fn was_run_with_another(&self, index: usize, frame: Frame, run_until: Frame) -> bool {
        frame < run_until && self.used[index].as_ref() != Some(&self.cells[index].value)
    }

    /// The input of a seat at a frame that is known or hinted.
    pub(crate) fn value(&self, seat: Seat, frame: Frame) -> &G::Input {
        &self.cells[self.index(frame, seat)].value
    }

    /// Decides what a frame is run with: what is known, else guesses.
    #[inline]
    pub(crate) fn choose(&mut self, frame: Frame) -> &[Option<G::Input>] {
        let (start, count) = (self.index(frame, Seat(0)), self.seats.len());
        let (cells, mask) = (&self.cells, self.capacity - 1);
        let used = &mut self.used[start..start + count];
        let known = &cells[start..start + count];
        for (seat, ((inputs, cell), used)) in
            self.seats.iter().zip(known).zip(&mut *used).enumerate()
        {
            *used = if !inputs.present(frame) {
                None
            } else if frame < inputs.hinted {
                Some(cell.value.clone())
            } else {
                let before = (inputs.hinted.0.wrapping_sub(1) & mask) as usize;
                let last = &cells[before * count + seat];
                let age = last.age + frame.since(inputs.hinted) + 1;
                Some(G::predict(&last.given, age))
            };
        }
        used
    }

    /// Returns the inputs that a frame was run with.
    pub(crate) fn used(&self, frame: Frame) -> &[Option<G::Input>] {
        let seats = self.seats.len();
        let start = self.index(frame, Seat(0));
        &self.used[start..start + seats]
    }

    /// The frame from which on somebody sits there, if somebody does.
    pub(crate) fn playing_since(&self, seat: Seat) -> Option<Frame> {
        let last = self.seats[seat.index()].presence.last();
        last.filter(|(_, present)| *present).map(|(from, _)| *from)
    }

    /// The first frame of a seat without a final input, as all machines count it: none after a player has left, or where nobody ever sat.
    pub(crate) fn end_of_stay(&self, seat: Seat) -> Frame {
        let inputs = &self.seats[seat.index()];
        match inputs.presence.last() {
            None => Frame(0),
            Some((_, true)) => inputs.known,
            Some((left, false)) => inputs.known.min(*left),
        }
    }

    /// The final inputs of a seat from `from` on, or from when the player sat down, as far back as they are known.
    pub(crate) fn stream_from(&self, seat: Seat, from: Frame) -> Stream {
        let presence = &self.seats[seat.index()].presence;
        let joined = presence.iter().rev().find(|(_, present)| *present);
        let end = self.end_of_stay(seat);
        let first = joined.map_or(end, |(from, _)| *from);
        let first = first.max(from).max(end - self.room());
        self.stream_of(seat, first.min(end), end)
    }

    /// The inputs of a seat that are not final yet.
    pub(crate) fn stream_given(&self, seat: Seat) -> Stream {
        let inputs = &self.seats[seat.index()];
        self.stream_of(seat, inputs.known, inputs.hinted)
    }

    fn stream_of(&self, seat: Seat, first: Frame, end: Frame) -> Stream {
        let mut stream = Stream::new(first);
        let mut bytes = Vec::new();
        while stream.end() < end {
            let cell = &self.cells[self.index(stream.end(), seat)];
            bytes.clear();
            // It has travelled before, or was checked when it was given.
            let _ = encode(&cell.given, &mut bytes);
            stream.push(match cell.age {
                0 => Entry::Given(InputBytes::new(&bytes)),
                _ => Entry::Repeated,
            });
        }
        stream
    }

    /// Frames that may be stored from `confirmed` on.
    pub(crate) fn room(&self) -> u32 {
        self.capacity / 2
    }

    fn index(&self, frame: Frame, seat: Seat) -> usize {
        (frame.0 & (self.capacity - 1)) as usize * self.seats.len() + seat.index()
    }

    /// The cell before a frame's. Before frame 0 that is the last of the window, which holds nothing then.
    fn index_before(&self, frame: Frame, seat: Seat) -> usize {
        self.index(Frame(frame.0.wrapping_sub(1)), seat)
    }
}

impl SeatInputs {
    #[inline]
    fn present(&self, frame: Frame) -> bool {
        match self.presence.last() {
            Some((from, present)) if *from <= frame => *present,
            _ => self.was_present(frame),
        }
    }

    #[cold]
    fn was_present(&self, frame: Frame) -> bool {
        let last = self.presence.iter().rev().find(|(from, _)| *from <= frame);
        last.is_some_and(|(_, present)| *present)
    }
}

/// Comings and goings of a seat that are remembered.
const PRESENCE_MAX: usize = 64;
