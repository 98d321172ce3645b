//! A chat: what is said arrives once and in order, and that somebody is typing may get lost.
//!
//!     chat serve                     prints an address
//!     chat talk NAME muse://...      in as many terminals as you like; type

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use muse::prelude::*;

#[derive(Message, Clone, Debug, PartialEq)]
#[message(id = 1)]
struct Say {
    #[field(max = 32)]
    who: String,
    #[field(max = 500)]
    text: String,
}

#[derive(Message, Clone, Debug, PartialEq)]
#[message(id = 2)]
struct Typing {
    #[field(max = 32)]
    who: String,
}

/// Both sides declare what they say, once. It is compared when a client connects.
fn protocol() -> Protocol {
    Protocol::new("chat/1")
        .message::<Say>(Delivery::ReliableOrdered)
        .message::<Typing>(Delivery::Unreliable)
}

fn serve(address: &str) -> muse::Result<()> {
    let mut server = Server::listen(address, protocol())?; // creates its key on the first run and keeps it
    println!("join with {}", server.address());
    loop {
        server.tick(|server, event| match event {
            Joined(client) => {
                let (who, text) = (name(server, client), "joins".into());
                server.broadcast(&Say { who, text })
            }
            Received(client, message) => {
                let who = name(server, client);
                if let Some(say) = message.read::<Say>() {
                    server.broadcast(&Say { who, ..say }) // nobody speaks for another
                } else {
                    server.broadcast(&Typing { who })
                }
            }
            Left(client, _reason) => {
                let (who, text) = (name(server, client), "leaves".into());
                server.broadcast(&Say { who, text })
            }
            _ => Ok(()),
        })?;
    }
}

/// The name with which a client connected.
fn name(server: &Server, client: ClientId) -> String {
    let hello = server.info(client).map(|info| info.hello.as_slice());
    String::from_utf8_lossy(hello.unwrap_or_default()).into_owned()
}

fn talk(name: &str, address: &str, lines: &Receiver<String>) -> muse::Result<()> {
    let mut client = Client::connect(Join::to(address).hello(name.as_bytes()), protocol())?;
    loop {
        let told = client.tick(|_, event| {
            if let ClientEvent::Received(message) = event {
                if let Some(Say { who, text }) = message.read() {
                    println!("{who}: {text}");
                } else if let Some(Typing { who }) = message.read() {
                    println!("{who} is typing");
                }
            }
            Ok(())
        });
        match told {
            Err(muse::Error::Closed(CloseReason::ByUs)) => return Ok(()), // all is said
            told => told?,
        }
        match lines.try_recv() {
            Ok(text) if text.is_empty() => {
                client.send_when_connected(&Typing { who: "".into() })?
            }
            Ok(text) => client.send_when_connected(&Say {
                who: "".into(),
                text,
            })?,
            Err(TryRecvError::Disconnected) if client.is_connected() => client.finish("bye"),
            Err(_) => {}
        }
        client.wait(Duration::from_millis(20))?;
    }
}

/// Reads what is typed, line by line, on a thread of its own so that the network need not wait.
fn typed_lines() -> Receiver<String> {
    let (typed, lines) = channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lines().map_while(Result::ok);
        input.try_for_each(|line| typed.send(line))
    });
    lines
}

fn main() -> muse::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve"] => serve("[::]:7000"),
        ["serve", address] => serve(address),
        ["talk", name, address] => talk(name, address, &typed_lines()),
        _ => {
            println!("usage: chat serve [ADDRESS] | chat talk NAME ADDRESS");
            Ok(())
        }
    }
}
