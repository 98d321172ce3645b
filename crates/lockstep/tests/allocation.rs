//! Saving, loading and rolling back take no memory.

use muse_lockstep::samples::duel::{Buttons, Duel};
use muse_lockstep::samples::plain::PlainPeer;
use muse_lockstep::{MatchConfig, Rng, Session, Status};
use muse_wire::{Instant, Machine};

#[test]
fn a_rollback_takes_no_memory() {
    let config = MatchConfig::rollback(2).begins_with(1).delay(0);
    let mut peer = PlainPeer::host(config, Duel::new(1), 1).expect("the settings make sense");
    let mut buffer = [0; 1_500];
    let mut rng = Rng::new(4);
    for millis in 0..12_000 {
        let now = Instant::from_millis(millis);
        if rng.below(100) == 0 {
            let session = peer.session_mut().expect("a host plays");
            session
                .set_input(Buttons::from_bits(rng.next() as u8))
                .expect("six bits");
        }
        peer.handle_timeout(now);
        while peer.poll_transmit(now, &mut buffer).is_some() {}
    }
    let session: &mut Session<Duel> = peer.session_mut().expect("a host plays");
    assert_eq!(session.status(), Status::Running);
    let before = *session.state();
    let taken = allocation_counter::measure(|| {
        for _ in 0..100 {
            assert!(session.run_again(8));
        }
    });
    assert_eq!(
        taken.count_total, 0,
        "allocations in 100 rollbacks of 8 frames"
    );
    assert_eq!(*session.state(), before, "and the state is the same");
}
