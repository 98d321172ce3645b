//! The places of everything in a frame. The same as `game/web/src/frame.ts`.

/// Of all of this: a page of another version does not read the frame.
pub const LAYOUT_VERSION: u32 = 3;

/// Sections in their order, with the floats of a record.
pub const SECTIONS: [(&str, usize); 8] = [
    ("robots", robot::STRIDE),
    ("enemies", enemy::STRIDE),
    ("devices", device::STRIDE),
    ("bolts", bolt::STRIDE),
    ("effects", effect::STRIDE),
    ("round", round::STRIDE),
    ("net", net::STRIDE),
    ("balls", ball::STRIDE),
];

/// Places in the header.
pub mod header {
    /// Version.
    pub const VERSION: usize = 0;
    /// Floats in use; the buffer may be longer.
    pub const LENGTH: usize = 1;
    /// See [`flags`](super::flags).
    pub const FLAGS: usize = 2;
    /// Tick that is shown of the own robot: whole part and fraction.
    pub const TICK: usize = 3;
    /// Tick fraction.
    pub const TICK_FRACTION: usize = 4;
    /// Record of the own robot (or of whom a replay looks at) in `robots`, -1 if there is none.
    pub const OWN_RECORD: usize = 5;
    /// Own slot.
    pub const OWN_SLOT: usize = 6;
    /// Milliseconds since the Worker began.
    pub const TIME_MS: usize = 7;
    /// Pairs of offset and count, in the order of [`SECTIONS`](super::SECTIONS).
    pub const SECTIONS: usize = 8;
    /// Len.
    pub const LEN: usize = 24;
}

/// Bits of [`header::FLAGS`].
pub mod flags {
    /// Connected.
    pub const CONNECTED: u32 = 1;
    /// Interrupted.
    pub const INTERRUPTED: u32 = 2;
    /// Practice.
    pub const PRACTICE: u32 = 4;
    /// Replay.
    pub const REPLAY: u32 = 8;
}

/// A robot, own or other.
pub mod robot {
    /// Its entity.
    pub const ID: usize = 0;
    /// Slot.
    pub const SLOT: usize = 1;
    /// Where, in metres: x.
    pub const X: usize = 2;
    /// Up.
    pub const Y: usize = 3;
    /// Towards the back.
    pub const Z: usize = 4;
    /// Metres a second, x.
    pub const VX: usize = 5;
    /// Metres a second, y.
    pub const VY: usize = 6;
    /// Metres a second, z.
    pub const VZ: usize = 7;
    /// Yaw.
    pub const YAW: usize = 8;
    /// Pitch.
    pub const PITCH: usize = 9;
    /// 0 in the air, 1 on the ground, 2 + n on platform n.
    pub const STANDING: usize = 10;
    /// Health.
    pub const HEALTH: usize = 11;
    /// Alive.
    pub const ALIVE: usize = 12;
    /// Weapon.
    pub const WEAPON: usize = 13;
    /// Bit n - 1 for weapon n.
    pub const OWNED: usize = 14;
    /// Magazine 1.
    pub const MAGAZINE_1: usize = 15;
    /// Magazine 2.
    pub const MAGAZINE_2: usize = 16;
    /// Magazine 3.
    pub const MAGAZINE_3: usize = 17;
    /// Magazine 4.
    pub const MAGAZINE_4: usize = 18;
    /// Ticks until the next shot.
    pub const COOLDOWN: usize = 19;
    /// Ticks until reloaded.
    pub const RELOAD: usize = 20;
    /// Radians.
    pub const RECOIL: usize = 21;
    /// 0 from the hip, 1 along the sights.
    pub const AIM: usize = 22;
    /// Grows by one with each shot.
    pub const SHOTS: usize = 23;
    /// Ticks until it lives again.
    pub const RESPAWN: usize = 24;
    /// Checkpoint.
    pub const CHECKPOINT: usize = 25;
    /// 1 for the own robot.
    pub const OWN: usize = 26;
    /// 1 when its player is away.
    pub const ABSENT: usize = 27;
    /// Floats of a record.
    pub const STRIDE: usize = 28;
}

