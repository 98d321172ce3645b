//! Replays: what was played is what is played again; damage is found and does not spread.

use muse_lockstep::replay::{Problem, Recorder, Replay, ReplayError, play, verify};
use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::{Frame, MatchConfig, Rng};
use muse_netem::{Network, Simulation};
use muse_wire::Duration;

/// A match of a player alone, recorded for so many seconds, and its last confirmed state.
fn record(seconds: u64, finish: bool) -> (Vec<u8>, Frame, Duel) {
    let config = MatchConfig::rollback(2).begins_with(1);
    let host = PlainPeer::host(config.clone(), Duel::new(1), 1).expect("the settings make sense");
    let mut simulation = Simulation::new(Network::new(1));
    let address = std::net::SocketAddr::from(([192, 0, 2, 1], 1));
    let node = simulation.add(address, host);
    let mut recorder = Recorder::new(&config);
    let mut file = Vec::new();
    let mut rng = Rng::new(2);
    for _ in 0..seconds * 50 {
        simulation.run_for(Duration::from_millis(20));
        let session = simulation.node_mut(node).session_mut().expect("it plays");
        if rng.below(5) == 0 {
            session
                .set_input(Buttons::from_bits(rng.next() as u8))
                .expect("six bits");
        }
        recorder.record(session);
        file.append(&mut recorder.take_bytes());
    }
    if finish {
        file.append(&mut recorder.finish());
    }
    let session = simulation.node(node).session().expect("it plays");
    let (frame, state) = session.confirmed_state().expect("it has run");
    (file, frame, *state)
}

#[test]
fn a_replay_verifies_and_leads_to_the_same_state() {
    let (file, frame, state) = record(20, true);
    let replay = Replay::parse(&file).expect("a replay");
    assert_eq!(replay.problem(), None);
    assert!(replay.states() >= 4);
    let (first, end) = replay.frames();
    assert!(first.0 <= 3 && end == frame, "{first}..{end}, {frame}");
    let outcome = verify::<Duel>(&replay).expect("it is of this game");
    assert_eq!(outcome.differs, None);
    assert!(
        outcome.compared > 150 && outcome.frames > 1_000,
        "{outcome:?}"
    );
    assert_eq!(play::<Duel>(&replay, frame), Ok(state));
    // Seeking goes over a stored state, not over the whole match.
    let middle = play::<Duel>(&replay, Frame(700)).expect("it is in it");
    assert_eq!(middle.time, 700);
}

/// The file with a byte of its n-th chunk of inputs changed, and the chunk's checksum made to fit.
fn tamper(file: &[u8], nth: usize, offset: usize) -> Vec<u8> {
    let mut file = file.to_vec();
    let (mut at, mut seen) = (12, 0);
    while at < file.len() {
        let len = u32::from_le_bytes(file[at + 1..at + 5].try_into().expect("four bytes")) as usize;
        let content = at + 9..at + 9 + len;
        if file[at] == b'I' && seen == nth {
            file[content.start + offset] ^= 1;
            let sum = muse_lockstep::checksum(&file[content]) as u32;
            let sum = sum.rotate_left(u32::from(b'I') % 32) ^ u32::from(b'I');
            file[at + 5..at + 9].copy_from_slice(&sum.to_le_bytes());
            return file;
        }
        seen += usize::from(file[at] == b'I');
        at = content.end;
    }
    assert!(seen > nth, "there is no such chunk");
    file
}

#[test]
fn a_changed_input_does_not_verify() {
    let (file, ..) = record(10, true);
    // First frame, then the first frame's steps, who is there, and the length of the input: its byte is the tenth.
    let other = tamper(&file, 2, 9);
    let replay = Replay::parse(&other).expect("a replay");
    assert_eq!(replay.problem(), None, "its checksums fit");
    let outcome = verify::<Duel>(&replay).expect("it plays");
    let (frame, _) = outcome.differs.expect("another state");
    let changed = Replay::parse(&file).expect("a replay").frames().0 + 2 * 60;
    assert!(
        frame.since(changed) <= 12,
        "{frame}: the next check after {changed}"
    );
}

#[test]
fn a_file_cut_off_anywhere_says_so_and_plays_up_to_there() {
    let (file, ..) = record(8, true);
    let whole = Replay::parse(&file).expect("a replay").frames().1;
    let mut played = Frame(0);
    for len in (0..file.len()).step_by(37) {
        match Replay::parse(&file[..len]) {
            Err(error) => {
                let early = [ReplayError::NotAReplay, ReplayError::NoHeader];
                assert!(
                    early.contains(&error) && played == Frame(0),
                    "{len}: {error}"
                );
            }
            Ok(replay) => {
                assert!(replay.problem().is_some(), "{len} of {} bytes", file.len());
                if replay.states() > 0 {
                    let outcome = verify::<Duel>(&replay).expect("what is there plays");
                    assert_eq!(outcome.differs, None, "{len}");
                    let end = replay.frames().1;
                    assert!(end >= played);
                    played = end;
                }
            }
        }
    }
    assert!(played.0 + 120 > whole.0, "{played} of {whole}");
}

#[test]
fn a_flipped_bit_is_found() {
    let (file, ..) = record(4, true);
    for at in (12..file.len()).step_by(53) {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        match Replay::parse(&damaged) {
            Err(error) => assert_eq!(error, ReplayError::NoHeader, "byte {at}"),
            Ok(replay) => {
                let problem = replay.problem();
                let found = matches!(
                    problem,
                    Some(Problem::Damaged { .. } | Problem::Truncated { .. })
                );
                assert!(found, "byte {at}: {problem:?}");
            }
        }
    }
    let mut newer = file.clone();
    newer[8] = 9;
    assert_eq!(Replay::parse(&newer).err(), Some(ReplayError::Version(9)));
}

#[test]
fn an_unfinished_recording_plays() {
    let (file, ..) = record(4, false);
    let replay = Replay::parse(&file).expect("a replay");
    assert_eq!(replay.problem(), Some(Problem::Unfinished));
    assert!(verify::<Duel>(&replay).expect("it plays").frames > 120);
}
