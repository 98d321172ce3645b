//! The entities that one client is told of, and the cost of finding them.

use glam::{Vec2, Vec3};
use muse_netcode::EntityId;
use muse_netcode::interest::{
    Awareness, Extent, Interest, InterestConfig, Medium, Observer, ObserverId, Presence,
};

use crate::plot::*;

pub(super) fn plot() -> Plot {
    let map = Map::run(700, 320.0);
    let of = |awareness: Option<Awareness>| {
        let found = map.found.iter();
        let found = found.filter(move |(_, level)| *level == awareness);
        found.map(|(place, _)| *place)
    };
    let panel = Panel::new(("x (m)", -95.0, 95.0), ("z (m)", -25.0, 70.0))
        .tall(356)
        .with("focus of sight", Grey, Line, map.cone())
        .with("focus of hearing", Grey, Dashed, circle(HEARING))
        .with("not told", Grey, Specks, of(None))
        .with("faint", Purple, Dots, of(Some(Awareness::Faint)))
        .with("partial", Orange, Dots, of(Some(Awareness::Partial)))
        .with("full awareness", Green, Dots, of(Some(Awareness::Full)))
        .with("the observer, looking up", Red, Crosses, [(0.0, 0.0)]);
    let sizes = [250, 500, 1_000, 2_000, 4_000, 8_000];
    let costs = sizes.map(|count| Map::run(count, (f64::from(count) / 700.0).sqrt() * 320.0));
    let cost = |of: fn(&Map) -> f64| {
        let sizes = sizes.iter().zip(&costs);
        sizes.map(move |(size, map)| (f64::from(*size), of(map)))
    };
    Plot::new(
        "Interest: what a client is told of",
        "Everybody walks about for ten seconds. What is in the cone of sight or near enough to be heard is told, the closer the more urgently; the rest never leaves \
         the server. Below: in a larger world of the same density, an update looks at no more entities than in a small one.",
    )
    .panel(panel)
    .panel(
        Panel::new(
            ("entities in the world", 0.0, 8_000.0),
            ("entities for an update", 0.0, 300.0),
        )
        .tall(150)
        .with("measured", Blue, Line, cost(|map| map.measured))
        .with("told of", Green, Line, cost(|map| map.told)),
    )
}

struct Map {
    found: Vec<((f64, f64), Option<Awareness>)>,
    measured: f64,
    told: f64,
}

impl Map {
    fn run(count: u32, edge: f64) -> Self {
        let mut random = fastrand::Rng::with_seed(11);
        let mut interest = Interest::new(InterestConfig::default());
        let mut walkers: Vec<(EntityId, Vec3, Vec3)> = (0..count)
            .map(|number| {
                let mut draw = |span: f64| ((random.f64() - 0.5) * span) as f32;
                let place = Vec3::new(draw(edge), 0.0, draw(edge));
                (
                    EntityId::from_bits(number),
                    place,
                    Vec3::new(draw(8.0), 0.0, draw(8.0)),
                )
            })
            .collect();
        for (entity, place, _) in &walkers {
            // Every third makes a noise.
            let presence = match entity.index() % 3 {
                0 => Presence::new(*place).nimbus(Medium::HEARING, Extent::sphere(60.0)),
                _ => Presence::new(*place),
            };
            interest.place(*entity, presence).expect("a sane place");
        }
        let sight = Extent::sphere(SIGHT).cone(CONE).near(NEAR);
        let observer = Observer::new(Vec3::ZERO)
            .facing(Vec3::Z)
            .focus(Medium::SIGHT, sight)
            .focus(Medium::HEARING, Extent::sphere(HEARING));
        let player = ObserverId(0);
        interest.observe(player, observer).expect("a sane place");
        let mut told = 0;
        for _ in 0..TICKS {
            for (entity, place, velocity) in &mut walkers {
                *place += *velocity * 0.02;
                let moved = interest.move_to(*entity, *place, *velocity);
                moved.expect("it was placed");
            }
            let view = interest
                .update(player, |_, _, _| true)
                .expect("it was added");
            told += view.entries().len();
        }
        let view = interest.view(player).expect("it was added");
        let found = walkers.iter().map(|(entity, place, _)| {
            let awareness = view.entry(*entity).map(|entry| entry.awareness);
            ((f64::from(place.x), f64::from(place.z)), awareness)
        });
        let inside = |((x, z), _): &((f64, f64), _)| x.abs() < 95.0 && (-25.0..70.0).contains(z);
        Self {
            found: found.filter(inside).collect(),
            measured: interest.counts().measured as f64 / f64::from(TICKS),
            told: told as f64 / f64::from(TICKS),
        }
    }

    /// The outline of what can be seen.
    fn cone(&self) -> Vec<(f64, f64)> {
        let at = |radius: f32, angle: f32| {
            let way = Vec2::from_angle(angle) * radius;

            (f64::from(way.y), f64::from(way.x))
        };
        let arc = (0..=40).map(|part| at(SIGHT, CONE * (part as f32 / 20.0 - 1.0)));
        let rest = core::f32::consts::PI - CONE;
        let back = (0..=40).map(|part| at(NEAR, CONE + rest * 2.0 * part as f32 / 40.0));
        let first = at(SIGHT, -CONE);
        arc.chain(back).chain([first]).collect()
    }
}

fn circle(radius: f32) -> impl Iterator<Item = (f64, f64)> {
    (0..=72).map(move |part| {
        let angle = part as f32 / 72.0 * core::f32::consts::TAU;
        let way = Vec2::from_angle(angle) * radius;
        (f64::from(way.y), f64::from(way.x))
    })
}

const SIGHT: f32 = 65.0;
const CONE: f32 = 0.7;
const NEAR: f32 = 8.0;
const HEARING: f32 = 22.0;
const TICKS: u32 = 500;
