// From the Worker's frames to what is drawn: `readMoment` unpacks one frame, `Moments` keeps the newest two and gives the picture between
// them by time, so that the movement is even although messages between threads are not.

import { BALL, BOLT, DEVICE, EFFECT, ENEMY, FLAGS, type Frame, HEADER, NET, ROBOT, ROUND, type SectionName } from "./frame.ts";
import { type BallView, type BoltView, type DeviceView, type EffectView, type EnemyView, type Moment, type NetView, type RobotView, type RoundView, SLOTS_MAX, type Triple } from "./model.ts";

export function readMoment(frame: Frame): Moment {
  const robots = all(frame, "robots", readRobot);
  return {
    tick: frame.tick,
    timeMs: frame.floats[HEADER.TIME_MS] ?? 0,
    interrupted: frame.has(FLAGS.INTERRUPTED),
    own: robots[frame.ownRecord],
    robots,
    enemies: all(frame, "enemies", readEnemy),
    devices: all(frame, "devices", readDevice),
    bolts: all(frame, "bolts", readBolt),
    balls: all(frame, "balls", readBall),
    effects: all(frame, "effects", readEffect),
    round: readRound(frame),
    net: readNet(frame),
  };
}

/** The newest frames, and the picture between them. */
export class Moments {
  private before: Moment | undefined;
  private newest: Moment | undefined;
  /** Page time minus Worker time, as small as it was seen: the quickest message tells the clocks' difference best. */
  private offsetMs = Number.POSITIVE_INFINITY;
  private intervalMs = 16;
  private pending: EffectView[] = [];

  take(moment: Moment, nowMs: number): void {
    const previous = this.newest;
    if (this.pending.length < EFFECTS_MAX) this.pending.push(...moment.effects);
    if (previous !== undefined) {
      const interval = moment.timeMs - previous.timeMs;
      if (interval < 0) return this.restart(moment, nowMs);
      if (interval < 0.5) {
        this.newest = moment;
        return;
      }
      this.intervalMs += (Math.min(interval, INTERVAL_MS_MAX) - this.intervalMs) * 0.1;
    }
    // Somebody moved a recording to another time: nothing lies between the two.
    const jumped = previous !== undefined && Math.abs(moment.tick - previous.tick) > JUMP_TICKS;
    this.before = jumped ? undefined : previous;
    this.newest = moment;
    // Let the estimate drift up slowly, so that a change of clocks is followed.
    this.offsetMs = Math.min(this.offsetMs + 0.02, nowMs - moment.timeMs);
  }

  /** Effects since the last call; no effect is lost between two pictures, and none comes twice. */
  drainEffects(): EffectView[] {
    const effects = this.pending;
    this.pending = [];
    return effects;
  }

  /** The newest frame as it came. */
  get latest(): Moment | undefined {
    return this.newest;
  }

  clear(): void {
    this.pending = [];
    this.before = undefined;
    this.newest = undefined;
    this.offsetMs = Number.POSITIVE_INFINITY;
  }

  /** The moment to draw now: one interval behind the newest frame, between the last two. */
  at(nowMs: number): Moment | undefined {
    const { before, newest } = this;
    if (newest === undefined || before === undefined) return newest;
    const span = newest.timeMs - before.timeMs;
    const wanted = nowMs - this.offsetMs - this.intervalMs;
    const share = (wanted - before.timeMs) / span;
    return between(before, newest, Math.max(0, Math.min(1, share)));
  }

  private restart(moment: Moment, nowMs: number): void {
    this.clear();
    this.newest = moment;
    this.offsetMs = nowMs - moment.timeMs;
  }
}

/** Positions and angles at `share` of the way; everything else is the newer one's. */
export function between(before: Moment, after: Moment, share: number): Moment {
  if (share >= 1) return after;
  const robots = blend(before.robots, after.robots, share);
  const own = after.own;
  return {
    ...after,
    robots,
    own: own && robots.find((robot) => robot.entity === own.entity),
    enemies: blend(before.enemies, after.enemies, share),
    bolts: blend(before.bolts, after.bolts, share),
    balls: blend(before.balls, after.balls, share),
    devices: after.devices.map((device, index) => {
      const old = before.devices[index];
      if (old === undefined || old.index !== device.index) return device;
      return { ...device, position: mix(old.position, device.position, share), progress: old.progress + (device.progress - old.progress) * share };
    }),
  };
}

