//! What every game needs to be a program: a socket, a clock and a loop, and a file for the replay.
#![allow(
    clippy::disallowed_methods,
    reason = "a program needs a clock and waits between frames"
)]

use std::error::Error;
use std::io::Write;
use std::time::Instant as Clock;

use muse_drivers::{Driver, UdpDriver, UdpOptions};
use muse_lockstep::replay::Recorder;
use muse_lockstep::{
    Client, DeterministicGame, Host, MatchConfig, Orderer, Peer, Rng, Role, Server, Session, Status,
};
use muse_wire::{Duration, Instant};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Plays until the match is over, or for a minute: as the command line says, one of the players' machines orders the inputs, or a server of
/// its own does. `turn` is asked for this player's input whenever there may be something new.
pub(crate) fn play<G: DeterministicGame>(
    config: MatchConfig,
    game: G,
    mut turn: impl FnMut(&mut Session<G>, &mut Rng) -> Outcome,
) -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let nonce = std::process::id();
    let (mut peer, port) = match words.as_slice() {
        ["host", port, ..] => {
            let host = Host::new(config.clone(), game, nonce)?;
            (Peer::Host(Box::new(host)), port.parse()?)
        }
        ["serve", port, ..] => {
            let server = Server::new(Orderer::new::<G>(config.clone())?);
            (Peer::Server(Box::new(server)), port.parse()?)
        }
        ["join", address, ..] => {
            let session = Session::new(config.clone(), game, Role::Player, nonce)?;
            let client = Client::new(session, address.parse()?);
            (Peer::Client(Box::new(client)), 0)
        }
        _ => return Err("usage: host PORT [FILE] | serve PORT | join ADDRESS".into()),
    };
    let file = words.get(2).filter(|_| words[0] == "host");
    let mut file = file.map(std::fs::File::create).transpose()?;
    let mut recorder = Recorder::new(&config);
    let mut socket = UdpDriver::bind_any(port, &UdpOptions::default())?;
    let (start, mut rng) = (Clock::now(), Rng::new(nonce.into()));
    while start.elapsed().as_secs() < 60 {
        let now = Instant::from_micros(start.elapsed().as_micros() as u64);
        socket.poll(now, &mut peer)?;
        if let Some(session) = peer.session_mut() {
            if matches!(session.status(), Status::Over(_) | Status::Lost) {
                break;
            }
            turn(session, &mut rng)?;
            recorder.record(session);
            if let Some(file) = &mut file {
                file.write_all(&recorder.take_bytes())?;
            }
        }
        socket.wait(Duration::from_millis(2))?;
    }
    if let Some(file) = &mut file {
        file.write_all(&recorder.finish())?;
    }
    Ok(())
}
