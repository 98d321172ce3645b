//! The ticks of a session as Bevy's fixed steps: `FixedMain` runs once in each, and Bevy's clocks say so.

use bevy_app::{App, FixedMain, RunFixedMainLoop, RunFixedMainLoopSystems};
use bevy_ecs::message::{MessageRegistry, ShouldUpdateMessages};
use bevy_ecs::prelude::*;
use bevy_time::{Fixed, Time};
use muse::Duration;
use muse::netcode::Tick;

use crate::connection::NetTick;

/// Adds the system that runs the session, in place of Bevy's fixed loop.
pub(crate) fn replace_fixed_loop(app: &mut App, length: Duration, session: fn(&mut World)) {
    app.add_systems(
        RunFixedMainLoop,
        session
            .after(RunFixedMainLoopSystems::BeforeFixedMainLoop)
            .before(RunFixedMainLoopSystems::FixedMainLoop),
    );
    // `bevy_time` runs `FixedMain` in this set, by a clock of its own. A condition holds for what is added later, too.
    app.configure_sets(
        RunFixedMainLoop,
        RunFixedMainLoopSystems::FixedMainLoop.run_if(|| false),
    );
    app.insert_resource(Time::<Fixed>::from_duration(length.into()));
}

/// Runs the systems of a tick. For these, `Time` is that of the tick.
pub(crate) fn run_tick(world: &mut World, tick: Tick, length: Duration) {
    world.insert_resource(NetTick(tick));
    let mut fixed = world.get_resource_or_init::<Time<Fixed>>();
    fixed.set_timestep(length.into());
    fixed.advance_by(length.into());
    let fixed = fixed.as_generic();
    let frame = world.get_resource::<Time>().copied();
    if frame.is_some() {
        world.insert_resource(fixed);
    }
    // A schedule that nobody made has nothing to run.
    let _ = world.try_run_schedule(FixedMain);
    if let Some(frame) = frame {
        world.insert_resource(frame);
    }
    release_messages(world);
}

/// Notes how much of the next tick has passed, for systems that draw between two ticks.
pub(crate) fn set_overstep(world: &mut World, passed: Duration) {
    let mut fixed = world.get_resource_or_init::<Time<Fixed>>();
    fixed.discard_overstep(Duration::MAX.into());
    fixed.accumulate_overstep(passed.into());
}

/// Lets Bevy drop old messages in the next frame. Frames may be shorter than ticks, so messages are kept until the systems of a tick have seen them.
pub(crate) fn release_messages(world: &mut World) {
    if let Some(mut registry) = world.get_resource_mut::<MessageRegistry>() {
        registry.should_update = ShouldUpdateMessages::Ready;
    }
}
