// The whole game end to end: `muse up` over HTTPS, two people in a real browser, and everything that can happen to them. One plays over WebTransport, the other over a WebSocket.
//
//   node tests/e2e.mjs [program]
//
// The program is `muse`, built by cargo unless it is named; the page must have been built (`make page`). Pictures of every screen are kept in the
// directory that PICTURES names, else in a new one that is printed. CHROMIUM names another browser; openssl makes the certificate.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { launch } from "./browser.mjs";
import { install } from "./pilot.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const pictures = process.env.PICTURES ?? mkdtempSync(join(tmpdir(), "biobot-pictures-"));
mkdirSync(pictures, { recursive: true });
const data = mkdtempSync(join(tmpdir(), "biobot-e2e-"));
const program = process.argv[2] ?? build();
const firstPort = Number(process.env.FIRST_PORT ?? 25_600);
/** Long: a busy machine is no failure. */
const patienceMs = 90_000;

const certificate = certify();
const up = await start();
const browser = await launch([certificate.trusted]);
let passed = 0;
let failed = 0;
const steps = [
  ["two players sign in", signIn],
  ["every screen can be seen", screens],
  ["they queue and are in a match together", queue],
  ["they move and see each other", move],
  ["they talk", chat],
  ["one opens the first door for both", firstDoor],
  ["they kill a cat", cat],
  ["both open the second door together", secondDoor],
  ["who is cut off for 5 s comes back into the match", cutOff],
  ["who is cut off for 15 s is returned to the master", cutOffTooLong],
  ["the server is killed and both return to the master", killed],
  ["a third watches the recording", watch],
  ["an invitation brings friends into the same match", invitation],
  ["with the ball they are in two teams, and both see it go where it was pushed", ball],
];
const players = [];
try {
  players.push(await player("Ada", "webtransport"), await player("Grace", "websocket"));
  for (const [name, step] of steps) {
    const begin = performance.now();
    try {
      await step();
      passed += 1;
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
  await new Promise((resolve) => up.on("exit", resolve));
  // A game server may still be writing the end of its recording, into a folder that was read already.
  for (let left = 50; left > 0; left -= 1) {
    try {
      rmSync(data, { recursive: true, force: true });
      break;
    } catch (error) {
      if (error.code !== "ENOTEMPTY" || left === 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
console.log(`pictures in ${pictures}`);
console.log(`e2e: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed === steps.length ? 0 : 1);

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
  for (const screen of ["play", "friends", "practice", "watch", "ranking"]) {
    await page.click(`#${screen}`);
    await until(page, screen, (name) => window.biobot.screen === name, screen);
    await picture(page, screen);
    await page.keyboard.press("Escape");
    await until(page, "home", () => window.biobot.screen === "home");
  }
  // Fire with a key: there is no mouse to be caught in a browser without a window.
  for (const page of players) {
    await page.click("#settings");
    await until(page, "settings", () => window.biobot.screen === "settings");
    await page.click('[data-action="fire"]');
    await page.keyboard.press("KeyF");
    await page.waitForFunction(() => document.querySelector('[data-action="fire"]').textContent === "F");
    await picture(page, "settings");
    await page.keyboard.press("Escape");
    await until(page, "home", () => window.biobot.screen === "home");
  }
}

async function queue() {
  for (const page of players) {
    await page.click("#play");
    await page.waitForSelector("#find");
    await page.click('[data-value="0"]');
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
  await Promise.all((await bySlot()).map((page, slot) => route(page, [["walk", [slot === 0 ? -4 : 4, 3]]])));
  for (const [index, page] of players.entries()) {
    const there = await players[1 - index].evaluate(() => window.biobot.match.position);
    const seen = ([x, , z]) => window.biobot.match.others.some(({ position }) => Math.hypot(position[0] - x, position[2] - z) < 0.5);
    await until(page, "the other in the right place", seen, there);
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
  const over = (x) => [
    ["walk", [x, -2.2], 0.4],
    ["leap", [x, -3.5], 1],
    ["walk", [x, -7.2], 0.4],
    ["leap", [x, -11.4], 0],
    ["walk", [x, -12.5], 0.6],
  ];
  const [one, other] = await bySlot();
  await Promise.all([route(one, over(-4)), route(other, over(4))]);
  const slots = await Promise.all(players.map((page) => page.evaluate(() => window.biobot.match.slot)));
  assert.deepEqual([...slots].sort(), [0, 1]);
  for (const page of players) assert.equal(await page.evaluate(() => window.biobot.match.doors["door-a"]), 0);
  await route(other, [["walk", [6.4, -12.5], 0.5], ["use", [7.7, -12.5], "door-a"]]);
  for (const page of players) await until(page, "the open door", () => window.biobot.match.doors["door-a"] > 0.9);
  await picture(one, "door");
}

async function cat() {
  const into = (slot) => [["walk", [0, -13]], ["walk", [0, -16]], ["walk", [slot === 0 ? -2 : 2, -20.5]]];
  const [one, other] = await bySlot();
  const dead = [one, other].map((page) => until(page, "a dead cat", () => window.biobot.match?.enemies.some(({ species, dead }) => species === "Cat" && dead), undefined, 120_000));
  const fights = [one, other].map((page, slot) => route(page, [...into(slot), ["fight", "KeyF"]]));
  await until(one, "a cat that hunts", () => window.biobot.match.enemies.some(({ species, stance }) => species === "Cat" && stance !== "Idle"));
  await picture(one, "fight");
  await Promise.all([...dead, ...fights]);
  const scores = await one.evaluate(() => window.biobot.match.kills);
  assert.ok(scores[0] + scores[1] > 0, "it counts as theirs");
}

async function secondDoor() {
  const [one, other] = await bySlot();
  for (const page of players) assert.equal(await page.evaluate(() => window.biobot.match.doors["door-b"]), 0);
  // Each presses until the other does so within the same half second.
  await Promise.all([
    route(one, [["walk", [-8.4, -17]], ["walk", [-8.4, -23]], ["walk", [-8.6, -26]], ["use", [-9.6, -26], "door-b"]]),
    route(other, [["walk", [5, -20]], ["walk", [8.4, -24]], ["use", [9.7, -24], "door-b"]]),
  ]);
  for (const page of players) await until(page, "the open door", () => window.biobot.match.doors["door-b"] > 0.9);
  await picture(other, "door-together");
}

async function cutOff() {
  const [one, other] = players;
  const before = await one.evaluate(() => ({ slot: window.biobot.match.slot, tick: window.biobot.match.tick, jumps: window.biobot.match.net.jumps }));
  await cut(one, 5_000);
  await until(one, "the interruption", () => window.biobot.match?.interrupted === true);
  await until(one, "the match again", () => window.biobot.screen === "game" && window.biobot.match?.interrupted === false);
  const after = await one.evaluate(() => ({ slot: window.biobot.match.slot, tick: window.biobot.match.tick, phase: window.biobot.match.phase }));
  assert.deepEqual([after.slot, after.phase], [before.slot, "Playing"]);
  assert.ok(after.tick - before.tick > 200, "it went on meanwhile");
  assert.equal(await one.evaluate(() => window.biobot.match.net.jumps), before.jumps, "who comes back finds others elsewhere, but nothing jumps in play");
  // The link is as good as before: the robot obeys, and the other one sees it.
  const [x, , z] = await one.evaluate(() => window.biobot.match.position);
  await route(one, [["walk", [x * 0.7, z + 1.5], 0.5]]);
  const there = await one.evaluate(() => window.biobot.match.position);
  await until(other, "the other in the right place", ([x, , z]) => window.biobot.match.others.some(({ position }) => Math.hypot(position[0] - x, position[2] - z) < 0.5), there);
}

async function cutOffTooLong() {
  const [one, other] = players;
  await cut(one, 15_000);
  await until(one, "the interruption", () => window.biobot.match?.interrupted === true);
  await picture(one, "interrupted");
  await other.waitForSelector(".vote", { timeout: patienceMs });
  await picture(other, "vote");
  await until(one, "the end of the cut", () => window.cutOver === true);
  await until(one, "the master", () => window.biobot.screen === "home" && window.biobot.online && window.biobot.match === undefined);
  await picture(one, "returned");
  await until(other, "that the player is alone", () => window.biobot.match?.others.length === 0);
  // Who is left goes home as well.
  await home(other);
  for (const page of players) await until(page, "the master", () => window.biobot.screen === "home" && window.biobot.online);
}

async function killed() {
  await queue();
  process.kill(await gameServer(players[0]), "SIGKILL");
  for (const page of players) await until(page, "the master", () => window.biobot.screen === "home" && window.biobot.online);
  await picture(players[0], "server-lost");
}

async function watch() {
  const page = await player("Edsger", "webtransport");
  await page.goto(`${up.url}?quality=low`);
  await page.click("#watch");
  await page.waitForSelector("[data-replay]");
  await picture(page, "watch-list");
  // The first match is the one in which most has happened; the one whose server was killed is there as well.
  const recordings = await page.locator("[data-replay]").evaluateAll((found) => found.map(({ dataset }) => dataset.replay));
  assert.equal(recordings.length, 2);
  await page.click(`[data-replay="${recordings.sort()[0]}"]`);
  await until(page, "the recording", () => window.biobot.match?.position !== undefined && window.biobot.match.names.length === 2);
  assert.deepEqual((await page.evaluate(() => window.biobot.match.names)).sort(), ["Ada", "Grace"]);
  const begin = await page.evaluate(() => window.biobot.match.tick);
  await until(page, "that it goes on", (tick) => window.biobot.match.tick > tick + 25, begin);
  // Back from the end, where one of them had gone, to where both were through the second door; the recording waits there.
  await page.click("#replay-pause");
  let tick = Number(await page.getAttribute("#timeline", "max")) - 100;
  for (let both = false; !both; tick -= 250) {
    assert.ok(tick > 0, "they were there together");
    await page.locator("#timeline").fill(String(tick));
    await until(page, "that moment", (tick) => Math.abs(window.biobot.match.tick - tick) < 100, tick);
    assert.ok((await page.evaluate(() => window.biobot.match.doors["door-b"])) > 0.9, "the door stays open");
    both = await page.evaluate(() => window.biobot.match.position !== undefined && window.biobot.match.others.length === 1);
  }
  const views = [];
  for (const slot of [0, 1]) {
    await page.click(`[data-slot="${slot}"]`);
    await until(page, "its view", (slot) => window.biobot.match.slot === slot, slot);
    views.push(await page.evaluate(() => window.biobot.match.position));
    await picture(page, `replay-${slot}`);
  }
  assert.notDeepEqual(views[0], views[1]);
  await page.click("#replay-leave");
  await page.context().close();
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
  // The player who made the room asks for a match for all in it.
  await one.click("#play");
  await one.click("#find");
  await Promise.all(players.map(playing));
}

async function ball() {
  const [one] = players;
  for (const page of players) await home(page);
  await one.click("#play");
  await one.click('[data-value="ball"]');
  await one.click("#find");
  await Promise.all(players.map(playing));
  const [first, second] = await bySlot();
  for (const page of players) await until(page, "the ball", () => window.biobot.match?.mode === "Ball" && window.biobot.match.ball !== undefined);
  const kickOff = await first.evaluate(() => window.biobot.match.ball.position);
  // Team 0 looks along +x, with the ball before it; the other stands aside.
  await second.keyboard.down("KeyD");
  await first.keyboard.down("KeyW");
  for (const page of players) await until(page, "a push by slot 0", ([x]) => window.biobot.match.ball.touched === 0 && window.biobot.match.ball.position[0] > x + 3, kickOff);
  await second.keyboard.up("KeyD");
  await picture(first, "ball");
  await first.keyboard.down("KeyE");
  await until(first, "a goal", () => window.biobot.match.goals[0] === 1 || window.biobot.match.ball.position[0] > 15);
  await first.keyboard.up("KeyE");
  await first.keyboard.up("KeyW");
  for (const page of players) await home(page);
}

// ---------------------------------------------------------------------------------------------------- what players do

/** A page whose Worker has this kind of link alone. */
async function player(name, link) {
  // A Worker without WebTransport is a script of this test, which the page's policy would not allow.
  const context = await browser.newContext({ viewport: { width: 640, height: 360 }, bypassCSP: link === "websocket" });
  // The page's Worker, to cut its own link, and the server that it speaks to.
  await context.addInitScript(install);
  await context.addInitScript((link) => {
    // Two pages that are drawn by the processor would take all of it. State is what counts here, so some ten pictures a second will do.
    const draw = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (callback) => setTimeout(() => draw(callback), 80);
    const Original = window.Worker;
    window.Worker = class extends Original {
      constructor(script, options) {
        // What is said to it before the game's own script is there waits.
        const without = `
          const early = [];
          self.onmessage = (message) => early.push(message);
          delete self.WebTransport;
          await import(${JSON.stringify(new URL(script, location.href))});
          for (const message of early) self.onmessage(message);`;
        super(link === "websocket" ? URL.createObjectURL(new Blob([without], { type: "text/javascript" })) : script, options);
        window.testWorker = this;
        this.addEventListener("message", ({ data }) => {
          if (data.event?.type === "connecting") window.testServer = data.event.address;
          if (data.event?.type === "connected") window.testLink = data.event.link;
        });
      }
    };
  }, link);
  const page = await context.newPage();
  page.player = name;
  page.link = link;
  page.on("pageerror", (error) => console.log(`        ${name}: ${error.message}`));
  return page;
}

async function playing(page) {
  await until(page, "a match that is played", () => window.biobot.match?.phase === "Playing" && window.biobot.match.position !== undefined);
  assert.equal(await page.evaluate(() => window.testLink), page.link);
}

async function bySlot() {
  const slot = await players[0].evaluate(() => window.biobot.match.slot);
  return slot === 0 ? players : [players[1], players[0]];
}

/** Goes a way, leg by leg; a player who dies on it starts over where the game puts them. */
async function route(page, legs, tries = 6) {
  let ended = "";
  for (let attempt = 0; attempt < tries; attempt += 1) {
    await until(page, "life", () => window.biobot.match?.alive === true);
    for (const leg of legs) {
      ended = await page.evaluate(([how, ...given]) => window.pilot[how](...given), leg);
      if (ended !== "done") {
        console.log(`        ${page.player}: ${ended}: ${JSON.stringify(leg)} at ${JSON.stringify(await page.evaluate(() => window.biobot.match?.position))}`);
        break;
      }
    }
    if (ended === "done") return;
  }
  throw new Error(`${page.player} does not get there: ${ended}`);
}

/** Loses every packet of this client's own link to the game server for a while. The page's own clock ends it. */
async function cut(page, forMs) {
  await page.evaluate((forMs) => {
    const lose = (lossPercent) => window.testWorker.postMessage({ kind: "conditions", delayMs: 0, jitterMs: 0, lossPercent });
    window.cutOver = false;
    lose(100);
    setTimeout(() => {
      lose(0);
      window.cutOver = true;
    }, forMs);
  }, forMs);
}

/** Back to the screen from which one plays, as a player would go. */
async function home(page) {
  const screen = await page.evaluate(() => window.biobot.screen);
  if (screen === "game") {
    await page.keyboard.press("Escape");
    await page.click("#leave-match");
  } else if (screen !== "home") await page.keyboard.press("Escape");
  await until(page, "home", () => window.biobot.screen === "home");
}

// ---------------------------------------------------------------------------------------------------- helpers

async function until(page, what, test, argument, timeout = patienceMs) {
  try {
    await page.waitForFunction(test, argument, { timeout, polling: 30 });
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

/** The process that hosts the match in which a player is: the one that was given this address. */
async function gameServer(page) {
  const address = await page.evaluate(() => window.testServer);
  const servers = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found = servers.filter((id) => {
    try {
      const words = readFileSync(`/proc/${id}/cmdline`, "utf8").split("\0");
      return words[1] === "game" && readFileSync(`/proc/${id}/environ`, "utf8").split("\0").includes(`MUSE_SERVER_ADDRESS=${address}`);
    } catch {
      return false;
    }
  });
  assert.equal(found.length, 1, `one server at ${address}`);
  return Number(found[0]);
}

async function start() {
  // No bots: a machine so slow that they were offered would change who plays with whom.
  const arguments_ = ["up", "--port", "0", "--relay-port", "0", "--first-port", String(firstPort), "--bots-after-seconds", "0", ...certificate.words, "--data", data, "--page", join(root, "game/web/dist")];
  const child = spawn(program, arguments_, { stdio: ["ignore", "pipe", openSync(join(pictures, "muse.log"), "w")] });
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

/** A certificate of our own making, the words for `muse up`, and those that make this browser trust it. */
function certify() {
  const [chain, key] = ["chain.pem", "key.pem"].map((name) => join(data, name));
  const made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", [...made, "-keyout", key, "-out", chain], { stdio: "ignore" });
  const { publicKey } = new X509Certificate(readFileSync(chain));
  const hash = createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("base64");
  return { words: ["--tls-cert", chain, "--tls-key", key], trusted: `--ignore-certificate-errors-spki-list=${hash}` };
}

function build() {
  execFileSync("cargo", ["build", "--quiet", "--release", "-p", "muse-cli"], { cwd: root, stdio: "inherit" });
  return join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "release/muse");
}
