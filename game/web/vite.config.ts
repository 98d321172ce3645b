// Build of the page: one bundle and one Worker, both as modules, into dist/.

import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: { target: "es2022", outDir: "dist", emptyOutDir: true, chunkSizeWarningLimit: 900 },
  worker: { format: "es" },
  // The sessions are those of the npm package.
  server: { host: "127.0.0.1", fs: { allow: [".", "../../bindings/typescript"] } },
});
