// Which quality suits a machine that has not been here before: without a GPU, the lowest.

import type { Quality } from "../settings.ts";

export function suitableQuality(): Quality {
  const context = document.createElement("canvas").getContext("webgl2");
  if (context === null) return "low";
  const information = context.getExtension("WEBGL_debug_renderer_info");
  const name: unknown = context.getParameter(information?.UNMASKED_RENDERER_WEBGL ?? context.RENDERER);
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return isSoftware(String(name)) ? "low" : "medium";
}

/** Names of renderers that draw with the processor. */
export function isSoftware(name: string): boolean {
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name);
}
