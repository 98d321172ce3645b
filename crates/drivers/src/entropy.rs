//! Randomness for keys, from the operating system. Cores take it from a provider and never fetch it themselves.

use std::io;

/// Fills `bytes` with cryptographically secure randomness.
///
/// Fails only where the operating system has no source of it, which on supported platforms does not happen after boot.
///
/// ```
/// let mut key = [0; 32];
/// muse_drivers::fill_random(&mut key)?;
/// assert_ne!(key, [0; 32]);
/// # Ok::<(), std::io::Error>(())
/// ```
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
