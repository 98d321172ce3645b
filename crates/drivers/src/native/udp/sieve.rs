//! Limits the handshakes that the kernel lets through while strangers send more of them than a socket's buffer holds.
//!
//! A game loop looks at its socket once a tick. A flood fills the buffer long before the next look, and what does not fit
//! is dropped, players' packets with it. So the kernel is told to drop handshakes at random before they reach the buffer:
//! half of them, three quarters, and so on until about as many come through as a tick can answer. Packets of connections
//! always pass. A player who connects meanwhile is dropped as often as a stranger is, and asks again.

use muse_wire::{Duration, Instant};

/// Decides how fine the sieve is.
#[derive(Debug)]
pub(super) struct Sieve {
    /// Handshakes at one look that need no sieve.
    pass_max: usize,
    /// One handshake in two to the power of this passes.
    shift: u32,
    calm_since: Instant,
}

impl Sieve {
    /// A sieve for a socket with a receive buffer of this many bytes.
    pub(super) fn new(buffer: usize) -> Self {
        Self {
            pass_max: (buffer / HANDSHAKE_COST).clamp(PASS_LEAST, PASS_MOST),
            shift: 0,
            calm_since: Instant::ZERO,
        }
    }

    /// Notes how many handshakes one read of the socket brought. Returns how fine the sieve must be from now on, if that changes.
    pub(super) fn judge(&mut self, now: Instant, handshakes: usize) -> Option<u32> {
        let before = self.shift;
        if handshakes > self.pass_max {
            let excess = (handshakes / self.pass_max).ilog2() + 1;
            self.shift = (self.shift + excess).min(SHIFT_MAX);
            self.calm_since = now;
        } else if self.shift == 0 || handshakes > self.pass_max / 4 {
            self.calm_since = now;
        } else if now.saturating_since(self.calm_since) > CALM {
            // Twice as many will pass, which are still few.
            self.shift -= 1;
            self.calm_since = now;
        }
        (self.shift != before).then_some(self.shift)
    }
}

/// True if a datagram is a stranger's question: a Hello or a Connect (docs/protocol.md).
#[inline]
pub(super) fn is_handshake(payload: &[u8]) -> bool {
    matches!(payload.first(), Some(&(KIND_HELLO | KIND_CONNECT)))
}

/// The program that drops all but one in two to the power of `shift` handshakes. The kernel runs it with offset 0 at the
/// UDP header.
#[cfg(target_os = "linux")]
pub(super) fn program(shift: u32) -> [libc::sock_filter; 8] {
    let load_byte = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    let load_word = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let and = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    let jump_if_equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let return_constant = (libc::BPF_RET | libc::BPF_K) as u16;
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    [
        instruction(load_byte, 0, 0, UDP_HEADER_LEN),
        instruction(jump_if_equal, 1, 0, KIND_HELLO.into()),
        instruction(jump_if_equal, 0, 3, KIND_CONNECT.into()),
        instruction(load_word, 0, 0, random),
        instruction(and, 0, 0, (1 << shift) - 1),
        instruction(jump_if_equal, 0, 1, 0),
        instruction(return_constant, 0, 0, u32::MAX),
        instruction(return_constant, 0, 0, 0),
    ]
}

const KIND_HELLO: u8 = 1;
const KIND_CONNECT: u8 = 3;
#[cfg(target_os = "linux")]
const UDP_HEADER_LEN: u32 = 8;
/// Bytes of the buffer for each handshake that passes: several times what one takes there, so that most of it stays free.
const HANDSHAKE_COST: usize = 4_096;
/// Fewest and most handshakes at one look that a server takes without ado.
const PASS_LEAST: usize = 64;
const PASS_MOST: usize = 1_024;
/// The finest sieve: one handshake in 4,096.
const SHIFT_MAX: u32 = 12;
/// The time for which few handshakes must come before more may pass.
const CALM: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what passes of a flood at each look.
    fn looks(sieve: &mut Sieve, from: Instant, count: u64, flood: usize) -> Vec<usize> {
        let look = |number| {
            let passed = flood >> sieve.shift;
            sieve.judge(from + Duration::from_millis(16 * number), passed);
            passed
        };
        (0..count).map(look).collect()
    }

    #[test]
    fn a_flood_is_thinned_at_once_and_let_in_again_slowly() {
        let mut sieve = Sieve::new(4 << 20);
        let passed = looks(&mut sieve, Instant::ZERO, 100, 6_000);
        assert_eq!(passed[0], 6_000);
        assert!(passed[1..].iter().all(|&count| count <= PASS_MOST));
        assert!(sieve.shift > 0);
        let later = Instant::from_millis(1_600);
        looks(&mut sieve, later, 20, 100);
        assert!(sieve.shift > 0, "not calm for long enough");
        looks(&mut sieve, later, 400, 100);
        assert_eq!(sieve.shift, 0);
    }

    #[test]
    fn a_small_buffer_lets_fewer_pass() {
        let mut sieve = Sieve::new(200 << 10);
        assert_eq!(sieve.judge(Instant::ZERO, 500), Some(3));
    }

    #[test]
    fn few_handshakes_change_nothing() {
        let mut sieve = Sieve::new(4 << 20);
        for look in 0..1_000 {
            assert_eq!(
                sieve.judge(Instant::from_millis(16 * look), PASS_MOST),
                None
            );
        }
    }

    #[test]
    fn the_finest_sieve_has_an_end() {
        let mut sieve = Sieve::new(4 << 20);
        for look in 0..100 {
            sieve.judge(Instant::from_millis(look), usize::MAX);
        }
        assert_eq!(sieve.shift, SHIFT_MAX);
    }
}
