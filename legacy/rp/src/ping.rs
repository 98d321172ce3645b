//! Pings on the reliable channel: the round trip, and whether the peer is still there.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::HostOptions;
use crate::packet::{Flags, Packet};

/// Both directions of one connection's pings.
#[derive(Debug)]
pub(crate) struct Ping {
    interval: Duration,
    answer_delay: Duration,
    unanswered_max: u64,
    next_at: Instant,
    id: u32,
    sent_at: Instant,
    answered: bool,
    unanswered: u64,
    rtt: Option<Duration>,
    rtt_smoothed: Option<Duration>,
    answers: VecDeque<Answer>,
    pub(crate) sent: u64,
    pub(crate) answered_in_all: u64,
}

/// An answer that waits for its time: the header of the ping it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    at: Instant,
    sequence: u32,
    ack: u32,
    kind: u16,
}

impl Ping {
    /// Pings begin an interval from now.
    pub(crate) fn new(now: Instant, options: &HostOptions) -> Self {
        let (interval, time_out) = (options.ping_interval, options.time_out);
        Self {
            interval,
            answer_delay: options.ping_answer_delay,
            unanswered_max: (time_out.as_micros() / interval.as_micros().max(1)).max(1),
            next_at: now + interval,
            id: 0,
            sent_at: now,
            answered: true,
            unanswered: 0,
            rtt: None,
            rtt_smoothed: None,
            answers: VecDeque::new(),
            sent: 0,
            answered_in_all: 0,
        }
    }

    pub(crate) fn timeout(&self) -> Instant {
        match self.answers.front() {
            Some(answer) => answer.at.min(self.next_at),
            None => self.next_at,
        }
    }

    /// A PING arrived. Gives the round trip if it is the answer to the newest ping.
    pub(crate) fn handle(&mut self, now: Instant, packet: &Packet<'_>) -> Option<Duration> {
        if packet.payload.first() == Some(&REQUEST) {
            if self.answers.len() < ANSWERS_MAX {
                self.answers.push_back(Answer {
                    at: now + self.answer_delay,
                    sequence: packet.sequence,
                    ack: packet.ack,
                    kind: packet.kind,
                });
            }
            return None;
        }
        if packet.sequence != self.id || self.answered {
            return None;
        }
        let rtt = now - self.sent_at;
        self.answered = true;
        self.answered_in_all += 1;
        self.rtt = Some(rtt);
        let smoothed = self
            .rtt_smoothed
            .map_or(rtt, |before| (before * 7 + rtt) / 8);
        self.rtt_smoothed = Some(smoothed);
        Some(rtt)
    }

    /// The next ping if it is due, or `Err` if the peer has left too many unanswered.
    pub(crate) fn poll_request(&mut self, now: Instant) -> Result<Option<Packet<'static>>, Silent> {
        if now < self.next_at {
            return Ok(None);
        }
        self.unanswered = match self.answered {
            true => 0,
            false => self.unanswered + 1,
        };
        if self.unanswered >= self.unanswered_max {
            return Err(Silent);
        }
        self.next_at = now + self.interval;
        self.id = self.id.wrapping_add(1);
        self.sent_at = now;
        self.answered = false;
        self.sent += 1;
        Ok(Some(Packet {
            sequence: self.id,
            ack: 0,
            flags: Flags::PING,
            kind: 0,
            payload: &[REQUEST],
        }))
    }

    /// True if the last ping that was given its time has been answered.
    pub(crate) fn is_answered(&self) -> bool {
        self.unanswered == 0
    }

    /// An answer whose time has come.
    pub(crate) fn poll_answer(&mut self, now: Instant) -> Option<Packet<'static>> {
        self.answers.front().filter(|answer| answer.at <= now)?;
        let answer = self.answers.pop_front()?;
        Some(Packet {
            sequence: answer.sequence,
            ack: answer.ack,
            flags: Flags::PING,
            kind: answer.kind,
            payload: &[ANSWER],
        })
    }

    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(crate) fn rtt_smoothed(&self) -> Option<Duration> {
        self.rtt_smoothed
    }
}

/// The peer no longer answers.
#[derive(Debug)]
pub(crate) struct Silent;

const REQUEST: u8 = 0;
const ANSWER: u8 = 1;
/// Most answers that wait; only the newest counts anyway.
const ANSWERS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(sequence: u32, payload: &'static [u8]) -> Packet<'static> {
        Packet {
            sequence,
            ack: 0,
            flags: Flags::PING,
            kind: 0,
            payload,
        }
    }

    #[test]
    fn only_the_newest_id_counts_and_silence_expels() {
        let second = Duration::from_secs(1);
        let options = HostOptions::default().time_out(second * 3);
        let mut pings = Ping::new(Instant::ZERO, &options);
        for id in 1..=2 {
            let due = pings.timeout();
            let request = pings.poll_request(due).expect("not silent yet");
            assert_eq!(request.map(|packet| packet.sequence), Some(id));
        }
        let later = Instant::from_millis(2_030);
        assert_eq!(pings.handle(later, &ping(1, &[1])), None);
        let rtt = Duration::from_millis(30);
        assert_eq!(pings.handle(later, &ping(2, &[7])), Some(rtt));
        assert_eq!(pings.handle(later, &ping(2, &[1])), None);
        for _ in 0..3 {
            assert!(pings.poll_request(pings.timeout()).is_ok());
        }
        assert!(pings.poll_request(pings.timeout()).is_err());
    }

    #[test]
    fn answers_wait_and_are_limited() {
        let mut pings = Ping::new(Instant::ZERO, &HostOptions::default());
        for id in 0..20 {
            assert_eq!(pings.handle(Instant::ZERO, &ping(id, &[0])), None);
        }
        assert_eq!(pings.timeout(), Instant::from_millis(25));
        assert_eq!(pings.poll_answer(Instant::from_millis(24)), None);
        let answered = std::iter::from_fn(|| pings.poll_answer(Instant::from_millis(25)));
        let ids: Vec<u32> = answered
            .map(|packet| packet.sequence + u32::from(packet.payload[0]))
            .collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn answers_are_ready_at_once_without_a_delay() {
        let options = HostOptions::default().ping_answer_delay(Duration::ZERO);
        let mut pings = Ping::new(Instant::ZERO, &options);
        pings.handle(Instant::ZERO, &ping(5, &[0]));
        assert_eq!(pings.timeout(), Instant::ZERO);
        let answer = pings.poll_answer(Instant::ZERO);
        assert_eq!(answer.map(|packet| packet.sequence), Some(5));
    }
}
