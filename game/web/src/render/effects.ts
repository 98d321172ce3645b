// Everything that flashes, flies and leaves a mark, by name of what happened. What an impact looks like depends on what was struck.

import { PointLight, type Scene, Sprite, type Texture, Vector3 } from "three";
import type { Triple } from "../model.ts";
import type { Quality } from "../settings.ts";
import { Debris } from "./debris.ts";
import { Decals, Tracers } from "./marks.ts";
import { glowMaterial, glowTexture } from "./materials.ts";
import { Particles } from "./particles.ts";

interface Flash {
  sprite: Sprite;
  age: number;
  seconds: number;
  size: number;
}

/** Particles of a struck material. */
interface Struck {
  sparks: number;
  dust: number;
  mark: number;
}

export class Effects {
  readonly debris: Debris;
  readonly texture: Texture = glowTexture();
  private readonly particles: Particles;
  private readonly tracers: Tracers;
  private readonly decals: Decals;
  private readonly flashes: Flash[] = [];
  private readonly light: PointLight | undefined;
  private next = 0;

  constructor(scene: Scene, quality: Quality) {
    this.debris = new Debris(scene);
    this.particles = new Particles(scene, quality === "low" ? 160 : 600);
    this.tracers = new Tracers(scene);
    this.decals = new Decals(scene, quality === "low" ? 40 : 200);
    for (let index = 0; index < FLASHES; index += 1) {
      const sprite = new Sprite(glowMaterial(this.texture, 0xffffff));
      sprite.visible = false;
      scene.add(sprite);
      this.flashes.push({ sprite, age: 1, seconds: 1, size: 1 });
    }
    if (quality !== "low") {
      this.light = new PointLight(0xffffff, 0, 12, 1.6);
      scene.add(this.light);
    }
  }

  /** A shot leaves a muzzle. */
  muzzle(at: Vector3, colour: number, weapon: number): void {
    this.flash(at, colour, weapon === 1 ? 0.7 : 1.3, 0.07);
    this.particles.emit(triple(at), { count: weapon === 3 ? 8 : 3, colour, speed: 4, size: 0.04, seconds: 0.12, weight: 0 });
  }

  /** Begins a little before the muzzle, so that it never passes the camera. */
  tracer(muzzle: Vector3, to: Vector3, colour: number, weapon: number): void {
    const from = place.copy(muzzle).lerp(to, Math.min(0.3, 0.7 / Math.max(muzzle.distanceTo(to), 0.1)));
    if (weapon === 4) this.tracers.add(from, to, colour, 0.14, 0.5);
    this.tracers.add(from, to, weapon === 4 ? 0xffffff : colour, weapon === 3 ? 0.025 : 0.045, weapon === 4 ? 0.3 : 0.13);
  }

  impact(at: Triple, normal: Triple, material: string, power: number): void {
    const struck = STRUCK[material] ?? DEFAULT_STRUCK;
    this.particles.emit(at, { count: Math.ceil(5 * power), colour: struck.sparks, speed: 6 * power, size: 0.035, seconds: 0.3, weight: 0.6, along: normal });
    this.particles.emit(at, { count: Math.ceil(3 * power), colour: struck.dust, speed: 1.6, size: 0.09, seconds: 0.5, weight: -0.02, along: normal });
    if (material !== "robot" && material !== "enemy") this.decals.add(at, normal, struck.mark, 0.07 + Math.random() * 0.05 * power);
    this.flash(place.set(...at), struck.sparks, 0.4 * power, 0.08);
  }

  /** `floor` is the height of the ground below, which is scorched if it is near. */
  explosion(at: Triple, size: number, floor: number): void {
    this.flash(place.set(...at), 0xffc36b, 5 * size, 0.28);
    this.particles.emit(at, { count: 36, colour: 0xffa53a, speed: 11 * size, size: 0.12, seconds: 0.45, weight: 0.3 });
    this.particles.emit(at, { count: 20, colour: 0x4a3a44, speed: 4 * size, size: 0.2, seconds: 0.9, weight: -0.06 });
    if (at[1] - floor < 1.5) this.decals.add([at[0], floor, at[2]], [0, 1, 0], 0x1a1420, 0.9 * size);
  }

  /** A ring of sparks around somebody who appears, or a pickup that is taken. */
  sparkle(at: Triple, colour: number): void {
    this.flash(place.set(...at), colour, 2.4, 0.35);
    this.particles.emit(at, { count: 26, colour, speed: 5, size: 0.06, seconds: 0.7, weight: -0.1 });
  }

  dust(at: Triple, strength: number): void {
    this.particles.emit(at, { count: Math.ceil(4 + strength * 6), colour: 0xb59a88, speed: 1 + strength * 2, size: 0.08, seconds: 0.5, weight: -0.02 });
  }

  update(seconds: number): void {
    this.debris.update(seconds);
    this.particles.update(seconds);
    this.tracers.update(seconds);
    for (const flash of this.flashes) {
      if (!flash.sprite.visible) continue;
      flash.age += seconds;
      const left = 1 - flash.age / flash.seconds;
      flash.sprite.visible = left > 0;
      flash.sprite.material.opacity = Math.max(0, left);
      flash.sprite.scale.setScalar(flash.size * (1.3 - 0.3 * left));
    }
    if (this.light !== undefined) this.light.intensity *= Math.exp(-16 * seconds);
  }

  clear(): void {
    this.debris.clear();
    this.decals.clear();
  }

  private flash(at: Vector3, colour: number, size: number, seconds: number): void {
    const flash = this.flashes[this.next];
    this.next = (this.next + 1) % FLASHES;
    if (flash === undefined) return;
    flash.sprite.material.color.set(colour);
    flash.sprite.position.copy(at);
    flash.sprite.visible = true;
    Object.assign(flash, { age: 0, seconds, size });
    if (this.light !== undefined && size > 0.5) {
      this.light.position.copy(at);
      this.light.color.set(colour);
      this.light.intensity = 14 * size;
    }
  }
}

function triple(vector: Vector3): Triple {
  return [vector.x, vector.y, vector.z];
}

const place = new Vector3();
const FLASHES = 24;
const DEFAULT_STRUCK: Struck = { sparks: 0xffe0b0, dust: 0x9c8f9e, mark: 0x2a2430 };
const STRUCK: Record<string, Struck> = {
  concrete: DEFAULT_STRUCK,
  metal: { sparks: 0xffd070, dust: 0x6d7490, mark: 0x15131c },
  wood: { sparks: 0xc98a54, dust: 0xa8663f, mark: 0x3d2415 },
  glass: { sparks: 0xd8f4ff, dust: 0xbfe6f2, mark: 0xe8fbff },
  energy: { sparks: 0xd0b8ff, dust: 0x9d7bff, mark: 0x3a2470 },
  organic: { sparks: 0xa4c070, dust: 0x7f9a5b, mark: 0x3f4c2c },
  robot: { sparks: 0xfff0c8, dust: 0x8a8494, mark: 0 },
  enemy: { sparks: 0xff8a50, dust: 0x4a3640, mark: 0 },
};
