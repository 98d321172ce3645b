// The gamepad in menus.

import { describe, expect, it } from "vitest";
import { type PadButtons, PadMenu } from "../src/input/pad_menu.ts";

const pad = (down: number[], stickX = 0, stickY = 0): PadButtons => ({ down: new Set(down), stickX, stickY });

describe("PadMenu", () => {
  it("tells a press once, however long the button is held", () => {
    const menu = new PadMenu();
    expect(menu.poll(pad([0]), 0)).toEqual(["Enter"]);
    expect(menu.poll(pad([0]), 5000)).toEqual([]);
    expect(menu.poll(pad([]), 5010)).toEqual([]);
    expect(menu.poll(pad([0, 1]), 5020)).toEqual(["Enter", "Escape"]);
  });

  it("repeats a direction that is held, after a while", () => {
    const menu = new PadMenu();
    expect(menu.poll(pad([13]), 0)).toEqual(["ArrowDown"]);
    expect(menu.poll(pad([13]), 300)).toEqual([]);
    expect(menu.poll(pad([13]), 410)).toEqual(["ArrowDown"]);
    expect(menu.poll(pad([13]), 450)).toEqual([]);
    expect(menu.poll(pad([13]), 540)).toEqual(["ArrowDown"]);
  });

  it("takes the stick as well, but not its trembling", () => {
    const menu = new PadMenu();
    expect(menu.poll(pad([], 0.3, -0.3), 0)).toEqual([]);
    expect(menu.poll(pad([], -0.9, 0), 10)).toEqual(["ArrowLeft"]);
    expect(menu.poll(pad([], 0, 0.9), 20)).toEqual(["ArrowDown"]);
  });

  it("knows Start", () => {
    expect(new PadMenu().poll(pad([9]), 0)).toEqual(["Start"]);
  });
});
