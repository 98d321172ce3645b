// The picture: scene, camera, renderer, and everything that stands in it. `load` builds a level, `draw` shows one moment.

import { NeutralToneMapping, PCFShadowMap, Scene, Vector3, WebGLRenderer } from "three";
import type { Level } from "../level.ts";
import type { EffectView, Moment, Triple } from "../model.ts";
import type { Quality, Settings } from "../settings.ts";
import { Solids } from "../solids.ts";
import type { GameSounds } from "../sound/game_sounds.ts";
import { Actors } from "./actors.ts";
import { BallAndGoals } from "./ball.ts";
import { Beacons } from "./beacons.ts";
import { EYE_HEIGHT, eyeOf, lookDirection, type View, ViewCamera } from "./camera.ts";
import { Devices } from "./devices.ts";
import { Director } from "./director.ts";
import { Effects } from "./effects.ts";
import { Hands } from "./hands.ts";
import { useSimpleLight } from "./materials.ts";
import { ease } from "./motion.ts";
import { glowingPipeline, type Pipeline, plainPipeline } from "./pipeline.ts";
import { RoundShadows } from "./shadows.ts";
import { SideCamera } from "./side_camera.ts";
import { Sky } from "./sky.ts";
import { buildWorld } from "./world.ts";

/** A point on the screen, in pixels of the page. */
export interface ScreenPoint {
  x: number;
  y: number;
  behind: boolean;
}

export interface Look {
  yaw: number;
  pitch: number;
}

