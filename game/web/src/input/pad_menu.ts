// A gamepad in menus: the cross and the left stick move, A takes, B goes back, Start opens and closes the pause menu. Pure: buttons and time in, keys out.

export interface PadButtons {
  /** Indices of the browsers' standard mapping that are down. */
  down: ReadonlySet<number>;
  stickX: number;
  stickY: number;
}

export type MenuKey = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight" | "Enter" | "Escape" | "Start";

export class PadMenu {
  private readonly since = new Map<MenuKey, number>();
  private readonly repeated = new Map<MenuKey, number>();

  /** Keys pressed since the last call; a direction that is held repeats. */
  poll(pad: PadButtons, nowMs: number): MenuKey[] {
    const keys: MenuKey[] = [];
    for (const key of ALL) {
      if (!isDown(key, pad)) {
        this.since.delete(key);
        continue;
      }
      const since = this.since.get(key);
      if (since === undefined) {
        this.since.set(key, nowMs);
        this.repeated.set(key, nowMs + REPEAT_FIRST_MS);
        keys.push(key);
      } else if (key.startsWith("Arrow") && nowMs >= (this.repeated.get(key) ?? 0)) {
        this.repeated.set(key, nowMs + REPEAT_MS);
        keys.push(key);
      }
    }
    return keys;
  }
}

function isDown(key: MenuKey, { down, stickX, stickY }: PadButtons): boolean {
  if (down.has(BUTTONS[key])) return true;
  switch (key) {
    case "ArrowUp":
      return stickY < -STICK;
    case "ArrowDown":
      return stickY > STICK;
    case "ArrowLeft":
      return stickX < -STICK;
    case "ArrowRight":
      return stickX > STICK;
    default:
      return false;
  }
}

const ALL: readonly MenuKey[] = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Enter", "Escape", "Start"];
const BUTTONS: Record<MenuKey, number> = { ArrowUp: 12, ArrowDown: 13, ArrowLeft: 14, ArrowRight: 15, Enter: 0, Escape: 1, Start: 9 };
const STICK = 0.6;
const REPEAT_FIRST_MS = 400;
const REPEAT_MS = 120;
