/**
 * Reads a frame: everything to draw at one moment, as the WASM client writes it (`game/web/client/src/frame.rs`; a test holds both
 * to the same numbers).
 *
 * A frame is a `Float32Array`: a header, then sections of records. The header says where each section begins and how many
 * records it has, so that readers of an older layout skip what they do not know.
 */

export const LAYOUT_VERSION = 3;

/** Places in the header. */
export const HEADER = {
  VERSION: 0,
  /** Floats in use; the buffer may be longer. */
  LENGTH: 1,
  /** See `FLAGS`. */
  FLAGS: 2,
  /** Tick that is shown of the own robot: whole part and fraction. */
  TICK: 3,
  TICK_FRACTION: 4,
  /** Record of the own robot (or of whom a replay looks at) in `robots`, -1 if there is none. */
  OWN_RECORD: 5,
  OWN_SLOT: 6,
  /** Milliseconds since the Worker began. */
  TIME_MS: 7,
  /** Pairs of offset and count, in the order of `SECTIONS`. */
  SECTIONS: 8,
  LEN: 24,
} as const;

export const FLAGS = {
  CONNECTED: 1,
  INTERRUPTED: 2,
  PRACTICE: 4,
  REPLAY: 8,
} as const;

/** Sections in their order, with the floats of a record. */
export const SECTIONS = {
  robots: { index: 0, stride: 28 },
  enemies: { index: 1, stride: 14 },
  devices: { index: 2, stride: 8 },
  bolts: { index: 3, stride: 11 },
  effects: { index: 4, stride: 12 },
  round: { index: 5, stride: 56 },
  net: { index: 6, stride: 32 },
  balls: { index: 7, stride: 10 },
} as const;

/** Fields of a robot, own or other. */
export const ROBOT = {
  ID: 0,
  SLOT: 1,
  X: 2,
  Y: 3,
  Z: 4,
  VX: 5,
  VY: 6,
  VZ: 7,
  YAW: 8,
  PITCH: 9,
  /** 0 in the air, 1 on the ground, 2 + n on platform n. */
  STANDING: 10,
  HEALTH: 11,
  ALIVE: 12,
  WEAPON: 13,
  /** Bit n - 1 for weapon n. */
  OWNED: 14,
  MAGAZINE_1: 15,
  MAGAZINE_2: 16,
  MAGAZINE_3: 17,
  MAGAZINE_4: 18,
  /** Ticks until the next shot. */
  COOLDOWN: 19,
  /** Ticks until reloaded. */
  RELOAD: 20,
  /** Radians. */
  RECOIL: 21,
  /** 0 from the hip, 1 along the sights. */
  AIM: 22,
  /** Grows by one with each shot. */
  SHOTS: 23,
  /** Ticks until it lives again. */
  RESPAWN: 24,
  CHECKPOINT: 25,
  /** 1 for the own robot. */
  OWN: 26,
  /** 1 when its player is away. */
  ABSENT: 27,
} as const;

export const ENEMY = {
  ID: 0,
  /** 0 tank, 1 cat, 2 wasp, 3 core of the boss. */
  SPECIES: 1,
  X: 2,
  Y: 3,
  Z: 4,
  VX: 5,
  VY: 6,
  VZ: 7,
  YAW: 8,
  PITCH: 9,
  HEALTH: 10,
  /** 0 idle, 1 chase, 2 fire, 3 jump, 4 dead. */
  STANCE: 11,
  SHOTS: 12,
  SPARE: 13,
} as const;

/** A lever, button, plate, door, lift, platform or pickup of the level. */
export const DEVICE = {
  ID: 0,
  /** Into the level's list of devices. */
  INDEX: 1,
  /** 0 to 100. */
  PROGRESS: 2,
  PRESSED: 3,
  /** Slot of who holds it, -1 for nobody. */
  HOLDER: 4,
  /** Its position; moves for lifts, doors and platforms. */
  X: 5,
  Y: 6,
  Z: 7,
} as const;

export const BOLT = {
  ID: 0,
  OWNER: 1,
  WEAPON: 2,
  X: 3,
  Y: 4,
  Z: 5,
  VX: 6,
  VY: 7,
  VZ: 8,
  BORN: 9,
  SHARE: 10,
} as const;

export const BALL = {
  ID: 0,
  X: 1,
  Y: 2,
  Z: 3,
  VX: 4,
  VY: 5,
  VZ: 6,
  /** Slot of the robot that touched it last, -1 for nobody. */
  TOUCHED: 7,
  /** Ticks until it is put back after a goal; 0 while it is in play. */
  RESTART: 8,
  /** 1 if the own robot kicks it when use is pressed now. */
  KICKABLE: 9,
} as const;

