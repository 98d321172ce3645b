// The four weapons, told apart by silhouette: a short blaster, a fat launcher, a wide scatter gun and a long rail. Each points along -z
// from the grip; `muzzle` says where shots leave.

import type { BufferGeometry } from "three";
import type { Triple } from "../model.ts";
import { HULL_DARK, JOINT, playerColour } from "./palette.ts";
import { Shape } from "./shape.ts";

export interface WeaponModel {
  geometry: BufferGeometry;
  muzzle: Triple;
}

const kept = new Map<string, WeaponModel>();

export function weaponModel(weapon: number, slot: number): WeaponModel {
  const key = `${weapon}/${slot}`;
  let model = kept.get(key);
  if (model === undefined) {
    const make = MAKERS[weapon] ?? blaster;
    model = make(slot < 0 ? 0xfff2d6 : playerColour(slot));
    kept.set(key, model);
  }
  return model;
}

const ALONG: Triple = [Math.PI / 2, 0, 0];

function blaster(accent: number): WeaponModel {
  const geometry = new Shape()
    .box([0.09, 0.13, 0.44], HULL_DARK, { at: [0, 0.06, -0.14] })
    .box([0.06, 0.16, 0.09], JOINT, { at: [0, -0.06, 0.02], turn: [0.25, 0, 0] })
    .tube(0.03, 0.035, 0.2, 6, JOINT, { at: [0, 0.08, -0.44], turn: ALONG })
    .box([0.1, 0.03, 0.26], accent, { at: [0, 0.09, -0.14], glow: 1 })
    .build();
  return { geometry, muzzle: [0, 0.08, -0.56] };
}

function launcher(accent: number): WeaponModel {
  const geometry = new Shape()
    .tube(0.12, 0.1, 0.72, 6, HULL_DARK, { at: [0, 0.12, -0.2], turn: ALONG })
    .tube(0.15, 0.15, 0.1, 6, JOINT, { at: [0, 0.12, -0.54], turn: ALONG })
    .ring(0.13, 0.022, 6, accent, { at: [0, 0.12, -0.6], glow: 1 })
    .box([0.06, 0.18, 0.09], JOINT, { at: [0, -0.05, 0.02], turn: [0.25, 0, 0] })
    .box([0.07, 0.07, 0.16], accent, { at: [0, 0.25, -0.1], glow: 0.8 })
    .build();
  return { geometry, muzzle: [0, 0.12, -0.64] };
}

function scatter(accent: number): WeaponModel {
  const shape = new Shape()
    .box([0.24, 0.1, 0.34], HULL_DARK, { at: [0, 0.06, -0.06] })
    .box([0.06, 0.17, 0.09], JOINT, { at: [0, -0.06, 0.05], turn: [0.25, 0, 0] })
    .box([0.2, 0.03, 0.1], accent, { at: [0, 0.12, -0.02], glow: 1 });
  for (const x of [-0.08, 0, 0.08]) shape.tube(0.042, 0.035, 0.34, 5, JOINT, { at: [x, 0.07, -0.38], turn: [Math.PI / 2, 0, x * 0.6] });
  return { geometry: shape.build(), muzzle: [0, 0.07, -0.58] };
}

function rail(accent: number): WeaponModel {
  const geometry = new Shape()
    .box([0.1, 0.15, 0.5], HULL_DARK, { at: [0, 0.06, 0.0] })
    .box([0.03, 0.06, 0.9], JOINT, { at: [0.055, 0.08, -0.62] })
    .box([0.03, 0.06, 0.9], JOINT, { at: [-0.055, 0.08, -0.62] })
    .box([0.03, 0.03, 0.84], accent, { at: [0, 0.08, -0.6], glow: 1 })
    .box([0.06, 0.16, 0.09], JOINT, { at: [0, -0.06, 0.06], turn: [0.25, 0, 0] })
    .tube(0.05, 0.05, 0.2, 6, accent, { at: [0, 0.18, 0.02], turn: ALONG, glow: 0.7 })
    .build();
  return { geometry, muzzle: [0, 0.08, -1.08] };
}

const MAKERS: Record<number, (accent: number) => WeaponModel> = { 1: blaster, 2: launcher, 3: scatter, 4: rail };
