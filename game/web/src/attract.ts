// The picture behind the menus: a corner of the world in which two robots stand guard while the enemy passes by in the distance. Made of the same
// parts as the game, so that the first thing one sees is the game itself.

import type { Level } from "./level.ts";
import { type EnemyView, Mode, type Moment, Phase, type RobotView, Species, Stance, type Triple } from "./model.ts";

export const ATTRACT_LEVEL: Level = {
  name: "Title",
  mode: "cooperative",
  kill_below: -20,
  spawns: [],
  checkpoints: [],
  exit: null,
  goals: [],
  boss: null,
  objectives: [],
  solids: [
    { min: [-30, -1, -40], max: [30, 0, 14] },
    { min: [3, 0, -9], max: [14, 5, -8] },
    { min: [-14, 0, -9], max: [-1, 5, -8] },
    { min: [-14.8, 0, -9], max: [-14, 6.5, 10], material: "metal" },
    { min: [-1, 3.6, -9], max: [3, 5, -8], material: "metal" },
    { min: [8, 0, -8], max: [14, 1.6, -3], material: "metal" },
    { min: [4, 0, -8], max: [8, 1.6, -5.4], rise: "+x", material: "metal" },
    { min: [5.2, 0, -2.6], max: [6.4, 1.2, -1.4], material: "wood" },
    { min: [5.5, 1.2, -2.4], max: [6.3, 2, -1.6], material: "wood" },
    { min: [6.7, 0, -2.2], max: [7.6, 0.9, -1.3], material: "wood" },
    { min: [-6, 0, -24], max: [-3, 9, -21] },
    { min: [9, 0, -30], max: [14, 14, -25], material: "metal" },
    { min: [-20, 0, -34], max: [-12, 6, -30] },
  ],
  devices: [
    { id: "lever", what: { lever: { at: [-2.2, 1.2, -6.8] } } },
    { id: "door", what: { door: { min: [-1, 0, -8.8], max: [3, 3.6, -8.3], slide: [0, 3, 0], ticks: 40, needs: { of: ["lever"] } } } },
    { id: "button", only: 1, what: { button: { at: [10.4, 2.8, -5] } } },
    { id: "rail", what: { pickup: { at: [12, 2.6, -6.4], weapon: 4 } } },
  ],
};

/** The moment at a time, in seconds. */
export function attractMoment(seconds: number): Moment {
  const round = { mode: Mode.Cooperative, phase: Phase.Playing, ticksLeft: 0, points: [], kills: [], deaths: [], checkpoint: 0, weakPoints: [0, 0] as [number, number], goals: [0, 0] as [number, number] };
  const look = Math.sin(seconds * 0.4);
  return {
    tick: seconds * 50,
    timeMs: seconds * 1000,
    interrupted: false,
    own: undefined,
    robots: [robot(0, [2.6, 0, 0.2], Math.PI + 0.35 + look * 0.2, 1), robot(1, [4.1, 0, -0.9], Math.PI - 0.3 - Math.sin(seconds * 0.31) * 0.25, 3)],
    enemies: enemies(seconds),
    devices: [
      { index: 0, progress: 0, pressed: false, holder: -1, position: [-2.2, 1.2, -6.8] },
      { index: 1, progress: 0, pressed: false, holder: -1, position: [1, 1.8, -8.55] },
      { index: 2, progress: 0, pressed: false, holder: -1, position: [10.4, 2.8, -5] },
      { index: 3, progress: 0, pressed: false, holder: -1, position: [12, 2.6, -6.4] },
    ],
    bolts: [],
    balls: [],
    effects: [],
    round,
    net: { rttMs: 0, jitterMs: 0, loss: 0, inputBufferTicks: 0, interpolationDelayMs: 0, mispredictions: 0, correction: 0, bytesInPerSecond: 0, bytesOutPerSecond: 0, snapshotsPerSecond: 0, quality: 0, link: 0, stepRatio: 0, inputsLate: 0, snapshotsLost: 0, jumps: 0, resumed: 0, conditionDelayMs: 0, conditionJitterMs: 0, conditionLoss: 0, prediction: 1, interpolation: 1, lagCompensation: 1 },
  };
}

/** The camera's place and direction; it drifts. */
export function attractCamera(seconds: number): { at: Triple; towards: Triple } {
  const drift = Math.sin(seconds * 0.13);
  return { at: [0.6 + drift * 0.7, 1.35 + Math.cos(seconds * 0.17) * 0.12, 5.4], towards: [1.5 + drift * 0.2, 1.25, -2] };
}

function robot(slot: number, position: Triple, yaw: number, weapon: number): RobotView {
  return {
    entity: 1000 + slot,
    slot,
    own: false,
    position,
    velocity: [0, 0, 0],
    yaw,
    pitch: 0,
    standing: 1,
    health: 100,
    alive: true,
    weapon,
    owned: 7,
    magazines: [0, 0, 0, 0],
    cooldownTicks: 0,
    reloadTicks: 0,
    recoil: 0,
    aim: 0,
    shots: 0,
    respawnTicks: 0,
    checkpoint: 0,
    absent: false,
  };
}

function enemies(seconds: number): EnemyView[] {
  const angle = seconds * 0.35;
  const prowl: Triple = [10 + Math.cos(angle) * 2.2, 1.6, -5.4 + Math.sin(angle) * 1.8];
  const speed: Triple = [-Math.sin(angle) * 0.9, 0, Math.cos(angle) * 0.7];
  const list: EnemyView[] = [
    enemy(2000, Species.Cat, prowl, speed, Math.atan2(-speed[0], -speed[2])),
    enemy(2001, Species.Tank, [-9 + Math.sin(seconds * 0.08) * 3, 0, -14], [Math.cos(seconds * 0.08) * 0.3, 0, 0], Math.cos(seconds * 0.08) > 0 ? -Math.PI / 2 : Math.PI / 2),
  ];
  for (let index = 0; index < 3; index += 1) {
    const around = seconds * 0.5 + index * 2.1;
    list.push(enemy(2002 + index, Species.Wasp, [7 + Math.cos(around) * 3, 5 + Math.sin(around * 1.3), -12 + Math.sin(around) * 3], [1, 0, 0], -around));
  }
  return list;
}

function enemy(entity: number, species: Species, position: Triple, velocity: Triple, yaw: number): EnemyView {
  return { entity, species, position, velocity, yaw, pitch: 0, health: 100, stance: Stance.Chase, shots: 0 };
}
