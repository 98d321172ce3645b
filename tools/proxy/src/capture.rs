//! The capture file: what arrived and what left, on both sides.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use muse_drivers::clock::unix_time;
use muse_netem::{Cause, PcapNg, Side};
use muse_wire::Duration;

use super::flights::Datagram;
use super::port::Arrived;
use super::sockets::plain;

/// A pcapng file under construction.
pub(crate) struct CaptureFile {
    path: PathBuf,
    file: PcapNg<BufWriter<File>>,
    packets: u64,
    /// The first error: nothing is written after it.
    failed: Option<io::Error>,
}

impl CaptureFile {
    /// Begins the file, replacing one that is there.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let file = File::create(path)
            .with_context(|| format!("cannot write {}; choose another file", path.display()))?;
        Ok(Self {
            file: PcapNg::new(BufWriter::with_capacity(BUFFER_BYTES, file))?,
            path: path.to_owned(),
            packets: 0,
            failed: None,
        })
    }

    /// Something came in, and was perhaps lost right then.
    pub(super) fn arrived(
        &mut self,
        side: Side,
        arrived: &Arrived<'_>,
        to: SocketAddr,
        lost: Option<Cause>,
    ) {
        let now = unix_time().as_micros();
        let at = Duration::from_micros(now.saturating_sub(arrived.age.as_micros()));
        let from = plain(arrived.from);
        self.write(|file| {
            let comment = lost.map(comment);
            file.arrived(side, at, from, to, arrived.ecn, arrived.payload, comment)
        });
    }

    /// Something went out.
    pub(super) fn left(
        &mut self,
        side: Side,
        from: SocketAddr,
        to: SocketAddr,
        datagram: &Datagram,
    ) {
        let at = unix_time();
        self.write(|file| file.left(side, at, from, to, datagram.ecn, &datagram.payload));
    }

    /// Packets written so far.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// Lets readers see what there is.
    pub(super) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.file.flush().err();
        }
    }

    /// Ends the file; says if it is not whole.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        self.flush();
        match self.failed {
            Some(error) => Err(error)
                .with_context(|| format!("the capture {} is not whole", self.path.display())),
            None => Ok(()),
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut PcapNg<BufWriter<File>>) -> io::Result<()>) {
        if self.failed.is_none() {
            match write(&mut self.file) {
                Ok(()) => self.packets += 1,
                Err(error) => {
                    tracing::error!("the capture ends here: {error}");
                    self.failed = Some(error);
                }
            }
        }
    }
}

fn comment(cause: Cause) -> &'static str {
    match cause {
        Cause::Burst => "lost: burst",
        Cause::QueueFull => "lost: queue full",
        Cause::TooLarge => "lost: larger than the MTU",
        Cause::Outage => "lost: outage",
        _ => "lost: random",
    }
}

/// Bytes between writes to the file.
const BUFFER_BYTES: usize = 1 << 20;
