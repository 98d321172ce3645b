// Reading a level's file in the page.

import { describe, expect, it } from "vitest";
import { spawnYaw, toLevel } from "../src/level.ts";

const level = toLevel({
  name: "Test",
  spawns: [{ at: [0, 0, 5] }, { at: [9, 0, 0], yaw: 1.5 }],
  checkpoints: [{ name: "far", area: { min: [0, 0, -50], max: [1, 1, -49] }, spawns: [{ at: [0, 0, -50], yaw: 3 }] }],
});

describe("spawnYaw", () => {
  it("is that of the nearest spawn, a checkpoint's as well", () => {
    expect(spawnYaw(level, [1, 0, 5])).toBe(0);
    expect(spawnYaw(level, [8, 0, 0])).toBe(1.5);
    expect(spawnYaw(level, [0, 0, -49])).toBe(3);
  });

  it("is nothing where nobody appears", () => {
    expect(spawnYaw(level, [30, 0, 0])).toBeUndefined();
  });
});
