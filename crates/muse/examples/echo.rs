//! Echo: the server sends every message back; the client says how long each took.

#[path = "common/place.rs"]
mod place;

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use muse::prelude::*;

const USAGE: &str = "usage: echo server [ADDRESS]
       echo client [ADDRESS [KEY [TEXT...]]]
example: cargo run -p muse-net --example echo -- server [::]:7000";

/// The only channel.
const ECHO: u8 = 0;

pub(crate) fn config() -> Config {
    Config::new(0x6563_686f).channel(ChannelConfig::new(Delivery::ReliableOrdered))
}

/// Sends back whatever comes, on the channel that it came on.
pub(crate) fn serve(server: &mut Server, running: &AtomicBool) -> std::io::Result<()> {
    while running.load(Ordering::Relaxed) {
        server.tick(|server, event| match event {
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                place::complain(server.send(connection, channel, payload));
            }
            Event::Connected { connection, .. } => println!("{connection:?} came"),
            Event::Closed { connection, reason } => println!("{connection:?} went: {reason:?}"),
            _ => {}
        })?;
        server.wait(Duration::from_millis(100))?;
    }
    Ok(())
}

/// Says each text once the echo of the one before has come, and gives back the echoes.
pub(crate) fn ask(client: &mut Client, texts: &[String]) -> Result<Vec<String>, Box<dyn Error>> {
    let (mut echoes, mut said, mut end) = (Vec::new(), Instant::now(), None);
    while echoes.len() < texts.len() {
        client.tick(|client, event| {
            end = end.take().or_else(|| place::ended(&event));
            match event {
                Event::Connected { .. } => {}
                Event::Message { payload, .. } => {
                    let text = String::from_utf8_lossy(payload).into_owned();
                    println!("{text} ({:.1} ms)", said.elapsed().as_secs_f64() * 1_000.0);
                    echoes.push(text);
                }
                _ => return,
            }
            if let Some(next) = texts.get(echoes.len()) {
                said = Instant::now();
                place::complain(client.send(ECHO, next.as_bytes()));
            }
        })?;
        if let Some(end) = end.take() {
            end?;
        }
        client.wait(Duration::from_millis(100))?;
    }
    Ok(echoes)
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match words.next().as_deref() {
        Some("server") => {
            let mut server = place::open(words.next(), config())?;
            serve(&mut server, &AtomicBool::new(true))?;
        }
        Some("client") => {
            let mut client = place::connect(&mut words, config())?;
            let mut texts: Vec<String> = words.collect();
            if texts.is_empty() {
                texts = ["one", "two", "three"].map(String::from).into();
            }
            ask(&mut client, &texts)?;
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}
