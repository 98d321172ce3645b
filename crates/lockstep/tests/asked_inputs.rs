//! Inputs that are asked for: once for each frame, and commands that came too late are carried over.

use muse_lockstep::{
    DeterministicGame, Frame, LinkId, MatchConfig, Orderer, Role, Session, Status, Step, Target,
};
use muse_schema::Schema;
use muse_wire::{Duration, Instant};

#[derive(Clone, Default, Schema)]
struct Sum {
    total: u32,
    given: u32,
}

impl DeterministicGame for Sum {
    type Input = Vec<u32>;
    type Event = ();

    fn step(&mut self, step: &mut Step<'_, Self>) {
        for (_, numbers) in step.players() {
            self.total += numbers.iter().sum::<u32>();
            self.given += numbers.len() as u32;
        }
    }
}

/// A player alone, for three seconds; the frames that inputs were asked for.
fn play(config: MatchConfig, mut input: impl FnMut(Frame) -> Vec<u32>) -> (Session<Sum>, Vec<u32>) {
    let mut orderer = Orderer::new::<Sum>(config.clone()).expect("the settings make sense");
    let mut session =
        Session::new(config, Sum::default(), Role::Player, 1).expect("the settings make sense");
    let (mut asked, mut buffer) = (Vec::new(), [0; 1_200]);
    for millis in 0..3_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        let ask = |frame: Frame| {
            asked.push(frame.0);
            input(frame)
        };
        session.handle_timeout_with(now, ask).expect("it is small");
        orderer.handle_timeout(now);
        while let Some((Target::Orderer, len)) = session.poll_packet(now, &mut buffer) {
            orderer.handle_packet(now, LinkId(0), &buffer[..len]);
        }
        while let Some((_, len)) = orderer.poll_packet(now, &mut buffer) {
            session.handle_packet(now, &buffer[..len]);
        }
    }
    assert_eq!(session.status(), Status::Running);
    (session, asked)
}

#[test]
fn each_frame_is_asked_for_once() {
    for config in [MatchConfig::rollback(1), MatchConfig::lockstep(1)] {
        let (session, asked) = play(config, |frame| vec![frame.0]);
        assert!(asked.len() > 10, "{asked:?}");
        assert!(
            asked.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{asked:?}"
        );
        let state = session.state();
        let run = asked.iter().filter(|frame| **frame < session.frame().0);
        assert_eq!(state.total, run.sum::<u32>(), "each ran in its frame");
    }
}

#[test]
fn an_input_that_cannot_travel_is_reported_and_replaced() {
    let config = MatchConfig::rollback(1);
    let mut orderer = Orderer::new::<Sum>(config.clone()).expect("the settings make sense");
    let mut session =
        Session::new(config, Sum::default(), Role::Player, 1).expect("the settings make sense");
    let (mut refused, mut buffer) = (0, [0; 1_200]);
    for millis in 0..1_000 {
        let now = Instant::ZERO + Duration::from_millis(millis);
        let huge = |frame: Frame| vec![1_000_000; if frame.0 == 20 { 1_000 } else { 1 }];
        refused += u32::from(session.handle_timeout_with(now, huge).is_err());
        orderer.handle_timeout(now);
        while let Some((Target::Orderer, len)) = session.poll_packet(now, &mut buffer) {
            orderer.handle_packet(now, LinkId(0), &buffer[..len]);
        }
        while let Some((_, len)) = orderer.poll_packet(now, &mut buffer) {
            session.handle_packet(now, &buffer[..len]);
        }
    }
    assert_eq!(refused, 1);
    // The first two are the delay's, and one was replaced by the default.
    assert_eq!(session.state().given, session.frame().0 - 3);
}
