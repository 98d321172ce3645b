// Browsers meet at a relay: one opens a room, another and a player over UDP join by its code, all of it sealed end to end. A link is cut for
// three seconds and comes back; the relay's memory is searched for keys and for what was said.
//
//   node browsers.mjs path/to/muse path/to/native directory-of-the-module
//
// `native` is the example of muse-relay-web. CHROMIUM names another browser.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const [muse, native, wasm] = process.argv.slice(2);
// The packages of the game's page.
const require = createRequire(join(here, "../../../game/web/package.json"));
const { chromium } = require("playwright-core");
const { buildSync } = require("esbuild");
const PATIENCE_MS = 40_000;
const CUT_MS = 3_000;
const COUNT = 300;
/** Of the unreliable ones so many have to come on a machine that loses nothing but is busy. */
const COUNT_UNRELIABLE = COUNT * 0.8;

const bundle = buildSync({
  entryPoints: [join(here, "page.ts")],
  bundle: true,
  format: "esm",
  write: false,
  logLevel: "error",
  alias: { relay_web: join(wasm, "relay_web.js") },
});
const files = {
  "/": ["text/html", '<!doctype html><meta charset="utf-8"><title>Relay</title><script type="module" src="/page.js"></script>'],
  "/page.js": ["text/javascript", bundle.outputFiles[0].text],
  "/relay_web_bg.wasm": ["application/wasm", readFileSync(join(wasm, "relay_web_bg.wasm"))],
};
const web = createServer((request, response) => {
  const [type, body] = files[request.url] ?? ["text/plain", ""];
  response.writeHead(files[request.url] ? 200 : 404, { "Content-Type": type }).end(body);
});
await new Promise((resolve) => web.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${web.address().port}`;
const profile = mkdtempSync(join(tmpdir(), "muse-relay-web-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

const tests = [
  ["a room over WebTransport", () => meeting("webtransport", "webtransport")],
  ["a room over WebSocket", () => meeting("websocket", "websocket")],
  ["a host by WebSocket, a guest by WebTransport", () => meeting("websocket", "webtransport")],
  ["a room that is not there", nowhere],
];
let failed = 0;
for (const [name, test] of tests) {
  const begin = performance.now();
  try {
    const told = await test();
    console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)${told ? `: ${told}` : ""}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED  ${name}: ${error.stack ?? error}`);
  }
}
await browser.close();
web.close();
rmSync(profile, { recursive: true, force: true });
console.log(`relay-web: ${tests.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

async function meeting(hostKind, guestKind) {
  return withRelay(async (relay) => {
    const [host, guest] = [await openPage(), await openPage()];
    const mark = randomBytes(8).toString("hex");
    await host.page.evaluate(([address, kind]) => globalThis.test.host(address, kind), [relay.web, hostKind]);
    await host.until("a room", () => globalThis.test.count("opened") === 1);
    const room = await host.page.evaluate((udp) => globalThis.test.room(udp), relay.udp);
    await guest.page.evaluate(([address, kind, code, key]) => globalThis.test.guest(address, kind, code, key), [relay.web, guestKind, room.code, room.key]);
    await guest.until("the host", () => globalThis.test.count("connected") === 1);
    await host.until("the guest", () => globalThis.test.count("connected") === 1);
    assert.equal(await host.page.evaluate(() => globalThis.test.kind()), hostKind);
    assert.equal(await guest.page.evaluate(() => globalThis.test.kind()), guestKind);

    await exchange(host, guest, `${mark} first`);
    await withNative(host, room.invitation, `${mark} native`);
    // Either of them loses its link for a while and goes on: to the relay a new session is a new address.
    await outage(guest, host, guest, `${mark} guest`);
    await outage(host, host, guest, `${mark} host`);

    const metrics = await relay.metrics();
    assert.ok(metrics["muse_relay_moves_total"] >= 2, JSON.stringify(metrics));
    assert.equal(metrics["muse_relay_directs_total"], 0);
    assert.equal(metrics["muse_relay_rooms"], 1);
    const memory = readMemory(relay.pid);
    assert.ok(memory.some((part) => part.includes(codeBytes(room.code))), "the search finds what the relay knows: the room's code");
    for (const [what, bytes] of [["the host's private key", Buffer.from(room.secret)], ["what was said", Buffer.from(mark)]]) {
      assert.ok(!memory.some((part) => part.includes(bytes)), `the relay's memory has ${what}`);
    }
    await guest.page.evaluate(() => globalThis.test.leave());
    await host.until("the end", () => globalThis.test.events.some((event) => event.type === "closed" && event.peer === 0));
    await Promise.all([host.page.close(), guest.page.close()]);
    const { muse_relay_web_datagrams_total: datagrams } = metrics;
    return `${datagrams} datagrams of browsers, ${memory.reduce((sum, part) => sum + part.length, 0) >> 20} MiB searched`;
  });
}

async function nowhere() {
  await withRelay(async (relay) => {
    const guest = await openPage();
    await guest.page.evaluate(([address, key]) => globalThis.test.guest(address, "webtransport", "012345", key), [relay.web, "22".repeat(32)]);
    await guest.until("a refusal", () => globalThis.test.count("refused") === 1);
    await guest.page.close();
  });
}

