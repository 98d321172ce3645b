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
    const by = own.by?.find((point, index) => index === (own.by?.length ?? 0) - 1 && target !== undefined && gap(from, target) > gap(point, target) + 2);
    return { text: objective.name, at: by ?? target };
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
      return moment.devices.some((device) => device.index === index && (device.pressed || device.progress > 0.5));
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
