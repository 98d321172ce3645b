//! The whole thing over real sockets on the loopback interface.

use std::net::SocketAddr;

use muse::deterministic::{DeterministicSession, MatchEvent};
use muse::drivers::relay::{Limits, Relay};
use muse::drivers::{Clock, Driver};
use muse::lockstep::samples::duel::{Buttons, Duel};
use muse::lockstep::samples::rts::{Order, Rts};
use muse::lockstep::{DeterministicGame, Frame, MatchConfig, Rng};
use muse::{Duration, Join, Listen, Refusal, UdpDriver, UdpOptions};

type Play<G> = DeterministicSession<G>;

/// Plays until everybody has confirmed so many frames, then compares the states.
fn play<G: DeterministicGame>(
    sessions: &mut [Play<G>],
    frames: u32,
    mut input: impl FnMut() -> G::Input,
    mut beside: impl FnMut(),
) -> Vec<MatchEvent<G::Event>> {
    let clock = Clock::start();
    let mut events = Vec::new();
    let reached = |session: &Play<G>| {
        let session = session.participant().session();
        session.is_none_or(|session| session.confirmed().min(session.frame()) > Frame(frames))
    };
    while !sessions.iter().all(reached) {
        assert!(
            clock.now() < muse::Instant::from_secs(60),
            "it does not go on"
        );
        beside();
        for session in &mut *sessions {
            let told = session.tick_within(Duration::from_millis(1), |_| input());
            events.extend(told.expect("the sockets work"));
        }
    }
    let (mut scratch, mut compared) = (Vec::new(), 0);
    for frame in (0..frames).map(Frame) {
        let states = sessions
            .iter()
            .filter_map(|session| session.participant().session()?.state_at(frame));
        let sums: Vec<u64> = states.map(|state| state.checksum(&mut scratch)).collect();
        assert!(
            sums.windows(2).all(|pair| pair[0] == pair[1]),
            "frame {frame}"
        );
        compared += sums.len() as u32;
    }
    assert!(compared > frames, "{compared} states were compared");
    events
}

fn duel_config() -> MatchConfig {
    MatchConfig::rollback(2).frame(Duration::from_millis(4))
}

fn host() -> Play<Duel> {
    Play::host(at_loopback(), duel_config(), Duel::new(3)).expect("a free port")
}

fn at_loopback() -> Listen {
    Listen::at("127.0.0.1:0").key(muse::new_key().expect("randomness"))
}

#[test]
fn a_duel_by_the_address_that_the_host_prints() {
    let host = host();
    let address = host.address().expect("a host has one").to_string();
    assert!(address.starts_with("muse://127.0.0.1:"), "{address}");
    let guest = Play::join(&address, duel_config(), Duel::new(3)).expect("a free port");
    let mut rng = Rng::new(1);
    let bot = || Buttons::from_bits(rng.next() as u8);
    let watcher = Play::watch(&address, duel_config(), Duel::new(3)).expect("a free port");
    let mut sessions = [host, guest, watcher];
    let events = play(&mut sessions, 250, bot, || ());
    assert!(
        events
            .iter()
            .any(|event| matches!(event, MatchEvent::Confirmed(..)))
    );
    let [mut host, guest, watcher] = sessions;
    assert_eq!(watcher.seat(), None);
    // A guest that goes says goodbye.
    drop(guest);
    let mut left = false;
    while !left {
        let told = host.tick(|_| Buttons::default()).expect("a socket");
        left = told
            .iter()
            .any(|event| matches!(event, MatchEvent::Left(..)));
    }
}

#[test]
fn a_duel_in_one_program_without_a_socket() {
    let host = Play::host(Listen::offline(), duel_config(), Duel::new(3));
    let mut host = host.expect("it needs no socket");
    let way = host.join_offline().expect("a host has one");
    let guest = Play::join(way, duel_config(), Duel::new(3)).expect("it needs no socket");
    let mut rng = Rng::new(1);
    let bot = || Buttons::from_bits(rng.next() as u8);
    let mut sessions = [host, guest];
    play(&mut sessions, 250, bot, || ());
    assert!(sessions[1].join_offline().is_none());
}

#[test]
fn a_strategy_game_through_a_server() {
    let config = MatchConfig::lockstep(3).frame(Duration::from_millis(5));
    let server = Play::<Rts>::serve(at_loopback(), config.clone());
    let server = server.expect("a free port");
    let address = server.address().expect("a server has one").to_string();
    let mut sessions = vec![server];
    for _ in 0..3 {
        let guest = Play::join(&address, config.clone(), Rts::new(3, 20, 2));
        sessions.push(guest.expect("a free port"));
    }
    let mut rng = Rng::new(1);
    let bot = || {
        let to = [rng.below(64) as u8, rng.below(64) as u8];
        vec![Order {
            from: [32, 32],
            radius: 64,
            to,
        }]
    };
    play(&mut sessions, 15, bot, || ());
    let state = sessions[1].state().expect("it plays");
    assert!(
        state.units.iter().any(|unit| unit.at != unit.goal),
        "units are on their way"
    );
}

#[test]
fn another_game_is_refused_when_it_connects() {
    let mut host = host();
    let address = host.address().expect("a host has one").to_string();
    let other = duel_config().delay(5);
    let mut guest = Play::join(&address, other, Duel::new(3)).expect("a free port");
    let mut told = Vec::new();
    while told.is_empty() {
        host.tick(|_| Buttons::default()).expect("a socket");
        told = guest.tick(|_| Buttons::default()).expect("a socket");
    }
    assert!(
        matches!(told[0], MatchEvent::Refused(Refusal::Schema { .. })),
        "{told:?}"
    );
    assert!(guest.is_over());
}

