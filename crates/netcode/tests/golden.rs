//! The bytes of rows and packets are the same for ever: both sides of a game may be of different versions and platforms.

use muse_netcode::coder::{References, RowCoder};
use muse_netcode::{ClientId, ClientView, KindOptions, Kinds, Receiver, Tick, World};
use muse_schema::{Column, ColumnKind, Predict, State};
use muse_wire::range::Encoder;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// FNV-1a, for what is too long to be written down.
fn digest<'a>(packets: impl Iterator<Item = &'a [u8]>) -> u64 {
    let bytes = packets.flatten();
    bytes.fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

fn columns() -> Vec<Column> {
    let mut columns: Vec<Column> = (0..3)
        .map(|axis| {
            let mut column = Column::new(format!("x{axis}"), ColumnKind::Number, -100_000, 100_000);
            column.predict = Predict::Linear;
            column
        })
        .collect();
    let mut flag = Column::new("awake", ColumnKind::Flag, 0, 1);
    flag.field = 1;
    columns.push(flag);
    let mut angle = Column::new("heading", ColumnKind::Angle, 0, 1_023);
    angle.field = 2;
    columns.push(angle);
    columns
}

/// A row that follows a path with corners; most rest for most of the time if asked to.
fn row(entity: i32, tick: i32, rests: bool) -> [i32; 5] {
    let moves = !rests || (entity + tick / 16) % 8 == 0;
    let time = if moves { tick } else { tick / 16 * 16 };
    let bend = (time - 20).max(0) * (entity % 5);
    [
        entity * 100 + time * 7,
        bend * bend % 5_000,
        time * (entity - 10),
        i32::from(moves),
        (entity * 50 + time * 9) & 1_023,
    ]
}

fn coded(rests: bool, ticks: i32) -> Vec<Vec<u8>> {
    let coder = RowCoder::new(&columns(), 60.0);
    let mut models = coder.models();
    let mut buffer = [0; 2_000];
    (6..ticks)
        .map(|tick| {
            models.start_packet();
            let mut encoder = Encoder::new(&mut buffer);
            for entity in 0..20 {
                let older = [2, 3, 5, 6].map(|age| row(entity, tick - age, rests));
                let references = [2, 3, 5, 6]
                    .iter()
                    .zip(&older)
                    .fold(References::new(), |references, (age, row)| {
                        references.with(*age, row)
                    });
                coder
                    .encode_row(
                        &mut encoder,
                        &mut models,
                        &references,
                        &row(entity, tick, rests),
                    )
                    .expect("a legal row");
            }
            let len = encoder.finish().expect("room for all");
            buffer[..len].to_vec()
        })
        .collect()
}

#[test]
fn rows_are_coded_to_the_same_bytes_for_ever() {
    let busy = coded(false, 60);
    let quiet = coded(true, 120);
    let found = [
        hex(&busy[0]),
        format!("{:016x}", digest(busy.iter().map(|packet| &packet[..]))),
        format!("{:016x}", digest(quiet.iter().map(|packet| &packet[..]))),
    ];
    assert_eq!(found, ROWS);
}

#[derive(State, Clone)]
struct Body {
    #[field(range = -1000.0..=1000.0, step = 0.001, velocity = velocity)]
    position: [f32; 3],
    #[field(rotation = 10)]
    rotation: [f32; 4],
    #[field(range = -100.0..=100.0, step = 0.01)]
    velocity: [f32; 3],
}

#[test]
fn packets_are_the_same_bytes_for_ever() {
    let declare = || {
        let mut kinds = Kinds::new().with_tick_rate(20.0);
        let kind = kinds
            .register::<Body>(KindOptions::new(1))
            .expect("a new id");
        (kinds, kind)
    };
    let (kinds, kind) = declare();
    let mut world = World::new(kinds);
    // Halves and quarters are exact in every arithmetic.
    let body = |entity: u16, tick: u16| {
        let (entity, tick) = (f32::from(entity), f32::from(tick));
        Body {
            position: [entity * 4.0 + tick * 0.25, tick * 0.5, -entity],
            rotation: [0.5, 0.5, 0.5, 0.5],
            velocity: [5.0, 10.0, 0.0],
        }
    };
    let entities: Vec<_> = (0..12)
        .map(|entity| world.spawn(kind, &body(entity, 0)).expect("room for it"))
        .collect();
    let mut view = ClientView::new(&world, ClientId(1));
    view.set_interest(entities.iter().map(|entity| (*entity, 1.0)));
    let mut receiver = Receiver::new(declare().0);
    receiver.set_game(0);
    let mut buffer = [0; 1_200];
    let mut packets = Vec::new();
    for tick in 1..20 {
        for (entity, id) in (0..).zip(&entities) {
            world
                .set(kind, *id, &body(entity, tick))
                .expect("it exists");
        }
        world.commit(Tick(u32::from(tick))).expect("a later tick");
        let len = receiver
            .emit_acknowledgement(&mut buffer)
            .expect("room for an answer");
        view.handle_acknowledgement(&buffer[..len])
            .expect("a legal answer");
        view.begin(&world, 10_000);
        while let Some(len) = view.poll_packet(&world, &mut buffer) {
            receiver
                .handle_packet(&buffer[..len])
                .expect("a legal packet");
            packets.push(buffer[..len].to_vec());
        }
    }
    let found = [
        hex(&packets[10]),
        format!("{:016x}", digest(packets.iter().map(|packet| &packet[..]))),
    ];
    assert_eq!(found, PACKETS);
}

/// Recorded when the format was settled; a change breaks every snapshot on the wire and every recording.
const ROWS: [&str; 3] = [
    "00f3ea4fbea2003bbf26471e249e3881a52c00cf52",
    "0f8ad940745a6bc2",
    "eaf6dd8f41c5fad1",
];
const PACKETS: [&str; 2] = [
    "010a000b000000000c00f3a21f05e786dc1800000000",
    "aab2e5a59bd93b6a",
];
