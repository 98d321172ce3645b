// The ball and its goals: the ball rolls by the way that it goes, since its state has no rotation; goals are frames in the colour of who defends them.

import { Group, Mesh, Quaternion, Vector3 } from "three";
import { type Level, middle, size } from "../level.ts";
import { BALL_RADIUS, type BallView, type Moment, type Triple } from "../model.ts";
import { actorMaterial } from "./materials.ts";
import { HULL_DARK, HULL_ROBOT, NEUTRAL_GLOW, TEAM_COLOURS } from "./palette.ts";
import { Shape } from "./shape.ts";

/** Called when the ball has bounced or was hit, with the change of its speed in metres a second. */
export type BallHeard = (at: Triple, strength: number) => void;

export class BallAndGoals {
  readonly root = new Group();
  private readonly ball: Mesh;
  private readonly surface = actorMaterial();
  private shown: BallView | undefined;

  constructor(
    level: Level,
    private readonly heard: BallHeard,
  ) {
    this.ball = new Mesh(ballShape().build(), this.surface.material);
    this.ball.castShadow = true;
    this.ball.visible = false;
    this.root.add(this.ball);
    if (level.goals.length > 0) this.root.add(new Mesh(frames(level).build(), this.surface.material));
  }

  update(moment: Moment): void {
    const [view] = moment.balls;
    this.ball.visible = view !== undefined;
    if (view === undefined) return;
    this.roll(view);
    this.ball.position.set(...view.position);
    if (this.shown !== undefined) {
      const change = Math.hypot(...view.velocity.map((speed, axis) => speed - (this.shown?.velocity[axis] ?? 0)));
      if (change > HEARD_SPEED && view.restartTicks === this.shown.restartTicks) this.heard(view.position, change);
    }
    this.shown = view;
  }

  private roll({ position }: BallView): void {
    way.set(...position).sub(this.ball.position).setY(0);
    const length = way.length();
    // Put back for a kick-off it has not rolled there.
    if (length < 1e-5 || length > 2) return;
    axis.set(way.z, 0, -way.x).divideScalar(length);
    this.ball.quaternion.premultiply(turn.setFromAxisAngle(axis, length / BALL_RADIUS));
  }
}

function ballShape(): Shape {
  const shape = new Shape().ball(BALL_RADIUS * 0.97, 2, HULL_ROBOT);
  for (const turned of [[0, 0, 0], [Math.PI / 2, 0, 0], [0, Math.PI / 2, 0]] as Triple[]) shape.ring(BALL_RADIUS * 0.96, 0.06, 24, HULL_DARK, { turn: turned });
  for (const at of [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]] as Triple[]) {
    shape.ball(0.14, 1, NEUTRAL_GLOW, { at: [at[0] * BALL_RADIUS * 0.9, at[1] * BALL_RADIUS * 0.9, at[2] * BALL_RADIUS * 0.9], glow: 1 });
  }
  return shape;
}

/** Posts and bars of the goals, and the line across the middle. */
function frames(level: Level): Shape {
  const shape = new Shape();
  for (const { team, area } of level.goals) {
    const [, height, width] = size(area);
    const [x, , z] = middle(area);
    const colour = TEAM_COLOURS[team];
    // The ball's middle counts from a radius behind the line on.
    const line = x < 0 ? area.max[0] + BALL_RADIUS : area.min[0] - BALL_RADIUS;
    for (const side of [-1, 1]) shape.box([POST, height, POST], colour, { at: [line, area.min[1] + height / 2, z + (side * width) / 2], glow: 1 });
    shape.box([POST, POST, width], colour, { at: [line, area.max[1], z], glow: 1 });
    shape.box([POST, 0.03, width], colour, { at: [line, area.min[1] + 0.015, z], glow: 0.8 });
  }
  const depth = Math.max(...level.solids.map(({ min, max }) => max[2] - min[2]));
  return shape.box([0.12, 0.02, depth], NEUTRAL_GLOW, { at: [0, 0.01, 0], glow: 0.3 }).ring(3, 0.06, 48, NEUTRAL_GLOW, { at: [0, 0, 0], turn: [Math.PI / 2, 0, 0], glow: 0.3 });
}

const POST = 0.16;
/** A change of speed from which on it is heard. */
const HEARD_SPEED = 2.5;
const way = new Vector3();
const axis = new Vector3();
const turn = new Quaternion();
