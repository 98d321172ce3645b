//! A NATS server of a test's own, from the system's package.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The server; it ends with the value.
pub(crate) struct Nats {
    child: Child,
    port: u16,
}

impl Nats {
    pub(crate) fn start() -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a free port").port();
        let child = Self::spawn(port);
        Self { child, port }
    }

    /// Kills it.
    pub(crate) fn stop(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }

    /// Starts it again at the same port.
    pub(crate) fn start_again(&mut self) {
        self.child = Self::spawn(self.port);
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn spawn(port: u16) -> Child {
        let program = std::env::var("NATS_SERVER").unwrap_or_else(|_| "nats-server".to_owned());
        let child = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.expect("nats-server is installed, or NATS_SERVER names it");
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "it does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
