// Rays against the level, for the camera, the crosshair and the shadows under things: boxes, ramps, and the doors and lifts where they are now.

import type { Area, Solid } from "./level.ts";
import type { Triple } from "./model.ts";

export interface Hit {
  distance: number;
  /** Number of the solid that was met, or -1. */
  solid: number;
  /** Of the surface that was met. */
  normal: Triple;
}

interface Body extends Area {
  rise?: Solid["rise"];
}

export class Solids {
  /** Doors, lifts and platforms, as they are in this picture. */
  moving: Area[] = [];

  constructor(private readonly fixed: readonly Solid[]) {}

  /** The first thing along a ray; `direction` has length 1. */
  cast(from: Triple, direction: Triple, limit: number): Hit {
    let distance = limit;
    let found = -1;
    let body: Body | undefined;
    for (const [index, solid] of this.fixed.entries()) {
      const met = castBody(solid, from, direction, distance);
      if (met < distance) {
        distance = met;
        found = index;
        body = solid;
      }
    }
    for (const moving of this.moving) {
      const met = castBody(moving, from, direction, distance);
      if (met < distance) {
        distance = met;
        found = -1;
        body = moving;
      }
    }
    const point = from.map((start, axis) => start + (direction[axis] ?? 0) * distance) as Triple;
    return { distance, solid: found, normal: body === undefined ? [0, 1, 0] : normalAt(body, point) };
  }

  materialOf(hit: Hit): string {
    return this.fixed[hit.solid]?.material ?? (hit.solid === -1 ? "metal" : "concrete");
  }
}

/** Distance at which a ray enters a box or a ramp, or `limit`. A ray that begins inside meets nothing: a camera in a wall must get out. */
function castBody(body: Body, from: Triple, direction: Triple, limit: number): number {
  let enter = 0;
  let leave = limit;
  for (let axis = 0; axis < 3; axis += 1) {
    const start = from[axis] ?? 0;
    const speed = direction[axis] ?? 0;
    const low = body.min[axis] ?? 0;
    const high = body.max[axis] ?? 0;
    if (Math.abs(speed) < 1e-9) {
      if (start < low || start > high) return limit;
      continue;
    }
    const one = (low - start) / speed;
    const two = (high - start) / speed;
    enter = Math.max(enter, Math.min(one, two));
    leave = Math.min(leave, Math.max(one, two));
  }
  if (body.rise !== undefined) [enter, leave] = cutBySlope(body, from, direction, enter, leave);
  return enter > 0 && enter <= leave ? enter : limit;
}

/** The side of the body that a point on it lies on: the nearest plane's. */
function normalAt(body: Body, point: Triple): Triple {
  let best = Number.POSITIVE_INFINITY;
  let normal: Triple = [0, 1, 0];
  for (let axis = 0; axis < 3; axis += 1) {
    for (const [bound, sign] of [[body.min[axis], -1], [body.max[axis], 1]] as const) {
      const gap = Math.abs((point[axis] ?? 0) - (bound ?? 0));
      if (gap >= best) continue;
      best = gap;
      normal = [0, 0, 0];
      normal[axis] = sign;
    }
  }
  if (body.rise === undefined || best < 0.01) return normal;
  const { axis, slope } = slopeOf(body);
  const length = Math.hypot(1, slope);
  const upwards: Triple = [0, 1 / length, 0];
  upwards[axis] = -slope / length;
  return upwards;
}

/** Which way a ramp rises, how steeply, and where its foot is. */
function slopeOf(body: Body): { axis: 0 | 2; slope: number; low: number } {
  const axis = body.rise?.endsWith("x") === true ? 0 : 2;
  const steepness = (body.max[1] - body.min[1]) / (body.max[axis] - body.min[axis]);
  const upwards = body.rise?.startsWith("+") === true;
  return { axis, slope: upwards ? steepness : -steepness, low: upwards ? body.min[axis] : body.max[axis] };
}

/** Keeps what lies below a ramp's slope. */
function cutBySlope(body: Body, from: Triple, direction: Triple, enter: number, leave: number): [number, number] {
  const { axis, slope, low } = slopeOf(body);
  // Above the slope is where y - (foot + slope * (along - low)) is positive.
  const above = from[1] - body.min[1] - slope * (from[axis] - low);
  const rate = direction[1] - slope * direction[axis];
  if (Math.abs(rate) < 1e-9) return above > 0 ? [1, 0] : [enter, leave];
  const meets = -above / rate;
  return rate < 0 ? [Math.max(enter, meets), leave] : [enter, Math.min(leave, meets)];
}
