// Plays the session in node, over WebSocket: node [--experimental-websocket] tests/node.mjs ADDRESS KEY. The package must have been built.

import { readFile } from "node:fs/promises";
import * as muse from "../dist/index.js";
import { play, refusals } from "./session.js";

const [address, key] = process.argv.slice(2);
const wasm = await readFile(new URL("../dist/wasm/muse_bg.wasm", import.meta.url));
const lines = await play(muse, address, key, "websocket", wasm);
console.log(lines.join("\n"));
await refusals(muse, address, key, "websocket", wasm);

// Mistakes are told at once, and in words.
const options = { protocol: 1n, channels: [{ delivery: "unreliable" }], wasm };
await refused(muse.connect(address, options), "either serverKey or token");
await refused(muse.connect(address, { ...options, serverKey: "xyz" }), "");
await refused(muse.connect(address, { ...options, serverKey: key, channels: [{ delivery: "soon" }] }), "soon");
await refused(muse.connect(address, { ...options, serverKey: key, prefer: "websocket", connectWithin: 1_000 }), "nobody answered");
process.exit(0);

async function refused(attempt, words) {
  const error = await attempt.then(
    () => undefined,
    (error) => error,
  );
  if (!(error instanceof muse.MuseError) || !error.message.includes(words)) throw new Error(`expected ${words}, not ${error}`);
}
