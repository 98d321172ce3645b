//! Hosts on the local network, over real sockets.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use muse_drivers::{LanAnnouncer, LanFinder};
use muse_relay::lan::{Advert, GROUP, PORT};
use muse_relay::packet::is_local;

/// True if questions leave from a private address: in a network without one, as in some containers, nobody may answer.
fn has_local_network() -> bool {
    let route = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
        socket.connect((GROUP, PORT))?;
        socket.local_addr()
    });
    route.is_ok_and(|from| is_local(&from))
}

#[test]
fn a_host_on_this_machine_is_found() {
    if !has_local_network() {
        eprintln!("skipped: this machine is in no local network");
        return;
    }
    // Nobody else plays this.
    let protocol = u64::from(std::process::id()) << 32 | 0x6C61_6E00;
    let advert = |name: &str| Advert {
        protocol,
        port: 9_000,
        host_key: [5; 32],
        name: name.to_owned(),
    };
    let mut announcer = LanAnnouncer::bind(advert("first")).expect("the port can be shared");
    let mut finder = LanFinder::bind(protocol).expect("a free port");
    let began = Instant::now();
    let mut found = Vec::new();
    while found.is_empty() && began.elapsed() < Duration::from_secs(20) {
        announcer.poll().expect("a socket");
        found = finder.poll().expect("a socket").to_vec();
    }
    assert_eq!(
        found.len(),
        1,
        "asked through the group and by broadcast, found once"
    );
    assert_eq!(found[0].advert, advert("first"));
    assert_eq!(found[0].address.port(), 9_000);
    assert!(is_local(&found[0].address));
}
