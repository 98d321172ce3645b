//! Compares everybody's checksums and repairs machines that differ: from its own last good state, else from the reference's state, else the
//! minority is expelled, else the match ends.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::frame::{Frame, SEATS_MAX, Seat};
use crate::orderer::member::Stage;
use crate::orderer::{LinkId, Notice, Orderer};
use crate::packet::{Check, OverReason, Task};

/// Checksums that have come in, by frame, and traces that are being exchanged.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    rows: VecDeque<Row>,
    exchanges: Vec<Exchange>,
}

#[derive(Debug)]
struct Row {
    frame: Frame,
    since: Instant,
    sums: [Option<u32>; SEATS_MAX],
}

/// The traces of one who differs and of the reference, each on its way to the other.
#[derive(Debug)]
struct Exchange {
    sides: [(LinkId, u8, Option<Vec<u8>>); 2],
}

impl Orderer {
    pub(crate) fn take_check(&mut self, now: Instant, link: LinkId, check: Check) {
        let Some(Some(member)) = self.members.get_mut(link.0) else {
            return;
        };
        let (Some(seat), Stage::Plays) = (member.seat, member.stage) else {
            return;
        };
        if check.epoch != member.heal.epoch {
            return;
        }
        let mends = |task: &Task| matches!(task, Task::Resimulate { .. } | Task::TakeState { .. });
        if member.tasks.front().is_some_and(mends) {
            member.tasks.pop_front();
        }
        let rows = &mut self.checks.rows;
        if rows.len() >= ROWS_MAX || rows.front().is_some_and(|row| row.frame > check.frame) {
            return;
        }
        let at = rows.partition_point(|row| row.frame < check.frame);
        if rows.get(at).is_none_or(|row| row.frame != check.frame) {
            let row = Row {
                frame: check.frame,
                since: now,
                sums: [None; SEATS_MAX],
            };
            rows.insert(at, row);
        }
        if let Some(sum) = rows[at].sums.get_mut(seat.index()) {
            *sum = Some(check.sum);
        }
        self.judge_checks(now);
    }

    /// Judges the checks that everybody has answered, or that nobody answers any more.
    pub(crate) fn judge_checks(&mut self, now: Instant) {
        while let Some(row) = self.checks.rows.front() {
            let mut players = self.members.iter().flatten().filter(|member| {
                let settled = member.stage == Stage::Plays && member.tasks.is_empty();
                let from = member.seat.and_then(|seat| self.playing[seat.index()]);
                settled && from.is_some_and(|from| from <= row.frame)
            });
            let seats_answered = players.all(|member| {
                member
                    .seat
                    .is_some_and(|seat| row.sums[seat.index()].is_some())
            });
            if !seats_answered && now - row.since < PATIENCE {
                return;
            }
            if let Some(row) = self.checks.rows.pop_front() {
                self.judge(&row);
            }
        }
    }

    fn judge(&mut self, row: &Row) {
        let sums = &row.sums[..self.config.seats()];
        let votes = |sum: u32| sums.iter().flatten().filter(|other| **other == sum).count();
        // The most frequent one; of equals that of the first seat.
        let mut right: Option<u32> = None;
        for &sum in sums.iter().flatten() {
            if right.is_none_or(|best| votes(sum) > votes(best)) {
                right = Some(sum);
            }
        }
        let Some(right) = right.filter(|_| sums.iter().flatten().count() > 1) else {
            return;
        };
        let reference = sums.iter().position(|sum| *sum == Some(right));
        let deviants = sums.iter().flatten().count() - votes(right);
        for (seat, sum) in sums.iter().enumerate() {
            let (Some(sum), Some(link)) = (sum, self.link_of(Seat(seat as u8))) else {
                continue;
            };
            if *sum != right {
                let reference = reference.and_then(|seat| self.link_of(Seat(seat as u8)));
                self.mend(link, reference, row.frame, deviants);
            } else if let Some(Some(member)) = self.members.get_mut(link.0) {
                if row.frame > member.heal.good {
                    member.heal.sound = std::mem::replace(&mut member.heal.good, row.frame);
                }
                member.heal.agreed += 1;
                if member.heal.agreed >= HEALED_AFTER {
                    member.heal.attempts = 0;
                }
            }
        }
    }

