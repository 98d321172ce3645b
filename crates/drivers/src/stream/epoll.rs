//! Linux's `epoll`: one call that waits for all sockets and for a time in microseconds.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use libc::c_int;

/// Waits for sockets.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
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
        // SAFETY: no pointers are passed; the result is checked before it is owned.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
        // SAFETY: as above.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        let poller = Self { epoll, timer };
        poller.add(&poller.timer, TIMER, Interest::READ)?;
        Ok(poller)
    }

    pub(super) fn add(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, token, interest)
    }

    pub(super) fn modify(
        &self,
        socket: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, token, interest)
    }

    pub(super) fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, socket, 0, Interest::NONE)
    }

    /// Fills `ready` with the sockets that are; with none when the time is over or a signal came.
    pub(super) fn wait(&self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        // A time of zero would stop the timer instead.
        self.set_timer(timeout.max(Duration::from_nanos(1)))?;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        // SAFETY: `events` is valid for `EVENTS_MAX` entries, exclusively borrowed for the call.
        let count = unsafe {
            libc::epoll_wait(
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                EVENTS_MAX as c_int,
                -1,
            )
        };
        let Ok(count) = usize::try_from(count) else {
            return match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            };
        };
        const BROKEN: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        for event in &events[..count] {
            let (token, bits) = (event.u64, event.events);
            if token != TIMER {
                ready.push(Ready {
                    token,
                    readable: bits & (libc::EPOLLIN as u32 | BROKEN) != 0,
                    writable: bits & libc::EPOLLOUT as u32 != 0,
                });
            }
        }
        Ok(())
    }

    /// Goes off once after `timeout`; setting it also forgets that it has gone off before.
    fn set_timer(&self, timeout: Duration) -> io::Result<()> {
        let none = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let value = libc::itimerspec {
            it_interval: none,
            it_value: libc::timespec {
                tv_sec: timeout.as_secs().min(WAIT_SECS_MAX) as libc::time_t,
                tv_nsec: timeout.subsec_nanos() as _,
            },
        };
        // SAFETY: `value` is a valid itimerspec that lives through the call; the old value is not asked for.
        let result = unsafe {
            libc::timerfd_settime(self.timer.as_raw_fd(), 0, &raw const value, ptr::null_mut())
        };
        checked(result)
    }

    fn control(
        &self,
        operation: c_int,
        socket: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut events = 0;
        if interest.readable {
            events |= libc::EPOLLIN;
        }
        if interest.writable {
            events |= libc::EPOLLOUT;
        }
        if interest == Interest::NONE {
            // Errors are reported even to those who ask for nothing, once is enough.
            events |= libc::EPOLLET;
        }
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: `event` is a valid epoll_event that lives through the call; the kernel copies it.
        let result = unsafe {
            libc::epoll_ctl(
                self.epoll.as_raw_fd(),
                operation,
                socket.as_fd().as_raw_fd(),
                &raw mut event,
            )
        };
        checked(result)
    }
}

fn owned(descriptor: c_int) -> io::Result<OwnedFd> {
    checked(descriptor.min(0))?;
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn checked(result: c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Not the number of any socket.
const TIMER: u64 = u64::MAX;
const EVENTS_MAX: usize = 256;
/// Longest wait: a day.
const WAIT_SECS_MAX: u64 = 86_400;
