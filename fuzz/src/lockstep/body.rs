//! Deterministic sessions: any packet at a session and at an orderer, a trace.

use muse_lockstep::samples::duel::Duel;
use muse_lockstep::{
    LinkId, MatchConfig, Orderer, PACKET_BYTES_MAX, Role, Session, Target, Trace, differences,
};
use muse_schema::Schema;
use muse_wire::{Duration, Instant};

/// The first byte chooses; the others are packets, each with its length in front, or a file.
pub fn run(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    match choice % 3 {
        0 => {
            let _ = Trace::parse(rest);
            let (one, other) = rest.split_at(rest.len() / 2);
            differences(&Duel::TYPE, one, other, 8);
        }
        lockstep => packets(rest, lockstep == 1),
    }
}

/// A session and an orderer that are told the same, and everything that they say to each other besides.
fn packets(mut rest: &[u8], lockstep: bool) {
    let config = match lockstep {
        true => MatchConfig::lockstep(2),
        false => MatchConfig::rollback(2).history(64).window(20),
    };
    let config = config.begins_with(1);
    let Ok(mut orderer) = Orderer::new::<Duel>(config.clone()) else {
        return;
    };
    let Ok(mut session) = Session::new(config, Duel::new(1), Role::Player, 1) else {
        return;
    };
    let mut now = Instant::ZERO;
    let mut buffer = [0; PACKET_BYTES_MAX];
    while let Some((len, after)) = rest.split_first() {
        let (packet, after) = after.split_at(after.len().min(usize::from(*len)));
        rest = after;
        now += Duration::from_millis(u64::from(len % 32));
        session.handle_packet(now, packet);
        orderer.handle_packet(now, LinkId(usize::from(len % 3)), packet);
        session.handle_timeout(now);
        orderer.handle_timeout(now);
        for _ in 0..8 {
            if let Some((Target::Orderer, len)) = session.poll_packet(now, &mut buffer) {
                orderer.handle_packet(now, LinkId(0), &buffer[..len]);
            }
            if let Some((LinkId(0), len)) = orderer.poll_packet(now, &mut buffer) {
                session.handle_packet(now, &buffer[..len]);
            }
        }
        assert!(session.confirmed() <= session.frame() + 4_096);
    }
}
