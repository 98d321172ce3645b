// The page alone, without any server: keyboard and gamepad through the screens and into a match, both views, and the net graph with its sliders and switches.
//
//   node tests/page.mjs
//
// Serves dist/ (npm run build). CHROMIUM names the browser, PICTURES a directory for pictures.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { preview } from "vite";
import { launch } from "./browser.mjs";
import { install } from "./pilot.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Long: a busy machine is no failure. */
const PATIENCE_MS = 90_000;
/** On loopback, on a quiet machine, the first picture is there within 3 s; what is asserted leaves room for a busy one. */
const FIRST_PICTURE_MS_MAX = 30_000;

const pictures = process.env.PICTURES;
if (pictures !== undefined) mkdirSync(pictures, { recursive: true });
const server = await preview({ root: ROOT, logLevel: "error", preview: { host: "127.0.0.1", port: Number(process.env.PORT ?? 22020) } });
const address = server.resolvedUrls.local[0];
const browser = await launch();
const tests = [
  ["the first picture comes soon", firstPicture],
  ["the keyboard alone plays", keyboard],
  ["a gamepad alone plays", gamepad],
  ["versus is seen in first person", versus],
  ["with the ball: a run, a push, a kick, and the score", ball],
  ["the net graph shows what its sliders do, and nothing jumps", sliders],
  ["the switches show what each technique hides", switches],
];
let failed = 0;
try {
  for (const [name, test] of tests) {
    const begin = performance.now();
    const page = await open();
    try {
      await test(page);
      console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}: ${error.stack ?? error}\n        ${JSON.stringify(await page.evaluate(() => window.biobot.match?.net).catch(String))}`);
      if (pictures !== undefined) await page.screenshot({ path: join(pictures, `failed-${failed}.png`) }).catch(() => {});
    } finally {
      await page.context().close();
    }
  }
} finally {
  await browser.close();
  await server.close();
}
console.log(`page: ${tests.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

async function firstPicture(page) {
  const took = await page.evaluate(() => window.biobot.firstPictureMs);
  const begin = performance.now();
  await practice(page, "cooperative");
  console.log(`        first picture after ${Math.round(took)} ms, a match ${Math.round(performance.now() - begin)} ms after it was asked for`);
  assert.ok(took > 0 && took < FIRST_PICTURE_MS_MAX, `${took} ms`);
}

/** Nothing but keys, from the first screen into a match and out again. */
async function keyboard(page) {
  await page.keyboard.type("Ada");
  await page.keyboard.press("Enter");
  await until(page, "home", () => window.biobot.screen === "home");
  for (const screen of ["play", "friends", "practice", "watch", "ranking", "settings"]) {
    await choose(page, `#${screen}`);
    await page.keyboard.press("Enter");
    await until(page, screen, (name) => window.biobot.screen === name, screen);
    await reachEverything(page);
    await page.keyboard.press("Escape");
    await until(page, "home", () => window.biobot.screen === "home");
  }
  await choose(page, "#practice");
  await page.keyboard.press("Enter");
  await choose(page, "#start-practice");
  await page.keyboard.press("Enter");
  await playing(page);
  const before = await page.evaluate(() => ({ yaw: window.biobot.match.yaw, at: window.biobot.match.position }));
  await page.keyboard.down("ArrowLeft");
  await until(page, "a turn", (yaw) => Math.abs(window.biobot.match.yaw - yaw) > 0.3, before.yaw);
  await page.keyboard.up("ArrowLeft");
  await page.keyboard.down("KeyS");
  await until(page, "a step", ([x, , z]) => Math.hypot(window.biobot.match.position[0] - x, window.biobot.match.position[2] - z) > 0.5, before.at);
  await page.keyboard.up("KeyS");
  await page.keyboard.press("Escape");
  await choose(page, "#leave-match");
  await page.keyboard.press("Enter");
  await until(page, "home", () => window.biobot.screen === "home");
}

/** Goes down with the arrow until something has the focus. */
async function choose(page, selector) {
  const size = await page.evaluate(() => document.querySelectorAll("button, input").length);
  for (let tries = 0; tries <= size + 1; tries += 1) {
    if (await page.evaluate((selector) => document.activeElement?.matches(selector), selector)) return;
    await page.keyboard.press("ArrowDown");
  }
  throw new Error(`arrows do not lead to ${selector}`);
}

/** Everything that can be used on a screen is reached with the arrow, and then the first again. */
async function reachEverything(page) {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll(".screen button:not([disabled]), .screen input")].filter((found) => found.offsetParent !== null);
    for (const [index, found] of all.entries()) found.dataset.reach = String(index);
    return all.length;
  });
  const reached = new Set();
  for (let press = 0; press < wanted; press += 1) {
    await page.keyboard.press("ArrowDown");
    reached.add(await page.evaluate(() => document.activeElement?.dataset.reach));
  }
  assert.equal(reached.size, wanted, "arrows reach everything");
}

