// Bodies of the enemies. Each is recognised by its outline alone: the tank is a slab on treads with one huge barrel, the cat a low arched back with
// ears and a tail, the wasp a striped drop with wings, the boss a caged core between two lamps.

import type { BufferGeometry } from "three";
import { BOSS_GLOW, ENEMY_GLOW, HULL_DARK, HULL_ENEMY, JOINT } from "./palette.ts";
import { Shape } from "./shape.ts";

const RUST = 0x8a3d2e;
const STRIPE = 0xf0b429;

export function tankHull(): BufferGeometry {
  const shape = new Shape()
    .box([1.5, 0.5, 2.1], RUST, { at: [0, 0.75, 0] }, 0.82)
    .box([1.3, 0.16, 1.9], HULL_ENEMY, { at: [0, 0.46, 0] })
    .box([0.7, 0.1, 0.06], ENEMY_GLOW, { at: [0, 0.7, -1.0], turn: [0.35, 0, 0], glow: 1 });
  for (const side of [-1, 1]) {
    shape.box([0.42, 0.56, 2.3], HULL_DARK, { at: [side * 0.82, 0.32, 0] }, 0.86).box([0.46, 0.08, 1.7], JOINT, { at: [side * 0.82, 0.64, 0] });
    for (const along of [-0.75, -0.25, 0.25, 0.75]) {
      shape.tube(0.19, 0.19, 0.06, 8, JOINT, { at: [side * 1.04, 0.26, along], turn: [0, 0, Math.PI / 2] });
    }
  }
  return shape.build();
}

export function tankTurret(): BufferGeometry {
  return new Shape()
    .tube(0.4, 0.62, 0.46, 6, RUST, { at: [0, 0.22, 0.08] })
    .box([0.7, 0.3, 0.7], HULL_ENEMY, { at: [0, 0.25, 0.4] }, 0.8)
    .ball(0.11, 0, ENEMY_GLOW, { at: [0.3, 0.42, -0.22], glow: 1 })
    .box([0.03, 0.7, 0.03], HULL_DARK, { at: [-0.3, 0.75, 0.5], turn: [0.15, 0, 0.1] })
    .build();
}

export function tankBarrel(): BufferGeometry {
  return new Shape()
    .tube(0.13, 0.17, 1.3, 8, HULL_DARK, { at: [0, 0, -0.65], turn: [-Math.PI / 2, 0, 0] })
    .tube(0.2, 0.2, 0.28, 8, HULL_ENEMY, { at: [0, 0, -1.3], turn: [-Math.PI / 2, 0, 0] })
    .ring(0.16, 0.03, 8, ENEMY_GLOW, { at: [0, 0, -1.45], glow: 1 })
    .build();
}

export function catBody(): BufferGeometry {
  return new Shape()
    .box([0.26, 0.26, 0.44], HULL_ENEMY, { at: [0, 0.02, -0.16], turn: [0.12, 0, 0] }, 0.7)
    .box([0.22, 0.22, 0.42], HULL_DARK, { at: [0, 0.04, 0.2], turn: [-0.2, 0, 0] }, 0.7)
    .box([0.05, 0.04, 0.6], ENEMY_GLOW, { at: [0, 0.17, 0.02], glow: 0.8 })
    .spike(0.07, 0.16, 4, HULL_DARK, { at: [0, 0.2, -0.2] })
    .spike(0.06, 0.14, 4, HULL_DARK, { at: [0, 0.2, 0.16] })
    .build();
}

export function catHead(): BufferGeometry {
  const shape = new Shape()
    .box([0.26, 0.2, 0.24], HULL_ENEMY, { at: [0, 0.04, -0.1] }, 0.85)
    .box([0.14, 0.09, 0.12], HULL_DARK, { at: [0, -0.01, -0.25] });
  for (const side of [-1, 1]) {
    shape
      .spike(0.07, 0.2, 4, HULL_DARK, { at: [side * 0.09, 0.22, -0.04], turn: [0, 0, side * -0.22] })
      .box([0.07, 0.045, 0.03], ENEMY_GLOW, { at: [side * 0.07, 0.07, -0.22], turn: [0, 0, side * 0.35], glow: 1 });
  }
  return shape.build();
}

