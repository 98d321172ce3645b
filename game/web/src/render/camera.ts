// The player's camera: over the shoulder or through the eyes. The look comes straight from the mouse and waits for nothing; the
// place follows the robot. Over the shoulder, a ray keeps the camera out of walls.

import { PerspectiveCamera, Vector3 } from "three";
import type { Triple } from "../model.ts";
import { ease } from "./motion.ts";

/** `side` is for recordings: see side_camera.ts. */
export type View = "shoulder" | "first" | "side";

/** Distance along a ray to the first thing in the way, at most `limit`. */
export type Cast = (from: Vector3, direction: Vector3, limit: number) => number;

export interface CameraState {
  position: Triple;
  yaw: number;
  pitch: number;
  aim: number;
}

export class ViewCamera {
  readonly camera = new PerspectiveCamera(70, 16 / 9, 0.05, 420);
  view: View = "shoulder";
  shakeAllowed = true;
  private distance = SHOULDER_DISTANCE;
  private height = EYE_HEIGHT;
  private trauma = 0;
  private time = 0;
  private lastFeet = Number.NaN;

  /** True if a wall has pushed the camera so near that the own robot would fill the picture. */
  get crowded(): boolean {
    return this.view === "shoulder" && this.distance < CROWDED_METRES;
  }

  /** Shakes the picture; 1 is a blow, 0.1 a shot. */
  shake(amount: number): void {
    this.trauma = Math.min(1, this.trauma + amount);
  }

  update(state: CameraState, cast: Cast, seconds: number): void {
    const pitch = Math.max(-1.55, Math.min(1.55, state.pitch));
    this.camera.rotation.set(pitch, state.yaw, 0, "YXZ");
    eyeOf(state.position, this.smoothHeight(state.position[1], seconds), eye);
    if (this.view === "first") this.camera.position.copy(eye);
    else this.placeBehind(state, cast, seconds);
    this.applyShake(seconds);
    this.zoom(state.aim, seconds);
  }

  /** Steps and stairs change the height at once; the eye follows within a tenth of a second. */
  private smoothHeight(feet: number, seconds: number): number {
    const change = feet - this.lastFeet;
    if (Math.abs(change) < 0.5) this.height -= change;
    this.lastFeet = feet;
    this.height = ease(this.height, EYE_HEIGHT, 18, seconds);
    return this.height;
  }

  private placeBehind(state: CameraState, cast: Cast, seconds: number): void {
    offset.set(shoulderSide(state.aim), 0.18, 0).applyEuler(this.camera.rotation);
    const side = offset.length();
    const sideClear = cast(eye, offset.normalize(), side + MARGIN) - MARGIN;
    pivot.copy(eye).addScaledVector(offset, Math.max(0, Math.min(side, sideClear)));
    back.set(0, 0, 1).applyEuler(this.camera.rotation);
    const wanted = SHOULDER_DISTANCE - state.aim * 1.15;
    const clear = Math.max(0.25, Math.min(wanted, cast(pivot, back, wanted + MARGIN) - MARGIN));
    // In at once, so that no wall is ever seen from inside; out slowly.
    this.distance = clear < this.distance ? clear : ease(this.distance, clear, 6, seconds);
    this.camera.position.copy(pivot).addScaledVector(back, this.distance);
  }

  private applyShake(seconds: number): void {
    this.time += seconds;
    this.trauma = Math.max(0, this.trauma - seconds * 1.9);
    if (!this.shakeAllowed) return;
    const strength = this.trauma * this.trauma;
    this.camera.rotation.x += Math.sin(this.time * 61) * 0.03 * strength;
    this.camera.rotation.y += Math.sin(this.time * 53 + 1) * 0.03 * strength;
    this.camera.rotation.z += Math.sin(this.time * 47 + 2) * 0.04 * strength;
  }

  private zoom(aim: number, seconds: number): void {
    const wide = this.view === "first" ? 78 : 66;
    const field = ease(this.camera.fov, wide - aim * 22, 16, seconds);
    if (Math.abs(field - this.camera.fov) > 0.01) {
      this.camera.fov = field;
      this.camera.updateProjectionMatrix();
    }
  }
}

export function eyeOf(feet: Triple, height: number, target: Vector3): Vector3 {
  return target.set(feet[0], feet[1] + height, feet[2]);
}

/** The direction that a yaw and a pitch look into. */
export function lookDirection(yaw: number, pitch: number, target: Vector3): Vector3 {
  const flat = Math.cos(pitch);
  return target.set(-Math.sin(yaw) * flat, Math.sin(pitch), -Math.cos(yaw) * flat);
}

function shoulderSide(aim: number): number {
  return 0.62 - aim * 0.12;
}

export const EYE_HEIGHT = 1.6;
const SHOULDER_DISTANCE = 2.9;
const MARGIN = 0.22;
const CROWDED_METRES = 0.9;
const eye = new Vector3();
const pivot = new Vector3();
const back = new Vector3();
const offset = new Vector3();
