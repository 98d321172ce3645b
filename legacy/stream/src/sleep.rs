//! Waiting where there is no `epoll`: a short sleep, after which every socket is tried.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use super::{Interest, Ready};

/// Remembers which sockets there are. The names and shapes are those of `epoll.rs`.
#[derive(Debug, Default)]
pub(super) struct Poller {
    interests: RefCell<BTreeMap<u64, Interest>>,
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
