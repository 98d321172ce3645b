// One match on the page, from the welcome to the end: input to the Worker, frames from it, picture, sounds and the display over it.

import { Frame } from "./frame.ts";
import { actionsHeld, type Look, toInput, turnByKeys, turnByMouse, turnByStick } from "./input/commands.ts";
import type { InputDevices } from "./input/devices.ts";
import { devicePlace, type Level, spawnYaw } from "./level.ts";
import type { Link } from "./link.ts";
import type { DeviceView, Moment, RobotView, Triple } from "./model.ts";
import { Moments, readMoment } from "./moment.ts";
import { Objectives } from "./objectives.ts";
import type { GameEvent, Mode } from "./protocol.ts";
import type { View } from "./render/camera.ts";
import { useTeamColours } from "./render/palette.ts";
import type { Stage } from "./render/stage.ts";
import { keyLabel, type Settings } from "./settings.ts";
import type { GameSounds } from "./sound/game_sounds.ts";
import * as recipes from "./sound/recipes.ts";
import { Chat } from "./ui/chat.ts";
import { focusable, moveFocus } from "./ui/dom.ts";
import { Hud } from "./ui/hud.ts";
import { NetGraph } from "./ui/netgraph.ts";
import { Timeline, VotePanel } from "./ui/panels.ts";

export interface GameParts {
  link: Link;
  stage: Stage;
  devices: InputDevices;
  settings: Settings;
  sounds: GameSounds;
  parent: HTMLElement;
  leave: () => void;
}

export class Game {
  readonly look: Look = { yaw: 0, pitch: 0 };
  readonly chat: Chat;
  readonly netGraph: NetGraph;
  names: string[] = [];
  /** Set while a menu lies over the game: nothing is held down. */
  paused = false;
  private readonly hud = new Hud();
  private readonly moments = new Moments();
  private readonly objectives: Objectives;
  private vote: VotePanel | undefined;
  private timeline: Timeline | undefined;
  private lastSeen: Moment | undefined;
  private spawned = -1;
  private stood: Triple = [0, 0, 0];
  private padViewHeld = false;
  private weaponWish: 0 | 1 | 2 | 3 | 4 = 0;

  constructor(
    private readonly parts: GameParts,
    readonly level: Level,
    readonly mode: Mode,
    readonly slot: number,
  ) {
    useTeamColours(mode === "ball");
    this.objectives = new Objectives(level);
    this.chat = new Chat((text) => parts.link.send({ kind: "chat", text }), () => parts.devices.lock());
    this.netGraph = new NetGraph((message) => parts.link.send(message));
    this.hud.root.append(this.chat.root, this.netGraph.root);
    parts.parent.append(this.hud.root);
    parts.stage.load(level);
    parts.stage.setView(mode === "versus" ? "first" : "shoulder");
  }

  /** The moment on the screen, or undefined before the first frame. */
  get seen(): Moment | undefined {
    return this.lastSeen;
  }

  /** The newest frame as it came. */
  get newest(): Moment | undefined {
    return this.moments.latest;
  }

  takeFrame(buffer: ArrayBuffer): void {
    const frame = new Frame(buffer);
    if (frame.isReadable) this.moments.take(readMoment(frame), performance.now());
  }

  /** One picture. */
  picture(nowMs: number, seconds: number): void {
    this.sendInput(seconds);
    const moment = this.moments.at(nowMs);
    if (moment === undefined) return;
    this.lastSeen = moment;
    this.faceSpawn(moment.own);
    const look = this.timeline === undefined || moment.own === undefined ? this.look : moment.own;
    this.parts.stage.draw(moment, this.moments.drainEffects(), look, seconds);
    this.objectives.update(moment);
    const own = moment.own?.position ?? [0, 0, 0];
    this.hud.update({
      moment,
      yaw: look.yaw,
      hint: this.mode === "cooperative" && moment.own !== undefined && !this.watching ? this.objectives.hint(moment.own.slot, own) : undefined,
      crosshair: this.view === "side" ? undefined : this.parts.stage.crosshair(own),
      project: (point) => this.parts.stage.project(point),
      sees: (point) => this.parts.stage.sees(point),
      names: this.names,
      scores: this.parts.devices.held.has(this.parts.settings.keys.scores) || this.parts.devices.pad().held.has("scores"),
      prompt: this.prompt(moment),
    });
    this.netGraph.update(moment.net, nowMs);
    this.timeline?.update(moment.tick, moment.own?.slot ?? 0, new Set(moment.robots.map((robot) => robot.slot)));
  }

