// One robot on the stage: a rig of joints, moved by procedural animation from what the state says (velocity, standing, aim, recoil),
// never from recorded clips. Steps, shots and landings are reported to the caller, who has sounds and flashes for them.

import { Group, Mesh, Vector3 } from "three";
import type { RobotView, Triple } from "../model.ts";
import { actorMaterial } from "./materials.ts";
import { angleBetween, ease, easeAngle, Spring } from "./motion.ts";
import { HIP_HEIGHT, robotGeometry, THIGH_LENGTH, UPPER_ARM_LENGTH } from "./robot_parts.ts";
import { weaponModel } from "./weapon_models.ts";

/** Events of a robot in this frame. */
export interface RobotEvents {
  stepped: boolean;
  jumped: boolean;
  landed: number;
  fired: boolean;
  died: boolean;
  revived: boolean;
}

interface Limb {
  upper: Group;
  lower: Group;
}

export class Robot {
  readonly root = new Group();
  private readonly hips = new Group();
  private readonly torso = new Group();
  private readonly head = new Group();
  private readonly arms: [Limb, Limb];
  private readonly legs: [Limb, Limb];
  private readonly hand = new Group();
  private readonly surface = actorMaterial();
  private readonly kick = new Spring(260, 16);
  private readonly squash = new Spring(220, 15);
  private readonly lean = { forward: 0, side: 0 };
  private stride = 0;
  private gait = 0;
  private airborne = 0;
  private aim = 0;
  private lowering = 0;
  private facing = 0;
  private weapon: Mesh;
  private shown = { weapon: 0, shots: -1, alive: true, health: 100, standing: 1, fall: 0 };

  constructor(readonly slot: number) {
    const parts = robotGeometry(slot);
    const mesh = (geometry: Mesh["geometry"]): Mesh => {
      const made = new Mesh(geometry, this.surface.material);
      made.castShadow = true;
      return made;
    };
    this.root.add(this.hips);
    this.hips.position.y = HIP_HEIGHT;
    this.hips.add(mesh(parts.hips), this.torso);
    this.torso.position.y = 0.12;
    this.torso.add(mesh(parts.torso), this.head);
    this.head.position.y = 0.52;
    this.head.add(mesh(parts.head));
    const arm = (side: number): Limb => limb(this.torso, mesh(parts.upperArm), mesh(parts.lowerArm), [side * 0.36, 0.42, 0], UPPER_ARM_LENGTH);
    const leg = (side: number): Limb => limb(this.hips, mesh(parts.thigh), mesh(parts.shin), [side * 0.14, -0.04, 0], THIGH_LENGTH);
    this.arms = [arm(-1), arm(1)];
    this.legs = [leg(-1), leg(1)];
    this.weapon = mesh(weaponModel(1, slot).geometry);
    this.hand.position.set(0.36, 0.26, -0.3);
    this.torso.add(this.hand);
    this.hand.add(this.weapon);
  }

  /** Place in the world where shots leave. */
  muzzle(target: Vector3): Vector3 {
    const { muzzle } = weaponModel(this.shown.weapon, this.slot);
    return this.weapon.localToWorld(target.set(...muzzle));
  }

  update(view: RobotView, seconds: number): RobotEvents {
    const events = this.notice(view);
    this.root.visible = view.alive;
    this.root.position.set(...view.position);
    this.surface.flash.value = ease(this.surface.flash.value, 0, 9, seconds);
    const [forward, side, speed] = localVelocity(view);
    this.facing = easeAngle(this.facing, facingOf(view, forward, side, speed), 14, seconds);
    this.root.rotation.y = this.facing;
    events.stepped = this.walk(view, forward, side, speed, seconds);
    this.poseBody(view, seconds);
    this.poseArms(view, seconds);
    return events;
  }

  private notice(view: RobotView): RobotEvents {
    const before = this.shown;
    const fired = before.shots >= 0 && view.shots !== before.shots && view.alive;
    const inAir = view.standing === 0;
    const landed = before.standing === 0 && !inAir ? before.fall : 0;
    const jumped = before.standing !== 0 && inAir && view.velocity[1] > 3;
    if (fired) this.kick.push(view.weapon === 1 ? 5 : 9);
    if (landed > 0) this.squash.push(-Math.min(landed, 14) * 0.16);
    if (view.health < before.health && view.alive) this.surface.flash.value = 0.55;
    if (view.weapon !== before.weapon && view.weapon > 0) {
      this.weapon.geometry = weaponModel(view.weapon, this.slot).geometry;
      this.lowering = 1;
    }
    const events = { stepped: false, jumped, landed, fired, died: before.alive && !view.alive, revived: !before.alive && view.alive };
    this.shown = {
      weapon: view.weapon,
      shots: view.shots,
      alive: view.alive,
      health: view.health,
      standing: view.standing,
      fall: inAir ? Math.max(0, -view.velocity[1]) : 0,
    };
    return events;
  }

