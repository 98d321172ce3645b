//! Interest: the sets equal those of a plain search over all pairs, the cost does not grow with what cannot be
//! perceived, and nonsense is refused. `MUSE_SEEDS` runs more seeds.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use glam::Vec3;
use muse_netcode::EntityId;
use muse_netcode::interest::{
    Adapter, Awareness, Extent, Interest, InterestConfig, InterestError, Medium, Observer,
    ObserverId, Plane, Presence,
};

/// An extent as the test knows it.
#[derive(Clone, Copy)]
struct Range {
    radius: f32,
    leave: f32,
    full: f32,
    edge: f32,
    near: f32,
    half_angle: Option<f32>,
}

impl Range {
    fn draw(rng: &mut Rng) -> Self {
        let radius = [5.0, 40.0, 120.0, 700.0][rng.u32(0..4) as usize] * (0.5 + rng.f32());
        Self {
            radius,
            leave: radius * (1.0 + rng.f32() * 0.3),
            full: radius * rng.f32(),
            edge: 0.05 + rng.f32() * 0.5,
            near: radius * 0.2 * rng.f32(),
            half_angle: (rng.u8(0..3) == 0).then(|| 0.3 + rng.f32() * 2.0),
        }
    }

    fn extent(&self) -> Extent {
        let extent = Extent::sphere(self.radius)
            .leave(self.leave)
            .full(self.full)
            .edge(self.edge)
            .near(self.near);
        self.half_angle.map_or(extent, |angle| extent.cone(angle))
    }

