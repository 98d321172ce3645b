// Robots, enemies and bolts by entity: made when they first appear, updated from the moment, taken away when they are gone. What they did in a
// frame goes to the listener, who knows flashes and sounds.

import { Group, Mesh, type Scene, Sprite, type Texture } from "three";
import type { BoltView, EnemyView, Moment, RobotView } from "../model.ts";
import { Stance } from "../model.ts";
import { type Enemy, type EnemyEvents, makeEnemy } from "./enemies.ts";
import { actorMaterial, glowMaterial } from "./materials.ts";
import { BOSS_GLOW, ENEMY_GLOW, playerColour } from "./palette.ts";
import { Robot, type RobotEvents } from "./robot.ts";
import { Shape } from "./shape.ts";

export interface ActorListener {
  robot(view: RobotView, robot: Robot, events: RobotEvents): void;
  enemy(view: EnemyView, enemy: Enemy, events: EnemyEvents, before: EnemyView | undefined): void;
}

interface ShownEnemy {
  enemy: Enemy;
  view: EnemyView;
}

export class Actors {
  private readonly robots = new Map<number, Robot>();
  private readonly enemies = new Map<number, ShownEnemy>();
  private readonly bolts = new Map<number, Group>();
  private readonly surface = actorMaterial();

  constructor(
    private readonly scene: Scene,
    private readonly glow: Texture,
    private readonly listener: ActorListener,
  ) {}

  robotOf(entity: number): Robot | undefined {
    return this.robots.get(entity);
  }

  update(moment: Moment, hidden: number, seconds: number): void {
    this.updateRobots(moment.robots, hidden, seconds);
    this.updateEnemies(moment.enemies, seconds);
    this.updateBolts(moment);
  }

  clear(): void {
    for (const robot of this.robots.values()) this.scene.remove(robot.root);
    for (const { enemy } of this.enemies.values()) this.scene.remove(enemy.root);
    for (const root of this.bolts.values()) this.scene.remove(root);
    this.robots.clear();
    this.enemies.clear();
    this.bolts.clear();
  }

  private updateRobots(views: readonly RobotView[], hidden: number, seconds: number): void {
    for (const view of views) {
      let robot = this.robots.get(view.entity);
      if (robot === undefined || robot.slot !== view.slot) {
        if (robot !== undefined) this.scene.remove(robot.root);
        robot = new Robot(view.slot);
        this.robots.set(view.entity, robot);
        this.scene.add(robot.root);
      }
      const events = robot.update(view, seconds);
      this.listener.robot(view, robot, events);
      if (view.entity === hidden) robot.root.visible = false;
    }
    forget(this.robots, new Set(views.map((view) => view.entity)), (robot) => this.scene.remove(robot.root));
  }

  private updateEnemies(views: readonly EnemyView[], seconds: number): void {
    for (const view of views) {
      let shown = this.enemies.get(view.entity);
      const before = shown?.view;
      if (shown === undefined || shown.view.species !== view.species) {
        if (shown !== undefined) this.scene.remove(shown.enemy.root);
        shown = { enemy: makeEnemy(view.species), view };
        this.enemies.set(view.entity, shown);
        this.scene.add(shown.enemy.root);
      }
      const events = shown.enemy.update(view, seconds);
      shown.view = view;
      this.listener.enemy(view, shown.enemy, events, before);
    }
    forget(this.enemies, new Set(views.map((view) => view.entity)), ({ enemy, view }) => {
      // One whose last state never arrived is seen to fall apart all the same.
      if (view.stance !== Stance.Dead && view.health < 30) {
        this.listener.enemy(view, enemy, { fired: false, died: true, hurt: false, stepped: false }, view);
      }
      this.scene.remove(enemy.root);
    });
  }

  private updateBolts(moment: Moment): void {
    for (const view of moment.bolts) {
      let root = this.bolts.get(view.entity);
      if (root === undefined) {
        root = this.makeBolt(view);
        this.bolts.set(view.entity, root);
        this.scene.add(root);
      }
      root.position.set(...view.position);
      // What fades shrinks away: bolts share their material.
      root.scale.setScalar(Math.max(view.share, 0.001));
      const [x, y, z] = view.velocity;
      root.lookAt(view.position[0] + x, view.position[1] + y, view.position[2] + z);
    }
    forget(this.bolts, new Set(moment.bolts.map((bolt) => bolt.entity)), (root) => this.scene.remove(root));
  }

  private makeBolt(bolt: BoltView): Group {
    const colour = boltColour(bolt);
    const width = BOLT_SIZES[bolt.weapon] ?? 0.12;
    const geometry = new Shape().box([width, width, width * 4], colour, { glow: 1 }).box([width * 0.5, width * 0.5, width * 5], 0xffffff, { glow: 1 }).build();
    const root = new Group();
    const halo = new Sprite(glowMaterial(this.glow, colour, 0.8));
    halo.scale.setScalar(width * 9);
    root.add(new Mesh(geometry, this.surface.material), halo);
    return root;
  }
}

/** A player's bolt has the player's colour, an enemy's is red, the boss's orange. */
export function boltColour(bolt: BoltView): number {
  if (bolt.weapon >= ENEMY_BOLT) return bolt.weapon === ENEMY_BOLT + 3 ? BOSS_GLOW : ENEMY_GLOW;
  return playerColour(bolt.owner);
}

function forget<Shown>(shown: Map<number, Shown>, present: ReadonlySet<number>, leave: (gone: Shown) => void): void {
  for (const [entity, one] of shown) {
    if (present.has(entity)) continue;
    leave(one);
    shown.delete(entity);
  }
}

/** Bolts from this number on are fired by enemies: tank, cat, wasp, boss. */
export const ENEMY_BOLT = 8;
const BOLT_SIZES: Record<number, number> = { 2: 0.14, 8: 0.26, 9: 0.07, 10: 0.08, 11: 0.22 };
