// Keyboard, mouse and gamepad: what is held, how far the mouse went, and key presses for whoever is interested. Decides nothing; commands.ts does.

import type { Action } from "../settings.ts";
import { NO_PAD, type Pad } from "./commands.ts";
import type { PadButtons } from "./pad_menu.ts";

export class InputDevices {
  readonly held = new Set<string>();
  /** Called for every key that goes down; `true` means it was used up. */
  onKey: (key: string, event: KeyboardEvent | MouseEvent) => boolean = () => false;
  onLook: (x: number, y: number) => void = () => undefined;
  onWheel: (steps: number) => void = () => undefined;
  /** Called when what is held has changed. */
  onChange: () => void = () => undefined;

  constructor(private readonly canvas: () => HTMLCanvasElement) {
    addEventListener("keydown", (event) => this.keyDown(event));
    addEventListener("keyup", (event) => this.letGo(event.code));
    addEventListener("blur", () => this.held.clear());
    addEventListener("mousedown", (event) => this.mouseDown(event));
    addEventListener("mouseup", (event) => this.letGo(`Mouse${event.button}`));
    addEventListener("mousemove", (event) => {
      if (this.locked) this.onLook(event.movementX, event.movementY);
    });
    addEventListener("wheel", (event) => {
      if (this.locked) this.onWheel(Math.sign(event.deltaY));
    });
    addEventListener("contextmenu", (event) => {
      if (event.target === this.canvas()) event.preventDefault();
    });
  }

  get locked(): boolean {
    return document.pointerLockElement === this.canvas();
  }

  lock(): void {
    if (this.locked) return;
    // Refused without a gesture, or where there is no pointer: the keyboard plays on.
    const asked: unknown = this.canvas().requestPointerLock();
    if (asked instanceof Promise) asked.catch(() => undefined);
  }

  release(): void {
    this.held.clear();
    if (this.locked) document.exitPointerLock();
  }

  pad(): Pad {
    const pad = connectedPad();
    if (pad === undefined) return NO_PAD;
    const held = new Set<Action>();
    for (const [index, action] of PAD_BUTTONS) {
      if (pad.buttons[index]?.pressed === true) held.add(action);
    }
    const axis = (index: number): number => pad.axes[index] ?? 0;
    return { moveX: axis(0), moveY: axis(1), lookX: axis(2), lookY: axis(3), held };
  }

  /** The gamepad as menus read it. */
  padButtons(): PadButtons {
    const pad = connectedPad();
    const down = new Set<number>();
    for (const [index, button] of (pad?.buttons ?? []).entries()) {
      if (button.pressed) down.add(index);
    }
    return { down, stickX: pad?.axes[0] ?? 0, stickY: pad?.axes[1] ?? 0 };
  }

  private keyDown(event: KeyboardEvent): void {
    if (!event.repeat && this.onKey(event.code, event)) {
      event.preventDefault();
      return;
    }
    if (isFor(event.target, event.code)) return;
    this.hold(event.code);
    if (this.locked && event.code !== "F5" && event.code !== "F12") event.preventDefault();
  }

  private mouseDown(event: MouseEvent): void {
    const key = `Mouse${event.button}`;
    if (this.onKey(key, event)) return;
    if (this.locked) this.hold(key);
  }

  private hold(key: string): void {
    if (this.held.has(key)) return;
    this.held.add(key);
    this.onChange();
  }

  private letGo(key: string): void {
    if (this.held.delete(key)) this.onChange();
  }
}

function connectedPad(): Gamepad | undefined {
  return navigator.getGamepads?.().find((found) => found?.connected === true) ?? undefined;
}

/** True if a key belongs to what has the focus: all of them to a line of text, arrows to a slider, Enter and Space to a button. */
function isFor(target: EventTarget | null, key: string): boolean {
  if (target instanceof HTMLButtonElement) return key === "Enter" || key === "Space";
  if (!(target instanceof HTMLInputElement)) return false;
  return target.type !== "range" || key.startsWith("Arrow");
}

/** The standard mapping of browsers: A jumps, triggers aim and fire, X reloads, B uses, the cross chooses weapons. */
const PAD_BUTTONS: readonly (readonly [number, Action])[] = [
  [0, "jump"],
  [1, "use"],
  [2, "reload"],
  [3, "view"],
  [6, "aim"],
  [7, "fire"],
  [8, "scores"],
  [12, "weapon1"],
  [15, "weapon2"],
  [13, "weapon3"],
  [14, "weapon4"],
];
