//! A log of packet secrets, so that a capture can be read by an analyser. Off unless asked for by an option named
//! `danger`.
//!
//! A line is `MUSE_CLIENT` or `MUSE_SERVER` (who seals), the connection id in the header of those packets, the suite's
//! number and the first secret of the direction, in hexadecimal; `docs/protocol.md` describes it.

use std::fmt::Write;
use std::sync::Arc;

use super::{Keys, Secret, Suite};

/// The receiver of the lines.
pub(crate) type KeyLog = Arc<dyn Fn(&str) + Send + Sync>;

impl Keys {
    /// Logs both directions of a connection that has just been made.
    pub(crate) fn danger_log(&self, log: &KeyLog, client: bool, local_id: u32, remote_id: u32) {
        let (us, them) = if client {
            ("MUSE_CLIENT", "MUSE_SERVER")
        } else {
            ("MUSE_SERVER", "MUSE_CLIENT")
        };
        log(&line(us, remote_id, self.send.suite, &self.send.secret));
        log(&line(
            them,
            local_id,
            self.receive.suite,
            &self.receive.secret,
        ));
    }
}

fn line(label: &str, connection_id: u32, suite: Suite, secret: &Secret) -> String {
    let mut line = format!("{label} {connection_id:08x} {} ", suite.bit());
    for byte in &secret[..] {
        write!(line, "{byte:02x}").expect("writing to a string succeeds");
    }
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn both_sides_log_the_same_lines() {
        let (client, server) = Keys::pair_for_tests(Suite::Aes128Gcm, 1, 0xAB);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&lines);
        let log: KeyLog = Arc::new(move |line| {
            sink.lock().expect("no test panics").push(line.to_owned());
        });
        client.danger_log(&log, true, 0xC1, 0x5E);
        server.danger_log(&log, false, 0x5E, 0xC1);
        let lines = lines.lock().expect("no test panics");
        assert_eq!(
            lines[0],
            format!("MUSE_CLIENT 0000005e 1 {}", "ab".repeat(32))
        );
        assert_eq!(
            lines[1],
            format!("MUSE_SERVER 000000c1 1 {}", "54".repeat(32))
        );
        assert_eq!((&lines[0], &lines[1]), (&lines[3], &lines[2]));
    }
}
