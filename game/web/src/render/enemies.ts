// The enemies on the stage: one rig per species, moved by what its state says. A rig reports shots and deaths, like a robot does.

import { DoubleSide, Group, Mesh, MeshBasicMaterial, PlaneGeometry, type Vector3 } from "three";
import { type EnemyView, Species, Stance } from "../model.ts";
import * as parts from "./enemy_parts.ts";
import { type ActorMaterial, actorMaterial } from "./materials.ts";
import { ease, Spring } from "./motion.ts";

export interface EnemyEvents {
  fired: boolean;
  died: boolean;
  hurt: boolean;
  stepped: boolean;
}

export abstract class Enemy {
  readonly root = new Group();
  protected readonly surface: ActorMaterial = actorMaterial();
  protected readonly kick = new Spring(180, 14);
  protected stride = Math.random() * 6;
  private shown: { shots: number; health: number; dead: boolean } | undefined;

  update(view: EnemyView, seconds: number): EnemyEvents {
    const dead = view.stance === Stance.Dead;
    const before = this.shown ?? { shots: view.shots, health: view.health, dead };
    const events = { fired: view.shots !== before.shots && !dead, died: dead && !before.dead, hurt: view.health < before.health, stepped: false };
    this.shown = { shots: view.shots, health: view.health, dead };
    if (events.fired) this.kick.push(4);
    if (events.hurt) this.surface.flash.value = 0.6;
    this.surface.flash.value = ease(this.surface.flash.value, 0, 10, seconds);
    this.root.visible = !dead;
    this.root.position.set(...view.position);
    this.root.rotation.y = view.yaw;
    const speed = Math.hypot(view.velocity[0], view.velocity[2]);
    const step = Math.floor(this.stride / Math.PI);
    this.pose(view, speed, seconds);
    events.stepped = Math.floor(this.stride / Math.PI) !== step && speed > 0.5;
    return events;
  }

  /** Place in the world where its shots leave. */
  abstract muzzle(target: Vector3): Vector3;
  protected abstract pose(view: EnemyView, speed: number, seconds: number): void;

  protected part(geometry: Mesh["geometry"], parent: Group): Mesh {
    const mesh = new Mesh(geometry, this.surface.material);
    mesh.castShadow = true;
    parent.add(mesh);
    return mesh;
  }
}

export function makeEnemy(species: Species): Enemy {
  switch (species) {
    case Species.Tank:
      return new Tank();
    case Species.Cat:
      return new Cat();
    case Species.Wasp:
      return new Wasp();
    default:
      return new Boss();
  }
}

const TANK_HULL = parts.tankHull();
const TANK_TURRET = parts.tankTurret();
const TANK_BARREL = parts.tankBarrel();

class Tank extends Enemy {
  private readonly body = new Group();
  private readonly turret = new Group();
  private readonly barrel = new Group();

  constructor() {
    super();
    this.root.add(this.body);
    this.part(TANK_HULL, this.body);
    this.body.add(this.turret);
    this.turret.position.set(0, 1.0, 0.1);
    this.part(TANK_TURRET, this.turret);
    this.turret.add(this.barrel);
    this.barrel.position.set(0, 0.24, -0.35);
    this.part(TANK_BARREL, this.barrel);
  }

  muzzle(target: Vector3): Vector3 {
    return this.barrel.localToWorld(target.set(0, 0, -1.5));
  }

  protected pose(view: EnemyView, speed: number, seconds: number): void {
    const kick = this.kick.step(seconds);
    this.stride += speed * seconds * 2.2;
    this.body.position.y = Math.abs(Math.sin(this.stride)) * 0.03 * Math.min(speed, 1);
    this.body.rotation.x = kick * 0.12 + Math.sin(this.stride) * 0.012 * Math.min(speed, 1);
    this.barrel.rotation.x = view.pitch;
    this.barrel.position.z = -0.35 + Math.max(0, kick) * 1.2;
    if (view.stance === Stance.Idle) this.turret.rotation.y = Math.sin(performance.now() / 1700 + view.entity) * 0.6;
    else this.turret.rotation.y = ease(this.turret.rotation.y, 0, 8, seconds);
  }
}

const CAT_BODY = parts.catBody();
const CAT_HEAD = parts.catHead();
const CAT_LEG = parts.catLeg();
const CAT_TAIL = parts.catTail();
const CAT_TAIL_TIP = parts.catTailTip();

class Cat extends Enemy {
  private readonly body = new Group();
  private readonly head = new Group();
  private readonly legs: Group[] = [];
  private readonly tail: Group[] = [];
  private leap = 0;

  constructor() {
    super();
    this.root.add(this.body);
    this.body.position.y = 0.42;
    this.part(CAT_BODY, this.body);
    this.body.add(this.head);
    this.head.position.set(0, 0.14, -0.36);
    this.part(CAT_HEAD, this.head);
    for (const [x, z] of [[-0.12, -0.26], [0.12, -0.26], [-0.11, 0.32], [0.11, 0.32]] as const) {
      const leg = new Group();
      leg.position.set(x, -0.06, z);
      this.part(CAT_LEG, leg);
      this.body.add(leg);
      this.legs.push(leg);
    }
    let parent = this.body;
    for (let index = 0; index < 4; index += 1) {
      const segment = new Group();
      segment.position.set(0, index === 0 ? 0.08 : 0, index === 0 ? 0.4 : 0.19);
      this.part(index === 3 ? CAT_TAIL_TIP : CAT_TAIL, segment);
      parent.add(segment);
      this.tail.push(segment);
      parent = segment;
    }
  }

