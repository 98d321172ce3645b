// Turns what happens into what is seen and heard: the one place that knows that a shot is a flash, a tracer, a kick of the camera and a sound.

import { Vector3 } from "three";
import { EFFECT_KIND } from "../frame.ts";
import { BALL_RADIUS, type EffectView, type EnemyView, type RobotView, Species, Stance, type Triple } from "../model.ts";
import type { Solids } from "../solids.ts";
import type { GameSounds } from "../sound/game_sounds.ts";
import * as recipes from "../sound/recipes.ts";
import { type ActorListener, ENEMY_BOLT } from "./actors.ts";
import type { ViewCamera } from "./camera.ts";
import type { DeviceChange } from "./devices.ts";
import type { Effects } from "./effects.ts";
import type { Enemy, EnemyEvents } from "./enemies.ts";
import { BOSS_GLOW, ENEMY_GLOW, materialName, playerColour } from "./palette.ts";
import type { Robot, RobotEvents } from "./robot.ts";

export class Director implements ActorListener {
  solids: Solids | undefined;
  /** Place of the own weapon's muzzle in the first person, when it is not the rig's. */
  ownMuzzle: ((target: Vector3) => Vector3) | undefined;

  constructor(
    private readonly effects: Effects,
    private readonly sounds: GameSounds,
    private readonly camera: ViewCamera,
  ) {}

  /** Shows what the game says has happened. Call before the actors are updated. */
  happened(list: readonly EffectView[], muzzleOf: (slot: number, target: Vector3) => Vector3 | undefined): void {
    for (const effect of list) this.one(effect, muzzleOf);
  }

  robot(view: RobotView, robot: Robot, events: RobotEvents): void {
    const { position, own, slot } = view;
    if (events.stepped) this.sounds.step(position, this.ground(position), own);
    if (events.jumped) this.sounds.jump(position, own);
    if (events.landed > 2) {
      this.sounds.land(position, events.landed, own);
      this.effects.dust(position, Math.min(events.landed / 12, 1));
      if (own && events.landed > 9) this.camera.shake(0.25);
    }
    if (events.fired) this.robotFired(view, robot);
    if (events.died) {
      this.effects.debris.burst(robot.root, this.floorBelow(position), 3.4);
      this.effects.explosion([position[0], position[1] + 0.9, position[2]], 0.5, this.floorBelow(position));
      this.sounds.play(recipes.DEATH, own ? undefined : position);
      if (own) this.camera.shake(0.9);
    }
    if (events.revived) {
      this.effects.sparkle([position[0], position[1] + 0.9, position[2]], playerColour(slot));
      this.sounds.play(recipes.RESPAWN, own ? undefined : position);
    }
  }

  /** The ball bounced or was hit, as hard as its speed changed. */
  ball(at: Triple, strength: number): void {
    this.sounds.play(recipes.THUD, at, Math.min(1.4, strength / 10));
    if (strength > 7) this.effects.dust([at[0], at[1] - BALL_RADIUS, at[2]], Math.min(1, strength / 20));
  }

  enemy(view: EnemyView, enemy: Enemy, events: EnemyEvents, before: EnemyView | undefined): void {
    const { position, species } = view;
    if (events.fired) {
      this.effects.muzzle(enemy.muzzle(muzzle), species === Species.Boss ? BOSS_GLOW : ENEMY_GLOW, species === Species.Tank ? 2 : 1);
      this.sounds.enemyShot(position, species);
    }
    if (events.stepped && species === Species.Cat) this.sounds.play(recipes.STEPS.metal ?? {}, position, 0.4);
    if (before?.stance === Stance.Idle && view.stance === Stance.Chase) this.sounds.enemyCall(position, species);
    if (!events.died) return;
    enemy.root.visible = true;
    this.effects.debris.burst(enemy.root, this.floorBelow(position), species === Species.Boss ? 7 : 3.5);
    enemy.root.visible = false;
    const power = [1.1, 0.5, 0.3, 2.4][species] ?? 0.5;
    this.effects.explosion([position[0], position[1] + 0.4, position[2]], power, this.floorBelow(position));
    this.sounds.enemyDied(position, species);
    this.camera.shake(this.nearness(position) * power * 0.5);
  }

