// Watch: recorded matches, from the server's list or from a file.

import type { Actions } from "./actions.ts";
import { button, element } from "./dom.ts";
import { keysHint, page, type Screen } from "./screens.ts";

export function watchScreen(actions: Actions): Screen {
  const error = element("p", { class: "error", attributes: { role: "status" } });
  const file = element("input", { id: "replay-file", attributes: { type: "file", accept: ".muserply", hidden: "" } });
  file.addEventListener("change", () => {
    const chosen = file.files?.[0];
    if (chosen !== undefined) void chosen.arrayBuffer().then((bytes) => actions.watch(bytes));
  });
  const list = element("div", { class: "scroll" });
  void loadList(list, (path) => void open(path, actions, error));
  const choose = button("Open a file", () => file.click(), { class: "main", id: "open-replay" });
  choose.dataset.focus = "";
  const content = element(
    "div",
    {},
    element("p", { class: "lead", text: "Every match is recorded. Watch it through any player's eyes, with the network of that moment." }),
    list,
    element("div", { class: "bar", attributes: { style: "margin-top:1.4rem" } }, choose, file),
    error,
  );
  return { name: "watch", root: page("Watch", [content], [keysHint()]), back: () => actions.back() };
}

/** The server lists its recordings at `/replays`; a page without a server simply has none. */
async function loadList(list: HTMLElement, watch: (path: string) => void): Promise<void> {
  try {
    const answer = await fetch("/replays");
    if (!answer.ok) return;
    const names: unknown = await answer.json();
    if (!Array.isArray(names)) return;
    const buttons = names.filter((name): name is string => typeof name === "string").slice(0, REPLAYS_SHOWN).map((name) => recording(name, watch));
    list.replaceChildren(element("div", { class: "menu" }, ...buttons));
  } catch {
    list.replaceChildren();
  }
}

function recording(name: string, watch: (path: string) => void): HTMLElement {
  const made = button(recordingLabel(name), () => watch(`/replays/${encodeURIComponent(name)}`));
  made.dataset.replay = name;
  return made;
}

/** The upper half of a match's number counts starts of the master, the lower one matches. */
export function recordingLabel(name: string): string {
  const number = /^match-(\d+)\.muserply$/.exec(name)?.[1];
  if (number === undefined) return name;
  const [start, match] = [BigInt(number) >> 32n, BigInt(number) & 0xffff_ffffn];
  return start <= 1n ? `Match ${match}` : `Match ${start}-${match}`;
}

async function open(path: string, actions: Actions, error: HTMLElement): Promise<void> {
  try {
    const answer = await fetch(path);
    if (!answer.ok) throw new Error(String(answer.status));
    actions.watch(await answer.arrayBuffer());
  } catch (problem) {
    error.textContent = `The recording cannot be read (${problem instanceof Error ? problem.message : "unknown"}).`;
  }
}

const REPLAYS_SHOWN = 20;
