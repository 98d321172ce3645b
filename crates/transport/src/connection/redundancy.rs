//! Decides when to send parity, and how much: latency under loss is bought with bytes, knowingly.
//!
//! Each protected section earns credit in proportion to its length; a parity symbol spends it. So the extra bytes
//! never exceed the stated share, whatever the sizes of the messages. Without loss nothing is earned.

use std::collections::VecDeque;

use muse_wire::{Duration, Instant};

use crate::config::Repair;
use crate::packet::PACKET_NUMBER_FIRST;
use crate::parity::{Decoder, Encoder};

/// Share of protected bytes that *balanced* may add as parity, in 1/256.
const SHARE_BALANCED: i64 = 106;
/// Share of protected bytes that *fast* may add as parity, in 1/256.
const SHARE_FAST: i64 = 290;
/// Sections that one parity of *balanced* covers.
const WINDOW_BALANCED: usize = 6;
/// Sections that one parity of *fast* covers.
const WINDOW_FAST: usize = 5;
/// Largest frame that is protected: larger ones are bulk, which is in no hurry.
pub(super) const PROTECTED_MAX: usize = 640;
/// Units of credit in a byte: shares are in 1/256.
const UNIT: i64 = 256;
/// Most credit saved up, in units.
const CREDIT_MAX: i64 = 2_400 * UNIT;
/// Loss below which parity is not worth its bytes.
const LOSS_WORTH: f32 = 0.004;
/// Loss assumed before anything is known, and the weight of that assumption in packets.
const LOSS_PRIOR: (f32, f32) = (0.01, 50.0);
/// Packets over which loss is remembered.
const LOSS_MEMORY: f32 = 1_000.0;
/// The time that a section waits for a packet to carry its parity.
const PARITY_WAIT: Duration = Duration::from_millis(30);

/// Parity of both directions, and the measured loss.
#[derive(Debug)]
pub(super) struct Redundancy {
    enabled: bool,
    encoder: Option<Box<Encoder>>,
    pub(super) decoder: Option<Box<Decoder>>,
    /// Packets whose sections the encoder remembers, oldest first.
    sections: VecDeque<u64>,
    credit: i64,
    /// Length of the parity that would go out next.
    symbol_len: usize,
    level: Repair,
    /// Sections that no parity covers yet.
    uncovered: u32,
    /// The redundancy timer fired.
    pub(super) due: bool,
    lost: f32,
    resolved: f32,
    /// The part of `resolved` that is still what was assumed.
    assumed: f32,
    /// Share of our packets of late that carried parity, in 1/256.
    own_density: u32,
    /// Share of the peer's packets of late that carried parity, in 1/256.
    density: u32,
}

impl Redundancy {
    pub(super) fn new(link_reliable: bool) -> Self {
        Self {
            enabled: !link_reliable,
            encoder: None,
            decoder: None,
            sections: VecDeque::new(),
            credit: 0,
            symbol_len: 0,
            level: Repair::Frugal,
            uncovered: 0,
            due: false,
            lost: LOSS_PRIOR.0 * LOSS_PRIOR.1,
            resolved: LOSS_PRIOR.1,
            assumed: LOSS_PRIOR.1,
            own_density: 256,
            density: 0,
        }
    }

    /// True if sections are protected at present.
    pub(super) fn is_active(&self) -> bool {
        self.enabled && self.loss() >= LOSS_WORTH
    }

    /// Share of packets lost of late, by assumption as long as nothing is known.
    pub(super) fn loss(&self) -> f32 {
        self.lost / self.resolved
    }

    /// Share of packets seen to be lost of late.
    pub(super) fn loss_seen(&self) -> f32 {
        let seen = self.resolved - self.assumed;
        let lost = self.lost - LOSS_PRIOR.0 * self.assumed;
        // Rounding may leave a little of nothing.
        if seen < 0.5 {
            0.0
        } else {
            (lost / seen).clamp(0.0, 1.0)
        }
    }

    /// Records the fate of a packet.
    pub(super) fn resolve(&mut self, lost: bool) {
        let keep = 1.0 - 1.0 / LOSS_MEMORY;
        self.lost = self.lost * keep + if lost { 1.0 } else { 0.0 };
        self.resolved = self.resolved * keep + 1.0;
        self.assumed *= keep;
    }

