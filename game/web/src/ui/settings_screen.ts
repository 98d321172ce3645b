// Settings: every change is saved at once. A key is changed by choosing its action and pressing the new one.

import { ACTIONS, type Action, DEFAULT_KEYS, keyLabel, type Quality, rebind } from "../settings.ts";
import type { Actions } from "./actions.ts";
import { button, choice, element, slider, toggle } from "./dom.ts";
import { keysHint, page, type Screen } from "./screens.ts";

export function settingsScreen(actions: Actions, captureKey: (take: (key: string) => void) => void): Screen {
  const { settings } = actions;
  const save = (): void => actions.saveSettings();
  const keys = element("div", { class: "keys" });
  const drawKeys = (): void => {
    keys.replaceChildren(...ACTIONS.map(({ action, label }) => keyRow(action, label)));
  };
  const keyRow = (action: Action, label: string): HTMLElement => {
    const made = button(keyLabel(settings.keys[action]), () => {
      made.textContent = "Press a key";
      made.classList.add("waiting");
      captureKey((key) => {
        if (key !== "Escape") rebind(settings, action, key);
        save();
        drawKeys();
        keys.querySelector<HTMLElement>(`[data-action="${action}"]`)?.focus();
      });
    });
    made.dataset.action = action;
    return element("div", { class: "row" }, element("span", { class: "label", text: label }), made);
  };
  drawKeys();
  const general = element(
    "div",
    {},
    element("h3", { text: "Picture" }),
    choice<Quality>("Quality", [["low", "Low"], ["medium", "Medium"], ["high", "High"]], settings.quality, (value) => {
      settings.quality = value;
      save();
    }),
    toggle("Camera shake", settings.shake, (on) => {
      settings.shake = on;
      save();
    }),
    element("h3", { text: "Mouse and stick" }),
    slider("Sensitivity", { min: 0.2, max: 3, step: 0.05, value: settings.sensitivity }, (value) => {
      settings.sensitivity = value;
      save();
    }),
    toggle("Invert up and down", settings.invertPitch, (on) => {
      settings.invertPitch = on;
      save();
    }),
    element("h3", { text: "Sound" }),
    slider("Volume", { min: 0, max: 1, step: 0.05, value: settings.volume }, (value) => {
      settings.volume = value;
      save();
    }),
  );
  const reset = button("Usual keys", () => {
    settings.keys = { ...DEFAULT_KEYS };
    save();
    drawKeys();
  });
  const keysColumn = element("div", { class: "scroll" }, element("h3", { text: "Keys" }), keys);
  const back = button("Done", () => actions.back(), { class: "main" });
  const ends = element("div", { class: "bar" }, reset, back);
  return {
    name: "settings",
    root: page("Settings", [element("div", { class: "columns" }, general, keysColumn)], [keysHint(), ends], "full"),
    back: () => actions.back(),
  };
}
