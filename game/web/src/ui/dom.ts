// Elements in one line each, and the keyboard: every screen can be walked with arrows, Tab, Enter and Escape.

type Child = Node | string | undefined | false;

interface Properties {
  class?: string;
  id?: string;
  text?: string;
  onClick?: () => void;
  attributes?: Record<string, string>;
}

export function element<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, properties: Properties = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  if (properties.class !== undefined) made.className = properties.class;
  if (properties.id !== undefined) made.id = properties.id;
  if (properties.text !== undefined) made.textContent = properties.text;
  if (properties.onClick !== undefined) made.addEventListener("click", properties.onClick);
  for (const [name, value] of Object.entries(properties.attributes ?? {})) made.setAttribute(name, value);
  for (const child of children) {
    if (child !== undefined && child !== false) made.append(child);
  }
  return made;
}

export function button(label: string, onClick: () => void, options: { class?: string; id?: string } = {}): HTMLButtonElement {
  const made = element("button", { class: options.class ?? "plain", text: label, onClick, attributes: { type: "button" } });
  if (options.id !== undefined) made.id = options.id;
  return made;
}

/** One of several; arrows left and right change it. */
export function choice<Value extends string>(label: string, values: readonly (readonly [Value, string])[], chosen: Value, onChange: (value: Value) => void): HTMLElement {
  const group = element("div", { class: "choice", attributes: { role: "radiogroup", "aria-label": label } });
  const buttons = values.map(([value, text]) => {
    const made = button(text, () => select(value), { class: "option" });
    made.dataset.value = value;
    made.setAttribute("role", "radio");
    return made;
  });
  const select = (value: Value): void => {
    for (const made of buttons) {
      const on = made.dataset.value === value;
      made.setAttribute("aria-checked", String(on));
    }
    onChange(value);
  };
  for (const made of buttons) made.setAttribute("aria-checked", String(made.dataset.value === chosen));
  group.append(...buttons);
  return row(label, group);
}

export function slider(label: string, range: { min: number; max: number; step: number; value: number; unit?: string }, onChange: (value: number) => void): HTMLElement {
  const input = element("input", { attributes: { type: "range", min: String(range.min), max: String(range.max), step: String(range.step), "aria-label": label } });
  input.value = String(range.value);
  const shown = element("output", { text: `${range.value}${range.unit ?? ""}` });
  input.addEventListener("input", () => {
    shown.textContent = `${input.value}${range.unit ?? ""}`;
    onChange(Number(input.value));
  });
  return row(label, element("div", { class: "slider" }, input, shown));
}

export function toggle(label: string, on: boolean, onChange: (on: boolean) => void): HTMLElement {
  const made = button(on ? "On" : "Off", () => {
    const next = made.getAttribute("aria-pressed") !== "true";
    made.setAttribute("aria-pressed", String(next));
    made.textContent = next ? "On" : "Off";
    onChange(next);
  }, { class: "toggle" });
  made.setAttribute("aria-pressed", String(on));
  made.setAttribute("aria-label", label);
  return row(label, made);
}

export function row(label: string, control: HTMLElement): HTMLElement {
  return element("div", { class: "row" }, element("span", { class: "label", text: label }), control);
}

/** Enter in a line of text. The key is used up, or it would press whatever has the focus next. */
export function onEnter(input: HTMLInputElement, act: () => void): void {
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    act();
  });
}

/** Moves the focus with the arrow keys; whether the key was used. */
export function moveFocus(root: HTMLElement, key: string): boolean {
  const active = document.activeElement;
  if (active instanceof HTMLInputElement && (active.type === "range" || key === "ArrowLeft" || key === "ArrowRight") && !key.endsWith("Down") && !key.endsWith("Up")) return false;
  const step = key === "ArrowDown" || key === "ArrowRight" ? 1 : key === "ArrowUp" || key === "ArrowLeft" ? -1 : 0;
  if (step === 0) return false;
  const targets = focusable(root);
  if (targets.length === 0) return false;
  const index = active instanceof HTMLElement ? targets.indexOf(active) : -1;
  targets[(index + step + targets.length) % targets.length]?.focus();
  return true;
}

/** Does what Enter, left and right do to the element with the focus, for a gamepad: presses a button, moves a slider. */
export function take(key: string): void {
  const active = document.activeElement;
  if (active instanceof HTMLButtonElement && key === "Enter") active.click();
  if (!(active instanceof HTMLInputElement)) return;
  if (active.type === "range" && (key === "ArrowLeft" || key === "ArrowRight")) {
    if (key === "ArrowRight") active.stepUp();
    else active.stepDown();
    active.dispatchEvent(new Event("input", { bubbles: true }));
  } else if (active.type === "text" && key === "Enter") {
    active.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
  }
}

export function focusable(root: HTMLElement): HTMLElement[] {
  return Array.from(root.querySelectorAll<HTMLElement>("button:not([disabled]), input, select")).filter((found) => found.offsetParent !== null);
}

/** "1:05". */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
