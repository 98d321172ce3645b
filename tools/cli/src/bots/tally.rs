//! Counts what a bot sent, received and saw while it played, for benchmarks.

use muse_biobot::player::NetStatistics;
use muse_biobot::{Phase, Player, Stance};
use muse_program::figures::PlayerFigures;
use muse_transport::ConnectionStats;
use muse_wire::{Duration, Instant};

use super::seat::Seat;

/// Counters of all matches. Each has a connection and a clock of its own, so each is counted by itself.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Counted in all matches.
    counted: Counted,
    /// When the match was first seen to be played.
    since: Option<Instant>,
    /// The last look at it.
    last: Option<(Instant, ConnectionStats, NetStatistics)>,
    /// Looks at the match, and enemies that were alive in them.
    looks: u64,
    enemies: u64,
    enemies_min: Option<usize>,
    rtt_ms: f32,
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
        let (now, net) = (seat.now(), player.last_frame().statistics);
        let since = *self.since.get_or_insert(now);
        if now.saturating_since(since) < SETTLING {
            return;
        }
        // What the netcode counts begins with the match, what the transport counts with the first look.
        let start = (now, stats, NetStatistics::default());
        let (then, before, net_before) = self.last.replace((now, stats, net)).unwrap_or(start);
        let counted = &mut self.counted;
        counted.seconds += now.saturating_since(then).as_secs_f64();
        counted.sent += stats.bytes_sent - before.bytes_sent;
        counted.received += stats.bytes_received - before.bytes_received;
        counted.packets += stats.packets_received - before.packets_received;
        counted.jumps += net.jumps - net_before.jumps;
        counted.corrected += net.mispredictions - net_before.mispredictions;
        counted.confirmed += net.confirmed - net_before.confirmed;
        self.rtt_ms = net.rtt_ms;
        let alive = enemies(player);
        self.looks += 1;
        self.enemies += alive as u64;
        let least = self.enemies_min.unwrap_or(alive);
        self.enemies_min = Some(least.min(alive));
    }

    /// The seat is left: what comes after is another match.
    pub(crate) fn leave(&mut self) {
        (self.since, self.last) = (None, None);
    }

    pub(crate) fn figures(&self) -> PlayerFigures {
        let counted = &self.counted;
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
            rtt_ms: self.rtt_ms,
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
