//! `muse master-player`: a player without a game, who lives with a master as a real one would and prints what happens, one line each.

use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

use anyhow::Context;
use clap::Args;
use muse_drivers::Client;
use muse_master_client::messages::FromMaster;
use muse_master_client::{PlayerAction, PlayerEvent, PlayerLink, PlayerLinkConfig, Preferences};
use muse_transport::token::ConnectToken;
use muse_transport::{Connect, Event as GameEvent};
use muse_wire::Instant;

use super::game::config;
use super::link::Link;
use super::socket::Who;
use crate::interrupt::Interrupt;

/// Which master, and who plays.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Host and port of the master, or several with commas between.
    #[arg(value_name = "HOST:PORT")]
    master: String,
    /// Key of the device, at least 16 characters.
    #[arg(long, value_name = "KEY")]
    device_key: String,
    /// Asks for a match when online, and again after each.
    #[arg(long)]
    play: bool,
}

/// Lives until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let seed = arguments.device_key.bytes().fold(1, |seed: u64, byte| {
        seed.wrapping_mul(31).wrapping_add(u64::from(byte))
    });
    let who = Who::Guest(arguments.device_key.clone());
    let life = PlayerLink::new(PlayerLinkConfig::default(), seed);
    let mut player = Player {
        link: Link::new(&arguments.master, who, life)?,
        game: None,
        started: Clock::now(),
        play: arguments.play,
    };
    while !interrupt.is_raised() {
        player.step()?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Player {
    link: Link<PlayerLink>,
    game: Option<Client>,
    started: Clock,
    play: bool,
}

impl Player {
    fn now(&self) -> Instant {
        let elapsed = self.started.elapsed().as_micros();
        Instant::from_micros(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    fn step(&mut self) -> anyhow::Result<()> {
        let now = self.now();
        self.link.listen(now);
        self.tick_game(now)?;
        while let Some(event) = self.link.poll_event() {
            self.show(&event);
        }
        while let Some(action) = self.link.act() {
            self.act(action)?;
        }
        match &mut self.game {
            Some(game) => {
                game.wait(STEP)?;
            }
            None => std::thread::sleep(STEP),
        }
        Ok(())
    }

    fn act(&mut self, action: PlayerAction) -> anyhow::Result<()> {
        match action {
            PlayerAction::JoinGame(seat) => {
                let token = ConnectToken::from_text(&seat.token)?;
                let client =
                    Client::connect(seat.address.as_str(), config(), Connect::token(token));
                self.game = Some(client.context("cannot connect to the game server")?);
            }
            PlayerAction::LeaveGame => {
                if let Some(mut game) = self.game.take() {
                    game.close(0, "leaves");
                    game.flush()?;
                }
            }
            other => tracing::warn!(?other, "not known"),
        }
        Ok(())
    }

    fn tick_game(&mut self, now: Instant) -> anyhow::Result<()> {
        let Some(game) = &mut self.game else {
            return Ok(());
        };
        let (mut connected, mut lost) = (false, false);
        game.tick(|_, event| match event {
            GameEvent::Connected { .. } => connected = true,
            GameEvent::Closed { .. } | GameEvent::Refused { .. } | GameEvent::Unanswered { .. } => {
                lost = true;
            }
            _ => {}
        })?;
        if connected {
            self.link.handle_game_connected();
        }
        if lost {
            self.game = None;
            self.link.handle_game_lost(now);
        }
        Ok(())
    }

    fn show(&mut self, event: &PlayerEvent) {
        match event {
            PlayerEvent::Online(account) => {
                println!("online {account}");
                self.play_again();
            }
            PlayerEvent::Offline(_) => println!("offline"),
            PlayerEvent::Full(_) => println!("full"),
            PlayerEvent::Queue(state) => println!("queue {}", state.ticket),
            PlayerEvent::LeftQueue => println!("left"),
            PlayerEvent::MatchFound(id) => println!("found {id}"),
            PlayerEvent::Playing(id) => println!("playing {id}"),
            PlayerEvent::GameLost(id) => println!("lost {id}"),
            PlayerEvent::Back(id, outcome) => {
                println!(
                    "back {id} {}",
                    outcome.map_or("unknown".to_owned(), |o| format!("{o:?}"))
                );
                self.play_again();
            }
            PlayerEvent::Message(FromMaster::Refused { code, .. }) => println!("refused {code}"),
            PlayerEvent::Message(FromMaster::Announcement { text }) => println!("announced {text}"),
            PlayerEvent::Message(FromMaster::Closing { .. }) => println!("stopped"),
            PlayerEvent::Message(FromMaster::Presence { account, online }) => {
                println!("presence {account} {online}");
            }
            PlayerEvent::Message(FromMaster::Friend { account, accepted }) => {
                println!("friend {account} {accepted}");
            }
            PlayerEvent::Message(FromMaster::Invitation { from, room }) => {
                println!("invited {from} {room}");
            }
            other => tracing::debug!(?other, "heard"),
        }
    }

    fn play_again(&mut self) {
        if self.play && self.link.game().is_none() && !self.link.wants_match() {
            self.link.play(Preferences::default());
        }
    }
}

const STEP: Duration = Duration::from_millis(10);
