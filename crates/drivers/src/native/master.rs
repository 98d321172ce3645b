//! The connection to a master: HTTP and one WebSocket, with TLS or without, on a thread of its own and polled by a game loop.
//!
//! A [`MasterLink`] carries the texts of a [`MasterMachine`], which is a player's link or a game server's. [`MasterSocket`] is the thread
//! below it.

mod address;
mod session;
mod socket;
mod stream;

use std::io;
use std::ops::{Deref, DerefMut};

use muse_master_client::{MasterMachine, MasterStep};
use muse_wire::Instant;

pub use address::MasterAddress;
pub use session::MasterCredentials;
pub use socket::{
    MasterAnswer, MasterArrival, MasterMethod, MasterRefusal, MasterRequest, MasterSocket,
    MasterSocketConfig,
};

/// A machine that talks to a master, and the socket that carries its texts. The machine is reached through it.
///
/// Each turn of the loop: [`receive`](Self::receive), then whatever the machine's events ask for, then [`poll_command`](Self::poll_command) until
/// there is none.
#[derive(Debug)]
pub struct MasterLink<M> {
    socket: MasterSocket,
    machine: M,
    /// Times in a row that the master was lost or not reached.
    losses: u32,
    loss: Option<String>,
    answers: Vec<MasterAnswer>,
}

impl<M: MasterMachine> MasterLink<M> {
    /// Starts the thread and begins to connect.
    pub fn new(config: MasterSocketConfig, mut machine: M, now: Instant) -> io::Result<Self> {
        let socket = MasterSocket::new(config)?;
        machine.start(now);
        Ok(Self {
            socket,
            machine,
            losses: 0,
            loss: None,
            answers: Vec::new(),
        })
    }

    /// Gives the machine what has arrived and what is due.
    pub fn receive(&mut self, now: Instant) {
        while let Some(arrival) = self.socket.poll() {
            match arrival {
                MasterArrival::Connected => {
                    self.loss = None;
                    if std::mem::take(&mut self.losses) > 0 {
                        tracing::info!("the master is back");
                    }
                    self.machine.handle_connected(now);
                }
                MasterArrival::Lost(reason) => {
                    self.losses = self.losses.saturating_add(1);
                    // It is tried again and again: the first time is news, and then less and less often.
                    if self.losses.is_power_of_two() {
                        tracing::warn!(attempts = self.losses, "the master is lost: {reason}");
                    }
                    self.loss = Some(reason);
                    self.machine.handle_lost(now);
                }
                MasterArrival::Text(text) => {
                    // A newer master may know messages that this program does not.
                    if let Err(error) = self.machine.handle_text(now, &text) {
                        tracing::warn!("{error}");
                    }
                }
                MasterArrival::Answer(answer) => self.answers.push(answer),
            }
        }
        if self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
    }

    /// Does what the machine wants of its connection, up to the next thing that it wants of the game.
    pub fn poll_command(&mut self, now: Instant) -> Option<M::Command> {
        while let Some(step) = self.machine.poll_step() {
            match step {
                MasterStep::Connect => self.socket.connect(),
                MasterStep::Disconnect => self.socket.disconnect(),
                MasterStep::Send(text) => {
                    if !self.socket.send(text) {
                        // Nothing has left for so long that the queue is full.
                        self.socket.disconnect();
                        self.machine.handle_lost(now);
                    }
                }
                MasterStep::Command(command) => return Some(command),
            }
        }
        None
    }

    /// Asks something over HTTP, as the account that the link is signed in with. Returns false if too much has been asked already.
    pub fn request(&mut self, number: u64, request: MasterRequest) -> bool {
        self.socket.request(number, request)
    }

    /// Returns the next answer to a [`request`](Self::request).
    pub fn poll_answer(&mut self) -> Option<MasterAnswer> {
        (!self.answers.is_empty()).then(|| self.answers.remove(0))
    }

    /// Returns why the master was lost or not reached; none while it is there.
    pub fn loss(&self) -> Option<&str> {
        self.loss.as_deref()
    }
}

impl<M> Deref for MasterLink<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.machine
    }
}

impl<M> DerefMut for MasterLink<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.machine
    }
}
