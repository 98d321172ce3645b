//! Counts what a bot sent, received and saw while it played, for benchmarks.

use muse_biobot::player::NetStatistics;
use muse_biobot::{Phase, Player, Stance};
use muse_program::figures::PlayerFigures;
use muse_wire::{Duration, Instant};

use super::seat::Seat;

/// Counters of all matches. Each has a connection and a clock of its own, so each is counted by itself.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Of matches that are over.
    past: Counted,
    /// When the match was first seen to be played.
    since: Option<Instant>,
    begin: Option<Mark>,
    last: Option<Mark>,
    /// Looks at the match, and enemies that were alive in them.
    looks: u64,
    enemies: u64,
    enemies_min: Option<usize>,
    net: NetStatistics,
}

/// Counters of steady play.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    seconds: f64,
    sent: u64,
    received: u64,
    packets: u64,
    jumps: u64,
    corrected: u64,
    confirmed: u64,
}

/// The transport's counters at a time.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    sent: u64,
    received: u64,
    packets: u64,
}

impl Tally {
    /// Takes a look, once each turn.
    pub(crate) fn look(&mut self, seat: &Seat) {
        let (Some(stats), Some(player)) = (seat.stats(), seat.player()) else {
            return;
        };
        let playing = player
            .round()
            .is_some_and(|round| round.phase == Phase::Playing);
        if !playing {
            return;
        }
        let mark = Mark {
            at: seat.now(),
            sent: stats.bytes_sent,
            received: stats.bytes_received,
            packets: stats.packets_received,
        };
        let since = *self.since.get_or_insert(mark.at);
        if mark.at.saturating_since(since) < SETTLING {
            return;
        }
        self.begin.get_or_insert(mark);
        self.last = Some(mark);
        let alive = enemies(player);
        self.looks += 1;
        self.enemies += alive as u64;
        let least = self.enemies_min.unwrap_or(alive);
        self.enemies_min = Some(least.min(alive));
        self.net = player.last_frame().statistics;
    }

    /// The seat is left: what comes after is another match.
    pub(crate) fn leave(&mut self) {
        self.past = self.counted();
        (self.since, self.begin, self.last) = (None, None, None);
    }

    fn counted(&self) -> Counted {
        let (Some(begin), Some(last)) = (self.begin, self.last) else {
            return self.past;
        };
        Counted {
            seconds: self.past.seconds + last.at.saturating_since(begin.at).as_secs_f64(),
            sent: self.past.sent + last.sent.saturating_sub(begin.sent),
            received: self.past.received + last.received.saturating_sub(begin.received),
            packets: self.past.packets + last.packets.saturating_sub(begin.packets),
            jumps: self.past.jumps + self.net.jumps,
            corrected: self.past.corrected + self.net.mispredictions,
            confirmed: self.past.confirmed + self.net.confirmed,
        }
    }

    pub(crate) fn figures(&self) -> PlayerFigures {
        let counted = self.counted();
        let rate = |count: u64| match counted.seconds > 0.0 {
            true => count as f64 / counted.seconds,
            false => 0.0,
        };
        PlayerFigures {
            played_s: counted.seconds,
            up_kbit_s: rate(counted.sent) * 8.0 / 1e3,
            down_kbit_s: rate(counted.received) * 8.0 / 1e3,
            datagrams_down_s: rate(counted.packets),
            enemies_mean: self.enemies as f64 / self.looks.max(1) as f64,
            enemies_min: self.enemies_min.unwrap_or(0),
            rtt_ms: self.net.rtt_ms,
            jumps: counted.jumps,
            corrected: counted.corrected,
            confirmed: counted.confirmed,
        }
    }
}

fn enemies(player: &Player) -> usize {
    let enemies = player.last_frame().enemies.iter();
    enemies
        .filter(|shown| shown.enemy.stance != Stance::Dead)
        .count()
}

/// A match begins with everything at once; what is counted is steady play.
const SETTLING: Duration = Duration::from_secs(3);
