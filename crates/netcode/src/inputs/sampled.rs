//! Several inputs in one tick, for games that read the mouse in each frame.

use muse_schema::{BitReader, BitWriter, DecodeError, EncodeError, Options, Schema, Type};

use crate::TickTime;

/// The inputs of one tick, each from some instant of the tick until the next one's, at most `N`. An input like any other: buffers,
/// prediction and packets take it as it is, and the game's step goes through its [`parts`](Self::parts).
///
/// ```
/// use muse_netcode::TickTime;
/// use muse_netcode::inputs::Sampled;
/// let mut collected = Sampled::<u8, 4>::default();
/// collected.sample(TickTime::from_ticks(6.25), 7);
/// collected.sample(TickTime::from_ticks(6.75), 9);
/// // What is done from frame to frame becomes the input of the tick that follows.
/// let inputs: Vec<u8> = collected.finish().parts().map(|(input, _)| *input).collect();
/// assert_eq!(inputs, [0, 7, 9]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled<I, const N: usize> {
    /// The rest repeats the last, so that equal lists are equal.
    samples: [(u8, I); N],
    len: u8,
}

impl<I: Clone + PartialEq, const N: usize> Sampled<I, N> {
    /// One input for the whole tick.
    pub fn held(input: I) -> Self {
        const { assert!(N >= 1 && N <= 16, "1 to 16 inputs in a tick") };
        Self {
            samples: std::array::from_fn(|_| (0, input.clone())),
            len: 1,
        }
    }

    /// Records the player's input in a frame at `time`. What comes too soon after another replaces it, so that there are at most
    /// `N - 1` changes in a tick; a larger `N` makes packets larger.
    pub fn sample(&mut self, time: TickTime, input: I) {
        if *self.last() == input {
            return;
        }
        let last = self.samples[N - 1].0;
        let start = (time.fraction >> 8) as u8;
        let spacing = 256 / (N - 1).max(1);
        let too_soon = self.len > 1 && usize::from(start.saturating_sub(last)) < spacing;
        self.push(if too_soon { last } else { start }, input);
    }

    /// Ends the tick and returns its inputs. The player goes on doing the last of them.
    pub fn finish(&mut self) -> Self {
        let next = Self::held(self.last().clone());
        std::mem::replace(self, next)
    }

    /// Adds an input that holds from `start` on, in 1/256 of the tick. Replaces the last if that began at the same time or if there is no
    /// place left.
    fn push(&mut self, start: u8, input: I) {
        let last = self.len as usize - 1;
        let (place, start) = match start > self.samples[last].0 && self.len as usize != N {
            true => (last + 1, start),
            false => (last, self.samples[last].0),
        };
        self.len = place as u8 + 1;
        for sample in &mut self.samples[place..] {
            *sample = (start, input.clone());
        }
    }

    /// The inputs in order, each with the share of the tick during which it holds; the shares add up to 1.
    pub fn parts(&self) -> impl Iterator<Item = (&I, f32)> {
        let len = self.len as usize;
        (0..len).map(move |index| {
            let (start, input) = &self.samples[index];
            let end = match index + 1 < len {
                true => u16::from(self.samples[index + 1].0),
                false => 256,
            };
            (input, f32::from(end - u16::from(*start)) / 256.0)
        })
    }

    /// The last input of the tick.
    pub fn last(&self) -> &I {
        &self.samples[N - 1].1
    }
}

impl<I: Clone + PartialEq + Default, const N: usize> Default for Sampled<I, N> {
    fn default() -> Self {
        Self::held(I::default())
    }
}

impl<I: Schema + Clone + PartialEq, const N: usize> Schema for Sampled<I, N> {
    const TYPE: Type = Type::Tuple(&[
        Type::Integer {
            bits: 4,
            signed: false,
        },
        I::TYPE,
    ]);

    fn bits_min(options: &Options) -> u64 {
        4 + I::bits_min(options)
    }

    fn write(&self, options: &Options, writer: &mut BitWriter<'_>) -> Result<(), EncodeError> {
        writer.bits(u64::from(self.len) - 1, 4)?;
        self.samples[0].1.write(options, writer)?;
        for (start, input) in &self.samples[1..self.len as usize] {
            writer.bits(u64::from(*start), 8)?;
            input.write(options, writer)?;
        }
        Ok(())
    }

    fn read(options: &Options, reader: &mut BitReader<'_>) -> Result<Self, DecodeError> {
        let more = reader.bits(4)?;
        if more >= N as u64 {
            return Err(DecodeError::OutOfRange);
        }
        let mut sampled = Self::held(I::read(options, reader)?);
        for _ in 0..more {
            let start = reader.bits(8)? as u8;
            if start <= sampled.samples[sampled.len as usize - 1].0 {
                return Err(DecodeError::NotCanonical);
            }
            sampled.push(start, I::read(options, reader)?);
        }
        Ok(sampled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_come_back() {
        let mut sampled = Sampled::<u8, 3>::held(5);
        for (start, input) in [(10, 6), (10, 7), (200, 8), (250, 9)] {
            sampled.push(start, input);
        }
        let parts: Vec<_> = sampled
            .parts()
            .map(|(input, share)| (*input, share * 256.0))
            .collect();
        assert_eq!(parts, [(5, 10.0), (7, 190.0), (9, 56.0)]);
        let mut bytes = [0; 16];
        let mut writer = BitWriter::new(&mut bytes);
        sampled.write(&Options::NONE, &mut writer).expect("room");
        let len = writer.finish();
        let read = Sampled::read(&Options::NONE, &mut BitReader::new(&bytes[..len]));
        assert_eq!(read, Ok(sampled));
    }

    #[test]
    fn the_rate_is_bounded_both_ways() {
        let mut sampler = Sampled::<u16, 5>::default();
        for frame in 0..100 {
            sampler.sample(TickTime::from_ticks(3.0 + f64::from(frame) / 100.0), frame);
        }
        let tick = sampler.finish();
        assert_eq!((tick.parts().count(), *tick.last()), (5, 99));
        // No frame at all in the next tick: the last input holds.
        let idle = sampler.finish();
        assert_eq!(idle.parts().collect::<Vec<_>>(), [(&99, 1.0)]);
    }
}
