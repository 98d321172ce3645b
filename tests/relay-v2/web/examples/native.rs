//! A player over UDP in a room whose host is a browser: `native INVITATION COUNT MARK`.
//!
//! Sends COUNT messages on either channel as `MARK reliable 0` and so on, waits for as many reliable ones of the host, and prints
//! everything that came as lines of JSON: `[channel, text]`.
#![allow(clippy::disallowed_methods, reason = "a program keeps time itself")]

use std::error::Error;
use std::time::{Duration, Instant};

use muse::Event;
use muse::drivers::ClientDriver;
use muse_relay_web::config;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [invitation, count, mark] = arguments.as_slice() else {
        return Err("usage: native INVITATION COUNT MARK".into());
    };
    let count: usize = count.parse()?;
    let mut client = ClientDriver::accept_invitation(&invitation.parse()?, config())?;
    let (mut heard, mut sent, mut over) = (0, 0, None);
    let until = Instant::now() + PATIENCE;
    while heard < count || sent < count {
        client.tick(|_, event| match event {
            Event::Message {
                channel, payload, ..
            } => {
                heard += usize::from(channel == 1);
                let text = String::from_utf8_lossy(payload);
                println!("[{channel}, \"{text}\"]");
            }
            Event::Refused { .. } | Event::Unanswered { .. } | Event::Closed { .. } => {
                over = Some(format!("{event:?}"));
            }
            _ => {}
        })?;
        if let Some(why) = over {
            return Err(why.into());
        }
        if Instant::now() > until {
            return Err(format!("{heard} of {count} came, {sent} went").into());
        }
        if client.is_connected() && sent < count {
            client.send(0, format!("{mark} unreliable {sent}").as_bytes())?;
            client.send(1, format!("{mark} reliable {sent}").as_bytes())?;
            sent += 1;
        }
        client.wait(Duration::from_millis(2))?;
    }
    client.finish(0, "enough");
    while over.is_none() && Instant::now() < until {
        client.tick(|_, event| {
            if let Event::Closed { .. } = event {
                over = Some(String::new());
            }
        })?;
        client.wait(Duration::from_millis(5))?;
    }
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(60);
