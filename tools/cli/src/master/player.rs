//! `muse master-player`: a player without a game, which stays connected to a master as a real one would and prints every event on a line of its own.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use muse::master::{
    Account, Master, MasterEvent, MatchEnding, MatchSeat, Preferences, QueueStatus,
};
use muse_drivers::ClientDriver;
use muse_transport::Event;

use super::game::config;
use crate::interrupt::Interrupt;

/// The master, and the player.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Address of the master, or several with commas between: `https://play.example.com`, or host and port.
    #[arg(value_name = "URL")]
    master: String,
    /// Key of the device, at least 16 characters.
    #[arg(long, value_name = "KEY")]
    device_key: String,
    /// Queue for a match when online, and again after each match.
    #[arg(long)]
    play: bool,
    /// PEM file of certificates to trust besides those of the system.
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

/// Plays until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let account = Account::guest_key(&arguments.device_key);
    let mut options = muse::master::MasterOptions::default();
    if let Some(file) = &arguments.ca {
        options = options.ca_file(file);
    }
    let mut player = Player {
        master: Master::connect_with(&arguments.master, account, options)?,
        game: None,
        play: arguments.play,
    };
    while !interrupt.is_raised() {
        player.step()?;
    }
    Ok(ExitCode::SUCCESS)
}

struct Player {
    master: Master,
    game: Option<ClientDriver>,
    play: bool,
}

impl Player {
    fn step(&mut self) -> anyhow::Result<()> {
        self.tick_game()?;
        while let Some(event) = self.master.poll() {
            match event {
                MasterEvent::Seated(seat) => self.join(&seat)?,
                MasterEvent::Unseated => {
                    if let Some(mut game) = self.game.take() {
                        game.close(0, "leaves");
                        game.flush()?;
                    }
                }
                other => self.show(&other)?,
            }
        }
        match &mut self.game {
            Some(game) => {
                game.wait(STEP)?;
            }
            None => std::thread::sleep(STEP),
        }
        Ok(())
    }

    fn join(&mut self, seat: &MatchSeat) -> anyhow::Result<()> {
        let client = ClientDriver::connect(seat.address.as_str(), config(), seat.connect());
        self.game = Some(client.context("cannot connect to the game server")?);
        Ok(())
    }

    fn tick_game(&mut self) -> anyhow::Result<()> {
        let Some(game) = &mut self.game else {
            return Ok(());
        };
        let (master, mut is_over) = (&mut self.master, false);
        game.tick(|_, event| {
            master.handle_game_event(&event);
            is_over |= matches!(
                event,
                Event::Closed { .. } | Event::Refused { .. } | Event::Unanswered { .. }
            );
        })?;
        if is_over {
            self.game = None;
        }
        Ok(())
    }

    fn show(&mut self, event: &MasterEvent) -> anyhow::Result<()> {
        match event {
            MasterEvent::Connected(account) => {
                println!("online {account}");
                return self.play_again();
            }
            MasterEvent::Lost { .. } => println!("offline"),
            MasterEvent::Full { .. } => println!("full"),
            MasterEvent::Queued(state) => println!("queue {}", state.ticket),
            MasterEvent::LeftQueue => println!("left"),
            MasterEvent::MatchFound(id) => println!("found {id}"),
            MasterEvent::Playing(id) => println!("playing {id}"),
            MasterEvent::SeatLost {
                match_id, reason, ..
            } => println!("lost {match_id} {reason}"),
            MasterEvent::Cancelled { match_id, .. } => {
                println!("back {match_id} {:?}", MatchEnding::Cancelled);
                return self.play_again();
            }
            MasterEvent::MatchOver(id, outcome) => {
                let outcome = outcome.map_or("unknown".to_owned(), |o| format!("{o:?}"));
                println!("back {id} {outcome}");
                return self.play_again();
            }
            MasterEvent::Refused { code, .. } => println!("refused {code}"),
            MasterEvent::Announcement(text) => println!("announced {text}"),
            MasterEvent::Stopped => println!("stopped"),
            MasterEvent::Presence { account, is_online } => {
                println!("presence {account} {is_online}");
            }
            MasterEvent::Friend {
                account,
                is_accepted,
            } => println!("friend {account} {is_accepted}"),
            MasterEvent::Invitation { from, room } => println!("invited {from} {room}"),
            other => tracing::debug!(?other, "heard"),
        }
        Ok(())
    }

    fn play_again(&mut self) -> anyhow::Result<()> {
        let is_free = self.master.current_match().is_none();
        if self.play && is_free && self.master.queue_status() == QueueStatus::Out {
            self.master.queue(Preferences::default())?;
        }
        Ok(())
    }
}

const STEP: Duration = Duration::from_millis(10);
