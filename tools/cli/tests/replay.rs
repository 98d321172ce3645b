//! `muse replay` on files as they come: whole, changed, cut off, of another game.

use std::path::PathBuf;
use std::process::{Command, Output};

use muse_lockstep::replay::Recorder;
use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::samples::rts::Rts;
use muse_lockstep::{DeterministicGame, MatchConfig, Rng, checksum};
use muse_netem::{Network, Simulation};
use muse_schema::Schema;
use muse_wire::Duration;

/// The file of a match that one player plays alone for ten seconds.
fn record<G: DeterministicGame>(
    config: &MatchConfig,
    state: G,
    mut input: impl FnMut() -> G::Input,
) -> Vec<u8> {
    let host = PlainPeer::host(config.clone(), state, 1).expect("the settings make sense");
    let mut simulation = Simulation::new(Network::new(1));
    let address = std::net::SocketAddr::from(([192, 0, 2, 1], 1));
    let node = simulation.add(address, host);
    let mut recorder = Recorder::new(config);
    for _ in 0..100 {
        simulation.run_for(Duration::from_millis(100));
        let session = simulation.node_mut(node).session_mut().expect("it plays");
        session.set_input(input()).expect("it is small");
        recorder.record(session);
    }
    let mut file = recorder.take_bytes();
    file.append(&mut recorder.finish());
    file
}

fn duel() -> Vec<u8> {
    let mut rng = Rng::new(2);
    let config = MatchConfig::rollback(2).begins_with(1);
    record(&config, Duel::new(1), || {
        Buttons::from_bits(rng.next() as u8)
    })
}

/// Runs `muse replay` on these bytes.
fn muse_replay(name: &str, file: &[u8], options: &[&str]) -> Output {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, file).expect("there is room for a file");
    Command::new(env!("CARGO_BIN_EXE_muse"))
        .arg("replay")
        .arg(&path)
        .args(options)
        .output()
        .expect("the binary can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Positions and lengths of the content of each chunk of this letter.
fn chunks(file: &[u8], letter: u8) -> Vec<(usize, usize)> {
    let (mut at, mut found) = (12, Vec::new());
    while let Some(head) = file.get(at..at + 9) {
        let len = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if head[0] == letter {
            found.push((at + 9, len));
        }
        at += 9 + len;
    }
    found
}

#[test]
fn a_whole_file_is_printed_and_verifies() {
    let output = muse_replay("whole", &duel(), &["--verify"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("game: Duel\nmode: Rollback, 2 seats"),
        "{said}"
    );
    assert!(
        said.contains("verified: ") && !said.contains("verified: 0"),
        "{said}"
    );
    let commands = MatchConfig::lockstep(2).begins_with(1);
    let strategy = record(&commands, Rts::new(2, 10, 1), Vec::new);
    let output = muse_replay("strategy", &strategy, &["--verify"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("game: Rts\nmode: Lockstep") && said.contains("verified: "),
        "{said}"
    );
}

#[test]
fn a_frame_is_printed_with_its_inputs() {
    let output = muse_replay("frame", &duel(), &["--frame", "300"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("time: 300") || said.contains("time = 300"),
        "{said}"
    );
    assert!(
        said.contains("seat 0: Buttons") && said.contains("seat 1: nobody"),
        "{said}"
    );
    let output = muse_replay("no-frame", &duel(), &["--frame", "99999"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

#[test]
fn a_changed_byte_is_found() {
    let mut file = duel();
    let (at, len) = chunks(&file, b'I')[3];
    file[at + len / 2] ^= 1;
    let output = muse_replay("changed", &file, &["--verify"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("problem: ") && said.contains("the part before it can be played"),
        "{said}"
    );
    assert!(
        said.contains("verified: "),
        "what is before it is run: {said}"
    );
}

#[test]
fn a_forged_input_is_found_by_running_the_match() {
    let mut file = duel();
    let (at, len) = chunks(&file, b'I')[3];
    // The first frame's input: after the frame, the steps, who is there, and the length.
    file[at + 9] ^= 1;
    let content = file[at..at + len].to_vec();
    let sum = (checksum(&content) as u32).rotate_left(u32::from(b'I') % 32) ^ u32::from(b'I');
    file[at - 4..at].copy_from_slice(&sum.to_le_bytes());
    let output = muse_replay("forged", &file, &["--verify"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(!said.contains("problem: "), "its sums fit: {said}");
    assert!(said.contains("differs: the state before frame "), "{said}");
}

#[test]
fn a_file_that_is_cut_off_says_so_and_what_is_there_plays() {
    let file = duel();
    let output = muse_replay("cut", &file[..file.len() / 2], &["--verify"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("problem: ") && said.contains("verified: "),
        "{said}"
    );
    let frames = |said: &str| -> u32 {
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix("verified: "));
        let number = line.and_then(|line| line.split(' ').next());
        number
            .and_then(|number| number.parse().ok())
            .expect("a number of frames")
    };
    let whole = text(&muse_replay("uncut", &file, &["--verify"]).stdout);
    let (part, all) = (frames(&said), frames(&whole));
    assert!(part > all / 4 && part < all, "{part} of {all} frames");
    // Nothing plays without a header.
    let output = muse_replay("stub", &file[..20], &["--verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr).lines().count(),
        1,
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn what_is_not_a_replay_or_of_another_game_is_said_in_one_line() {
    let output = muse_replay("poem", b"Sing, O goddess, the anger of Achilles", &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("error: ") && said.lines().count() == 1,
        "{said}"
    );
    let output = muse_replay(
        "race",
        &record(&MatchConfig::rollback(1), Race { metres: 0 }, || true),
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "a summary needs no game");
    assert!(text(&output.stdout).contains("game: Race"));
    let output = muse_replay(
        "race",
        &record(&MatchConfig::rollback(1), Race { metres: 0 }, || true),
        &["--verify"],
    );
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.contains("does not know the game \"Race\"") && said.lines().count() == 1,
        "{said}"
    );
    // A duel of other rules: the name fits, the description does not.
    let output = muse_replay("other-duel", &other_duel::file(), &["--verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr).lines().count(),
        1,
        "{}",
        text(&output.stderr)
    );
}

/// A game that the program does not know.
#[derive(Clone, Schema)]
struct Race {
    metres: u32,
}

impl DeterministicGame for Race {
    type Input = bool;
    type Event = ();

    fn step(&mut self, step: &mut muse_lockstep::Step<'_, Self>) {
        self.metres += u32::from(step.input(0) == Some(&true));
    }
}

mod other_duel {
    use super::{DeterministicGame, MatchConfig, Schema, record};

    /// Another game with a name that the program knows.
    #[derive(Clone, Schema)]
    struct Duel {
        paces: u8,
    }

    impl DeterministicGame for Duel {
        type Input = bool;
        type Event = ();

        fn step(&mut self, _: &mut muse_lockstep::Step<'_, Self>) {
            self.paces = self.paces.wrapping_add(1);
        }
    }

    pub(super) fn file() -> Vec<u8> {
        record(&MatchConfig::rollback(1), Duel { paces: 0 }, || false)
    }
}
