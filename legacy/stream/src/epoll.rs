//! Linux's `epoll`: one call that waits for all sockets and for a time in microseconds.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::{Interest, Ready};

/// Waits for sockets.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
}

impl Interest {
    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.readable);
        flags.set(EventFlags::OUT, self.writable);
        // Errors are reported even to those who ask for nothing, once is enough.
        flags.set(EventFlags::ET, self == Self::NONE);
        flags
    }
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let poller = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            timer: timerfd_create(TimerfdClockId::Monotonic, flags)?,
        };
        poller.add(&poller.timer, TIMER, Interest::READ)?;
        Ok(poller)
    }

    pub(super) fn add(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, socket, data, interest.flags())?)
    }

    pub(super) fn modify(
        &self,
        socket: &impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let data = EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, interest.flags())?)
    }

    pub(super) fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Fills `ready` with the sockets that are; with none when the time is over or a signal came.
    pub(super) fn wait(&self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        ready.clear();
        // A time of zero would stop the timer instead.
        self.set_timer(timeout.max(Duration::from_nanos(1)))?;
        let mut events = [const { MaybeUninit::<Event>::uninit() }; EVENTS_MAX];
        let (events, _) = match epoll::wait(&self.epoll, &mut events, None) {
            Err(Errno::INTR) => return Ok(()),
            outcome => outcome?,
        };
        let broken = EventFlags::ERR | EventFlags::HUP;
        for event in events {
            let (token, flags) = (event.data.u64(), event.flags);
            if token != TIMER {
                ready.push(Ready {
                    token,
                    readable: flags.intersects(EventFlags::IN | broken),
                    writable: flags.contains(EventFlags::OUT),
                });
            }
        }
        Ok(())
    }

    /// Goes off once after `timeout`; setting it also forgets that it has gone off before.
    fn set_timer(&self, timeout: Duration) -> io::Result<()> {
        let value = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: timeout.as_secs().min(WAIT_SECS_MAX) as i64,
                tv_nsec: i64::from(timeout.subsec_nanos()),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }
}

/// Not the number of any socket.
const TIMER: u64 = u64::MAX;
const EVENTS_MAX: usize = 256;
/// Longest wait: a day.
const WAIT_SECS_MAX: u64 = 86_400;
