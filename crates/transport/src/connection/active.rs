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

    /// The channels in the set, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let words = self.0;
        words.into_iter().enumerate().flat_map(|(index, mut word)| {
            std::iter::from_fn(move || {
                let bit = word.trailing_zeros();
                (word != 0).then(|| {
                    word &= word - 1;
                    index * 64 + bit as usize
                })
            })
        })
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
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 63, 200, 255]);
    }
}
