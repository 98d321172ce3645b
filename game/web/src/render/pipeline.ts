// From the scene to the screen. At quality high everything that glows gets a halo; otherwise the scene is drawn as it is.

import { type Camera, HalfFloatType, type Scene, Vector2, WebGLRenderTarget, type WebGLRenderer } from "three";
import { EffectComposer } from "three/addons/postprocessing/EffectComposer.js";
import { OutputPass } from "three/addons/postprocessing/OutputPass.js";
import { RenderPass } from "three/addons/postprocessing/RenderPass.js";
import { UnrealBloomPass } from "three/addons/postprocessing/UnrealBloomPass.js";

export interface Pipeline {
  render(): void;
  resize(width: number, height: number): void;
}

export function plainPipeline(renderer: WebGLRenderer, scene: Scene, camera: Camera): Pipeline {
  return { render: () => renderer.render(scene, camera), resize: (width, height) => renderer.setSize(width, height, false) };
}

export function glowingPipeline(renderer: WebGLRenderer, scene: Scene, camera: Camera): Pipeline {
  const target = new WebGLRenderTarget(1, 1, { type: HalfFloatType, samples: SAMPLES });
  const composer = new EffectComposer(renderer, target);
  composer.addPass(new RenderPass(scene, camera));
  composer.addPass(new UnrealBloomPass(new Vector2(1, 1), STRENGTH, RADIUS, THRESHOLD));
  composer.addPass(new OutputPass());
  return {
    render: () => composer.render(),
    resize: (width, height) => {
      renderer.setSize(width, height, false);
      composer.setSize(width, height);
    },
  };
}

const SAMPLES = 4;
const STRENGTH = 0.35;
const RADIUS = 0.5;
/** Light that is brighter than any lit wall. */
const THRESHOLD = 0.82;
