// From a download to a match: runs a command that ends with `muse up`, lets two people in real browsers sign in and play together, and prints the
// milliseconds from its start until it served and until both played. The browsers are there before.
//
//   node tests/download.mjs COMMAND...

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { launch } from "./browser.mjs";

const patienceMs = 120_000;
const browser = await launch();
const players = await Promise.all(["Ada", "Grace"].map(player));
const begin = performance.now();
const up = spawn(process.argv[2], process.argv.slice(3), { stdio: ["ignore", "pipe", "inherit"] });
try {
  const url = await address();
  console.log(`serves ${Math.round(performance.now() - begin)}`);
  await Promise.all(players.map((page) => play(page, url)));
  console.log(`plays ${Math.round(performance.now() - begin)}`);
} finally {
  // What it started ends with it.
  up.kill("SIGKILL");
  await browser.close();
}

async function player(name) {
  const context = await browser.newContext({ viewport: { width: 640, height: 360 } });
  await context.addInitScript(() => {
    // Two pages that are drawn by the processor would take all of it.
    const draw = window.requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (callback) => setTimeout(() => draw(callback), 80);
  });
  const page = await context.newPage();
  page.player = name;
  page.setDefaultTimeout(patienceMs);
  return page;
}

async function address() {
  for await (const line of createInterface({ input: up.stdout })) {
    const found = /^Biobot is at (http\S+)/.exec(line);
    if (found) return found[1];
  }
  throw new Error("muse up did not start");
}

async function play(page, url) {
  await page.goto(`${url}?quality=low`);
  await page.fill("#name", page.player);
  await page.click("#guest");
  await page.waitForFunction(() => window.biobot.online);
  await page.click("#play");
  await page.click("#find");
  await page.waitForFunction(() => window.biobot.match?.phase === "Playing" && window.biobot.match.names.filter((name) => name !== "").length === 2);
}