    /// A packet arrived with reliable content, and with parity or without.
    pub(super) fn note_density(&mut self, reliable: bool, parity: bool) {
        if reliable {
            self.density = (self.density * 15 + if parity { 256 } else { 0 }) / 16;
        }
    }

    /// True if the peer sends parity at all.
    pub(super) fn is_protected(&self) -> bool {
        self.density > 32
    }

    /// True if the peer sends parity with nearly every packet.
    pub(super) fn is_dense(&self) -> bool {
        self.density > 160
    }

    /// True if parity is rarer than *balanced* means it to be, because messages differ much in size.
    pub(super) fn is_sparse(&self) -> bool {
        self.own_density < 80
    }

    /// True if we send parity with every packet.
    pub(super) fn is_fast(&self) -> bool {
        self.level == Repair::Fast
    }

    /// Bytes of the parity frame body that should go into the next packet, if one should.
    pub(super) fn wanted(&self) -> Option<usize> {
        let wanted = self.uncovered > 0
            && self.symbol_len > 0
            && self.credit >= self.symbol_len as i64 * UNIT;
        (wanted && self.is_active()).then_some(self.symbol_len)
    }

    /// Writes a parity frame body for packet `carrier` into `out`; calls `covered` with each packet it covers.
    pub(super) fn emit(
        &mut self,
        carrier: u64,
        out: &mut [u8],
        mut covered: impl FnMut(u64),
    ) -> Option<usize> {
        let window = self.window();
        let len = self.encoder.as_mut()?.emit(carrier, window, out)?;
        self.credit -= len as i64 * UNIT;
        self.own_density += 16;
        self.uncovered = 0;
        self.due = false;
        for &packet in self.sections.iter().rev().take(window) {
            covered(packet);
        }
        Some(len)
    }

    /// A packet with a protected section goes out. Returns when its parity should go at the latest.
    pub(super) fn push(
        &mut self,
        now: Instant,
        packet: u64,
        section: &[u8],
        level: Repair,
    ) -> Instant {
        let encoder = self.encoder.get_or_insert_default();
        encoder.push(packet, section);
        self.symbol_len = encoder.symbol_len(if level == Repair::Fast {
            WINDOW_FAST
        } else {
            WINDOW_BALANCED
        });
        if self.sections.len() == WINDOW_BALANCED.max(WINDOW_FAST) {
            self.sections.pop_front();
        }
        self.sections.push_back(packet);
        self.level = level;
        let share = if level == Repair::Fast {
            SHARE_FAST
        } else {
            SHARE_BALANCED
        };
        // Protected bytes earn the bytes of parity, so that its share holds over time, whatever the sizes.
        self.credit = (self.credit + section.len() as i64 * share).min(CREDIT_MAX);
        self.uncovered += 1;
        self.own_density -= self.own_density / 16;
        now + PARITY_WAIT
    }

    /// Parities of the peer's that contradicted what arrived.
    pub(super) fn rejected(&self) -> u64 {
        self.decoder
            .as_ref()
            .map_or(0, |decoder| decoder.rejected())
    }

    /// The decoder, made when the first protected section or parity arrives.
    pub(super) fn decoder(&mut self) -> &mut Decoder {
        self.decoder
            .get_or_insert_with(|| Box::new(Decoder::new(PACKET_NUMBER_FIRST)))
    }

    fn window(&self) -> usize {
        if self.level == Repair::Fast {
            WINDOW_FAST
        } else {
            WINDOW_BALANCED
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_counts_for_parity_but_is_not_shown() {
        let mut redundancy = Redundancy::new(false);
        assert_eq!((redundancy.loss(), redundancy.loss_seen()), (0.01, 0.0));
        for _ in 0..100 {
            redundancy.resolve(false);
        }
        assert!(redundancy.loss_seen() < 1e-5, "{}", redundancy.loss_seen());
        for packet in 0..2_000 {
            redundancy.resolve(packet % 10 == 0);
        }
        let seen = redundancy.loss_seen();
        assert!((seen - 0.1).abs() < 0.02, "{seen}");
    }
}
