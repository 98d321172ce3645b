//! The command line of the deterministic examples: who hosts, who serves, who joins, and a file for the replay.

use std::error::Error;
use std::io::Write;
use std::time::Instant as Clock;

use muse::lockstep::Rng;
use muse::lockstep::replay::Recorder;
use muse::prelude::*;

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Plays until the match is over, or for a minute. `input` is asked for each frame, `show` is given what happened in each tick.
pub(crate) fn play<G: DeterministicGame>(
    config: MatchConfig,
    game: G,
    mut input: impl FnMut(&mut Rng) -> G::Input,
    mut show: impl FnMut(&DeterministicSession<G>, Vec<MatchEvent<G::Event>>),
) -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut session = match words.as_slice() {
        ["host", port, ..] => {
            let listen = format!("[::]:{port}");
            DeterministicSession::host(listen.as_str(), config.clone(), game)?
        }
        ["serve", port] => {
            let listen = format!("[::]:{port}");
            DeterministicSession::serve(listen.as_str(), config.clone())?
        }
        #[cfg(feature = "relay")]
        ["room", relay, ..] => {
            let listen = Listen::at("[::]:0").room(relay);
            DeterministicSession::host(listen, config.clone(), game)?
        }
        #[cfg(feature = "relay")]
        ["join", relay, code] => {
            DeterministicSession::join(Join::room(relay, code), config.clone(), game)?
        }
        ["join", address] => DeterministicSession::join(*address, config.clone(), game)?,
        _ => return Err(USAGE.into()),
    };
    match invitation(&session) {
        Some(code) => println!("join by {code}"),
        None => session
            .address()
            .into_iter()
            .for_each(|it| println!("join {it}")),
    }
    let file = words
        .get(2)
        .filter(|_| ["host", "room"].contains(&words[0]));
    let mut file = file.map(std::fs::File::create).transpose()?;
    let mut recorder = Recorder::new(&config);
    let (start, mut rng) = (Clock::now(), Rng::new(std::process::id().into()));
    while start.elapsed().as_secs() < 60 && !session.is_over() {
        let events = session.tick(|_frame| input(&mut rng))?;
        show(&session, events);
        if let (Some(file), Some(played)) = (&mut file, session.participant().session()) {
            recorder.record(played);
            file.write_all(&recorder.take_bytes())?;
        }
    }
    if let Some(file) = &mut file {
        file.write_all(&recorder.finish())?;
    }
    Ok(())
}

/// The code that friends type, for a match in a relay's room.
fn invitation<G: DeterministicGame>(_session: &DeterministicSession<G>) -> Option<String> {
    #[cfg(feature = "relay")]
    return _session.short_code().map(|code| code.to_string());
    #[cfg(not(feature = "relay"))]
    None
}

const USAGE: &str = "usage: host PORT [FILE] | room RELAY [FILE] | serve PORT | join muse://HOST:PORT/KEY | join RELAY CODE
(rooms at relays with the feature `relay`)";
