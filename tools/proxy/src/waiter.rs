//! Waiting for sockets and for a time in microseconds.
//!
//! `mio` waits for whole milliseconds only. On Linux a timer that is waited for like a socket is exact; elsewhere the last part of a
//! millisecond is slept in small steps.

use std::io;
use std::time::Duration;

use mio::{Events, Poll, Registry, Token};

/// Waits for sockets.
#[derive(Debug)]
pub(super) struct Waiter {
    poll: Poll,
    events: Events,
    #[cfg(target_os = "linux")]
    timer: timer::Timer,
}

impl Waiter {
    pub(super) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            timer: timer::Timer::new(poll.registry())?,
            poll,
            events: Events::with_capacity(EVENTS_MAX),
        })
    }

    pub(super) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Waits until a socket is ready, for `timeout` at most; then calls `ready` with the token of each that is.
    pub(super) fn wait(
        &mut self,
        timeout: Duration,
        mut ready: impl FnMut(Token),
    ) -> io::Result<()> {
        let outcome = match timeout.is_zero() {
            true => self.poll.poll(&mut self.events, Some(timeout)),
            false => self.wait_exactly(timeout),
        };
        match outcome {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            outcome => outcome?,
        }
        for event in &self.events {
            if event.token() != TIMER {
                ready(event.token());
            }
        }
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn wait_exactly(&mut self, timeout: Duration) -> io::Result<()> {
        self.timer.set(timeout)?;
        self.poll.poll(&mut self.events, None)
    }

    #[cfg(not(target_os = "linux"))]
    fn wait_exactly(&mut self, timeout: Duration) -> io::Result<()> {
        const MILLISECOND: Duration = Duration::from_millis(1);
        const STEP: Duration = Duration::from_micros(200);
        if timeout >= MILLISECOND {
            let whole = Duration::from_millis(timeout.as_millis() as u64);
            return self.poll.poll(&mut self.events, Some(whole));
        }
        std::thread::sleep(timeout.min(STEP));
        self.poll.poll(&mut self.events, Some(Duration::ZERO))
    }
}

#[cfg(target_os = "linux")]
mod timer {
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::time::Duration;

    use mio::unix::SourceFd;
    use mio::{Interest, Registry};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// A timer of the kernel's.
    #[derive(Debug)]
    pub(super) struct Timer(OwnedFd);

    impl Timer {
        pub(super) fn new(registry: &Registry) -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            let source = timer.as_raw_fd();
            registry.register(&mut SourceFd(&source), super::TIMER, Interest::READABLE)?;
            Ok(Self(timer))
        }

        /// Goes off once; setting it forgets that it has gone off before.
        pub(super) fn set(&self, timeout: Duration) -> io::Result<()> {
            let value = Itimerspec {
                it_interval: Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: Timespec {
                    tv_sec: timeout.as_secs().min(TIMEOUT_SECS_MAX) as i64,
                    tv_nsec: i64::from(timeout.subsec_nanos()),
                },
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &value)?;
            Ok(())
        }
    }

    /// Longest wait.
    const TIMEOUT_SECS_MAX: u64 = 3_600;
}

/// Not the token of any socket.
const TIMER: Token = Token(usize::MAX - 1);
/// Sockets told about at a time.
const EVENTS_MAX: usize = 256;
