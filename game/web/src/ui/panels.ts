// Panels over the running game: the pause menu, the vote when a partner has dropped, the timeline of a replay, and short notices.

import { button, clock, element } from "./dom.ts";

export function pausePanel(actions: { resume(): void; settings(): void; leave(): void }): HTMLElement {
  const resume = button("Go on", actions.resume, { id: "resume" });
  resume.dataset.focus = "";
  return element(
    "div",
    { class: "pause", attributes: { role: "dialog", "aria-label": "Pause" } },
    element("h3", { text: "The match goes on without you" }),
    element("div", { class: "menu" }, resume, button("Settings", actions.settings, { id: "pause-settings" }), button("Leave the match", actions.leave, { id: "leave-match" })),
  );
}

export class VotePanel {
  readonly root: HTMLElement;
  private readonly time = element("b");
  private readonly tally = element("p");
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(name: string, seconds: number, choose: (choice: "continue" | "finish") => void) {
    const until = performance.now() + seconds * 1000;
    const refresh = (): void => { this.time.textContent = clock((until - performance.now()) / 1000); };
    this.timer = setInterval(refresh, 250);
    refresh();
    const go = button("Go on without", () => choose("continue"), { class: "main", id: "vote-continue" });
    go.dataset.focus = "";
    this.root = element(
      "div",
      { class: "vote", attributes: { role: "dialog", "aria-label": "Vote" } },
      element("h3", { text: `${name} has dropped` }),
      element("p", {}, "The place is kept for ", this.time, ". Go on without, or finish here?"),
      this.tally,
      element("div", { class: "bar" }, go, button("Finish", () => choose("finish"), { id: "vote-finish" })),
    );
  }

  votes(forward: number, finish: number): void {
    this.tally.textContent = `${forward} to go on, ${finish} to finish`;
  }

  close(): void {
    clearInterval(this.timer);
    this.root.remove();
  }
}

export interface TimelineActions {
  speed(speed: number): void;
  seek(tick: number): void;
  watch(slot: number): void;
  leave(): void;
}

export interface RecordingInfo {
  /** Ticks of its beginning and its end. */
  first: number;
  last: number;
  tickMs: number;
  names: readonly string[];
  /** Ticks at which something happened. */
  marks: readonly number[];
}

export class Timeline {
  readonly root: HTMLElement;
  private readonly range = element("input", { id: "timeline", attributes: { type: "range", min: "0", step: "1", "aria-label": "Time" } });
  private readonly time = element("span");
  private readonly views = element("div", { class: "choice" });
  private speed = 1;
  private dragging = false;

  constructor(
    private readonly recording: RecordingInfo,
    actions: TimelineActions,
  ) {
    const { first, last, names } = recording;
    this.range.min = String(first);
    this.range.max = String(last);
    const track = element("div", { class: "track" }, this.range);
    for (const mark of recording.marks.slice(0, MARKS_MAX)) {
      const share = (mark - first) / Math.max(1, last - first);
      track.append(element("i", { attributes: { style: `left:${share * 100}%` } }));
    }
    const play = button("Pause", () => {
      this.speed = this.speed === 0 ? 1 : 0;
      play.textContent = this.speed === 0 ? "Play" : "Pause";
      actions.speed(this.speed);
    }, { id: "replay-pause" });
    const faster = button("1×", () => {
      this.speed = this.speed >= 8 ? 1 : Math.max(1, this.speed) * 2;
      faster.textContent = `${this.speed}×`;
      play.textContent = "Pause";
      actions.speed(this.speed);
    });
    this.range.addEventListener("pointerdown", () => { this.dragging = true; });
    this.range.addEventListener("change", () => { this.dragging = false; });
    this.range.addEventListener("input", () => actions.seek(Number(this.range.value)));
    for (const [slot, name] of names.entries()) {
      if (name === "") continue;
      const view = button(name, () => actions.watch(slot), { class: "option" });
      view.dataset.slot = String(slot);
      this.views.append(view);
    }
    this.root = element("div", { class: "timeline" }, play, faster, track, this.time, this.views, button("Leave", actions.leave, { id: "replay-leave" }));
  }

  /** Shows where it is, whose view it is, and who is there to be watched. */
  update(tick: number, slot: number, present: ReadonlySet<number>): void {
    if (!this.dragging) this.range.value = String(Math.round(tick));
    const { first, last, tickMs } = this.recording;
    this.time.textContent = `${clock(((tick - first) * tickMs) / 1000)} / ${clock(((last - first) * tickMs) / 1000)}`;
    for (const view of this.views.querySelectorAll("button")) {
      view.setAttribute("aria-checked", String(view.dataset.slot === String(slot)));
      view.disabled = !present.has(Number(view.dataset.slot));
    }
  }
}

const MARKS_MAX = 300;
