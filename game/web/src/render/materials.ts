// The few materials of the game. All are Lambert with vertex colours and a `glow` attribute; the world's adds panel lines and a darker
// foot from the world position, which gives scale and contact without a single texture.

import { AdditiveBlending, CanvasTexture, Color, type Material, MeshBasicMaterial, MeshLambertMaterial, SpriteMaterial, type Texture, type Vector3 } from "three";
import { GROUND_LIGHT, KEY_LIGHT, KEY_STRENGTH, SKY_LIGHT, SKY_STRENGTH, SUN } from "./palette.ts";

/** A material whose brightness an actor may raise when it is hit. */
export interface ActorMaterial {
  material: Material;
  flash: { value: number };
}

/**
 * At quality low, light is worked out per corner instead of per pixel: everything is flat anyway, and without a GPU this is most of the
 * time of a picture. Set once, before anything is built.
 */
let simple = false;

export function useSimpleLight(on: boolean): void {
  simple = on;
}

export function actorMaterial(): ActorMaterial {
  const flash = { value: 0 };
  const material = litMaterial();
  const glow = "vColor.rgb * vGlow * 0.85 + vec3(1.0, 0.9, 0.8) * flash";
  material.onBeforeCompile = (shader) => {
    shader.uniforms.flash = flash;
    addGlow(shader, "uniform float flash;", glow);
  };
  material.customProgramCacheKey = () => (simple ? "actor-simple" : "actor");
  return { material, flash };
}

/** The level's own surface, with panel lines where there is time for them. */
export function worldMaterial(): Material {
  const material = litMaterial();
  const lines = !simple;
  material.onBeforeCompile = (shader) => {
    addGlow(shader, lines ? `varying vec3 vPlace;\nvarying vec3 vFacing;\n${PANEL_LINES}` : "", "vColor.rgb * vGlow * 0.9");
    if (!lines) return;
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", "#include <common>\nvarying vec3 vPlace;\nvarying vec3 vFacing;")
      .replace("#include <begin_vertex>", "#include <begin_vertex>\nvPlace = (modelMatrix * vec4(position, 1.0)).xyz;\nvFacing = mat3(modelMatrix) * normal;");
    shader.fragmentShader = shader.fragmentShader.replace("#include <color_fragment>", "#include <color_fragment>\ndiffuseColor.rgb *= panel(vPlace, vFacing);");
  };
  material.customProgramCacheKey = () => (lines ? "world-lines" : "world");
  return material;
}

function litMaterial(): Material {
  return simple ? new MeshBasicMaterial({ vertexColors: true }) : new MeshLambertMaterial({ vertexColors: true });
}

/** Adds the `glow` attribute, and at quality low the light as well. */
function addGlow(shader: { vertexShader: string; fragmentShader: string }, declarations: string, glow: string): void {
  const light = simple ? SIMPLE_LIGHT : "";
  shader.vertexShader = shader.vertexShader
    .replace("#include <common>", `#include <common>\nattribute float glow;\nvarying float vGlow;\n${simple ? "varying vec3 vLight;" : ""}`)
    .replace("#include <begin_vertex>", `#include <begin_vertex>\nvGlow = glow;\n${light}`);
  const common = `#include <common>\nvarying float vGlow;\n${declarations}\n${simple ? "varying vec3 vLight;" : ""}`;
  shader.fragmentShader = shader.fragmentShader.replace("#include <common>", common);
  shader.fragmentShader = simple
    ? shader.fragmentShader.replace("#include <opaque_fragment>", `outgoingLight = outgoingLight * vLight + ${glow};\n#include <opaque_fragment>`)
    : shader.fragmentShader.replace("#include <emissivemap_fragment>", `#include <emissivemap_fragment>\ntotalEmissiveRadiance += ${glow};`);
}

/** The key light and the sky, as sky.ts has them, divided by π as Lambert does. */
const SIMPLE_LIGHT = `
vec3 facing = normalize(mat3(modelMatrix) * normal);
vec3 fromSky = mix(${shaderColour(GROUND_LIGHT)}, ${shaderColour(SKY_LIGHT)}, facing.y * 0.5 + 0.5) * ${(SKY_STRENGTH / Math.PI).toFixed(3)};
vLight = fromSky + ${shaderColour(KEY_LIGHT)} * max(dot(facing, ${shaderVector(SUN)}), 0.0) * ${(KEY_STRENGTH / Math.PI).toFixed(3)};`;

function shaderColour(hex: number): string {
  const { r, g, b } = new Color(hex);
  return `vec3(${r.toFixed(4)}, ${g.toFixed(4)}, ${b.toFixed(4)})`;
}

function shaderVector({ x, y, z }: Vector3): string {
  return `vec3(${x.toFixed(4)}, ${y.toFixed(4)}, ${z.toFixed(4)})`;
}

/** Panes: seen through, lit like everything else. */
export function glassMaterial(): MeshLambertMaterial {
  return new MeshLambertMaterial({ vertexColors: true, transparent: true, opacity: 0.38, depthWrite: false });
}

const PANEL_LINES = `
float seam(vec2 place, float size, float width) {
  vec2 cell = abs(fract(place / size - 0.5) - 0.5) * size;
  vec2 edge = fwidth(place) * 1.2 + width;
  vec2 line = smoothstep(edge, edge * 0.4, cell);
  return max(line.x, line.y) * smoothstep(1.0, 0.2, max(edge.x, edge.y) / size * 6.0);
}
float hash(vec2 cell) { return fract(sin(dot(cell, vec2(12.9898, 78.233))) * 43758.5453); }
float panel(vec3 place, vec3 facing) {
  vec3 side = abs(facing);
  vec2 plane = side.y > max(side.x, side.z) ? place.xz : (side.x > side.z ? place.zy : place.xy);
  float tone = 0.94 + 0.12 * hash(floor(plane / 4.0 + 0.5) + floor(facing.xy * 3.0));
  return tone * (1.0 - 0.30 * seam(plane, 4.0, 0.02) - 0.10 * seam(plane, 1.0, 0.005));
}`;

/** A soft round light, drawn once in a canvas. */
export function glowTexture(): Texture {
  const size = 64;
  const canvas = document.createElement("canvas");
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext("2d");
  if (context !== null) {
    const gradient = context.createRadialGradient(size / 2, size / 2, 0, size / 2, size / 2, size / 2);
    gradient.addColorStop(0, "rgba(255,255,255,1)");
    gradient.addColorStop(0.25, "rgba(255,255,255,0.45)");
    gradient.addColorStop(1, "rgba(255,255,255,0)");
    context.fillStyle = gradient;
    context.fillRect(0, 0, size, size);
  }
  return new CanvasTexture(canvas);
}

export function glowMaterial(texture: Texture, colour: number, opacity = 1): SpriteMaterial {
  return new SpriteMaterial({ map: texture, color: colour, blending: AdditiveBlending, transparent: true, depthWrite: false, opacity, fog: false });
}
