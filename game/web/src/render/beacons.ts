// Marks of the level that are neither walls nor devices: pads at checkpoints, the light over the exit, and the boss's two weak points, which
// burn while they count as hit.

import { AdditiveBlending, BufferAttribute, CylinderGeometry, DoubleSide, Group, Mesh, MeshBasicMaterial, Sprite, type Texture } from "three";
import { type Level, middle, size } from "../level.ts";
import { type Moment, Species, Stance, type Triple } from "../model.ts";
import { bossWeakPoint } from "./enemy_parts.ts";
import { actorMaterial, glowMaterial } from "./materials.ts";
import { BOSS_GLOW, NEUTRAL_GLOW, OPEN_GLOW } from "./palette.ts";
import { Shape } from "./shape.ts";

interface WeakPoint {
  root: Group;
  halo: Sprite;
  flash: { value: number };
}

export class Beacons {
  readonly root = new Group();
  private readonly pads: MeshBasicMaterial[] = [];
  private readonly weak: WeakPoint[] = [];
  private readonly columns: MeshBasicMaterial[] = [];
  private time = 0;

  constructor(
    private readonly level: Level,
    glow: Texture,
  ) {
    for (const checkpoint of level.checkpoints) {
      for (const spawn of checkpoint.spawns.slice(0, 2)) this.pad(spawn.at);
    }
    if (level.exit !== null && level.exit !== undefined) {
      const [width, , depth] = size(level.exit);
      this.column(middle(level.exit), level.exit.min[1], Math.min(width, depth) / 2);
    }
    for (const point of level.boss?.weak_points ?? []) this.weakPoint(point, glow);
  }

  update(moment: Moment, seconds: number): void {
    this.time += seconds;
    const reached = moment.round.checkpoint;
    const perCheckpoint = 2;
    for (const [index, pad] of this.pads.entries()) pad.color.set(Math.floor(index / perCheckpoint) <= reached ? OPEN_GLOW : 0x7a6a70);
    for (const column of this.columns) column.opacity = 0.3 + 0.08 * Math.sin(this.time * 2);
    const boss = moment.enemies.find((enemy) => enemy.species === Species.Boss);
    const there = boss !== undefined && boss.stance !== Stance.Dead;
    for (const [index, point] of this.weak.entries()) {
      point.root.visible = there;
      if (boss === undefined) continue;
      const offset = this.level.boss?.weak_points[index] ?? [0, 0, 0];
      point.root.position.set(boss.position[0] + offset[0], boss.position[1] + offset[1], boss.position[2] + offset[2]);
      point.root.rotation.y = this.time * 1.2;
      const hit = (moment.round.weakPoints[index] ?? 0) > 0;
      point.flash.value = hit ? 0.9 : 0;
      point.halo.scale.setScalar((hit ? 5 : 3) + Math.sin(this.time * 6 + index) * 0.3);
    }
  }

  private pad(at: Triple): void {
    const material = new MeshBasicMaterial({ color: 0x7a6a70 });
    const mesh = new Mesh(new Shape().ring(0.55, 0.05, 12, NEUTRAL_GLOW, { turn: [Math.PI / 2, 0, 0] }).build(), material);
    mesh.position.set(at[0], at[1] + 0.04, at[2]);
    this.pads.push(material);
    this.root.add(mesh);
  }

  private column([x, , z]: Triple, floor: number, radius: number): void {
    const material = new MeshBasicMaterial({ color: OPEN_GLOW, vertexColors: true, transparent: true, opacity: 0.16, blending: AdditiveBlending, depthWrite: false, side: DoubleSide, fog: false });
    const geometry = new CylinderGeometry(radius * 1.3, radius, BEAM_METRES, 12, 4, true);
    const heights = geometry.getAttribute("position");
    const colours = new Float32Array(heights.count * 3);
    // Black adds nothing: the beam fades out towards its top.
    for (let index = 0; index < heights.count; index += 1) colours.fill((0.5 - heights.getY(index) / BEAM_METRES) ** 2, index * 3, index * 3 + 3);
    geometry.setAttribute("color", new BufferAttribute(colours, 3));
    const mesh = new Mesh(geometry, material);
    mesh.position.set(x, floor + BEAM_METRES / 2, z);
    this.columns.push(material);
    this.root.add(mesh);
  }

  private weakPoint(at: Triple, glow: Texture): void {
    const surface = actorMaterial();
    const root = new Group();
    const halo = new Sprite(glowMaterial(glow, BOSS_GLOW, 0.8));
    root.add(new Mesh(bossWeakPoint(), surface.material), halo);
    root.position.set(...at);
    root.visible = false;
    this.weak.push({ root, halo, flash: surface.flash });
    this.root.add(root);
  }
}

const BEAM_METRES = 18;
