//! `muse bots`: simulated players over real UDP: they join, play, die and come back, to load servers and to fill matches.
//!
//! [`seat`] is a bot's place in a match, [`agent`] its connection to a master, [`tally`] its counters.

mod agent;
mod seat;
mod tally;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration as SystemDuration, Instant as Clock};

use anyhow::{Context, bail};
use clap::Args;
use muse_biobot::bots::Brain;
use muse_biobot::net::protocol;
use muse_biobot::{Level, Phase, Player};
use muse_drivers::ClientDriver;
use muse_master_client::Preferences;
use muse_relay::ShortCode;
use muse_transport::{Connect, ServerPublicKey};

use crate::echo::room_options;
use crate::game::{PlayMode, read_level};
use crate::interrupt::Interrupt;
use agent::{Agent, Order};
use seat::{Seat, State};
use tally::Tally;

/// The number of bots, and the server they play on.
#[derive(Args)]
#[command(
    after_help = "Example: muse bots --count 2 --master http://127.0.0.1:8080\n         \
muse bots --count 4 --server 127.0.0.1:7000 --key KEY\n         \
muse bots --room KWXPTR-7Q4M --relay relay.example.com:7788\n\n\
With --master they queue again after each match, until Ctrl-C. With --server or --room they play one match."
)]
pub(crate) struct Arguments {
    /// Number of bots.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,
    /// Address and port of a game server that admits anybody (`muse game --danger-no-tokens`).
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "key",
        required_unless_present_any = ["master", "room"],
        conflicts_with = "master"
    )]
    server: Option<String>,
    /// The server's public key, as it prints it at the start.
    #[arg(long, value_name = "KEY")]
    key: Option<ServerPublicKey>,
    /// Short code of a game server's room at a relay (`muse game --relay`).
    #[arg(long, value_name = "CODE", requires = "relay", conflicts_with_all = ["server", "master"])]
    room: Option<ShortCode>,
    /// That relay.
    #[arg(long, value_name = "HOST:PORT", requires = "room")]
    relay: Option<String>,
    /// Look for no direct way: the server does not learn this address, nor this program the server's.
    #[arg(long, requires = "room")]
    relay_only: bool,
    /// Address of a master: `https://play.example.com` or `http://host:port`.
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// Mode to play; any mode by default.
    #[arg(long, value_enum)]
    mode: Option<PlayMode>,
    /// Players of the match to ask a master for, bots included.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=16))]
    players: Option<u8>,
    /// Let the server's own bots fill the match if nobody else comes in time.
    #[arg(long, requires = "master")]
    with_bots: bool,
    /// Level file, if the server uses another than the game's own.
    #[arg(long, value_name = "FILE")]
    level: Option<PathBuf>,
    /// Random seed: decides the bots' mistakes, and who they are to a master.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// End after so many seconds.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// End when every bot has played so many matches.
    #[arg(long, value_name = "N")]
    matches: Option<u32>,
    /// Print each bot's traffic while it played, as JSON.
    #[arg(long)]
    figures: bool,
}

/// Plays until there is nothing more to play, or until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let mut bots = make(arguments)?;
    let started = Clock::now();
    let limit = arguments.seconds.map(SystemDuration::from_secs);
    let mut told = false;
    while !interrupt.is_raised() && limit.is_none_or(|limit| started.elapsed() < limit) {
        for bot in &mut bots {
            bot.turn()?;
        }
        if !told && bots.iter().all(Bot::is_playing) {
            println!("all {} play", bots.len());
            told = true;
        }
        let done = |bot: &Bot| bot.is_done(arguments.matches);
        if bots.iter().all(done) {
            break;
        }
        std::thread::sleep(sleep_time(&bots));
    }
    for bot in &mut bots {
        bot.leave()?;
    }
    report(&bots, arguments.figures)
}

fn make(arguments: &Arguments) -> anyhow::Result<Vec<Bot>> {
    let level = arguments.level.as_deref().map(read_level).transpose()?;
    let bot = |number: u32| -> anyhow::Result<Bot> {
        let seed = arguments
            .seed
            .wrapping_mul(1_000)
            .wrapping_add(number.into());
        let name = format!("Bot {number}");
        let mut bot = Bot {
            name,
            seed,
            level: level.clone(),
            agent: None,
            seat: None,
            brain: None,
            tally: Tally::default(),
            matches: 0,
            fate: None,
        };
        match (&arguments.server, arguments.key, &arguments.master) {
            (Some(server), Some(key), _) => bot.join(server, Connect::pinned(key))?,
            (_, _, Some(master)) => {
                let key = format!("muse-bots-{seed:020}");
                bot.agent = Some(Agent::new(master, &key, seed, preferences(arguments))?);
            }
            _ => match (arguments.room, &arguments.relay) {
                (Some(code), Some(relay)) => bot.join_room(relay, code, arguments.relay_only)?,
                _ => bail!(
                    "no server to play on: add --server and --key, --room and --relay, or --master"
                ),
            },
        }
        Ok(bot)
    };
    (1..=arguments.count).map(bot).collect()
}

