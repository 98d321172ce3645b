// Makes the pictures of a film from a recorded match: the page plays the recording in Chromium, but by a clock of its own that stands still while a picture is
// drawn, so that a slow machine makes the same film as a fast one. `scripts/film.sh` records the match and turns the pictures into a film.
//
//   node film.mjs RECORDING DIRECTORY [SLOT@TICK ...]
//
// Serves dist/ (npm run build). Writes 0001.png and so on. Without shots it chooses those in which most happens. CHROMIUM names the browser, QUALITY the
// quality of the pictures.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createServer, preview } from "vite";
import { launch } from "./tests/browser.mjs";

const ROOT = fileURLToPath(new URL(".", import.meta.url));
const SIZE = { width: 1280, height: 720 };
const PICTURES_PER_SECOND = 20;
const TICKS_PER_SECOND = 50;
const SAMPLES_PER_SECOND = 10;
const SHOTS = 4;
const SHOT_SECONDS = 3;
/** Pictures before the first one that is kept, in which effects and movements begin. */
const WARM_UP = 6;

const [file, directory, ...given] = process.argv.slice(2);
if (file === undefined || directory === undefined) {
  console.error("usage: node film.mjs RECORDING DIRECTORY [SLOT@TICK ...]");
  process.exit(2);
}
const recording = readFileSync(file);
const shots = given.length > 0 ? given.map(parseShot) : await chooseShots();
console.log(`shots: ${shots.map(({ slot, tick }) => `${slot}@${tick}`).join(" ")}`);
await film();

function parseShot(text) {
  const [slot, tick] = text.split("@").map(Number);
  if (!Number.isInteger(slot) || !Number.isInteger(tick)) throw new Error(`${text} is not SLOT@TICK`);
  return { slot, tick };
}

// ---------------------------------------------------------------------------------------------------- which shots

/** The seconds in which most happens around one robot, in the order of the match. */
async function chooseShots() {
  const samples = await sample();
  const length = Math.round(SHOT_SECONDS * SAMPLES_PER_SECOND);
  const candidates = [];
  for (const slot of new Set(samples.flatMap(({ action }) => [...action.keys()]))) {
    for (let start = 0; start + length < samples.length; start += 1) {
      const part = samples.slice(start, start + length);
      if (part.some(({ action }) => !action.has(slot))) continue;
      candidates.push({ slot, start, score: part.reduce((sum, { action }) => sum + action.get(slot), 0) });
    }
  }
  candidates.sort((one, other) => other.score - one.score);
  const chosen = [];
  for (const candidate of candidates) {
    if (chosen.length === SHOTS) break;
    if (chosen.every(({ start }) => Math.abs(start - candidate.start) > length * 2)) chosen.push(candidate);
  }
  if (chosen.length === 0) throw new Error("the recording is too short for a film");
  chosen.sort((one, other) => one.start - other.start);
  return chosen.map(({ slot, start }) => ({ slot, tick: samples[start].tick }));
}

/** Rates what happens around each living robot, several times a second. */
async function sample() {
  const modules = await createServer({ root: ROOT, logLevel: "error", server: { middlewareMode: true }, appType: "custom", optimizeDeps: { noDiscovery: true } });
  try {
    const { Frame } = await modules.ssrLoadModule("/src/frame.ts");
    const { readMoment } = await modules.ssrLoadModule("/src/moment.ts");
    const { Stance } = await modules.ssrLoadModule("/src/model.ts");
    const { Solids } = await modules.ssrLoadModule("/src/solids.ts");
    const { Client, initSync } = await import("./src/wasm/biobot.js");
    initSync({ module: readFileSync(join(ROOT, "src/wasm/biobot_bg.wasm")) });
    const client = new Client();
    client.startReplay(0, recording);
    let range;
    let solids;
    for (let text = client.pollEvent(0); text !== undefined; text = client.pollEvent(0)) {
      const event = JSON.parse(text);
      if (event.type === "welcome") solids = new Solids(event.level.solids);
      if (event.type === "replay") range = event;
      if (event.type === "error") throw new Error(event.text);
    }
    const samples = [];
    let before;
    for (let { first: tick } = range; tick < range.ticks; tick += TICKS_PER_SECOND / SAMPLES_PER_SECOND) {
      client.handle(0, JSON.stringify({ kind: "replay", tick, speed: 0 }));
      const moment = readMoment(new Frame(client.frame(0).buffer));
      samples.push({ tick, action: actionIn(moment, before, Stance, solids) });
      before = moment;
    }
    return samples;
  } finally {
    await modules.close();
  }
}

