//! The end of a connection: at once, after everything has arrived, by the peer, or by an error.

use muse_wire::{Instant, log};

use super::{Connection, Shared};
use crate::event::CloseReason;
use crate::inbox::{LEVEL_LAST, Rare};
use crate::timer::Timer;

/// Times a close is sent before the peer is taken for gone.
const CLOSE_TRIES: u8 = 3;
/// Probe time-outs for which an ended connection still answers.
const LINGER_PROBES: u64 = 3;
/// Longest text of a close.
pub(crate) const CLOSE_TEXT_MAX: usize = 255;

/// Code of a close after the peer broke the protocol.
pub(crate) const CODE_PROTOCOL: u16 = 0xFFFF;
/// Code of a close because the holder of the token connected again.
pub(crate) const CODE_REPLACED: u16 = 0xFFFE;
/// Code of a close after the peer acknowledged a packet that was never sent.
pub(crate) const CODE_FALSE_ACK: u16 = 0xFFFD;

/// The state of a connection in its life.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Waits until everything reliable has arrived.
    Finishing {
        code: u16,
        text: String,
    },
    /// We told the peer; waiting for its answer.
    Closing {
        code: u16,
        text: String,
        reason: CloseReason,
        tries: u8,
        pending: bool,
    },
    /// The peer told us; our answer goes out with `pending`.
    Draining {
        pending: bool,
    },
    Dead,
}

impl State {
    pub(super) fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// True while messages still travel.
    pub(super) fn carries_data(&self) -> bool {
        matches!(self, Self::Open | Self::Finishing { .. })
    }
}

impl Connection {
    /// True while messages still travel.
    pub(crate) fn is_open(&self) -> bool {
        self.state.carries_data()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    /// Closes at once; what has not arrived by now may never arrive.
    pub(crate) fn close(&mut self, now: Instant, code: u16, text: &str, reason: CloseReason) {
        if !self.state.carries_data() {
            return;
        }
        log!(debug, connection = ?self.id, code, ?reason, "closing");
        let mut end = text.len().min(CLOSE_TEXT_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text[..end].to_owned();
        self.state = State::Closing {
            code,
            text,
            reason,
            tries: CLOSE_TRIES,
            pending: true,
        };
        let linger = self.rtt.probe_timeout(self.config.ack_delay) * LINGER_PROBES;
        self.timers.set(Timer::Close, now + linger);
        for timer in [
            Timer::Loss,
            Timer::Probe,
            Timer::Ack,
            Timer::KeepAlive,
            Timer::Pace,
            Timer::Redundancy,
        ] {
            self.timers.stop(timer);
        }
    }

    /// Closes once everything reliable has arrived.
    pub(crate) fn finish(&mut self, now: Instant, code: u16, text: &str) {
        if self.state.is_open() {
            self.state = State::Finishing {
                code,
                text: text.to_owned(),
            };
            self.close_if_finished(now);
        }
    }

    pub(super) fn close_if_finished(&mut self, now: Instant) {
        let State::Finishing { code, text } = &self.state else {
            return;
        };
        let reliable = self.send.iter().flatten();
        if reliable.clone().all(|half| half.is_settled()) {
            let (code, text) = (*code, text.clone());
            self.close(now, code, &text, CloseReason::ByUs);
        }
    }

    /// The peer closed the connection.
    pub(super) fn on_close(&mut self, now: Instant, shared: &mut Shared, code: u16, text: &[u8]) {
        match &self.state {
            State::Open | State::Finishing { .. } => {
                let reason = match code {
                    CODE_PROTOCOL => CloseReason::Protocol,
                    CODE_REPLACED => CloseReason::Replaced,
                    CODE_FALSE_ACK => CloseReason::FalseAck,
                    _ => CloseReason::ByPeer {
                        code,
                        text: String::from_utf8_lossy(text).into_owned(),
                    },
                };
                shared.inbox.rare(self.id, LEVEL_LAST, Rare::Closed(reason));
                self.state = State::Draining { pending: true };
                let linger = self.rtt.probe_timeout(self.config.ack_delay) * LINGER_PROBES;
                self.timers = crate::timer::Timers::new();
                self.timers.set(Timer::Close, now + linger);
            }
            State::Closing { .. } => self.die(shared),
            // Our answer was lost.
            State::Draining { .. } => self.state = State::Draining { pending: true },
            State::Dead => {}
        }
    }

    /// The close was not answered yet: once more.
    pub(super) fn repeat_close(&mut self, now: Instant) {
        let timeout = self.rtt.probe_timeout(self.config.ack_delay);
        if let State::Closing { tries, pending, .. } = &mut self.state
            && *tries > 0
        {
            *pending = true;
            self.timers.set(Timer::Path, now + timeout);
        }
    }

    pub(super) fn die(&mut self, shared: &mut Shared) {
        if let State::Closing { reason, .. } = std::mem::replace(&mut self.state, State::Dead) {
            shared.inbox.rare(self.id, LEVEL_LAST, Rare::Closed(reason));
        }
    }
}
