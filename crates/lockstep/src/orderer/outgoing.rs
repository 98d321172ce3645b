//! Packets that the orderer sends.

use muse_wire::bits::{BitError, BitWriter};
use muse_wire::{Duration, Instant};

use crate::config::Mode;
use crate::frame::Frame;
use crate::orderer::member::{Held, Member, Stage};
use crate::orderer::{LinkId, Orderer};
use crate::packet::{Kind, PACKET_BYTES_MAX, Welcome};

impl Orderer {
    /// Writes the next packet into `buffer`, which holds at least [`PACKET_BYTES_MAX`] bytes, and says over which link it goes.
    pub fn poll_packet(&mut self, now: Instant, buffer: &mut [u8]) -> Option<(LinkId, usize)> {
        let room = buffer.len().min(PACKET_BYTES_MAX);
        let buffer = &mut buffer[..room];
        if let Some((link, refusal)) = self.replies.pop_front() {
            return Some((link, refusal.emit(buffer).ok()?));
        }
        for index in 0..self.members.len() {
            let link = LinkId(index);
            if let Some(refusal) = self.over {
                if self.members[index].take_if(|member| member.dirty).is_some() {
                    return Some((link, refusal.emit(buffer).ok()?));
                }
                continue;
            }
            if let Some(len) = self.poll_member(now, index, buffer) {
                return Some((link, len));
            }
        }
        None
    }

    /// When something is to be sent, if nothing arrives before; later than anything when there is nobody.
    pub(crate) fn outgoing_timeout(&self, now: Instant) -> Option<Instant> {
        if !self.replies.is_empty() {
            return Some(now);
        }
        let due = |member: &Member| {
            let sent = member.sent_at.map(|at| at + self.gap_after(member));
            let blobs = member
                .blobs_out
                .front()
                .map(|blob| blob.timeout().unwrap_or(now));
            [sent, blobs].into_iter().flatten().min()
        };
        let next = self.members.iter().flatten().filter_map(due).min();
        Some(next.unwrap_or(Instant::FAR_FUTURE))
    }

    fn poll_member(&mut self, now: Instant, index: usize, buffer: &mut [u8]) -> Option<usize> {
        let late = self.begun;
        let member = self.members[index].as_mut()?;
        if std::mem::take(&mut member.welcome_due) {
            let late = late && !matches!(member.stage, Stage::Plays | Stage::Watches);
            let (nonce, seat) = (member.nonce, member.seat);
            return Welcome { nonce, seat, late }.emit(buffer).ok();
        }
        if let Some(ack) = member.blob_in.as_mut().and_then(|blob| blob.poll(buffer)) {
            return Some(ack);
        }
        if let Some(len) = member
            .blobs_out
            .front_mut()
            .and_then(|blob| blob.poll(now, buffer))
        {
            return Some(len);
        }
        let member = self.members[index].as_ref()?;
        let due = member
            .sent_at
            .is_none_or(|at| at + self.gap_after(member) <= now);
        if !due || !self.begun && member.sent_at.is_none() && !member.dirty {
            return None;
        }
        let (len, held) = self.write_down(now, member, buffer).ok()?;
        let member = self.members[index].as_mut()?;
        member.link.sent(now, held);
        member.sent_at = Some(now);
        member.dirty = false;
        // A changed input goes twice: losing it would cost everybody else a deeper rollback.
        if std::mem::take(&mut member.again) {
            member.dirty = true;
            member.sent_at = None;
        }
        member.lags_due = false;
        Some(len)
    }

    /// Time between the last packet and the next: short when there is news, a round trip when something may be lost,
    /// else just often enough to be heard.
    fn gap_after(&self, member: &Member) -> Duration {
        if member.dirty {
            return match self.config.mode {
                Mode::Rollback => self.config.frame / 3,
                Mode::Lockstep => GAP_LOCKSTEP,
            };
        }
        let waits = member.stage.is_sent_streams() && self.has_unacked(member);
        match waits {
            true => (member.link.rtt_high() + GAP_LOCKSTEP).clamp(RESEND_MIN, HEARTBEAT),
            false => HEARTBEAT,
        }
    }

    fn has_unacked(&self, member: &Member) -> bool {
        let mut streams = self.streams.iter().zip(&member.acked.ends);
        !member.tasks.is_empty()
            || usize::from(member.acked.controls) < self.controls.len()
            || streams.any(|(stream, acked)| stream.end() > *acked)
    }

    fn write_down(
        &self,
        now: Instant,
        member: &Member,
        buffer: &mut [u8],
    ) -> Result<(usize, Held), BitError> {
        let mut writer = BitWriter::new(buffer);
        writer.bits(u64::from(Kind::Down.byte()), 8)?;
        member.link.write(now, &mut writer)?;
        let advantage = self.advantage(now, member).clamp(-128, 127);
        writer.bits(advantage as u8 as u64, 8)?;
        let mut held = member.acked;
        let streams = member.stage.is_sent_streams() && member.stage != Stage::Receives;
        writer.bool(streams)?;
        if streams {
            self.write_controls(member, &mut held, &mut writer)?;
            self.write_streams(member, &mut held, &mut writer)?;
        }
        writer.bool(!member.tasks.is_empty())?;
        if let Some(task) = member.tasks.front() {
            task.write(&mut writer)?;
        }
        writer.bool(member.lags_due)?;
        if member.lags_due {
            self.write_lags(now, &mut writer)?;
        }
        Ok((writer.finish(), held))
    }

