// Which screen is shown. One at a time; arrows move the focus, Escape goes back, and changing it makes a sound.

import { element, focusable, moveFocus } from "./dom.ts";

export interface Screen {
  name: string;
  root: HTMLElement;
  /** Escape; nothing happens without. */
  back?: () => void;
  /** Called when it goes. */
  leave?: () => void;
}

export class Screens {
  private shown: Screen | undefined;

  constructor(
    private readonly parent: HTMLElement,
    private readonly onMove: () => void,
  ) {}

  get current(): string {
    return this.shown?.name ?? "game";
  }

  show(screen: Screen): void {
    this.hide();
    this.shown = screen;
    screen.root.classList.add("screen");
    screen.root.dataset.screen = screen.name;
    this.parent.append(screen.root);
    const preferred = screen.root.querySelector<HTMLElement>("[data-focus]") ?? focusable(screen.root)[0];
    preferred?.focus();
  }

  hide(): void {
    this.shown?.leave?.();
    this.shown?.root.remove();
    this.shown = undefined;
  }

  /** Handles a key, and returns true if it was used. */
  key(key: string): boolean {
    const { shown } = this;
    if (shown === undefined) return false;
    if (key === "Escape" && shown.back !== undefined) {
      shown.back();
      return true;
    }
    const moved = moveFocus(shown.root, key);
    if (moved) this.onMove();
    return moved;
  }
}

/** The parts that most screens share: a heading, the content, a foot with the keys. */
export function page(heading: string, content: (HTMLElement | false)[], foot: (HTMLElement | string)[], style = "shade"): HTMLElement {
  return element("section", { class: style }, element("h2", { text: heading }), ...content, element("div", { class: "foot" }, ...foot));
}

export function keysHint(): HTMLElement {
  const hint = element("span");
  hint.innerHTML = "<kbd>↑</kbd> <kbd>↓</kbd> choose &nbsp; <kbd>Enter</kbd> take &nbsp; <kbd>Esc</kbd> back";
  return hint;
}
