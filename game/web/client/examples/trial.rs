//! `trial MODE PLAYERS SEED TICKS FILE` plays a match by itself and writes its recording; `trial verify FILE` runs a recording again. Each prints what came out,
//! to be compared with what a browser says.

use std::process::ExitCode;

use muse_biobot_web::trial::{trial, verify_recording};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(verdict) => {
            println!("{verdict}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("trial: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<String, Box<dyn std::error::Error>> {
    match arguments {
        [verify, file] if verify == "verify" => Ok(verify_recording(&std::fs::read(file)?)),
        [mode, players, seed, ticks, file] => {
            let recording = trial(mode, players.parse()?, seed.parse()?, ticks.parse()?);
            std::fs::write(file, &recording)?;
            Ok(verify_recording(&recording))
        }
        _ => Err(
            "usage: trial cooperative|versus|ball PLAYERS SEED TICKS FILE, or trial verify FILE"
                .into(),
        ),
    }
}
