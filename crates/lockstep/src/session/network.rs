//! A session's packets.

use muse_wire::bits::{BitError, BitReader, BitWriter, Width};
use muse_wire::bytes::Reader;
use muse_wire::{Duration, Instant};

use crate::blob::{BlobReceiver, BlobSender};
use crate::config::{Mode, PROTOCOL_VERSION};
use crate::frame::{Frame, Seat};
use crate::game::{DeterministicGame, decode, encode};
use crate::link::Link;
use crate::orderer::{BLOB_HEADER_MAX, BLOB_STATE, BLOB_TRACE, CONTROLS_MAX, COST_UNIT_MICROS};
use crate::packet::{Control, Hello, Kind, OverReason, PACKET_BYTES_MAX, Task, Welcome};
use crate::session::inputs::Value;
use crate::session::trace::Trace;
use crate::session::{Role, Session, SessionEvent, Status};
use crate::stream::{Entry, Stream};
use crate::succession::{Known, Recall, Resume};

/// The destination of a session's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To the orderer.
    Orderer,
    /// To another player, directly.
    Seat(Seat),
}

/// The content of a packet to the orderer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    own_end: Frame,
}

#[derive(Debug, Default)]
pub(crate) struct Sending {
    /// There is something new to send.
    pub(crate) dirty: bool,
    pub(crate) bye: bool,
    /// The input has changed, so that losing the packet would cost a deeper rollback: it goes twice.
    pub(crate) again: bool,
    /// Packets that still carry the newest checksum.
    pub(crate) check_copies: u8,
    sent_at: Option<Instant>,
    hello_at: Option<Instant>,
    /// Another orderer has not taken it on yet.
    pub(crate) resuming: bool,
    /// The other orderer asks for what goes beyond this.
    recalled: Option<Known>,
    /// Inputs arrived that are acknowledged no later than this.
    ack_at: Option<Instant>,
    /// Players who have not been sent the newest input directly.
    direct: u32,
    cost_at: Instant,
}

