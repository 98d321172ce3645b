// The display over the game: health, weapon, objective, names, feed, scores. Elements are made once; an update writes only what has changed.

import { MAGAZINE_SIZES, Mode, type Moment, type NetView, Phase, RELOAD_TICKS, type RobotView, Species, Stance, TICKS_PER_SECOND, teamOf, type Triple, WEAPON_NAMES } from "../model.ts";
import type { Hint } from "../objectives.ts";
import type { ResultLine } from "../protocol.ts";
import { playerStyle, TEAM_NAMES, teamStyle } from "../render/palette.ts";
import type { ScreenPoint } from "../render/stage.ts";
import { clock, element } from "./dom.ts";
import { scoreTable } from "./result.ts";

export interface HudInput {
  moment: Moment;
  yaw: number;
  hint: Hint | undefined;
  /** Undefined where the picture is not taken from the player. */
  crosshair: ScreenPoint | undefined;
  project: (point: Triple) => ScreenPoint;
  sees: (point: Triple) => boolean;
  names: readonly string[];
  scores: boolean;
  prompt: string;
}

export class Hud {
  readonly root = element("div", { class: "hud" });
  private readonly health = element("div", { class: "health" });
  private readonly healthNumber = element("div", { class: "number" });
  private readonly healthBar = element("i");
  private readonly weaponName = element("div", { class: "name" });
  private readonly rounds = element("div", { class: "rounds" });
  private readonly slots = [1, 2, 3, 4].map((weapon) => element("span", { text: String(weapon) }));
  private readonly objectiveText = element("div", { class: "text" });
  private readonly objective = element("div", { class: "objective" }, element("div", { class: "label", text: "Objective" }), this.objectiveText);
  private readonly waypoint = element("div", { class: "waypoint" });
  private readonly ping = element("div", { class: "ping" });
  private readonly timer = element("div", { class: "timer" });
  private readonly goals = [0, 1].map((team) => element("b", { attributes: { style: `color:${teamStyle(team as 0 | 1)}` } }));
  private readonly score = element("div", { class: "score", id: "score" }, this.goals[0] ?? "", " : ", this.goals[1] ?? "");
  private readonly bossBar = element("i");
  private readonly bossPoints = [element("i"), element("i")];
  private readonly boss = element("div", { class: "boss" }, "Overseer", element("div", { class: "track" }, this.bossBar), element("div", { class: "points" }, ...this.bossPoints));
  private readonly feed = element("div", { class: "feed", attributes: { role: "log" } });
  private readonly crosshair = element("div", { class: "crosshair" });
  private readonly hitmark = element("div", { class: "hitmark" });
  private readonly vignette = element("div", { class: "vignette" });
  private readonly prompt = element("div", { class: "prompt" });
  private readonly banner = element("div", { class: "banner" });
  private readonly scores = element("div", { class: "scores" });
  private readonly plates = new Map<number, HTMLElement>();
  private written = new Map<HTMLElement, string>();
  private scoresShown = "";

  constructor() {
    for (let line = 0; line < 4; line += 1) this.crosshair.append(element("i"));
    this.crosshair.append(element("b"), this.hitmark);
    this.health.append(this.healthNumber, element("div", { class: "track" }, this.healthBar));
    const weapon = element("div", { class: "weapon" }, this.weaponName, this.rounds, element("div", { class: "slots" }, ...this.slots));
    this.root.append(this.vignette, this.waypoint, this.crosshair, this.health, weapon, this.objective, this.ping, this.timer, this.score, this.boss, this.feed, this.prompt, this.banner, this.scores);
  }

  update(input: HudInput): void {
    const { moment } = input;
    const own = moment.own;
    this.crosshair.hidden = own === undefined || !own.alive || input.scores || input.crosshair === undefined;
    if (own !== undefined) this.updateOwn(own, input);
    this.updateHint(input);
    this.updateRound(moment);
    this.updatePing(moment);
    this.updatePlates(input);
    this.updateScores(input);
    this.write(this.prompt, input.prompt);
    this.write(this.banner, bannerOf(moment));
  }

  hit(kill: boolean): void {
    this.hitmark.classList.toggle("kill", kill);
    this.hitmark.animate([{ opacity: 1, transform: "scale(1.35)" }, { opacity: 1, transform: "scale(1)", offset: 0.3 }, { opacity: 0 }], { duration: kill ? 520 : 280 });
  }

  /** `direction` is where it came from, like a yaw. */
  hurt(direction: number, yaw: number, damage: number): void {
    const arc = element("div", { class: "hurt" });
    arc.style.transform = `rotate(${-(direction - yaw)}rad)`;
    this.root.append(arc);
    arc.animate([{ opacity: 0.95 }, { opacity: 0 }], { duration: 1100 }).onfinish = () => arc.remove();
    this.vignette.animate([{ opacity: Math.min(0.9, 0.25 + damage / 60) }, { opacity: 0 }], { duration: 600 });
  }