    /// In double precision; `None` when rounding could decide.
    fn strength(&self, offset: Vec3, facing: Vec3, held: bool, scale: f64) -> Option<f64> {
        let (offset, facing) = (offset.to_array(), facing.to_array());
        let length = |v: [f32; 3]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let distance = length(offset);
        let limit = scale * f64::from(if held { self.leave } else { self.radius });
        if close(distance, limit) {
            return None;
        }
        if distance > limit {
            return Some(0.0);
        }
        let near = f64::from(self.near) * scale;
        if let Some(angle) = self.half_angle
            && length(facing) > 0.0
        {
            let dot: f64 = (0..3)
                .map(|i| f64::from(offset[i]) * f64::from(facing[i]))
                .sum();
            let between = (dot / distance / length(facing)).clamp(-1.0, 1.0).acos();
            let angle = f64::from(angle) + if held { 0.15 } else { 0.0 };
            if close(distance, near) || (between - angle).abs() < 1e-3 {
                return None;
            }
            if distance > near && between > angle {
                return Some(0.0);
            }
        }
        let (full, radius) = (f64::from(self.full) * scale, f64::from(self.radius) * scale);
        let share = ((distance - full) / (radius - full)).clamp(0.0, 1.0);
        Some(1.0 - share * (1.0 - f64::from(self.edge)))
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-4 * (1.0 + a.abs() + b.abs())
}

struct Thing {
    id: EntityId,
    position: Vec3,
    facing: Vec3,
    kind: u16,
    layers: u32,
    region: Option<u32>,
    always: bool,
    bodies: [Option<(f32, Range)>; 2],
}

struct Watcher {
    eye: Vec3,
    facing: Vec3,
    layers: u32,
    senses: [Option<(f32, Range)>; 2],
    kinds: [u16; 2],
    refused: u16,
    region: u32,
    pinned: EntityId,
    /// The entities that it perceived before, by medium.
    held: BTreeMap<EntityId, u8>,
    set: BTreeSet<EntityId>,
}

fn id(index: u32, generation: u32) -> EntityId {
    EntityId::new(index, generation).expect("small")
}

fn place(rng: &mut Rng, size: f32) -> Vec3 {
    Vec3::from_array(std::array::from_fn(|_| (rng.f32() - 0.5) * size))
}

fn seeds(default: u64) -> u64 {
    let number = std::env::var("MUSE_SEEDS").ok();
    number.and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn draw_thing(rng: &mut Rng, id: EntityId) -> Thing {
    let mut body =
        |share| (rng.u8(0..4) < share).then(|| (20.0 + rng.f32() * 400.0, Range::draw(rng)));
    let bodies = [body(3), body(2)];
    Thing {
        id,
        position: place(rng, 600.0),
        facing: place(rng, 2.0).normalize_or_zero(),
        kind: rng.u16(0..6),
        layers: 1 << rng.u32(0..2) | u32::from(rng.bool()),
        region: rng.bool().then(|| rng.u32(0..5)),
        always: rng.u8(0..30) == 0,
        bodies,
    }
}

const MEDIA: [Medium; 2] = [Medium::SIGHT, Medium::HEARING];

fn presence(thing: &Thing) -> Presence {
    let mut presence = Presence::new(thing.position)
        .facing(thing.facing)
        .kind(thing.kind)
        .layers(thing.layers)
        .always(thing.always)
        .without(Medium::SIGHT);
    if let Some(region) = thing.region {
        presence = presence.region(region);
    }
    for (medium, body) in MEDIA.into_iter().zip(&thing.bodies) {
        if let Some((aura, nimbus)) = body {
            presence = presence.nimbus(medium, nimbus.extent()).aura(medium, *aura);
        }
    }
    presence
}

fn observer(watcher: &Watcher) -> Observer {
    let mut observer = Observer::new(watcher.eye)
        .facing(watcher.facing)
        .layers(watcher.layers)
        .subscribe_region(watcher.region)
        .refuse_kind(watcher.refused)
        .pin(watcher.pinned);
    for kind in watcher.kinds {
        observer = observer.subscribe_kind(kind);
    }
    for (medium, sense) in MEDIA.into_iter().zip(&watcher.senses) {
        if let Some((aura, focus)) = sense {
            observer = observer.focus(medium, focus.extent()).aura(medium, *aura);
        }
    }
    observer.occluded(Medium::SIGHT, true)
}

/// A wall that is somewhere for every pair.
fn sees(eye: Vec3, position: Vec3) -> bool {
    (eye.x * 7.0 + position.z * 3.0).rem_euclid(10.0) > 2.0
}

/// The media through which a watcher perceives a thing; `None` when rounding could decide.
fn perceive(watcher: &Watcher, thing: &Thing) -> Option<u8> {
    let mut media = 0;
    let offset = thing.position - watcher.eye;
    for (index, medium) in MEDIA.into_iter().enumerate() {
        let (Some((own, focus)), Some((other, nimbus))) =
            (watcher.senses[index], thing.bodies[index])
        else {
            continue;
        };
        let held = watcher
            .held
            .get(&thing.id)
            .is_some_and(|held| held & medium.bit() != 0);
        let touch = f64::from(own + other) * if held { 1.1 } else { 1.0 };
        let distance = f64::from(offset.length());
        if close(distance, touch) {
            return None;
        }
        let focus = focus.strength(offset, watcher.facing, held, 1.0)?;
        let nimbus = nimbus.strength(-offset, thing.facing, held, 1.0)?;
        let open = medium != Medium::SIGHT || sees(watcher.eye, thing.position);
        if distance < touch && focus * nimbus > 0.0 && open {
            media |= medium.bit();
        }
    }
    Some(media)
}

#[test]
fn sets_equal_a_search_over_all_pairs() {
    let (mut compared, mut members, mut doubtful) = (0u64, 0u64, 0u64);
    for seed in 0..seeds(60) {
        let mut rng = Rng::with_seed(seed);
        let plane = [Plane::Xz, Plane::Xy, Plane::Xyz][seed as usize % 3];
        let cell = [4.0, 32.0, 300.0][seed as usize / 3 % 3];
        let mut interest = Interest::new(InterestConfig::default().plane(plane).cell(cell));
        let mut things: Vec<Thing> = (0..150).map(|i| draw_thing(&mut rng, id(i, 0))).collect();
        for thing in &things {
            interest.place(thing.id, presence(thing)).expect("sane");
        }
        let mut watchers: Vec<Watcher> = (0..4).map(|_| draw_watcher(&mut rng)).collect();
        for _ in 0..12 {
            change(&mut rng, &mut interest, &mut things);
            for (number, watcher) in watchers.iter_mut().enumerate() {
                watcher.eye += place(&mut rng, 20.0);
                watcher.facing = place(&mut rng, 2.0).normalize_or_zero();
                let number = ObserverId(number as u32);
                interest.observe(number, observer(watcher)).expect("sane");
                let view = interest
                    .update(number, |_, position, _| sees(watcher.eye, position))
                    .expect("known");
                let old = std::mem::take(&mut watcher.set);
                let mut held = BTreeMap::new();
                for thing in &things {
                    let entry = view.entry(thing.id);
                    let perceived = perceive(watcher, thing);
                    compared += 1;
                    doubtful += u64::from(perceived.is_none());
                    let media = perceived.unwrap_or(entry.map_or(0, |entry| entry.media));
                    let pinned = thing.id == watcher.pinned;
                    let named = pinned
                        || thing.always
                        || watcher.kinds.contains(&thing.kind)
                        || thing.region == Some(watcher.region);
                    let open = thing.layers & watcher.layers != 0
                        && (pinned || thing.kind != watcher.refused);
                    let expected = open && (named || media != 0);
                    assert_eq!(entry.is_some(), expected, "seed {seed}, {:?}", thing.id);
                    if let Some(entry) = entry {
                        members += 1;
                        assert_eq!(entry.media, media, "seed {seed}, {:?}", thing.id);
                        assert!(entry.weight > 0.0 && entry.weight <= 1.0);
                        watcher.set.insert(thing.id);
                        held.insert(thing.id, media);
                    }
                }
                watcher.held = held;
                assert_eq!(view.entries().len(), watcher.set.len(), "seed {seed}");
                let entered: BTreeSet<EntityId> = view.entered().iter().copied().collect();
                let left: BTreeSet<EntityId> = view.left().iter().copied().collect();
                assert_eq!(entered, &watcher.set - &old, "seed {seed}");
                assert_eq!(left, &old - &watcher.set, "seed {seed}");
            }
        }
    }
    assert!(members * 20 > compared, "{members} of {compared}");
    assert!(doubtful * 200 < compared, "{doubtful} of {compared}");
}

fn draw_watcher(rng: &mut Rng) -> Watcher {
    let mut sense = || (rng.u8(0..5) > 0).then(|| (20.0 + rng.f32() * 400.0, Range::draw(rng)));
    let senses = [sense(), sense()];
    Watcher {
        eye: place(rng, 400.0),
        facing: Vec3::ZERO,
        layers: 1 << rng.u32(0..2),
        senses,
        kinds: [5, rng.u16(250..255)],
        refused: 4,
        region: rng.u32(0..5),
        pinned: id(rng.u32(0..150), 0),
        held: BTreeMap::new(),
        set: BTreeSet::new(),
    }
}

/// Moves many things, replaces some by a new generation or by new properties, and takes some away.
fn change(rng: &mut Rng, interest: &mut Interest, things: &mut Vec<Thing>) {
    for thing in things.iter_mut() {
        match rng.u8(0..20) {
            0..=9 => {
                thing.position += place(rng, 30.0);
                thing.facing = place(rng, 2.0).normalize_or_zero();
                let moved = interest.move_to(thing.id, thing.position, thing.facing);
                moved.expect("it is there");
            }
            10 => {
                let generation = thing.id.generation() + u32::from(rng.bool());
                *thing = draw_thing(rng, id(thing.id.index(), generation));
                interest.place(thing.id, presence(thing)).expect("sane");
            }
            _ => {}
        }
    }
    if things.len() > 100 {
        let gone = things.swap_remove(rng.u32(0..things.len() as u32) as usize);
        assert!(interest.remove(gone.id));
        assert!(!interest.remove(gone.id));
    }
}

/// 10,000 entities, 64 clients, about 200 visible to each (N2), and the same with ten times the entities elsewhere.
#[test]
fn the_cost_grows_with_what_is_visible() {
    let run = |entities: u32| {
        let mut rng = Rng::with_seed(7);
        // The same density everywhere: more entities make a larger world.
        let side = (entities as f32).sqrt() * 10.0;
        let config = InterestConfig::default().entities_max(1 << 20).cell(32.0);
        let mut interest = Interest::new(config);
        for index in 0..entities {
            let position = Vec3::new(rng.f32() * side, 0.0, rng.f32() * side);
            interest
                .place(id(index, 0), Presence::new(position))
                .expect("sane");
        }
        let mut visible = 0;
        for client in 0..64 {
            let eye = Vec3::new(
                side * (0.2 + 0.6 * rng.f32()),
                0.0,
                side * (0.2 + 0.6 * rng.f32()),
            );
            let observer = Observer::new(eye).focus(Medium::SIGHT, Extent::sphere(80.0));
            interest
                .observe(ObserverId(client), observer)
                .expect("sane");
            let view = interest
                .update(ObserverId(client), |_, _, _| true)
                .expect("known");
            visible += view.entries().len() as u64;
        }
        (visible, interest.counts())
    };
    let (visible, counts) = run(10_000);
    assert!((150 * 64..250 * 64).contains(&visible), "{visible}");
    let all_pairs = 64 * 10_000;
    println!("10,000 entities, 64 clients: {visible} visible, {counts:?}, {all_pairs} pairs");
    assert!(counts.measured < visible * 5 / 2, "{counts:?}");
    assert!(counts.judged < visible * 3 / 2, "{counts:?}");
    assert!(counts.cells <= 64 * 49, "{counts:?}");
    assert_eq!(counts.callbacks, 0);
    let (visible_large, counts_large) = run(100_000);
    println!("100,000 entities, 64 clients: {visible_large} visible, {counts_large:?}");
    assert!(
        counts_large.measured < visible_large * 5 / 2,
        "{counts_large:?}"
    );
}

/// A loud few among a silent many: a wide focus does not make everyone within it cost something.
#[test]
fn what_is_only_felt_nearby_costs_nothing_from_afar() {
    let mut rng = Rng::with_seed(3);
    let mut interest = Interest::new(InterestConfig::default().cell(8.0));
    for index in 0..10_000 {
        let reach = if index % 100 == 0 { 900.0 } else { 6.0 };
        let presence = Presence::new(place(&mut rng, 1_000.0) * Vec3::new(1.0, 0.0, 1.0))
            .without(Medium::SIGHT)
            .nimbus(Medium::HEARING, Extent::sphere(reach));
        interest.place(id(index, 0), presence).expect("sane");
    }
    let observer = Observer::new(Vec3::ZERO).focus(Medium::HEARING, Extent::sphere(900.0));
    interest.observe(ObserverId(0), observer).expect("sane");
    let view = interest
        .update(ObserverId(0), |_, _, _| true)
        .expect("known");
    assert!(view.entries().len() >= 95, "{}", view.entries().len());
    assert!(interest.counts().measured < 300, "{:?}", interest.counts());
}

#[test]
fn awareness_feeds_the_weight() {
    let mut interest = Interest::new(InterestConfig::default());
    let focus = Extent::sphere(100.0).full(10.0).edge(0.1);
    for (index, x) in [5.0, 60.0, 99.0].into_iter().enumerate() {
        let presence = Presence::new(Vec3::new(x, 0.0, 0.0)).importance(2.0);
        interest.place(id(index as u32, 0), presence).expect("sane");
    }
    let observer = Observer::new(Vec3::ZERO).focus(Medium::SIGHT, focus);
    interest.observe(ObserverId(0), observer).expect("sane");
    let view = interest
        .update(ObserverId(0), |_, _, _| true)
        .expect("known");
    let levels: Vec<Awareness> = view.entries().iter().map(|entry| entry.awareness).collect();
    assert_eq!(
        levels,
        [Awareness::Full, Awareness::Partial, Awareness::Faint]
    );
    let weights: Vec<f32> = view.entries().iter().map(|entry| entry.weight).collect();
    assert!(
        (weights[0] - 2.0).abs() < 1e-5 && (weights[1] - 1.0).abs() < 1e-5,
        "{weights:?}"
    );
    assert!((weights[2] - 0.22).abs() < 1e-5, "{weights:?}");
}

#[test]
fn adapters_carry_a_voice_and_silence_a_room() {
    let mut interest = Interest::new(InterestConfig::default());
    let (speaker, crowd) = (id(0, 0), id(1, 0));
    for entity in [speaker, crowd] {
        let presence = Presence::new(Vec3::new(50.0 + entity.index() as f32, 0.0, 0.0))
            .without(Medium::SIGHT)
            .nimbus(Medium::HEARING, Extent::sphere(10.0));
        interest.place(entity, presence).expect("sane");
    }
    let listener = ObserverId(0);
    let observer = Observer::new(Vec3::ZERO).focus(Medium::HEARING, Extent::sphere(200.0));
    interest.observe(listener, observer).expect("sane");
    let heard = |interest: &mut Interest| -> Vec<EntityId> {
        let view = interest.update(listener, |_, _, _| true).expect("known");
        view.entries().iter().map(|entry| entry.entity).collect()
    };
    assert_eq!(heard(&mut interest), []);
    let microphone = Adapter::held_by(speaker, Medium::HEARING).nimbus(10.0);
    interest
        .adapt(0, Some(microphone))
        .expect("within the limit");
    assert_eq!(heard(&mut interest), [speaker]);
    // Walking away with it.
    let moved = interest.move_to(speaker, Vec3::new(95.0, 0.0, 0.0), Vec3::ZERO);
    moved.expect("it is there");
    assert_eq!(heard(&mut interest), [speaker]);
    let hall = Adapter::area(Vec3::new(50.0, 0.0, 0.0), 5.0, Medium::HEARING).nimbus(8.0);
    interest.adapt(1, Some(hall)).expect("within the limit");
    assert_eq!(heard(&mut interest), [speaker, crowd]);
    let silence = Adapter::area(Vec3::ZERO, 3.0, Medium::HEARING).focus(0.0);
    interest.adapt(2, Some(silence)).expect("within the limit");
    assert_eq!(heard(&mut interest), []);
    interest.adapt(2, None).expect("within the limit");
    let jammer = Adapter::around(speaker, 60.0, Medium::HEARING).nimbus(0.0);
    interest.adapt(3, Some(jammer)).expect("within the limit");
    assert_eq!(heard(&mut interest), []);
    for number in [0, 1, 3] {
        interest.adapt(number, None).expect("within the limit");
    }
    assert_eq!(heard(&mut interest), []);
    interest
        .look(listener, Vec3::new(45.0, 0.0, 0.0), Vec3::ZERO)
        .expect("known");
    assert_eq!(heard(&mut interest), [crowd]);
}

#[test]
fn what_was_perceived_lingers_but_never_on_another_layer() {
    let mut interest = Interest::new(InterestConfig::default().linger(2));
    let thing = id(4, 0);
    let at = |x: f32| Presence::new(Vec3::new(x, 0.0, 0.0)).layers(1);
    interest.place(thing, at(5.0)).expect("sane");
    let observer = Observer::new(Vec3::ZERO)
        .layers(1)
        .focus(Medium::SIGHT, Extent::sphere(10.0));
    interest.observe(ObserverId(0), observer).expect("sane");
    let update = |interest: &mut Interest| {
        let view = interest
            .update(ObserverId(0), |_, _, _| true)
            .expect("known");
        view.entry(thing).map(|entry| entry.awareness)
    };
    assert!(update(&mut interest).is_some());
    interest.place(thing, at(50.0)).expect("sane");
    assert_eq!(update(&mut interest), Some(Awareness::Lingering));
    assert_eq!(update(&mut interest), Some(Awareness::Lingering));
    assert_eq!(update(&mut interest), None);
    interest.place(thing, at(5.0)).expect("sane");
    assert!(update(&mut interest).is_some());
    interest.place(thing, at(5.0).layers(2)).expect("sane");
    assert_eq!(update(&mut interest), None);
}

#[test]
fn too_many_leaves_the_heaviest() {
    let mut interest = Interest::new(InterestConfig::default().visible_max(10));
    for index in 0..100 {
        let presence = Presence::new(Vec3::new(index as f32, 0.0, 0.0)).always(index == 99);
        interest.place(id(index, 0), presence).expect("sane");
    }
    let focus = Extent::sphere(200.0).full(0.0);
    let observer = Observer::new(Vec3::ZERO).focus(Medium::SIGHT, focus);
    interest.observe(ObserverId(0), observer).expect("sane");
    let view = interest
        .update(ObserverId(0), |_, _, _| true)
        .expect("known");
    let indices: Vec<u32> = view
        .entries()
        .iter()
        .map(|entry| entry.entity.index())
        .collect();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5, 6, 7, 8, 99]);
}