  /** Legs, and whether a foot came down in this frame. */
  private walk(view: RobotView, forward: number, side: number, speed: number, seconds: number): boolean {
    const inAir = view.standing === 0;
    this.airborne = ease(this.airborne, inAir ? 1 : 0, 14, seconds);
    this.gait = ease(this.gait, inAir ? 0 : Math.min(speed / 6, 1), 12, seconds);
    const before = Math.floor(this.stride / Math.PI);
    const backwards = forward < -0.5 ? -1 : 1;
    if (!inAir) this.stride += speed * seconds * 1.75;
    const swing = this.gait * 0.85;
    for (const [index, leg] of this.legs.entries()) {
      const phase = this.stride + index * Math.PI;
      const run = Math.sin(phase) * swing * backwards;
      const knee = Math.max(0, Math.cos(phase)) * this.gait * 1.25 + 0.12;
      const tuck = index === 0 ? 0.75 : 0.25;
      const rising = view.velocity[1] > 0 ? 1 : 0.55;
      leg.upper.rotation.x = run * (1 - this.airborne) + tuck * rising * this.airborne + this.squash.value * -0.5;
      leg.lower.rotation.x = -(knee * (1 - this.airborne) + (tuck + 0.35) * rising * this.airborne) + this.squash.value * 0.9;
      leg.upper.rotation.z = (index === 0 ? -0.05 : 0.05) + clamp(side * 0.02, 0.1) * this.gait;
    }
    return !inAir && speed > 1 && Math.floor(this.stride / Math.PI) !== before;
  }

  private poseBody(view: RobotView, seconds: number): void {
    const [forward, side] = localVelocity(view);
    this.lean.forward = ease(this.lean.forward, forward * 0.03, 7, seconds);
    this.lean.side = ease(this.lean.side, side * 0.02, 7, seconds);
    const bob = Math.abs(Math.cos(this.stride)) * 0.06 * this.gait;
    const breath = Math.sin(performance.now() / 700 + this.slot) * 0.008 * (1 - this.gait);
    const squash = this.squash.step(seconds);
    this.hips.position.y = HIP_HEIGHT - 0.03 * this.gait + bob + breath + clamp(squash, 0.35);
    this.hips.rotation.set(-this.lean.forward, 0, -this.lean.side);
    this.torso.rotation.y = Math.sin(this.stride) * 0.1 * this.gait + angleBetween(this.facing, view.yaw);
    this.torso.rotation.x = clamp(view.pitch * 0.25, 0.3);
    this.torso.scale.y = 1 + breath * 2;
    this.head.rotation.x = clamp(view.pitch * 0.55, 0.6) + this.lean.forward * 0.5;
  }

  private poseArms(view: RobotView, seconds: number): void {
    const kick = this.kick.step(seconds);
    this.aim = ease(this.aim, view.aim, 14, seconds);
    this.lowering = ease(this.lowering, view.reloadTicks > 0 ? 0.9 : 0, view.reloadTicks > 0 ? 12 : 7, seconds);
    const up = view.pitch * 0.7 + this.lean.forward;
    const tilt = up - this.lowering * 0.9 + kick * 0.25;
    this.hand.position.set(0.38 - this.aim * 0.16, 0.26 + this.aim * 0.14 + up * 0.16 - this.lowering * 0.14, -0.36 - this.aim * 0.06 + kick * 0.12);
    this.hand.rotation.set(tilt, 0, this.lowering * 0.4);
    const reach = 0.95 + this.aim * 0.25;
    const [left, right] = this.arms;
    right.upper.rotation.set(reach * 0.55 + tilt * 0.7 + kick * 0.1, -0.05, 0.02);
    right.lower.rotation.set(0.85 + this.aim * 0.2, 0, 0.12);
    left.upper.rotation.set(reach * 0.8 + tilt * 0.7 - this.airborne * 0.3, -0.75, 0.1 - this.airborne * 0.6);
    left.lower.rotation.set(0.7, -0.2, 0.25);
  }
}

function limb(parent: Group, upperMesh: Mesh, lowerMesh: Mesh, at: Triple, length: number): Limb {
  const upper = new Group();
  const lower = new Group();
  upper.position.set(...at);
  lower.position.y = -length;
  upper.add(upperMesh, lower);
  lower.add(lowerMesh);
  parent.add(upper);
  return { upper, lower };
}

/** Forward and sideways speed as the robot sees them, and the speed over ground. */
function localVelocity(view: RobotView): [number, number, number] {
  const [x, , z] = view.velocity;
  const sine = Math.sin(view.yaw);
  const cosine = Math.cos(view.yaw);
  return [-x * sine - z * cosine, x * cosine - z * sine, Math.hypot(x, z)];
}

/** Legs turn part of the way into the direction of movement, the torso keeps looking where the player looks. */
function facingOf(view: RobotView, forward: number, side: number, speed: number): number {
  if (speed < 0.8) return view.yaw;
  const towards = forward < -0.5 ? Math.atan2(side, -forward) : -Math.atan2(side, forward);
  return view.yaw + clamp(towards, 0.9);
}

function clamp(value: number, limit: number): number {
  return Math.max(-limit, Math.min(limit, value));
}
