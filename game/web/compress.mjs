// Writes compressed forms of the built page's files beside them, which `muse up` sends to browsers that take them.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";

for (const name of readdirSync("dist", { recursive: true })) {
  if (!/\.(css|html|js|json|svg|wasm)$/.test(name)) continue;
  const path = join("dist", name);
  const content = readFileSync(path);
  if (content.length < 1_024) continue;
  writeFileSync(`${path}.br`, brotliCompressSync(content));
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
}
