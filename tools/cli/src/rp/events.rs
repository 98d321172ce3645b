//! Events as lines.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use muse_rp::Message;

/// One line per event on standard output, written at once.
pub(super) struct Lines;

impl Lines {
    pub(super) fn connected(&self) -> io::Result<()> {
        self.line("connected")
    }

    pub(super) fn disconnected(&self) -> io::Result<()> {
        self.line("disconnected")
    }

    pub(super) fn received(&self, message: &Message) -> io::Result<()> {
        self.line(&received(message))
    }

    fn line(&self, text: &str) -> io::Result<()> {
        let mut output = io::stdout().lock();
        writeln!(output, "{text}")?;
        output.flush()
    }
}

fn received(message: &Message) -> String {
    let mut line = format!(
        "received channel={} type={} seq={} len={} data=",
        message.channel,
        message.kind,
        message.sequence,
        message.payload.len()
    );
    for byte in &message.payload {
        // Writing to a string cannot fail.
        let _ = write!(line, "{byte:02x}");
    }
    line
}