/// An enemy.
pub mod enemy {
    /// Its entity.
    pub const ID: usize = 0;
    /// 0 tank, 1 cat, 2 wasp, 3 core of the boss.
    pub const SPECIES: usize = 1;
    /// Where, in metres: x.
    pub const X: usize = 2;
    /// Up.
    pub const Y: usize = 3;
    /// Towards the back.
    pub const Z: usize = 4;
    /// Metres a second, x.
    pub const VX: usize = 5;
    /// Metres a second, y.
    pub const VY: usize = 6;
    /// Metres a second, z.
    pub const VZ: usize = 7;
    /// Yaw.
    pub const YAW: usize = 8;
    /// Pitch.
    pub const PITCH: usize = 9;
    /// Health.
    pub const HEALTH: usize = 10;
    /// 0 idle, 1 chase, 2 fire, 3 jump, 4 dead.
    pub const STANCE: usize = 11;
    /// Shots.
    pub const SHOTS: usize = 12;
    /// Spare.
    pub const SPARE: usize = 13;
    /// Floats of a record.
    pub const STRIDE: usize = 14;
}

/// A lever, button, plate, door, lift, platform or pickup of the level.
pub mod device {
    /// Its entity.
    pub const ID: usize = 0;
    /// Into the level's list of devices.
    pub const INDEX: usize = 1;
    /// 0 to 100.
    pub const PROGRESS: usize = 2;
    /// Pressed.
    pub const PRESSED: usize = 3;
    /// Slot of who holds it, -1 for nobody.
    pub const HOLDER: usize = 4;
    /// Its position; moves for lifts, doors and platforms.
    pub const X: usize = 5;
    /// Up.
    pub const Y: usize = 6;
    /// Towards the back.
    pub const Z: usize = 7;
    /// Floats of a record.
    pub const STRIDE: usize = 8;
}

/// Something that flies.
pub mod bolt {
    /// Its entity; 0 for one's own, which are told apart by when they were born.
    pub const ID: usize = 0;
    /// Slot of the player who fired it; for an enemy's its entity.
    pub const OWNER: usize = 1;
    /// Weapon.
    pub const WEAPON: usize = 2;
    /// Where, in metres: x.
    pub const X: usize = 3;
    /// Up.
    pub const Y: usize = 4;
    /// Towards the back.
    pub const Z: usize = 5;
    /// Metres a second, x.
    pub const VX: usize = 6;
    /// Metres a second, y.
    pub const VY: usize = 7;
    /// Metres a second, z.
    pub const VZ: usize = 8;
    /// Born.
    pub const BORN: usize = 9;
    /// 1, and less while it fades because the server does not know of it.
    pub const SHARE: usize = 10;
    /// Floats of a record.
    pub const STRIDE: usize = 11;
}

/// Something that happened, told once.
pub mod effect {
    /// See [`effect_kind`](super::effect_kind).
    pub const KIND: usize = 0;
    /// Slot of the robot, or -1 and the entity's id in [`ENTITY`].
    pub const SLOT: usize = 1;
    /// Entity.
    pub const ENTITY: usize = 2;
    /// Where.
    pub const X: usize = 3;
    /// Up.
    pub const Y: usize = 4;
    /// Towards the back.
    pub const Z: usize = 5;
    /// End of a tracer, or the normal of the surface that was hit.
    pub const TO_X: usize = 6;
    /// To y.
    pub const TO_Y: usize = 7;
    /// To z.
    pub const TO_Z: usize = 8;
    /// Weapon.
    pub const WEAPON: usize = 9;
    /// Material of what was hit; see the level's materials.
    pub const MATERIAL: usize = 10;
    /// Amount.
    pub const AMOUNT: usize = 11;
    /// Floats of a record.
    pub const STRIDE: usize = 12;
}

/// Kinds of effects.
pub mod effect_kind {
    /// A shot left; `TO` is where it ended, for hitscan weapons.
    pub const SHOT: u32 = 1;
    /// Something was hit: a spark, a hole, a decal; `TO` is the surface's normal.
    pub const IMPACT: u32 = 2;
    /// Explosion.
    pub const EXPLOSION: u32 = 3;
    /// Jump.
    pub const JUMP: u32 = 4;
    /// Land.
    pub const LAND: u32 = 5;
    /// Reload.
    pub const RELOAD: u32 = 6;
    /// Empty.
    pub const EMPTY: u32 = 7;
    /// Death.
    pub const DEATH: u32 = 8;
    /// Respawn.
    pub const RESPAWN: u32 = 9;
    /// Pickup.
    pub const PICKUP: u32 = 10;
    /// Device.
    pub const DEVICE: u32 = 11;
    /// Checkpoint.
    pub const CHECKPOINT: u32 = 12;
    /// Step.
    pub const STEP: u32 = 13;
    /// Weapon.
    pub const WEAPON: u32 = 14;
}

