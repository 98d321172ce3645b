//! The session that every binding plays against the same server, to the same result: all delivery modes under loss, a message of a
//! megabyte, a cut that the connection survives, and a second connection.
//!
//! `session serve` is the server behind a bad network of its own; it ends when its standard input does. `session play ADDRESS KEY` is the
//! client in Rust; `tests/c/session.c`, `bindings/csharp` and `bindings/typescript` have the same client in C, C# and TypeScript. What a client prints is its result, line by line.
//!
//! `session serve-bevy` is the same server with the two channels of the plugin for Bevy in front, for the app in `bindings/bevy/examples/bevy_session.rs`.

mod client;
mod proxy;
mod rules;
mod server;

use std::error::Error;
use std::process::ExitCode;

const USAGE: &str =
    "usage: session serve [CAPTURE KEYS] | session serve-bevy | session play ADDRESS KEY";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome: Result<(), Box<dyn Error>> = match words[..] {
        ["serve"] => server::serve(&[], None, alone),
        ["serve", capture, keys] => server::serve(&[], Some((capture, keys)), alone),
        ["serve-bevy"] => server::serve(&rules::FRONT, None, alone),
        ["play", address, key] => client::play_rust(address, key),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("session: {error}");
            ExitCode::FAILURE
        }
    }
}

/// UDP is the only link.
fn alone(
    server: muse::drivers::EndpointDriver,
) -> std::io::Result<(muse::drivers::EndpointDriver, String)> {
    Ok((server, String::new()))
}
