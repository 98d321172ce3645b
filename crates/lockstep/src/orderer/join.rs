//! Joining a match under way: a player gives its newest confirmed state, and the inputs since then do the rest.

use muse_wire::{Duration, Instant};

use crate::frame::Frame;
use crate::orderer::{CONTROLS_MAX, LinkId, Notice, Orderer, member::Held, member::Stage};
use crate::packet::{Control, Task};

/// A state that has been asked for.
#[derive(Debug)]
pub(crate) struct Donation {
    /// The player that was asked, under which id, and when.
    pub(crate) asked: Option<(LinkId, u8, Instant)>,
    /// Inputs from here on are kept until those who join have them.
    hold: Frame,
    next_id: u8,
}

impl Default for Donation {
    fn default() -> Self {
        Self {
            asked: None,
            hold: Frame::NEVER,
            next_id: 0,
        }
    }
}

impl Donation {
    pub(crate) fn held_from(&self) -> Frame {
        self.hold
    }

    pub(crate) fn forget_donor(&mut self, link: LinkId) {
        if self.asked.is_some_and(|(donor, _, _)| donor == link) {
            self.asked = None;
        }
    }

    /// Ids tell blobs and tasks apart; a machine never has 256 of them under way.
    pub(crate) fn fresh_id(&mut self) -> u8 {
        self.next_id = self.next_id.wrapping_add(1);
        self.next_id
    }
}

impl Orderer {
    /// Asks a player for its state when somebody needs one.
    pub(crate) fn ask_for_state(&mut self, now: Instant) {
        let wanted = self.members.iter().flatten().any(|member| {
            member.stage == Stage::AwaitsState
                || matches!(member.tasks.front(), Some(Task::TakeState { .. }))
                    && member.blobs_out.is_empty()
        });
        if !wanted {
            if self.donation.asked.is_none() {
                self.donation.hold = Frame::NEVER;
            }
            return;
        }
        if let Some((donor, id, at)) = self.donation.asked {
            if now - at < DONOR_PATIENCE {
                return;
            }
            // It does not answer: somebody else may.
            if let Some(member) = self.members.get_mut(donor.0).and_then(Option::as_mut) {
                member.tasks.retain(|task| task.id() != id);
            }
            self.donation.asked = None;
        }
        let silent_last = self.donation.next_id;
        let donors = self
            .members
            .iter()
            .enumerate()
            .filter_map(|(index, member)| {
                let member = member.as_ref()?;
                let able = member.stage == Stage::Plays && member.tasks.is_empty();
                able.then(|| (index, member.link.rtt_high()))
            });
        let mut donors: Vec<(usize, Duration)> = donors.collect();
        donors.sort_by_key(|(index, rtt)| (*rtt, *index));
        // Another one each time, the nearest first.
        let Some((donor, _)) = donors.get(usize::from(silent_last) % donors.len().max(1)) else {
            return;
        };
        let donor = LinkId(*donor);
        let id = self.donation.fresh_id();
        let firsts = self.streams.iter().zip(&self.playing);
        let firsts = firsts.filter(|(_, from)| from.is_some());
        let first = firsts.map(|(stream, _)| stream.first()).min();
        self.donation.hold = first.unwrap_or(self.sealed).min(self.sealed);
        self.donation.asked = Some((donor, id, now));
        if let Some(member) = self.members.get_mut(donor.0).and_then(Option::as_mut) {
            member.give_task(Task::GiveState { id });
        }
    }

    /// A state has come: on to everybody who waits for one. `blob` is as it was given: a tag, the frame, the state.
    pub(crate) fn pass_on_state(&mut self, frame: Frame, blob: &[u8]) {
        self.donation.asked = None;
        let mut kept = self.streams.iter().zip(&self.playing);
        let lost = kept.any(|(stream, from)| {
            from.is_some_and(|from| stream.first() > frame && stream.first() > from)
        });
        if frame > self.sealed || lost {
            // Not a state that the inputs kept lead on from; another will be asked for.
            return;
        }
        for member in self.members.iter_mut().flatten() {
            let id = match (member.stage, member.tasks.front()) {
                (Stage::AwaitsState, _) => {
                    member.stage = Stage::Receives;
                    member.acked = Held::from(frame);
                    0
                }
                (_, Some(Task::TakeState { id })) if member.blobs_out.is_empty() => *id,
                _ => continue,
            };
            member.send_blob(id, blob.to_vec());
        }
    }

    /// Those who have caught up begin to play.
    pub(crate) fn seat_those_who_are_ready(&mut self) {
        for index in 0..self.members.len() {
            let Some(member) = &mut self.members[index] else {
                continue;
            };
            if member.stage == Stage::Receives && member.blobs_out.is_empty() {
                member.stage = Stage::CatchesUp;
                member.dirty = true;
            }
            let (Stage::CatchesUp, true) = (member.stage, member.ready) else {
                continue;
            };
            let Some(seat) = member.seat else {
                member.stage = Stage::Watches;
                continue;
            };
            let rtt = member.link.rtt_high();
            // The inputs of the seat's last player must have arrived everywhere before the seat's stream starts over.
            let end = self.streams[seat.index()].end();
            let sent = self.members.iter().flatten();
            let mut sent = sent.filter(|member| member.stage.is_sent_streams());
            let settled = sent.all(|member| member.acked.ends[seat.index()] >= end);
            if !settled || self.controls.len() >= CONTROLS_MAX {
                continue;
            }
            let frame = self.first_frame_for(rtt);
            self.streams[seat.index()].restart(frame);
            self.playing[seat.index()] = Some(frame);
            for member in self.members.iter_mut().flatten() {
                let end = &mut member.acked.ends[seat.index()];
                *end = (*end).max(frame);
            }
            if let Some(member) = &mut self.members[index] {
                member.stage = Stage::Plays;
            }
            self.control(Control::Joined { frame, seat });
            self.note(Notice::Joined(seat, frame));
        }
    }

    /// The first frame that a machine so far away can give an input for without anybody waiting.
    fn first_frame_for(&self, rtt: Duration) -> Frame {
        let ends = self.streams.iter().zip(&self.playing);
        let ends = ends.filter(|(_, from)| from.is_some());
        let newest = ends.map(|(stream, _)| stream.end()).max();
        let newest = newest.unwrap_or(self.sealed).max(self.sealed);
        let frame = self.frame_duration().as_micros().max(1);
        let away = (rtt.as_micros() * 3 / 2).div_ceil(frame) as u32;
        newest + away + self.config.delay + 1
    }
}

/// Time that a player may take to send its state.
const DONOR_PATIENCE: Duration = Duration::from_secs(3);
