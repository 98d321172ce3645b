// The level's solids as one mesh: tops, sides and feet in different tones of the material's colour, bright edges for the silhouette, lamps on long
// walls, planks on crates. Everything follows from the level's file and is the same every time.

import { BufferAttribute, BufferGeometry, Color, EdgesGeometry, Group, LineBasicMaterial, LineSegments, Mesh } from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import { type Level, middle, type Side, size, type Solid } from "../level.ts";
import type { Triple } from "../model.ts";
import type { Quality } from "../settings.ts";
import { glassMaterial, worldMaterial } from "./materials.ts";
import { HULL_DARK, materialColour } from "./palette.ts";
import { Shape } from "./shape.ts";

export function buildWorld(level: Level, quality: Quality): Group {
  const group = new Group();
  const geometries = level.solids.filter((solid) => solid.material !== "glass").map((solid) => paintSolid(solid, level));
  const decoration = new Shape();
  let decorated = false;
  for (const solid of level.solids) decorated = decorate(solid, decoration, quality) || decorated;
  if (decorated) geometries.push(decoration.build());
  const mesh = new Mesh(mergeGeometries(geometries, false), worldMaterial());
  mesh.receiveShadow = true;
  mesh.castShadow = true;
  group.add(mesh);
  const panes = level.solids.filter((solid) => solid.material === "glass").map((solid) => paintSolid(solid, level));
  if (panes.length > 0) group.add(new Mesh(mergeGeometries(panes, false), glassMaterial()));
  if (quality !== "low") group.add(edges(level.solids));
  return group;
}

/** The corners of a solid: four at the foot, four above; two of those fall on the foot of a ramp. */
export function corners(solid: Solid): Triple[] {
  const { min, max, rise } = solid;
  const top = (x: number, z: number): Triple => [x, rise === undefined || isHigh(rise, x, z, solid) ? max[1] : min[1], z];
  return [
    [min[0], min[1], min[2]],
    [max[0], min[1], min[2]],
    [max[0], min[1], max[2]],
    [min[0], min[1], max[2]],
    top(min[0], min[2]),
    top(max[0], min[2]),
    top(max[0], max[2]),
    top(min[0], max[2]),
  ];
}

function isHigh(rise: Side, x: number, z: number, { min, max }: Solid): boolean {
  switch (rise) {
    case "+x":
      return x === max[0];
    case "-x":
      return x === min[0];
    case "+z":
      return z === max[2];
    case "-z":
      return z === min[2];
  }
}

function solidGeometry(solid: Solid): BufferGeometry {
  const points = corners(solid);
  const positions: number[] = [];
  for (const [a, b, c, d] of FACES) {
    for (const corner of [a, b, c, a, c, d]) positions.push(...(points[corner] ?? [0, 0, 0]));
  }
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(positions), 3));
  geometry.computeVertexNormals();
  return geometry;
}

/** The way through a level changes its colour, so that one sees how far one has come. */
function tintAlong(colour: Color, solid: Solid, level: Level): void {
  const start = level.spawns[0]?.at ?? [0, 0, 0];
  const [x, , z] = middle(solid);
  const way = (Math.abs(x - start[0]) + Math.abs(z - start[2])) / WAY_METRES;
  const place = Math.max(0, Math.min(TINTS.length - 1.001, way * (TINTS.length - 1)));
  const from = new Color(TINTS[Math.floor(place)]);
  const to = new Color(TINTS[Math.floor(place) + 1]);
  colour.multiply(from.lerp(to, place % 1));
}

function paintSolid(solid: Solid, level: Level): BufferGeometry {
  const geometry = solidGeometry(solid);
  const material = solid.material ?? "concrete";
  const base = new Color(materialColour(material));
  if (material === "concrete") tintAlong(base, solid, level);
  const side = base.clone().multiplyScalar(0.86);
  const foot = base.clone().lerp(new Color(0x4a3d5c), 0.35);
  const positions = geometry.getAttribute("position");
  const normals = geometry.getAttribute("normal");
  const tall = solid.max[1] - solid.min[1] > 1.2;
  const colours = new Float32Array(positions.count * 3);
  for (let index = 0; index < positions.count; index += 1) {
    const upwards = normals.getY(index) > 0.5;
    const low = tall && positions.getY(index) < solid.min[1] + 0.01;
    (upwards ? base : low ? foot : side).toArray(colours, index * 3);
  }
  const glow = material === "energy" ? 0.8 : 0;
  geometry.setAttribute("color", new BufferAttribute(colours, 3));
  geometry.setAttribute("glow", new BufferAttribute(new Float32Array(positions.count).fill(glow), 1));
  return geometry;
}

