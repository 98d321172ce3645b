// Chat in the game: the last lines, which fade, and a line to write.

import { playerStyle } from "../render/palette.ts";
import { element } from "./dom.ts";

export class Chat {
  readonly root: HTMLElement;
  readonly log: { slot: number; text: string }[] = [];
  private readonly lines = element("div", { class: "lines", attributes: { role: "log" } });
  private readonly input = element("input", { id: "chat-input", attributes: { type: "text", maxlength: "200", "aria-label": "Say something" } });

  constructor(
    private readonly say: (text: string) => void,
    private readonly closed: () => void,
  ) {
    this.input.hidden = true;
    this.root = element("div", { class: "chat" }, this.lines, this.input);
    this.input.addEventListener("keydown", (event) => this.key(event));
  }

  get open(): boolean {
    return !this.input.hidden;
  }

  begin(): void {
    this.input.hidden = false;
    this.input.value = "";
    this.input.focus();
  }

  add(slot: number, name: string, text: string): void {
    this.log.push({ slot, text });
    if (this.log.length > LOG_MAX) this.log.shift();
    const line = element("div", {}, element("b", { text: name, attributes: { style: `color:${playerStyle(slot)}` } }), text);
    this.lines.append(line);
    while (this.lines.childElementCount > LINES_SHOWN) this.lines.firstElementChild?.remove();
    setTimeout(() => { line.style.opacity = "0"; }, FADE_MS);
    setTimeout(() => line.remove(), FADE_MS + 1000);
  }

  private key(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    const text = this.input.value.trim();
    if (event.key === "Enter" && text !== "") this.say(text);
    this.input.hidden = true;
    this.input.blur();
    this.closed();
  }
}

const LINES_SHOWN = 6;
const LOG_MAX = 100;
const FADE_MS = 9000;
