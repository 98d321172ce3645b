// Sparks, splinters, smoke and dust: small tetrahedra in one instanced mesh, so that any number of them is one draw call.

import { Color, DynamicDrawUsage, InstancedMesh, Matrix4, MeshBasicMaterial, Quaternion, type Scene, TetrahedronGeometry, Vector3 } from "three";
import type { Triple } from "../model.ts";

export interface Burst {
  count: number;
  colour: number;
  /** Metres a second. */
  speed: number;
  size: number;
  seconds: number;
  /** Share of the game's gravity; negative rises. */
  weight: number;
  /** Direction it leaves to; all around if left out. */
  along?: Triple;
}

interface Particle {
  place: Vector3;
  speed: Vector3;
  weight: number;
  size: number;
  age: number;
  seconds: number;
}

export class Particles {
  private readonly mesh: InstancedMesh;
  private readonly particles: Particle[] = [];
  private next = 0;

  constructor(
    scene: Scene,
    private readonly capacity: number,
  ) {
    this.mesh = new InstancedMesh(new TetrahedronGeometry(1), new MeshBasicMaterial(), capacity);
    this.mesh.instanceMatrix.setUsage(DynamicDrawUsage);
    this.mesh.frustumCulled = false;
    for (let index = 0; index < capacity; index += 1) {
      this.particles.push({ place: new Vector3(), speed: new Vector3(), weight: 0, size: 0, age: 1, seconds: 1 });
      this.mesh.setMatrixAt(index, HIDDEN);
      this.mesh.setColorAt(index, WHITE);
    }
    scene.add(this.mesh);
  }

  emit(at: Triple, burst: Burst): void {
    colour.set(burst.colour);
    for (let count = 0; count < burst.count; count += 1) {
      const index = this.next;
      this.next = (this.next + 1) % this.capacity;
      const particle = this.particles[index];
      if (particle === undefined) return;
      particle.place.set(...at);
      particle.speed.set(random(), random(), random()).normalize().multiplyScalar(burst.speed * (0.3 + Math.random() * 0.7));
      if (burst.along !== undefined) particle.speed.multiplyScalar(0.55).addScaledVector(along.set(...burst.along), burst.speed * 0.7);
      Object.assign(particle, { weight: burst.weight, size: burst.size * (0.5 + Math.random()), age: 0, seconds: burst.seconds * (0.6 + Math.random() * 0.6) });
      this.mesh.setColorAt(index, colour);
    }
    if (this.mesh.instanceColor !== null) this.mesh.instanceColor.needsUpdate = true;
  }

  update(seconds: number): void {
    for (const [index, particle] of this.particles.entries()) {
      if (particle.age >= particle.seconds) continue;
      particle.age += seconds;
      particle.speed.y -= 20 * particle.weight * seconds;
      particle.place.addScaledVector(particle.speed, seconds);
      const left = Math.max(0, 1 - particle.age / particle.seconds);
      spin.setFromAxisAngle(AXIS, particle.age * 9 + index);
      matrix.compose(particle.place, spin, scale.setScalar(particle.size * left));
      this.mesh.setMatrixAt(index, left > 0 ? matrix : HIDDEN);
    }
    this.mesh.instanceMatrix.needsUpdate = true;
  }
}

function random(): number {
  return Math.random() * 2 - 1;
}

const HIDDEN = new Matrix4().makeScale(0, 0, 0);
const WHITE = new Color(0xffffff);
const AXIS = new Vector3(0.4, 0.8, 0.45).normalize();
const colour = new Color();
const along = new Vector3();
const scale = new Vector3();
const spin = new Quaternion();
const matrix = new Matrix4();
