// How the page is built: one bundle and one Worker, both as modules, into dist/.

import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: { target: "es2022", outDir: "dist", emptyOutDir: true, chunkSizeWarningLimit: 900 },
  worker: { format: "es" },
  server: { host: "127.0.0.1" },
});
