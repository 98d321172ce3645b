// The time that a browser's engine takes for a rollback of twelve ticks of eight robots and the ball, by node. Run after scripts/build-web.sh:
//
//   node tests/rollback.mjs [directory of the module [matches [seconds of each]]]
//
// It prints the times in milliseconds, as JSON.

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const directory = resolve(process.argv[2] ?? join(here, "../src/wasm"));
const [matches, seconds] = [process.argv[3] ?? "1", process.argv[4] ?? "20"].map(Number);

const { initSync, rollbackTimes } = await import(pathToFileURL(join(directory, "biobot.js")));
initSync({ module: readFileSync(join(directory, "biobot_bg.wasm")) });
// The engine compiles what is run often once more: what is run before that does not count.
rollbackTimes(0, Math.min(seconds, 5));
const times = [];
for (let seed = 1; seed <= matches; seed += 1) times.push(...rollbackTimes(seed, seconds));
console.log(JSON.stringify(times));
