// From what is held down to what the robot is told: pure, so that a test can try every key. Keyboard, mouse and gamepad end here alike.

import type { Input } from "../protocol.ts";
import type { Action, Settings } from "../settings.ts";

/** Direction in which the player looks. */
export interface Look {
  yaw: number;
  pitch: number;
}

/** The gamepad, as far as the game reads it; axes from -1 to 1. */
export interface Pad {
  moveX: number;
  moveY: number;
  lookX: number;
  lookY: number;
  held: ReadonlySet<Action>;
}

export const NO_PAD: Pad = { moveX: 0, moveY: 0, lookX: 0, lookY: 0, held: new Set() };

/** Which actions the held keys stand for. */
export function actionsHeld(settings: Settings, keys: ReadonlySet<string>): Set<Action> {
  const held = new Set<Action>();
  for (const [action, key] of Object.entries(settings.keys)) {
    if (keys.has(key)) held.add(action as Action);
  }
  return held;
}

/** The command of one picture. */
export function toInput(held: ReadonlySet<Action>, pad: Pad, look: Look): Input {
  const has = (action: Action): boolean => held.has(action) || pad.held.has(action);
  const axis = (more: Action, less: Action, stick: number): -1 | 0 | 1 => {
    const keys = (has(more) ? 1 : 0) - (has(less) ? 1 : 0);
    const sum = keys + (Math.abs(stick) > STICK_THRESHOLD ? Math.sign(stick) : 0);
    return sum > 0 ? 1 : sum < 0 ? -1 : 0;
  };
  return {
    kind: "input",
    forward: axis("forward", "backward", -pad.moveY),
    right: axis("right", "left", pad.moveX),
    jump: has("jump"),
    fire: has("fire"),
    aim: has("aim"),
    reload: has("reload"),
    use: has("use"),
    weapon: weaponAsked(has),
    yaw: look.yaw,
    pitch: look.pitch,
  };
}

/** Turns the look by a mouse movement in pixels. */
export function turnByMouse(look: Look, settings: Settings, x: number, y: number, aim: number): void {
  const scale = 0.0022 * settings.sensitivity * (1 - aim * 0.45);
  turn(look, -x * scale, -y * scale * (settings.invertPitch ? -1 : 1));
}

/** Turns the look by a stick; finer near the middle. */
export function turnByStick(look: Look, settings: Settings, pad: Pad, seconds: number): void {
  const curve = (value: number): number => (Math.abs(value) < STICK_DEAD ? 0 : value * Math.abs(value));
  const scale = 3.4 * settings.sensitivity * seconds;
  turn(look, -curve(pad.lookX) * scale, -curve(pad.lookY) * scale * 0.7 * (settings.invertPitch ? -1 : 1));
}

/** Arrow keys turn as well, so that the game can be played without a mouse. */
export function turnByKeys(look: Look, keys: ReadonlySet<string>, seconds: number): void {
  const side = (keys.has("ArrowLeft") ? 1 : 0) - (keys.has("ArrowRight") ? 1 : 0);
  const up = (keys.has("ArrowUp") ? 1 : 0) - (keys.has("ArrowDown") ? 1 : 0);
  turn(look, side * 2.2 * seconds, up * 1.4 * seconds);
}

function turn(look: Look, yaw: number, pitch: number): void {
  const full = 2 * Math.PI;
  look.yaw = ((((look.yaw + yaw + Math.PI) % full) + full) % full) - Math.PI;
  look.pitch = Math.max(-PITCH_MAX, Math.min(PITCH_MAX, look.pitch + pitch));
}

function weaponAsked(has: (action: Action) => boolean): Input["weapon"] {
  if (has("weapon1")) return 1;
  if (has("weapon2")) return 2;
  if (has("weapon3")) return 3;
  return has("weapon4") ? 4 : 0;
}

export const PITCH_MAX = 1.54;
const STICK_THRESHOLD = 0.35;
const STICK_DEAD = 0.12;
