//! Nothing from the network panics: the body of the fuzz target over noise and over damaged real bytes.

#[path = "../../../fuzz/src/lockstep/body.rs"]
#[expect(unreachable_pub, reason = "the fuzz crate has it in its public module")]
mod target;

use muse_lockstep::samples::duel::Duel;
use muse_lockstep::{LinkId, MatchConfig, Orderer, Rng, Role, Session, Target};
use muse_wire::{Duration, Instant};

/// Everything that a session and an orderer say to each other in two seconds, each packet with its length in front.
fn conversation(config: MatchConfig) -> Vec<u8> {
    let mut orderer = Orderer::new::<Duel>(config.clone()).expect("the settings make sense");
    let mut session = Session::new(config, Duel::new(1), Role::Player, 1).expect("they do");
    let mut said = Vec::new();
    let mut buffer = [0; 1_200];
    let mut now = Instant::ZERO;
    for _ in 0..200 {
        now += Duration::from_millis(10);
        session.handle_timeout(now);
        orderer.handle_timeout(now);
        while let Some((Target::Orderer, len)) = session.poll_packet(now, &mut buffer) {
            said.push(len.min(255) as u8);
            said.extend(&buffer[..len.min(255)]);
            orderer.handle_packet(now, LinkId(0), &buffer[..len]);
        }
        while let Some((_, len)) = orderer.poll_packet(now, &mut buffer) {
            said.push(len.min(255) as u8);
            said.extend(&buffer[..len.min(255)]);
            session.handle_packet(now, &buffer[..len]);
        }
    }
    assert!(session.frame().0 > 5, "they understand each other");
    said
}

#[test]
fn noise_and_damaged_packets_are_survived() {
    let mut rng = Rng::new(7);
    for len in 0..3_000 {
        let bytes: Vec<u8> = (0..len % 400).map(|_| rng.next() as u8).collect();
        target::run(&bytes);
    }
    for (choice, config) in [
        (1u8, MatchConfig::lockstep(2)),
        (2, MatchConfig::rollback(2).history(64).window(20)),
    ] {
        let said = conversation(config.begins_with(1));
        for _ in 0..600 {
            let mut bytes = vec![choice];
            bytes.extend(&said);
            for _ in 0..1 + rng.below(20) {
                let at = 1 + rng.below(said.len() as u32) as usize;
                bytes[at] = rng.next() as u8;
            }
            target::run(&bytes);
        }
    }
}
