// The browser of all tests: Chromium without a window, which draws with the processor.

import { chromium } from "playwright-core";

export const FLAGS = [
  "--no-sandbox",
  "--headless",
  "--disable-gpu",
  "--use-angle=swiftshader",
  "--enable-unsafe-swiftshader",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--mute-audio",
];
export const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

export function launch(more = []) {
  return chromium.launch({ executablePath, args: [...FLAGS, ...more] });
}
