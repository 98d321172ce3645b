//! A life with the master and the connection it is lived over: what every player, bot and game server does each turn.

use std::ops::{Deref, DerefMut};

use muse_master_client::messages::{FromMaster, ToServer, decode, encode};
use muse_master_client::{PlayerAction, PlayerLink, ServerAction, ServerLink};
use muse_wire::Instant;
use serde::de::DeserializeOwned;

use super::socket::{Arrival, Socket, Who};

/// What a player's life and a game server's have in common.
pub(crate) trait Living {
    /// What the master says.
    type Heard: DeserializeOwned;
    /// What the life asks for.
    type Asked;

    fn start(&mut self, now: Instant);
    fn handle_connected(&mut self, now: Instant);
    fn handle_lost(&mut self, now: Instant);
    fn handle_message(&mut self, now: Instant, message: Self::Heard);
    fn handle_timeout(&mut self, now: Instant);
    fn poll_timeout(&self) -> Option<Instant>;
    fn poll_wish(&mut self) -> Option<Wish<Self::Asked>>;
}

/// What is to be done.
pub(crate) enum Wish<A> {
    Connect,
    Disconnect,
    /// As JSON.
    Send(String),
    /// Not with the connection to the master.
    Other(A),
}

/// The life, which is reached through it, and the connection.
pub(crate) struct Link<L> {
    socket: Socket,
    life: L,
    /// Times that the master has been lost or not reached since it was there.
    losses: u32,
}

impl<L: Living> Link<L> {
    /// Begins to connect to the master at `authority`, host and port.
    pub(crate) fn new(authority: &str, who: Who, mut life: L) -> anyhow::Result<Self> {
        life.start(Instant::ZERO);
        let socket = Socket::new(authority, who)?;
        Ok(Self {
            socket,
            life,
            losses: 0,
        })
    }

    /// Takes in what has arrived and what is due. True if the master has said something.
    pub(crate) fn listen(&mut self, now: Instant) -> bool {
        let mut heard = false;
        while let Some(arrival) = self.socket.poll() {
            match arrival {
                Arrival::Connected => {
                    if std::mem::take(&mut self.losses) > 0 {
                        tracing::info!("the master is there again");
                    }
                    self.life.handle_connected(now);
                }
                Arrival::Lost(why) => {
                    self.losses = self.losses.saturating_add(1);
                    // It is tried again and again: the first time is news, and then ever more seldom.
                    if self.losses.is_power_of_two() {
                        tracing::warn!(attempts = self.losses, "the master is lost: {why}");
                    }
                    self.life.handle_lost(now);
                }
                Arrival::Text(text) => match decode(&text) {
                    Ok(message) => {
                        heard = true;
                        self.life.handle_message(now, message);
                    }
                    Err(error) => tracing::warn!("{error}"),
                },
            }
        }
        if self.life.poll_timeout().is_some_and(|at| at <= now) {
            self.life.handle_timeout(now);
        }
        heard
    }

    /// Does what the life wants of its connection, up to the next thing that it wants of somebody else.
    pub(crate) fn act(&mut self) -> Option<L::Asked> {
        while let Some(wish) = self.life.poll_wish() {
            match wish {
                Wish::Connect => self.socket.connect(),
                Wish::Disconnect => self.socket.disconnect(),
                Wish::Send(text) => self.socket.send(text),
                Wish::Other(asked) => return Some(asked),
            }
        }
        None
    }
}

impl<L> Deref for Link<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.life
    }
}

impl<L> DerefMut for Link<L> {
    fn deref_mut(&mut self) -> &mut L {
        &mut self.life
    }
}

macro_rules! living {
    ($life:ty, $heard:ty, $action:ident) => {
        impl Living for $life {
            type Heard = $heard;
            type Asked = $action;

            fn start(&mut self, now: Instant) {
                self.start(now);
            }

            fn handle_connected(&mut self, now: Instant) {
                self.handle_connected(now);
            }

            fn handle_lost(&mut self, now: Instant) {
                self.handle_lost(now);
            }

            fn handle_message(&mut self, now: Instant, message: $heard) {
                self.handle_message(now, message);
            }

            fn handle_timeout(&mut self, now: Instant) {
                self.handle_timeout(now);
            }

            fn poll_timeout(&self) -> Option<Instant> {
                self.poll_timeout()
            }

            fn poll_wish(&mut self) -> Option<Wish<$action>> {
                Some(match self.poll_action()? {
                    $action::Connect => Wish::Connect,
                    $action::Disconnect => Wish::Disconnect,
                    $action::Send(message) => Wish::Send(encode(&message)),
                    other => Wish::Other(other),
                })
            }
        }
    };
}

living!(PlayerLink, FromMaster, PlayerAction);
living!(ServerLink, ToServer, ServerAction);