/** By slot: what falls counts most, and a goal; then touches of the ball, shots and hits, then movement, doors and how many are near and seen. */
function actionIn(moment, before, Stance, solids) {
  const action = new Map();
  const awake = moment.enemies.filter(({ stance }) => stance !== Stance.Dead && stance !== Stance.Idle);
  const moving = moment.devices.filter(({ index, progress }) => before?.devices.some((old) => old.index === index && old.progress !== progress));
  const died = (list, old, dead) => list.filter((one) => dead(one) && old?.some((other) => other.entity === one.entity && !dead(other)));
  const [ball] = moment.balls;
  const scored = ball !== undefined && ball.restartTicks > 0 && before?.balls[0]?.restartTicks === 0;
  const fell = [...died(moment.enemies, before?.enemies, ({ stance }) => stance === Stance.Dead), ...died(moment.robots, before?.robots, ({ alive }) => !alive)];
  for (const robot of moment.robots) {
    if (!robot.alive) continue;
    const near = (list, metres) => list.filter(({ position }) => distanceSeen(robot.position, position, solids) < metres).length;
    const old = before?.robots.find(({ entity }) => entity === robot.entity);
    const fired = old === undefined || old.shots === robot.shots ? 0 : 3;
    const hurt = old !== undefined && old.health > robot.health ? 2 : 0;
    const runs = Math.hypot(...robot.velocity) > 2 ? 1 : 0;
    const ballMetres = ball === undefined ? Number.POSITIVE_INFINITY : distanceSeen(robot.position, ball.position, solids);
    const plays = (ballMetres < 2.5 ? 4 : 0) + (ballMetres < 6 ? 2 : 0) + (scored && ball.touched === robot.slot ? 30 : 0);
    const others = moment.robots.filter(({ alive, entity }) => alive && entity !== robot.entity);
    action.set(robot.slot, fired + hurt + runs + plays + 8 * near(fell, 14) + Math.min(1, near(moving, 9)) + Math.min(4, near([...awake, ...others], 12)));
  }
  return action;
}

/** Distance between two; infinite if the level is between them. */
function distanceSeen(from, to, solids) {
  const way = to.map((end, axis) => end - from[axis]);
  const distance = Math.hypot(...way);
  const { distance: free } = solids.cast([from[0], from[1] + 1, from[2]], way.map((part) => part / Math.max(distance, 1e-6)), distance);
  return free < distance - 1 ? Number.POSITIVE_INFINITY : distance;
}

// ---------------------------------------------------------------------------------------------------- pictures

async function film() {
  const server = await preview({ root: ROOT, logLevel: "error", preview: { host: "127.0.0.1", port: Number(process.env.PORT ?? 22030) } });
  const browser = await launch();
  try {
    const page = await browser.newPage({ viewport: SIZE });
    page.on("pageerror", (error) => { throw error; });
    await page.addInitScript(ownClock);
    await page.goto(`${server.resolvedUrls.local[0]}?quality=${process.env.QUALITY ?? "high"}`);
    await page.click("#watch");
    await page.setInputFiles("#replay-file", { name: basename(file), mimeType: "application/octet-stream", buffer: recording });
    await page.waitForFunction(() => window.biobot.screen === "game", undefined, { polling: 50, timeout: 120_000 });
    // The first one asks for a frame, the second one draws it.
    for (let asked = 0; asked < 2; asked += 1) await page.evaluate(() => window.film.step(50));
    for (let tries = 0; tries < 3 && (await page.evaluate(() => window.biobot.match.view)) !== "side"; tries += 1) await page.keyboard.press("KeyV");
    let number = 0;
    for (const { slot, tick } of shots) {
      await page.evaluate((at) => window.film.seek(at), { slot, tick: tick - (WARM_UP * TICKS_PER_SECOND) / PICTURES_PER_SECOND });
      const wanted = Math.round(SHOT_SECONDS * PICTURES_PER_SECOND);
      for (let shown = -WARM_UP; shown < wanted; shown += 1) {
        const picture = await page.evaluate((ms) => window.film.step(ms), 1000 / PICTURES_PER_SECOND);
        if (shown < 0) continue;
        number += 1;
        writeFileSync(join(directory, `${String(number).padStart(4, "0")}.png`), Buffer.from(picture.slice(picture.indexOf(",") + 1), "base64"));
      }
      console.log(`${number} of ${wanted * shots.length} pictures`);
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

/** In the page, before its own code: time goes on only by `film.step`, in the page and in its Worker. */
function ownClock() {
  let nowMs = 0;
  let worker;
  let onFrame = () => undefined;
  let callbacks = [];
  performance.now = () => nowMs;
  window.requestAnimationFrame = (callback) => callbacks.push(callback);
  const script = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const clock = script(`
    let nowMs = 0;
    performance.now = () => nowMs;
    self.setTimeout = () => 0;
    self.addEventListener("message", (message) => {
      if (message.data.kind !== "film-clock") return;
      nowMs = message.data.nowMs;
      message.stopImmediatePropagation();
    });`);
  window.Worker = class extends Worker {
    constructor(url, options) {
      super(script(`import "${clock}"; import "${new URL(url, location.href)}";`), options);
      worker = this;
      this.addEventListener("message", ({ data }) => data.kind === "frame" && onFrame());
    }
  };
  window.film = {
    seek: ({ slot, tick }) => worker.postMessage({ kind: "replay", slot, tick }),
    /** Lets time pass and returns the picture, as soon as the frame for the next one is there. */
    async step(ms) {
      nowMs += ms;
      worker.postMessage({ kind: "film-clock", nowMs });
      const frame = new Promise((resolve) => { onFrame = resolve; });
      const due = callbacks;
      callbacks = [];
      for (const callback of due) callback(nowMs);
      const picture = document.querySelector("#view").toDataURL("image/png");
      await frame;
      return picture;
    },
  };
}
