// The few materials of the game. All are Lambert with vertex colours and a `glow` attribute; the world's adds panel lines and a darker
// foot from the world position, which gives scale and contact without a single texture.

import { AdditiveBlending, CanvasTexture, MeshLambertMaterial, SpriteMaterial, type Texture } from "three";

/** A material whose brightness an actor may raise when it is hit. */
export interface ActorMaterial {
  material: MeshLambertMaterial;
  flash: { value: number };
}

export function actorMaterial(): ActorMaterial {
  const flash = { value: 0 };
  const material = new MeshLambertMaterial({ vertexColors: true });
  material.onBeforeCompile = (shader) => {
    shader.uniforms.flash = flash;
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", "#include <common>\nattribute float glow;\nvarying float vGlow;")
      .replace("#include <begin_vertex>", "#include <begin_vertex>\nvGlow = glow;");
    shader.fragmentShader = shader.fragmentShader
      .replace("#include <common>", "#include <common>\nvarying float vGlow;\nuniform float flash;")
      .replace(
        "#include <emissivemap_fragment>",
        "#include <emissivemap_fragment>\ntotalEmissiveRadiance += vColor.rgb * vGlow * 0.85 + vec3(1.0, 0.9, 0.8) * flash;",
      );
  };
  material.customProgramCacheKey = () => "actor";
  return { material, flash };
}

/** The level's own surface. `lines` switches the panel lines, which cost a little at quality low. */
export function worldMaterial(lines: boolean): MeshLambertMaterial {
  const material = new MeshLambertMaterial({ vertexColors: true });
  material.onBeforeCompile = (shader) => {
    shader.vertexShader = shader.vertexShader
      .replace("#include <common>", "#include <common>\nattribute float glow;\nvarying float vGlow;\nvarying vec3 vPlace;\nvarying vec3 vFacing;")
      .replace(
        "#include <begin_vertex>",
        "#include <begin_vertex>\nvGlow = glow;\nvPlace = (modelMatrix * vec4(position, 1.0)).xyz;\nvFacing = mat3(modelMatrix) * normal;",
      );
    shader.fragmentShader = shader.fragmentShader
      .replace("#include <common>", `#include <common>\nvarying float vGlow;\nvarying vec3 vPlace;\nvarying vec3 vFacing;\n${lines ? PANEL_LINES : ""}`)
      .replace("#include <color_fragment>", `#include <color_fragment>\n${lines ? "diffuseColor.rgb *= panel(vPlace, vFacing);" : ""}`)
      .replace("#include <emissivemap_fragment>", "#include <emissivemap_fragment>\ntotalEmissiveRadiance += vColor.rgb * vGlow * 0.9;");
  };
  material.customProgramCacheKey = () => (lines ? "world-lines" : "world");
  return material;
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
