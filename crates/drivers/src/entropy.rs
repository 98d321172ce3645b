//! Randomness for keys, from the operating system. Cores take it from a provider and never fetch it themselves.

use std::io;

use muse_transport::Entropy;

/// The operating system's randomness, for keys.
///
/// ```
/// use muse_drivers::SystemEntropy;
/// use muse_transport::ServerKey;
/// let mut entropy = SystemEntropy::new()?;
/// let (first, second) = (ServerKey::generate(&mut entropy), ServerKey::generate(&mut entropy));
/// assert_ne!(first.public(), second.public());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemEntropy {
    /// Made by [`new`](Self::new) only, which has seen the source work.
    _checked: (),
}

impl SystemEntropy {
    /// Fails where the operating system gives no randomness: a broken sandbox, or a system that is still starting.
    pub fn new() -> io::Result<Self> {
        fill_random(&mut [0; 16])?;
        Ok(Self { _checked: () })
    }
}

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        // It worked once, so the system has to be broken beyond use. There is nothing weaker to fall back to that
        // would still be a key, and an unwinding program might go on without one.
        if let Err(error) = fill_random(bytes) {
            eprintln!(
                "muse: the operating system stopped giving randomness ({error}); keys cannot be made without it"
            );
            std::process::abort();
        }
    }
}

/// Fills `bytes` with cryptographically secure randomness.
///
/// Fails only where the operating system has no source of it, which on supported platforms does not happen after boot.
pub fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_fills_differ_and_every_byte_is_written() -> io::Result<()> {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        fill_random(&mut first)?;
        fill_random(&mut second)?;
        assert_ne!(first, second);
        // A byte that stays zero over 64 fills was not written: a chance of 256^-64 otherwise.
        let mut seen = [0; 100];
        for _ in 0..64 {
            let mut bytes = [0; 100];
            fill_random(&mut bytes)?;
            seen.iter_mut()
                .zip(bytes)
                .for_each(|(seen, byte)| *seen |= byte);
        }
        assert!(seen.iter().all(|&byte| byte != 0));
        Ok(())
    }
}