  kill(killer: string, killerSlot: number, victim: string, victimSlot: number, weapon: number): void {
    const name = (text: string, slot: number): HTMLElement => element("span", { text, attributes: { style: `color:${slot < 0 ? "var(--danger)" : playerStyle(slot)}` } });
    const line = element("div", {}, name(killer, killerSlot), element("span", { class: "weaponname", text: WEAPON_NAMES[weapon] ?? "" }), name(victim, victimSlot));
    this.tell(line);
  }

  goal(team: 0 | 1, scorer: string, slot: number): void {
    const own = slot >= 0 && teamOf(slot) !== team;
    const name = element("span", { text: scorer, attributes: { style: `color:${slot < 0 ? "var(--ink)" : playerStyle(slot)}` } });
    this.tell(element("div", {}, name, element("span", { class: "weaponname", text: own ? "own goal for" : "goal for" }), element("span", { text: TEAM_NAMES[team], attributes: { style: `color:${teamStyle(team)}` } })));
  }

  clear(): void {
    this.feed.replaceChildren();
    for (const plate of this.plates.values()) plate.remove();
    this.plates.clear();
  }

  private tell(line: HTMLElement): void {
    this.feed.append(line);
    while (this.feed.childElementCount > FEED_LINES) this.feed.firstElementChild?.remove();
    setTimeout(() => { line.style.opacity = "0"; }, 5000);
    setTimeout(() => line.remove(), 5700);
  }

  private updateOwn(own: RobotView, input: HudInput): void {
    this.root.style.setProperty("--own", playerStyle(own.slot));
    this.write(this.healthNumber, String(Math.ceil(own.health)));
    this.healthBar.style.width = `${own.health}%`;
    this.health.classList.toggle("low", own.health <= 30);
    const size = MAGAZINE_SIZES[own.weapon] ?? 0;
    this.write(this.weaponName, WEAPON_NAMES[own.weapon] ?? "");
    const share = 1 - own.reloadTicks / (RELOAD_TICKS[own.weapon] ?? 60);
    const rounds = own.reloadTicks > 0 ? `<small>reloading ${Math.round(Math.max(0, share) * 100)} %</small>` : `${own.magazines[own.weapon - 1] ?? 0}<small>/ ${size}</small>`;
    if (this.written.get(this.rounds) !== rounds) {
      this.written.set(this.rounds, rounds);
      this.rounds.innerHTML = rounds;
    }
    for (const [index, slot] of this.slots.entries()) {
      slot.className = `${(own.owned & (1 << index)) !== 0 ? "owned" : ""} ${own.weapon === index + 1 ? "held" : ""}`;
    }
    const spread = [0, 7, 10, 26, 5][own.weapon] ?? 7;
    const speed = Math.hypot(own.velocity[0], own.velocity[2]);
    this.crosshair.style.setProperty("--gap", `${(spread + speed * 0.8 + own.recoil * 90) * (1 - own.aim * 0.6)}px`);
    if (input.crosshair !== undefined) this.crosshair.style.transform = `translate(${input.crosshair.x}px, ${input.crosshair.y}px)`;
  }

  private updateHint({ hint, moment, project }: HudInput): void {
    this.objective.hidden = hint === undefined;
    this.waypoint.hidden = hint?.at === undefined || moment.own === undefined;
    if (hint === undefined) return;
    this.write(this.objectiveText, hint.text);
    if (hint.at === undefined || moment.own === undefined) return;
    const [x, y, z] = hint.at;
    const point = project([x, y + 1, z]);
    const [ownX, ownY, ownZ] = moment.own.position;
    const distance = Math.hypot(x - ownX, y - ownY, z - ownZ);
    this.waypoint.hidden = distance < 2.5;
    const side = point.behind ? innerWidth - point.x : point.x;
    const clampedX = Math.max(EDGE, Math.min(innerWidth - EDGE, side));
    const clampedY = point.behind ? innerHeight - EDGE * 2 : Math.max(EDGE, Math.min(innerHeight - EDGE, point.y));
    this.waypoint.style.left = `${clampedX}px`;
    this.waypoint.style.top = `${clampedY}px`;
    this.write(this.waypoint, `${Math.round(distance)} m`);
  }

  private updateRound({ round, enemies }: Moment): void {
    this.timer.hidden = round.mode === Mode.Cooperative;
    this.score.hidden = round.mode !== Mode.Ball;
    for (const [team, goals] of this.goals.entries()) this.write(goals, String(round.goals[team] ?? 0));
    this.write(this.timer, clock(round.ticksLeft / TICKS_PER_SECOND));
    const boss = enemies.find((enemy) => enemy.species === Species.Boss && enemy.stance !== Stance.Dead && enemy.stance !== Stance.Idle);
    this.boss.hidden = boss === undefined;
    if (boss === undefined) return;
    this.bossBar.style.width = `${boss.health}%`;
    for (const [index, point] of this.bossPoints.entries()) point.classList.toggle("hit", (round.weakPoints[index] ?? 0) > 0);
  }