/** Lamps along walls and planks on crates; whether anything was added. */
function decorate(solid: Solid, shape: Shape, quality: Quality): boolean {
  const [width, height, depth] = size(solid);
  if (solid.rise !== undefined || solid.material === "glass" || solid.material === "energy") return false;
  const centre = middle(solid);
  if (solid.material === "wood") {
    for (const y of [0.15, 0.85]) shape.box([width + 0.06, 0.14, depth + 0.06], 0x7d4a2c, { at: [centre[0], solid.min[1] + height * y, centre[2]] });
    return true;
  }
  const long = Math.max(width, depth);
  const thin = Math.min(width, depth);
  if (thin >= FLOOR_METRES) return paveFloor(shape, solid, quality);
  if (height < 2.4 || long < 5 || thin > 2.5) return false;
  const alongX = width >= depth;
  const count = Math.max(1, Math.floor(long / 7));
  for (let index = 0; index < count; index += 1) {
    const along = ((index + 0.5) / count - 0.5) * long;
    for (const side of [-1, 1]) lamp(shape, centre, solid, alongX, along, (thin / 2) * side, side);
  }
  trimWall(shape, solid, alongX);
  const cap: Triple = alongX ? [width, 0.12, depth + 0.04] : [width + 0.04, 0.12, depth];
  shape.box(cap, 0x6b5f74, { at: [centre[0], solid.max[1] - 0.06, centre[2]] });
  return true;
}

/** A bright rim around a floor, so that one sees where it ends; seams where the material draws none itself. */
function paveFloor(shape: Shape, { min, max }: Solid, quality: Quality): boolean {
  const [width, depth] = [max[0] - min[0], max[2] - min[2]];
  const [x, z] = [(min[0] + max[0]) / 2, (min[2] + max[2]) / 2];
  const strip = (at: [number, number], wide: number, deep: number, colour: number): Shape => shape.box([wide, STRIP_METRES, deep], colour, { at: [at[0], max[1], at[1]] });
  for (const side of [-1, 1]) {
    strip([x, z + side * (depth / 2 - RIM_METRES / 2)], width, RIM_METRES, RIM);
    strip([x + side * (width / 2 - RIM_METRES / 2), z], RIM_METRES, depth, RIM);
  }
  if (quality !== "low") return true;
  for (let across = Math.ceil(min[0] / SEAM_METRES) * SEAM_METRES; across < max[0] - 1; across += SEAM_METRES) if (across > min[0] + 1) strip([across, z], 0.07, depth, SEAM);
  for (let along = Math.ceil(min[2] / SEAM_METRES) * SEAM_METRES; along < max[2] - 1; along += SEAM_METRES) if (along > min[2] + 1) strip([x, along], width, 0.07, SEAM);
  return true;
}

/** A dark foot and pillars in a wall, for scale. */
function trimWall(shape: Shape, solid: Solid, alongX: boolean): void {
  const [width, height, depth] = size(solid);
  const [x, y, z] = middle(solid);
  shape.box(alongX ? [width, 0.3, depth + 0.08] : [width + 0.08, 0.3, depth], SKIRTING, { at: [x, solid.min[1] + 0.15, z] });
  const long = alongX ? width : depth;
  const count = Math.floor(long / PILLAR_METRES);
  for (let index = 0; index <= count; index += 1) {
    const along = count === 0 ? 0 : (index / count - 0.5) * (long - 0.5);
    const at: Triple = alongX ? [x + along, y, z] : [x, y, z + along];
    shape.box(alongX ? [0.45, height, depth + 0.2] : [width + 0.2, height, 0.45], PILLAR, { at }, 0.9);
  }
}

function lamp(shape: Shape, centre: Triple, solid: Solid, alongX: boolean, along: number, across: number, side: number): void {
  const y = Math.min(solid.max[1] - 0.7, solid.min[1] + 3.1);
  const place = (out: number): Triple => (alongX ? [centre[0] + along, y, centre[2] + across + side * out] : [centre[0] + across + side * out, y, centre[2] + along]);
  const box = (length: number, tall: number, thick: number): Triple => (alongX ? [length, tall, thick] : [thick, tall, length]);
  shape.box(box(1.3, 0.24, 0.1), HULL_DARK, { at: place(0.05) });
  shape.box(box(1.1, 0.09, 0.05), 0xffcf8a, { at: place(0.11), glow: 1 });
}

function edges(solids: readonly Solid[]): LineSegments {
  const lines = solids.map((solid) => new EdgesGeometry(solidGeometry(solid), 20));
  const material = new LineBasicMaterial({ color: 0xffe6c8, transparent: true, opacity: 0.16 });
  return new LineSegments(mergeGeometries(lines, false), material);
}

const FLOOR_METRES = 4;
const STRIP_METRES = 0.03;
const RIM_METRES = 0.16;
const SEAM_METRES = 4;
const PILLAR_METRES = 7;
const RIM = 0xd9b48a;
const SEAM = 0x8f7a78;
const SKIRTING = 0x4a4256;
const PILLAR = 0x94808a;
/** Sand, terracotta, dusk, steel, and cold where the boss waits. */
const TINTS = [0xfff4e6, 0xffe4d2, 0xf6dfec, 0xdfe6fa, 0xd2f2ee];
const WAY_METRES = 200;
/** Outwards by the right-hand rule: bottom, top, then the four sides. */
const FACES: readonly (readonly [number, number, number, number])[] = [
  [0, 1, 2, 3],
  [4, 7, 6, 5],
  [0, 4, 5, 1],
  [1, 5, 6, 2],
  [2, 6, 7, 3],
  [3, 7, 4, 0],
];