  event(event: GameEvent): void {
    switch (event.type) {
      case "names":
        this.names = event.names;
        break;
      case "chat":
        this.chat.add(event.slot, this.nameOf(event.slot), event.text);
        this.parts.sounds.play(recipes.UI_MOVE);
        break;
      case "kill":
        this.hud.kill(this.nameOf(event.killer), event.killer, this.nameOf(event.victim), event.victim, event.weapon);
        break;
      case "goal":
        this.hud.goal(event.team, event.scorer < 0 ? "Nobody" : this.nameOf(event.scorer), event.scorer);
        this.parts.sounds.play(recipes.CHECKPOINT);
        break;
      case "hit":
        this.hud.hit(event.kill);
        this.parts.sounds.play(event.kill ? recipes.KILL_MARK : recipes.HIT_MARK);
        break;
      case "hurt":
        this.hud.hurt(event.direction, this.look.yaw, event.damage);
        this.parts.stage.shake(0.2 + event.damage / 80);
        this.parts.sounds.play(recipes.HURT);
        break;
      case "paused":
        this.openVote(event.slot, event.seconds);
        break;
      case "votes":
        this.vote?.votes(event.continue, event.finish);
        break;
      case "unpaused":
        this.closeVote();
        break;
      case "replay":
        this.openTimeline(event);
        break;
      default:
        break;
    }
  }

  /** Tells a change of what is held at once, since the next picture may take long. */
  heldChanged(): void {
    this.sendInput(0);
  }

  /** Handles a key that went down, and returns true if it was used. */
  key(key: string): boolean {
    const { keys } = this.parts.settings;
    if (key === "F3") {
      this.netGraph.toggle();
      if (this.netGraph.open) this.parts.devices.release();
      else this.parts.devices.lock();
      return true;
    }
    if (this.vote !== undefined) return moveFocus(this.vote.root, key);
    if (this.chat.open || this.paused) return false;
    const byGraph = this.netGraph.open ? this.netGraphKey(key) : undefined;
    if (byGraph !== undefined) return byGraph;
    if (this.timeline !== undefined && moveFocus(this.timeline.root, key)) return true;
    if (key === keys.chat && this.timeline === undefined) {
      this.parts.devices.held.clear();
      this.chat.begin();
      return true;
    }
    if (key === keys.view) {
      this.changeView();
      return true;
    }
    if (key === keys.scores) {
      this.parts.devices.held.add(key);
      return true;
    }
    return false;
  }

  mouse(x: number, y: number): void {
    if (!this.paused) turnByMouse(this.look, this.parts.settings, x, y, this.lastSeen?.own?.aim ?? 0);
  }

  /** The wheel goes through the weapons one has. */
  wheel(steps: number): void {
    const own = this.lastSeen?.own;
    if (own === undefined) return;
    for (let next = 1; next <= 4; next += 1) {
      const weapon = ((own.weapon - 1 + steps * next + 8) % 4) + 1;
      if ((own.owned & (1 << (weapon - 1))) !== 0) {
        this.weaponWish = weapon as 1 | 2 | 3 | 4;
        return;
      }
    }
  }

  get view(): string {
    return this.parts.stage.view.view;
  }

  /** Another picture of the same match, after a change of quality. */
  useStage(stage: Stage): void {
    this.parts.stage = stage;
  }

  /** True if something of the game's own needs the pointer: no reason to open the pause menu. */
  get wantsPointer(): boolean {
    return this.chat.open || this.netGraph.open || this.vote !== undefined || this.watching;
  }

  /** True if the gamepad steers a menu of the game's own instead of the robot. */
  get wantsMenu(): boolean {
    return this.vote !== undefined || this.watching;
  }

  get watching(): boolean {
    return this.timeline !== undefined;
  }

  end(): void {
    this.closeVote();
    this.hud.clear();
    this.hud.root.remove();
    this.parts.sounds.silence();
    this.parts.stage.clear();
  }

  /** The keyboard in the net graph: Tab goes into it, arrows, Enter and Space work there, everything else plays on. Whether the key was used, if it was meant for it. */
  private netGraphKey(key: string): boolean | undefined {
    const { root } = this.netGraph;
    const inside = root.contains(document.activeElement);
    if (key === "Tab") {
      if (inside) moveFocus(root, "ArrowDown");
      else focusable(root)[0]?.focus();
      return true;
    }
    return inside && /^(Arrow|Enter|Space)/.test(key) ? moveFocus(root, key) : undefined;
  }