/// The match.
pub mod round {
    /// 0 co-operative, 1 versus, 2 ball.
    pub const MODE: usize = 0;
    /// 0 waiting, 1 loading, 2 playing, 3 won, 4 lost, 5 over.
    pub const PHASE: usize = 1;
    /// Ticks left.
    pub const TICKS_LEFT: usize = 2;
    /// Checkpoint.
    pub const CHECKPOINT: usize = 3;
    /// Ticks that each weak point of the boss stays hit.
    pub const WEAK_POINT_1: usize = 4;
    /// Weak point 2.
    pub const WEAK_POINT_2: usize = 5;
    /// Goals of each team.
    pub const GOALS_1: usize = 6;
    /// Goals of the other team.
    pub const GOALS_2: usize = 7;
    /// 16 each, by slot.
    pub const POINTS: usize = 8;
    /// Kills.
    pub const KILLS: usize = 24;
    /// Deaths.
    pub const DEATHS: usize = 40;
    /// Floats of a record.
    pub const STRIDE: usize = 56;
}

/// Figures for the net graph and the icons.
pub mod net {
    /// Rtt ms.
    pub const RTT_MS: usize = 0;
    /// Jitter ms.
    pub const JITTER_MS: usize = 1;
    /// 0 to 1.
    pub const LOSS: usize = 2;
    /// Time that inputs wait at the server, in ticks.
    pub const INPUT_BUFFER_TICKS: usize = 3;
    /// Interpolation delay ms.
    pub const INTERPOLATION_DELAY_MS: usize = 4;
    /// Since the start.
    pub const MISPREDICTIONS: usize = 5;
    /// Metres between where the own robot is shown and where it is predicted: what is left of the last correction.
    pub const CORRECTION: usize = 6;
    /// Bytes in per s.
    pub const BYTES_IN_PER_S: usize = 7;
    /// Bytes out per s.
    pub const BYTES_OUT_PER_S: usize = 8;
    /// Packets in per s.
    pub const PACKETS_IN_PER_S: usize = 9;
    /// Packets out per s.
    pub const PACKETS_OUT_PER_S: usize = 10;
    /// Snapshots per s.
    pub const SNAPSHOTS_PER_S: usize = 11;
    /// 0 good, 1 fair, 2 poor, 3 bad.
    pub const QUALITY: usize = 12;
    /// 0 memory, 1 WebTransport, 2 WebSocket.
    pub const LINK: usize = 13;
    /// 1 while nothing of others has moved further than its speed allows, and more by the metres that something did.
    pub const STEP_RATIO: usize = 14;
    /// Inputs that came too late at the server, since the start; 0 where that is not known.
    pub const INPUTS_LATE: usize = 15;
    /// Ticks that the client is ahead of the server.
    pub const AHEAD_TICKS: usize = 16;
    /// States of the server that had been predicted right.
    pub const CONFIRMED: usize = 17;
    /// Snapshots lost.
    pub const SNAPSHOTS_LOST: usize = 18;
    /// Condition delay ms.
    pub const CONDITION_DELAY_MS: usize = 19;
    /// Condition jitter ms.
    pub const CONDITION_JITTER_MS: usize = 20;
    /// Condition loss.
    pub const CONDITION_LOSS: usize = 21;
    /// Prediction.
    pub const PREDICTION: usize = 22;
    /// Interpolation.
    pub const INTERPOLATION: usize = 23;
    /// Lag compensation.
    pub const LAG_COMPENSATION: usize = 24;
    /// Steps of others beyond what their speed allows, since the start.
    pub const JUMPS: usize = 25;
    /// The same just after the link had been cut, which are no jumps.
    pub const RESUMED: usize = 26;
    /// Floats of a record.
    pub const STRIDE: usize = 32;
}

/// The ball.
pub mod ball {
    /// Its entity.
    pub const ID: usize = 0;
    /// Its middle, in metres: x.
    pub const X: usize = 1;
    /// Up.
    pub const Y: usize = 2;
    /// Towards the back.
    pub const Z: usize = 3;
    /// Metres a second, x.
    pub const VX: usize = 4;
    /// Metres a second, y.
    pub const VY: usize = 5;
    /// Metres a second, z.
    pub const VZ: usize = 6;
    /// Slot of the robot that touched it last, -1 for nobody.
    pub const TOUCHED: usize = 7;
    /// Ticks until it is put back after a goal; 0 while it is in play.
    pub const RESTART: usize = 8;
    /// 1 if the own robot kicks it when use is pressed now.
    pub const KICKABLE: usize = 9;
    /// Floats of a record.
    pub const STRIDE: usize = 10;
}
