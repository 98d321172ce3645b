//! The share of packets lost in a numbered stream.

/// The share of packets lost of the last [`WINDOW`](Self::WINDOW), from the numbers of those that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    highest: Option<u64>,
    /// True if packet `number` arrived, at `number % WINDOW`.
    arrived: [bool; Self::WINDOW],
    judged: u32,
    lost: u32,
    received: u64,
}

impl Losses {
    /// Packets looked back at.
    pub(crate) const WINDOW: usize = 512;

    /// Nothing received.
    pub(crate) fn new() -> Self {
        Self {
            highest: None,
            arrived: [false; Self::WINDOW],
            judged: 0,
            lost: 0,
            received: 0,
        }
    }

    /// A packet arrived. Says whether it is the newest so far.
    pub(crate) fn record(&mut self, number: u16) -> bool {
        let Some(highest) = self.highest else {
            // Far from zero, so that numbers before the first one can be told.
            self.begin(u64::from(number) + (1 << 32));
            return true;
        };
        let ahead = number.wrapping_sub(highest as u16) as i16;
        let number = highest.saturating_add_signed(i64::from(ahead));
        if ahead > 0 {
            if ahead as usize > Self::WINDOW - SETTLING as usize {
                self.begin(number);
            } else {
                (highest + 1..=number).for_each(|next| self.advance(next));
                self.mark(number);
            }
            return true;
        }
        if highest - number < SETTLING {
            self.mark(number);
        }
        false
    }

    /// The share lost, of packets old enough to have arrived if they ever would.
    pub(crate) fn share(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.judged.max(1))
    }

    /// Packets that arrived, each once.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    fn begin(&mut self, number: u64) {
        self.highest = Some(number);
        self.arrived = [false; Self::WINDOW];
        // Nobody sent what came before the first one, so it was not lost either.
        (1..SETTLING).for_each(|back| self.arrived[Self::slot(number - back)] = true);
        (self.judged, self.lost) = (0, 0);
        self.mark(number);
    }

    fn advance(&mut self, next: u64) {
        self.highest = Some(next);
        if self.judged == JUDGED_MAX {
            // The oldest judged packet has the slot that the new one takes.
            self.lost -= u32::from(!self.arrived[Self::slot(next)]);
            self.judged -= 1;
        }
        self.arrived[Self::slot(next)] = false;
        self.lost += u32::from(!self.arrived[Self::slot(next - SETTLING)]);
        self.judged += 1;
    }

    fn mark(&mut self, number: u64) {
        let arrived = &mut self.arrived[Self::slot(number)];
        self.received += u64::from(!*arrived);
        *arrived = true;
    }

    fn slot(number: u64) -> usize {
        (number % Self::WINDOW as u64) as usize
    }
}

impl Default for Losses {
    fn default() -> Self {
        Self::new()
    }
}

/// A packet counts as lost once this many later ones have arrived.
const SETTLING: u64 = 16;
const JUDGED_MAX: u32 = Losses::WINDOW as u32 - SETTLING as u32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_stream_loses_nothing_whatever_its_order() {
        let mut losses = Losses::new();
        for group in 0..5_000_u16 {
            for place in [2, 0, 3, 1, 1] {
                losses.record((group * 4 + place).wrapping_add(60_000));
            }
        }
        assert_eq!((losses.share(), losses.judged), (0.0, JUDGED_MAX));
        assert_eq!(losses.received(), 20_000 - 2);
    }

    #[test]
    fn the_share_follows_the_last_packets() {
        let mut losses = Losses::new();
        let mut number = 0_u16;
        for (every, share) in [(2, 0.5), (4, 0.25), (3, 1.0 / 3.0)] {
            for _ in 0..700 {
                number = number.wrapping_add(1);
                if !number.is_multiple_of(every) {
                    losses.record(number);
                }
            }
            let expected = 1.0 / f64::from(every);
            assert!((expected - share).abs() < 1e-9 && (losses.share() - share).abs() < 0.01);
        }
    }

    #[test]
    fn leaps_begin_anew() {
        let mut losses = Losses::new();
        for number in [0, 30_000, 60_000, 5, 40_000, 1] {
            losses.record(number);
        }
        assert_eq!(losses.share(), 0.0);
        assert!(!losses.record(0));
    }
}