export function catLeg(): BufferGeometry {
  return new Shape()
    .box([0.08, 0.2, 0.11], HULL_ENEMY, { at: [0, -0.08, 0] }, 1.2)
    .box([0.055, 0.18, 0.06], JOINT, { at: [0, -0.24, 0.02] })
    .box([0.08, 0.05, 0.13], HULL_DARK, { at: [0, -0.33, -0.03] })
    .build();
}

export function catTail(): BufferGeometry {
  return new Shape().box([0.05, 0.05, 0.2], HULL_DARK, { at: [0, 0, 0.1] }, 1).build();
}

export function catTailTip(): BufferGeometry {
  return new Shape().box([0.04, 0.04, 0.14], HULL_DARK, { at: [0, 0, 0.07] }).ball(0.05, 0, ENEMY_GLOW, { at: [0, 0, 0.16], glow: 1 }).build();
}

export function waspBody(): BufferGeometry {
  return new Shape()
    .ball(0.16, 0, HULL_DARK, { at: [0, 0, -0.18] })
    .ball(0.07, 0, ENEMY_GLOW, { at: [0.07, 0.04, -0.3], glow: 1 })
    .ball(0.07, 0, ENEMY_GLOW, { at: [-0.07, 0.04, -0.3], glow: 1 })
    .tube(0.17, 0.15, 0.1, 6, STRIPE, { at: [0, -0.01, -0.02], turn: [Math.PI / 2, 0, 0] })
    .tube(0.18, 0.17, 0.1, 6, HULL_DARK, { at: [0, -0.03, 0.08], turn: [Math.PI / 2, 0, 0] })
    .tube(0.14, 0.18, 0.1, 6, STRIPE, { at: [0, -0.05, 0.18], turn: [Math.PI / 2, 0, 0] })
    .spike(0.12, 0.3, 6, HULL_DARK, { at: [0, -0.08, 0.37], turn: [Math.PI / 2 + 0.2, 0, 0] })
    .box([0.02, 0.02, 0.16], ENEMY_GLOW, { at: [0, -0.12, 0.56], turn: [0.2, 0, 0], glow: 1 })
    .build();
}

export function bossCore(): BufferGeometry {
  return new Shape()
    .ball(1.15, 1, HULL_ENEMY)
    .ball(0.55, 1, ENEMY_GLOW, { at: [0, 0.15, -0.78], glow: 1 })
    .ring(0.62, 0.1, 10, HULL_DARK, { at: [0, 0.15, -0.92] })
    .spike(0.35, 0.9, 5, HULL_DARK, { at: [0, 1.35, 0.1] })
    .spike(0.25, 0.7, 5, HULL_DARK, { at: [0.62, 1.15, 0.2], turn: [0, 0, -0.5] })
    .spike(0.25, 0.7, 5, HULL_DARK, { at: [-0.62, 1.15, 0.2], turn: [0, 0, 0.5] })
    .build();
}

export function bossRing(): BufferGeometry {
  const shape = new Shape().ring(1.75, 0.12, 14, RUST);
  for (let index = 0; index < 6; index += 1) {
    const angle = (index / 6) * Math.PI * 2;
    shape.box([0.32, 0.32, 0.42], HULL_DARK, { at: [Math.cos(angle) * 1.75, Math.sin(angle) * 1.75, 0], turn: [0, 0, angle] });
  }
  return shape.build();
}

export function bossWeakPoint(): BufferGeometry {
  return new Shape().ball(0.5, 1, BOSS_GLOW, { glow: 1 }).ring(0.62, 0.09, 8, HULL_DARK).ring(0.62, 0.09, 8, HULL_DARK, { turn: [0, Math.PI / 2, 0] }).build();
}
