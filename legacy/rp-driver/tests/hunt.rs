//! The example `hunt` over real sockets: a bounded number of ticks, played by bots, without windows.

#[path = "../examples/hunt/messages.rs"]
mod messages;
#[path = "../examples/hunt/picture.rs"]
mod picture;
#[path = "../examples/hunt/rules.rs"]
mod rules;
#[path = "../examples/hunt/session.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod session;

use std::net::{IpAddr, Ipv4Addr};

use muse_rp::FailReason;
use muse_wire::Duration;
use rules::{Field, ROUND_TICKS, TICKS_A_SECOND};
use session::{HuntGuest, HuntHost, OWN, Stage};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// A round, and what it takes to join and to hear of the end.
const TICKS_MAX: u32 = 3 * ROUND_TICKS;

fn points(field: &Field) -> Vec<(u8, u16)> {
    let players = field.players.iter();
    players.map(|(id, player)| (*id, player.points)).collect()
}

#[test]
fn a_round_ends_with_the_same_points_for_everybody() {
    let mut host = HuntHost::bind(HERE, 0, 7).expect("sockets");
    let address = (HERE, host.port().expect("bound")).into();
    let mut guests = [(); 2].map(|()| HuntGuest::join(HERE, address).expect("sockets"));
    let mut seen = 0;
    for _ in 0..TICKS_MAX {
        host.tick(&host.field.bot(OWN)).expect("our sockets work");
        for guest in &mut guests {
            let input = guest.own.map(|own| guest.field.bot(own));
            let input = input.unwrap_or_default();
            guest.tick(&input).expect("our sockets work");
            seen = seen.max(guest.field.enemies.len());
        }
        let wait = guests[0].driver().wait(Duration::from_millis(1));
        wait.expect("our sockets work");
        if guests.iter().all(|guest| guest.stage == Stage::Over) {
            break;
        }
    }
    let result = points(&host.field);
    assert_eq!(result.len(), 3);
    assert!(result.iter().all(|(_, points)| *points > 0), "{result:?}");
    assert!(seen > 1, "guests see enemies");
    for guest in &guests {
        assert_eq!(guest.stage, Stage::Over);
        assert_eq!(points(&guest.field), result);
        assert!(guest.field.enemies.keys().eq(host.field.enemies.keys()));
    }
    // Everybody is drawn, and the players of both pictures are the same.
    let pictures = [
        picture::draw(&host.field, None),
        picture::draw(&guests[0].field, None),
    ];
    for picture in &pictures {
        let colours: std::collections::BTreeSet<&u32> = picture.iter().collect();
        assert!(colours.len() >= 6, "background, bar, white, three players");
    }
}

#[test]
fn a_guest_hears_that_the_host_is_gone_and_that_nobody_is_there() {
    let mut host = HuntHost::bind(HERE, 0, 7).expect("sockets");
    let address = (HERE, host.port().expect("bound")).into();
    let mut guest = HuntGuest::join(HERE, address).expect("sockets");
    for _ in 0..TICKS_MAX {
        host.tick(&rules::Input::default())
            .expect("our sockets work");
        guest
            .tick(&rules::Input::default())
            .expect("our sockets work");
        if guest.stage == Stage::Playing {
            break;
        }
        let wait = guest.driver().wait(Duration::from_millis(1));
        wait.expect("our sockets work");
    }
    assert_eq!(guest.stage, Stage::Playing);
    host.driver().close().expect("our sockets work");
    drop(host);
    for _ in 0..TICKS_A_SECOND {
        guest
            .driver()
            .wait(Duration::from_millis(1))
            .expect("our sockets work");
        guest
            .tick(&rules::Input::default())
            .expect("our sockets work");
    }
    assert_eq!(guest.stage, Stage::Lost(muse_rp::EndReason::ByPeer));
    assert_ne!(guest.stage, Stage::Refused(FailReason::Unanswered));
}
