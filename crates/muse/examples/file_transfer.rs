//! File transfer: fetches a file, shows how far it is, and goes on where it was when the server was gone meanwhile.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::Channel;
use muse::prelude::*;
use muse::schema::fnv1a;

const USAGE: &str = "usage: file_transfer serve FILE
       file_transfer fetch FILE ADDRESS
example: cargo run -p muse-net --example file_transfer -- serve photo.jpg";

/// The client wants the file from this byte on.
#[derive(Message)]
#[message(id = 1)]
struct Want {
    from: u64,
}

/// The server has a file of this length.
#[derive(Message)]
#[message(id = 2)]
struct Offer {
    len: u64,
    checksum: u64,
}

/// The protocol, and the channel of the file itself: bytes that give way to everything else.
pub(crate) fn protocol() -> (Protocol, Channel) {
    let mut protocol = Protocol::new("files/1")
        .message::<Want>(Delivery::ReliableOrdered)
        .message::<Offer>(Delivery::ReliableOrdered);
    let bulk = ChannelConfig::new(Delivery::ReliableOrdered).repair(Repair::Frugal);
    let bulk = protocol.add_channel(bulk.priority(Priority::Low).queue_bytes(1 << 20));
    (protocol, bulk)
}

/// Sends `file` to every client that asks.
pub(crate) fn serve(server: &mut Server, file: &[u8], running: &AtomicBool) -> muse::Result<()> {
    let (_, bulk) = protocol();
    let (len, checksum) = (file.len() as u64, fnv1a(file));
    // The part that each client has not been sent yet.
    let mut rests: BTreeMap<ClientId, &[u8]> = BTreeMap::new();
    while running.load(Ordering::Relaxed) {
        server.tick_within(Duration::from_millis(20), |server, event| match event {
            Joined(client) => server.send(client, &Offer { len, checksum }).map(drop),
            Received(client, message) => {
                let from = message.read::<Want>().map_or(0, |want| want.from);
                rests.insert(client, file.get(from as usize..).unwrap_or_default());
                Ok(())
            }
            Left(client, _) => {
                rests.remove(&client);
                Ok(())
            }
            _ => Ok(()),
        })?;
        for (&client, rest) in &mut rests {
            // Until the queue is full: the rest goes when something has arrived.
            while let Some(chunk) = rest.chunks(CHUNK_BYTES).next()
                && server.send_bytes(client, bulk, chunk).is_ok()
            {
                *rest = &rest[chunk.len()..];
            }
        }
    }
    Ok(())
}

/// Fetches into `path`, which may have a part already; after too long a cut, `connect` is called again.
pub(crate) fn fetch(
    path: &Path,
    mut connect: impl FnMut() -> muse::Result<Client>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), Box<dyn Error>> {
    let (_, bulk) = protocol();
    let mut part = OpenOptions::new().create(true).append(true).open(path)?;
    let (mut client, mut have) = (connect()?, part.metadata()?.len());
    let mut offer: Option<Offer> = None;
    while offer.as_ref().is_none_or(|offer| have < offer.len) {
        let told = client.tick(|client, event| {
            match event {
                ClientEvent::Connected => drop(client.send(&Want { from: have })?),
                ClientEvent::Received(message) if message.channel() == bulk => {
                    part.write_all(message.bytes())?;
                    have += message.bytes().len() as u64;
                }
                ClientEvent::Received(message) => offer = message.read().or(offer.take()),
                _ => {}
            }
            Ok(())
        });
        match told {
            Err(muse::Error::Closed(_) | muse::Error::Unanswered) => client = connect()?,
            told => told?,
        }
        progress(have, offer.as_ref().map_or(0, |offer| offer.len));
        client.wait(Duration::from_millis(20))?;
    }
    part.sync_all()?;
    if offer.map(|offer| offer.checksum) != Some(fnv1a(&std::fs::read(path)?)) {
        return Err("the checksum differs: delete the file and fetch it again".into());
    }
    Ok(())
}

fn show(done: u64, all: u64) {
    let percent = (done * 100).checked_div(all).unwrap_or(0);
    let bar = "#".repeat(percent as usize / 4);
    print!("\r[{bar:25}] {percent:3} % of {} kB", all / 1_000);
    // A terminal that is gone sees no progress.
    let _ = io::stdout().flush();
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", path] => {
            let file = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
            let mut server = Server::listen("[::]:7000", protocol().0)?;
            println!("fetch from {}", server.address());
            serve(&mut server, &file, &AtomicBool::new(true))?;
        }
        ["fetch", path, address] => {
            fetch(
                Path::new(path),
                || Client::connect(address, protocol().0),
                show,
            )?;
            println!("\n{path}: complete, checksum right");
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

const CHUNK_BYTES: usize = 16 << 10;
