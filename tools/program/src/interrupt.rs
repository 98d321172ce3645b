//! Ctrl-C as a flag that a loop looks at or waits for, so that programs end by returning.

use anyhow::Context;
use tokio::sync::watch;

/// Tells whether the user wants the program to end.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Begins to listen for Ctrl-C and, on systems that have it, for SIGTERM. The second one ends the program
    /// at once.
    pub fn listen() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .context("cannot listen for Ctrl-C")?;
        let signals = {
            let _entered = runtime.enter();
            Signals::new().context("cannot listen for Ctrl-C")?
        };
        let (raise, raised) = watch::channel(false);
        std::thread::spawn(move || {
            runtime.block_on(async move {
                let mut signals = signals;
                signals.next().await;
                raise.send_replace(true);
                signals.next().await;
                std::process::exit(EXIT_INTERRUPTED);
            });
        });
        Ok(Self(raised))
    }

    /// True if Ctrl-C was pressed.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for Ctrl-C, so that a program that does nothing else need not poll.
    pub async fn raised(&self) {
        // An error means that the listening thread is gone, and with it the program.
        let _ = self.0.clone().wait_for(|raised| *raised).await;
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        std::future::poll_fn(|context| {
            let interrupted = self.interrupt.poll_recv(context).is_ready();
            let terminated = self.terminate.poll_recv(context).is_ready();
            match interrupted || terminated {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

/// Exit code that shells report for a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;
