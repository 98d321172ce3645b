// The operators' page in a browser: signs in, looks at every section, and does everything an operator can do, with a real master and real players.
// Usage: node page.mjs path/to/muse [folder for screenshots]; CHROMIUM names the browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [muse, shots] = process.argv.slice(2);
if (shots) mkdirSync(shots, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), "muse-admin-"));
const password = "password of the check";
const children = [];

function start(command, ...rest) {
  const child = spawn(muse, [command, ...rest], { env: { ...process.env, MUSE_OPERATOR_PASSWORD: password, MUSE_GAME_SECONDS: "600" }, stdio: ["ignore", "pipe", "inherit"] });
  const lines = [];
  const waiting = [];
  createInterface(child.stdout).on("line", (line) => {
    lines.push(line);
    for (const look of waiting.splice(0)) look();
  });
  children.push(child);
  let from = 0;
  const expect = async (word) => {
    for (;;) {
      while (from < lines.length) {
        const line = lines[from++];
        if (line.startsWith(word)) return line;
      }
      await new Promise((resolve) => waiting.push(resolve));
    }
  };
  return { child, expect };
}

async function main() {
  const master = start("master", "--listen", "127.0.0.1:0", "--operator", "ada", "--logs", join(folder, "logs"), "--database", join(folder, "muse.db"), "--first-port", "24500");
  const url = await master.expect("http");
  const authority = url.slice("http://".length);
  const player = (n, ...rest) => start("master-player", authority, "--device-key", `device of the player ${n}`, ...rest);
  const [one, two] = [player(1, "--play"), player(2, "--play")];
  await Promise.all([one.expect("playing"), two.expect("playing")]);
  const guest = async (n) => (await (await fetch(`${url}/v1/guest`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ device_key: `device of the player ${n}` }) })));
  const token = (await (await guest(3)).json()).access_token;
  const asPlayer = (method, path, body) => fetch(`${url}${path}`, { method, headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` }, body: JSON.stringify(body) });
  assert.equal((await asPlayer("PUT", "/v1/account/password", { name: "grace", password: "correct horse" })).status, 204);
  // A new password signs out whoever was in before.
  const three = player(3);
  const id = Number((await three.expect("online")).split(" ")[1]);
  const other = Number((await (await guest(4)).json()).account);
  assert.equal((await asPlayer("POST", `/v1/chat/direct/${other}`, { text: "<b>not bold</b>" })).status, 200);
  assert.equal((await asPlayer("POST", "/v1/ticket", { preferences: { players: 8, choices: { mode: "race" } } })).status, 200);

  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  children.push({ kill: () => browser.close() });
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error" && !message.text().includes("401")) errors.push(message.text()); });
  const shot = async (name) => { if (shots) await page.screenshot({ path: join(shots, `${name}.png`) }); };
  const section = async (name) => {
    await page.click(`#tabs button:text-is("${name}")`);
    await page.waitForSelector(`body[data-shown="${name.toLowerCase()}"]`);
  };
  const told = (text) => page.waitForFunction((expected) => document.getElementById("message").textContent.includes(expected), text);

  await page.goto(`${url}/admin`);
  await page.fill('input[name="name"]', "ada");
  await page.fill('input[name="password"]', "not the password at all");
  await page.click('#sign-in button[type="submit"]');
  await told("no account");
  await shot("sign-in");
  await page.fill('input[name="password"]', password);
  await page.click('#sign-in button[type="submit"]');
  await page.waitForSelector(".figures");
  assert.match(await page.textContent(".figures"), /Players online3 \/ 100/);
  assert.match(await page.textContent("#state"), /leads the queue/);
  await page.waitForTimeout(6000);
  await section("Overview");
  await shot("overview");

  await section("Queue");
  assert.match(await page.textContent("#view"), /8 players, mode: race/);
  await shot("queue");

  await section("Matches");
  assert.match(await page.textContent("#view"), /running/);
  await page.click('button:text-is("Log")');
  await page.waitForSelector("dialog[open] pre");
  assert.match(await page.textContent("dialog"), /placed on server/);
  await shot("match-log");
  await page.click('dialog button:text-is("Close")');

  await section("Chat");
  assert.match(await page.textContent("#view"), /<b>not bold<\/b>/);
  assert.equal(await page.locator("#view b").count(), 0);
  await shot("chat");
  await page.click('button:text-is("Delete")');
  await told("Deleted");
  await page.waitForSelector("text=Nobody has written.");

  await section("Players");
  await page.fill('input[type="search"]', "gra");
  await page.click('button:text-is("Search")');
  await page.waitForSelector("text=grace");
  await page.click('button:text-is("Mute…")');
  await page.fill('dialog input[name="reason"]', "shouting");
  await shot("mute");
  await page.click('dialog button[type="submit"]');
  await told("mute is in force");
  assert.equal((await asPlayer("POST", `/v1/chat/direct/${other}`, { text: "again" })).status, 403);
  await page.click('button:text-is("Kick…")');
  await page.click('dialog button[type="submit"]');
  await told("sent away");
  await page.waitForSelector("text=offline");
  await page.click('button:text-is("Ban…")');
  await page.selectOption("dialog select", "24");
  await page.click('dialog button[type="submit"]');
  await told("ban is in force");
  assert.equal((await guest(3)).status, 403);
  await page.waitForSelector("text=banned until");
  await shot("players");
  await page.click('button:text-is("Unban")');
  await told("Unbanned");
  assert.equal((await guest(3)).status, 200);

  await section("Overview");
  await page.click('button:text-is("Announce…")');
  await page.fill("dialog textarea", "The servers are updated at noon.");
  await page.click('dialog button[type="submit"]');
  await told("Announced");
  await page.click('button:text-is("Drain…")');
  await page.click('dialog button[type="submit"]');
  await page.waitForSelector("#state >> text=draining");
  assert.equal((await fetch(`${url}/ready`)).status, 503);
  await page.click('button:text-is("Make matches again")');
  await page.waitForFunction(() => !document.getElementById("state").textContent.includes("draining"));
  assert.equal((await fetch(`${url}/ready`)).status, 204);

  await section("Matches");
  await page.click('button:text-is("End…")');
  await page.click('dialog button[type="submit"]');
  await one.expect("back");
  await shot("matches");

  await section("Audit");
  const audit = await page.textContent("#view");
  for (const action of ["sign_in", "delete_line", "mute", "kick", "ban", "unban", "announce", "drain", "end_match"]) assert.ok(audit.includes(action), action);
  await page.click('button:text-is("Add…")');
  await page.fill("dialog input >> nth=0", "bob");
  await page.fill("dialog input >> nth=1", "another password");
  await page.click('dialog button[type="submit"]');
  await told("Saved");
  await page.waitForSelector("td:text-is(\"bob\")");
  await shot("audit");
  await page.emulateMedia({ colorScheme: "dark" });
  await section("Overview");
  await shot("overview-dark");
  await page.setViewportSize({ width: 420, height: 860 });
  await section("Players");
  await shot("players-narrow");
  await page.click("#sign-out");
  await page.waitForSelector("#sign-in:not([hidden])");
  assert.deepEqual(errors, []);
  console.log(`operators' page: every section and action tried, player ${id} was the subject`);
}

try {
  await main();
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  for (const child of children) await child.kill("SIGKILL");
  // Game servers outlive their master; without it they end by themselves, and these at once.
  spawn("sh", ["-c", `for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null | grep -q '^MUSE_SERVER_ADDRESS=127.0.0.1:245' && kill -9 \${p#/proc/}; done; true`], { stdio: "ignore" }).on("exit", () => {
    rmSync(folder, { recursive: true, force: true });
    process.exit();
  });
}