  muzzle(target: Vector3): Vector3 {
    return this.head.localToWorld(target.set(0, 0, -0.35));
  }

  protected pose(view: EnemyView, speed: number, seconds: number): void {
    const kick = this.kick.step(seconds);
    const airborne = view.stance === Stance.Jump || Math.abs(view.velocity[1]) > 1.5;
    this.leap = ease(this.leap, airborne ? 1 : 0, 16, seconds);
    const gait = Math.min(speed / 5, 1) * (1 - this.leap);
    this.stride += speed * seconds * 2.6;
    for (const [index, leg] of this.legs.entries()) {
      const front = index < 2;
      const swing = Math.sin(this.stride + (front ? 0 : 2.2) + (index % 2) * 0.5) * 0.95 * gait;
      leg.rotation.x = swing + this.leap * (front ? 1.1 : -1.1);
    }
    const arch = Math.sin(this.stride + 1) * 0.16 * gait;
    const crouch = view.stance === Stance.Fire ? 0.08 : 0;
    this.body.position.y = 0.42 + Math.abs(Math.sin(this.stride)) * 0.08 * gait - crouch;
    this.body.rotation.x = arch + this.leap * Math.max(-0.6, Math.min(0.6, view.velocity[1] * 0.08));
    this.head.rotation.x = view.pitch - arch + kick * 0.2;
    const time = performance.now() / 1000;
    for (const [index, segment] of this.tail.entries()) {
      segment.rotation.x = (index === 0 ? 0.7 : 0.28) - gait * 0.35;
      segment.rotation.y = Math.sin(time * 3 + index * 0.8 + view.entity) * 0.25;
    }
  }
}

const WASP_BODY = parts.waspBody();
const WING = new PlaneGeometry(0.46, 0.16).translate(0.23, 0, 0).rotateX(-Math.PI / 2);
const WING_MATERIAL = new MeshBasicMaterial({ color: 0xfff0d0, transparent: true, opacity: 0.35, side: DoubleSide, depthWrite: false });

class Wasp extends Enemy {
  private readonly body = new Group();
  private readonly wings: Mesh[] = [];

  constructor() {
    super();
    this.root.add(this.body);
    this.part(WASP_BODY, this.body);
    for (const side of [0, Math.PI]) {
      const wing = new Mesh(WING, WING_MATERIAL);
      wing.position.set(0, 0.12, -0.05);
      wing.rotation.y = side;
      this.body.add(wing);
      this.wings.push(wing);
    }
  }

  muzzle(target: Vector3): Vector3 {
    return this.body.localToWorld(target.set(0, -0.1, 0.6));
  }

  protected pose(view: EnemyView, speed: number, seconds: number): void {
    const kick = this.kick.step(seconds);
    this.stride += seconds * 55;
    const [left, right] = this.wings;
    const beat = Math.sin(this.stride) * 0.9;
    if (left !== undefined) left.rotation.z = beat;
    if (right !== undefined) right.rotation.z = beat;
    const time = performance.now() / 1000 + view.entity * 1.7;
    this.body.position.set(Math.sin(time * 2.1) * 0.06, Math.sin(time * 3.3) * 0.08, 0);
    this.body.rotation.x = -Math.min(speed * 0.07, 0.5) + (view.stance === Stance.Fire ? 0.5 : 0) + kick * 0.4;
    this.body.rotation.z = Math.sin(time * 1.7) * 0.15;
  }
}

const BOSS_CORE = parts.bossCore();
const BOSS_RING = parts.bossRing();

class Boss extends Enemy {
  private readonly core = new Group();
  private readonly rings: Mesh[] = [];

  constructor() {
    super();
    this.root.add(this.core);
    this.core.position.y = 1.6;
    this.part(BOSS_CORE, this.core);
    this.rings.push(this.part(BOSS_RING, this.core), this.part(BOSS_RING, this.core));
  }

  muzzle(target: Vector3): Vector3 {
    return this.core.localToWorld(target.set(0, 0.15, -1.3));
  }

  protected pose(view: EnemyView, _speed: number, seconds: number): void {
    const kick = this.kick.step(seconds);
    const awake = view.stance === Stance.Idle ? 0.3 : 1;
    this.stride += seconds * awake;
    this.core.position.y = 1.6 + Math.sin(this.stride * 1.3) * 0.15;
    this.core.rotation.x = view.pitch * 0.5 + kick * 0.1;
    const [inner, outer] = this.rings;
    inner?.rotation.set(this.stride * 0.9, 0.4, 0);
    outer?.rotation.set(0.5, this.stride * 0.7, this.stride * 0.3);
  }
}