#[test]
fn nonsense_is_refused_and_extremes_are_survived() {
    let config = InterestConfig::default()
        .entities_max(100)
        .observers_max(2)
        .regions_max(1)
        .adapters_max(1)
        .cell(0.0);
    let mut interest = Interest::new(config);
    for bad in [f32::NAN, f32::INFINITY, -f32::INFINITY, 1e30] {
        let position = Vec3::new(0.0, bad, 0.0);
        let placed = interest.place(id(0, 0), Presence::new(position));
        assert_eq!(placed, Err(InterestError::Position));
        let observed = interest.observe(ObserverId(0), Observer::new(position));
        assert_eq!(observed, Err(InterestError::Position));
        let adapter = Adapter::area(position, bad, Medium::SIGHT);
        assert_eq!(
            interest.adapt(0, Some(adapter)),
            Err(InterestError::Position)
        );
    }
    let far = interest.place(id(100, 0), Presence::new(Vec3::ZERO));
    assert_eq!(far, Err(InterestError::EntityLimit));
    let observed = interest.observe(ObserverId(2), Observer::new(Vec3::ZERO));
    assert_eq!(observed, Err(InterestError::ObserverLimit));
    assert_eq!(interest.adapt(1, None), Err(InterestError::AdapterLimit));
    assert_eq!(
        interest.update(ObserverId(0), |_, _, _| true).err(),
        Some(InterestError::UnknownObserver)
    );
    let moved = interest.move_to(id(0, 0), Vec3::ZERO, Vec3::ZERO);
    assert_eq!(moved, Err(InterestError::UnknownEntity));
    let placed = interest.place(id(0, 0), Presence::new(Vec3::ZERO).region(1).kind(u16::MAX));
    assert_eq!(placed, Ok(()));
    let second = interest.place(id(1, 0), Presence::new(Vec3::ZERO).region(2));
    assert_eq!(second, Err(InterestError::RegionLimit));
    assert_eq!(
        interest.place(id(0, 1), Presence::new(Vec3::splat(1e9))),
        Ok(())
    );
    assert_eq!(
        interest.place(id(1, 0), Presence::new(Vec3::splat(-1e9)).region(2)),
        Ok(())
    );
    let observer = Observer::new(Vec3::splat(1e9))
        .facing(Vec3::splat(f32::NAN))
        .focus(Medium::SIGHT, Extent::sphere(f32::INFINITY));
    interest.observe(ObserverId(0), observer).expect("sane");
    let view = interest
        .update(ObserverId(0), |_, _, _| true)
        .expect("known");
    assert_eq!(view.entries().len(), 2);
    assert!(view.entries().iter().all(|entry| entry.weight.is_finite()));
}
