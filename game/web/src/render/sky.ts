// Sky, light and distance: a gradient dome with a low sun, towers in the haze, a warm key light that casts the shadows and a cool light from
// above. The shadow follows the player, so that a small map is enough.

import { BackSide, Color, DirectionalLight, FogExp2, HemisphereLight, Mesh, MeshBasicMaterial, type Scene, ShaderMaterial, SphereGeometry, Sprite, type Texture, type Vector3 } from "three";
import type { Quality } from "../settings.ts";
import { glowMaterial } from "./materials.ts";
import { ABYSS, FOG, GROUND_LIGHT, KEY_LIGHT, KEY_STRENGTH, SKY_HORIZON, SKY_LIGHT, SKY_STRENGTH, SKY_TOP, SUN } from "./palette.ts";
import { Shape } from "./shape.ts";

export class Sky {
  private readonly key = new DirectionalLight(KEY_LIGHT, KEY_STRENGTH);
  private readonly dome: Mesh;

  constructor(scene: Scene, quality: Quality, glow: Texture) {
    scene.fog = new FogExp2(FOG, 0.011);
    scene.add(new HemisphereLight(SKY_LIGHT, GROUND_LIGHT, SKY_STRENGTH), this.key, this.key.target);
    this.dome = new Mesh(new SphereGeometry(380, 24, 12), skyMaterial());
    this.dome.frustumCulled = false;
    const sun = new Sprite(glowMaterial(glow, 0xffd9a0, 0.9));
    sun.position.copy(SUN).multiplyScalar(330);
    sun.scale.setScalar(120);
    this.dome.add(sun, skyline());
    scene.add(this.dome);
    if (quality !== "low") this.castShadows(quality === "high" ? 4096 : 2048);
  }

  follow(place: Vector3): void {
    this.dome.position.set(place.x, 0, place.z);
    // Whole texels only, or the edges of shadows would crawl.
    const grid = (2 * SHADOW_METRES) / this.key.shadow.mapSize.x;
    const x = Math.round(place.x / grid) * grid;
    const y = Math.round(place.y / grid) * grid;
    const z = Math.round(place.z / grid) * grid;
    this.key.target.position.set(x, y, z);
    this.key.position.set(x + SUN.x * 60, y + SUN.y * 60, z + SUN.z * 60);
  }

  private castShadows(size: number): void {
    this.key.castShadow = true;
    const { shadow } = this.key;
    shadow.mapSize.set(size, size);
    Object.assign(shadow.camera, { left: -SHADOW_METRES, right: SHADOW_METRES, top: SHADOW_METRES, bottom: -SHADOW_METRES, near: 1, far: 140 });
    shadow.bias = -0.0006;
    shadow.normalBias = 0.03;
  }
}

function skyMaterial(): ShaderMaterial {
  return new ShaderMaterial({
    side: BackSide,
    depthWrite: false,
    fog: false,
    uniforms: { top: { value: new Color(SKY_TOP) }, horizon: { value: new Color(SKY_HORIZON) }, haze: { value: new Color(FOG) }, abyss: { value: new Color(ABYSS) } },
    vertexShader: "varying vec3 vPlace; void main() { vPlace = normalize(position); gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }",
    fragmentShader: `uniform vec3 top; uniform vec3 horizon; uniform vec3 haze; uniform vec3 abyss; varying vec3 vPlace;
      void main() {
        float height = vPlace.y;
        vec3 colour = mix(horizon, top, smoothstep(0.02, 0.55, height));
        colour = mix(haze, colour, smoothstep(-0.02, 0.12, height));
        colour = mix(abyss, colour, smoothstep(-0.4, -0.03, height));
        gl_FragColor = vec4(colour, 1.0);
        #include <tonemapping_fragment>
        #include <colorspace_fragment>
      }`,
  });
}

/** Towers and chimneys far away, the same every time. */
function skyline(): Mesh {
  const shape = new Shape();
  let seed = 7;
  const random = (): number => {
    seed = (seed * 16807) % 2147483647;
    return seed / 2147483647;
  };
  for (let index = 0; index < 46; index += 1) {
    const angle = (index / 46) * Math.PI * 2 + random() * 0.1;
    const distance = 220 + random() * 110;
    const height = 14 + random() * random() * 80;
    const width = 8 + random() * 22;
    const at: [number, number, number] = [Math.cos(angle) * distance, height / 2 - 6, Math.sin(angle) * distance];
    shape.box([width, height, width], distance > 280 ? 0xc48a7c : 0xa8747a, { at, turn: [0, random() * 3, 0] }, 0.75 + random() * 0.25);
  }
  return new Mesh(shape.build(), new MeshBasicMaterial({ vertexColors: true, fog: false }));
}

const SHADOW_METRES = 32;
