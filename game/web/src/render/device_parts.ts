// Bodies of the devices. White light is for everyone; a device for one robot alone carries that robot's colour.

import type { BufferGeometry } from "three";
import type { Triple } from "../model.ts";
import { HULL_DARK, JOINT } from "./palette.ts";
import { Shape } from "./shape.ts";

const STEEL = 0x767d99;
const WARNING = 0xe0b13a;

/** A stand whose plate looks up at the player; `height` is where hands go. */
export function pedestal(colour: number, height: number): BufferGeometry {
  return new Shape()
    .box([0.62, 0.12, 0.62], HULL_DARK, { at: [0, 0.06, 0] })
    .box([0.4, height, 0.4], STEEL, { at: [0, height / 2, 0] }, 0.75)
    .box([0.44, 0.06, 0.44], HULL_DARK, { at: [0, height, 0] })
    .box([0.66, 0.04, 0.66], colour, { at: [0, 0.14, 0], glow: 0.7 })
    .build();
}

export function leverHandle(colour: number): BufferGeometry {
  return new Shape().box([0.07, 0.5, 0.07], JOINT, { at: [0, 0.25, 0] }).ball(0.12, 0, colour, { at: [0, 0.52, 0], glow: 1 }).build();
}

export function buttonCap(colour: number): BufferGeometry {
  return new Shape().tube(0.17, 0.2, 0.14, 8, colour, { at: [0, 0.07, 0], glow: 0.9 }).build();
}

/** A ring to grip: for what has to be held. */
export function gripRing(colour: number): BufferGeometry {
  return new Shape().ring(0.24, 0.05, 8, colour, { at: [0, 0.3, 0], glow: 0.9 }).box([0.08, 0.14, 0.08], JOINT, { at: [0, 0.06, 0] }).build();
}

export function plate(size: Triple, colour: number): BufferGeometry {
  const [width, , depth] = size;
  const shape = new Shape().box([width * 0.86, 0.1, depth * 0.86], STEEL, { at: [0, 0.05, 0] }, 0.94);
  for (const side of [-1, 1]) {
    shape.box([width, 0.07, 0.12], colour, { at: [0, 0.035, (side * depth) / 2], glow: 0.9 });
    shape.box([0.12, 0.07, depth], colour, { at: [(side * width) / 2, 0.035, 0], glow: 0.9 });
  }
  return shape.build();
}

/** A slab with stripes at its foot and a band of light across. */
export function door(size: Triple, colour: number): BufferGeometry {
  const [width, height, depth] = size;
  const alongX = width >= depth;
  const span = Math.max(width, depth);
  const shape = new Shape().box(size, STEEL);
  const thick = Math.min(width, depth) + 0.06;
  const across = (long: number, tall: number, wide: number): Triple => (alongX ? [long, tall, wide] : [wide, tall, long]);
  shape.box(across(span * 0.96, 0.1, thick), colour, { at: [0, height * 0.12, 0], glow: 1 });
  shape.box(across(0.08, height * 0.96, thick), HULL_DARK);
  for (const side of [-1, 1]) shape.box(across(span * 0.4, height * 0.26, thick - 0.02), JOINT, { at: alongX ? [side * span * 0.24, height * 0.32, 0] : [0, height * 0.32, side * span * 0.24] });
  const stripes = Math.max(3, Math.round(span / 0.7));
  for (let index = 0; index < stripes; index += 1) {
    const along = ((index + 0.5) / stripes - 0.5) * span;
    const tint = index % 2 === 0 ? WARNING : HULL_DARK;
    shape.box(across(span / stripes, 0.34, thick), tint, { at: alongX ? [along, -height / 2 + 0.22, 0] : [0, -height / 2 + 0.22, along] });
  }
  return shape.build();
}

/** A lift or platform: a slab with a bright rim and a machine below. */
export function deck(size: Triple, colour: number, lift: boolean): BufferGeometry {
  const [width, height, depth] = size;
  const shape = new Shape().box(size, STEEL);
  for (const side of [-1, 1]) {
    shape.box([width + 0.04, 0.08, 0.1], colour, { at: [0, height / 2 - 0.06, (side * depth) / 2], glow: 0.9 });
    shape.box([0.1, 0.08, depth + 0.04], colour, { at: [(side * width) / 2, height / 2 - 0.06, 0], glow: 0.9 });
  }
  if (lift) shape.tube(0.3, 0.45, 0.5, 6, HULL_DARK, { at: [0, -height / 2 - 0.25, 0] });
  else shape.box([width * 0.5, 0.3, depth * 0.5], HULL_DARK, { at: [0, -height / 2 - 0.15, 0] }, 1.3);
  return shape.build();
}

export function pickupBase(colour: number): BufferGeometry {
  return new Shape().tube(0.42, 0.5, 0.1, 8, HULL_DARK, { at: [0, 0.05, 0] }).ring(0.42, 0.035, 10, colour, { at: [0, 0.11, 0], turn: [Math.PI / 2, 0, 0], glow: 1 }).build();
}
