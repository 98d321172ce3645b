//! Guests that come and go over direct ways: a host forgets them, so that there is a place for the next.

use std::net::SocketAddr;

use muse_relay::{Limits, Link, LinkEvent};
use muse_wire::Duration;

use crate::crowd::Crowd;

#[test]
fn every_guest_gets_a_direct_way_however_many_have_gone() {
    let limits = Limits::default()
        .requests_per_second(1_000)
        .guests_per_room(1_000)
        .guests_per_prefix(1_000);
    let mut crowd = Crowd::new(limits);
    let host = crowd.open(SocketAddr::from(([198, 51, 100, 1], 4_000)), 1, true);
    for number in 0..10_000_u32 {
        let at = SocketAddr::from(([198, 51, 100, 2 + (number % 16) as u8], 4_000));
        let guest = crowd.join(at, 1, true);
        let until = crowd.simulation.now() + Duration::from_secs(5);
        loop {
            let events = crowd.events(guest);
            if events
                .iter()
                .any(|it| matches!(it, LinkEvent::Direct { .. }))
            {
                break;
            }
            assert!(crowd.simulation.now() < until, "guest {number}");
            crowd.simulation.run_for(Duration::from_millis(10));
        }
        crowd.say(guest, Link::host_address(), number, 100);
        crowd.simulation.run_for(Duration::from_millis(20));
        let heard = &mut crowd.member_mut(host).machine_mut().addresses;
        assert_eq!(heard.remove(&number), Some(at), "the direct way works");
        // Some say that they leave, others fall silent.
        if number % 2 == 0 {
            crowd.member_mut(guest).link_mut().leave();
            crowd.simulation.run_for(Duration::from_millis(10));
        }
        crowd.simulation.detach(guest);
    }
    crowd.simulation.run_for(Duration::from_secs(180));
    assert_eq!(crowd.member(host).link().peers(), 0, "all are forgotten");
}
