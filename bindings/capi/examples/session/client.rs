//! The script as a client in Rust plays it; the other languages print the same lines.

use std::error::Error;
use std::time::{Duration, Instant};

use muse::drivers::ClientDriver;
use muse::transport::{CloseReason, Connect, Event, Outcome, SendOptions, ServerPublicKey};

use crate::rules::{
    AFTER, Arrivals, BULK, CUT, HELLO, NUMBERS, ORDERED, REPORT, TEXT, bulk, config, digest,
    number_of, numbered,
};

/// A connection, however it is made.
pub(crate) trait AnyConnection: Sized {
    fn send(&mut self, channel: u8, message: &[u8]) -> Result<(), Box<dyn Error>>;
    fn send_for_receipt(&mut self, channel: u8, message: &[u8]) -> Result<(), Box<dyn Error>>;
    fn finish(&mut self, code: u16, text: &str);
    /// Waits a little and notes what came.
    fn turn(&mut self, seen: &mut Seen) -> Result<(), Box<dyn Error>>;
}

impl AnyConnection for ClientDriver {
    fn send(&mut self, channel: u8, message: &[u8]) -> Result<(), Box<dyn Error>> {
        Self::send(self, channel, message)?;
        Ok(())
    }

    fn send_for_receipt(&mut self, channel: u8, message: &[u8]) -> Result<(), Box<dyn Error>> {
        self.send_with(channel, message, &SendOptions::default().receipt())?;
        Ok(())
    }

    fn finish(&mut self, code: u16, text: &str) {
        Self::finish(self, code, text);
    }

    fn turn(&mut self, seen: &mut Seen) -> Result<(), Box<dyn Error>> {
        self.wait(Duration::from_millis(2))?;
        self.tick(|_, event| seen.take(event))?;
        Ok(())
    }
}

pub(crate) fn play_rust(address: &str, key: &str) -> Result<(), Box<dyn Error>> {
    let key: ServerPublicKey = key.parse()?;
    play(|hello| {
        let connect = Connect::pinned(key).hello(hello);
        Ok(ClientDriver::connect(address, config(&[])?, connect)?)
    })
}

/// Plays the script over what `connect` makes, given what to say first.
pub(crate) fn play<C: AnyConnection>(
    mut connect: impl FnMut(&[u8]) -> Result<C, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut player = Player::connect(connect(b"first")?)?;
    player.numbers()?;
    player.large()?;
    player.cut()?;
    player.connection.finish(7, "bye");
    player.until("closed", |seen| seen.closed.is_some())?;
    println!(
        "closed by us: {}",
        player.seen.closed == Some(CloseReason::ByUs)
    );

    let mut player = Player::connect(connect(b"second")?)?;
    player.connection.send(ORDERED, &[HELLO])?;
    player.until("hello", |seen| !seen.texts.is_empty())?;
    player.print_texts();
    player.connection.send_for_receipt(ORDERED, &numbered(0))?;
    player.until("receipt", |seen| seen.receipt.is_some())?;
    println!(
        "receipt: delivered: {}",
        player.seen.receipt == Some(Outcome::Delivered)
    );
    println!("done");
    Ok(())
}

struct Player<C> {
    connection: C,
    seen: Seen,
}

/// Everything that the client has been told so far.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) connected: bool,
    pub(crate) interrupted: bool,
    pub(crate) resumed: bool,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) receipt: Option<Outcome>,
    echoes: Arrivals,
    after: Vec<u32>,
    texts: Vec<String>,
    large: Option<String>,
    pub(crate) failure: Option<String>,
}

impl<C: AnyConnection> Player<C> {
    fn connect(connection: C) -> Result<Self, Box<dyn Error>> {
        let seen = Seen::default();
        let mut player = Self { connection, seen };
        player.until("connected", |seen| seen.connected)?;
        println!("connected");
        Ok(player)
    }

    /// Goes on until `done`.
    fn until(&mut self, what: &str, done: impl Fn(&Seen) -> bool) -> Result<(), Box<dyn Error>> {
        let began = Instant::now();
        while !done(&self.seen) {
            self.turn()?;
            if began.elapsed() > PATIENCE {
                return Err(format!("waited too long: {what}").into());
            }
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        self.connection.turn(&mut self.seen)?;
        match self.seen.failure.take() {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    fn numbers(&mut self) -> Result<(), Box<dyn Error>> {
        for number in 0..NUMBERS {
            for channel in 0..=5 {
                self.connection.send(channel, &numbered(number))?;
            }
            self.turn()?;
        }
        self.until("echoes", |seen| seen.echoes.is_complete(true))?;
        self.connection.send(ORDERED, &[REPORT])?;
        self.until("report", |seen| seen.texts.len() == 6)?;
        self.print_texts();
        for line in self.seen.echoes.lines(true) {
            println!("echo: {line}");
        }
        Ok(())
    }

    fn large(&mut self) -> Result<(), Box<dyn Error>> {
        self.connection.send(ORDERED, &bulk(1))?;
        self.until("large", |seen| seen.large.is_some())?;
        self.print_texts();
        println!("large: {}", self.seen.large.take().unwrap_or_default());
        Ok(())
    }

    fn cut(&mut self) -> Result<(), Box<dyn Error>> {
        self.connection.send(ORDERED, &[CUT])?;
        self.until("interrupted", |seen| seen.interrupted)?;
        println!("interrupted");
        for number in NUMBERS..NUMBERS + AFTER {
            self.connection.send(ORDERED, &numbered(number))?;
        }
        self.until("resumed", |seen| seen.resumed)?;
        println!("resumed");
        self.until("after", |seen| seen.after.len() == AFTER as usize)?;
        let in_order = self.seen.after.iter().copied().eq(NUMBERS..NUMBERS + AFTER);
        println!("after the cut: {AFTER} in order: {in_order}");
        Ok(())
    }

    fn print_texts(&mut self) {
        for text in self.seen.texts.drain(..) {
            println!("server: {text}");
        }
    }
}

impl Seen {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Connected { .. } => self.connected = true,
            Event::Interrupted { .. } => self.interrupted = true,
            Event::Resumed { .. } => self.resumed = self.interrupted,
            Event::Closed { reason, .. } => self.closed = Some(reason),
            Event::Receipt { receipt, .. } => self.receipt = Some(receipt.outcome),
            Event::Message {
                channel, payload, ..
            } => self.message(channel, payload),
            other => self.failure = Some(format!("{other:?}")),
        }
    }

    pub(crate) fn message(&mut self, channel: u8, payload: &[u8]) {
        match payload {
            [TEXT, text @ ..] => self.texts.push(String::from_utf8_lossy(text).into_owned()),
            [BULK, ..] => {
                let (len, digest) = (payload.len(), digest(payload));
                self.large = Some(format!("{len} bytes, digest {digest:016x}"));
            }
            payload => match number_of(payload) {
                Some(number) if number >= NUMBERS => self.after.push(number),
                Some(number) => self.echoes.add(channel, number),
                None => self.failure = Some("a message that nobody sent".to_owned()),
            },
        }
    }
}

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