/** Both send, both hear all of it. */
async function exchange(host, guest, mark) {
  const send = ({ page }) => page.evaluate(([count, mark]) => globalThis.test.send(0, count, mark), [COUNT, mark]);
  await Promise.all([send(host), send(guest)]);
  for (const side of [host, guest]) await heard(side, 0, mark);
}

/** Checks what came from a peer: reliable all and in order, unreliable at most once each. */
async function heard(side, from, mark) {
  const texts = (channel) => side.page.evaluate(([from, channel, mark]) => globalThis.test.texts(from, channel, mark), [from, channel, mark]);
  await side.until(`all of "${mark}"`, ([from, count, mark]) => globalThis.test.texts(from, 1, mark).length >= count, [from, COUNT, mark]);
  const all = (name) => Array.from({ length: COUNT }, (_, number) => `${mark} ${name} ${number}`);
  assert.deepEqual(await texts(1), all("reliable"));
  const unreliable = await texts(0);
  assert.equal(new Set(unreliable).size, unreliable.length, "nothing comes twice");
  assert.ok(unreliable.every((text) => all("unreliable").includes(text)));
  return unreliable.length;
}

/** A player over UDP comes into the same room, and goes. */
async function withNative(host, invitation, mark) {
  const before = await host.page.evaluate(() => globalThis.test.count("connected"));
  const running = promisify(execFile)(native, [invitation, String(COUNT), mark], { timeout: PATIENCE_MS });
  await host.until("a native player", (before) => globalThis.test.count("connected") === before + 1, before);
  await host.page.evaluate(([peer, count, mark]) => globalThis.test.send(peer, count, mark), [before, COUNT, `${mark} from`]);
  const lines = (await running).stdout.trim().split("\n").map((line) => JSON.parse(line));
  const of = (channel) => lines.filter(([on]) => on === channel).map(([, text]) => text);
  assert.deepEqual(of(1), Array.from({ length: COUNT }, (_, number) => `${mark} from reliable ${number}`));
  assert.ok(of(0).length >= COUNT_UNRELIABLE && new Set(of(0)).size === of(0).length, `${of(0).length} unreliable`);
  const unreliable = await heard(host, before, mark);
  assert.ok(unreliable >= COUNT_UNRELIABLE, `${unreliable} unreliable`);
}

/** One of them has no link for three seconds while both speak; nothing reliable is lost, and both notice. */
async function outage(victim, host, guest, mark) {
  const count = (type) => Promise.all([host, guest].map(({ page }) => page.evaluate((type) => globalThis.test.count(type), type)));
  const [interrupted, resumed] = [await count("interrupted"), await count("resumed")];
  await victim.page.evaluate(() => globalThis.test.cut());
  const speaking = exchange(host, guest, mark);
  await new Promise((resolve) => setTimeout(resolve, CUT_MS));
  await victim.page.evaluate(() => globalThis.test.mend());
  await speaking;
  for (const [index, side] of [host, guest].entries()) {
    const more = ([before, type]) => globalThis.test.count(type) > before;
    await side.until("an interruption", more, [interrupted[index], "interrupted"]);
    await side.until("its end", more, [resumed[index], "resumed"]);
  }
}

async function openPage() {
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(origin);
  const until = async (what, test, argument) => {
    await page.waitForFunction(test, argument, { timeout: PATIENCE_MS, polling: 20 }).catch(async (error) => {
      const last = await page.evaluate(() => JSON.stringify(globalThis.test?.events.filter(({ type }) => type !== "message").slice(-20))).catch(() => "none");
      throw new Error(`waited in vain for ${what}: ${error.message}\nevents: ${last}\nproblems: ${problems.join("\n")}`);
    });
  };
  await until("the page", () => globalThis.test !== undefined);
  return { page, until };
}

async function withRelay(act) {
  const child = spawn(muse, ["relay", "--listen", "127.0.0.1:0", "--web", "0", "--metrics", "127.0.0.1:0", "--drain-seconds", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const { value: line } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
    const [, udp, metrics, link] = line.match(/^ready (\S+) metrics (\S+) browsers http:\/\/(\S+)\/link$/) ?? assert.fail(line);
    return await act({ udp, web: link, pid: child.pid, metrics: () => readMetrics(metrics) });
  } finally {
    child.kill("SIGTERM");
  }
}

async function readMetrics(url) {
  const values = {};
  for (const line of (await (await fetch(url)).text()).split("\n")) {
    const [, name, value] = line.match(/^(\w+)(?:\{[^}]*\})? (\S+)$/) ?? [];
    if (name) values[name] = (values[name] ?? 0) + Number(value);
  }
  return values;
}

/** Everything that a process can write to, as it is now. */
function readMemory(pid) {
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const parts = [];
  for (const line of readFileSync(`/proc/${pid}/maps`, "utf8").split("\n")) {
    const [, start, end] = line.match(/^(\w+)-(\w+) rw/) ?? [];
    if (!start) continue;
    const part = Buffer.alloc(Number(BigInt(`0x${end}`) - BigInt(`0x${start}`)));
    try {
      readSync(memory, part, 0, part.length, BigInt(`0x${start}`));
      parts.push(part);
    } catch {
      // Some of the kernel's own cannot be read.
    }
  }
  return parts;
}

/** A code as the relay keeps it: 6 letters of 5 bits each, in 8 bytes. */
function codeBytes(code) {
  let bits = 0n;
  for (const letter of code.replaceAll("-", "")) bits = (bits << 5n) | BigInt("0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(letter));
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(bits);
  return bytes;
}
