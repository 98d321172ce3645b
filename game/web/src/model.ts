// Types of what the page draws, apart from how it arrived. moment.ts fills these types from the Worker's frames; everything that
// draws, sounds or writes numbers on the screen reads them and nothing else.

export type Triple = [number, number, number];

export interface RobotView {
  entity: number;
  slot: number;
  own: boolean;
  position: Triple;
  velocity: Triple;
  yaw: number;
  pitch: number;
  /** 0 in the air, 1 on the ground, 2 + n on platform n. */
  standing: number;
  health: number;
  alive: boolean;
  weapon: number;
  /** Bit n: owns weapon n + 1. */
  owned: number;
  /** Shots left, by weapon - 1. */
  magazines: [number, number, number, number];
  cooldownTicks: number;
  /** 0 when not reloading. */
  reloadTicks: number;
  /** Radians. */
  recoil: number;
  /** 0 from the hip, 1 along the sights. */
  aim: number;
  /** Counts every shot; a change is a shot to show. */
  shots: number;
  respawnTicks: number;
  checkpoint: number;
  /** Its player is away. */
  absent: boolean;
}

export enum Species {
  Tank = 0,
  Cat = 1,
  Wasp = 2,
  Boss = 3,
}

export enum Stance {
  Idle = 0,
  Chase = 1,
  Fire = 2,
  Jump = 3,
  Dead = 4,
}

export interface EnemyView {
  entity: number;
  species: Species;
  position: Triple;
  velocity: Triple;
  yaw: number;
  pitch: number;
  health: number;
  stance: Stance;
  shots: number;
}

export interface DeviceView {
  index: number;
  /** Of a door, a lift or a platform: 0 shut or down, 1 open or up. */
  progress: number;
  pressed: boolean;
  /** Slot of the robot that holds it, or -1. */
  holder: number;
  /** Its position in this moment. */
  position: Triple;
}

export interface BoltView {
  entity: number;
  /** Slot of the player who fired it; for an enemy's its entity. */
  owner: number;
  weapon: number;
  position: Triple;
  velocity: Triple;
  /** 1, and less while it fades because the server does not know of it. */
  share: number;
}

export interface BallView {
  entity: number;
  /** Its middle. */
  position: Triple;
  velocity: Triple;
  /** Slot of the robot that touched it last, or -1. */
  touched: number;
  /** Ticks until it is put back after a goal; 0 while it is in play. */
  restartTicks: number;
  /** The own robot kicks it when use is pressed now. */
  kickable: boolean;
}

/** Something that happened, told once. */
export interface EffectView {
  kind: number;
  slot: number;
  entity: number;
  at: Triple;
  to: Triple;
  weapon: number;
  material: number;
  amount: number;
}

export enum Mode {
  Cooperative = 0,
  Versus = 1,
  Ball = 2,
}

export enum Phase {
  Waiting = 0,
  Loading = 1,
  Playing = 2,
  Won = 3,
  Lost = 4,
  Over = 5,
}

export interface RoundView {
  mode: Mode;
  phase: Phase;
  ticksLeft: number;
  points: number[];
  kills: number[];
  deaths: number[];
  checkpoint: number;
  /** Ticks for which each weak point of the boss still counts as hit. */
  weakPoints: [number, number];
  /** By team. */
  goals: [number, number];
}

export interface NetView {
  rttMs: number;
  jitterMs: number;
  /** 0 to 1. */
  loss: number;
  inputBufferTicks: number;
  interpolationDelayMs: number;
  mispredictions: number;
  correction: number;
  bytesInPerSecond: number;
  bytesOutPerSecond: number;
  snapshotsPerSecond: number;
  /** 0 good, 1 fair, 2 poor, 3 bad. */
  quality: number;
  /** 0 memory, 1 WebTransport, 2 WebSocket. */
  link: number;
  stepRatio: number;
  inputsLate: number;
  snapshotsLost: number;
  /** Steps of others beyond what their speed allows, since the start. */
  jumps: number;
  /** The same just after the link had been cut, which are no jumps. */
  resumed: number;
  /** Conditions that this page puts on its own link. */
  conditionDelayMs: number;
  conditionJitterMs: number;
  /** 0 to 1. */
  conditionLoss: number;
  /** 1 while it is on. */
  prediction: number;
  interpolation: number;
  lagCompensation: number;
}

/** Everything of one moment. */
export interface Moment {
  tick: number;
  /** The Worker's clock. */
  timeMs: number;
  interrupted: boolean;
  own: RobotView | undefined;
  robots: RobotView[];
  enemies: EnemyView[];
  devices: DeviceView[];
  bolts: BoltView[];
  /** None or one. */
  balls: BallView[];
  effects: EffectView[];
  round: RoundView;
  net: NetView;
}

/** The team of a slot. */
export function teamOf(slot: number): 0 | 1 {
  return slot % 2 === 0 ? 0 : 1;
}

export const BALL_RADIUS = 0.7;
export const WEAPON_NAMES = ["", "Blaster", "Launcher", "Scatter", "Rail"] as const;
export const TICKS_PER_SECOND = 50;
export const SLOTS_MAX = 16;
/** By weapon, as `game/biobot/src/weapons.rs` has them. */
export const MAGAZINE_SIZES = [0, 24, 4, 6, 3] as const;
export const RELOAD_TICKS = [60, 60, 110, 90, 130] as const;