  device(change: DeviceChange): void {
    const { door, lift, pickup } = change.spec.what;
    if (pickup !== undefined) {
      if (change.what !== "pressed") return;
      this.effects.sparkle([change.at[0], change.at[1] + 0.8, change.at[2]], 0xfff2d6);
      this.sounds.play(recipes.PICKUP, change.at);
    } else if (door !== undefined || lift !== undefined) {
      if (change.what === "moving") this.sounds.play(recipes.DOOR, change.at, 1.4);
      if (change.what === "stopped") this.sounds.play(recipes.THUD, change.at);
    } else if (change.what === "pressed" || change.what === "released") this.sounds.play(recipes.SWITCH, change.at, change.what === "pressed" ? 1 : 0.5);
  }

  private one(effect: EffectView, muzzleOf: (slot: number, target: Vector3) => Vector3 | undefined): void {
    const { at, to, slot, weapon } = effect;
    switch (effect.kind) {
      case EFFECT_KIND.SHOT: {
        const from = muzzleOf(slot, muzzle) ?? muzzle.set(...at);
        if (slot >= 0 && weapon !== LAUNCHER) this.effects.tracer(from, end.set(...to), playerColour(slot), weapon);
        break;
      }
      case EFFECT_KIND.IMPACT:
        this.impact(effect);
        break;
      case EFFECT_KIND.EXPLOSION:
        this.effects.explosion(at, 0.9, this.floorBelow(at));
        this.sounds.play(recipes.EXPLOSION, at);
        this.camera.shake(this.nearness(at) * 0.6);
        break;
      case EFFECT_KIND.RELOAD:
        this.sounds.play(recipes.RELOAD, at, 0.8);
        break;
      case EFFECT_KIND.EMPTY:
        this.sounds.play(recipes.EMPTY, at, 0.8);
        break;
      case EFFECT_KIND.CHECKPOINT:
        this.sounds.play(recipes.CHECKPOINT);
        break;
      default:
        // Steps, jumps, landings, deaths and devices are seen from the states themselves.
        break;
    }
  }

  private impact({ at, to, weapon, material }: EffectView): void {
    if (weapon === ENEMY_BOLT) {
      this.effects.explosion(at, 0.5, this.floorBelow(at));
      this.sounds.play(recipes.EXPLOSION, at, 0.7);
      return;
    }
    // What enemies fire bursts in the air as well: it marks nothing.
    const name = weapon > ENEMY_BOLT ? "enemy" : materialName(material);
    this.effects.impact(at, to, name, weapon === SCATTER ? 0.6 : 1);
    this.sounds.impact(at, name);
  }

  private robotFired(view: RobotView, robot: Robot): void {
    const colour = playerColour(view.slot);
    const from = view.own && this.ownMuzzle !== undefined ? this.ownMuzzle(muzzle) : robot.muzzle(muzzle);
    this.effects.muzzle(from, colour, view.weapon);
    this.sounds.shot(view.position, view.weapon, view.own);
    if (view.own) this.camera.shake([0, 0.12, 0.3, 0.32, 0.42][view.weapon] ?? 0.1);
  }

  private ground(feet: Triple): string {
    if (this.solids === undefined) return "concrete";
    return this.solids.materialOf(this.solids.cast([feet[0], feet[1] + 0.3, feet[2]], [0, -1, 0], 1.5));
  }

  private floorBelow(feet: Triple): number {
    const hit = this.solids?.cast([feet[0], feet[1] + 0.5, feet[2]], [0, -1, 0], 12);
    return feet[1] + 0.5 - (hit?.distance ?? 0.5);
  }

  /** 1 at the camera, 0 from 25 metres on. */
  private nearness(at: Triple): number {
    return Math.max(0, 1 - this.camera.camera.position.distanceTo(end.set(...at)) / 25);
  }
}

const LAUNCHER = 2;
const SCATTER = 3;
const muzzle = new Vector3();
const end = new Vector3();
