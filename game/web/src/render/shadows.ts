// Round shadows under robots and enemies, where there are no real ones (quality low): without them everything would seem to float.

import { CircleGeometry, Mesh, MeshBasicMaterial, type Scene, type Texture } from "three";
import { type Moment, Species, Stance, type Triple } from "../model.ts";
import type { Solids } from "../solids.ts";

export class RoundShadows {
  private readonly pool: Mesh[] = [];
  private readonly geometry = new CircleGeometry(1, 16).rotateX(-Math.PI / 2);
  private readonly material: MeshBasicMaterial;

  constructor(
    private readonly scene: Scene,
    soft: Texture,
  ) {
    this.material = new MeshBasicMaterial({ color: 0x1d1020, map: soft, transparent: true, opacity: 0.75, depthWrite: false });
  }

  update(moment: Moment, solids: Solids): void {
    let used = 0;
    const put = (at: Triple, width: number): void => {
      const height = solids.cast([at[0], at[1] + 0.2, at[2]], [0, -1, 0], REACH).distance;
      if (height >= REACH) return;
      const mesh = this.take(used);
      used += 1;
      // Smaller the higher above the ground.
      mesh.scale.setScalar(width * (1 - (height / REACH) * 0.7));
      mesh.position.set(at[0], at[1] + 0.2 - height + LIFT, at[2]);
      mesh.visible = true;
    };
    for (const robot of moment.robots) if (robot.alive) put(robot.position, 0.75);
    for (const ball of moment.balls) put(ball.position, 0.9);
    for (const enemy of moment.enemies) if (enemy.stance !== Stance.Dead) put(enemy.position, WIDTHS[enemy.species as Species] ?? 0.8);
    for (let index = used; index < this.pool.length; index += 1) (this.pool[index] as Mesh).visible = false;
  }

  clear(): void {
    for (const mesh of this.pool) mesh.visible = false;
  }

  private take(index: number): Mesh {
    const known = this.pool[index];
    if (known !== undefined) return known;
    const made = new Mesh(this.geometry, this.material);
    this.pool.push(made);
    this.scene.add(made);
    return made;
  }
}

const WIDTHS: Record<Species, number> = { [Species.Tank]: 1.9, [Species.Cat]: 0.9, [Species.Wasp]: 0.45, [Species.Boss]: 4 };
/** Higher above the ground there is none. */
const REACH = 6;
/** Above the floor and its rims. */
const LIFT = 0.035;