interface Moving {
  entity: number;
  position: Triple;
  yaw?: number;
  pitch?: number;
}

function blend<Kind extends Moving>(before: Kind[], after: Kind[], share: number): Kind[] {
  return after.map((now, index) => {
    const same = before[index];
    const old = same?.entity === now.entity ? same : before.find((other) => other.entity === now.entity);
    if (old === undefined || far(old.position, now.position)) return now;
    const blended = { ...now, position: mix(old.position, now.position, share) };
    if (old.yaw !== undefined && now.yaw !== undefined) blended.yaw = turn(old.yaw, now.yaw, share);
    if (old.pitch !== undefined && now.pitch !== undefined) blended.pitch = old.pitch + (now.pitch - old.pitch) * share;
    return blended;
  });
}

function mix(from: Triple, to: Triple, share: number): Triple {
  return [from[0] + (to[0] - from[0]) * share, from[1] + (to[1] - from[1]) * share, from[2] + (to[2] - from[2]) * share];
}

function turn(from: number, to: number, share: number): number {
  const full = 2 * Math.PI;
  const difference = ((((to - from) % full) + full + Math.PI) % full) - Math.PI;
  return from + difference * share;
}

/** A respawn is a jump, not a movement. */
function far(from: Triple, to: Triple): boolean {
  return Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]) > JUMP_METRES;
}

type Get = (field: number) => number;

function all<Kind>(frame: Frame, section: SectionName, read: (get: Get) => Kind): Kind[] {
  const list: Kind[] = [];
  for (let record = 0; record < frame.count(section); record += 1) {
    const start = frame.at(section, record);
    list.push(read((field) => frame.floats[start + field] ?? 0));
  }
  return list;
}

function triple(get: Get, field: number): Triple {
  return [get(field), get(field + 1), get(field + 2)];
}

function readRobot(get: Get): RobotView {
  return {
    entity: get(ROBOT.ID),
    slot: get(ROBOT.SLOT),
    own: get(ROBOT.OWN) !== 0,
    position: triple(get, ROBOT.X),
    velocity: triple(get, ROBOT.VX),
    yaw: get(ROBOT.YAW),
    pitch: get(ROBOT.PITCH),
    standing: get(ROBOT.STANDING),
    health: get(ROBOT.HEALTH),
    alive: get(ROBOT.ALIVE) !== 0,
    weapon: get(ROBOT.WEAPON),
    owned: get(ROBOT.OWNED),
    magazines: [get(ROBOT.MAGAZINE_1), get(ROBOT.MAGAZINE_2), get(ROBOT.MAGAZINE_3), get(ROBOT.MAGAZINE_4)],
    cooldownTicks: get(ROBOT.COOLDOWN),
    reloadTicks: get(ROBOT.RELOAD),
    recoil: get(ROBOT.RECOIL),
    aim: get(ROBOT.AIM),
    shots: get(ROBOT.SHOTS),
    respawnTicks: get(ROBOT.RESPAWN),
    checkpoint: get(ROBOT.CHECKPOINT),
    absent: get(ROBOT.ABSENT) !== 0,
  };
}

function readEnemy(get: Get): EnemyView {
  return {
    entity: get(ENEMY.ID),
    species: get(ENEMY.SPECIES),
    position: triple(get, ENEMY.X),
    velocity: triple(get, ENEMY.VX),
    yaw: get(ENEMY.YAW),
    pitch: get(ENEMY.PITCH),
    health: get(ENEMY.HEALTH),
    stance: get(ENEMY.STANCE),
    shots: get(ENEMY.SHOTS),
  };
}

function readDevice(get: Get): DeviceView {
  return {
    index: get(DEVICE.INDEX),
    progress: get(DEVICE.PROGRESS) / 100,
    pressed: get(DEVICE.PRESSED) !== 0,
    holder: get(DEVICE.HOLDER),
    position: triple(get, DEVICE.X),
  };
}