    /// By how many sixteenths of a frame the machine runs ahead of where it should be: the average of those who play.
    ///
    /// Two players do better half a frame apart, when their inputs would else arrive just after a frame has begun: one of the two then
    /// has them a frame earlier.
    fn advantage(&self, now: Instant, member: &Member) -> i64 {
        let frame = self.frame_duration();
        let players = self.members.iter().flatten();
        let players = players.filter(|member| member.stage == Stage::Plays);
        let (mut sum, mut count, mut trip) = (0, 0, Duration::ZERO);
        let mut first = None;
        for player in players {
            if let Some(position) = player.position_now(now, frame) {
                sum += position;
                count += 1;
                trip += player.link.rtt().unwrap_or_default() / 2;
                first = first.or(player.seat);
            }
        }
        let Some(here) = member.position_now(now, frame).filter(|_| count > 0) else {
            return 0;
        };
        let mut ahead = here - sum / count;
        if count == 2 && self.config.mode == Mode::Rollback && member.stage == Stage::Plays {
            let within = (trip.as_micros() * 16 / frame.as_micros().max(1) + TRIP_MARGIN) % 16;
            let apart = (16 - within).min(8) as i64;
            ahead += if member.seat == first { -apart } else { apart } / 2;
        }
        ahead
    }

    fn write_controls(
        &self,
        member: &Member,
        held: &mut Held,
        writer: &mut BitWriter<'_>,
    ) -> Result<(), BitError> {
        let first = usize::from(member.acked.controls).min(self.controls.len());
        let news = &self.controls[first..];
        let news = &news[..news.len().min(CONTROLS_PER_PACKET)];
        writer.gamma(news.len() as u64)?;
        if !news.is_empty() {
            writer.bits(first as u64, 16)?;
        }
        for control in news {
            control.write(writer)?;
        }
        held.controls = (first + news.len()) as u16;
        Ok(())
    }

    /// Everybody's inputs since those that the machine has acknowledged. Of its own it is told how far they were taken.
    fn write_streams(
        &self,
        member: &Member,
        held: &mut Held,
        writer: &mut BitWriter<'_>,
    ) -> Result<(), BitError> {
        // A machine that lacks controls must not be told of inputs that come after them.
        let complete = usize::from(held.controls) == self.controls.len();
        let news = |seat: usize| complete && self.streams[seat].end() > member.acked.ends[seat];
        let seats = 0..self.config.seats();
        let starts = seats.clone().filter(|seat| news(*seat));
        let base = starts.map(|seat| member.acked.ends[seat]).min();
        writer.bool(base.is_some())?;
        let Some(base) = base else { return Ok(()) };
        writer.bits(u64::from(base.low()), 16)?;
        for seat in seats {
            writer.bool(news(seat))?;
            if !news(seat) {
                continue;
            }
            let from: Frame = member.acked.ends[seat];
            writer.gamma(u64::from(from.since(base)))?;
            let stream = &self.streams[seat];
            let own = member.seat.is_some_and(|own| own.index() == seat);
            held.ends[seat] = match own && member.stage == Stage::Plays {
                true => stream.write_kinds(from, writer)?,
                false => stream.write(from, writer)?,
            };
        }
        Ok(())
    }

    /// For each seat the round trip in units of 4 ms; 255 when the player is silent.
    fn write_lags(&self, now: Instant, writer: &mut BitWriter<'_>) -> Result<(), BitError> {
        for seat in 0..self.config.seats() {
            let mut members = self.members.iter().flatten();
            let member = members.find(|member| member.seat.is_some_and(|own| own.index() == seat));
            let lag = member.map_or(0, |member| match now - member.heard > SILENT_AFTER {
                true => 255,
                false => (member.link.rtt_high().as_micros() / LAG_UNIT_MICROS).min(254),
            });
            writer.bits(lag, 8)?;
        }
        Ok(())
    }
}

/// Added to a trip, in sixteenths of a frame: packets are noticed a little late.
const TRIP_MARGIN: u64 = 2;
/// Unit in which a lag travels in a byte: up to a second, and 255 for a silent player.
pub(crate) const LAG_UNIT_MICROS: u64 = 4_000;
/// Shortest gap between packets in lockstep: inputs that arrive from several players within it share a packet, and against turns of
/// tens of milliseconds it is not noticed.
const GAP_LOCKSTEP: Duration = Duration::from_millis(5);
/// Nothing is repeated sooner, even on a local network: the acknowledgement waits for the session's next packet.
const RESEND_MIN: Duration = Duration::from_millis(30);
/// Longest gap between packets, so that silence of a second means something.
const HEARTBEAT: Duration = Duration::from_millis(200);
/// Silence after which a player is reported as silent: five heartbeats.
const SILENT_AFTER: Duration = Duration::from_secs(1);
/// They fit into a packet with room for streams.
const CONTROLS_PER_PACKET: usize = 48;
