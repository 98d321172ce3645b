//! Chat: several clients, names, and each of the six ways to deliver where it makes sense.

#[path = "common/place.rs"]
mod place;

use std::collections::BTreeMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};

use muse::prelude::*;

const USAGE: &str = "usage: chat server [ADDRESS]
       chat client NAME [ADDRESS [KEY]]
then type; /topic, /like, /wave, /typing and /hum followed by words do what they say
example: cargo run -p muse-net --example chat -- client Ada";

/// The kinds of things said, with their channels' numbers: how they start, and how they travel.
const SAY: u8 = 0;
const KINDS: [(&str, Delivery); 5] = [
    ("", Delivery::ReliableOrdered), // what people say: everything, in order
    ("/topic ", Delivery::ReliableSequenced), // only the last topic matters, but it must arrive
    ("/like ", Delivery::ReliableUnordered), // must arrive, and waits for nothing
    ("/typing ", Delivery::Sequenced), // worthless when late
    ("/wave ", Delivery::Unreliable), // nice if it arrives
];
/// A hummed tune: in order, and of ten notes at least eight arrive.
const HUM: u8 = KINDS.len() as u8;
const HUM_START: &str = "/hum ";

/// What a client calls itself: the first thing it says.
#[derive(Message)]
#[message(id = 1)]
struct Join {
    #[field(max = 40)]
    name: String,
}

/// Something said. The server fills in who said it: what clients claim is not believed.
#[derive(Message)]
#[message(id = 2)]
struct Line {
    #[field(max = 40)]
    who: String,
    #[field(max = 500)]
    text: String,
}

/// Who is there, and what is to be passed on, by channel.
#[derive(Default)]
struct Room {
    names: BTreeMap<ConnectionId, String>,
    channel: u8,
    lines: Vec<(u8, Line)>,
}

pub(crate) fn config() -> Result<Config, Box<dyn Error>> {
    let kinds = KINDS
        .iter()
        .fold(Config::new(0x6368_6174), |config, (_, delivery)| {
            config.channel(ChannelConfig::new(*delivery))
        });
    let hum = ChannelConfig::new(Delivery::partially_reliable(10, 80)?);
    Ok(kinds.channel(hum).schema(handlers()?.registry().hash()))
}

fn handlers() -> Result<Dispatcher<Room>, Box<dyn Error>> {
    let mut handlers: Dispatcher<Room> = Dispatcher::new();
    handlers.on(|room: &mut Room, from, Join { name }| {
        room.lines.push((
            SAY,
            Line {
                who: name.clone(),
                text: "joins".into(),
            },
        ));
        room.names.insert(from, name);
    })?;
    handlers.on(|room: &mut Room, from, Line { text, .. }| {
        if let Some(who) = room.names.get(&from).cloned() {
            room.lines.push((room.channel, Line { who, text }));
        }
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
                room.lines.extend(who.map(|who| {
                    (
                        SAY,
                        Line {
                            who,
                            text: "leaves".into(),
                        },
                    )
                }));
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

/// Says what comes from `lines` and shows what others say, until there are no more lines and all were delivered.
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
        match if client.is_connected() {
            lines.try_recv()
        } else {
            Err(TryRecvError::Empty)
        } {
            Ok(line) => say(client, &line)?,
            Err(TryRecvError::Disconnected) => client.finish(0, "bye"),
            Err(TryRecvError::Empty) => {}
        }
        client.wait(Duration::from_millis(20))?;
    }
    end.unwrap_or(Ok(())).map_err(Into::into)
}

fn say(client: &mut Client, line: &str) -> Result<(), muse::MessageError> {
    let said = |text: String| Line {
        who: String::new(),
        text,
    };
    if let Some(tune) = line.strip_prefix(HUM_START) {
        let mut notes = tune
            .split_whitespace()
            .map(|note| said(format!("{HUM_START}{note}")));
        return notes.try_for_each(|note| client.send_message(HUM, &note).map(drop));
    }
    let kind = KINDS
        .iter()
        .rposition(|(start, _)| line.starts_with(start))
        .unwrap_or_default();
    client
        .send_message(kind as u8, &said(line.into()))
        .map(drop)
}

fn run(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    match (words.next().as_deref(), words.next()) {
        (Some("server"), address) => serve(
            &mut place::open(address, config()?)?,
            &AtomicBool::new(true),
        ),
        (Some("client"), Some(name)) => {
            let address = words.next().unwrap_or_else(|| place::SERVER.into());
            let how = Connect::pinned(place::public_key(words.next())?);
            let mut client = Client::connect(address, config()?, how)?;
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
