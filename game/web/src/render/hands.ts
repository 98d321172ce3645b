// The own weapon in the first person: hung from the camera, swaying with steps and turns, thrown back by shots, lowered while reloading.

import { Group, Mesh, type PerspectiveCamera, type Vector3 } from "three";
import type { RobotView } from "../model.ts";
import { actorMaterial } from "./materials.ts";
import { angleBetween, ease, Spring } from "./motion.ts";
import { HULL_DARK, HULL_ROBOT } from "./palette.ts";
import { Shape } from "./shape.ts";
import { weaponModel } from "./weapon_models.ts";

export class Hands {
  private readonly root = new Group();
  private readonly mesh: Mesh;
  private readonly kick = new Spring(240, 17);
  private shots = -1;
  private shown = { weapon: 0, slot: -1 };
  private stride = 0;
  private sway = { yaw: 0, pitch: 0 };
  private last = { yaw: 0, pitch: 0 };
  private lowered = 0;

  constructor(camera: PerspectiveCamera) {
    this.mesh = new Mesh(weaponModel(1, 0).geometry, actorMaterial().material);
    const arm = new Shape().box([0.13, 0.13, 0.5], HULL_ROBOT, { at: [0, -0.16, 0.3], turn: [0.25, 0, 0] }, 0.9).box([0.12, 0.14, 0.14], HULL_DARK, { at: [0, -0.09, 0.04] });
    this.mesh.add(new Mesh(arm.build(), this.mesh.material));
    this.root.add(this.mesh);
    camera.add(this.root);
    this.mesh.scale.setScalar(0.62);
    this.root.visible = false;
  }

  muzzle(target: Vector3): Vector3 {
    return this.mesh.localToWorld(target.set(...weaponModel(this.shown.weapon, this.shown.slot).muzzle));
  }

  hide(): void {
    this.root.visible = false;
  }

  update(view: RobotView, yaw: number, pitch: number, seconds: number): void {
    this.root.visible = view.alive;
    if (view.weapon !== this.shown.weapon || view.slot !== this.shown.slot) {
      this.shown = { weapon: view.weapon, slot: view.slot };
      this.mesh.geometry = weaponModel(view.weapon, view.slot).geometry;
      this.mesh.scale.setScalar(view.weapon === LAUNCHER ? 0.42 : 0.62);
      this.lowered = 1;
    }
    if (this.shots >= 0 && view.shots !== this.shots) this.kick.push(view.weapon === 1 ? 3.2 : 6.5);
    this.shots = view.shots;
    const kick = this.kick.step(seconds);
    const speed = view.standing === 0 ? 0 : Math.hypot(view.velocity[0], view.velocity[2]);
    this.stride += speed * seconds * 1.75;
    this.sway.yaw = ease(this.sway.yaw, clamp(angleBetween(this.last.yaw, yaw) / Math.max(seconds, 0.004) / 40), 10, seconds);
    this.sway.pitch = ease(this.sway.pitch, clamp((pitch - this.last.pitch) / Math.max(seconds, 0.004) / 40), 10, seconds);
    this.last = { yaw, pitch };
    this.lowered = ease(this.lowered, view.reloadTicks > 0 ? 1 : 0, 9, seconds);
    const bob = Math.min(speed / 6, 1) * (1 - view.aim * 0.8);
    const aim = view.aim;
    this.root.position.set(
      0.2 * (1 - aim) + Math.sin(this.stride) * 0.014 * bob,
      -0.2 + aim * 0.075 - this.lowered * 0.2 - Math.abs(Math.cos(this.stride)) * 0.016 * bob,
      -0.42 + aim * 0.04 + kick * 0.12,
    );
    this.root.rotation.set(kick * 0.22 - this.lowered * 0.7 - this.sway.pitch, -this.sway.yaw, this.sway.yaw * 0.6 + this.lowered * 0.3);
  }
}

const LAUNCHER = 2;

function clamp(value: number): number {
  return Math.max(-0.08, Math.min(0.08, value));
}
