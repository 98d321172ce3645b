// The level's devices on the stage: built from the level's file, moved by what the state says. A device's colour says who may use it, its
// light says what it is doing; lamps over a door count the switches that it needs.

import { Group, Mesh, MeshBasicMaterial, Sprite, type Texture, Vector3 } from "three";
import { type Area, type DeviceSpec, type Level, middle, size } from "../level.ts";
import type { DeviceView, Triple } from "../model.ts";
import type { Solids } from "../solids.ts";
import * as parts from "./device_parts.ts";
import { type ActorMaterial, actorMaterial, glowMaterial } from "./materials.ts";
import { ease } from "./motion.ts";
import { NEUTRAL_GLOW, OPEN_GLOW, playerColour } from "./palette.ts";
import { Shape } from "./shape.ts";
import { weaponModel } from "./weapon_models.ts";

/** Something that a device did in this frame. */
export interface DeviceChange {
  index: number;
  spec: DeviceSpec;
  what: "pressed" | "released" | "moving" | "stopped";
  at: Triple;
}

interface Shown {
  spec: DeviceSpec;
  root: Group;
  moving: Mesh | undefined;
  halo: Sprite | undefined;
  surface: ActorMaterial;
  rest: Vector3;
  /** Height of the stand's plate above its foot. */
  top: number;
  lamps: { mesh: Mesh; index: number }[];
  pressed: number;
  view: DeviceView | undefined;
  underWay: boolean;
}

export class Devices {
  readonly root = new Group();
  private readonly shown: Shown[];
  private time = 0;

  constructor(
    level: Level,
    glow: Texture,
    private readonly solids: Solids,
  ) {
    this.shown = level.devices.map((spec) => this.build(spec, level, glow));
  }

  /** The boxes that block now, for rays. */
  bodies(): Area[] {
    const bodies: Area[] = [];
    for (const { spec, root } of this.shown) {
      const box = spec.what.door ?? spec.what.lift ?? spec.what.platform;
      if (box === undefined || !root.visible) continue;
      const [halfX, halfY, halfZ] = size(box).map((length) => length / 2) as Triple;
      const { x, y, z } = root.position;
      bodies.push({ min: [x - halfX, y - halfY, z - halfZ], max: [x + halfX, y + halfY, z + halfZ] });
    }
    return bodies;
  }

  update(views: readonly DeviceView[], seconds: number): DeviceChange[] {
    this.time += seconds;
    const changes: DeviceChange[] = [];
    for (const view of views) {
      const shown = this.shown[view.index];
      if (shown === undefined) continue;
      const change = notice(shown, view);
      if (change !== undefined) changes.push({ index: view.index, spec: shown.spec, what: change, at: view.position });
      this.move(shown, view, seconds);
      shown.view = view;
    }
    for (const shown of this.shown) this.light(shown);
    return changes;
  }

  private build(spec: DeviceSpec, level: Level, glow: Texture): Shown {
    const colour = spec.only === undefined ? NEUTRAL_GLOW : playerColour(spec.only);
    const surface = actorMaterial();
    const root = new Group();
    const shown: Shown = { spec, root, moving: undefined, halo: undefined, surface, rest: new Vector3(), top: 0, lamps: [], pressed: 0, view: undefined, underWay: false };
    this.root.add(root);
    const mesh = (geometry: Mesh["geometry"]): Mesh => {
      const made = new Mesh(geometry, surface.material);
      made.castShadow = true;
      made.receiveShadow = true;
      root.add(made);
      return made;
    };
    const { lever, button, hold, plate, door, lift, platform, pickup } = spec.what;
    const stand = lever ?? button ?? hold;
    if (stand !== undefined) {
      const floor = this.floorBelow(stand.at);
      shown.top = stand.at[1] - floor - 0.2;
      mesh(parts.pedestal(colour, shown.top));
      const handle = lever !== undefined ? parts.leverHandle(colour) : button !== undefined ? parts.buttonCap(colour) : parts.gripRing(colour);
      shown.moving = mesh(handle);
      shown.moving.position.y = shown.top;
      root.position.set(stand.at[0], floor, stand.at[2]);
      shown.halo = this.halo(root, glow, colour, shown.top + 0.3, 1.5);
    } else if (plate !== undefined) {
      const centre = middle(plate.area);
      // A tall one is a volume inside of something else, such as a lift, and has no plate of its own.
      if (plate.area.max[1] - plate.area.min[1] < PLATE_HEIGHT_MAX) shown.moving = mesh(parts.plate(size(plate.area), colour));
      root.position.set(centre[0], this.floorBelow(centre), centre[2]);
    } else if (door !== undefined) this.buildDoor(shown, door, level, colour, mesh);
    else if (lift !== undefined || platform !== undefined) {
      const box = (lift ?? platform) as Area;
      mesh(parts.deck(size(box), colour, lift !== undefined));
      root.position.set(...middle(box));
    } else if (pickup !== undefined) {
      mesh(parts.pickupBase(colour));
      shown.moving = mesh(weaponModel(pickup.weapon, spec.only ?? -1).geometry);
      shown.moving.scale.setScalar(1.3);
      root.position.set(pickup.at[0], this.floorBelow(pickup.at), pickup.at[2]);
      shown.halo = this.halo(root, glow, colour, 0.8, 2.2);
    }
    shown.rest.copy(root.position);
    return shown;
  }

