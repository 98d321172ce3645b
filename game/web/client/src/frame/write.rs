//! From a player's frame to floats.

use muse::netcode::{EntityId, Tick};
use muse_biobot::ball::can_kick;
use muse_biobot::player::{
    BallShown, BoltShown, DeviceShown, EnemyShown, Frame, NetStatistics, Switches,
};
use muse_biobot::{Level, Phase, Robot, Round, SLOTS_MAX, TICK_SECONDS};

use super::{Floats, Happenings, ball, bolt, device, enemy, header, net, robot, round};
use crate::conditioned::Weather;

/// State of the connection, beside what the netcode knows.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Bits of [`flags`](super::flags).
    pub flags: u32,
    /// 0 memory, 1 WebTransport, 2 WebSocket.
    pub link: u8,
    /// Bytes a second through the session, both ways; the netcode's own where there is no session.
    pub bytes: Option<(f32, f32)>,
    /// Conditions set by the sliders.
    pub weather: Weather,
    /// Which techniques are on.
    pub switches: Switches,
    /// Whose eyes to look through, for replays and those who watch.
    pub slot: Option<u8>,
    /// Milliseconds since the Worker began.
    pub time_ms: f32,
    /// Metres between where the own robot is shown and where it is predicted.
    pub correction: f32,
}

/// Writes a frame.
pub fn write(
    frame: &Frame,
    level: &Level,
    happenings: &mut Happenings,
    connection: &Connection,
) -> Vec<f32> {
    let mut floats = Floats::new();
    floats.set(header::FLAGS, connection.flags as f32);
    floats.set(header::TICK, frame.time.tick.0 as f32);
    floats.set(header::TICK_FRACTION, frame.time.share());
    floats.set(header::TIME_MS, connection.time_ms);
    floats.set(header::OWN_SLOT, connection.slot.map_or(-1.0, f32::from));
    let own = frame.own.iter().map(|own| (own.entity, &own.robot, true));
    let others = frame
        .robots
        .iter()
        .map(|shown| (shown.entity, &shown.robot, false));
    let own_record = own
        .clone()
        .chain(others.clone())
        .position(|(_, robot, own)| {
            own || (frame.own.is_none() && connection.slot == Some(robot.slot))
        });
    floats.set(
        header::OWN_RECORD,
        own_record.map_or(-1.0, |record| record as f32),
    );
    floats.section(0, own.chain(others), |record, (entity, robot, own)| {
        let tick = if own {
            frame.time.tick
        } else {
            frame.shown_time.tick
        };
        write_robot(record, entity, robot, tick, own);
    });
    floats.section(1, &frame.enemies, write_enemy);
    let devices = frame.devices.iter().zip(&level.devices);
    floats.section(2, devices, |record, (shown, spec)| {
        let at = spec.place() + glam::Vec3::from(shown.offset);
        write_device(record, shown, at.into());
    });
    let own_slot = frame.own.as_ref().map(|own| own.robot.slot);
    floats.section(3, &frame.bolts, |record, shown| {
        write_bolt(record, shown, frame.time.ticks());
        if own_slot.is_some() && shown.bolt.slot() == own_slot {
            // The page must not see that the server's takes the place of one that was predicted.
            record[bolt::ID] = 0.0;
        }
    });
    floats.section(4, happenings.of(frame, level), |record, effect| {
        record.copy_from_slice(effect);
    });
    floats.section(5, &frame.round, |record, it| {
        write_round(record, it, frame.time.tick);
    });
    floats.section(6, [&frame.statistics], |record, statistics| {
        write_net(record, statistics, connection);
    });
    floats.section(7, &frame.ball, |record, shown| {
        write_ball(record, shown, frame);
    });
    floats.finish()
}

