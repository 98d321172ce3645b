// F3: what the network does, as small live charts; sliders that make this client's own link worse, and switches for what hides it.

import type { NetView } from "../model.ts";
import type { Conditions, Switches } from "../protocol.ts";
import { element, slider, toggle } from "./dom.ts";

interface Line {
  label: string;
  unit: string;
  digits: number;
  of: (net: NetView) => number;
  /** Top of the chart at least. */
  least: number;
}

interface Chart {
  line: Line;
  values: number[];
  canvas: HTMLCanvasElement;
  number: HTMLElement;
}

export class NetGraph {
  readonly root: HTMLElement;
  private readonly charts: Chart[];
  private readonly link: HTMLElement;
  private lastMispredictions = 0;
  private lastSampleMs = 0;
  private readonly conditions: Conditions = { kind: "conditions", delayMs: 0, jitterMs: 0, lossPercent: 0 };
  private readonly switches: Switches = { kind: "switches", prediction: true, interpolation: true, lagCompensation: true };

  constructor(send: (message: Conditions | Switches) => void) {
    this.charts = LINES.map((line) => ({ line, values: [], canvas: element("canvas"), number: element("b") }));
    this.link = element("span");
    const rows = this.charts.map(({ line, canvas, number }) => element("div", { class: "chart" }, element("span", { text: line.label }), canvas, number));
    const condition = (label: string, max: number, step: number, unit: string, field: "delayMs" | "jitterMs" | "lossPercent"): HTMLElement =>
      slider(label, { min: 0, max, step, value: 0, unit }, (value) => {
        this.conditions[field] = value;
        send({ ...this.conditions });
      });
    const technique = (label: string, field: "prediction" | "interpolation" | "lagCompensation"): HTMLElement =>
      toggle(label, true, (on) => {
        this.switches[field] = on;
        send({ ...this.switches });
      });
    this.root = element(
      "aside",
      { class: "netgraph", id: "netgraph", attributes: { "aria-label": "Network" } },
      this.link,
      ...rows,
      element("h3", { text: "Make this link worse" }),
      condition("Delay, each way", 400, 10, " ms", "delayMs"),
      condition("Jitter", 100, 5, " ms", "jitterMs"),
      condition("Loss", 40, 1, " %", "lossPercent"),
      element("h3", { text: "What hides it" }),
      technique("Prediction", "prediction"),
      technique("Interpolation", "interpolation"),
      technique("Lag compensation", "lagCompensation"),
    );
    this.root.hidden = true;
    // The Worker remembers what an earlier match had set; a new one begins with a good link.
    send({ ...this.conditions });
    send({ ...this.switches });
  }

  get open(): boolean {
    return !this.root.hidden;
  }

  toggle(): void {
    this.root.hidden = !this.root.hidden;
    const { activeElement } = document;
    if (this.root.hidden && activeElement instanceof HTMLElement && this.root.contains(activeElement)) activeElement.blur();
  }

  /** Takes a sample, ten times a second; draws only when open. */
  update(net: NetView, nowMs: number): void {
    if (nowMs - this.lastSampleMs < SAMPLE_MS) return;
    this.lastSampleMs = nowMs;
    const changed = Math.max(0, net.mispredictions - this.lastMispredictions);
    this.lastMispredictions = net.mispredictions;
    for (const chart of this.charts) {
      chart.values.push(chart.line.label === MISPREDICTIONS ? changed : chart.line.of(net));
      if (chart.values.length > SAMPLES) chart.values.shift();
      if (this.open) this.draw(chart, chart.line.of(net));
    }
    if (this.open) this.link.textContent = `${LINKS[net.link] ?? "?"}, ${net.snapshotsPerSecond.toFixed(0)} snapshots a second`;
  }

  private draw({ line, values, canvas, number }: Chart, value: number): void {
    number.textContent = `${value.toFixed(line.digits)}${line.unit}`;
    const width = SAMPLES;
    const height = 24;
    if (canvas.width !== width) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d");
    if (context === null) return;
    context.clearRect(0, 0, width, height);
    const top = Math.max(line.least, ...values) * 1.1;
    context.fillStyle = "#2fe6ff";
    for (const [index, sample] of values.entries()) {
      const tall = Math.max(sample > 0 ? 1 : 0, (sample / top) * height);
      context.fillRect(width - values.length + index, height - tall, 1, tall);
    }
  }
}

const MISPREDICTIONS = "Mispredictions";
const LINES: readonly Line[] = [
  { label: "Round trip", unit: " ms", digits: 0, of: (net) => net.rttMs, least: 60 },
  { label: "Jitter", unit: " ms", digits: 1, of: (net) => net.jitterMs, least: 10 },
  { label: "Loss", unit: " %", digits: 1, of: (net) => net.loss * 100, least: 5 },
  { label: "Input buffer", unit: " ticks", digits: 1, of: (net) => net.inputBufferTicks, least: 4 },
  { label: "Interpolation", unit: " ms", digits: 0, of: (net) => net.interpolationDelayMs, least: 100 },
  { label: MISPREDICTIONS, unit: "", digits: 0, of: (net) => net.mispredictions, least: 3 },
  { label: "In", unit: " kB/s", digits: 2, of: (net) => net.bytesInPerSecond / 1000, least: 4 },
  { label: "Out", unit: " kB/s", digits: 2, of: (net) => net.bytesOutPerSecond / 1000, least: 4 },
];
const LINKS = ["In this page", "WebTransport", "WebSocket"];
const SAMPLES = 120;
const SAMPLE_MS = 100;
