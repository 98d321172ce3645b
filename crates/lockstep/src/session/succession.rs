//! A session that goes on under another orderer, and what it tells the machine that takes over.

use muse_wire::Instant;
use muse_wire::bits::{BitError, BitReader, BitWriter};

use crate::frame::{Frame, SEATS_MAX, Seat};
use crate::game::DeterministicGame;
use crate::packet::{Control, Kind};
use crate::session::{Session, Status};
use crate::stream::Stream;
use crate::succession::Known;

impl<G: DeterministicGame> Session<G> {
    /// Goes on under another orderer, from where it is. False if the match does not run here: then it takes a new session that joins.
    ///
    /// Until that orderer answers, rollback goes on with guesses. `nonce` is as in [`new`](Self::new).
    pub fn resume(&mut self, now: Instant, nonce: u32) -> bool {
        if !matches!(self.status, Status::Running | Status::Waiting { .. }) {
            return false;
        }
        (self.nonce, self.heard) = (nonce, Some(now));
        self.begin_resuming();
        true
    }

    /// Returns true while another orderer has not taken it on: the session runs, and its packets need not hurry.
    pub fn is_resuming(&self) -> bool {
        self.send.resuming
    }

    pub(crate) fn known(&self) -> Known {
        let mut ends = [Frame(0); SEATS_MAX];
        for (seat, end) in ends.iter_mut().enumerate().take(self.config.seats()) {
            *end = self.inputs.end_of_stay(Seat(seat as u8));
        }
        Known {
            controls: self.controls.len() as u16,
            ends,
        }
    }

    pub(crate) fn contract(&self) -> u64 {
        self.contract
    }

    pub(crate) fn controls(&self) -> &[Control] {
        &self.controls
    }

    /// The frame from which on somebody plays there, if somebody does.
    pub(crate) fn playing_since(&self, seat: Seat) -> Option<Frame> {
        self.inputs.playing_since(seat)
    }

    /// A seat's final inputs, from `from` on as far as they are known here.
    pub(crate) fn final_inputs(&self, seat: Seat, from: Frame) -> Stream {
        self.inputs.stream_from(seat, from.max(self.first))
    }

    /// The seats of those who play, as far as is known here.
    pub(crate) fn seats_playing(&self) -> impl Iterator<Item = Seat> + '_ {
        let seats = (0..self.config.seats()).map(|seat| Seat(seat as u8));
        seats.filter(|seat| self.inputs.playing_since(*seat).is_some())
    }

    /// Writes what is known here beyond `from`, as much as fits.
    pub(crate) fn emit_report(&self, from: &Known, buffer: &mut [u8]) -> Result<usize, BitError> {
        let mut writer = BitWriter::new(buffer);
        writer.bits(u64::from(Kind::Report.byte()), 8)?;
        let first = usize::from(from.controls).min(self.controls.len());
        let news = &self.controls[first..];
        let news = &news[..news.len().min(CONTROLS_PER_REPORT)];
        writer.gamma(news.len() as u64)?;
        writer.bits(first as u64, 16)?;
        news.iter()
            .try_for_each(|control| control.write(&mut writer))?;
        // Inputs mean nothing without the controls before them.
        let complete = first + news.len() == self.controls.len();
        for index in 0..self.config.seats() {
            let seat = Seat(index as u8);
            let stream = self
                .inputs
                .stream_from(seat, from.ends[index].max(self.first));
            let has_news = complete && stream.end() > stream.first();
            writer.bool(has_news)?;
            if has_news {
                writer.bits(u64::from(stream.first().0), 32)?;
                stream.write(stream.first(), &mut writer)?;
            }
        }
        Ok(writer.finish())
    }

    /// Reads what another session knows beyond this one; never more than it has said that it knows.
    pub(crate) fn take_report(
        &mut self,
        now: Instant,
        known: &Known,
        rest: &[u8],
    ) -> Result<(), BitError> {
        let mut reader = BitReader::new(rest);
        self.read_controls_from(now, &mut reader, known.controls)?;
        let before = self.confirmed;
        for index in 0..self.config.seats() {
            if !reader.bool()? {
                continue;
            }
            let from = Frame(reader.bits(32)? as u32);
            self.read_reported(Seat(index as u8), from, known.ends[index], &mut reader)?;
        }
        self.confirmed = self.inputs.confirmed_from(before);
        Ok(())
    }
}

/// They fit into a packet with room for inputs.
const CONTROLS_PER_REPORT: usize = 64;
