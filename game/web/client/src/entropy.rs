//! Randomness for keys: the browser's.

use muse_transport::Entropy;

/// `crypto.getRandomValues` in a browser, the operating system elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct BrowserEntropy {
    /// Made by [`new`](Self::new) only, which has seen the source work.
    _checked: (),
}

impl BrowserEntropy {
    /// Fails where there is no source of randomness.
    pub fn new() -> Result<Self, getrandom::Error> {
        getrandom::fill(&mut [0; 16])?;
        Ok(Self { _checked: () })
    }
}

impl Entropy for BrowserEntropy {
    fn fill(&mut self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the source of randomness has worked before");
    }
}

/// A seed for what need not be secret.
pub fn seed() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness nothing can connect, which says so itself.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}
