//! A link that loses, duplicates and reorders, in whole ticks.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) loss: f32,
    pub(crate) duplicates: f32,
    pub(crate) delay: u32,
    pub(crate) jitter: u32,
}

impl Conditions {
    pub(crate) const PERFECT: Self = Self {
        loss: 0.0,
        duplicates: 0.0,
        delay: 0,
        jitter: 0,
    };

    pub(crate) fn random(random: &mut fastrand::Rng) -> Self {
        Self {
            loss: [0.0, 0.02, 0.1, 0.4][random.u32(0..4) as usize],
            duplicates: [0.0, 0.05, 0.3][random.u32(0..3) as usize],
            delay: random.u32(0..6),
            jitter: [0, 0, 1, 4][random.u32(0..4) as usize],
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Link {
    flying: VecDeque<(u32, Vec<u8>)>,
}

impl Link {
    pub(crate) fn send(
        &mut self,
        now: u32,
        bytes: &[u8],
        conditions: &Conditions,
        random: &mut fastrand::Rng,
    ) {
        let copies = 1 + u32::from(random.f32() < conditions.duplicates);
        for _ in 0..copies {
            if random.f32() >= conditions.loss {
                let due = now + conditions.delay + random.u32(0..=conditions.jitter);
                self.flying.push_back((due, bytes.to_vec()));
            }
        }
    }

    /// Returns the packets that have arrived by now, in the order of arrival, which is not that of sending.
    pub(crate) fn receive(&mut self, now: u32) -> Vec<Vec<u8>> {
        let (mut due, rest): (Vec<_>, Vec<_>) =
            self.flying.drain(..).partition(|(due, _)| *due <= now);
        self.flying.extend(rest);
        due.sort_by_key(|(due, _)| *due);
        due.into_iter().map(|(_, bytes)| bytes).collect()
    }
}
