//! Partial reliability: at most a promised share of messages lost per window, the rest in order.
//!
//! MUSE-RP's second channel (Algorithm 4 of its thesis) and the partially reliable channels of the transport share
//! this code. It knows *slots* only, the messages' consecutive numbers already reconstructed to 64 bits (see
//! [`sequence::expand`](crate::sequence::expand)); payloads stay with the caller.
//!
//! A [`Promise`] is a window of `W` slots and a percentage `P`: of each *aligned* window (the first `W` slots, the
//! next `W`, and so on) at most `floor(W x (100 - P) / 100)` slots are skipped. [`PartialReceiver`] keeps the promise.
//! [`PartialSender`] lets a sender save the bytes that the promise does not need.

mod receiver;
mod sender;
mod slots;

pub use receiver::{PartialReceiver, Ready, Verdict};
pub use sender::PartialSender;

use thiserror::Error;

/// Largest window of a [`Promise`]. The receiver's memory is one bit per slot: 8 KiB at this limit.
pub const WINDOW_MAX: u32 = 65_535;

/// The share of a window that may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise {
    window: u32,
    percent: u8,
}

impl Promise {
    /// A window of `window` slots, 1 to [`WINDOW_MAX`], of which `percent` per cent, at most 100, surely arrive.
    pub const fn new(window: u32, percent: u8) -> Result<Self, PromiseError> {
        if window == 0 || window > WINDOW_MAX {
            return Err(PromiseError::Window(window));
        }
        if percent > 100 {
            return Err(PromiseError::Percent(percent));
        }
        Ok(Self { window, percent })
    }

    /// Slots per window.
    pub const fn window(self) -> u32 {
        self.window
    }

    /// Share of a window that surely arrives, in per cent.
    pub const fn percent(self) -> u8 {
        self.percent
    }

    /// Slots of each window that may be skipped; see [`losses_allowed`].
    pub const fn losses_allowed(self) -> u32 {
        losses_allowed(self.window, self.percent)
    }
}

/// A [`Promise`] that cannot be kept because it makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PromiseError {
    /// The window is 0 or above [`WINDOW_MAX`].
    #[error("window of {0} slots: it must be 1 to {WINDOW_MAX}")]
    Window(u32),
    /// The percentage is above 100.
    #[error("reliability of {0} %: it must be 0 to 100")]
    Percent(u8),
}

/// `floor(window x (100 - percent) / 100)`, exactly; a percentage above 100 counts as 100.
pub const fn losses_allowed(window: u32, percent: u8) -> u32 {
    let share = 100u64.saturating_sub(percent as u64);
    // At most `window`, so it fits.
    (window as u64 * share / 100) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_are_validated() {
        assert_eq!(Promise::new(0, 50), Err(PromiseError::Window(0)));
        assert_eq!(Promise::new(65_536, 50), Err(PromiseError::Window(65_536)));
        assert_eq!(Promise::new(1, 101), Err(PromiseError::Percent(101)));
        let widest = Promise::new(WINDOW_MAX, 0).expect("both at their limits");
        assert_eq!(widest.losses_allowed(), WINDOW_MAX);
        assert_eq!(losses_allowed(u32::MAX, 0), u32::MAX);
        assert_eq!(losses_allowed(10, 255), 0);
    }
}
