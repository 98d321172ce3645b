// A camera for recordings that stands beside the robot it follows: it looks for a free place from which the robot's face and its opponent are in the
// picture, keeps to it while that is so, and cuts to another place when a wall or a turn has spoilt it.

import { type PerspectiveCamera, Vector3 } from "three";
import { type EnemyView, Mode, type Moment, type RobotView, Stance, type Triple } from "../model.ts";
import { type Cast, lookDirection } from "./camera.ts";
import { ease } from "./motion.ts";

export class SideCamera {
  /** From the middle of the robot to the camera. */
  private readonly offset = new Vector3();
  /** Direction from the camera to the middle of the picture. */
  private readonly aim = new Vector3();
  private readonly last = new Vector3();
  private entity = -1;
  private secondsSinceCut = 0;
  private secondsSpoilt = 0;

  /** Takes a new place with the next picture. */
  cut(): void {
    this.entity = -1;
  }

  update(camera: PerspectiveCamera, own: RobotView, moment: Moment, cast: Cast, seconds: number): void {
    middleOf(own.position, ROBOT_MIDDLE, middle);
    const other = opponentOf(own, moment, middle, cast);
    this.secondsSinceCut += seconds;
    const spoilt = this.score(own, middle, other, this.offset, cast) < SPOILT_SCORE;
    this.secondsSpoilt = spoilt ? this.secondsSpoilt + seconds : 0;
    const jumped = this.last.distanceTo(middle) > JUMP_METRES;
    const stale = this.secondsSpoilt > SPOILT_SECONDS && this.secondsSinceCut > SHOT_SECONDS_MIN;
    const squeezed = this.secondsSinceCut > SQUEEZED_SECONDS && freeMetres(middle, this.offset, cast) < SQUEEZED_METRES;
    const fresh = own.entity !== this.entity || jumped || stale || squeezed;
    if (fresh) this.takePlace(own, other, cast);
    this.last.copy(middle);
    // The robot may run past a pillar or into a corner: the camera comes nearer rather than into a wall.
    const free = freeMetres(middle, this.offset, cast);
    camera.position.copy(middle).addScaledVector(direction.copy(this.offset).normalize(), free);
    pointBetween(camera.position, middle, other, wanted);
    for (const axis of ["x", "y", "z"] as const) this.aim[axis] = fresh ? wanted[axis] : ease(this.aim[axis], wanted[axis], AIM_RATE, seconds);
    camera.lookAt(camera.position.x + this.aim.x, camera.position.y + this.aim.y, camera.position.z + this.aim.z);
    if (camera.fov === FIELD_DEGREES) return;
    camera.fov = FIELD_DEGREES;
    camera.updateProjectionMatrix();
  }

  private takePlace(own: RobotView, other: Vector3 | undefined, cast: Cast): void {
    let best = Number.NEGATIVE_INFINITY;
    for (let turn = 0; turn < DIRECTIONS; turn += 1) {
      const angle = (turn / DIRECTIONS) * 2 * Math.PI;
      for (const metres of DISTANCES) {
        for (const height of HEIGHTS) {
          candidate.set(Math.sin(angle) * metres, height, Math.cos(angle) * metres);
          const score = this.score(own, middle, other, candidate, cast);
          if (score <= best) continue;
          best = score;
          this.offset.copy(candidate);
        }
      }
    }
    this.entity = own.entity;
    this.secondsSinceCut = 0;
    this.secondsSpoilt = 0;
  }

  /** Rates a place: the robot is near and shows its face, what it fights is in the picture as well, and where it runs to stays free. */
  private score(own: RobotView, from: Vector3, other: Vector3 | undefined, offset: Vector3, cast: Cast): number {
    const metres = offset.length();
    const free = freeMetres(from, offset, cast) / metres;
    if (free < 0.99) return free - 2;
    lookDirection(own.yaw, 0, ahead);
    const facing = direction.copy(offset).setY(0).normalize().dot(ahead);
    let score = 1 - Math.abs(facing - FACING) - BACK_COST * Math.max(0, -facing);
    score -= Math.abs(metres - DISTANCE_WANTED) * DISTANCE_COST;
    later.set(...own.velocity).setY(0).multiplyScalar(LEAD_SECONDS).add(from);
    if (freeMetres(later, offset, cast) < metres * 0.99) score -= 0.4;
    if (other === undefined) return score;
    eye.copy(from).add(offset);
    const apart = direction.copy(from).sub(eye).angleTo(towards.copy(other).sub(eye));
    const distance = eye.distanceTo(other);
    const seen = cast(eye, towards.normalize(), distance) >= distance - 0.3;
    return score + (seen && apart < ANGLE_MAX ? OTHER_SEEN + OTHER_NEAR * (1 - apart / ANGLE_MAX) : 0);
  }
}

