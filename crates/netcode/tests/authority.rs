//! Authority per message and property: what is allowed passes under jitter, what is not is dropped, counted
//! and reported, and a hostile client cannot make the server remember without bound.

use fastrand::Rng;
use glam::Vec3;
use muse_netcode::authority::{
    Authority, Judgement, Proposal, ProposalLimits, Referee, Subject, Value, Violation,
};
use muse_netcode::{ClientId, EntityId};
use muse_wire::Instant;

const DOOR: Subject = Subject::Message(1);
const CHAT: Subject = Subject::Message(2);
const FIRE: Subject = Subject::Message(3);
const JUMP: Subject = Subject::Message(4);
const POSITION: Subject = Subject::Property(0);
const ZOOM: Subject = Subject::Property(1);

const CLIENT: ClientId = ClientId(5);

fn body() -> EntityId {
    EntityId::from_bits(17)
}

fn referee() -> Referee {
    let fire = ProposalLimits::new().rate(10.0).reach(1.0);
    let chat = ProposalLimits::new().rate(1.0).burst(3.0).bytes_max(200);
    let mut referee = Referee::new()
        .with(
            DOOR,
            Authority::Server(ProposalLimits::new().reach(2.0).rate(5.0)),
        )
        .with(CHAT, Authority::Forwarded(chat))
        .with(FIRE, Authority::Validated(fire))
        .with(JUMP, Authority::Validated(ProposalLimits::new().once()))
        .with(
            POSITION,
            Authority::Validated(ProposalLimits::new().speed(10.0)),
        )
        .with(
            ZOOM,
            Authority::Validated(ProposalLimits::new().range(1.0, 8.0)),
        );
    assert!(referee.join(CLIENT));
    assert!(referee.own(CLIENT, body()));
    let start = Value::Place(Vec3::ZERO);
    assert!(referee.correct(Instant::ZERO, CLIENT, POSITION, body(), start));
    referee
}

fn walk(referee: &mut Referee, now: Instant, x: f32) -> Judgement {
    let proposal = Proposal::new(POSITION, body()).value(Value::Place(Vec3::new(x, 0.0, 0.0)));
    referee.judge(now, CLIENT, &proposal)
}

/// A player at full speed whose packets arrive up to 200 ms late is never refused; one at 1.5 times the speed is, and
/// gains no more than the tolerance.
#[test]
fn speed_is_measured_over_time() {
    for seed in 0..20 {
        let mut rng = Rng::with_seed(seed);
        for (factor, honest) in [(1.0, true), (1.15, true), (1.5, false)] {
            let mut referee = referee();
            let mut clock = 0;
            let mut accepted = 0.0f32;
            for step in 1..=600u64 {
                let sent = step * 20_000;
                // Packets keep their order, but bunch.
                clock = (sent + rng.u64(0..200_000)).max(clock);
                let x = if honest {
                    step as f32 * 0.02 * 10.0 * factor
                } else {
                    // A cheat that goes on from where it was believed.
                    accepted + 0.02 * 10.0 * factor
                };
                if walk(&mut referee, Instant::from_micros(clock), x) == Judgement::Accept {
                    accepted = x;
                }
            }
            let report = referee.report(CLIENT).expect("it joined");
            let seconds = clock as f32 / 1e6;
            assert!(
                accepted <= 10.0 * 1.2 * seconds + 0.01,
                "{accepted} in {seconds}"
            );
            if honest {
                assert_eq!(report.refused(), 0, "seed {seed}: {report}");
            } else {
                assert!(report.count_of(Violation::Speed) > 50, "{report}");
            }
        }
    }
}

#[test]
fn a_teleport_is_refused_and_the_client_is_told_where_it_is() {
    let mut referee = referee();
    let now = Instant::from_secs(60);
    assert_eq!(
        walk(&mut referee, now, 500.0),
        Judgement::Refuse(Violation::Speed)
    );
    let known = referee.value(CLIENT, POSITION, body());
    assert_eq!(known, Some(Value::Place(Vec3::ZERO)));
    // After a minute of silence it may catch up half a second.
    assert_eq!(walk(&mut referee, now, 6.0), Judgement::Accept);
    assert_eq!(
        walk(&mut referee, now, 7.0),
        Judgement::Refuse(Violation::Speed)
    );
    // The server may do what it likes.
    referee.correct(
        now,
        CLIENT,
        POSITION,
        body(),
        Value::Place(Vec3::new(900.0, 0.0, 0.0)),
    );
    assert_eq!(walk(&mut referee, now, 900.0), Judgement::Accept);
    let report = referee.report(CLIENT).expect("it joined");
    assert!(report.worst(Violation::Speed) > 80.0, "{report}");
    assert_eq!(report.last(), Some((now, Violation::Speed)));
    assert_eq!(
        report.to_string(),
        "2 of 4 refused; too fast 2 (worst 100.0 times)"
    );
}

#[test]
fn rate_of_fire_muzzle_and_jumps_are_checked() {
    let mut referee = referee();
    let shot = Proposal::new(FIRE, body()).between(Vec3::ZERO, Vec3::new(0.0, 1.1, 0.0));
    let mut fired = 0;
    for millisecond in 0..10_000 {
        let now = Instant::from_millis(millisecond);
        fired += u32::from(referee.judge(now, CLIENT, &shot) == Judgement::Accept);
    }
    // Ten a second, a fifth more, and two at once.
    assert!((118..=122).contains(&fired), "{fired}");
    let now = Instant::from_secs(20);
    let elsewhere = Proposal::new(FIRE, body()).between(Vec3::ZERO, Vec3::new(0.0, 1.3, 0.0));
    let refused = referee.judge(now, CLIENT, &elsewhere);
    assert_eq!(refused, Judgement::Refuse(Violation::Distance));
    let nowhere = Proposal::new(FIRE, body());
    let refused = referee.judge(now, CLIENT, &nowhere);
    assert_eq!(refused, Judgement::Refuse(Violation::Distance));
    let jump = Proposal::new(JUMP, body());
    assert_eq!(referee.judge(now, CLIENT, &jump), Judgement::Accept);
    assert_eq!(
        referee.judge(now, CLIENT, &jump),
        Judgement::Refuse(Violation::Again)
    );
    referee.release(CLIENT, JUMP, body());
    assert_eq!(referee.judge(now, CLIENT, &jump), Judgement::Accept);
}

