// Settings of a player that the browser remembers: keys, sensitivity, quality, shake, volume, name. Anything unreadable in the store
// falls back to the default, field by field, so that an old or damaged entry never keeps anyone out.

export type Quality = "low" | "medium" | "high";
export type Action =
  | "forward"
  | "backward"
  | "left"
  | "right"
  | "jump"
  | "fire"
  | "aim"
  | "reload"
  | "use"
  | "weapon1"
  | "weapon2"
  | "weapon3"
  | "weapon4"
  | "view"
  | "chat"
  | "scores";

export interface Settings {
  name: string;
  /** Stands for the account on this device; made once, sent to the master alone. */
  deviceKey: string;
  sensitivity: number;
  quality: Quality;
  shake: boolean;
  volume: number;
  invertPitch: boolean;
  keys: Record<Action, string>;
}

export const ACTIONS: readonly { action: Action; label: string }[] = [
  { action: "forward", label: "Forward" },
  { action: "backward", label: "Backward" },
  { action: "left", label: "Left" },
  { action: "right", label: "Right" },
  { action: "jump", label: "Jump" },
  { action: "fire", label: "Fire" },
  { action: "aim", label: "Aim" },
  { action: "reload", label: "Reload" },
  { action: "use", label: "Use" },
  { action: "weapon1", label: "Blaster" },
  { action: "weapon2", label: "Launcher" },
  { action: "weapon3", label: "Scatter" },
  { action: "weapon4", label: "Rail" },
  { action: "view", label: "View" },
  { action: "chat", label: "Chat" },
  { action: "scores", label: "Scoreboard" },
];

export const DEFAULT_KEYS: Record<Action, string> = {
  forward: "KeyW",
  backward: "KeyS",
  left: "KeyA",
  right: "KeyD",
  jump: "Space",
  fire: "Mouse0",
  aim: "Mouse2",
  reload: "KeyR",
  use: "KeyE",
  weapon1: "Digit1",
  weapon2: "Digit2",
  weapon3: "Digit3",
  weapon4: "Digit4",
  view: "KeyV",
  chat: "Enter",
  scores: "Tab",
};

/** The part of `localStorage` that is needed, so that tests bring their own. */
export interface Store {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

export function defaultSettings(): Settings {
  return {
    name: "",
    deviceKey: randomKey(),
    sensitivity: 1,
    quality: "medium",
    shake: true,
    volume: 0.7,
    invertPitch: false,
    keys: { ...DEFAULT_KEYS },
  };
}

/** `suitable` is asked for the quality when none was chosen yet. */
export function loadSettings(store: Store, suitable: () => Quality = () => "medium"): Settings {
  const settings = defaultSettings();
  const stored = parse(store.getItem(STORE_KEY));
  if (typeof stored.name === "string") settings.name = stored.name.slice(0, NAME_LENGTH_MAX);
  if (typeof stored.deviceKey === "string" && /^[0-9a-f]{64}$/.test(stored.deviceKey)) settings.deviceKey = stored.deviceKey;
  if (typeof stored.sensitivity === "number") settings.sensitivity = clamp(stored.sensitivity, 0.1, 5);
  settings.quality = isQuality(stored.quality) ? stored.quality : suitable();
  if (typeof stored.shake === "boolean") settings.shake = stored.shake;
  if (typeof stored.volume === "number") settings.volume = clamp(stored.volume, 0, 1);
  if (typeof stored.invertPitch === "boolean") settings.invertPitch = stored.invertPitch;
  const keys = isRecord(stored.keys) ? stored.keys : {};
  for (const { action } of ACTIONS) {
    const key = keys[action];
    if (typeof key === "string" && key.length < 32) settings.keys[action] = key;
  }
  saveSettings(store, settings);
  return settings;
}

export function saveSettings(store: Store, settings: Settings): void {
  store.setItem(STORE_KEY, JSON.stringify(settings));
}

/** Gives `action` a key; the action that had it gets the old one, so that no action is ever without a key. */
export function rebind(settings: Settings, action: Action, key: string): void {
  const previous = settings.keys[action];
  for (const other of ACTIONS) {
    if (settings.keys[other.action] === key) settings.keys[other.action] = previous;
  }
  settings.keys[action] = key;
}

/** Name of a key as it is written on the screen. */
export function keyLabel(key: string): string {
  const mouse = ["Left button", "Middle button", "Right button"];
  if (key.startsWith("Mouse")) return mouse[Number(key.slice(5))] ?? `Button ${key.slice(5)}`;
  return key.replace(/^Key|^Digit/, "").replace(/^Arrow/, "Arrow ");
}

function parse(text: string | null): Record<string, unknown> {
  if (text === null) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isQuality(value: unknown): value is Quality {
  return value === "low" || value === "medium" || value === "high";
}

function clamp(value: number, low: number, high: number): number {
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : low;
}

function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const STORE_KEY = "biobot.settings";
export const NAME_LENGTH_MAX = 24;
