// The camera, and the rays that keep it out of walls.

import { Vector3 } from "three";
import { describe, expect, it } from "vitest";
import type { Solid } from "../src/level.ts";
import { attractMoment } from "../src/attract.ts";
import type { Moment, RobotView, Triple } from "../src/model.ts";
import { EYE_HEIGHT, lookDirection, ViewCamera } from "../src/render/camera.ts";
import { SideCamera } from "../src/render/side_camera.ts";
import { Solids } from "../src/solids.ts";

const wall: Solid = { min: [-10, 0, 1], max: [10, 5, 2] };
const ramp: Solid = { min: [0, 0, 0], max: [4, 2, 4], rise: "+x" };

function castOf(solids: Solids): (from: Vector3, direction: Vector3, limit: number) => number {
  return (from, direction, limit) => solids.cast([from.x, from.y, from.z], [direction.x, direction.y, direction.z], limit).distance;
}

function settle(view: ViewCamera, solids: Solids, aim = 0): void {
  for (let step = 0; step < 60; step += 1) view.update({ position: [0, 0, 0], yaw: 0, pitch: 0, aim }, castOf(solids), 1 / 60);
}

describe("Solids", () => {
  it("meets a box from outside, and not from inside or behind", () => {
    const solids = new Solids([wall]);
    expect(solids.cast([0, 1, 0], [0, 0, 1], 10)).toMatchObject({ distance: 1, solid: 0, normal: [0, 0, -1] });
    expect(solids.cast([0, 1, 1.5], [0, 0, 1], 10).distance).toBe(10);
    expect(solids.cast([0, 1, 0], [0, 0, -1], 10).distance).toBe(10);
  });

  it("meets the slope of a ramp where it is", () => {
    const hit = new Solids([ramp]).cast([1, 5, 2], [0, -1, 0], 10);
    expect(hit.distance).toBeCloseTo(4.5);
    expect(hit.normal[0]).toBeLessThan(0);
    expect(hit.normal[1]).toBeGreaterThan(0.8);
  });

  it("passes over a ramp's low side", () => {
    expect(new Solids([ramp]).cast([-1, 1.9, 2], [1, 0, 0], 3).distance).toBe(3);
    expect(new Solids([ramp]).cast([-1, 1, 2], [1, 0, 0], 10).distance).toBeCloseTo(3);
  });

  it("meets doors where they are now", () => {
    const solids = new Solids([]);
    solids.moving = [{ min: [-1, 0, -3], max: [1, 3, -2] }];
    expect(solids.cast([0, 1, 0], [0, 0, -1], 10)).toMatchObject({ distance: 2, solid: -1 });
  });
});

describe("ViewCamera", () => {
  it("looks along -z at yaw 0 and turns left with a growing yaw", () => {
    expect(lookDirection(0, 0, new Vector3()).z).toBeCloseTo(-1);
    expect(lookDirection(Math.PI / 2, 0, new Vector3()).x).toBeCloseTo(-1);
    expect(lookDirection(0, 1, new Vector3()).y).toBeGreaterThan(0.8);
  });

  it("stands behind the right shoulder, nearer when aiming", () => {
    const view = new ViewCamera();
    settle(view, new Solids([]));
    const far = view.camera.position.clone();
    expect(far.z).toBeGreaterThan(2);
    expect(far.x).toBeGreaterThan(0.3);
    settle(view, new Solids([]), 1);
    expect(view.camera.position.z).toBeLessThan(far.z);
  });

  it("stays before a wall", () => {
    const view = new ViewCamera();
    settle(view, new Solids([wall]));
    expect(view.camera.position.z).toBeLessThan(1);
  });

  it("is in the eyes in the first person", () => {
    const view = new ViewCamera();
    view.view = "first";
    settle(view, new Solids([wall]));
    expect(view.camera.position.toArray()).toEqual([0, expect.closeTo(EYE_HEIGHT), 0]);
  });

  it("shakes only when allowed", () => {
    const still = new ViewCamera();
    still.shakeAllowed = false;
    still.shake(1);
    still.update({ position: [0, 0, 0], yaw: 0, pitch: 0, aim: 0 }, () => 10, 1 / 60);
    expect(still.camera.rotation.z).toBe(0);
    const shaken = new ViewCamera();
    shaken.shake(1);
    shaken.update({ position: [0, 0, 0], yaw: 0, pitch: 0, aim: 0 }, () => 10, 1 / 60);
    expect(shaken.camera.rotation.z).not.toBe(0);
  });
});

describe("SideCamera", () => {
  const camera = new ViewCamera().camera;
  const moment: Moment = { ...attractMoment(0), enemies: [] };

  /** A robot that looks along -z. */
  function robotAt(position: Triple): RobotView {
    const [robot] = moment.robots;
    if (robot === undefined) throw new Error("the title has robots");
    return { ...robot, position, yaw: 0 };
  }

  it("sees the robot's face", () => {
    new SideCamera().update(camera, robotAt([0, 0, 0]), moment, castOf(new Solids([])), 1 / 60);
    expect(camera.position.z).toBeLessThan(-1);
    expect(camera.getWorldDirection(new Vector3()).z).toBeGreaterThan(0.2);
  });

  it("stays on the robot's side of a wall", () => {
    const before: Solid = { min: [-10, 0, -2], max: [10, 5, -1] };
    new SideCamera().update(camera, robotAt([0, 0, 0]), moment, castOf(new Solids([before])), 1 / 60);
    expect(camera.position.z).toBeGreaterThan(-1);
    expect(camera.position.length()).toBeGreaterThan(2);
  });

  it("has the opponent in the picture as well", () => {
    const [enemy] = attractMoment(0).enemies;
    if (enemy === undefined) throw new Error("the title has enemies");
    const there = { ...enemy, position: [0, 0, -8] as Triple };
    new SideCamera().update(camera, robotAt([0, 0, 0]), { ...moment, enemies: [there] }, castOf(new Solids([])), 1 / 60);
    camera.updateMatrixWorld();
    for (const place of [new Vector3(0, 1, 0), new Vector3(0, 1, -8)]) {
      const { x, z } = place.project(camera);
      expect(Math.abs(x)).toBeLessThan(0.9);
      expect(z).toBeLessThan(1);
    }
  });

  it("keeps its place while the robot walks, and cuts when a wall comes between", () => {
    const side = new SideCamera();
    const pillar: Solid = { min: [-40, 0, -40], max: [40, 5, -20] };
    const solids = new Solids([pillar]);
    side.update(camera, robotAt([0, 0, 0]), moment, castOf(solids), 1 / 60);
    const offset = camera.position.clone();
    for (let step = 1; step <= 36; step += 1) {
      side.update(camera, robotAt([0, 0, -step / 2]), moment, castOf(solids), 1 / 20);
      if (step === 10) expect(camera.position.clone().sub(new Vector3(0, 0, -5)).distanceTo(offset)).toBeLessThan(0.01);
    }
    expect(camera.position.z).toBeGreaterThan(-20);
    expect(camera.position.distanceTo(new Vector3(0, 1.1, -18))).toBeGreaterThan(2);
  });
});
