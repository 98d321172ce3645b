//! Events as lines on standard output, written at once.

use std::io::{self, Write};

use muse_rp::Message;

pub(super) fn connected() -> io::Result<()> {
    line("connected")
}

pub(super) fn disconnected() -> io::Result<()> {
    line("disconnected")
}

pub(super) fn received(message: &Message) -> io::Result<()> {
    let Message {
        channel,
        kind,
        sequence,
        payload,
        ..
    } = message;
    let len = payload.len();
    let data: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
    line(&format!(
        "received channel={channel} type={kind} seq={sequence} len={len} data={data}"
    ))
}

fn line(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{text}")?;
    output.flush()
}
