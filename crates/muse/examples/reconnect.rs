//! Reconnect: the client stops reading for a while, as in a tunnel; the server notices, keeps the connection, and when the
//! client is back, the count goes on without a gap and without a number twice.

#[path = "common/place.rs"]
mod place;

use std::error::Error;
use std::process::ExitCode;

use muse::prelude::*;

const USAGE: &str = "usage: reconnect server [ADDRESS]
       reconnect client [ADDRESS [KEY]]
example: cargo run -p muse-net --example reconnect -- server";

/// The only channel.
const COUNT: u8 = 0;

/// Notices silence soon, and keeps what was interrupted for a minute.
pub(crate) fn config() -> Config {
    Config::new(0x6261_636b)
        .channel(ChannelConfig::new(Delivery::ReliableOrdered))
        .keep_alive(Duration::from_millis(100))
        .silence(Duration::from_millis(500))
        .resume_within(Duration::from_secs(60))
}

/// What the server sees of its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Came,
    Interrupted,
    Resumed,
    Went,
}

/// Counts aloud, for everybody who is there, until `see` has seen enough and returns false.
pub(crate) fn serve(server: &mut Server, mut see: impl FnMut(Seen) -> bool) -> std::io::Result<()> {
    let (mut count, mut running) = (0_u32, true);
    while running {
        server.tick(|_, event| {
            let seen = match event {
                Event::Connected { .. } => Seen::Came,
                Event::Interrupted { .. } => Seen::Interrupted,
                Event::Resumed { .. } => Seen::Resumed,
                Event::Closed { .. } => Seen::Went,
                _ => return,
            };
            running &= see(seen);
        })?;
        server.broadcast(COUNT, &count.to_le_bytes());
        count += 1;
        server.wait(Duration::from_millis(50))?;
    }
    Ok(())
}

/// Listens to the count and leaves the network alone once, for as long as `tunnel` takes. Says what numbers it heard.
pub(crate) fn listen(
    client: &mut Client,
    mut show: impl FnMut(u32),
    tunnel: impl FnOnce(),
) -> Result<Vec<u32>, Box<dyn Error>> {
    let (mut heard, mut tunnel, mut end) = (Vec::new(), Some(tunnel), None);
    while heard.len() < 2 * HEARD_BEFORE || tunnel.is_some() {
        client.tick(|_, event| {
            end = end.take().or_else(|| place::ended(&event));
            if let Event::Message { payload, .. } = event {
                let number = payload.try_into().map_or(0, u32::from_le_bytes);
                show(number);
                heard.push(number);
            }
        })?;
        if let Some(end) = end.take() {
            end?;
        }
        if heard.len() >= HEARD_BEFORE
            && let Some(tunnel) = tunnel.take()
        {
            tunnel();
        }
        client.wait(Duration::from_millis(50))?;
    }
    Ok(heard)
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match words.next().as_deref() {
        Some("server") => {
            let mut server = place::open(words.next(), config())?;
            serve(&mut server, |seen| {
                println!("client: {seen:?}");
                true
            })?;
        }
        Some("client") => {
            let mut client = place::connect(&mut words, config())?;
            let heard = listen(
                &mut client,
                |number| println!("{number}"),
                || {
                    println!("into the tunnel, for three seconds");
                    std::thread::sleep(std::time::Duration::from_secs(3));
                    println!("out of the tunnel");
                },
            )?;
            let whole = heard.windows(2).all(|pair| pair[1] == pair[0] + 1);
            println!(
                "{} numbers, {}",
                heard.len(),
                if whole {
                    "none missing, none twice"
                } else {
                    "not in order"
                }
            );
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Numbers to hear before the tunnel; as many follow after it.
const HEARD_BEFORE: usize = 20;

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}
