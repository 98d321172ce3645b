// The first screen, and the one after signing in: the name of the game, and what to do.

import { NAME_LENGTH_MAX } from "../settings.ts";
import type { Actions } from "./actions.ts";
import { button, element, onEnter } from "./dom.ts";
import { keysHint, type Screen } from "./screens.ts";

export function titleScreen(actions: Actions): Screen {
  const name = element("input", { id: "name", attributes: { type: "text", placeholder: "Your name", maxlength: String(NAME_LENGTH_MAX), autocomplete: "nickname", "aria-label": "Your name" } });
  name.value = actions.settings.name;
  name.dataset.focus = "";
  const enter = (): void => actions.signIn(name.value.trim() === "" ? "Guest" : name.value.trim());
  onEnter(name, enter);
  const root = element(
    "section",
    { class: "shade" },
    heading(),
    element("p", { class: "lead", text: "Two robots, one way out. Open the doors together, or settle it in the arena." }),
    name,
    element("div", { class: "bar", attributes: { style: "margin:1.4rem 0 2.2rem" } }, button("Play as guest", enter, { class: "main", id: "guest" })),
    element(
      "div",
      { class: "menu" },
      button("Practice", () => actions.show("practice"), { id: "practice" }),
      button("Watch", () => actions.show("watch"), { id: "watch" }),
      button("Settings", () => actions.show("settings"), { id: "settings" }),
    ),
    element("div", { class: "foot" }, keysHint(), element("span", { text: "Practice needs no server" })),
  );
  return { name: "title", root };
}

export function homeScreen(actions: Actions): Screen {
  const status = element("span", { class: "status" });
  const refresh = (): void => {
    const { text, online } = actions.masterStatus;
    status.replaceChildren(element("i", { class: "dot", attributes: { style: `color:var(--${online ? "good" : "second"})` } }), text);
  };
  refresh();
  const timer = setInterval(refresh, 500);
  const play = button("Play", () => actions.show("play"), { id: "play" });
  play.dataset.focus = "";
  const root = element(
    "section",
    { class: "shade" },
    heading(),
    element("p", { class: "lead", text: `Welcome, ${actions.settings.name}.` }),
    element(
      "div",
      { class: "menu" },
      play,
      button("Friends", () => actions.show("friends"), { id: "friends" }),
      button("Practice", () => actions.show("practice"), { id: "practice" }),
      button("Watch", () => actions.show("watch"), { id: "watch" }),
      button("Ranking", () => actions.show("ranking"), { id: "ranking" }),
      button("Settings", () => actions.show("settings"), { id: "settings" }),
    ),
    element("div", { class: "foot" }, keysHint(), status),
  );
  return { name: "home", root, back: () => actions.show("title"), leave: () => clearInterval(timer) };
}

function heading(): HTMLElement {
  return element("h1", {}, "Bio", element("span", { class: "bright", text: "bot" }));
}
