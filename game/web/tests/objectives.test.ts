// The hint follows the match, and never goes back.

import { describe, expect, it } from "vitest";
import { DEVICE, HEADER, ROBOT } from "../src/frame.ts";
import { type Level, toLevel } from "../src/level.ts";
import { readMoment } from "../src/moment.ts";
import { Objectives } from "../src/objectives.ts";
import { makeFrame } from "./support.ts";

const level: Level = toLevel({
  name: "Test",
  devices: [
    { id: "lever", what: { lever: { at: [5, 1, 0] } } },
    { id: "plate", what: { plate: { area: { min: [0, 0, 0], max: [2, 1, 2] } } } },
  ],
  objectives: [
    { name: "Pull the lever", tasks: [{ slot: 0, act: { use: { device: "lever" } } }, { slot: 1, act: { stand: { device: "plate" } } }], until: { active: { device: "lever" } } },
    { name: "Go through", tasks: [{ act: { go: { at: [9, 0, 0] } } }], until: { all_in: { area: { min: [8, -1, -1], max: [10, 2, 1] } } } },
  ],
});

function moment(pressed: boolean, x: number): ReturnType<typeof readMoment> {
  return readMoment(makeFrame({ robots: [{ [ROBOT.X]: x, [ROBOT.ALIVE]: 1 }], devices: [{ [DEVICE.INDEX]: 0, [DEVICE.PRESSED]: pressed ? 1 : 0 }] }, { [HEADER.OWN_RECORD]: 0 }));
}

describe("Objectives", () => {
  it("gives each robot its own task", () => {
    const objectives = new Objectives(level);
    expect(objectives.hint(0, [0, 0, 0])).toEqual({ text: "Pull the lever", at: [5, 1, 0] });
    expect(objectives.hint(1, [0, 0, 0])).toEqual({ text: "Pull the lever", at: [1, 0.5, 1] });
  });

  it("goes on when something is done, stays there, and ends", () => {
    const objectives = new Objectives(level);
    objectives.update(moment(true, 0));
    expect(objectives.hint(0, [0, 0, 0])?.text).toBe("Go through");
    objectives.update(moment(false, 0));
    expect(objectives.hint(0, [0, 0, 0])?.text).toBe("Go through");
    objectives.update(moment(false, 9));
    expect(objectives.hint(0, [0, 0, 0])).toBeUndefined();
  });

  it("skips what was done before one came", () => {
    const objectives = new Objectives(level);
    objectives.update(moment(false, 9));
    expect(objectives.hint(0, [0, 0, 0])).toBeUndefined();
  });
});