export class Stage {
  readonly view = new ViewCamera();
  readonly scene = new Scene();
  private readonly renderer: WebGLRenderer;
  private readonly pipeline: Pipeline;
  private readonly effects: Effects;
  private readonly sky: Sky;
  private readonly director: Director;
  private readonly actors: Actors;
  private readonly hands: Hands;
  private readonly side = new SideCamera();
  private readonly shadows: RoundShadows | undefined;
  private solids = new Solids([]);
  private devices: Devices | undefined;
  private beacons: Beacons | undefined;
  private ball: BallAndGoals | undefined;
  private world: ReturnType<typeof buildWorld> | undefined;
  /** Share of the pixels of quality low, and the time of a picture that it follows. */
  private scale = 1;
  private pace = 0.03;
  /** Direction and distance of an own shot, recoil included. */
  private aim: Look = { yaw: 0, pitch: 0 };
  private aimDistance = 60;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    readonly quality: Quality,
    settings: Settings,
    private readonly sounds: GameSounds,
  ) {
    this.renderer = new WebGLRenderer({ canvas, antialias: quality !== "low", powerPreference: "high-performance" });
    useSimpleLight(quality === "low");
    this.renderer.toneMapping = NeutralToneMapping;
    this.renderer.toneMappingExposure = 1;
    this.renderer.shadowMap.enabled = quality !== "low";
    this.renderer.shadowMap.type = PCFShadowMap;
    const make = quality === "high" ? glowingPipeline : plainPipeline;
    this.pipeline = make(this.renderer, this.scene, this.view.camera);
    this.effects = new Effects(this.scene, quality);
    this.sky = new Sky(this.scene, quality, this.effects.texture);
    this.director = new Director(this.effects, sounds, this.view);
    this.actors = new Actors(this.scene, this.effects.texture, this.director);
    this.shadows = quality === "low" ? new RoundShadows(this.scene, this.effects.texture) : undefined;
    this.scene.add(this.view.camera);
    this.hands = new Hands(this.view.camera);
    this.view.shakeAllowed = settings.shake;
    this.resize();
  }

  load(level: Level): void {
    this.clear();
    this.world = buildWorld(level, this.quality);
    this.solids = new Solids(level.solids);
    this.devices = new Devices(level, this.effects.texture, this.solids);
    this.beacons = new Beacons(level, this.effects.texture);
    this.ball = new BallAndGoals(level, (at, strength) => this.director.ball(at, strength));
    this.director.solids = this.solids;
    this.scene.add(this.world, this.devices.root, this.beacons.root, this.ball.root);
    this.renderer.compile(this.scene, this.view.camera);
  }

  clear(): void {
    this.actors.clear();
    this.effects.clear();
    this.hands.hide();
    this.shadows?.clear();
    for (const part of [this.world, this.devices?.root, this.beacons?.root, this.ball?.root]) {
      if (part !== undefined) this.scene.remove(part);
    }
    this.world?.traverse((child) => "geometry" in child && (child.geometry as { dispose(): void }).dispose());
    this.world = undefined;
    this.devices = undefined;
    this.beacons = undefined;
    this.ball = undefined;
  }

  /** Draws a moment as the player sees it. */
  draw(moment: Moment, effects: readonly EffectView[], look: Look, seconds: number): void {
    const { own } = moment;
    const first = this.view.view === "first";
    const hidden = (first || this.view.crowded) && own !== undefined ? own.entity : -1;
    this.director.ownMuzzle = first ? (target) => this.hands.muzzle(target) : undefined;
    this.director.happened(effects, (slot, target) => this.muzzleOf(moment, slot, target));
    if (own !== undefined) {
      this.aim = { yaw: look.yaw, pitch: look.pitch + own.recoil };
      if (this.view.view === "side") this.side.update(this.view.camera, own, moment, this.cast, seconds);
      else this.view.update({ position: own.position, ...this.aim, aim: own.aim }, this.cast, seconds);
      if (first) this.hands.update(own, look.yaw, look.pitch, seconds);
      else this.hands.hide();
      this.measureAim(moment, seconds);
    }
    this.actors.update(moment, hidden, seconds);
    for (const change of this.devices?.update(moment.devices, seconds) ?? []) this.director.device(change);
    this.solids.moving = this.devices?.bodies() ?? [];
    this.beacons?.update(moment, seconds);
    this.ball?.update(moment);
    this.shadows?.update(moment, this.solids);
    this.listen(moment);
    this.finish(seconds);
  }

  /** Draws the scene from a place of its own choice: behind the title. */
  drawFrom(at: Triple, towards: Triple, moment: Moment, seconds: number): void {
    this.hands.hide();
    this.view.camera.position.set(...at);
    this.view.camera.lookAt(...towards);
    this.view.camera.fov = TITLE_FIELD;
    this.view.camera.updateProjectionMatrix();
    this.actors.update(moment, -1, seconds);
    this.devices?.update(moment.devices, seconds);
    this.beacons?.update(moment, seconds);
    this.shadows?.update(moment, this.solids);
    this.finish(seconds);
  }

  shake(amount: number): void {
    this.view.shake(amount);
  }

  setView(view: View): void {
    this.side.cut();
    this.view.view = view;
  }

  /** The place of a point of the world on the screen. */
  project(point: Triple): ScreenPoint {
    projected.set(...point).project(this.view.camera);
    return { x: (projected.x * 0.5 + 0.5) * innerWidth, y: (0.5 - projected.y * 0.5) * innerHeight, behind: projected.z > 1 };
  }

  /** True if nothing of the level is between the camera and a point. */
  sees(point: Triple): boolean {
    projected.set(...point).sub(this.view.camera.position);
    const distance = projected.length();
    return this.cast(this.view.camera.position, projected.divideScalar(Math.max(distance, 1e-6)), distance) >= distance - 0.01;
  }

  /** The place on the screen that an own shot would hit: beside the middle when the camera looks over the shoulder at something near. */
  crosshair(own: Triple): ScreenPoint {
    eyeOf(own, EYE_HEIGHT, eye).addScaledVector(lookDirection(this.aim.yaw, this.aim.pitch, ahead), this.aimDistance);
    return this.project([eye.x, eye.y, eye.z]);
  }

  resize(): void {
    const scale = this.quality === "low" ? Math.min(1, LOW_WIDTH / innerWidth) * this.scale : Math.min(devicePixelRatio, this.quality === "high" ? 2 : 1);
    this.renderer.setPixelRatio(1);
    this.pipeline.resize(Math.round(innerWidth * scale), Math.round(innerHeight * scale));
    this.canvas.style.width = "100%";
    this.canvas.style.height = "100%";
    this.view.camera.aspect = innerWidth / innerHeight;
    this.view.camera.updateProjectionMatrix();
  }

  dispose(): void {
    this.clear();
    this.renderer.dispose();
  }

  /** Fewer pixels when pictures take too long, more when there is time: for machines without a GPU. */
  private keepPace(seconds: number): void {
    if (this.quality !== "low") return;
    this.pace += (seconds - this.pace) * 0.05;
    const before = this.scale;
    if (this.pace > SLOW_SECONDS) this.scale = Math.max(SCALE_MIN, this.scale * 0.85);
    else if (this.pace < QUICK_SECONDS) this.scale = Math.min(1, this.scale * 1.15);
    if (this.scale === before) return;
    this.pace = (SLOW_SECONDS + QUICK_SECONDS) / 2;
    this.resize();
  }

  private finish(seconds: number): void {
    this.keepPace(seconds);
    this.effects.update(seconds);
    this.sky.follow(this.view.camera.position);
    this.pipeline.render();
  }

  private listen(moment: Moment): void {
    const { position } = this.view.camera;
    this.view.camera.getWorldDirection(ahead);
    this.sounds.engine.listen([position.x, position.y, position.z], [ahead.x, ahead.y, ahead.z]);
    this.sounds.update(moment, [position.x, position.y, position.z]);
  }

  private muzzleOf(moment: Moment, slot: number, target: Vector3): Vector3 | undefined {
    const view = moment.robots.find((robot) => robot.slot === slot);
    if (view === undefined) return undefined;
    if (view.own && this.director.ownMuzzle !== undefined) return this.director.ownMuzzle(target);
    return this.actors.robotOf(view.entity)?.muzzle(target);
  }

  private measureAim(moment: Moment, seconds: number): void {
    const { own } = moment;
    if (own === undefined) return;
    eyeOf(own.position, EYE_HEIGHT, eye);
    lookDirection(this.aim.yaw, this.aim.pitch, ahead);
    let distance = this.cast(eye, ahead, 60);
    const others = [...moment.enemies, ...moment.robots.filter((robot) => !robot.own && robot.alive)];
    for (const other of others) {
      projected.set(...other.position).setY(other.position[1] + 0.6).sub(eye);
      const along = projected.dot(ahead);
      const aside = projected.addScaledVector(ahead, -along).length();
      if (along > 0 && along < distance && aside < 0.8) distance = along;
    }
    this.aimDistance = ease(this.aimDistance, Math.max(1.5, distance), 25, seconds);
  }

  private readonly cast = (from: Vector3, direction: Vector3, limit: number): number =>
    this.solids.cast([from.x, from.y, from.z], [direction.x, direction.y, direction.z], limit).distance;
}

const LOW_WIDTH = 640;
const SCALE_MIN = 0.6;
const SLOW_SECONDS = 0.045;
const QUICK_SECONDS = 0.02;
const TITLE_FIELD = 46;
const projected = new Vector3();
const eye = new Vector3();
const ahead = new Vector3();
