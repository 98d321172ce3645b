// A level's file as the page reads it; `game/biobot/src/level.rs` says what everything means and has checked it before it gets here.

import type { Triple } from "./model.ts";
import type { Level as AnyLevel } from "./protocol.ts";

export type Side = "+x" | "-x" | "+z" | "-z";

export interface Solid {
  min: Triple;
  max: Triple;
  rise?: Side;
  material?: string;
}

export interface Area {
  min: Triple;
  max: Triple;
}

export interface Spawn {
  at: Triple;
  yaw?: number;
}

export interface Checkpoint {
  name: string;
  area: Area;
  spawns: Spawn[];
}

export interface Needs {
  of: string[];
  any?: boolean;
  within?: number;
  latch?: boolean;
}

export interface Slider {
  min: Triple;
  max: Triple;
  ticks: number;
  needs: Needs;
}

/** Exactly one of them is there. */
export interface DeviceKind {
  lever?: { at: Triple };
  button?: { at: Triple };
  hold?: { at: Triple };
  plate?: { area: Area };
  cleared?: { group: string };
  door?: Slider & { slide: Triple };
  lift?: Slider & { travel: Triple };
  platform?: { min: Triple; max: Triple };
  pickup?: { at: Triple; weapon: number };
}

export interface DeviceSpec {
  id: string;
  only?: number;
  what: DeviceKind;
}

export interface Act {
  go?: { at: Triple };
  use?: { device: string };
  hold?: { device: string };
  stand?: { device: string };
  take?: { device: string };
  fight?: { group: string; at: Triple };
}

export interface Task {
  slot?: number | null;
  by?: Triple[];
  act: Act;
}

export type Until =
  | "over"
  | { active?: { device: string }; all_in?: { area: Area }; any_in?: { area: Area }; checkpoint?: { number: number } };

export interface Objective {
  name: string;
  tasks: Task[];
  until: Until;
}

export interface Boss {
  at: Triple;
  arena: Area;
  weak_points: [Triple, Triple];
}

export interface Goal {
  /** The team that defends it. */
  team: 0 | 1;
  area: Area;
}

export interface Level {
  name: string;
  mode: string;
  kill_below: number;
  solids: Solid[];
  spawns: Spawn[];
  checkpoints: Checkpoint[];
  devices: DeviceSpec[];
  boss?: Boss | null;
  exit?: Area | null;
  goals: Goal[];
  objectives: Objective[];
}

/** Fills in what a file may leave out. */
export function toLevel(file: AnyLevel): Level {
  const level = file as unknown as Partial<Level>;
  return {
    name: file.name,
    mode: level.mode ?? "cooperative",
    kill_below: level.kill_below ?? -20,
    solids: level.solids ?? [],
    spawns: level.spawns ?? [],
    checkpoints: level.checkpoints ?? [],
    devices: level.devices ?? [],
    boss: level.boss ?? null,
    exit: level.exit ?? null,
    goals: level.goals ?? [],
    objectives: level.objectives ?? [],
  };
}

/** The middle of a device, where it rests. */
export function devicePlace(device: DeviceSpec): Triple {
  const { lever, button, hold, pickup, plate, door, lift, platform } = device.what;
  const point = lever ?? button ?? hold ?? pickup;
  if (point !== undefined) return point.at;
  const box = plate?.area ?? door ?? lift ?? platform;
  return box === undefined ? [0, 0, 0] : middle(box);
}

/** Yaw of a robot that appears here; undefined where none does. */
export function spawnYaw(level: Level, place: Triple): number | undefined {
  const spawns = [...level.spawns, ...level.checkpoints.flatMap((checkpoint) => checkpoint.spawns)];
  const far = ({ at }: Spawn): number => Math.hypot(at[0] - place[0], at[1] - place[1], at[2] - place[2]);
  const [nearest] = spawns.sort((one, other) => far(one) - far(other));
  return nearest !== undefined && far(nearest) < SPAWN_METRES ? (nearest.yaw ?? 0) : undefined;
}

export function middle(area: Area): Triple {
  return [(area.min[0] + area.max[0]) / 2, (area.min[1] + area.max[1]) / 2, (area.min[2] + area.max[2]) / 2];
}

export function size(area: Area): Triple {
  return [area.max[0] - area.min[0], area.max[1] - area.min[1], area.max[2] - area.min[2]];
}

export function contains(area: Area, point: Triple): boolean {
  return point.every((value, axis) => value >= (area.min[axis] ?? 0) && value <= (area.max[axis] ?? 0));
}

/** As far as one gets before the first picture. */
const SPAWN_METRES = 3;