/** Something that happened, told once. */
export const EFFECT = {
  /** See `EFFECT_KIND`. */
  KIND: 0,
  /** Slot of the robot, or -1 and the entity's id in `ENTITY`. */
  SLOT: 1,
  ENTITY: 2,
  /** Where. */
  X: 3,
  Y: 4,
  Z: 5,
  /** End of a tracer, or the normal of the surface that was hit. */
  TO_X: 6,
  TO_Y: 7,
  TO_Z: 8,
  WEAPON: 9,
  /** Material of what was hit; see the level's materials. */
  MATERIAL: 10,
  AMOUNT: 11,
} as const;

export const ROUND = {
  /** 0 co-operative, 1 versus, 2 ball. */
  MODE: 0,
  /** 0 waiting, 1 loading, 2 playing, 3 won, 4 lost, 5 over. */
  PHASE: 1,
  TICKS_LEFT: 2,
  CHECKPOINT: 3,
  /** Ticks that each weak point of the boss stays hit. */
  WEAK_POINT_1: 4,
  WEAK_POINT_2: 5,
  /** Of each team. */
  GOALS_1: 6,
  GOALS_2: 7,
  /** 16 each, by slot. */
  POINTS: 8,
  KILLS: 24,
  DEATHS: 40,
} as const;

/** For the net graph and the icons. */
export const NET = {
  RTT_MS: 0,
  JITTER_MS: 1,
  /** 0 to 1. */
  LOSS: 2,
  /** Time that inputs wait at the server, in ticks. */
  INPUT_BUFFER_TICKS: 3,
  INTERPOLATION_DELAY_MS: 4,
  /** Since the start. */
  MISPREDICTIONS: 5,
  /** Metres between where the own robot is shown and where it is predicted: what is left of the last correction. */
  CORRECTION: 6,
  BYTES_IN_PER_S: 7,
  BYTES_OUT_PER_S: 8,
  PACKETS_IN_PER_S: 9,
  PACKETS_OUT_PER_S: 10,
  SNAPSHOTS_PER_S: 11,
  /** 0 good, 1 fair, 2 poor, 3 bad. */
  QUALITY: 12,
  /** 0 memory, 1 WebTransport, 2 WebSocket. */
  LINK: 13,
  /** 1 while nothing of others has moved further than its speed allows, and more by the metres that something did. */
  STEP_RATIO: 14,
  /** Inputs that came too late at the server, since the start; 0 where that is not known. */
  INPUTS_LATE: 15,
  /** Ticks that the client is ahead of the server. */
  AHEAD_TICKS: 16,
  /** States of the server that had been predicted right. */
  CONFIRMED: 17,
  SNAPSHOTS_LOST: 18,
  CONDITION_DELAY_MS: 19,
  CONDITION_JITTER_MS: 20,
  CONDITION_LOSS: 21,
  PREDICTION: 22,
  INTERPOLATION: 23,
  LAG_COMPENSATION: 24,
  /** Steps of others beyond what their speed allows, since the start. */
  JUMPS: 25,
  /** The same just after the link had been cut, which are no jumps. */
  RESUMED: 26,
} as const;

export type SectionName = keyof typeof SECTIONS;

/** A view of a frame's floats; holds no copies. */
export class Frame {
  readonly floats: Float32Array;

  constructor(buffer: ArrayBuffer) {
    this.floats = new Float32Array(buffer);
  }

  get isReadable(): boolean {
    return this.floats.length >= HEADER.LEN && this.floats[HEADER.VERSION] === LAYOUT_VERSION;
  }

  get tick(): number {
    return this.floats[HEADER.TICK]! + this.floats[HEADER.TICK_FRACTION]!;
  }

  get ownRecord(): number {
    return this.floats[HEADER.OWN_RECORD]!;
  }

  get ownSlot(): number {
    return this.floats[HEADER.OWN_SLOT]!;
  }

  has(flag: number): boolean {
    return (this.floats[HEADER.FLAGS]! & flag) !== 0;
  }

  count(section: SectionName): number {
    return this.floats[HEADER.SECTIONS + 2 * SECTIONS[section].index + 1]!;
  }

  /** Index of the first float of record `record` in a section: `floats[at(...) + ROBOT.X]`. */
  at(section: SectionName, record: number): number {
    const { index, stride } = SECTIONS[section];
    return this.floats[HEADER.SECTIONS + 2 * index]! + stride * record;
  }

  /** One field of one record. */
  get(section: SectionName, record: number, field: number): number {
    return this.floats[this.at(section, record) + field]!;
  }
}

/** Kinds of effects. */
export const EFFECT_KIND = {
  /** A shot left; `TO` is where it ended, for hitscan weapons. */
  SHOT: 1,
  /** Something was hit: a spark, a hole, a decal; `TO` is the surface's normal. */
  IMPACT: 2,
  EXPLOSION: 3,
  JUMP: 4,
  LAND: 5,
  RELOAD: 6,
  EMPTY: 7,
  DEATH: 8,
  RESPAWN: 9,
  PICKUP: 10,
  DEVICE: 11,
  CHECKPOINT: 12,
  STEP: 13,
  WEAPON: 14,
} as const;