fn preferences(arguments: &Arguments) -> Preferences {
    let wanted = Preferences {
        players: arguments.players,
        bots: arguments.with_bots,
        ..Preferences::default()
    };
    match arguments.mode {
        None => wanted,
        Some(PlayMode::Coop) => wanted.choice("mode", "cooperative"),
        Some(PlayMode::Versus) => wanted.choice("mode", "versus"),
        Some(PlayMode::Ball) => wanted.choice("mode", "ball"),
    }
}

/// One bot.
struct Bot {
    name: String,
    seed: u64,
    level: Option<Arc<Level>>,
    /// None at a server without a master.
    agent: Option<Agent>,
    seat: Option<Seat>,
    brain: Option<Brain>,
    tally: Tally,
    matches: u32,
    /// The reason that the last match ended for this bot.
    fate: Option<String>,
}

impl Bot {
    fn turn(&mut self) -> anyhow::Result<()> {
        let orders = self.agent.as_mut().map(Agent::turn).transpose()?;
        for order in orders.unwrap_or_default() {
            match order {
                Order::Join(seat) => self.join(&seat.address, seat.connect())?,
                Order::Leave => self.leave()?,
            }
        }
        let Some(seat) = &mut self.seat else {
            return Ok(());
        };
        let connected = *seat.state() == State::Connected;
        let (brain, seed) = (&mut self.brain, self.seed);
        seat.turn(|player, now| {
            let level = || Arc::clone(player.level());
            let brain = brain.get_or_insert_with(|| Brain::new(level(), seed));
            brain.act(now, player)
        })?;
        self.tally.look(seat);
        if !connected
            && *seat.state() == State::Connected
            && let Some(agent) = &mut self.agent
        {
            agent.handle_connected();
        }
        if let State::Over(why) = seat.state() {
            tracing::info!(bot = self.name, why, "the match is over");
            self.fate = Some(match seat.result() {
                Some(_) => "played to the end".to_owned(),
                None => why.clone(),
            });
            self.matches += 1;
            if let Some(agent) = &mut self.agent {
                agent.handle_lost(why);
            }
            self.seat = None;
            self.tally.leave();
        }
        Ok(())
    }

    fn join(&mut self, address: &str, how: Connect) -> anyhow::Result<()> {
        let link = ClientDriver::connect(address, protocol().0.config(), how);
        self.sit_down(link.with_context(|| format!("cannot connect to {address}"))?)
    }

    /// Joins by the short code of a room.
    fn join_room(&mut self, relay: &str, code: ShortCode, relay_only: bool) -> anyhow::Result<()> {
        let at = muse_program::address::resolve(relay)?;
        let (options, how) = (room_options(relay_only, None)?, Connect::key_follows());
        let link = ClientDriver::join_by_code(at, code, options, protocol().0.config(), how);
        self.sit_down(link.with_context(|| format!("cannot join through the relay {relay}"))?)
    }

    fn sit_down(&mut self, link: ClientDriver) -> anyhow::Result<()> {
        self.leave()?;
        self.brain = None;
        self.seat = Some(Seat::new(link, &self.name, self.level.clone()));
        Ok(())
    }

    fn leave(&mut self) -> anyhow::Result<()> {
        self.tally.leave();
        match self.seat.take() {
            Some(mut seat) => seat.leave(),
            None => Ok(()),
        }
    }

    fn is_playing(&self) -> bool {
        let player = self.seat.as_ref().and_then(Seat::player);
        let round = player.and_then(Player::round);
        round.is_some_and(|round| round.phase == Phase::Playing)
    }

    fn is_done(&self, matches: Option<u32>) -> bool {
        match &self.agent {
            Some(agent) => matches.is_some_and(|matches| agent.matches() >= matches),
            None => self.seat.is_none(),
        }
    }
}

/// Returns how long all of them may sleep: until the first has something to do, and never so long that arrived packets wait.
fn sleep_time(bots: &[Bot]) -> SystemDuration {
    let due = |bot: &Bot| {
        let seat = bot.seat.as_ref()?;
        Some(seat.due()?.saturating_since(seat.now()).as_micros())
    };
    let first = bots.iter().filter_map(due).min();
    let micros = first.unwrap_or(NAP_MICROS_MAX);
    SystemDuration::from_micros(micros.clamp(NAP_MICROS_MIN, NAP_MICROS_MAX))
}

/// Exits with 1 if a bot's match was not played to its end.
fn report(bots: &[Bot], figures: bool) -> anyhow::Result<ExitCode> {
    for bot in bots {
        if let Some(fate) = &bot.fate {
            println!("{}: {} matches; the last: {fate}", bot.name, bot.matches);
        }
    }
    if figures {
        let all: Vec<_> = bots.iter().map(|bot| bot.tally.figures()).collect();
        println!("{}", serde_json::to_string(&all)?);
    }
    let refused = |bot: &Bot| {
        let fate = bot.fate.as_deref();
        bot.agent.is_none() && fate.is_some_and(|fate| fate != "played to the end")
    };
    match bots.iter().any(refused) {
        true => Ok(ExitCode::FAILURE),
        false => Ok(ExitCode::SUCCESS),
    }
}

/// One thread plays for all bots without waiting for their sockets: it sleeps at least this long, so that a thousand of them do not keep a core busy,
/// and at most a few milliseconds, which is what an arrived packet may wait.
const NAP_MICROS_MIN: u64 = 500;
const NAP_MICROS_MAX: u64 = 5_000;
