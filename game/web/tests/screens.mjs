// Walks through every screen in Chromium and keeps a picture of each in pictures/ or where PICTURES says, at 1280x720 and 1920x1080.
//
//   node tests/screens.mjs [address]
//
// Without an address it serves dist/ itself; then there is no master, and the screens that need one show how that looks. With the address of a running
// `muse up` it queues as well. CHROMIUM names the browser, /usr/bin/chromium by default.

import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { preview } from "vite";
import { executablePath, FLAGS } from "./browser.mjs";
import { initSync, trial } from "../src/wasm/biobot.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SIZES = [
  { width: 1280, height: 720 },
  { width: 1920, height: 1080 },
];
class Walker {
  constructor(page, directory) {
    this.page = page;
    this.directory = directory;
  }

  /** Waits for a screen and keeps its picture. */
  async see(screen, name = screen) {
    await this.page.waitForFunction((wanted) => window.biobot?.screen === wanted, screen, { timeout: 60_000 });
    await this.page.evaluate(() => Promise.all(document.querySelector(".screen")?.getAnimations().map((animation) => animation.finished) ?? []));
    await this.page.screenshot({ path: join(this.directory, `${name}.png`), timeout: 60_000 });
  }

  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  until(test, argument) {
    return this.page.waitForFunction(test, argument, { timeout: 60_000 });
  }
}

const given = process.argv[2];
const server = given === undefined ? await preview({ root: ROOT, preview: { host: "127.0.0.1", port: Number(process.env.PORT ?? 22010) } }) : undefined;
const address = given ?? server.resolvedUrls.local[0];
const failures = [];
try {
  for (const size of SIZES) await walk(size);
} finally {
  await server?.close();
}
for (const failure of failures) console.error(failure);
console.log(`screens: ${SIZES.length - Math.min(SIZES.length, failures.length)} passed, ${failures.length} failed`);
process.exitCode = failures.length === 0 ? 0 : 1;

async function walk(size) {
  const profile = mkdtempSync(join(tmpdir(), "biobot-screens-"));
  const directory = join(process.env.PICTURES ?? join(ROOT, "pictures"), `${size.width}x${size.height}`);
  mkdirSync(directory, { recursive: true });
  const context = await chromium.launchPersistentContext(profile, { executablePath, headless: true, viewport: size, args: FLAGS });
  const page = context.pages()[0] ?? (await context.newPage());
  page.on("pageerror", (error) => failures.push(`${size.width}: ${error.message}`));
  const walker = new Walker(page, directory);
  try {
    await menus(walker);
    await match(walker, "cooperative");
    await match(walker, "versus");
    await match(walker, "ball");
    await watch(walker);
  } catch (error) {
    failures.push(`${size.width}: ${error.message}`);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

async function menus(walker) {
  const { page } = walker;
  await page.goto(`${address}?quality=low`);
  await walker.see("title");
  await page.fill("#name", "Ada");
  await walker.press("Enter");
  await walker.see("home");
  for (const screen of ["friends", "ranking", "settings", "watch", "practice", "play"]) {
    await page.focus(`#${screen}`);
    await walker.press("Enter");
    await walker.see(screen);
    await walker.press("Escape");
    await walker.see("home");
  }
  await page.click("#play");
  await page.click("#find");
  await walker.see("queue");
  await walker.press("Escape");
  await walker.see("home");
}

async function match(walker, game) {
  const { page } = walker;
  await page.click("#practice");
  await page.click(`[data-value="${game}"]`);
  await page.click("#start-practice");
  await walker.until(() => window.biobot.match?.phase === "Playing" && window.biobot.match.position !== undefined);
  await walker.see("game", `${game}`);
  const before = await page.evaluate(() => window.biobot.match.position);
  await page.keyboard.down("KeyW");
  await walker.until((from) => Math.hypot(window.biobot.match.position[0] - from[0], window.biobot.match.position[2] - from[2]) > 1, before);
  await page.keyboard.up("KeyW");
  await walker.press("KeyV");
  await walker.see("game", `${game}-other-view`);
  await page.keyboard.down("Tab");
  await walker.see("game", `${game}-scores`);
  await page.keyboard.up("Tab");
  await walker.press("Enter");
  await page.keyboard.type("hello");
  await walker.see("game", `${game}-chat`);
  await walker.press("Enter");
  await walker.until(() => window.biobot.match.chat.some(({ text }) => text === "hello"));
  await walker.press("F3");
  await walker.see("game", `${game}-network`);
  await walker.press("F3");
  await page.evaluate(() => document.exitPointerLock());
  if ((await page.locator("#resume").count()) === 0) await walker.press("Escape");
  await page.waitForSelector("#leave-match");
  await walker.see("game", `${game}-pause`);
  await page.click("#leave-match");
  await walker.see("home");
}

/** A match that bots have played, watched from the middle through the eyes of the second one. */
async function watch(walker) {
  const { page } = walker;
  await page.click("#watch");
  await walker.see("watch");
  await page.setInputFiles("#replay-file", { name: "match.muserply", mimeType: "application/octet-stream", buffer: recording() });
  await walker.until(() => window.biobot.match?.position !== undefined);
  await page.fill("#timeline", "600");
  await page.click('[data-slot="1"]');
  await walker.until(() => window.biobot.match.tick >= 600);
  await walker.see("game", "replay");
  await page.click("#replay-pause");
  await page.click("#replay-leave");
  await walker.see("home");
}

function recording() {
  initSync({ module: readFileSync(join(ROOT, "src/wasm/biobot_bg.wasm")) });
  return Buffer.from(trial("versus", 4, 7, 1_000));
}
