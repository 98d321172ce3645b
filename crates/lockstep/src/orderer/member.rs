//! The orderer's knowledge of one machine.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::blob::{BlobReceiver, BlobSender};
use crate::frame::{Frame, SEATS_MAX, Seat};
use crate::link::Link;
use crate::packet::Task;

/// A stage on a machine's way into the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The match has not begun.
    Lobby,
    /// It came late and somebody has to give a state.
    AwaitsState,
    /// The state is on its way.
    Receives,
    /// It has the state and runs after the others.
    CatchesUp,
    /// It plays.
    Plays,
    /// It only watches.
    Watches,
}

impl Stage {
    /// True if it is sent everybody's inputs.
    pub(crate) fn is_sent_streams(self) -> bool {
        matches!(
            self,
            Self::Receives | Self::CatchesUp | Self::Plays | Self::Watches
        )
    }
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) nonce: u32,
    pub(crate) seat: Option<Seat>,
    pub(crate) stage: Stage,
    pub(crate) link: Link<Held>,
    pub(crate) acked: Held,
    pub(crate) heard: Instant,
    /// Something is to be sent.
    pub(crate) dirty: bool,
    /// Somebody's input has changed, so that losing the packet would cost a deeper rollback: it goes twice.
    pub(crate) again: bool,
    pub(crate) lags_due: bool,
    pub(crate) welcome_due: bool,
    pub(crate) sent_at: Option<Instant>,
    /// The machine has caught up.
    pub(crate) ready: bool,
    /// Position of the machine's simulation, in sixteenths of a frame, and when it was reported.
    pub(crate) position: Option<(u64, Instant)>,
    /// Time that a step takes there.
    pub(crate) cost: Duration,
    pub(crate) tasks: VecDeque<Task>,
    pub(crate) blob_in: Option<BlobReceiver>,
    pub(crate) blobs_out: VecDeque<BlobSender>,
    pub(crate) heal: Heal,
}

/// The content of a packet to the machine: everything before these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) ends: [Frame; SEATS_MAX],
    pub(crate) controls: u16,
}

impl Held {
    pub(crate) fn from(frame: Frame) -> Self {
        Self {
            ends: [frame; SEATS_MAX],
            controls: 0,
        }
    }

    /// Never backwards: an old acknowledgement may come after a seat started over.
    pub(crate) fn advance(&mut self, to: &Self) {
        for (end, to) in self.ends.iter_mut().zip(&to.ends) {
            *end = (*end).max(*to);
        }
        self.controls = self.controls.max(to.controls);
    }
}

/// The repair of a machine whose state differs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heal {
    pub(crate) attempts: u8,
    pub(crate) epoch: u8,
    /// The last check at which it agreed.
    pub(crate) good: Frame,
    /// The check before that: from there its own states are sound, even if the last check came before the harm.
    pub(crate) sound: Frame,
    /// Checks agreed since the last attempt.
    pub(crate) agreed: u32,
}

impl Member {
    pub(crate) fn new(nonce: u32, seat: Option<Seat>, stage: Stage, now: Instant) -> Self {
        Self {
            nonce,
            seat,
            stage,
            link: Link::new(),
            acked: Held::from(Frame(0)),
            heard: now,
            dirty: false,
            again: false,
            lags_due: false,
            welcome_due: true,
            sent_at: None,
            ready: false,
            position: None,
            cost: Duration::ZERO,
            tasks: VecDeque::new(),
            blob_in: None,
            blobs_out: VecDeque::new(),
            heal: Heal::default(),
        }
    }

    /// Estimates the present position of the machine's simulation, in sixteenths of a frame.
    pub(crate) fn position_now(&self, now: Instant, frame: Duration) -> Option<i64> {
        let (at, when) = self.position?;
        let away = self.link.rtt()? / 2 + (now - when);
        let ahead = away.as_micros() * 16 / frame.as_micros().max(1);
        Some((at + ahead) as i64)
    }

    /// Gives it something to do, unless it has too much to do already.
    pub(crate) fn give_task(&mut self, task: Task) {
        if self.tasks.len() < TASKS_MAX {
            self.tasks.push_back(task);
            self.dirty = true;
        }
    }

    pub(crate) fn send_blob(&mut self, id: u8, bytes: Vec<u8>) {
        if self.blobs_out.len() < BLOBS_MAX {
            let rtt = self.link.rtt_high();
            self.blobs_out.push_back(BlobSender::new(id, bytes, rtt));
        }
    }
}

const TASKS_MAX: usize = 8;
const BLOBS_MAX: usize = 4;
