//! A set of channels: those with something to send, so that the others are not even looked at.

use crate::config::CHANNELS_MAX;

/// One bit per channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChannelSet([u64; CHANNELS_MAX / 64]);

impl ChannelSet {
    pub(super) fn insert(&mut self, channel: usize) {
        self.0[channel / 64] |= 1 << (channel % 64);
    }

    pub(super) fn remove(&mut self, channel: usize) {
        self.0[channel / 64] &= !(1 << (channel % 64));
    }

    pub(super) fn contains(&self, channel: usize) -> bool {
        self.0[channel / 64] >> (channel % 64) & 1 != 0
    }

    /// The first channel of the set at or after `from`. The set may change between two calls.
    #[inline]
    pub(super) fn next(&self, from: usize) -> Option<usize> {
        let mut index = from / 64;
        let mut word = self.0.get(index)? & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.0.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut set = ChannelSet::default();
        for channel in [0, 5, 63, 64, 200, 255] {
            set.insert(channel);
        }
        set.remove(64);
        assert!(set.contains(63) && !set.contains(64) && !set.contains(1));
        let mut found = Vec::new();
        while let Some(channel) = set.next(found.last().map_or(0, |last| last + 1)) {
            found.push(channel);
        }
        assert_eq!(found, [0, 5, 63, 200, 255]);
    }
}