function readBolt(get: Get): BoltView {
  return {
    // One's own are the same before and after the server knows of them; the tick of its birth tells one from others.
    entity: get(BOLT.ID) === 0 ? -1 - get(BOLT.BORN) : get(BOLT.ID),
    owner: get(BOLT.OWNER),
    weapon: get(BOLT.WEAPON),
    position: triple(get, BOLT.X),
    velocity: triple(get, BOLT.VX),
    share: get(BOLT.SHARE),
  };
}

function readBall(get: Get): BallView {
  return {
    entity: get(BALL.ID),
    position: triple(get, BALL.X),
    velocity: triple(get, BALL.VX),
    touched: get(BALL.TOUCHED),
    restartTicks: get(BALL.RESTART),
    kickable: get(BALL.KICKABLE) !== 0,
  };
}

function readEffect(get: Get): EffectView {
  return {
    kind: get(EFFECT.KIND),
    slot: get(EFFECT.SLOT),
    entity: get(EFFECT.ENTITY),
    at: triple(get, EFFECT.X),
    to: triple(get, EFFECT.TO_X),
    weapon: get(EFFECT.WEAPON),
    material: get(EFFECT.MATERIAL),
    amount: get(EFFECT.AMOUNT),
  };
}

function readRound(frame: Frame): RoundView {
  const get = first(frame, "round");
  const list = (field: number): number[] => Array.from({ length: SLOTS_MAX }, (_, slot) => get(field + slot));
  return {
    mode: get(ROUND.MODE),
    phase: get(ROUND.PHASE),
    ticksLeft: get(ROUND.TICKS_LEFT),
    points: list(ROUND.POINTS),
    kills: list(ROUND.KILLS),
    deaths: list(ROUND.DEATHS),
    checkpoint: get(ROUND.CHECKPOINT),
    weakPoints: [get(ROUND.WEAK_POINT_1), get(ROUND.WEAK_POINT_2)],
    goals: [get(ROUND.GOALS_1), get(ROUND.GOALS_2)],
  };
}

function readNet(frame: Frame): NetView {
  const get = first(frame, "net");
  return {
    rttMs: get(NET.RTT_MS),
    jitterMs: get(NET.JITTER_MS),
    loss: get(NET.LOSS),
    inputBufferTicks: get(NET.INPUT_BUFFER_TICKS),
    interpolationDelayMs: get(NET.INTERPOLATION_DELAY_MS),
    mispredictions: get(NET.MISPREDICTIONS),
    correction: get(NET.CORRECTION),
    bytesInPerSecond: get(NET.BYTES_IN_PER_S),
    bytesOutPerSecond: get(NET.BYTES_OUT_PER_S),
    snapshotsPerSecond: get(NET.SNAPSHOTS_PER_S),
    quality: get(NET.QUALITY),
    link: get(NET.LINK),
    stepRatio: get(NET.STEP_RATIO),
    inputsLate: get(NET.INPUTS_LATE),
    snapshotsLost: get(NET.SNAPSHOTS_LOST),
    jumps: get(NET.JUMPS),
    resumed: get(NET.RESUMED),
    conditionDelayMs: get(NET.CONDITION_DELAY_MS),
    conditionJitterMs: get(NET.CONDITION_JITTER_MS),
    conditionLoss: get(NET.CONDITION_LOSS),
    prediction: get(NET.PREDICTION),
    interpolation: get(NET.INTERPOLATION),
    lagCompensation: get(NET.LAG_COMPENSATION),
  };
}

/** The one record of a section that has one; zeros until it is there. */
function first(frame: Frame, section: SectionName): Get {
  const start = frame.at(section, 0);
  const there = frame.count(section) > 0;
  return (field) => (there ? (frame.floats[start + field] ?? 0) : 0);
}

const EFFECTS_MAX = 256;
const INTERVAL_MS_MAX = 50;
const JUMP_METRES = 4;
const JUMP_TICKS = 50;
