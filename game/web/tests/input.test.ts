// Keys, mouse and gamepad become commands.

import { describe, expect, it } from "vitest";
import { actionsHeld, NO_PAD, PITCH_MAX, toInput, turnByKeys, turnByMouse, turnByStick } from "../src/input/commands.ts";
import { isSoftware } from "../src/render/quality.ts";
import { defaultSettings, loadSettings, rebind, saveSettings, type Store } from "../src/settings.ts";

const settings = defaultSettings();
const command = (...keys: string[]): ReturnType<typeof toInput> => toInput(actionsHeld(settings, new Set(keys)), NO_PAD, { yaw: 0.5, pitch: -0.2 });

function memory(): Store {
  const kept = new Map<string, string>();
  return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value) };
}

describe("toInput", () => {
  it("walks, and stands still when opposite keys are held", () => {
    expect(command("KeyW", "KeyD")).toMatchObject({ forward: 1, right: 1, yaw: 0.5, pitch: -0.2 });
    expect(command("KeyW", "KeyS").forward).toBe(0);
    expect(command("KeyA").right).toBe(-1);
  });

  it("fires, aims, uses and changes weapons", () => {
    expect(command("Mouse0", "Mouse2", "KeyE", "Digit3", "Space", "KeyR")).toMatchObject({ fire: true, aim: true, use: true, weapon: 3, jump: true, reload: true });
    expect(command()).toMatchObject({ fire: false, weapon: 0 });
  });

  it("takes the sticks of a gamepad", () => {
    const pad = { ...NO_PAD, moveX: 0.9, moveY: -0.8, held: new Set(["fire"] as const) };
    expect(toInput(new Set(), pad, { yaw: 0, pitch: 0 })).toMatchObject({ forward: 1, right: 1, fire: true });
    expect(toInput(new Set(), { ...NO_PAD, moveX: 0.2 }, { yaw: 0, pitch: 0 }).right).toBe(0);
  });
});

describe("looking", () => {
  it("turns right with the mouse going right, up with it going up", () => {
    const look = { yaw: 0, pitch: 0 };
    turnByMouse(look, settings, 100, -100, 0);
    expect(look.yaw).toBeLessThan(0);
    expect(look.pitch).toBeGreaterThan(0);
  });

  it("never looks past straight up, and keeps the yaw within a turn", () => {
    const look = { yaw: 3, pitch: 0 };
    for (let step = 0; step < 100; step += 1) turnByMouse(look, settings, -100, -100, 0);
    expect(look.pitch).toBe(PITCH_MAX);
    expect(Math.abs(look.yaw)).toBeLessThanOrEqual(Math.PI);
  });

  it("is slower along the sights and can be inverted", () => {
    const hip = { yaw: 0, pitch: 0 };
    const sights = { yaw: 0, pitch: 0 };
    turnByMouse(hip, settings, 50, 50, 0);
    turnByMouse(sights, { ...settings, invertPitch: true }, 50, 50, 1);
    expect(Math.abs(sights.yaw)).toBeLessThan(Math.abs(hip.yaw));
    expect(Math.sign(sights.pitch)).toBe(-Math.sign(hip.pitch));
  });

  it("works with sticks and arrow keys", () => {
    const look = { yaw: 0, pitch: 0 };
    turnByStick(look, settings, { ...NO_PAD, lookX: -1 }, 0.1);
    turnByKeys(look, new Set(["ArrowLeft"]), 0.1);
    expect(look.yaw).toBeGreaterThan(0.5);
  });
});

describe("settings", () => {
  it("come back as they were saved", () => {
    const store = memory();
    const saved = defaultSettings();
    saved.quality = "high";
    rebind(saved, "jump", "KeyJ");
    saveSettings(store, saved);
    expect(loadSettings(store)).toEqual(saved);
  });

  it("fall back field by field", () => {
    const store = memory();
    store.setItem("biobot.settings", '{"volume":"loud","sensitivity":99,"keys":{"jump":7},"quality":"ultra"}');
    expect(loadSettings(store)).toMatchObject({ volume: 0.7, sensitivity: 5, quality: "medium", keys: { jump: "Space" } });
    store.setItem("biobot.settings", "{");
    expect(loadSettings(store).volume).toBe(0.7);
  });

  it("take a quality that suits the machine until one is chosen", () => {
    const store = memory();
    expect(loadSettings(store, () => "low").quality).toBe("low");
    expect(loadSettings(store, () => "high").quality).toBe("low");
    expect(isSoftware("ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device), SwiftShader driver)")).toBe(true);
    expect(isSoftware("ANGLE (Intel, Mesa Intel(R) Iris(R) Xe Graphics)")).toBe(false);
  });

  it("never leave an action without a key", () => {
    const changed = defaultSettings();
    rebind(changed, "jump", "KeyW");
    expect(changed.keys).toMatchObject({ jump: "KeyW", forward: "Space" });
  });
});
