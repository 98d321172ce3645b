//! A master lets a game server end by itself: players who do not answer cost no records.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::program::{Master, signal, wait_for};

/// Two bots in one program, which is ended with the test.
struct Bots(Child);

impl Bots {
    /// Starts them; returns when both play.
    fn start(master: &Master) -> Self {
        let url = format!("http://{}", master.authority());
        let child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["bots", "--count", "2", "--mode", "versus", "--players", "2"])
            .args(["--master", &url])
            .stdout(Stdio::piped())
            .spawn();
        let mut bots = Self(child.expect("the binary starts"));
        let output = bots.0.stdout.as_mut().expect("piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line.trim_end(), "all 2 play");
        bots
    }
}

impl Drop for Bots {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_whose_players_fell_silent_writes_its_report_before_it_is_ended() {
    let records = tempfile::tempdir().expect("a folder");
    let game = format!(
        "{} game --with-parent --no-web --mode versus --versus-seconds 3 --records {}",
        env!("CARGO_BIN_EXE_muse"),
        records.path().display()
    );
    let protocol = muse_biobot::PROTOCOL.to_string();
    let master = Master::start(&["--game", &game, "--protocol-id", &protocol], 1.0);
    let bots = Bots::start(&master);
    // The match goes on without them, and its end is told to nobody.
    signal(bots.0.id(), "STOP");
    wait_for("a report of the match", Duration::from_secs(30), || {
        let files = std::fs::read_dir(records.path()).expect("a folder");
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names.any(|name| name.starts_with("match-") && name.ends_with(".txt"))
    });
}
