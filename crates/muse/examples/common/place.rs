//! Where an example's server is and how its client knows it: a key file that both find, or the key as a word.
#![allow(dead_code, reason = "each example uses a part of it")]

use std::error::Error;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, channel};

use muse::prelude::*;

/// Where servers listen and clients look unless told otherwise.
pub(crate) const LISTEN: &str = "[::]:7000";
pub(crate) const SERVER: &str = "127.0.0.1:7000";

/// The key of this machine's example servers, made on first use and kept in the folder for temporary files.
pub(crate) fn server_key() -> Result<ServerKey, Box<dyn Error>> {
    Ok(muse::load_or_create_key(key_file())?)
}

/// The server's public key: given in hexadecimal, or that of this machine's example servers.
pub(crate) fn public_key(word: Option<String>) -> Result<ServerPublicKey, Box<dyn Error>> {
    match word {
        Some(word) => Ok(word.parse()?),
        None if key_file().exists() => Ok(server_key()?.public()),
        None => Err("start the server first, or give the key that it prints".into()),
    }
}

/// Binds a server and says how to reach it.
pub(crate) fn open(address: Option<String>, config: Config) -> Result<Server, Box<dyn Error>> {
    let key = server_key()?;
    let public = key.public();
    let server = Server::bind(
        address.as_deref().unwrap_or(LISTEN),
        config,
        ServerOptions::new(key),
    )?;
    println!("listening at {}, key {public}", server.local_addr()?);
    Ok(server)
}

/// Begins to connect to the server that the next two words, address and key, tell of.
pub(crate) fn connect(
    mut words: impl Iterator<Item = String>,
    config: Config,
) -> Result<Client, Box<dyn Error>> {
    let address = words.next().unwrap_or_else(|| SERVER.into());
    let how = Connect::pinned(public_key(words.next())?);
    Ok(Client::connect(address, config, how)?)
}

/// Turns what `main` came to into an exit code, with one clear line on failure.
pub(crate) fn report(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Says what went wrong, if anything did, and goes on.
pub(crate) fn complain<T, E: Display>(outcome: Result<T, E>) {
    if let Err(error) = outcome {
        eprintln!("{error}");
    }
}

/// Whether an event ends the connection, and how; our own close is a good end.
pub(crate) fn ended(event: &Event<'_>) -> Option<Result<(), String>> {
    match event {
        Event::Refused { reason, .. } => Some(Err(reason.to_string())),
        Event::Unanswered { .. } => Some(Err("nobody answers there".into())),
        Event::Closed {
            reason: CloseReason::ByUs,
            ..
        } => Some(Ok(())),
        Event::Closed { reason, .. } => Some(Err(format!("the connection ended: {reason:?}"))),
        _ => None,
    }
}

/// What is typed, line by line, read on a thread of its own so that the network need not wait.
pub(crate) fn typed_lines() -> Receiver<String> {
    let (typed, lines) = channel();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lines().map_while(Result::ok);
        input.try_for_each(|line| typed.send(line))
    });
    lines
}

fn key_file() -> PathBuf {
    std::env::temp_dir().join("muse-example.key")
}