/** The ball, where there is one; else the nearest opponent that the robot can see, preferably one that it looks at. */
function opponentOf(own: RobotView, moment: Moment, from: Vector3, cast: Cast): Vector3 | undefined {
  const [ball] = moment.balls;
  if (ball !== undefined) return new Vector3(...ball.position);
  const alive = (enemy: EnemyView): boolean => enemy.stance !== Stance.Dead;
  const others = moment.round.mode !== Mode.Cooperative ? moment.robots.filter((robot) => robot.alive && robot.entity !== own.entity) : [];
  lookDirection(own.yaw, own.pitch, ahead);
  let best = OPPONENT_METRES;
  let found: Vector3 | undefined;
  for (const { position } of [...moment.enemies.filter(alive), ...others]) {
    middleOf(position, OPPONENT_MIDDLE, towards).sub(from);
    const distance = towards.length();
    const cost = distance * (1.5 - 0.5 * towards.normalize().dot(ahead));
    if (cost >= best || cast(from, towards, distance) < distance - 0.3) continue;
    best = cost;
    found = new Vector3(position[0], position[1] + OPPONENT_MIDDLE, position[2]);
  }
  return found;
}

/** Direction from the camera to a point between robot and opponent that keeps the robot well inside the picture. */
function pointBetween(camera: Vector3, robot: Vector3, other: Vector3 | undefined, target: Vector3): void {
  target.copy(robot).sub(camera).normalize();
  if (other === undefined) return;
  towards.copy(other).sub(camera).normalize();
  const apart = target.angleTo(towards);
  if (apart < ANGLE_MAX) target.lerp(towards, Math.min(0.5, ANGLE_ASIDE / Math.max(apart, 1e-3))).normalize();
}

/** Metres that the camera can be moved from the robot along an offset so that both its shoulders are still seen. */
function freeMetres(from: Vector3, offset: Vector3, cast: Cast): number {
  const metres = offset.length();
  if (metres === 0) return 0;
  shoulder.set(offset.z, 0, -offset.x).setLength(SHOULDER_METRES);
  let free = metres;
  for (const side of [0, 1, -1]) {
    corner.copy(from).addScaledVector(shoulder, side);
    ray.copy(from).add(offset).sub(corner);
    const length = ray.length();
    free = Math.min(free, cast(corner, ray.divideScalar(length), length + MARGIN_METRES) - MARGIN_METRES);
  }
  return Math.max(0.6, free);
}

function middleOf(feet: Triple, height: number, target: Vector3): Vector3 {
  return target.set(feet[0], feet[1] + height, feet[2]);
}

const ROBOT_MIDDLE = 1.1;
const OPPONENT_MIDDLE = 0.8;
const OPPONENT_METRES = 18;
const DIRECTIONS = 24;
const DISTANCES = [3, 4.2, 5.5, 7];
const HEIGHTS = [0, 0.7, 1.6];
const DISTANCE_WANTED = 4;
/** For each metre nearer or farther than that. */
const DISTANCE_COST = 0.07;
/** Three quarters from the front: cosine of the angle between the look and the way to the camera. */
const FACING = 0.4;
/** For a view from straight behind. */
const BACK_COST = 1.2;
/** An opponent in the picture is worth more than the face, most when it is close to the robot there. */
const OTHER_SEEN = 0.6;
const OTHER_NEAR = 1.2;
/** Opponents farther than this from the robot, in radians, are outside of the picture. */
const ANGLE_MAX = 1.05;
const LEAD_SECONDS = 0.8;
const AIM_RATE = 5;
const SPOILT_SCORE = -0.2;
const SPOILT_SECONDS = 0.6;
const SHOT_SECONDS_MIN = 1.6;
const JUMP_METRES = 4;
/** Nearer, the robot fills the picture. */
const SQUEEZED_METRES = 2;
const SQUEEZED_SECONDS = 0.2;
const MARGIN_METRES = 0.25;
const SHOULDER_METRES = 0.45;
/** Most that the robot is beside the middle of the picture, in radians. */
const ANGLE_ASIDE = 0.4;
const FIELD_DEGREES = 52;
const middle = new Vector3();
const wanted = new Vector3();
const candidate = new Vector3();
const direction = new Vector3();
const towards = new Vector3();
const ahead = new Vector3();
const later = new Vector3();
const eye = new Vector3();
const ray = new Vector3();
const shoulder = new Vector3();
const corner = new Vector3();