  private sendInput(seconds: number): void {
    const { devices, settings, link } = this.parts;
    const busy = this.paused || this.chat.open || this.vote !== undefined;
    const pad = devices.pad();
    const viewPressed = pad.held.has("view");
    if (viewPressed && !this.padViewHeld && !busy) this.changeView();
    this.padViewHeld = viewPressed;
    if (!busy) {
      turnByStick(this.look, settings, pad, seconds);
      turnByKeys(this.look, devices.held, seconds);
    }
    const input = toInput(busy ? new Set() : actionsHeld(settings, devices.held), pad, this.look);
    if (this.weaponWish !== 0) {
      input.weapon = this.weaponWish;
      this.weaponWish = 0;
    }
    link.send(input);
  }

  private changeView(): void {
    const views: View[] = this.watching ? ["shoulder", "first", "side"] : ["shoulder", "first"];
    const { view } = this.parts.stage.view;
    this.parts.stage.setView(views[(views.indexOf(view) + 1) % views.length] ?? "shoulder");
  }

  /** Looks where the level says when the robot appears somewhere: what the robot itself says is by then what this page has sent. */
  private faceSpawn(own: RobotView | undefined): void {
    if (own === undefined || !own.alive) {
      this.spawned = -1;
      return;
    }
    // After a goal everybody is put back, alive as they are.
    const put = Math.hypot(own.position[0] - this.stood[0], own.position[2] - this.stood[2]) > PUT_METRES;
    this.stood = own.position;
    if (this.spawned === own.entity && !(put && this.mode === "ball")) return;
    this.spawned = own.entity;
    this.look.yaw = spawnYaw(this.level, own.position) ?? own.yaw;
    this.look.pitch = 0;
  }

  private openVote(slot: number, seconds: number): void {
    this.closeVote();
    this.parts.devices.release();
    this.vote = new VotePanel(this.nameOf(slot), seconds, (choice) => this.parts.link.send({ kind: "vote", choice }));
    this.hud.root.append(this.vote.root);
    this.vote.root.querySelector<HTMLElement>("[data-focus]")?.focus();
    this.parts.sounds.play(recipes.UI_ALERT);
  }

  private closeVote(): void {
    this.vote?.close();
    this.vote = undefined;
  }

  private openTimeline(event: Extract<GameEvent, { type: "replay" }>): void {
    const { link } = this.parts;
    this.names = event.names;
    this.timeline?.root.remove();
    this.timeline = new Timeline({ first: event.first ?? 0, last: event.ticks, tickMs: event.tickMs, names: event.names, marks: event.marks ?? [] }, {
      speed: (speed) => link.send({ kind: "replay", speed }),
      seek: (tick) => link.send({ kind: "replay", tick }),
      watch: (slot) => link.send({ kind: "replay", slot }),
      leave: () => this.parts.leave(),
    });
    this.hud.root.classList.add("watching");
    this.hud.root.append(this.timeline.root);
  }

  private nameOf(slot: number): string {
    if (slot < 0) return "The AI";
    return this.names[slot] || `Robot ${slot + 1}`;
  }

  /** True if everything that a switch opens stands open for good. */
  private isDone(id: string, devices: readonly DeviceView[]): boolean {
    const doors = this.level.devices.flatMap(({ what: { door } }, index) => (door?.needs.of.includes(id) === true ? [{ door, index }] : []));
    return doors.length > 0 && doors.every(({ door, index }) => door.needs.latch === true && (devices.find((view) => view.index === index)?.progress ?? 0) > 0.99);
  }

  /** The line that says what the use key would do here. */
  private prompt({ own, devices, balls }: Moment): string {
    if (own === undefined || !own.alive || this.timeline !== undefined) return "";
    if (balls.some((ball) => ball.kickable)) return `Press ${keyLabel(this.parts.settings.keys.use)} to kick`;
    for (const view of devices) {
      const spec = this.level.devices[view.index];
      if (spec === undefined) continue;
      const { lever, button, hold } = spec.what;
      if ((lever ?? button ?? hold) === undefined || (lever !== undefined && view.pressed)) continue;
      if (gap(devicePlace(spec), own.position) > REACH || this.isDone(spec.id, devices)) continue;
      if (spec.only !== undefined && spec.only !== own.slot) return `Only ${this.nameOf(spec.only)} can use this`;
      const key = keyLabel(this.parts.settings.keys.use);
      return `${hold === undefined ? "Press" : "Hold"} ${key}`;
    }
    return "";
  }
}

/** From the middle of the robot, which is 0.9 above its feet. */
function gap(place: Triple, feet: Triple): number {
  return Math.hypot(place[0] - feet[0], place[1] - feet[1] - 0.9, place[2] - feet[2]);
}

const REACH = 2.2;
/** Farther than anybody runs from one picture to the next. */
const PUT_METRES = 3;
