//! Reconnect: the client stops reading for a while, as in a tunnel; the server notices, keeps the connection, and when the
//! client is back, the count goes on without a gap and without a number twice.

use std::error::Error;

use muse::prelude::*;

const USAGE: &str = "usage: reconnect serve
       reconnect listen ADDRESS
example: cargo run -p muse-net --example reconnect -- serve";

#[derive(Message)]
#[message(id = 1)]
struct Count {
    number: u32,
}

/// Notices silence soon, and keeps what was interrupted for a minute.
pub(crate) fn protocol() -> Protocol {
    Protocol::new("count/1")
        .message::<Count>(Delivery::ReliableOrdered)
        .configure(|config| {
            config
                .keep_alive(Duration::from_millis(100))
                .silence(Duration::from_millis(500))
                .resume_within(Duration::from_secs(60))
        })
}

/// An event that the server sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Joined,
    Interrupted,
    Resumed,
    Left,
}

/// Counts aloud, for everybody who is there, until `see` has seen enough and returns false.
pub(crate) fn serve(server: &mut Server, mut see: impl FnMut(Seen) -> bool) -> muse::Result<()> {
    let (mut number, mut running) = (0, true);
    while running {
        server.tick_within(Duration::from_millis(50), |_, event| {
            let seen = match event {
                Joined(_) => Seen::Joined,
                ServerEvent::Interrupted(_) => Seen::Interrupted,
                ServerEvent::Resumed(_) => Seen::Resumed,
                Left(..) => Seen::Left,
                _ => return Ok(()),
            };
            running &= see(seen);
            Ok(())
        })?;
        server.broadcast(&Count { number })?;
        number += 1;
    }
    Ok(())
}

/// Listens to the count and leaves the network alone once, for as long as `tunnel` takes. Returns the numbers that it heard.
pub(crate) fn listen(
    client: &mut Client,
    mut show: impl FnMut(u32),
    tunnel: impl FnOnce(),
) -> muse::Result<Vec<u32>> {
    let (mut heard, mut tunnel) = (Vec::new(), Some(tunnel));
    while heard.len() < 2 * HEARD_BEFORE || tunnel.is_some() {
        client.tick(|_, event| {
            if let ClientEvent::Received(message) = event
                && let Some(Count { number }) = message.read()
            {
                show(number);
                heard.push(number);
            }
            Ok(())
        })?;
        if heard.len() >= HEARD_BEFORE
            && let Some(tunnel) = tunnel.take()
        {
            tunnel();
        }
        client.wait(Duration::from_millis(50))?;
    }
    Ok(heard)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => {
            let mut server = Server::listen("[::]:7000", protocol())?;
            println!("listen with {}", server.address());
            serve(&mut server, |seen| {
                println!("client: {seen:?}");
                true
            })?;
        }
        ["listen", address] => {
            let mut client = Client::connect(address, protocol())?;
            let tunnel = || {
                println!("into the tunnel, for three seconds");
                std::thread::sleep(std::time::Duration::from_secs(3));
                println!("out of the tunnel");
            };
            let heard = listen(&mut client, |number| println!("{number}"), tunnel)?;
            let whole = heard.windows(2).all(|pair| pair[1] == pair[0] + 1);
            let verdict = if whole {
                "none missing, none twice"
            } else {
                "not in order"
            };
            println!("{} numbers, {verdict}", heard.len());
        }
        _ => return Err(USAGE.into()),
    }
    Ok(())
}

/// Numbers to hear before the tunnel; as many follow after it.
const HEARD_BEFORE: usize = 20;