fn write_robot(record: &mut [f32], entity: EntityId, it: &Robot, tick: Tick, own: bool) {
    record[robot::ID] = number(entity);
    record[robot::SLOT] = f32::from(it.slot);
    record[robot::X..=robot::Z].copy_from_slice(&it.position);
    record[robot::VX..=robot::VZ].copy_from_slice(&it.velocity);
    record[robot::YAW] = it.yaw;
    record[robot::PITCH] = it.pitch;
    record[robot::STANDING] = f32::from(it.standing);
    record[robot::HEALTH] = f32::from(it.health);
    record[robot::ALIVE] = f32::from(u8::from(it.alive()));
    record[robot::WEAPON] = f32::from(it.weapon);
    record[robot::OWNED] = f32::from(it.owned);
    for (place, rounds) in it.magazines.iter().enumerate() {
        record[robot::MAGAZINE_1 + place] = f32::from(*rounds);
    }
    record[robot::COOLDOWN] = it.cooldown(tick) as f32;
    record[robot::RELOAD] = it.reload.saturating_sub(tick.0) as f32;
    record[robot::RECOIL] = it.recoil(tick);
    record[robot::AIM] = it.aiming();
    record[robot::SHOTS] = f32::from(it.shots);
    record[robot::RESPAWN] = it.respawn.saturating_sub(tick.0) as f32;
    record[robot::CHECKPOINT] = f32::from(it.checkpoint);
    record[robot::OWN] = f32::from(u8::from(own));
}

fn write_enemy(record: &mut [f32], shown: &EnemyShown) {
    let it = &shown.enemy;
    record[enemy::ID] = number(shown.entity);
    record[enemy::SPECIES] = f32::from(it.species as u8);
    record[enemy::X..=enemy::Z].copy_from_slice(&it.position);
    record[enemy::VX..=enemy::VZ].copy_from_slice(&it.velocity);
    record[enemy::YAW] = it.yaw;
    record[enemy::PITCH] = it.pitch;
    record[enemy::HEALTH] = f32::from(it.health);
    record[enemy::STANCE] = f32::from(it.stance as u8);
    record[enemy::SHOTS] = f32::from(it.shots);
}

fn write_device(record: &mut [f32], shown: &DeviceShown, at: [f32; 3]) {
    let state = &shown.state;
    // A device has no entity that a page would need; its place in the level names it.
    record[device::ID] = f32::from(state.index);
    record[device::INDEX] = f32::from(state.index);
    record[device::PROGRESS] = shown.progress * 100.0;
    record[device::PRESSED] = f32::from(u8::from(state.active));
    record[device::HOLDER] = match state.holders {
        0 => -1.0,
        holders => holders.trailing_zeros() as f32,
    };
    record[device::X..=device::Z].copy_from_slice(&at);
}

fn write_bolt(record: &mut [f32], shown: &BoltShown, ticks: f64) {
    let it = &shown.bolt;
    record[bolt::ID] = shown.entity.map_or(0.0, number);
    record[bolt::OWNER] = (it.owner & NUMBER_MASK) as f32;
    record[bolt::WEAPON] = f32::from(it.weapon);
    record[bolt::X..=bolt::Z].copy_from_slice(&shown.position);
    let seconds = (ticks - f64::from(it.born)).max(0.0) as f32 * TICK_SECONDS;
    let soon = (it.after(seconds + TICK_SECONDS) - it.after(seconds)) / TICK_SECONDS;
    record[bolt::VX..=bolt::VZ].copy_from_slice(&soon.to_array());
    record[bolt::BORN] = it.born as f32;
    record[bolt::SHARE] = shown.share;
}

fn write_ball(record: &mut [f32], shown: &BallShown, frame: &Frame) {
    let it = &shown.ball;
    record[ball::ID] = number(shown.entity);
    record[ball::X..=ball::Z].copy_from_slice(&it.position);
    record[ball::VX..=ball::VZ].copy_from_slice(&it.velocity);
    record[ball::TOUCHED] = it.last_touch().map_or(-1.0, f32::from);
    record[ball::RESTART] = it.restart.saturating_sub(frame.time.tick.0) as f32;
    let own = frame.own.as_ref();
    let kicks = own.is_some_and(|own| can_kick(&own.robot, it, frame.time.tick));
    record[ball::KICKABLE] = f32::from(u8::from(kicks));
}