async function gamepad(page) {
  await tap(page, 13);
  await until(page, "the focus on the button", () => document.activeElement?.id === "guest");
  await tap(page, 0);
  await until(page, "home", () => window.biobot.screen === "home");
  while ((await page.evaluate(() => document.activeElement?.id)) !== "settings") await tap(page, 13);
  await tap(page, 0);
  await until(page, "settings", () => window.biobot.screen === "settings");
  while ((await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))) !== "Sensitivity") await tap(page, 13);
  await tap(page, 15);
  await until(page, "the slider", () => document.activeElement?.value === "1.05");
  await tap(page, 1);
  await until(page, "home", () => window.biobot.screen === "home");
  while ((await page.evaluate(() => document.activeElement?.id)) !== "practice") await tap(page, 13);
  await tap(page, 0);
  await tap(page, 0);
  await playing(page);
  const [x, , z] = await page.evaluate(() => window.biobot.match.position);
  await page.evaluate(() => { window.fakePad.axes[1] = 1; });
  await until(page, "a step back", ([x, z]) => Math.hypot(window.biobot.match.position[0] - x, window.biobot.match.position[2] - z) > 0.5, [x, z]);
  await page.evaluate(() => { window.fakePad.axes[1] = 0; });
  await tap(page, 9);
  await page.waitForSelector("#resume");
  await tap(page, 9);
  await page.waitForSelector("#resume", { state: "detached" });
}

/** Presses a button of the gamepad until the page has seen it, and lets go. */
async function tap(page, button) {
  await page.evaluate(async (button) => {
    const pictures = async (count) => {
      for (let seen = 0; seen < count; seen += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
    };
    window.fakePad.buttons[button].pressed = true;
    await pictures(2);
    window.fakePad.buttons[button].pressed = false;
    await pictures(2);
  }, button);
}

async function versus(page) {
  await practice(page, "versus");
  assert.equal(await page.evaluate(() => window.biobot.match.view), "first");
  assert.equal(await page.evaluate(() => window.biobot.match.mode), "Versus");
  await until(page, "the others", () => window.biobot.match.others.length === 5);
  // Who appears looks into the arena, whose middle is at zero, and not at the wall behind.
  const { yaw, position } = await page.evaluate(() => window.biobot.match);
  const towards = (Math.sin(yaw) * position[0] + Math.cos(yaw) * position[2]) / Math.hypot(position[0], position[2]);
  assert.ok(towards > 0.9, `looks at ${yaw} from ${position}`);
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, "versus-first.png") });
  await page.keyboard.press("KeyV");
  await until(page, "the other view", () => window.biobot.match.view === "shoulder");
}

