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

const USAGE: &str = "usage: file_transfer server FILE [ADDRESS]
       file_transfer client FILE [ADDRESS [KEY]]
example: cargo run -p muse-net --example file_transfer -- server photo.jpg";

/// The client's wish and the server's description of the file: few and small.
const CONTROL: u8 = 0;
/// The file itself; only as much as the link takes waits in the queue.
const BULK: u8 = 1;
const CHUNK_BYTES: usize = 16 << 10;

/// A client asks for the file from an offset on.
#[derive(Message)]
#[message(id = 1)]
struct Want {
    offset: u64,
}

/// The server says what the file is.
#[derive(Clone, Copy, Message)]
#[message(id = 2)]
struct Offer {
    len: u64,
    #[field(fixed)]
    checksum: u64,
}

pub(crate) fn config() -> Config {
    Config::new(0x6669_6c65)
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .channel(
            ChannelConfig::new(Delivery::ReliableOrdered)
                .repair(Repair::Frugal)
                .priority(Priority::Low)
                .queue_bytes(1 << 20),
        )
}

/// Gives `file` to whoever asks.
pub(crate) fn serve(
    server: &mut Server,
    file: &[u8],
    running: &AtomicBool,
) -> Result<(), Box<dyn Error>> {
    let offer = Offer {
        len: file.len() as u64,
        checksum: muse::schema::fnv1a(file),
    };
    // How far each client is; the handler puts clients in.
    let mut places: BTreeMap<ConnectionId, u64> = BTreeMap::new();
    let mut wishes: Dispatcher<BTreeMap<ConnectionId, u64>> = Dispatcher::new();
    wishes.on(|places: &mut BTreeMap<_, _>, from, want: Want| {
        places.insert(from, want.offset);
    })?;
    while running.load(Ordering::Relaxed) {
        server.tick(|server, event| match event {
            Event::Connected { connection, .. } => {
                place::complain(server.send_message(connection, CONTROL, &offer));
            }
            Event::Message {
                connection,
                payload,
                ..
            } => {
                place::complain(wishes.dispatch(&mut places, connection, payload));
            }
            Event::Closed { connection, .. } => {
                places.remove(&connection);
            }
            _ => {}
        })?;
        for (&connection, offset) in &mut places {
            let rest = file.get(*offset as usize..).unwrap_or_default();
            for chunk in rest.chunks(CHUNK_BYTES) {
                // Full: the rest goes when something has arrived.
                if server.send(connection, BULK, chunk).is_err() {
                    break;
                }
                *offset += chunk.len() as u64;
            }
        }
        server.wait(Duration::from_millis(20))?;
    }
    Ok(())
}

/// Fetches into `path`, which may have a part of it already. `connect` is called again after a cut that lasted too long.
pub(crate) fn fetch(
    path: &Path,
    mut connect: impl FnMut() -> io::Result<Client>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), Box<dyn Error>> {
    let mut part = OpenOptions::new().create(true).append(true).open(path)?;
    let mut len = part.metadata()?.len();
    let mut offers: Dispatcher<Option<Offer>> = Dispatcher::new();
    offers.on(|known: &mut Option<Offer>, _, offer: Offer| *known = Some(offer))?;
    let (mut client, mut offer, mut refusal) = (connect()?, None, None);
    while offer.is_none_or(|offer: Offer| len < offer.len) {
        let (mut cut, mut written) = (false, Ok(()));
        client.tick(|client, event| match event {
            Event::Connected { .. } => {
                place::complain(client.send_message(CONTROL, &Want { offset: len }));
            }
            Event::Message {
                channel: BULK,
                payload,
                ..
            } => {
                written = part.write_all(payload);
                len += payload.len() as u64;
            }
            Event::Message {
                connection,
                payload,
                ..
            } => {
                place::complain(offers.dispatch(&mut offer, connection, payload));
            }
            Event::Refused { reason, .. } => refusal = Some(reason),
            Event::Closed { .. } | Event::Unanswered { .. } => cut = true,
            _ => {}
        })?;
        written?;
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        if cut {
            client = connect()?;
        }
        progress(len, offer.map_or(0, |offer| offer.len));
        client.wait(Duration::from_millis(20))?;
    }
    part.sync_all()?;
    match offer.map(|offer| offer.checksum) == Some(muse::schema::fnv1a(&std::fs::read(path)?)) {
        true => Ok(()),
        false => Err("the checksum differs: the file changed; delete it and fetch it again".into()),
    }
}

fn show(done: u64, all: u64) {
    let percent = (done * 100).checked_div(all).unwrap_or(0);
    let bar = "#".repeat(percent as usize / 4);
    print!("\r[{bar:25}] {percent:3} % of {} kB", all / 1_000);
    place::complain(io::stdout().flush());
}

fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match (words.next().as_deref(), words.next()) {
        (Some("server"), Some(path)) => {
            let file = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
            serve(
                &mut place::open(words.next(), config())?,
                &file,
                &AtomicBool::new(true),
            )
        }
        (Some("client"), Some(path)) => {
            let address = words.next().unwrap_or_else(|| place::SERVER.into());
            let key = place::public_key(words.next())?;
            fetch(
                Path::new(&path),
                || Client::connect(&address, config(), Connect::pinned(key)),
                show,
            )?;
            println!("\n{path}: complete, checksum right");
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}
