//! Figures about the connection, for the net graph and for tests.

use std::collections::BTreeMap;

use glam::{Vec2, Vec3};
use muse::netcode::{Client, EntityId};
use muse::wire::{Duration, Instant};

use crate::mover::RUN_SPEED;
use crate::rules::Rules;

/// Statistics of the connection and the netcode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NetStatistics {
    /// Round trip in milliseconds.
    pub rtt_ms: f32,
    /// Mean change of the delay in milliseconds.
    pub jitter_ms: f32,
    /// Share of snapshots that were lost.
    pub loss: f32,
    /// The time by which the client simulates ahead of the server, in milliseconds: the way there and the wait in the server's buffer.
    pub ahead_ms: f32,
    /// The time by which others are shown in the past, in milliseconds.
    pub interpolation_ms: f32,
    /// Predictions that the server did not agree with.
    pub mispredictions: u64,
    /// States of the server that had been predicted.
    pub confirmed: u64,
    /// Bytes of the last whole second, packets of the netcode only.
    pub bytes_in: u32,
    /// The same, outwards.
    pub bytes_out: u32,
    /// Packets of the last whole second.
    pub packets_in: u32,
    /// The same, outwards.
    pub packets_out: u32,
    /// Times that something of others moved further from one frame to the next than its speed allows.
    pub jumps: u64,
    /// The largest of those steps beyond what was allowed, in metres.
    pub jump_most: f32,
    /// Such steps just after the link had been cut: the match went on meanwhile, so that others are elsewhere. They are no jumps.
    pub resumed: u64,
}

/// The measurements that the statistics are made of.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    second: u64,
    counting: [u32; 4],
    whole: [u32; 4],
    places: BTreeMap<EntityId, Place>,
    jumps: u64,
    jump_most: f32,
    resumed: u64,
    /// The time at which a packet came last.
    heard: Instant,
    /// The time until which others come back to where they are by now.
    returning: Instant,
}

/// The place where something was shown last.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: Vec3,
    when: Instant,
    life: u16,
}

impl Figures {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            second: now.as_micros() / 1_000_000,
            counting: [0; 4],
            whole: [0; 4],
            places: BTreeMap::new(),
            jumps: 0,
            jump_most: 0.0,
            resumed: 0,
            heard: now,
            returning: now,
        }
    }

    pub(super) fn handle_in(&mut self, now: Instant, bytes: usize) {
        self.turn(now);
        if now.saturating_since(self.heard) >= CUT {
            self.returning = now + RETURN;
        }
        self.heard = now;
        self.counting[0] += bytes as u32;
        self.counting[2] += 1;
    }

    pub(super) fn handle_out(&mut self, now: Instant, bytes: usize) {
        self.turn(now);
        self.counting[1] += bytes as u32;
        self.counting[3] += 1;
    }

    /// Something of others is shown here now; in another `life` it may be anywhere. `fastest` is its speed at most, in metres a second.
    pub(super) fn handle_shown(
        &mut self,
        now: Instant,
        entity: EntityId,
        at: Vec3,
        (life, fastest): (u16, f32),
    ) {
        let place = Place {
            at,
            when: now,
            life,
        };
        let Some(before) = self.places.insert(entity, place) else {
            if self.places.len() > PLACES_MAX {
                self.places.clear();
            }
            return;
        };
        if before.life != life {
            return;
        }
        let seconds = now.saturating_since(before.when).as_secs_f64() as f32;
        let step = Vec2::new(at.x - before.at.x, at.z - before.at.z).length();
        let beyond = step - (fastest * SHOWN_SHARE * seconds + STEP_SLACK);
        if beyond <= 0.0 {
            return;
        }
        if now < self.returning {
            self.resumed += 1;
        } else {
            self.jumps += 1;
            self.jump_most = self.jump_most.max(beyond);
        }
    }

    pub(super) fn statistics(&mut self, now: Instant, client: &Client<Rules>) -> NetStatistics {
        self.turn(now);
        let millis = |span: Option<muse::wire::Duration>| {
            span.map_or(0.0, |span| (span.as_secs_f64() * 1e3) as f32)
        };
        let quality = client.quality();
        let prediction = client.prediction();
        NetStatistics {
            rtt_ms: millis(quality.ping()),
            jitter_ms: millis(Some(quality.jitter())),
            loss: quality.loss() as f32,
            ahead_ms: millis(client.clock().ahead()),
            interpolation_ms: millis(client.interpolation_delay()),
            mispredictions: prediction.corrected,
            confirmed: prediction.confirmed,
            bytes_in: self.whole[0],
            bytes_out: self.whole[1],
            packets_in: self.whole[2],
            packets_out: self.whole[3],
            jumps: self.jumps,
            jump_most: self.jump_most,
            resumed: self.resumed,
        }
    }

    fn turn(&mut self, now: Instant) {
        let second = now.as_micros() / 1_000_000;
        if second != self.second {
            self.whole = match second == self.second + 1 {
                true => self.counting,
                false => [0; 4],
            };
            self.counting = [0; 4];
            self.second = second;
        }
    }
}

/// Fastest that anything walks or is carried, metres a second along the ground.
pub(super) const WALKED_MAX: f32 = RUN_SPEED + CARRIED_MAX;
/// The factor by which it may seem faster while the clock catches up.
const SHOWN_SHARE: f32 = 1.25;
/// The fastest platform.
const CARRIED_MAX: f32 = 3.0;
/// The error that grids add to a step.
const STEP_SLACK: f32 = 0.05;
/// Silence that is no loss any more: others have long stopped where they were. At a loss of 20 % it takes 25 snapshots in a row.
const CUT: Duration = Duration::from_secs(1);
/// The time that others take to be where they are by now, once they are heard of again.
const RETURN: Duration = Duration::from_secs(1);
/// Entities whose places are remembered.
const PLACES_MAX: usize = 1_024;
