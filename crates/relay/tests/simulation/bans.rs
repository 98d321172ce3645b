//! Bans: a guest that its host has banned gets nothing through and does not come back.

use std::net::SocketAddr;

use muse_netem::NodeId;
use muse_relay::{Limits, Link, LinkEvent, LinkState, Refusal};
use muse_wire::Duration;

use crate::crowd::Crowd;

const HOST: [u8; 4] = [198, 51, 100, 1];
const FLOODER: u32 = 1;
const HONEST: u32 = 2;

fn public(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], port))
}

/// Lets guests say something every 10 ms for a second.
fn talk(crowd: &mut Crowd, guests: &[(NodeId, u32)]) {
    for _ in 0..100 {
        for (node, number) in guests {
            crowd.say(*node, Link::host_address(), *number, 100);
        }
        crowd.simulation.run_for(Duration::from_millis(10));
    }
}

/// Returns how often the host heard each of two guests since the last call.
fn heard(crowd: &mut Crowd, host: NodeId) -> [u64; 2] {
    let heard = std::mem::take(&mut crowd.member_mut(host).machine_mut().heard);
    [FLOODER, HONEST].map(|number| heard.get(&number).copied().unwrap_or(0))
}

/// The host bans a guest by the address that its machine knows.
fn ban(crowd: &mut Crowd, host: NodeId, number: u32) {
    let now = crowd.simulation.now();
    let member = crowd.member_mut(host);
    let address = member.machine().addresses[&number];
    member.link_mut().ban(now, address);
}

#[test]
fn a_banned_guest_gets_nothing_through_and_does_not_come_back() {
    for direct in [false, true] {
        let mut crowd = Crowd::new(Limits::default());
        let host = crowd.open(SocketAddr::from((HOST, 4_000)), 1, direct);
        let flooder = crowd.join(public(1, 4_000), 1, direct);
        let honest = crowd.join(public(2, 4_000), 1, direct);
        talk(&mut crowd, &[(flooder, FLOODER), (honest, HONEST)]);
        assert!(heard(&mut crowd, host).iter().all(|count| *count >= 95));
        ban(&mut crowd, host, FLOODER);
        crowd.simulation.run_for(Duration::from_millis(100));
        heard(&mut crowd, host);
        assert_eq!(crowd.relay().stats().guests_banned, 1);
        // With the old id, with a new one from the same address, and from another port.
        let again = crowd.join(public(1, 4_001), 1, false);
        for node in [flooder, again] {
            let refused = LinkEvent::Refused(Refusal::Banned);
            assert!(crowd.events(node).contains(&refused));
            assert_eq!(crowd.member(node).link().state(), LinkState::Over);
        }
        talk(&mut crowd, &[(again, FLOODER), (honest, HONEST)]);
        let [banned, others] = heard(&mut crowd, host);
        assert_eq!(banned, 0);
        assert!(others >= 99, "{others}");
        // After an hour still.
        crowd.simulation.run_for(Duration::from_secs(3_600));
        let later = crowd.join(public(1, 5_000), 1, false);
        let refused = LinkEvent::Refused(Refusal::Banned);
        assert!(crowd.events(later).contains(&refused));
        // The room of another host takes whom it likes.
        crowd.open(SocketAddr::from(([198, 51, 100, 9], 4_000)), 2, false);
        let elsewhere = crowd.join(public(1, 6_000), 2, false);
        assert_eq!(crowd.member(elsewhere).link().state(), LinkState::Ready);
    }
}

#[test]
fn a_ban_is_for_all_of_an_ipv6_customer_and_nobody_else() {
    let mut crowd = Crowd::new(Limits::default());
    let host = crowd.open(SocketAddr::from((HOST, 4_000)), 1, false);
    let at =
        |customer, last| SocketAddr::from(([0x2001, 0xdb8, 0, customer, 0, 0, 0, last], 4_000));
    let flooder = crowd.join(at(1, 1), 1, false);
    // Housemates who are in already go as well: they may be the same person.
    let second = crowd.join(at(1, 2), 1, false);
    talk(&mut crowd, &[(flooder, FLOODER)]);
    ban(&mut crowd, host, FLOODER);
    crowd.simulation.run_for(Duration::from_millis(100));
    let third = crowd.join(at(1, 3), 1, false);
    for node in [flooder, second, third] {
        let refused = LinkEvent::Refused(Refusal::Banned);
        assert!(crowd.events(node).contains(&refused));
    }
    let neighbour = crowd.join(at(2, 1), 1, false);
    assert_eq!(crowd.member(neighbour).link().state(), LinkState::Ready);
}

#[test]
fn a_ban_that_is_lost_is_repeated() {
    let mut crowd = Crowd::new(Limits::default());
    let host = crowd.open(SocketAddr::from((HOST, 4_000)), 1, false);
    let flooder = crowd.join(public(1, 4_000), 1, false);
    talk(&mut crowd, &[(flooder, FLOODER)]);
    let relay = crowd.relay;
    crowd.simulation.network_mut().partition(relay, host);
    ban(&mut crowd, host, FLOODER);
    crowd.simulation.run_for(Duration::from_secs(1));
    assert_eq!(crowd.relay().guests(), 1);
    crowd.simulation.network_mut().heal_all();
    crowd.simulation.run_for(Duration::from_secs(1));
    assert_eq!(crowd.relay().guests(), 0);
    // It is not repeated for ever.
    let before = crowd.relay().stats().control_in;
    crowd.simulation.run_for(Duration::from_secs(4));
    assert!(crowd.relay().stats().control_in <= before + 2);
}

#[test]
fn a_guest_that_left_the_relay_for_the_direct_way_is_banned_by_its_address() {
    let mut crowd = Crowd::new(Limits::default());
    let host = crowd.open(SocketAddr::from((HOST, 4_000)), 1, true);
    let guest = crowd.join(public(1, 4_000), 1, true);
    talk(&mut crowd, &[(guest, FLOODER)]);
    crowd.member_mut(guest).link_mut().leave();
    talk(&mut crowd, &[(guest, FLOODER)]);
    assert_eq!(crowd.relay().guests(), 0);
    let now = crowd.simulation.now();
    let link = crowd.member_mut(host).link_mut();
    let known = link.ban(now, public(1, 4_000));
    assert_eq!(known.as_slice(), [public(1, 4_000)]);
    crowd.simulation.run_for(Duration::from_millis(100));
    let again = crowd.join(public(1, 4_001), 1, true);
    let refused = LinkEvent::Refused(Refusal::Banned);
    assert!(crowd.events(again).contains(&refused));
}