  private updatePing({ net, interrupted }: Moment): void {
    const good = 4 - Math.min(3, Math.round(net.quality));
    const level = ["", "var(--danger)", "var(--danger)", "var(--second)", "var(--good)"][good] ?? "";
    const html = `${netIcons(net, interrupted)}<span id="ping">${Math.round(net.rttMs)} ms</span><span class="bars">${[1, 2, 3, 4].map((bar) => `<i class="${bar <= good ? "on" : ""}"></i>`).join("")}</span>`;
    if (this.written.get(this.ping) === html) return;
    this.written.set(this.ping, html);
    this.ping.innerHTML = html;
    // Not as an attribute: the page's policy allows no inline styles.
    this.ping.querySelector<HTMLElement>(".bars")?.style.setProperty("--level", level);
  }

  private updatePlates({ moment, project, sees, names }: HudInput): void {
    const present = new Set<number>();
    for (const robot of moment.robots) {
      if (robot.own || !robot.alive) continue;
      const above: Triple = [robot.position[0], robot.position[1] + 2.15, robot.position[2]];
      // A partner is shown through walls, an opponent is not.
      if (moment.round.mode === Mode.Versus && !(moment.own !== undefined && gap(robot.position, moment.own.position) < PLATE_METRES && sees(above))) continue;
      const point = project(above);
      if (point.behind) continue;
      present.add(robot.slot);
      let plate = this.plates.get(robot.slot);
      if (plate === undefined) {
        plate = element("div", { class: "nameplate", attributes: { style: `color:${playerStyle(robot.slot)}` } }, element("span"), element("i", {}, element("b")));
        this.plates.set(robot.slot, plate);
        this.root.prepend(plate);
      }
      plate.style.left = `${point.x}px`;
      plate.style.top = `${point.y}px`;
      this.write(plate.firstElementChild as HTMLElement, `${names[robot.slot] || "Robot"}${robot.absent ? " (away)" : ""}`);
      (plate.querySelector("b") as HTMLElement).style.width = `${robot.health}%`;
    }
    for (const [slot, plate] of this.plates) {
      if (present.has(slot)) continue;
      plate.remove();
      this.plates.delete(slot);
    }
  }

  private updateScores({ scores, moment, names }: HudInput): void {
    this.scores.hidden = !scores;
    if (!scores) return;
    const lines = scoreLines(moment, names);
    const key = JSON.stringify(lines);
    if (key === this.scoresShown) return;
    this.scoresShown = key;
    this.scores.replaceChildren(element("h3", { text: MODE_NAMES[moment.round.mode] }), scoreTable(lines, moment.own?.slot ?? -1, moment.round.mode === Mode.Ball));
  }

  private write(target: HTMLElement, text: string): void {
    if (this.written.get(target) === text) return;
    this.written.set(target, text);
    target.textContent = text;
  }
}

export function scoreLines({ round, robots }: Moment, names: readonly string[]): ResultLine[] {
  const slots = new Set([...robots.map((robot) => robot.slot), ...names.flatMap((name, slot) => (name === "" ? [] : [slot]))]);
  return [...slots]
    .map((slot) => ({ slot, name: names[slot] || `Robot ${slot + 1}`, points: round.points[slot] ?? 0, kills: round.kills[slot] ?? 0, deaths: round.deaths[slot] ?? 0 }))
    .sort((one, two) => two.points - one.points || one.slot - two.slot);
}

function bannerOf({ own, round, balls, interrupted }: Moment): string {
  if (interrupted) return "Connection lost. Trying to come back.";
  if (round.phase === Phase.Waiting) return "Waiting for the others";
  if (round.phase === Phase.Loading) return "The others are loading";
  if (round.phase === Phase.Playing && balls.some((ball) => ball.restartTicks > 0)) return "Goal!";
  if (own !== undefined && !own.alive) return `Back in ${Math.ceil(own.respawnTicks / TICKS_PER_SECOND)}`;
  return "";
}

function netIcons(net: NetView, interrupted: boolean): string {
  const icons: string[] = [];
  const icon = (text: string, bad: boolean): number => icons.push(`<span class="icon${bad ? " bad" : ""}">${text}</span>`);
  if (interrupted) icon("cut off", true);
  if (net.loss > 0.03) icon("loss", net.loss > 0.1);
  if (net.jitterMs > 25) icon("jitter", net.jitterMs > 60);
  if (net.rttMs > 300) icon("far", net.rttMs > 600);
  return icons.join("");
}

function gap(from: Triple, to: Triple): number {
  return Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
}

const MODE_NAMES: Record<Mode, string> = { [Mode.Cooperative]: "Co-operative", [Mode.Versus]: "Versus", [Mode.Ball]: "Ball" };
const FEED_LINES = 5;
const EDGE = 60;
const PLATE_METRES = 18;
