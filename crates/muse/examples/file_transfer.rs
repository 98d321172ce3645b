//! File transfer: fetches a file, shows how far it is, and goes on where it was when the server was gone meanwhile.

#[path = "common/place.rs"]
mod place;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::prelude::*;
use muse::schema::fnv1a;

const USAGE: &str = "usage: file_transfer server FILE [ADDRESS]
       file_transfer client FILE [ADDRESS [KEY]]
example: cargo run -p muse-net --example file_transfer -- server photo.jpg";

/// The client says from which byte on it wants the file; the server says how long it is and its checksum.
const CONTROL: u8 = 0;
/// The file itself.
const BULK: u8 = 1;
const CHUNK_BYTES: usize = 16 << 10;

pub(crate) fn config() -> Config {
    let bulk = ChannelConfig::new(Delivery::ReliableOrdered).repair(Repair::Frugal);
    Config::new(0x6669_6c65)
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .channel(bulk.priority(Priority::Low).queue_bytes(1 << 20))
}

/// Gives `file` to whoever asks.
pub(crate) fn serve(server: &mut Server, file: &[u8], running: &AtomicBool) -> io::Result<()> {
    let offer = [file.len() as u64, fnv1a(file)].map(u64::to_le_bytes);
    // What each client has not been sent yet.
    let mut rests: BTreeMap<ConnectionId, &[u8]> = BTreeMap::new();
    while running.load(Ordering::Relaxed) {
        server.tick(|server, event| match event {
            Event::Connected { connection, .. } => {
                place::complain(server.send(connection, CONTROL, offer.as_flattened()));
            }
            Event::Message {
                connection,
                payload,
                ..
            } => {
                let offset = payload.try_into().map_or(0, u64::from_le_bytes);
                rests.insert(connection, file.get(offset as usize..).unwrap_or_default());
            }
            Event::Closed { connection, .. } => {
                rests.remove(&connection);
            }
            _ => {}
        })?;
        for (&connection, rest) in &mut rests {
            // Until the queue is full: the rest goes when something has arrived.
            while let Some(chunk) = rest.chunks(CHUNK_BYTES).next()
                && server.send(connection, BULK, chunk).is_ok()
            {
                *rest = &rest[chunk.len()..];
            }
        }
        server.wait(Duration::from_millis(20))?;
    }
    Ok(())
}

/// Fetches into `path`, which may have a part already; after too long a cut, `connect` is called again.
pub(crate) fn fetch(
    path: &Path,
    mut connect: impl FnMut() -> io::Result<Client>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), Box<dyn Error>> {
    let mut part = OpenOptions::new().create(true).append(true).open(path)?;
    let (mut client, mut have) = (connect()?, part.metadata()?.len());
    let mut offer: Option<[u64; 2]> = None;
    while offer.is_none_or(|[len, _]| have < len) {
        let (mut end, mut written) = (None, Ok(()));
        client.tick(|client, event| match event {
            Event::Connected { .. } => place::complain(client.send(CONTROL, &have.to_le_bytes())),
            Event::Message {
                channel: BULK,
                payload,
                ..
            } if written.is_ok() => {
                written = part.write_all(payload);
                have += payload.len() as u64;
            }
            Event::Message {
                channel: CONTROL,
                payload,
                ..
            } => {
                let number =
                    |at: usize| payload[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
                offer = (payload.len() == 16).then(|| [number(0), number(8)]);
            }
            Event::Refused { reason, .. } => end = Some(Err(reason)),
            Event::Closed { .. } | Event::Unanswered { .. } => end = Some(Ok(())),
            _ => {}
        })?;
        written?;
        if let Some(end) = end {
            end?;
            client = connect()?;
        }
        progress(have, offer.map_or(0, |[len, _]| len));
        client.wait(Duration::from_millis(20))?;
    }
    part.sync_all()?;
    if offer.map(|[_, checksum]| checksum) != Some(fnv1a(&std::fs::read(path)?)) {
        return Err("the checksum differs: delete the file and fetch it again".into());
    }
    Ok(())
}

fn show(done: u64, all: u64) {
    let percent = (done * 100).checked_div(all).unwrap_or(0);
    let bar = "#".repeat(percent as usize / 4);
    print!("\r[{bar:25}] {percent:3} % of {} kB", all / 1_000);
    place::complain(io::stdout().flush());
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match (words.next().as_deref(), words.next()) {
        (Some("server"), Some(path)) => {
            let file = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
            let mut server = place::open(words.next(), config())?;
            serve(&mut server, &file, &AtomicBool::new(true))?;
        }
        (Some("client"), Some(path)) => {
            let address = words.next().unwrap_or_else(|| place::SERVER.into());
            let key = place::public_key(words.next())?;
            let connect = || Client::connect(&address, config(), Connect::pinned(key));
            fetch(Path::new(&path), connect, show)?;
            println!("\n{path}: complete, checksum right");
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}