/** Runs at the ball from the kick-off, pushes it, and kicks it where it looks until somebody scores. */
async function ball(page) {
  await practice(page, "ball");
  const start = await page.evaluate(() => window.biobot.match);
  assert.deepEqual([start.mode, start.view, start.goals], ["Ball", "shoulder", [0, 0]]);
  await until(page, "the others", () => window.biobot.match.others.length === 3);
  await page.waitForSelector("#score:visible");
  const [x, , z] = start.ball.position;
  // Team 0 looks along +x, with the ball before it.
  assert.ok(Math.abs(start.yaw + Math.PI / 2) < 0.1, `looks at ${start.yaw}`);
  await page.keyboard.down("KeyW");
  // Somebody touches it soon: this robot is as near to it as its opponent.
  await until(page, "a touch", () => window.biobot.match.ball.touched >= 0);
  await until(page, "a ball that moves", ([x, z]) => Math.hypot(window.biobot.match.ball.position[0] - x, window.biobot.match.ball.position[2] - z) > 0.5, [x, z]);
  if (pictures !== undefined) await page.screenshot({ path: join(pictures, "ball.png") });
  await page.keyboard.up("KeyW");
  // After it, with the look on it, until it can be kicked; the touch then is ours.
  await page.evaluate(() => {
    const chase = () => {
      const { match } = window.biobot;
      if (match?.ball === undefined || match.position === undefined) return;
      const [bx, , bz] = match.ball.position;
      let [dx, dz] = [bx - match.position[0], bz - match.position[2]];
      // Once it has kicked it scores, too: it goes round the ball until that is between it and the goal of the others, at x = 26.
      const far = Math.hypot(26 - bx, bz);
      const [ux, uz] = [(26 - bx) / far, -bz / far];
      const along = dx * ux + dz * uz;
      const beside = dx * uz - dz * ux;
      if (window.scoring && along < 0.9 * Math.hypot(dx, dz)) {
        const round = along < 1 && Math.abs(beside) < 2.5 ? (beside < 0 ? 2.5 : -2.5) : 0;
        [dx, dz] = [dx - 2.5 * ux - round * uz, dz - 2.5 * uz + round * ux];
      }
      window.biobot.look(Math.atan2(-dx, -dz), 0);
      const press = (kind, code) => dispatchEvent(new KeyboardEvent(kind, { code }));
      press("keydown", "KeyW");
      press(match.ball.kickable && !window.kicked ? "keydown" : "keyup", "KeyE");
      window.kicked = match.ball.kickable && !window.kicked;
    };
    window.chasing = setInterval(chase, 30);
  });
  await until(page, "a kick of our own", () => window.biobot.match.ball.touched === window.biobot.match.slot && Math.hypot(...window.biobot.match.ball.velocity) > 7);
  await page.keyboard.press("Tab");
  // The bots alone may push against each other for minutes.
  await page.evaluate(() => (window.scoring = true));
  await until(page, "a goal", () => window.biobot.match.goals[0] + window.biobot.match.goals[1] > 0, undefined, 3 * PATIENCE_MS);
  await page.evaluate(() => clearInterval(window.chasing));
  const goals = await page.evaluate(() => window.biobot.match.goals);
  assert.equal(await page.evaluate(() => document.querySelector("#score").textContent.replaceAll(" ", "")), goals.join(":"));
  await until(page, "a kick-off", () => window.biobot.match.ball.inPlay && Math.hypot(window.biobot.match.ball.position[0], window.biobot.match.ball.position[2]) < 8);
}

async function sliders(page) {
  await practice(page, "versus");
  await page.keyboard.press("F3");
  await page.waitForSelector("#netgraph:visible");
  const jumps = () => page.evaluate(() => window.biobot.match.net.jumps);
  for (const [label, value, shown] of [
    ["Delay, each way", "200", () => window.biobot.match.net.rttMs > 350],
    ["Loss", "20", () => window.biobot.match.net.loss > 0.08],
  ]) {
    await page.getByLabel(label, { exact: true }).fill(value);
    await until(page, `${label} ${value}`, shown);
    if (pictures !== undefined) await page.screenshot({ path: join(pictures, `network-${label.split(",")[0].toLowerCase()}.png`) });
    // Four seconds of the game while five others run about: nothing may jump. A machine that stands still for a moment makes a step too, but hardly three times in a row.
    let steps = 1;
    for (let stretch = 0; stretch < 3 && steps > 0; stretch += 1) {
      const before = await jumps();
      await ticks(page, 200);
      steps = (await jumps()) - before;
    }
    assert.equal(steps, 0, `steps beyond the speed of others at ${label} ${value}`);
    await page.getByLabel(label, { exact: true }).fill("0");
    await until(page, "a good link", () => window.biobot.match.net.conditionDelayMs === 0 && window.biobot.match.net.conditionLoss === 0);
  }
}

