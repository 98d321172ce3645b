// Preferences, the queue, and practice.

import type { Mode, Preferences } from "../protocol.ts";
import type { Actions } from "./actions.ts";
import { button, choice, clock, element } from "./dom.ts";
import { keysHint, page, type Screen } from "./screens.ts";

const MODES = [
  ["cooperative", "Co-operative"],
  ["versus", "Versus"],
  ["ball", "Ball"],
] as const;
const DIFFICULTIES = [
  ["0", "Easy"],
  ["1", "Normal"],
  ["2", "Hard"],
] as const;

/** Who else plays in practice, by mode. */
const OTHERS: Record<Mode, { label: string; usual: string; values: readonly (readonly [string, string])[] }> = {
  cooperative: { label: "Partner", usual: "1", values: [["1", "A bot"], ["0", "Nobody"]] },
  versus: { label: "Opponents", usual: "5", values: [["1", "1"], ["3", "3"], ["5", "5"], ["9", "9"], ["15", "15"]] },
  ball: { label: "Teams", usual: "3", values: [["0", "Alone"], ["1", "1 : 1"], ["3", "2 : 2"], ["5", "3 : 3"], ["7", "4 : 4"]] },
};

export function playScreen(actions: Actions): Screen {
  let mode: Mode | "any" = "cooperative";
  let difficulty = "any";
  let players = "2";
  let bots = "yes";
  const playersRow = element("div");
  const drawPlayers = (): void => {
    players = "2";
    playersRow.replaceChildren();
    if (mode !== "versus" && mode !== "ball") return;
    const most = mode === "versus" ? ([["8", "8"], ["16", "16"]] as const) : ([["6", "6"], ["8", "8"]] as const);
    playersRow.append(choice<string>("Players", [["2", "2"], ["4", "4"], ...most], players, (value) => { players = value; }));
  };
  const start = button("Find a match", () => actions.play(preferences(mode, difficulty, players, bots)), { class: "main", id: "find" });
  start.dataset.focus = "";
  const content = element(
    "div",
    {},
    choice("Mode", [...MODES, ["any", "Any"]], mode, (value) => {
      mode = value;
      drawPlayers();
    }),
    choice("Difficulty", [...DIFFICULTIES, ["any", "Any"]], difficulty as "any", (value) => { difficulty = value; }),
    playersRow,
    choice("Bots after a while", [["yes", "Yes"], ["no", "No"]], "yes", (value) => { bots = value; }),
    actions.room !== undefined && element("p", { text: `You are in room ${actions.room}; the match is for everyone in it.` }),
    element("div", { class: "bar", attributes: { style: "margin-top:2rem" } }, start, button("Friends", () => actions.show("friends"))),
  );
  return { name: "play", root: page("Play", [content], [keysHint()]), back: () => actions.back() };
}

export function preferences(mode: Mode | "any", difficulty: string, players: string, bots: string): Preferences {
  const choices: Record<string, string> = {};
  if (mode !== "any") choices.mode = mode;
  if (difficulty !== "any") choices.difficulty = difficulty;
  const wanted: Preferences = { choices, latency_ms: {}, bots: bots === "yes" };
  if (mode !== "any") wanted.players = mode === "cooperative" ? 2 : Number(players);
  return wanted;
}

export function queueScreen(actions: Actions, waited: () => number, wanted: Preferences): Screen {
  const time = element("div", { class: "big", id: "waited", text: "0:00" });
  const note = element("p", { text: "Looking for somebody to play with." });
  const refresh = (): void => {
    time.textContent = clock(waited() / 1000);
    const { text, online } = actions.masterStatus;
    if (!online) note.textContent = `${text}. Your place in the queue is kept.`;
  };
  const timer = setInterval(refresh, 250);
  const leave = button("Leave the queue", () => actions.leaveQueue(), { id: "leave-queue" });
  leave.dataset.focus = "";
  const mode = MODES.find(([value]) => value === wanted.choices.mode)?.[1] ?? "Any mode";
  const parts: string[] = [mode, wanted.players === undefined ? "any number of players" : `${wanted.players} players`];
  if (wanted.choices.difficulty !== undefined) parts.push(DIFFICULTIES[Number(wanted.choices.difficulty)]?.[1].toLowerCase() ?? "");
  const content = element("div", {}, time, element("p", { class: "lead", text: parts.join(", ") }), note, element("div", { class: "bar", attributes: { style: "margin-top:2rem" } }, leave));
  return { name: "queue", root: page("In the queue", [content], [keysHint()]), back: () => actions.leaveQueue(), leave: () => clearInterval(timer) };
}

export function practiceScreen(actions: Actions): Screen {
  let game: Mode = "cooperative";
  let difficulty = "1";
  let bots = "1";
  const botsRow = element("div");
  const drawBots = (): void => {
    const { label, usual, values } = OTHERS[game];
    bots = usual;
    botsRow.replaceChildren(choice<string>(label, values, bots, (value) => { bots = value; }));
  };
  drawBots();
  const start = button("Start", () => actions.practice({ game, bots: Number(bots), difficulty: Number(difficulty) }), { class: "main", id: "start-practice" });
  start.dataset.focus = "";
  const content = element(
    "div",
    {},
    element("p", { class: "lead", text: "The whole game in this page. No server, no waiting." }),
    choice("Mode", MODES, game, (value) => {
      game = value;
      drawBots();
    }),
    botsRow,
    choice("Difficulty", DIFFICULTIES, "1", (value) => { difficulty = value; }),
    element("div", { class: "bar", attributes: { style: "margin-top:2rem" } }, start),
  );
  return { name: "practice", root: page("Practice", [content], [keysHint()]), back: () => actions.back() };
}

export function loadingScreen(text: string, cancel: () => void): Screen & { progress(share: number, text: string): void } {
  const bar = element("i");
  const line = element("p", { class: "lead", text });
  const root = page("Loading", [element("div", {}, line, element("div", { class: "loadbar" }, bar))], [element("span", { text: tip() }), button("Leave", cancel)], "full");
  return {
    name: "loading",
    root,
    back: cancel,
    progress: (share, what) => {
      bar.style.width = `${share * 100}%`;
      line.textContent = what;
    },
  };
}

function tip(): string {
  return TIPS[Math.floor(Math.random() * TIPS.length)] ?? "";
}

const TIPS = [
  "A device in your colour is yours alone.",
  "Lamps over a door count the switches it needs.",
  "Tanks are slow and cannot pass narrow ways. Cats can, and jump.",
  "The boss has two weak points. Hit both within half a second.",
  "Press F3 to see the network at work, and to make it worse.",
  "V changes the view.",
  "The ball is heavy: get behind it and push, or press the use key to kick it where you look.",
];