  private buildDoor(shown: Shown, door: Area & { needs: { of: string[] } }, level: Level, colour: number, mesh: (geometry: Mesh["geometry"]) => Mesh): void {
    const extent = size(door);
    const slab = mesh(parts.door(extent, colour));
    if (shown.spec.only !== undefined) {
      // A curtain of light: one robot passes it, the other does not.
      slab.material = new MeshBasicMaterial({ color: colour, transparent: true, opacity: 0.35, depthWrite: false });
      slab.castShadow = false;
    }
    shown.root.position.set(...middle(door));
    const alongX = extent[0] >= extent[2];
    const bulb = new Shape().ball(0.14, 0, 0xffffff, { glow: 1 }).build();
    for (const [place, id] of door.needs.of.entries()) {
      const index = level.devices.findIndex((other) => other.id === id);
      const along = (place - (door.needs.of.length - 1) / 2) * 0.45;
      for (const side of [-1, 1]) {
        const lamp = new Mesh(bulb, new MeshBasicMaterial({ color: LAMP_OFF }));
        const out = Math.min(extent[0], extent[2]) / 2 + 0.08;
        const at = middle(door);
        lamp.position.set(at[0] + (alongX ? along : side * out), door.max[1] - 0.3, at[2] + (alongX ? side * out : along));
        this.root.add(lamp);
        shown.lamps.push({ mesh: lamp, index });
      }
    }
  }

  /** Height of a stand's foot: on what is below, or hanging in the air a little below the hand. */
  private floorBelow(at: Triple): number {
    const hit = this.solids.cast(at, [0, -1, 0], 2.5);
    return at[1] - (hit.distance < 2.5 ? hit.distance : 1);
  }

  private halo(root: Group, glow: Texture, colour: number, height: number, width: number): Sprite {
    const sprite = new Sprite(glowMaterial(glow, colour, 0.5));
    sprite.position.y = height;
    sprite.scale.setScalar(width);
    root.add(sprite);
    return sprite;
  }

  private move(shown: Shown, view: DeviceView, seconds: number): void {
    const { spec, moving, root } = shown;
    shown.pressed = ease(shown.pressed, view.pressed ? 1 : 0, 16, seconds);
    const { lever, button, hold, plate, door, lift, platform, pickup } = spec.what;
    if (door !== undefined || lift !== undefined || platform !== undefined) root.position.set(...view.position);
    if (moving === undefined) return;
    if (lever !== undefined) moving.rotation.z = 0.65 - shown.pressed * 1.3;
    else if (button !== undefined) moving.position.y = shown.top - shown.pressed * 0.1;
    else if (hold !== undefined) moving.rotation.y = shown.pressed * Math.PI * 0.5;
    else if (plate !== undefined) moving.position.y = -shown.pressed * 0.07;
    else if (pickup !== undefined) {
      moving.visible = !view.pressed;
      if (shown.halo !== undefined) shown.halo.visible = !view.pressed;
      moving.rotation.y = this.time * 1.4;
      moving.position.y = 0.75 + Math.sin(this.time * 2) * 0.08;
    }
  }

  private light(shown: Shown): void {
    const pulse = 0.5 + 0.5 * Math.sin(this.time * 3 + shown.rest.x);
    shown.surface.flash.value = shown.pressed * 0.12;
    if (shown.halo !== undefined) shown.halo.material.opacity = 0.22 + 0.2 * pulse + shown.pressed * 0.4;
    for (const lamp of shown.lamps) {
      const on = (this.shown[lamp.index]?.view?.pressed ?? false) || (shown.view?.progress ?? 0) > 0.05;
      (lamp.mesh.material as MeshBasicMaterial).color.set(on ? OPEN_GLOW : LAMP_OFF);
    }
  }
}

function notice(shown: Shown, view: DeviceView): DeviceChange["what"] | undefined {
  const before = shown.view;
  if (before === undefined) return undefined;
  if (before.pressed !== view.pressed) return view.pressed ? "pressed" : "released";
  if (shown.spec.what.platform !== undefined) return undefined;
  const underWay = Math.abs(before.progress - view.progress) > 1e-4;
  if (underWay === shown.underWay) return undefined;
  shown.underWay = underWay;
  return underWay ? "moving" : "stopped";
}

const LAMP_OFF = 0xff3528;
const PLATE_HEIGHT_MAX = 2;
