//! A player of a game behind a master, from the queue to the result and back.

use muse_netcode::Tick;
use muse_netcode::prediction::Game;
use muse_schema::State;
use muse_wire::Duration;

use super::player::UNANSWERED;
use super::{Master, MasterEvent};
use crate::session::ClientEvent;
use crate::{Error, GameClient, Protocol, Result};

/// A player of a [`Game`] behind a master. Call [`tick`](Self::tick) once a frame: it goes to the game server when the master has a seat, comes
/// back after a cut, and leaves when the match is over.
pub struct MatchClient<G: Game> {
    master: Master,
    game: Option<GameClient<G>>,
    protocol: Protocol,
    rules: G,
}

impl<G: Game + Clone> GameClient<G>
where
    G::Player: State,
{
    /// Plays wherever the master seats the player. Every match starts with a copy of these rules.
    pub fn seated(master: Master, rules: G) -> MatchClient<G> {
        Self::seated_with(master, Protocol::default(), rules)
    }

    /// As [`seated`](Self::seated), with messages and kinds of entities besides.
    pub fn seated_with(master: Master, protocol: Protocol, rules: G) -> MatchClient<G> {
        MatchClient {
            master,
            game: None,
            protocol,
            rules,
        }
    }
}

impl<G: Game + Clone> MatchClient<G>
where
    G::Player: State,
{
    /// Does what is due at the master and in the match, without waiting: inputs go out, snapshots come in. `handle` gets what happens at the
    /// master.
    pub fn tick(
        &mut self,
        input: impl FnMut(Tick) -> G::Input,
        mut handle: impl FnMut(&mut Self, MasterEvent) -> Result<()>,
    ) -> Result<()> {
        while let Some(event) = self.master.poll() {
            match &event {
                MasterEvent::Seated(seat) => {
                    let (protocol, rules) = (self.protocol.clone(), self.rules.clone());
                    match GameClient::connect_with(seat.join(), protocol, rules) {
                        Ok(game) => self.game = Some(game),
                        Err(error) => self.master.handle_game_lost(&error.to_string()),
                    }
                }
                MasterEvent::Unseated => self.game = None,
                _ => {}
            }
            handle(self, event)?;
        }
        self.play(input)
    }

    /// Sleeps until something arrives or is due in the match, for `frame` at most: for a program without a window that sets the pace.
    pub fn wait(&mut self, frame: impl Into<Duration>) -> Result<()> {
        match &mut self.game {
            Some(game) => game.wait(frame).map(drop),
            None => {
                std::thread::sleep(frame.into().into());
                Ok(())
            }
        }
    }

    /// Returns the match that is being played; none at the master.
    pub fn game(&mut self) -> Option<&mut GameClient<G>> {
        self.game.as_mut()
    }

    /// Returns the connection to the master: to queue, to leave, to chat.
    pub fn master(&mut self) -> &mut Master {
        &mut self.master
    }

    fn play(&mut self, input: impl FnMut(Tick) -> G::Input) -> Result<()> {
        let Some(game) = &mut self.game else {
            return Ok(());
        };
        let mut is_new = false;
        let ticked = game.tick_with(input, |_, event| {
            is_new |= matches!(event, ClientEvent::Connected);
            Ok(())
        });
        if is_new {
            self.master.handle_game_connected();
        }
        let reason = match ticked {
            Ok(()) => return Ok(()),
            Err(Error::Unanswered) => UNANSWERED.to_owned(),
            Err(error @ (Error::Refused(_) | Error::Closed(_))) => error.to_string(),
            Err(other) => return Err(other),
        };
        self.game = None;
        self.master.handle_game_lost(&reason);
        Ok(())
    }
}
