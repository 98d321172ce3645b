// The robot's body, part by part. Every part is modelled around its own joint, so that the animation only turns joints; the accent of the
// player is baked into the colours, and geometries are kept per slot.

import type { BufferGeometry } from "three";
import { HULL_DARK, HULL_ROBOT, JOINT, playerColour } from "./palette.ts";
import { Shape } from "./shape.ts";

export interface RobotGeometry {
  hips: BufferGeometry;
  torso: BufferGeometry;
  head: BufferGeometry;
  upperArm: BufferGeometry;
  lowerArm: BufferGeometry;
  thigh: BufferGeometry;
  shin: BufferGeometry;
}

/** Heights of the joints, in metres above the feet. */
export const HIP_HEIGHT = 0.86;
export const THIGH_LENGTH = 0.4;
export const SHIN_LENGTH = 0.42;
export const UPPER_ARM_LENGTH = 0.3;

const kept = new Map<number, RobotGeometry>();

export function robotGeometry(slot: number): RobotGeometry {
  let geometry = kept.get(slot);
  if (geometry === undefined) {
    geometry = build(playerColour(slot));
    kept.set(slot, geometry);
  }
  return geometry;
}

function build(accent: number): RobotGeometry {
  return {
    hips: new Shape().box([0.34, 0.2, 0.26], HULL_DARK).box([0.4, 0.06, 0.3], JOINT, { at: [0, 0.1, 0] }).build(),
    torso: torso(accent),
    head: head(accent),
    upperArm: new Shape()
      .ball(0.13, 0, HULL_ROBOT)
      .box([0.13, 0.26, 0.14], JOINT, { at: [0, -0.17, 0] })
      .box([0.17, 0.05, 0.18], accent, { at: [0, 0.06, 0], glow: 0.5 })
      .build(),
    lowerArm: new Shape()
      .box([0.15, 0.3, 0.17], HULL_ROBOT, { at: [0, -0.14, 0], turn: [Math.PI, 0, 0] }, 0.75)
      .box([0.1, 0.1, 0.12], HULL_DARK, { at: [0, -0.32, 0] })
      .build(),
    thigh: new Shape()
      .box([0.16, 0.4, 0.2], HULL_ROBOT, { at: [0, -0.19, 0], turn: [Math.PI, 0, 0] }, 0.8)
      .ball(0.1, 0, JOINT, { at: [0, -0.4, 0] })
      .build(),
    shin: new Shape()
      .box([0.17, 0.36, 0.2], HULL_ROBOT, { at: [0, -0.2, 0.01] }, 0.8)
      .box([0.18, 0.03, 0.21], accent, { at: [0, -0.1, 0.0], glow: 0.7 })
      .box([0.2, 0.09, 0.36], HULL_DARK, { at: [0, -0.39, -0.06] }, 0.85)
      .build(),
  };
}

function torso(accent: number): BufferGeometry {
  return new Shape()
    .box([0.36, 0.46, 0.28], HULL_ROBOT, { at: [0, 0.28, 0] }, 1.55)
    .box([0.3, 0.12, 0.24], JOINT, { at: [0, 0.03, 0] })
    .box([0.3, 0.2, 0.05], HULL_DARK, { at: [0, 0.36, -0.2] })
    .tube(0.065, 0.065, 0.05, 6, accent, { at: [0, 0.37, -0.225], turn: [Math.PI / 2, 0, 0], glow: 1 })
    .box([0.38, 0.36, 0.18], HULL_DARK, { at: [0, 0.32, 0.24] }, 0.8)
    .box([0.06, 0.26, 0.03], accent, { at: [0.09, 0.32, 0.335], turn: [-0.09, 0, 0], glow: 1 })
    .box([0.06, 0.26, 0.03], accent, { at: [-0.09, 0.32, 0.335], turn: [-0.09, 0, 0], glow: 1 })
    .build();
}

function head(accent: number): BufferGeometry {
  return new Shape()
    .tube(0.08, 0.1, 0.1, 6, JOINT, { at: [0, 0.03, 0] })
    .box([0.4, 0.24, 0.36], HULL_ROBOT, { at: [0, 0.19, 0] }, 0.82)
    .box([0.35, 0.11, 0.06], HULL_DARK, { at: [0, 0.2, -0.16] })
    .box([0.28, 0.05, 0.04], accent, { at: [0, 0.2, -0.185], glow: 1 })
    .tube(0.09, 0.09, 0.06, 6, HULL_DARK, { at: [0.2, 0.18, 0], turn: [0, 0, Math.PI / 2] })
    .tube(0.09, 0.09, 0.06, 6, HULL_DARK, { at: [-0.2, 0.18, 0], turn: [0, 0, Math.PI / 2] })
    .box([0.025, 0.28, 0.025], HULL_DARK, { at: [0.2, 0.36, 0.06], turn: [0.25, 0, -0.12] })
    .ball(0.035, 0, accent, { at: [0.215, 0.5, 0.095], glow: 1 })
    .build();
}
