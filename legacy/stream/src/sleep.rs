//! Waiting where there is no `epoll`: a short sleep, after which every socket is tried.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Remembers which sockets there are. The names and shapes are those of `epoll.rs`.
#[derive(Debug, Default)]
pub(super) struct Poller {
    interests: RefCell<BTreeMap<u64, Interest>>,
}

/// The events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) readable: bool,
    pub(super) writable: bool,
}

impl Interest {
    pub(super) const NONE: Self = Self::of(false, false);
    pub(super) const READ: Self = Self::of(true, false);
    pub(super) const BOTH: Self = Self::of(true, true);

    const fn of(readable: bool, writable: bool) -> Self {
        Self { readable, writable }
    }
}

/// A socket that need not be waited for any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ready {
    pub(super) token: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    pub(super) fn add<S>(&self, socket: &S, token: u64, interest: Interest) -> io::Result<()> {
        self.modify(socket, token, interest)
    }

    pub(super) fn modify<S>(&self, _: &S, token: u64, interest: Interest) -> io::Result<()> {
        self.interests.borrow_mut().insert(token, interest);
        Ok(())
    }

    /// Tokens are used again, and one without a socket is tried in vain.
    pub(super) fn remove<S>(&self, _: &S) -> io::Result<()> {
        Ok(())
    }

    pub(super) fn wait(&self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        std::thread::sleep(timeout.min(SLEEP_MAX));
        let interests = self.interests.borrow();
        ready.extend(interests.iter().map(|(&token, interest)| Ready {
            token,
            readable: interest.readable,
            writable: interest.writable,
        }));
        Ok(())
    }
}

const SLEEP_MAX: Duration = Duration::from_millis(1);
