//! A match in one program with questions that tests ask of it, on [`muse_biobot::table`].

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use muse_biobot::{Command, Level, Player, Robot, StageConfig, table};
use muse_netem::Conditions;

/// A match, and everything that is under way in it.
pub(crate) struct Table(table::Table);

impl Deref for Table {
    type Target = table::Table;

    fn deref(&self) -> &table::Table {
        &self.0
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut table::Table {
        &mut self.0
    }
}

impl Table {
    pub(crate) fn new(config: StageConfig, players: u8, conditions: Conditions, seed: u64) -> Self {
        Self(table::Table::new(config, players, conditions, seed))
    }

    /// Recorded from the beginning.
    pub(crate) fn recorded(
        config: StageConfig,
        players: u8,
        conditions: Conditions,
        seed: u64,
    ) -> Self {
        Self(table::Table::recorded(config, players, conditions, seed))
    }

    /// Two players who begin at a checkpoint.
    pub(crate) fn at_checkpoint(
        config: StageConfig,
        conditions: Conditions,
        checkpoint: u8,
    ) -> Self {
        let mut table = Self(table::Table::empty(config, conditions, 1));
        table.set_checkpoint(checkpoint);
        for id in [100, 101] {
            table.join(id).expect("there is a seat");
        }
        table
    }

    /// On a perfect network.
    pub(crate) fn near(level: Level, players: u8) -> Self {
        let config = StageConfig::new(Arc::new(level)).slots(players);
        Self::new(config, players, Conditions::default(), 1)
    }

    /// Lets time pass until something is so, or fails.
    pub(crate) fn until(
        &mut self,
        ticks: u32,
        mut command: impl FnMut(usize, &mut Player) -> Command,
        mut done: impl FnMut(&mut Self) -> bool,
    ) {
        for _ in 0..ticks * 4 {
            self.step(&mut command);
            if done(self) {
                return;
            }
        }
        assert!(
            done(self),
            "it did not happen within {ticks} ticks; round {:?}",
            self.stage.round()
        );
    }

    /// Until the match is played and everybody has settled.
    pub(crate) fn begin(&mut self) {
        self.until(
            1_000,
            |_, _| Command::default(),
            |table| table.stage.round().phase == muse_biobot::Phase::Playing,
        );
        self.run(50, |_, _| Command::default());
    }

    /// A robot as the server has it.
    pub(crate) fn robot(&self, slot: u8) -> Robot {
        self.find_robot(slot).expect("it is in the match")
    }

    /// True if a device is active.
    pub(crate) fn active(&self, id: &str) -> bool {
        let index = self.stage.level().device(id).expect("the level has it");
        let world = self.stage.server().world();
        let kind = self.stage.kinds().device;
        world
            .entities()
            .filter_map(|entity| world.state(kind, entity))
            .any(|device| usize::from(device.index) == index && device.active)
    }
}

/// A command that walks towards a place; whether it is near.
pub(crate) fn towards(robot: &Robot, place: [f32; 3]) -> (Command, bool) {
    let way = glam::Vec3::from(place) - robot.feet();
    let flat = glam::Vec2::new(way.x, way.z).length();
    let (yaw, _) = muse_biobot::weapons::angles(way);
    let command = Command {
        forward: i8::from(flat > 0.25),
        yaw,
        ..Command::default()
    };
    (command, flat < 0.5)
}

/// A floor with walls around, and more of it.
pub(crate) fn yard(mode: &str, more: &str) -> Level {
    let text = format!(
        r#"{{ "name": "Yard", "mode": "{mode}", "slots": 16, "kill_below": -9,
        "spawns": [ {{ "at": [-4, 0.02, 10] }}, {{ "at": [4, 0.02, 10] }}, {{ "at": [0, 0.02, 14] }} ],
        "solids": [ {{ "min": [-30, -1, -30], "max": [30, 0, 30] }},
            {{ "min": [-31, 0, -31], "max": [-30, 6, 31] }}, {{ "min": [30, 0, -31], "max": [31, 6, 31] }},
            {{ "min": [-30, 0, -31], "max": [30, 6, -30] }}, {{ "min": [-30, 0, 30], "max": [30, 6, 31] }},
            {{ "min": [10, 0, -10], "max": [16, 2, 0], "rise": "+x" }}, {{ "min": [16, 0, -10], "max": [20, 2, 0] }},
            {{ "min": [-12, 0, -12], "max": [-10, 0.3, 0] }} ] {more} }}"#
    );
    Level::parse(&text).expect("the yard is whole")
}
