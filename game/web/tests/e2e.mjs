// The whole game end to end: `muse up`, two people in a real browser, and everything that can happen to them.
//
//   node tests/e2e.mjs [program]
//
// The program is `muse`, built by cargo unless it is named; the page must have been built (`make page`). Pictures of every screen are kept in the
// directory that PICTURES names, else in a new one that is printed. CHROMIUM names another browser.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), "biobot-pictures-"));
mkdirSync(pictures, { recursive: true });
const data = mkdtempSync(join(tmpdir(), "biobot-e2e-"));
const program = process.argv[2] ?? build();
const firstPort = 25_600;

const up = await start();
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--mute-audio"],
});
let failed = 0;
const steps = [
  ["two players sign in", signIn],
  ["every screen can be seen", screens],
  ["they queue and are in a match together", queue],
  ["they move and see each other", move],
  ["they talk", chat],
  ["one opens the first door for both", firstDoor],
  ["both open the second door together", secondDoor],
  ["who is cut off for 5 s comes back into the match", () => cutOff(5)],
  ["who is cut off for 15 s is returned to the master", cutOffTooLong],
  ["the server is killed and both return to the master", killed],
  ["an invitation brings friends into the same match", invitation],
];
const players = [];
try {
  for (const name of ["Ada", "Grace"]) players.push(await player(name));
  for (const [name, step] of steps) {
    const begin = performance.now();
    try {
      await step();
      console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}: ${error.stack ?? error}`);
      for (const page of players) await picture(page, `failed-${page.player}`).catch(() => {});
      for (const page of players) console.log(`        ${page.player}: ${JSON.stringify(await state(page).catch(String))}`);
      break;
    }
  }
} finally {
  await browser.close();
  up.kill("SIGTERM");
  rmSync(data, { recursive: true, force: true });
}
console.log(`pictures in ${pictures}`);
console.log(`e2e: ${failed === 0 ? steps.length : "not all"} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

// ---------------------------------------------------------------------------------------------------- the steps

async function signIn() {
  for (const page of players) {
    await page.goto(`${up.url}?quality=low`);
    await page.waitForSelector("#name");
    if (page === players[0]) await picture(page, "title");
    await page.fill("#name", page.player);
    await page.click("#guest");
    await until(page, "online", () => window.biobot.online);
  }
  const accounts = await Promise.all(players.map((page) => page.evaluate(() => window.biobot.account)));
  assert.notEqual(accounts[0], accounts[1]);
}

async function screens() {
  const [page] = players;
  await picture(page, "home");
  for (const screen of ["play", "friends", "practice", "watch", "ranking", "settings"]) {
    await page.click(`#${screen}`);
    await until(page, screen, (name) => window.biobot.screen === name, screen);
    await picture(page, screen);
    await page.keyboard.press("Escape");
    await until(page, "home", () => window.biobot.screen === "home");
  }
}

async function queue() {
  for (const page of players) {
    await page.click("#play");
    await page.waitForSelector("#find");
    await page.click("#find");
    if (page === players[0]) {
      await until(page, "the queue", () => window.biobot.screen === "queue");
      await picture(page, "queue");
    }
  }
  await Promise.all(players.map(playing));
  for (const page of players) await until(page, "both names", () => window.biobot.match?.names.filter((name) => name !== "").length === 2);
}

async function move() {
  await walk(players[0], [[-4, 3]]);
  await walk(players[1], [[4, 3]]);
  for (const [index, page] of players.entries()) {
    const there = await players[1 - index].evaluate(() => window.biobot.match.position);
    const seen = ([x, , z]) => window.biobot.match.others.some(({ position }) => Math.hypot(position[0] - x, position[2] - z) < 0.5);
    await until(page, "the other where he is", seen, there);
    await picture(page, `match-${page.player}`);
  }
}

async function chat() {
  const [one, other] = players;
  await one.keyboard.press("Enter");
  await one.waitForSelector("#chat-input:visible");
  await one.keyboard.type("to the lever");
  await one.keyboard.press("Enter");
  await until(other, "the line", () => window.biobot.match.chat.some(({ text }) => text === "to the lever"));
  await picture(other, "chat");
}

async function firstDoor() {
  await Promise.all(players.map((page, index) => overBarrierAndGap(page, index === 0 ? -4 : 4)));
  const [one] = players;
  const slot = await one.evaluate(() => window.biobot.match.slot);
  assert.ok(slot === 0 || slot === 1);
  await walk(one, [[6.6, -12.5]], 0.5);
  await face(one, [7.7, -12.5]);
  await use(one, () => window.biobot.match.doors["door-a"] > 0.9);
  for (const page of players) await until(page, "the open door", () => window.biobot.match.doors["door-a"] > 0.9);
  await picture(one, "door");
}

async function secondDoor() {
  const [one, other] = await bySlot();
  await Promise.all([
    walk(one, [[0, -13], [0, -16], [-8.4, -17], [-8.4, -23], [-8.6, -26]], 0.6),
    walk(other, [[0, -12.8], [0, -16], [8, -20], [8.6, -24]], 0.6),
  ]);
  await face(one, [-9.6, -26]);
  await face(other, [9.7, -24]);
  const open = () => window.biobot.match.doors["door-b"] > 0.9;
  await Promise.all([use(one, open), use(other, open)]);
  await picture(other, "door-together");
}

async function cutOff(seconds) {
  const [one, other] = players;
  const before = await one.evaluate(() => window.biobot.match.slot);
  await cut(one, true);
  await until(one, "the interruption", () => window.biobot.match?.interrupted === true || window.biobot.screen !== "game");
  await picture(one, "interrupted");
  await other.waitForTimeout(seconds * 1000 - 2500);
  await cut(one, false);
  await until(one, "the match again", () => window.biobot.screen === "game" && window.biobot.match?.interrupted === false);
  assert.equal(await one.evaluate(() => window.biobot.match.slot), before);
  await walkAnywhere(one);
}

async function cutOffTooLong() {
  const [one, other] = players;
  await cut(one, true);
  await until(other, "the vote", () => document.querySelector(".vote") !== null || window.biobot.match?.others.length === 0);
  await picture(other, "vote");
  await until(one, "the master", () => window.biobot.screen === "home" && window.biobot.online);
  await picture(one, "returned");
  await cut(one, false);
}

async function killed() {
  for (const page of players) await home(page);
  await queue();
  const server = gameServer();
  process.kill(server, "SIGKILL");
  for (const page of players) await until(page, "the master", () => window.biobot.screen === "home" && window.biobot.online);
  await picture(players[0], "server-lost");
}

async function invitation() {
  const [one, other] = players;
  for (const page of players) await home(page);
  await one.click("#friends");
  await one.click("#make-room");
  await until(one, "a room", () => window.biobot.room !== undefined);
  const code = await one.evaluate(() => window.biobot.room);
  await picture(one, "room");
  await other.click("#friends");
  await other.fill("#room-join", code);
  await other.press("#room-join", "Enter");
  await until(other, "the room", (wanted) => window.biobot.room === wanted, code);
  for (const page of players) await home(page);
  // Whoever made the room asks for a match for all in it.
  await one.click("#play");
  await one.click("#find");
  await Promise.all(players.map(playing));
}

// ---------------------------------------------------------------------------------------------------- what players do

async function player(name) {
  const context = await browser.newContext({ viewport: { width: 640, height: 360 } });
  // The page's Worker, to cut its own link.
  await context.addInitScript(() => {
    const Original = window.Worker;
    window.Worker = class extends Original {
      constructor(...given) {
        super(...given);
        window.testWorker = this;
      }
    };
  });
  const page = await context.newPage();
  page.player = name;
  page.on("pageerror", (error) => console.log(`        ${name}: ${error.message}`));
  return page;
}

async function playing(page) {
  await until(page, "a match that is played", () => window.biobot.match?.phase === "Playing" && window.biobot.match.position !== undefined);
}

async function bySlot() {
  const slot = await players[0].evaluate(() => window.biobot.match.slot);
  return slot === 0 ? players : [players[1], players[0]];
}

/** Walks along points on the ground, looking where it goes. */
async function walk(page, points, near = 0.8) {
  for (const point of points) {
    await page.keyboard.down("KeyW");
    try {
      await steer(page, point, near);
    } finally {
      await page.keyboard.up("KeyW");
    }
  }
}

async function walkAnywhere(page) {
  const [x, , z] = await page.evaluate(() => window.biobot.match.position);
  await walk(page, [[x * 0.8, z + 1]], 0.5);
}

async function steer(page, [x, z], near) {
  await until(
    page,
    `${x}, ${z}`,
    ([x, z, near]) => {
      const { position } = window.biobot.match;
      const [dx, dz] = [x - position[0], z - position[2]];
      window.biobot.look(Math.atan2(-dx, -dz), 0);
      return Math.hypot(dx, dz) < near;
    },
    [x, z, near],
    20_000,
  );
}

async function face(page, [x, z]) {
  await page.evaluate(([x, z]) => {
    const { position } = window.biobot.match;
    window.biobot.look(Math.atan2(-(x - position[0]), -(z - position[2])), 0);
  }, [x, z]);
}

/** Presses *use* every now and then until it has led to something. */
async function use(page, done) {
  const limit = performance.now() + 20_000;
  while (!(await page.evaluate(done))) {
    assert.ok(performance.now() < limit, "using it led to nothing");
    await page.keyboard.down("KeyE");
    await page.waitForTimeout(120);
    await page.keyboard.up("KeyE");
    await page.waitForTimeout(120);
  }
}

async function overBarrierAndGap(page, x) {
  await walk(page, [[x, -1.6]], 0.6);
  await page.keyboard.down("KeyW");
  await page.evaluate(() => window.biobot.look(0, 0));
  try {
    await jumpUntil(page, () => window.biobot.match.position[2] < -4.2);
    await until(page, "the edge", () => window.biobot.match.position[2] < -6.6);
    await page.keyboard.down("Space");
    await until(page, "the landing", () => window.biobot.match.position[2] < -11.2 && window.biobot.match.position[1] > -0.5);
  } finally {
    await page.keyboard.up("Space");
    await page.keyboard.up("KeyW");
  }
}

/** A robot jumps once for each time that one presses. */
async function jumpUntil(page, done) {
  const limit = performance.now() + 20_000;
  while (!(await page.evaluate(done))) {
    assert.ok(performance.now() < limit, "jumping led nowhere");
    await page.keyboard.down("Space");
    await page.waitForTimeout(150);
    await page.keyboard.up("Space");
    await page.waitForTimeout(150);
  }
}

/** Loses every packet of this client's own link to the game server, or none again. */
async function cut(page, off) {
  await page.evaluate((lossPercent) => window.testWorker.postMessage({ kind: "conditions", delayMs: 0, jitterMs: 0, lossPercent }), off ? 100 : 0);
}

async function home(page) {
  if ((await page.evaluate(() => window.biobot.screen)) === "game") {
    await page.evaluate(() => window.testWorker.postMessage({ kind: "leave-match" }));
  }
  for (let tries = 0; tries < 20 && (await page.evaluate(() => window.biobot.screen)) !== "home"; tries += 1) {
    await page.keyboard.press("Escape");
    await page.waitForTimeout(250);
  }
  await until(page, "home", () => window.biobot.screen === "home");
}

// ---------------------------------------------------------------------------------------------------- helpers

async function until(page, what, test, argument, patienceMs = 45_000) {
  try {
    await page.waitForFunction(test, argument, { timeout: patienceMs, polling: 30 });
  } catch (error) {
    throw new Error(`${page.player} waits for ${what}: ${error.message.split("\n")[0]}`);
  }
}

async function state(page) {
  return page.evaluate(() => ({ screen: window.biobot.screen, online: window.biobot.online, notice: document.querySelector(".notice")?.textContent, match: window.biobot.match && { ...window.biobot.match, enemies: window.biobot.match.enemies.length, devices: undefined } }));
}

async function picture(page, name) {
  await page.screenshot({ path: join(pictures, `${name}.png`), timeout: 20_000 });
}

/** The process that hosts the match: the one of the game servers that has used most of a processor. */
function gameServer() {
  const servers = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).map(Number);
  const used = servers.flatMap((id) => {
    try {
      const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
      const fields = readFileSync(`/proc/${id}/stat`, "utf8").split(") ")[1].split(" ");
      const ours = words[1] === "game" && words.includes(join(data, "matches")) && Number(fields[1]) === up.pid;
      return ours ? [{ id, time: Number(fields[11]) + Number(fields[12]) }] : [];
    } catch {
      return [];
    }
  });
  assert.ok(used.length > 0, "a game server runs");
  return used.sort((a, b) => b.time - a.time)[0].id;
}

async function start() {
  const arguments_ = ["up", "--port", "0", "--relay-port", "0", "--first-port", String(firstPort), "--data", data, "--page", join(root, "game/web/dist")];
  const child = spawn(program, arguments_, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^Biobot is at (http\S+)/.exec(line);
    if (found) {
      child.url = found[1];
      child.stdout.resume();
      return child;
    }
  }
  throw new Error("muse up did not start");
}

function build() {
  execFileSync("cargo", ["build", "--quiet", "--release", "-p", "muse-cli"], { cwd: root, stdio: "inherit" });
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release/muse");
}
