//! The server of the session: answers what the script asks for.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use muse::Duration;
use muse::drivers::{EndpointDriver, danger_key_log_file, new_key};
use muse::transport::{AdmissionLimits, ConnectionId, Delivery, Event, SendError, ServerOptions};

use crate::proxy::{Proxy, Weather};
use crate::rules::{
    Arrivals, BULK, CUT, HELLO, NUMBERS, ORDERED, REPORT, TEXT, bulk, config, digest, number_of,
};

/// Serves behind a bad network until standard input ends; with two paths, records a capture and the keys to read it. The channels of the session stand
/// behind those in `front`, on which nothing is answered. `extend` may add links of other kinds to the server, and says where they are.
pub(crate) fn serve(
    front: &[Delivery],
    record: Option<(&str, &str)>,
    extend: impl FnOnce(EndpointDriver) -> io::Result<(EndpointDriver, String)>,
) -> Result<(), Box<dyn Error>> {
    let key = new_key()?;
    let public = key.public();
    let options = ServerOptions::new(key).admission(AdmissionLimits::default());
    let server = EndpointDriver::bind("127.0.0.1:0", config(front)?, options)?;
    let (mut server, more) = extend(server)?;
    if let Some((_, keys)) = record {
        let log = danger_key_log_file(keys)?;
        server.endpoint_mut().danger_key_log(log);
    }
    let weather = Arc::new(Weather::default());
    let capture = record.map(|(capture, _)| capture);
    let proxy = Proxy::start(server.local_addr()?, Arc::clone(&weather), capture)?;
    println!("ready {} {public} {more}", proxy.address());
    let running = Arc::new(AtomicBool::new(true));
    let stop = Arc::clone(&running);
    std::thread::spawn(move || {
        // The end of the input is the signal; what comes before means nothing.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.store(false, Ordering::Relaxed);
    });
    let mut desk = Desk {
        front: front.len() as u8,
        weather,
        guests: BTreeMap::new(),
    };
    while running.load(Ordering::Relaxed) {
        server.wait(Duration::from_millis(20))?;
        let mut failure = None;
        server.tick(|server, event| {
            if let Err(error) = desk.handle(server, &event) {
                failure = Some(error);
            }
        })?;
        desk.answer(&mut server)?;
        if let Some(error) = failure {
            return Err(error.into());
        }
    }
    Ok(proxy.stop()?)
}

struct Desk {
    /// Channels in front of those of the session.
    front: u8,
    weather: Arc<Weather>,
    guests: BTreeMap<ConnectionId, Guest>,
}

#[derive(Default)]
struct Guest {
    hello: String,
    arrivals: Arrivals,
    /// A report was asked for, which waits for what still has to come.
    owes_report: bool,
}

impl Desk {
    fn handle(&mut self, server: &mut EndpointDriver, event: &Event<'_>) -> Result<(), SendError> {
        match event {
            Event::Asking {
                connection, hello, ..
            } => {
                // A client that has left meanwhile needs no decision.
                let _ = match *hello {
                    b"banned" => server.deny(*connection, 7, "banned until Monday"),
                    _ => server.admit(*connection),
                };
            }
            Event::Connected {
                connection, hello, ..
            } => {
                let hello = String::from_utf8_lossy(hello).into_owned();
                let guest = Guest {
                    hello,
                    ..Guest::default()
                };
                self.guests.insert(*connection, guest);
            }
            Event::Closed { connection, .. } => drop(self.guests.remove(connection)),
            Event::Message {
                connection,
                channel,
                payload,
            } if *channel >= self.front => {
                return self.message(server, *connection, *channel - self.front, payload);
            }
            _ => {}
        }
        Ok(())
    }

    fn message(
        &mut self,
        server: &mut EndpointDriver,
        connection: ConnectionId,
        channel: u8,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let Some(guest) = self.guests.get_mut(&connection) else {
            return Ok(());
        };
        match payload {
            [REPORT] => guest.owes_report = true,
            [HELLO] => {
                let text = format!("hello {}", guest.hello);
                say(server, connection, self.front, &text)?;
            }
            [CUT] => self.weather.cut(),
            [BULK, ..] => {
                let (len, digest) = (payload.len(), digest(payload));
                let text = format!("large: {len} bytes, digest {digest:016x}");
                say(server, connection, self.front, &text)?;
                server.send(connection, self.front + ORDERED, &bulk(2))?;
            }
            payload => {
                if let Some(number) = number_of(payload) {
                    if number < NUMBERS {
                        guest.arrivals.add(channel, number);
                    }
                    server.send(connection, self.front + channel, payload)?;
                }
            }
        }
        Ok(())
    }

    /// Reports to those who asked, once what has to come has come.
    fn answer(&mut self, server: &mut EndpointDriver) -> Result<(), SendError> {
        for (connection, guest) in &mut self.guests {
            if guest.owes_report && guest.arrivals.is_complete(false) {
                guest.owes_report = false;
                for line in guest.arrivals.lines(false) {
                    say(server, *connection, self.front, &line)?;
                }
            }
        }
        Ok(())
    }
}

fn say(
    server: &mut EndpointDriver,
    connection: ConnectionId,
    front: u8,
    text: &str,
) -> Result<(), SendError> {
    let message = [&[TEXT], text.as_bytes()].concat();
    server.send(connection, front + ORDERED, &message).map(drop)
}
