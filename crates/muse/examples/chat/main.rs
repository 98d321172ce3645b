//! Chat: several clients, names, and each of the six ways to deliver where it makes sense.

#[path = "../common/place.rs"]
mod place;
mod protocol;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use muse::prelude::*;
use protocol::{HUM, Join, Line, SAY, STARTS};

const USAGE: &str = "usage: chat server [ADDRESS]
       chat client NAME [ADDRESS [KEY]]
then type; /topic, /like, /wave, /typing and /hum followed by words do what they say
example: cargo run -p muse-net --example chat -- client Ada";

/// Who is there, on which channel the latest message came, and what is to be passed on.
#[derive(Default)]
struct Room {
    names: BTreeMap<ConnectionId, String>,
    channel: u8,
    lines: Vec<(u8, Line)>,
}

pub(crate) fn config() -> Result<Config, Box<dyn Error>> {
    Ok(protocol::channels()?.shared(&handlers()?.registry().describe()))
}

fn handlers() -> Result<Dispatcher<Room>, Box<dyn Error>> {
    let mut handlers: Dispatcher<Room> = Dispatcher::new();
    handlers.on(|room: &mut Room, from, Join { name }| {
        room.lines.push((SAY, Line::new(&name, "joins")));
        room.names.insert(from, name);
    })?;
    handlers.on(|room: &mut Room, from, Line { text, .. }| {
        let who = room.names.get(&from).map_or("nobody", String::as_str);
        room.lines.push((room.channel, Line::new(who, &text)));
    })?;
    Ok(handlers)
}

pub(crate) fn serve(server: &mut Server, running: &AtomicBool) -> Result<(), Box<dyn Error>> {
    let (mut handlers, mut room) = (handlers()?, Room::default());
    while running.load(Ordering::Relaxed) {
        server.tick(|_, event| match event {
            Event::Message {
                connection,
                channel,
                payload,
            } => {
                room.channel = channel;
                place::complain(handlers.dispatch(&mut room, connection, payload));
            }
            Event::Closed { connection, .. } => {
                let who = room.names.remove(&connection);
                room.lines
                    .extend(who.map(|who| (SAY, Line::new(&who, "leaves"))));
            }
            _ => {}
        })?;
        for (channel, line) in room.lines.drain(..) {
            server.broadcast_message(channel, &line)?;
        }
        server.wait(Duration::from_millis(50))?;
    }
    Ok(())
}

/// Says what comes from `lines` and shows what others say; ends when the lines do and all were delivered.
pub(crate) fn talk(
    client: &mut Client,
    name: &str,
    lines: &Receiver<String>,
    mut show: impl FnMut(String),
) -> Result<(), Box<dyn Error>> {
    let mut handlers: Dispatcher<Vec<String>> = Dispatcher::new();
    handlers.on(|heard: &mut Vec<String>, _, Line { who, text }| {
        heard.push(format!("{who}: {text}"))
    })?;
    let (mut heard, mut end) = (Vec::new(), None);
    while end.is_none() {
        client.tick(|client, event| {
            end = end.take().or_else(|| place::ended(&event));
            match event {
                Event::Connected { .. } => {
                    place::complain(client.send_message(SAY, &Join { name: name.into() }))
                }
                Event::Message {
                    connection,
                    payload,
                    ..
                } => {
                    place::complain(handlers.dispatch(&mut heard, connection, payload));
                }
                _ => {}
            }
        })?;
        heard.drain(..).for_each(&mut show);
        if client.is_connected() {
            match lines.try_recv() {
                Ok(line) => place::complain(say(client, &line)),
                Err(TryRecvError::Disconnected) => client.finish(0, "bye"),
                Err(TryRecvError::Empty) => {}
            }
        }
        client.wait(Duration::from_millis(20))?;
    }
    end.unwrap_or(Ok(())).map_err(Into::into)
}

fn say(client: &mut Client, line: &str) -> Result<(), muse::MessageError> {
    let kind = STARTS
        .iter()
        .rposition(|start| line.starts_with(start))
        .unwrap_or_default() as u8;
    let mut send = |text: &str| client.send_message(kind, &Line::new("", text)).map(drop);
    match line.strip_prefix(HUM) {
        Some(tune) => tune
            .split_whitespace()
            .try_for_each(|note| send(&format!("{HUM}{note}"))),
        None => send(line),
    }
}

pub(crate) fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match (words.next().as_deref(), words.next()) {
        (Some("server"), address) => {
            let mut server = place::open(address, config()?)?;
            serve(&mut server, &AtomicBool::new(true))
        }
        (Some("client"), Some(name)) => {
            let mut client = place::connect(&mut words, config()?)?;
            talk(&mut client, &name, &place::typed_lines(), |line| {
                println!("{line}")
            })
        }
        _ => Err(USAGE.into()),
    }
}

fn main() -> ExitCode {
    place::report(run(std::env::args().skip(1)))
}