impl<G: DeterministicGame> Session<G> {
    /// A packet of the orderer arrived. What is not understood is counted and dropped.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let Some((kind, rest)) = Kind::of(packet) else {
            self.statistics.refused_packets += 1;
            return;
        };
        if matches!(self.status, Status::Over(_)) {
            return;
        }
        if self.send.resuming && kind == Kind::Down {
            // The welcome was lost: the orderer goes on.
            self.resumed();
        }
        let understood = match kind {
            Kind::Welcome => self.handle_welcome(now, rest).is_some(),
            Kind::Refused => OverReason::parse(rest)
                .map(|refusal| self.finish(refusal))
                .is_some(),
            Kind::Down => self.handle_down(now, rest).is_ok(),
            Kind::Direct => self.handle_direct(rest).is_ok(),
            Kind::Recall => self.handle_recall(rest).is_some(),
            Kind::BlobData => self.handle_blob_data(now, rest).is_some(),
            Kind::BlobAck => {
                self.heard = Some(now);
                let mut reader = Reader::new(rest);
                let blob = self.blob_out.as_mut();
                let understood = blob.is_none_or(|blob| blob.handle_ack(&mut reader).is_ok());
                self.blob_out.take_if(|blob| blob.is_done());
                understood
            }
            _ => false,
        };
        self.statistics.refused_packets += u64::from(!understood);
    }

    /// Writes the next packet into `buffer`, which holds at least [`PACKET_BYTES_MAX`] bytes, and says where it goes.
    pub fn poll_packet(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(Target, usize)> {
        let room = buffer.len().min(PACKET_BYTES_MAX);
        let buffer = &mut buffer[..room];
        let to_orderer = |len: usize| Some((Target::Orderer, len));
        if std::mem::take(&mut self.send.bye) {
            *buffer.first_mut()? = Kind::Bye.byte();
            return to_orderer(1);
        }
        match self.status {
            Status::Over(_) | Status::Lost => return None,
            Status::Connecting => {
                let due = self.send.hello_at.is_none_or(|at| at <= now);
                return due
                    .then(|| self.emit_hello(now, buffer))?
                    .and_then(to_orderer);
            }
            _ if self.send.resuming => {
                return self.emit_resuming(now, buffer).and_then(to_orderer);
            }
            _ => {}
        }
        if let Some(len) = self.blob_in.as_mut().and_then(|blob| blob.poll(buffer)) {
            return to_orderer(len);
        }
        if let Some(len) = self
            .blob_out
            .as_mut()
            .and_then(|blob| blob.poll(now, buffer))
        {
            return to_orderer(len);
        }
        if self.send.sent_at.is_none_or(|at| self.send_due(at) <= now) {
            let (len, held) = self.emit_up(now, buffer).ok()?;
            self.link.sent(now, held);
            if self.send.dirty {
                self.send.direct = self.directs;
            }
            self.send.dirty = std::mem::take(&mut self.send.again);
            self.send.ack_at = None;
            self.send.sent_at = Some(now);
            self.send.check_copies = self.send.check_copies.saturating_sub(1);
            return to_orderer(len);
        }
        self.poll_direct(buffer)
    }

    pub(super) fn send_timeout(&self, now: Instant) -> Instant {
        if self.send.recalled.is_some() {
            return now;
        }
        if self.status == Status::Connecting || self.send.resuming {
            return self.send.hello_at.unwrap_or(now);
        }
        if self.send.direct != 0 || self.blob_in.as_ref().is_some_and(BlobReceiver::ack_is_due) {
            return now;
        }
        let blob = self
            .blob_out
            .as_ref()
            .map(|blob| blob.timeout().unwrap_or(now));
        let packet = self.send.sent_at.map_or(now, |at| self.send_due(at));
        packet.min(blob.unwrap_or(packet))
    }

    /// Time at which the packet after the one sent at `at` goes out.
    fn send_due(&self, at: Instant) -> Instant {
        if self.send.dirty {
            return at;
        }
        let unacked = self.own.end() > self.own.first() && self.playing;
        let quiet = match unacked {
            true => (self.link.rtt_high() + RESEND_MARGIN).clamp(RESEND_MIN, HEARTBEAT),
            false => HEARTBEAT,
        };
        self.send
            .ack_at
            .map_or(at + quiet, |ack| ack.min(at + quiet))
    }

    fn emit_hello(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        self.send.hello_at = Some(now + HELLO_EVERY);
        let hello = Hello {
            contract: self.contract,
            nonce: self.nonce,
            watches: self.role == Role::Spectator,
            seat: match self.role {
                Role::PlayerAt(seat) => Some(seat),
                _ => None,
            },
        };
        hello.emit(buffer).ok()
    }

    fn emit_up(&mut self, now: Instant, buffer: &mut [u8]) -> Result<(usize, Held), BitError> {
        let mut writer = BitWriter::new(buffer);
        writer.bits(u64::from(Kind::Up.byte()), 8)?;
        self.link.write(now, &mut writer)?;
        let steps = u64::from(self.steps_now());
        let within = (u64::from(self.step_index) * 16 + self.pace.fraction(now)) / steps;
        let at = (u64::from(self.frame.0) * 16 + within) & 0xFFFF;
        writer.bits(at, 16)?;
        let running = matches!(self.status, Status::Running | Status::Waiting { .. });
        writer.bool(running && !self.is_behind())?;
        let mut own_end = self.own.first();
        writer.bool(self.playing)?;
        if self.playing {
            writer.bits(u64::from(self.own.first().low()), 16)?;
            own_end = self.own.write(self.own.first(), &mut writer)?;
        }
        let check = self
            .check
            .filter(|_| self.send.check_copies > 0 && self.playing);
        writer.bool(check.is_some())?;
        if let Some(check) = check {
            check.write(&mut writer)?;
        }
        let cost_due = self.cost > Duration::ZERO && now >= self.send.cost_at;
        writer.bool(cost_due)?;
        if cost_due {
            self.send.cost_at = now + COST_EVERY;
            let units = self.cost.as_micros().div_ceil(COST_UNIT_MICROS);
            writer.varint(units.min(u64::from(u16::MAX)), Width::Bits16)?;
        }
        Ok((writer.finish(), Held { own_end }))
    }

    fn steps_now(&self) -> u8 {
        let plan = self.plans.iter().rev().find(|plan| plan.0 <= self.frame);
        plan.map_or(1, |plan| plan.1)
    }

    /// One's inputs that the orderer has not acknowledged, to a player directly.
    fn poll_direct(&mut self, buffer: &mut [u8]) -> Option<(Target, usize)> {
        let seat = self.send.direct.trailing_zeros();
        if seat >= 32 {
            return None;
        }
        self.send.direct &= !(1 << seat);
        let own = self.seat.filter(|_| self.playing)?;
        let mut writer = BitWriter::new(buffer);
        writer.bits(u64::from(Kind::Direct.byte()), 8).ok()?;
        writer.bits(u64::from(own.0), 8).ok()?;
        writer.bits(u64::from(self.own.first().low()), 16).ok()?;
        self.own.write(self.own.first(), &mut writer).ok()?;
        Some((Target::Seat(Seat(seat as u8)), writer.finish()))
    }

    fn handle_welcome(&mut self, now: Instant, rest: &[u8]) -> Option<()> {
        let welcome = Welcome::parse(rest).ok()?;
        let seat_exists = welcome
            .seat
            .is_none_or(|seat| seat.index() < self.config.seats());
        if welcome.nonce != self.nonce || !seat_exists {
            return None;
        }
        self.heard = Some(now);
        if self.send.resuming {
            self.resumed();
        } else if self.status == Status::Connecting {
            self.seat = welcome.seat;
            self.status = match welcome.late {
                true => Status::Joining,
                false => Status::Lobby,
            };
        }
        Some(())
    }

    fn handle_down(&mut self, now: Instant, rest: &[u8]) -> Result<(), BitError> {
        if self.status == Status::Connecting {
            return Ok(());
        }
        self.heard = Some(now);
        let mut reader = BitReader::new(rest);
        let Some(acked) = self.link.read(now, &mut reader)? else {
            return Ok(());
        };
        if let Some(acked) = acked {
            self.own.forget_before(acked.own_end);
        }
        self.pace.observe(reader.bits(8)? as u8 as i8);
        if reader.bool()? && self.status != Status::Joining {
            let before = self.confirmed;
            self.read_controls(now, &mut reader)?;
            let streams = match reader.bool()? {
                true => self.read_streams(&mut reader),
                false => Ok(()),
            };
            // Somebody's leaving confirms frames, too.
            self.confirmed = self.inputs.confirmed_from(before);
            if self.confirmed > before && self.config.mode == Mode::Lockstep {
                self.send.ack_at = self.send.ack_at.or(Some(now + ACK_WITHIN));
            }
            streams?;
        } else if self.status == Status::Joining {
            // Inputs are of no use before the state is there.
            return Ok(());
        }
        if reader.bool()? {
            let task = Task::read(&mut reader)?;
            self.take_task(task);
        }
        if reader.bool()? {
            for lag in &mut self.lags {
                *lag = reader.bits(8)? as u8;
            }
        }
        Ok(())
    }

    fn read_controls(&mut self, now: Instant, reader: &mut BitReader<'_>) -> Result<(), BitError> {
        let count = reader.gamma()?;
        if count == 0 {
            return Ok(());
        }
        let first = reader.bits(16)?;
        self.read_each_control(now, reader, first, count, CONTROLS_MAX)
    }

    /// Reads the controls of a report; those from `end` on are not its to tell.
    pub(crate) fn read_controls_from(
        &mut self,
        now: Instant,
        reader: &mut BitReader<'_>,
        end: u16,
    ) -> Result<(), BitError> {
        let (count, first) = (reader.gamma()?, reader.bits(16)?);
        let end = CONTROLS_MAX.min(usize::from(end));
        self.read_each_control(now, reader, first, count, end)
    }

    fn read_each_control(
        &mut self,
        now: Instant,
        reader: &mut BitReader<'_>,
        first: u64,
        count: u64,
        end: usize,
    ) -> Result<(), BitError> {
        for index in first..first.saturating_add(count) {
            let control = Control::read(reader)?;
            let seen = self.controls.len();
            if index == seen as u64 && seen < end {
                self.controls.push(control);
                self.take_control(now, control);
            }
        }
        Ok(())
    }

    fn take_control(&mut self, now: Instant, control: Control) {
        match control {
            Control::Plan { frame, steps, step } => {
                self.plans.push_back((frame, steps, step));
                if self.status == Status::Lobby {
                    self.status = Status::Running;
                    self.pace.begin(now);
                    self.tell(SessionEvent::Begun(Frame(0)));
                }
                if self.plans.len() == 1 || frame <= self.frame {
                    self.pace.set_step(step);
                }
                self.tell(SessionEvent::Pace(steps, step));
            }
            Control::Joined { frame, seat } => {
                self.inputs.set_presence(seat, frame, true);
                if Some(seat) == self.seat && self.is_mine(frame) {
                    self.playing = true;
                    self.own.restart(frame);
                    self.send.dirty = true;
                }
                self.tell(SessionEvent::Joined(seat, frame));
            }
            Control::Left { frame, seat } => {
                self.inputs.set_presence(seat, frame, false);
                // Guesses of what the player does after it left were wrong.
                self.note_wrong(frame, frame < self.frame);
                self.tell(SessionEvent::Left(seat, frame));
            }
        }
    }

    /// True if the player who sat down at `frame` is this one: anyone who had the seat before this machine joined is another player.
    fn is_mine(&self, frame: Frame) -> bool {
        frame >= self.confirmed
    }

    fn read_streams(&mut self, reader: &mut BitReader<'_>) -> Result<(), BitError> {
        let base = Frame::near(reader.bits(16)? as u16, self.confirmed);
        for index in 0..self.config.seats() {
            if !reader.bool()? {
                continue;
            }
            let offset = reader.gamma()?;
            if offset > u64::from(u16::MAX) {
                return Err(BitError::OutOfRange);
            }
            let from = base + offset as u32;
            let seat = Seat(index as u8);
            match self.playing && Some(seat) == self.seat {
                true => self.read_own(seat, from, reader)?,
                false => self.read_other(seat, from, reader, true)?,
            }
        }
        Ok(())
    }

    /// Reads how far our own inputs were accepted, and which of them the server replaced.
    fn read_own(
        &mut self,
        seat: Seat,
        from: Frame,
        reader: &mut BitReader<'_>,
    ) -> Result<(), BitError> {
        let mut wrong: Option<Frame> = None;
        let (inputs, own) = (&mut self.inputs, &mut self.own);
        let (run_until, limit) = (self.frame, self.confirmed + inputs.room());
        let (next, replaced) = (&mut self.input, &mut self.statistics.replaced);
        Stream::read_kinds(from, reader, |frame, repeated| {
            if frame != inputs.known(seat) || frame >= limit {
                return;
            }
            // The orderer cannot have accepted an input that was never given.
            if !repeated && frame >= inputs.hinted(seat) {
                return;
            }
            let differs = match repeated {
                false => inputs.confirm(seat, frame, run_until),
                true => {
                    *replaced += 1;
                    if frame < inputs.hinted(seat) {
                        let lost = inputs.value(seat, frame).clone();
                        G::carry_over(&lost, next);
                    }
                    inputs.set(seat, frame, Value::Repeated, true, run_until)
                }
            };
            if differs && wrong.is_none() {
                wrong = Some(frame);
            }
            if frame >= own.end() {
                // Others stood in for inputs that this machine has not even given.
                own.restart(frame + 1);
            }
        })?;
        if let Some(frame) = wrong {
            self.note_wrong(frame, true);
        }
        Ok(())
    }

    fn read_other(
        &mut self,
        seat: Seat,
        from: Frame,
        reader: &mut BitReader<'_>,
        is_final: bool,
    ) -> Result<(), BitError> {
        self.read_other_until(seat, from, reader, is_final, Frame::NEVER)
    }

    fn read_other_until(
        &mut self,
        seat: Seat,
        from: Frame,
        reader: &mut BitReader<'_>,
        is_final: bool,
        end: Frame,
    ) -> Result<(), BitError> {
        let mut wrong: Option<Frame> = None;
        let mut bad = false;
        let inputs = &mut self.inputs;
        let limit = (self.confirmed + inputs.room()).min(end);
        let run_until = self.frame;
        Stream::read(from, reader, |frame, entry| {
            let next = match is_final {
                true => inputs.known(seat),
                false => inputs.hinted(seat),
            };
            if frame != next || frame >= limit || bad || !inputs.present(seat, frame) {
                return;
            }
            let value = match entry {
                Entry::Repeated => Value::Repeated,
                Entry::Given(bytes) => match decode(bytes.as_slice()) {
                    Ok(input) => Value::Given(input),
                    // Everybody sees the same bytes and comes to the same conclusion: as if nothing had been given.
                    Err(_) if is_final => Value::Given(G::Input::default()),
                    Err(_) => {
                        bad = true;
                        return;
                    }
                },
            };
            let differs = inputs.set(seat, frame, value, is_final, run_until);
            if differs && wrong.is_none() {
                wrong = Some(frame);
            }
        })?;
        if let Some(frame) = wrong {
            self.note_wrong(frame, true);
        }
        Ok(())
    }

    /// A player's inputs, straight from it: not final, but better than a guess.
    fn handle_direct(&mut self, rest: &[u8]) -> Result<(), BitError> {
        let mut reader = BitReader::new(rest);
        let seat = Seat(reader.bits(8)? as u8);
        let own = Some(seat) == self.seat;
        if seat.index() >= self.config.seats() || own || !matches!(self.status, Status::Running) {
            return Ok(());
        }
        let from = Frame::near(reader.bits(16)? as u16, self.inputs.hinted(seat));
        self.read_other(seat, from, &mut reader, false)
    }

    fn take_task(&mut self, task: Task) {
        if self.task_done == Some(task.id()) {
            return;
        }
        self.task_done = Some(task.id());
        match task {
            Task::GiveState { id } => {
                if let Some(blob) = self.state_blob() {
                    self.blob_out = Some(BlobSender::new(id, blob, self.link.rtt_high()));
                }
            }
            Task::GiveTrace { id, good, bad } => {
                let trace = Trace::take(self, good, bad);
                let blob = trace.to_bytes(self.config.state_bytes_max);
                self.blob_out = Some(BlobSender::new(id, blob, self.link.rtt_high()));
                self.own_trace = Some(trace);
            }
            Task::Resimulate { good, .. } => {
                self.epoch = (self.epoch + 1) & 3;
                self.resimulate(good);
            }
            // The state comes as a blob, and says itself what it is for.
            Task::TakeState { .. } => {}
        }
    }

    /// The newest confirmed state, with each player's last input before it.
    fn state_blob(&mut self) -> Option<Vec<u8>> {
        let (frame, state) = self.confirmed_state()?;
        let mut blob = vec![BLOB_STATE];
        blob.extend(frame.0.to_le_bytes());
        let mut input_bytes = Vec::new();
        for index in 0..self.config.seats() {
            let (age, given) = self.inputs.given_before(frame, Seat(index as u8));
            input_bytes.clear();
            encode(given, &mut input_bytes).ok()?;
            blob.extend(age.to_le_bytes());
            blob.extend((input_bytes.len() as u16).to_le_bytes());
            blob.extend(&input_bytes);
        }
        encode(state, &mut blob).ok()?;
        (blob.len() <= self.config.state_bytes_max + BLOB_HEADER_MAX).then_some(blob)
    }

    fn handle_blob_data(&mut self, now: Instant, rest: &[u8]) -> Option<()> {
        if self.status == Status::Connecting {
            // The welcome is still on its way; whatever is not acknowledged is repeated.
            return Some(());
        }
        self.heard = Some(now);
        let max = self.config.state_bytes_max + BLOB_HEADER_MAX;
        let mut reader = Reader::new(rest);
        let Some(blob) = BlobReceiver::handle(&mut self.blob_in, &mut reader, max).ok()? else {
            return Some(());
        };
        let (tag, content) = blob.split_first()?;
        match *tag {
            BLOB_STATE => self.take_state(now, *rest.first()?, content),
            BLOB_TRACE => {
                let theirs = Trace::parse(content)?;
                let ours = self.own_trace.as_ref()?;
                let report = ours.compare::<G>(&theirs);
                self.tell(SessionEvent::Desynced(Box::new(report)));
                Some(())
            }
            _ => None,
        }
    }

    fn take_state(&mut self, now: Instant, id: u8, content: &[u8]) -> Option<()> {
        let mut reader = Reader::new(content);
        let frame = Frame(reader.u32().ok()?);
        let mut given = Vec::new();
        for _ in 0..self.config.seats() {
            let age = reader.u32().ok()?.min(AGE_MAX);
            let len = reader.u16().ok()?;
            given.push((age, decode(reader.slice(usize::from(len)).ok()?).ok()?));
        }
        let state = decode(reader.rest()).ok()?;
        let joining = self.status == Status::Joining;
        let within = frame <= self.confirmed.min(self.frame);
        if frame >= Frame::NEVER - u32::from(u16::MAX) || !joining && !within {
            return None;
        }
        if !joining {
            if self.blob_taken == Some(id) {
                return Some(());
            }
            self.blob_taken = Some(id);
            self.epoch = (self.epoch + 1) & 3;
            self.check = None;
        }
        self.inputs.restart(frame, given);
        self.load(now, frame, state);
        Some(())
    }

    /// Forgets what was between this session and its orderer, and asks the next one.
    pub(crate) fn begin_resuming(&mut self) {
        self.send = Sending {
            resuming: true,
            ..Sending::default()
        };
    }

    /// The other orderer has taken it on: gives again what nobody may have heard.
    fn resumed(&mut self) {
        self.send = Sending {
            dirty: true,
            ..Sending::default()
        };
        self.link = Link::new();
        (self.epoch, self.check) = (0, None);
        (self.task_done, self.blob_out, self.blob_taken) = (None, None, None);
        (self.blob_in, self.own_trace) = (None, None);
        if let Some(seat) = self.seat.filter(|_| self.playing) {
            self.own = self.inputs.stream_given(seat);
        }
        self.tell(SessionEvent::Resumed);
    }

    fn emit_resuming(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if let Some(from) = self.send.recalled.take() {
            return self.emit_report(&from, buffer).ok();
        }
        if self.send.hello_at.is_some_and(|at| at > now) {
            return None;
        }
        self.send.hello_at = Some(now + RESUME_EVERY);
        let resume = Resume {
            contract: self.contract,
            nonce: self.nonce,
            known: self.known(),
        };
        let len = resume.emit(buffer).ok()?;
        // What is not final goes with it, so that it is when the match goes on.
        let Some(seat) = self.seat.filter(|_| self.playing) else {
            return Some(len);
        };
        let own = self.inputs.stream_given(seat);
        let mut writer = BitWriter::new(&mut buffer[len..]);
        writer.bits(u64::from(own.first().low()), 16).ok()?;
        own.write(own.first(), &mut writer).ok()?;
        Some(len + writer.finish())
    }

    fn handle_recall(&mut self, rest: &[u8]) -> Option<()> {
        let recall = Recall::parse(rest).ok()?;
        if self.send.resuming && recall.nonce == self.nonce {
            self.send.recalled = Some(recall.known);
        }
        Some(())
    }

    /// Reads inputs that another session knows to be final.
    pub(crate) fn read_reported(
        &mut self,
        seat: Seat,
        from: Frame,
        end: Frame,
        reader: &mut BitReader<'_>,
    ) -> Result<(), BitError> {
        self.read_other_until(seat, from, reader, true, end)
    }

    fn finish(&mut self, refusal: OverReason) {
        self.status = Status::Over(refusal);
        self.tell(SessionEvent::Over(refusal));
    }
}

const _: () = assert!(PROTOCOL_VERSION < 16, "the version has four bits");
const HELLO_EVERY: Duration = Duration::from_millis(250);
/// Until another orderer takes the session on, everybody waits for it.
const RESUME_EVERY: Duration = Duration::from_millis(80);
/// Longest gap between packets, so that the orderer can tell silence from having nothing to say.
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Inputs that are not acknowledged are repeated this long after a round trip.
const RESEND_MARGIN: Duration = Duration::from_millis(5);
/// Nothing is repeated sooner, even on a local network: the acknowledgement waits for the orderer's next packet.
const RESEND_MIN: Duration = Duration::from_millis(30);
/// In lockstep, inputs are acknowledged no later than this, or with the next turn if that is sooner.
const ACK_WITHIN: Duration = Duration::from_millis(10);
const COST_EVERY: Duration = Duration::from_secs(1);
/// Age of an input, beyond which it makes no difference.
const AGE_MAX: u32 = 1 << 24;
