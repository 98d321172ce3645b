// The result of a match, and the way into another round.

import { teamOf } from "../model.ts";
import type { Mode, ResultLine } from "../protocol.ts";
import { playerStyle, TEAM_NAMES } from "../render/palette.ts";
import type { Actions } from "./actions.ts";
import { button, element } from "./dom.ts";
import { keysHint, page, type Screen } from "./screens.ts";

export interface Result {
  won: boolean;
  lines: ResultLine[];
  mode: Mode;
  /** By team, with the ball. */
  goals: [number, number];
  ownSlot: number;
}

export function resultScreen(actions: Actions, result: Result): Screen {
  const lines = [...result.lines].sort((one, two) => two.points - one.points);
  const again = button("Again", () => actions.again(), { class: "main", id: "again" });
  again.dataset.focus = "";
  const content = element(
    "div",
    {},
    element("p", { class: "lead", text: sentence(result, lines) }),
    scoreTable(lines, result.ownSlot, result.mode === "ball"),
    element("div", { class: "bar", attributes: { style: "margin-top:2rem" } }, again, button("Back", () => actions.show("home"), { id: "result-home" })),
  );
  content.style.maxWidth = "46rem";
  return { name: "result", root: page(heading(result, lines), [content], [keysHint()], "shade"), back: () => actions.show("home") };
}

/** With the ball, kills are goals and deaths own goals. */
export function scoreTable(lines: readonly ResultLine[], ownSlot: number, ball = false): HTMLElement {
  const columns = ball ? ["Points", "Goals", "Own goals"] : ["Points", "Kills", "Deaths"];
  const head = element("tr", {}, element("th", { text: "Player" }), ...columns.map((text) => element("th", { class: "number", text })));
  const rows = lines.map((line) => {
    const dot = element("i", { class: "dot", attributes: { style: `color:${playerStyle(line.slot)}` } });
    const numbers = [line.points, line.kills, line.deaths].map((value) => element("td", { class: "number", text: String(value) }));
    return element("tr", { class: line.slot === ownSlot ? "own" : "" }, element("td", {}, dot, line.name), ...numbers);
  });
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

function heading(result: Result, lines: readonly ResultLine[]): string {
  if (result.mode === "cooperative") return result.won ? "You are out" : "Not this time";
  if (result.mode === "ball") return ["Defeat", "Draw", "Victory"][lead(result) + 1] ?? "";
  return lines[0]?.slot === result.ownSlot ? "Victory" : "Match over";
}

function sentence(result: Result, lines: readonly ResultLine[]): string {
  if (result.mode === "ball") {
    const [first, second] = result.goals;
    return first === second ? `${first} : ${second}.` : `${TEAM_NAMES[first > second ? 0 : 1]} wins ${Math.max(first, second)} : ${Math.min(first, second)}.`;
  }
  if (result.mode === "cooperative") return result.won ? "Two robots went in, two came out." : "The AI keeps its robots. For now.";
  const first = lines[0];
  return first === undefined ? "" : first.slot === result.ownSlot ? "Nobody was better." : `${first.name} was better.`;
}

/** 1 if the own team has more goals, -1 if the other has. */
export function lead({ goals, ownSlot }: Pick<Result, "goals" | "ownSlot">): number {
  const team = teamOf(Math.max(0, ownSlot));
  return Math.sign(goals[team] - goals[team === 0 ? 1 : 0]);
}