async function switches(page) {
  await practice(page, "cooperative");
  await page.keyboard.press("F3");
  await page.getByLabel("Delay, each way", { exact: true }).fill("200");
  await until(page, "the delay", () => window.biobot.match.net.rttMs > 350);
  const predicted = await answerMs(page);
  await page.getByLabel("Prediction", { exact: true }).click();
  await until(page, "no prediction", () => window.biobot.match.net.prediction === 0);
  const waited = await answerMs(page);
  console.log(`        a key is answered after ${Math.round(predicted)} ms with prediction, ${Math.round(waited)} ms without, at 400 ms round trip`);
  assert.ok(waited >= 400 && waited > predicted + 150, `${predicted} ms and ${waited} ms`);
  // Others who run about: single snapshots are further apart than steps of a robot.
  await page.keyboard.press("Escape");
  await page.click("#leave-match");
  await until(page, "the title", () => window.biobot.screen === "title");
  await practice(page, "versus");
  await page.keyboard.press("F3");
  await page.getByLabel("Interpolation", { exact: true }).click();
  await page.getByLabel("Loss", { exact: true }).fill("20");
  await until(page, "no interpolation", () => window.biobot.match.net.interpolation === 0);
  const before = await page.evaluate(() => window.biobot.match.net.jumps);
  await until(page, "steps", (before) => window.biobot.match.net.jumps > before, before);
  await page.getByLabel("Lag compensation", { exact: true }).click();
  await until(page, "no lag compensation", () => window.biobot.match.net.lagCompensation === 0);
}

/** Milliseconds from a key to the robot's first movement, in the page: the quickest of some, since the machine may be busy. */
async function answerMs(page) {
  let quickest = Number.POSITIVE_INFINITY;
  for (const code of ["KeyW", "KeyS", "KeyW", "KeyS", "KeyW"]) quickest = Math.min(quickest, await page.evaluate(answered, code));
  return quickest;
}

async function answered(code) {
  const at = () => window.biobot.match.newest.position;
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const still = async () => {
    for (let seen = 0, last = at(); seen < 30; last = at()) {
      await wait(25);
      seen = Math.hypot(at()[0] - last[0], at()[2] - last[2]) < 0.001 ? seen + 1 : 0;
    }
  };
  await still();
  const [x, , z] = at();
  const begin = performance.now();
  dispatchEvent(new KeyboardEvent("keydown", { code }));
  while (Math.hypot(at()[0] - x, at()[2] - z) < 0.02) await wait(4);
  const took = performance.now() - begin;
  dispatchEvent(new KeyboardEvent("keyup", { code }));
  return took;
}

// ---------------------------------------------------------------------------------------------------- helpers

async function open() {
  const context = await browser.newContext({ viewport: { width: 640, height: 360 } });
  await context.addInitScript(install);
  await context.addInitScript(() => {
    const button = () => ({ pressed: false, touched: false, value: 0 });
    window.fakePad = { connected: true, mapping: "standard", axes: [0, 0, 0, 0], buttons: Array.from({ length: 17 }, button) };
    navigator.getGamepads = () => [window.fakePad];
  });
  const page = await context.newPage();
  page.on("pageerror", (error) => console.log(`        ${error.message}`));
  await page.goto(`${address}?quality=low`);
  await until(page, "the title", () => window.biobot?.screen === "title" && window.biobot.firstPictureMs !== undefined);
  return page;
}

async function practice(page, game) {
  await page.click("#practice");
  await page.click(`[data-value="${game}"]`);
  await page.click("#start-practice");
  await playing(page);
}

async function playing(page) {
  await until(page, "a match that is played", () => window.biobot.match?.phase === "Playing" && window.biobot.match.newest !== undefined);
}

async function ticks(page, count) {
  const from = await page.evaluate(() => window.biobot.match.tick);
  await until(page, `${count} ticks`, (until) => window.biobot.match.tick >= until, from + count);
}

async function until(page, what, test, argument, patience = PATIENCE_MS) {
  await page.waitForFunction(test, argument, { timeout: patience, polling: 30 }).catch((error) => {
    throw new Error(`waited in vain for ${what}: ${error.message.split("\n")[0]}`);
  });
}