fn write_round(record: &mut [f32], it: &Round, tick: Tick) {
    record[round::MODE] = f32::from(it.mode as u8);
    record[round::PHASE] = f32::from(match it.phase {
        Phase::Waiting => 0_u8,
        Phase::Loading => 1,
        Phase::Playing => 2,
        Phase::Won => 3,
        Phase::Lost => 4,
        Phase::Over => 5,
    });
    record[round::TICKS_LEFT] = it.ends.saturating_sub(tick.0) as f32;
    record[round::CHECKPOINT] = f32::from(it.checkpoint);
    for (place, hit) in it.weak_points.iter().enumerate() {
        let since = tick.0.saturating_sub(*hit);
        let left = if *hit == 0 {
            0
        } else {
            WEAK_TICKS.saturating_sub(since)
        };
        record[round::WEAK_POINT_1 + place] = left as f32;
    }
    record[round::GOALS_1] = f32::from(it.goals[0]);
    record[round::GOALS_2] = f32::from(it.goals[1]);
    for slot in 0..SLOTS_MAX {
        record[round::POINTS + slot] = f32::from(it.points[slot]);
        record[round::KILLS + slot] = f32::from(it.kills[slot]);
        record[round::DEATHS + slot] = f32::from(it.deaths[slot]);
    }
}

fn write_net(record: &mut [f32], it: &NetStatistics, connection: &Connection) {
    let bytes = connection
        .bytes
        .unwrap_or((it.bytes_in as f32, it.bytes_out as f32));
    record[net::RTT_MS] = it.rtt_ms;
    record[net::JITTER_MS] = it.jitter_ms;
    record[net::LOSS] = it.loss;
    let buffered_ms = (it.ahead_ms - it.rtt_ms / 2.0).max(0.0);
    record[net::INPUT_BUFFER_TICKS] = buffered_ms / (TICK_SECONDS * 1_000.0);
    record[net::INTERPOLATION_DELAY_MS] = it.interpolation_ms;
    record[net::MISPREDICTIONS] = it.mispredictions as f32;
    record[net::CORRECTION] = connection.correction;
    record[net::BYTES_IN_PER_S] = bytes.0;
    record[net::BYTES_OUT_PER_S] = bytes.1;
    record[net::PACKETS_IN_PER_S] = it.packets_in as f32;
    record[net::PACKETS_OUT_PER_S] = it.packets_out as f32;
    record[net::SNAPSHOTS_PER_S] = it.packets_in as f32;
    record[net::QUALITY] = quality(it);
    record[net::LINK] = f32::from(connection.link);
    record[net::STEP_RATIO] = 1.0 + it.jump_most;
    record[net::JUMPS] = it.jumps as f32;
    record[net::RESUMED] = it.resumed as f32;
    record[net::AHEAD_TICKS] = it.ahead_ms / (TICK_SECONDS * 1_000.0);
    record[net::CONFIRMED] = it.confirmed as f32;
    record[net::CONDITION_DELAY_MS] = connection.weather.delay_ms;
    record[net::CONDITION_JITTER_MS] = connection.weather.jitter_ms;
    record[net::CONDITION_LOSS] = connection.weather.loss;
    let switch = |on: bool| f32::from(u8::from(on));
    record[net::PREDICTION] = switch(connection.switches.prediction);
    record[net::INTERPOLATION] = switch(connection.switches.interpolation);
    record[net::LAG_COMPENSATION] = switch(connection.switches.lag_compensation);
}

/// 0 good, 1 fair, 2 poor, 3 bad: by what a player feels first.
fn quality(it: &NetStatistics) -> f32 {
    let levels = [(80.0, 20.0, 0.01), (150.0, 40.0, 0.04), (250.0, 80.0, 0.12)];
    let within = |&(rtt, jitter, loss): &(f32, f32, f32)| {
        it.rtt_ms <= rtt && it.jitter_ms <= jitter && it.loss <= loss
    };
    levels.iter().position(within).unwrap_or(levels.len()) as f32
}

/// An entity as a number that a float holds.
fn number(entity: EntityId) -> f32 {
    (entity.bits() & NUMBER_MASK) as f32
}

const NUMBER_MASK: u32 = (1 << 24) - 1;
/// Ticks within which both weak points of the boss have to be hit: half a second.
const WEAK_TICKS: u32 = 25;