    fn mend(&mut self, link: LinkId, reference: Option<LinkId>, bad: Frame, deviants: usize) {
        let players = self.playing.iter().flatten().count();
        let [trace, theirs, mend] = [(); 3].map(|()| self.donation.fresh_id());
        let Some(Some(member)) = self.members.get_mut(link.0) else {
            return;
        };
        let Some(seat) = member.seat else { return };
        // Its checks from before the repair do not count any more.
        for row in &mut self.checks.rows {
            row.sums[seat.index()] = None;
        }
        let (good, sound) = (member.heal.good, member.heal.sound);
        let attempts = member.heal.attempts;
        member.heal.attempts += 1;
        member.heal.agreed = 0;
        if attempts < 2 {
            member.heal.epoch = (member.heal.epoch + 1) & 3;
            member.give_task(Task::GiveTrace {
                id: trace,
                good,
                bad,
            });
            member.give_task(match attempts {
                0 => Task::Resimulate {
                    id: mend,
                    good: sound,
                },
                _ => Task::TakeState { id: mend },
            });
            self.exchange(link, trace, reference, theirs, good, bad);
        }
        self.note(Notice::Desync(seat, bad));
        if attempts >= 2 {
            match deviants * 2 < players {
                true => self.remove(link, OverReason::Expelled),
                false => self.finish(OverReason::Desync),
            }
        }
    }

    fn exchange(
        &mut self,
        link: LinkId,
        trace: u8,
        reference: Option<LinkId>,
        theirs: u8,
        good: Frame,
        bad: Frame,
    ) {
        let Some(reference) = reference else { return };
        if let Some(Some(member)) = self.members.get_mut(reference.0) {
            member.give_task(Task::GiveTrace {
                id: theirs,
                good,
                bad,
            });
        }
        if self.checks.exchanges.len() >= EXCHANGES_MAX {
            self.checks.exchanges.remove(0);
        }
        self.checks.exchanges.push(Exchange {
            sides: [(link, trace, None), (reference, theirs, None)],
        });
    }

    /// A trace has come; when both sides' have, each gets the other's.
    pub(crate) fn take_trace(&mut self, link: LinkId, id: u8, blob: &[u8]) {
        let matches = |side: &(LinkId, u8, Option<Vec<u8>>)| side.0 == link && side.1 == id;
        let exchanges = &mut self.checks.exchanges;
        let Some(index) = exchanges
            .iter()
            .position(|one| one.sides.iter().any(matches))
        else {
            return;
        };
        for side in &mut exchanges[index].sides {
            if side.0 == link && side.1 == id {
                side.2 = Some(blob.to_vec());
            }
        }
        if exchanges[index].sides.iter().any(|side| side.2.is_none()) {
            return;
        }
        let [one, other] = exchanges.remove(index).sides;
        for (to, blob) in [(one.0, other.2), (other.0, one.2)] {
            let member = self.members.get_mut(to.0).and_then(Option::as_mut);
            if let (Some(member), Some(blob)) = (member, blob) {
                let id = self.donation.fresh_id();
                member.send_blob(id, blob);
            }
        }
    }

    fn link_of(&self, seat: Seat) -> Option<LinkId> {
        let at = |member: &Option<_>| {
            let member: &Option<super::Member> = member;
            member
                .as_ref()
                .is_some_and(|member| member.seat == Some(seat))
        };
        self.members.iter().position(at).map(LinkId)
    }
}

/// Checks under way.
const ROWS_MAX: usize = 256;
const EXCHANGES_MAX: usize = 4;
/// Time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Checks in agreement after which a machine counts as sound again.
const HEALED_AFTER: u32 = 100;
