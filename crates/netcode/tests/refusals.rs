//! A mistake of the game, or a packet that does not fit, is refused with the error that names it, and leaves all as it was.

use muse_netcode::authority::{
    Authority, Proposal, ProposalLimits, Referee, Subject, Value, Violation,
};
use muse_netcode::coder::{References, RowCoder, RowError};
use muse_netcode::glam::Vec3;
use muse_netcode::inputs::{InputBuffer, InputBufferConfig, InputError};
use muse_netcode::prediction::{Game, StepContext};
use muse_netcode::receiver::{Receiver, Refused};
use muse_netcode::replication::ClientView;
use muse_netcode::session::{PacketError, Server, SessionConfig};
use muse_netcode::snapshot::FormatError;
use muse_netcode::world::{ClientId, Kind, KindError, KindOptions, Kinds, World, WorldError};
use muse_netcode::{EntityId, Tick};
use muse_schema::{Column, ColumnKind, State};
use muse_wire::bits::BitReader;
use muse_wire::range::Encoder;
use muse_wire::{Duration, Instant};
use std::sync::Arc;

#[derive(State, Clone, Debug, PartialEq)]
struct Ship {
    fuel: u8,
}

struct Rules;
impl Game for Rules {
    type Player = Ship;
    type Input = bool;
    type Event = ();
    fn step(&mut self, _: &mut Ship, _: &bool, _: &mut StepContext<'_, ()>) {}
}

fn kinds() -> (Kinds, Kind<Ship>) {
    let mut kinds = Kinds::new();
    let ship = kinds
        .register::<Ship>(KindOptions::new(1))
        .expect("a new id");
    (kinds, ship)
}

#[test]
fn a_kind_has_an_id_of_its_own() {
    let (mut kinds, ship) = kinds();
    let again = kinds.register::<Ship>(KindOptions::new(1));
    assert_eq!(again.map(|kind| kind.id()), Err(KindError::DuplicateId(1)));
    assert_eq!((kinds.find(1), kinds.find(2)), (Some(ship.id()), None));
}

#[test]
fn a_world_goes_forward_and_knows_its_entities() {
    let (kinds, ship) = kinds();
    let mut world = World::new(kinds);
    world.commit(Tick(5)).expect("the first tick");
    assert_eq!(world.commit(Tick(5)), Err(WorldError::OldTick));
    let entity = world.spawn(ship, &Ship { fuel: 90 }).expect("room for one");
    assert_eq!(world.remove(ship.id(), entity), Err(WorldError::MainPart));
    // A row is a state without its type.
    assert_eq!(world.row(ship.id(), entity), Some(&[90][..]));
    world
        .set_row(ship.id(), entity, &[80])
        .expect("a legal row");
    assert_eq!(world.state(ship, entity), Some(Ship { fuel: 80 }));
    world.despawn(entity).expect("it is there");
    assert_eq!(
        world.set(ship, entity, &Ship { fuel: 70 }),
        Err(WorldError::NoSuchEntity)
    );
}

#[test]
fn a_row_fits_its_columns() {
    let coder = RowCoder::new(&[Column::new("health", ColumnKind::Number, 0, 100)], 60.0);
    let (mut models, mut buffer) = (coder.models(), [0; 100]);
    let mut encoder = Encoder::new(&mut buffer);
    let mut encode =
        |row: &[i32]| coder.encode_row(&mut encoder, &mut models, &References::new(), row);
    assert_eq!(encode(&[101]), Err(RowError::OutOfRange));
    assert_eq!(encode(&[100, 0]), Err(RowError::Width));
    assert_eq!(encode(&[100]), Ok(()));
}

#[test]
fn a_receiver_takes_each_packet_of_its_game_once() {
    let mut world = World::new(kinds().0);
    world.set_game(7);
    world.commit(Tick(1)).expect("the first tick");
    let mut view = ClientView::new(&world, ClientId(1));
    view.begin(&world, 10_000);
    let mut buffer = [0; 1_200];
    let len = view
        .poll_packet(&world, &mut buffer)
        .expect("every tick has a packet");
    assert_eq!(
        (
            view.stats().rounds,
            view.stats().packets,
            view.stats().bytes
        ),
        (1, 1, len as u64)
    );
    let packet = &buffer[..len];
    let mut receiver = Receiver::new(Arc::clone(world.kinds()));
    assert_eq!(
        receiver.handle_packet(&[]),
        Err(Refused::Format(FormatError::End))
    );
    assert_eq!(receiver.handle_packet(packet), Err(Refused::OtherGame(7)));
    receiver.set_game(7);
    assert_eq!(receiver.handle_packet(packet), Ok(Tick(1)));
    assert_eq!(receiver.handle_packet(packet), Err(Refused::Duplicate));
    let stats = receiver.stats();
    assert_eq!((stats.packets, stats.packets_duplicate), (1, 1));
}

#[test]
fn a_view_counts_what_is_beyond_its_limit() {
    let (kinds, ship) = kinds();
    let mut world = World::new(kinds);
    let mut view = ClientView::new(&world, ClientId(1)).with_entities_max(2);
    let fleet = [1, 2, 3].map(|fuel| world.spawn(ship, &Ship { fuel }).expect("room for three"));
    view.set_interest(fleet.map(|entity| (entity, 1.0)));
    world.commit(Tick(1)).expect("the first tick");
    view.begin(&world, 10_000);
    assert_eq!(view.stats().interest_overflows, 1);
}

#[test]
fn a_server_names_what_is_wrong_with_a_packet() {
    let (kinds, ship) = kinds();
    let now = Instant::ZERO;
    let mut server = Server::<Rules>::new(
        SessionConfig::new(Duration::from_millis(20)),
        kinds,
        ship,
        now,
    );
    assert_eq!(
        server.handle_packet(now, ClientId(9), &[]),
        Err(PacketError::UnknownClient)
    );
    server
        .join(ClientId(9), &Ship { fuel: 90 })
        .expect("room for one");
    assert_eq!(
        server.handle_packet(now, ClientId(9), &[]),
        Err(PacketError::Header)
    );
}

#[test]
fn inputs_that_end_early_are_counted() {
    let mut buffer =
        InputBuffer::<u8>::new(InputBufferConfig::new(Duration::from_millis(20)), Tick(0));
    let refused = buffer.handle_packet(Instant::ZERO, &mut BitReader::new(&[1, 2]));
    assert!(matches!(refused, Err(InputError::Malformed(_))));
    assert_eq!(buffer.counters().refused, 1);
}

#[test]
fn a_referee_reports_the_share_that_it_refused() {
    const PLACE: Subject = Subject::Property(0);
    let limits = ProposalLimits::new().speed(10.0).tolerance(0.0);
    let mut referee = Referee::new().with(PLACE, Authority::Validated(limits));
    let (client, body) = (ClientId(1), EntityId::from_bits(9));
    referee.join(client);
    referee.own(client, body);
    referee.correct(Instant::ZERO, client, PLACE, body, Value::Place(Vec3::ZERO));
    let now = Instant::from_millis(100);
    for x in [15.0, 0.5] {
        let _ = referee.judge(
            now,
            client,
            &Proposal::new(PLACE, body).value(Value::Place(Vec3::X * x)),
        );
    }
    let report = referee.report(client).expect("it has joined");
    assert_eq!(
        (
            report.proposals(),
            report.count_of(Violation::Speed),
            report.share_refused()
        ),
        (2, 1, 0.5)
    );
    assert_eq!(report.last(), Some((now, Violation::Speed)));
    assert_eq!(
        report.to_string(),
        "1 of 2 refused; too fast 1 (worst 15.0 times)"
    );
}
