// `window.biobot`: what a test may look at, and the little it may do. Documented in docs/game.md; nothing in the game reads it.

import type { App } from "./app.ts";
import { Mode, Phase, Species, Stance, type Triple } from "./model.ts";

export interface Diagnostics {
  /** Name of the screen: title, home, play, friends, practice, watch, ranking, settings, queue, loading, game, result. */
  readonly screen: string;
  readonly account: number | undefined;
  readonly online: boolean;
  readonly room: string | undefined;
  /** Milliseconds from the navigation to the first picture, once there is one. */
  readonly firstPictureMs: number | undefined;
  /** The match as it is drawn, or undefined outside of one. */
  readonly match: MatchDiagnostics | undefined;
  /** Turns the own view, where there is no mouse. */
  look(yaw: number, pitch: number): void;
}

export interface MatchDiagnostics {
  mode: string;
  phase: string;
  tick: number;
  view: string;
  slot: number;
  names: string[];
  position: Triple | undefined;
  /** The own robot in the newest frame, which a picture may lag behind. */
  newest: { position: Triple; velocity: Triple; standing: number; cooldownTicks: number; reloadTicks: number } | undefined;
  yaw: number;
  health: number | undefined;
  alive: boolean;
  weapon: number | undefined;
  magazine: number | undefined;
  others: { slot: number; name: string; position: Triple; health: number; alive: boolean; absent: boolean }[];
  enemies: { entity: number; species: string; stance: string; position: Triple; health: number; dead: boolean }[];
  devices: { id: string; pressed: boolean; progress: number }[];
  /** Doors by name: 0 shut, 1 open. */
  doors: Record<string, number>;
  checkpoint: number;
  points: number[];
  kills: number[];
  /** Goals by team, and the ball; none outside of mode Ball. */
  goals: [number, number];
  ball: { position: Triple; velocity: Triple; touched: number; inPlay: boolean; kickable: boolean } | undefined;
  chat: { slot: number; text: string }[];
  interrupted: boolean;
  /** The numbers of the net graph. */
  net: Record<string, number>;
}

declare global {
  interface Window {
    biobot: Diagnostics;
  }
}

export function publish(app: App): void {
  window.biobot = {
    get screen() {
      return app.screens.current;
    },
    get account() {
      return app.account;
    },
    get online() {
      return app.masterStatus.online;
    },
    get room() {
      return app.room;
    },
    get firstPictureMs() {
      return app.firstPictureMs;
    },
    get match() {
      return describe(app);
    },
    look(yaw, pitch) {
      if (app.game === undefined) return;
      Object.assign(app.game.look, { yaw, pitch });
      app.game.heldChanged();
    },
  };
}

function describe({ game }: App): MatchDiagnostics | undefined {
  const moment = game?.seen;
  if (game === undefined || moment === undefined) return undefined;
  const { own, round } = moment;
  const [ball] = moment.balls;
  const newest = game.newest?.own;
  const devices = moment.devices.map((view) => ({ id: game.level.devices[view.index]?.id ?? "", pressed: view.pressed, progress: view.progress, door: game.level.devices[view.index]?.what.door !== undefined }));
  return {
    mode: Mode[round.mode] ?? "",
    phase: Phase[round.phase] ?? "",
    tick: moment.tick,
    view: game.view,
    slot: game.watching ? (own?.slot ?? game.slot) : game.slot,
    names: game.names,
    position: own?.position,
    newest: newest && { position: newest.position, velocity: newest.velocity, standing: newest.standing, cooldownTicks: newest.cooldownTicks, reloadTicks: newest.reloadTicks },
    yaw: game.look.yaw,
    health: own?.health,
    alive: own?.alive ?? false,
    weapon: own?.weapon,
    magazine: own === undefined ? undefined : own.magazines[own.weapon - 1],
    others: moment.robots.filter((robot) => !robot.own).map((robot) => ({ slot: robot.slot, name: game.names[robot.slot] ?? "", position: robot.position, health: robot.health, alive: robot.alive, absent: robot.absent })),
    enemies: moment.enemies.map((enemy) => ({ entity: enemy.entity, species: Species[enemy.species] ?? "", stance: Stance[enemy.stance] ?? "", position: enemy.position, health: enemy.health, dead: enemy.stance === Stance.Dead })),
    devices: devices.map(({ id, pressed, progress }) => ({ id, pressed, progress })),
    doors: Object.fromEntries(devices.filter((device) => device.door).map((device) => [device.id, device.progress])),
    checkpoint: round.checkpoint,
    points: round.points,
    kills: round.kills,
    goals: round.goals,
    ball: ball && { position: ball.position, velocity: ball.velocity, touched: ball.touched, inPlay: ball.restartTicks === 0, kickable: ball.kickable },
    chat: game.chat.log,
    interrupted: moment.interrupted,
    net: { ...moment.net },
  };
}
