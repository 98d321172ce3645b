// Friends, rooms and the ranking: lists from the master.

import type { Actions } from "./actions.ts";
import { button, element, onEnter } from "./dom.ts";
import { keysHint, page, type Screen } from "./screens.ts";

interface Friend {
  account: number;
  name: string | null;
  state: string;
  online: boolean;
}

interface RankingLine {
  place: number;
  account: number;
  name: string | null;
  points: number;
  rating: number;
}

export function friendsScreen(actions: Actions): Screen {
  const error = element("p", { class: "error", attributes: { role: "status" } });
  const list = element("div", { class: "scroll" });
  const room = element("div");
  const tell = (text: string, bad: boolean): void => {
    error.textContent = text;
    error.className = bad ? "error" : "status-line";
  };
  const fail = (body: unknown): void => tell(reason(body), true);
  const refresh = async (): Promise<void> => {
    const answer = await actions.api("GET", "/v1/friends");
    if (answer.status !== 200) return fail(answer.body);
    const friends = listOf<Friend>(answer.body, "friends");
    list.replaceChildren(...(friends.length === 0 ? [element("p", { text: "Nobody yet. Give your number to a friend." })] : [friendsTable(actions, friends, refresh)]));
  };
  const drawRoom = (): void => room.replaceChildren(...roomPart(actions, drawRoom, fail));
  drawRoom();
  void refresh();
  const number = element("input", { id: "friend-number", attributes: { type: "text", inputmode: "numeric", placeholder: "A friend's number", "aria-label": "A friend's number" } });
  const add = async (): Promise<void> => {
    const account = number.value.trim();
    if (!/^\d+$/.test(account)) return;
    const answer = await actions.api("PUT", `/v1/friends/${account}`);
    if (answer.status >= 400 || answer.status === 0) return fail(answer.body);
    number.value = "";
    tell("Asked. Your friend has to accept.", false);
    await refresh();
  };
  onEnter(number, () => void add());
  const left = element("div", {}, element("h3", { text: "Play together" }), room);
  const right = element(
    "div",
    {},
    element("h3", { text: actions.account === undefined ? "Friends" : `Friends (you are number ${actions.account})` }),
    element("div", { class: "bar" }, number, button("Add", () => void add())),
    list,
  );
  return { name: "friends", root: page("Friends", [element("div", { class: "columns" }, left, right), error], [keysHint()], "full"), back: () => actions.back() };
}

function roomPart(actions: Actions, redraw: () => void, fail: (body: unknown) => void): HTMLElement[] {
  const enter = async (path: string): Promise<void> => {
    const answer = await actions.api("POST", path);
    const code = (answer.body as { code?: unknown } | null)?.code;
    if (answer.status !== 200 || typeof code !== "string") return fail(answer.body);
    actions.room = code;
    redraw();
  };
  if (actions.room !== undefined) {
    const leave = async (): Promise<void> => {
      await actions.api("DELETE", "/v1/room");
      actions.room = undefined;
      redraw();
    };
    return [
      element("div", { class: "big code", id: "room-code", text: actions.room }),
      element("p", { text: `Give this code to your friend, or the address ${location.origin}/?room=${actions.room}. Whoever made the room presses Play for both.` }),
      element("div", { class: "bar" }, button("Play", () => actions.show("play"), { class: "main" }), button("Leave the room", () => void leave())),
    ];
  }
  const code = element("input", { id: "room-join", class: "code", attributes: { type: "text", maxlength: "6", placeholder: "ABCDEF", "aria-label": "Invitation code" } });
  const join = (): void => {
    if (code.value.trim() !== "") void enter(`/v1/room/${encodeURIComponent(code.value.trim().toUpperCase())}`);
  };
  onEnter(code, join);
  return [
    element("div", { class: "bar" }, button("Make a room", () => void enter("/v1/room"), { class: "main", id: "make-room" })),
    element("h3", { text: "Or enter a code" }),
    element("div", { class: "bar" }, code, button("Join", join)),
  ];
}

function friendsTable(actions: Actions, friends: readonly Friend[], refresh: () => Promise<void>): HTMLElement {
  const rows = friends.map((friend) => {
    const act = async (method: "PUT" | "POST" | "DELETE", path: string): Promise<void> => {
      await actions.api(method, path);
      await refresh();
    };
    const path = `/v1/friends/${friend.account}`;
    const controls = element("div", { class: "bar" });
    if (friend.state === "asks") controls.append(button("Accept", () => void act("PUT", path)));
    if (friend.state === "friend" && actions.room !== undefined && friend.online) controls.append(button("Invite", () => void act("POST", `${path}/invite`)));
    controls.append(button("Remove", () => void act("DELETE", path)));
    const state = friend.state === "friend" ? (friend.online ? "online" : "away") : friend.state;
    return element("tr", {}, element("td", { text: nameOf(friend) }), element("td", { text: state }), element("td", {}, controls));
  });
  return element("table", {}, element("tbody", {}, ...rows));
}

export function rankingScreen(actions: Actions): Screen {
  const content = element("div", { class: "scroll" }, element("p", { text: "Asking the master." }));
  void actions.api("GET", "/v1/ranking").then((answer) => {
    if (answer.status !== 200) return content.replaceChildren(element("p", { class: "error", text: reason(answer.body) }));
    const lines = listOf<RankingLine>(answer.body, "lines");
    return content.replaceChildren(lines.length === 0 ? element("p", { text: "Nobody has points yet. Be the first." }) : rankingTable(lines, actions.account));
  });
  const back = button("Back", () => actions.back());
  back.dataset.focus = "";
  return { name: "ranking", root: page("Ranking", [content, element("div", { class: "bar", attributes: { style: "margin-top:1.4rem" } }, back)], [keysHint()], "full"), back: () => actions.back() };
}

function rankingTable(lines: readonly RankingLine[], own: number | undefined): HTMLElement {
  const head = element("tr", {}, element("th", { text: "Place" }), element("th", { text: "Player" }), element("th", { class: "number", text: "Points" }), element("th", { class: "number", text: "Rating" }));
  const rows = lines.map((line) =>
    element(
      "tr",
      { class: line.account === own ? "own" : "" },
      element("td", { text: String(line.place) }),
      element("td", { text: nameOf(line) }),
      element("td", { class: "number", text: String(line.points) }),
      element("td", { class: "number", text: String(Math.round(line.rating)) }),
    ),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

/** Guests have no name at the master; the end of their number tells them apart. */
function nameOf({ name, account }: { name: string | null; account: number }): string {
  return name ?? `Guest ${String(account).slice(-4)}`;
}

function listOf<Item>(body: unknown, field: string): Item[] {
  if (Array.isArray(body)) return body as Item[];
  const list = (body as Record<string, unknown> | null)?.[field];
  return Array.isArray(list) ? (list as Item[]) : [];
}

function reason(body: unknown): string {
  const message = (body as { message?: unknown } | null)?.message;
  return typeof message === "string" ? message : "The master cannot be reached.";
}
