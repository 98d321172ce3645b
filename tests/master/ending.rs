//! A master lets a game server end by itself: players who do not answer cost no records.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::program::{Master, signal, wait_for};

/// Bots in one program, which is ended with the test.
struct Bots(Child);

impl Bots {
    /// Starts them, to queue for a match of two.
    fn start(master: &Master, count: u32, seed: u32) -> Self {
        let url = format!("http://{}", master.authority());
        let (count, seed) = (count.to_string(), seed.to_string());
        let child = Command::new(env!("CARGO_BIN_EXE_muse"))
            .args(["bots", "--mode", "versus", "--players", "2"])
            .args(["--count", &count, "--seed", &seed, "--master", &url])
            .stdout(Stdio::piped())
            .spawn();
        Self(child.expect("the binary starts"))
    }

    /// Returns when all of them play.
    fn play(&mut self) {
        let output = self.0.stdout.as_mut().expect("piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert!(
            line.starts_with("all ") && line.ends_with(" play\n"),
            "{line}"
        );
    }
}

impl Drop for Bots {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A master that starts Biobot, and folder where that writes its records.
fn biobot(versus_s: u32) -> (Master, tempfile::TempDir) {
    let records = tempfile::tempdir().expect("a folder");
    let game = format!(
        "{} game --with-parent --no-web --mode versus --versus-seconds {versus_s} --records {}",
        env!("CARGO_BIN_EXE_muse"),
        records.path().display()
    );
    let protocol = muse_biobot::PROTOCOL.to_string();
    let arguments = ["--game", &game, "--protocol-id", &protocol];
    (Master::start(&arguments, 1.0), records)
}

#[test]
fn a_server_whose_players_fell_silent_writes_its_report_before_it_is_ended() {
    let (master, records) = biobot(3);
    let mut bots = Bots::start(&master, 2, 1);
    bots.play();
    // The match goes on without them, and its end is told to nobody.
    signal(bots.0.id(), "STOP");
    wait_for("a report of the match", Duration::from_secs(30), || {
        let files = std::fs::read_dir(records.path()).expect("a folder");
        let mut names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        names.any(|name| name.starts_with("match-") && name.ends_with(".txt"))
    });
}

#[test]
fn the_seat_of_a_player_who_does_not_come_back_goes_to_one_from_the_queue() {
    let (master, _records) = biobot(600);
    let [mut stays, mut leaves] = [1, 2].map(|seed| Bots::start(&master, 1, seed));
    stays.play();
    leaves.play();
    leaves.0.kill().expect("it runs");
    let mut late = Bots::start(&master, 1, 3);
    late.play();
    assert_eq!(master.rows("SELECT count(*) FROM matches"), 1);
    assert_eq!(master.rows("SELECT count(*) FROM seats"), 2);
}
