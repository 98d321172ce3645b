// Plays the session in Chromium, over WebTransport and over WebSocket: node tests/browser.mjs ADDRESS KEY LINK. The package must have been built;
// playwright-core is that of game/web. CHROMIUM names the browser.

import { createReadStream } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const { chromium } = createRequire(join(root, "../../game/web/package.json"))("playwright-core");
const [address, key, link] = process.argv.slice(2);

const types = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html" };
const server = createServer((request, response) => {
  if (request.url === "/") return response.setHeader("content-type", "text/html").end("<!doctype html><title>Muse</title>");
  const file = createReadStream(join(root, new URL(request.url, "http://here").pathname));
  file.on("error", () => response.writeHead(404).end());
  response.setHeader("content-type", types[extname(request.url)] ?? "text/plain");
  file.pipe(response);
}).listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--headless"] });
try {
  const page = await browser.newPage();
  page.on("console", (message) => console.error(message.text()));
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  const lines = await page.evaluate(
    async ([address, key, link]) => {
      const muse = await import("/dist/index.js");
      const { play, refusals } = await import("/tests/session.js");
      const lines = await play(muse, address, key, link);
      await refusals(muse, address, key, link);
      return lines;
    },
    [address, key, link],
  );
  console.log(lines.join("\n"));
} finally {
  await browser.close();
  server.close();
}
