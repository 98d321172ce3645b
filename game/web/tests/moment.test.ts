// Frames become moments, and pictures lie between them.

import { describe, expect, it } from "vitest";
import { BALL, DEVICE, EFFECT, HEADER, NET, ROBOT, ROUND } from "../src/frame.ts";
import { between, Moments, readMoment } from "../src/moment.ts";
import { makeFrame } from "./support.ts";

const robot = (id: number, x: number, yaw = 0): Record<number, number> => ({ [ROBOT.ID]: id, [ROBOT.X]: x, [ROBOT.YAW]: yaw, [ROBOT.ALIVE]: 1, [ROBOT.HEALTH]: 80 });
const at = (timeMs: number, x: number): ReturnType<typeof readMoment> => readMoment(makeFrame({ robots: [robot(1, x)] }, { [HEADER.TIME_MS]: timeMs, [HEADER.OWN_RECORD]: 0 }));

describe("readMoment", () => {
  it("reads every section by its fields", () => {
    const frame = makeFrame(
      {
        robots: [{ ...robot(7, 1.5), [ROBOT.SLOT]: 1, [ROBOT.MAGAZINE_3]: 6, [ROBOT.OWN]: 1 }, robot(8, 2)],
        devices: [{ [DEVICE.INDEX]: 3, [DEVICE.PROGRESS]: 50, [DEVICE.PRESSED]: 1, [DEVICE.HOLDER]: -1 }],
        round: [{ [ROUND.MODE]: 1, [ROUND.POINTS + 2]: 300, [ROUND.WEAK_POINT_2]: 12, [ROUND.GOALS_2]: 3 }],
        balls: [{ [BALL.ID]: 9, [BALL.X]: 2.5, [BALL.VZ]: -4, [BALL.TOUCHED]: -1, [BALL.KICKABLE]: 1 }],
        net: [{ [NET.RTT_MS]: 44, [NET.LOSS]: 0.25 }],
      },
      { [HEADER.TICK]: 100, [HEADER.TICK_FRACTION]: 0.5, [HEADER.OWN_RECORD]: 0 },
    );
    const moment = readMoment(frame);
    expect(moment.tick).toBe(100.5);
    expect(moment.robots).toHaveLength(2);
    expect(moment.own).toMatchObject({ entity: 7, slot: 1, own: true, position: [1.5, 0, 0], magazines: [0, 0, 6, 0] });
    expect(moment.devices[0]).toMatchObject({ index: 3, progress: 0.5, pressed: true, holder: -1 });
    expect(moment.round.points[2]).toBe(300);
    expect(moment.round.weakPoints).toEqual([0, 12]);
    expect(moment.round.goals).toEqual([0, 3]);
    expect(moment.balls).toEqual([{ entity: 9, position: [2.5, 0, 0], velocity: [0, 0, -4], touched: -1, restartTicks: 0, kickable: true }]);
    expect(moment.net).toMatchObject({ rttMs: 44, loss: 0.25 });
  });

  it("has no own robot before there is one, and zeros before the round is known", () => {
    const moment = readMoment(makeFrame({}));
    expect(moment.own).toBeUndefined();
    expect(moment.round.phase).toBe(0);
  });
});

describe("between", () => {
  it("moves what both know, along the shorter way for angles", () => {
    const before = readMoment(makeFrame({ robots: [robot(1, 0, 3.1)] }, { [HEADER.OWN_RECORD]: 0 }));
    const after = readMoment(makeFrame({ robots: [robot(1, 1, -3.1)] }, { [HEADER.OWN_RECORD]: 0 }));
    const half = between(before, after, 0.5);
    expect(half.own?.position[0]).toBeCloseTo(0.5);
    expect(Math.abs(half.own?.yaw ?? 0)).toBeCloseTo(Math.PI, 2);
  });

  it("does not slide somebody who came back elsewhere", () => {
    const before = readMoment(makeFrame({ robots: [robot(1, 0)] }));
    const after = readMoment(makeFrame({ robots: [robot(1, 30)] }));
    expect(between(before, after, 0.5).robots[0]?.position[0]).toBe(30);
  });
});

describe("Moments", () => {
  it("shows the time between the last two frames", () => {
    const moments = new Moments();
    moments.take(at(1000, 0), 5000);
    moments.take(at(1016, 1), 5016);
    moments.take(at(1032, 2), 5032);
    expect(moments.at(5040)?.own?.position[0]).toBeCloseTo(1.5, 1);
    expect(moments.at(5100)?.own?.position[0]).toBe(2);
  });

  it("cuts to another time of a recording without sliding there", () => {
    const door = (timeMs: number, tick: number, progress: number): ReturnType<typeof readMoment> =>
      readMoment(makeFrame({ devices: [{ [DEVICE.INDEX]: 3, [DEVICE.PROGRESS]: progress }] }, { [HEADER.TIME_MS]: timeMs, [HEADER.TICK]: tick }));
    const moments = new Moments();
    moments.take(door(1000, 100, 0), 5000);
    moments.take(door(1016, 2600, 100), 5016);
    expect(moments.at(5016)?.devices[0]?.progress).toBe(1);
    moments.take(door(1032, 2601, 0), 5032);
    expect(moments.at(5040)?.devices[0]?.progress).toBeCloseTo(0.5, 1);
    moments.take(door(1048, 100, 100), 5048);
    expect(moments.at(5048)?.devices[0]?.progress).toBe(1);
  });

  it("is not thrown by a late message", () => {
    const moments = new Moments();
    moments.take(at(1000, 0), 5000);
    moments.take(at(1016, 1), 5016);
    moments.take(at(1032, 2), 5045);
    expect(moments.at(5046)?.own?.position[0]).toBeGreaterThan(1.8);
  });

  it("starts over when the Worker's clock does", () => {
    const moments = new Moments();
    moments.take(at(9000, 4), 5000);
    moments.take(at(10, 1), 5016);
    expect(moments.at(5020)?.own?.position[0]).toBe(1);
  });

  it("gives every effect once", () => {
    const moments = new Moments();
    const withEffect = readMoment(makeFrame({ effects: [{ [EFFECT.KIND]: 1 }] }));
    moments.take(withEffect, 5000);
    moments.take(at(16, 0), 5016);
    expect(moments.drainEffects()).toHaveLength(1);
    expect(moments.drainEffects()).toHaveLength(0);
  });
});