#[test]
fn the_server_runs_levers_and_passes_chat_on() {
    let mut referee = referee();
    let now = Instant::from_secs(1);
    let near = Proposal::new(DOOR, body()).between(Vec3::ZERO, Vec3::X * 1.9);
    assert_eq!(referee.judge(now, CLIENT, &near), Judgement::Run);
    let far = Proposal::new(DOOR, body()).between(Vec3::ZERO, Vec3::X * 2.1);
    assert_eq!(
        referee.judge(now, CLIENT, &far),
        Judgement::Refuse(Violation::Distance)
    );
    assert_eq!(referee.judge(now, CLIENT, &near), Judgement::Run);
    assert_eq!(
        referee.judge(now, CLIENT, &near),
        Judgement::Refuse(Violation::Rate)
    );
    let line = Proposal::new(CHAT, body()).value(Value::Bytes(200));
    for _ in 0..3 {
        assert_eq!(referee.judge(now, CLIENT, &line), Judgement::Forward);
    }
    assert_eq!(
        referee.judge(now, CLIENT, &line),
        Judgement::Refuse(Violation::Rate)
    );
    let essay = Proposal::new(CHAT, body()).value(Value::Bytes(201));
    assert_eq!(
        referee.judge(now, CLIENT, &essay),
        Judgement::Refuse(Violation::Size)
    );
    for (zoom, allowed) in [(1.0, true), (8.0, true), (8.1, false), (0.0, false)] {
        let proposal = Proposal::new(ZOOM, body()).value(Value::Number(zoom));
        let accepted = referee.judge(now, CLIENT, &proposal) == Judgement::Accept;
        assert_eq!(accepted, allowed, "{zoom}");
    }
}

#[test]
fn what_is_foreign_or_nonsense_is_refused() {
    let mut referee = referee();
    let now = Instant::from_secs(1);
    let refuse = |referee: &mut Referee, client, proposal: Proposal, violation| {
        let judged = referee.judge(now, client, &proposal);
        assert_eq!(judged, Judgement::Refuse(violation), "{proposal:?}");
    };
    let proposal = Proposal::new(JUMP, body());
    refuse(&mut referee, ClientId(6), proposal, Violation::Stranger);
    let other = EntityId::from_bits(18);
    refuse(
        &mut referee,
        CLIENT,
        Proposal::new(JUMP, other),
        Violation::NotTheOwner,
    );
    let unknown = Subject::Message(99);
    refuse(
        &mut referee,
        CLIENT,
        Proposal::new(unknown, body()),
        Violation::Undeclared,
    );
    for bad in [f32::NAN, f32::INFINITY, 1e30] {
        let place = Value::Place(Vec3::new(0.0, bad, 0.0));
        refuse(
            &mut referee,
            CLIENT,
            Proposal::new(POSITION, body()).value(place),
            Violation::NotANumber,
        );
        let muzzle = Proposal::new(FIRE, body()).between(Vec3::ZERO, Vec3::splat(bad));
        refuse(&mut referee, CLIENT, muzzle, Violation::NotANumber);
        assert!(!referee.correct(now, CLIENT, POSITION, body(), place));
    }
    let number = Proposal::new(POSITION, body()).value(Value::Number(1.0));
    refuse(&mut referee, CLIENT, number, Violation::Undeclared);
    // Time that goes backwards gives nothing.
    assert_eq!(
        walk(&mut referee, Instant::from_secs(10), 6.0),
        Judgement::Accept
    );
    let earlier = walk(&mut referee, Instant::ZERO, 7.0);
    assert_eq!(earlier, Judgement::Refuse(Violation::Speed));
    referee.disown(CLIENT, body());
    refuse(&mut referee, CLIENT, proposal, Violation::NotTheOwner);
    let suspects: Vec<ClientId> = referee.suspects(0.5, 5).map(|(client, _)| client).collect();
    assert_eq!(suspects, [CLIENT]);
    assert!(
        referee
            .leave(CLIENT)
            .is_some_and(|report| report.refused() > 5)
    );
    assert_eq!(referee.report(CLIENT), None);
}

#[test]
fn memory_is_bounded() {
    let mut referee = Referee::new();
    for subject in 0..10 {
        referee = referee.with(
            Subject::Message(subject),
            Authority::Server(ProposalLimits::new()),
        );
    }
    assert!(referee.join(CLIENT));
    let owned = (0..10_000).filter(|bits| referee.own(CLIENT, EntityId::from_bits(*bits)));
    assert_eq!(owned.count(), Referee::OWNED_MAX);
    let mut run = 0;
    for entity in 0..Referee::OWNED_MAX as u32 {
        for subject in 0..10 {
            let proposal = Proposal::new(Subject::Message(subject), EntityId::from_bits(entity));
            run += usize::from(referee.judge(Instant::ZERO, CLIENT, &proposal) == Judgement::Run);
        }
    }
    assert_eq!(run, Referee::STATES_MAX);
    let joined = (100..10_000).filter(|number| referee.join(ClientId(*number)));
    assert_eq!(joined.count(), Referee::CLIENTS_MAX - 1);
}