#[test]
fn a_host_decides_who_comes_in() {
    let host = Play::host(at_loopback().ask(), duel_config(), Duel::new(3));
    let mut host = host.expect("a free port");
    let address = host.address().expect("a host has one").to_string();
    let join = |name: &[u8]| {
        let join = Join::to(&address).hello(name);
        Play::join(join, duel_config(), Duel::new(3)).expect("a free port")
    };
    let mut eve = join(b"Eve");
    let mut told = Vec::new();
    while told.is_empty() {
        for event in host.tick(|_| Buttons::default()).expect("a socket") {
            if let MatchEvent::Asking(applicant) = event {
                assert_eq!(applicant.info.hello, b"Eve");
                host.deny(&applicant, "banned until Monday");
            }
        }
        told = eve.tick(|_| Buttons::default()).expect("a socket");
    }
    let denied = |event: &MatchEvent<_>| match event {
        MatchEvent::Refused(reason) => reason.to_string().contains("banned until Monday"),
        _ => false,
    };
    assert!(denied(&told[0]), "{told:?}");

    let mut ada = join(b"Ada");
    let mut has_asked = false;
    while ada.seat().is_none() {
        for event in host.tick(|_| Buttons::default()).expect("a socket") {
            if let MatchEvent::Asking(applicant) = event {
                assert_eq!(applicant.info.hello, b"Ada");
                has_asked = true;
                host.admit(&applicant);
            }
        }
        ada.tick(|_| Buttons::default()).expect("a socket");
    }
    assert!(has_asked);
}

#[test]
fn a_duel_in_a_relays_room() {
    let driver = UdpDriver::bind(
        SocketAddr::from(([127, 0, 0, 1], 0)),
        &UdpOptions::default(),
    );
    let mut driver = driver.expect("a free port");
    let clock = Clock::start();
    let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
    let place = driver.local_addr().expect("it is bound");
    let room = at_loopback().room(&place.to_string());
    let host = Play::host(room, duel_config(), Duel::new(3)).expect("a free port");
    let invitation = host.invitation().expect("it has a room").to_string();
    let mut sessions = vec![host];
    let mut turn = || driver.poll(clock.now(), &mut relay).expect("a socket");
    let mut open = false;
    while !open {
        turn();
        sessions[0].tick(|_| Buttons::default()).expect("a socket");
        open = sessions[0].poll_relay_event().is_some();
    }
    sessions.push(Play::join(&invitation, duel_config(), Duel::new(3)).expect("a free port"));
    let mut rng = Rng::new(1);
    play(
        &mut sessions,
        100,
        || Buttons::from_bits(rng.next() as u8),
        turn,
    );
    assert!(
        sessions[1].poll_relay_event().is_some(),
        "it came by the relay"
    );
}

#[test]
fn a_match_in_a_relays_room_outlives_its_host() {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut driver = UdpDriver::bind(loopback, &UdpOptions::default()).expect("a free port");
    let clock = Clock::start();
    let mut relay = Relay::danger_open(clock.now(), Limits::default(), [7; 32]);
    let place = driver.local_addr().expect("it is bound").to_string();
    let config = MatchConfig::lockstep(3).frame(Duration::from_millis(5));
    let game = || Rts::new(3, 20, 2);
    let host = Play::host(at_loopback().room(&place), config.clone(), game());
    let host = host.expect("a free port");
    let code = host.short_code().expect("it has a room").to_string();
    let mut guests: Vec<Play<Rts>> = Vec::new();
    let mut host = Some(host);
    let (mut changed, mut gone_at) = ([false; 2], None);
    let limit = clock.now() + Duration::from_secs(60);
    while !changed.iter().all(|it| *it) || guests.iter().any(|it| it.frame() < Frame(100)) {
        assert!(clock.now() < limit, "it does not go on");
        driver.poll(clock.now(), &mut relay).expect("a socket");
        let is_open = relay.rooms() == 1;
        if is_open && guests.len() < 2 {
            let join = Join::room(&place, &code);
            guests.push(Play::join(join, config.clone(), game()).expect("a free port"));
        }
        if let Some(host) = &mut host {
            host.tick_within(Duration::from_millis(1), |_| Vec::new())
                .expect("the socket works");
        }
        for (guest, changed) in guests.iter_mut().zip(&mut changed) {
            let told = guest.tick_within(Duration::from_millis(1), |_| Vec::new());
            let told = told.expect("the socket works");
            *changed |= told.contains(&MatchEvent::HostChanged);
        }
        let has_heir = guests.iter().any(|it| it.participant().is_heir());
        let settled = *gone_at.get_or_insert(clock.now()) + Duration::from_secs(1) < clock.now();
        if !has_heir {
            gone_at = None;
        } else if settled {
            // The program ends: it says goodbye to the others and to the relay.
            drop(host.take());
        }
    }
    let hosts = guests.iter().filter(|it| it.is_host()).count();
    assert_eq!(hosts, 1);
    let codes = guests.iter().filter_map(Play::short_code);
    let codes: Vec<String> = codes.map(|code| code.to_string()).collect();
    assert_eq!(codes, [code], "friends still come by the same code");
}
