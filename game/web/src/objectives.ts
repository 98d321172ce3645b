// Which of the level's objectives is next, worked out from what the page sees: for the hint on the screen and the mark in the world.

import { contains, devicePlace, type Level, type Objective } from "./level.ts";
import type { Moment, Triple } from "./model.ts";
import { Phase } from "./model.ts";

export interface Hint {
  text: string;
  at: Triple | undefined;
}

export class Objectives {
  private current = 0;
  /** Points on the way to the current task that the own robot has passed. */
  private passed = 0;
  private readonly deviceIndex: Map<string, number>;

  constructor(private readonly level: Level) {
    this.deviceIndex = new Map(level.devices.map((device, index) => [device.id, index]));
  }

  /** An objective that is done stays done, and so do all before it. */
  update(moment: Moment): void {
    for (let index = this.level.objectives.length - 1; index >= this.current; index -= 1) {
      const objective = this.level.objectives[index];
      if (objective !== undefined && this.done(objective, moment)) {
        this.current = index + 1;
        this.passed = 0;
        return;
      }
    }
  }

  hint(slot: number, from: Triple): Hint | undefined {
    const objective = this.level.objectives[this.current];
    if (objective === undefined) return undefined;
    const own = objective.tasks.find((task) => task.slot === slot) ?? objective.tasks.find((task) => task.slot === undefined || task.slot === null);
    if (own === undefined) return { text: objective.name, at: undefined };
    const { go, use, hold, stand, take, fight } = own.act;
    const device = (use ?? hold ?? stand ?? take)?.device;
    const target = go?.at ?? fight?.at ?? this.placeOf(device);
    return { text: objective.name, at: this.nextOnTheWay(own.by ?? [], from) ?? target };
  }

  /** The points of the way come one after the other; whoever is at a later one has passed those before. */
  private nextOnTheWay(way: readonly Triple[], from: Triple): Triple | undefined {
    for (let index = way.length - 1; index >= this.passed; index -= 1) {
      const point = way[index];
      if (point !== undefined && gap(from, point) < NEAR_METRES) {
        this.passed = index + 1;
        break;
      }
    }
    return way[this.passed];
  }

  private placeOf(id: string | undefined): Triple | undefined {
    const device = this.level.devices[this.deviceIndex.get(id ?? "") ?? -1];
    return device && devicePlace(device);
  }

  private done(objective: Objective, moment: Moment): boolean {
    const { until } = objective;
    if (until === "over") return moment.round.phase >= Phase.Won;
    const robots = moment.robots.filter((robot) => robot.alive);
    if (until.active !== undefined) {
      const index = this.deviceIndex.get(until.active.device);
      return moment.devices.some((device) => device.index === index && device.pressed);
    }
    if (until.checkpoint !== undefined) return moment.round.checkpoint >= until.checkpoint.number;
    const all = until.all_in?.area;
    if (all !== undefined) return robots.length > 0 && robots.every((robot) => contains(all, robot.position));
    const any = until.any_in?.area;
    return any !== undefined && robots.some((robot) => contains(any, robot.position));
  }
}

function gap(from: Triple, to: Triple): number {
  return Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
}

const NEAR_METRES = 2;
