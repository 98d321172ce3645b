// Tracers and decals: thin boxes of light along a shot, and small polygons on what it struck. Both are rings of instances; the oldest goes
// when a new one needs its place.

import { AdditiveBlending, BoxGeometry, CircleGeometry, Color, InstancedMesh, Matrix4, MeshBasicMaterial, Quaternion, type Scene, Vector3 } from "three";
import type { Triple } from "../model.ts";

interface Tracer {
  from: Vector3;
  to: Vector3;
  width: number;
  age: number;
  seconds: number;
}

export class Tracers {
  private readonly mesh: InstancedMesh;
  private readonly tracers: (Tracer | undefined)[] = [];
  private next = 0;

  constructor(scene: Scene) {
    const material = new MeshBasicMaterial({ blending: AdditiveBlending, transparent: true, depthWrite: false, fog: false });
    this.mesh = new InstancedMesh(new BoxGeometry(1, 1, 1).translate(0, 0, 0.5), material, TRACERS);
    this.mesh.frustumCulled = false;
    for (let index = 0; index < TRACERS; index += 1) {
      this.mesh.setMatrixAt(index, HIDDEN);
      this.mesh.setColorAt(index, colour.set(0xffffff));
    }
    scene.add(this.mesh);
  }

  add(from: Vector3, to: Vector3, tint: number, width: number, seconds: number): void {
    const index = this.next;
    this.next = (this.next + 1) % TRACERS;
    this.tracers[index] = { from: from.clone(), to: to.clone(), width, age: 0, seconds };
    this.mesh.setColorAt(index, colour.set(tint));
    if (this.mesh.instanceColor !== null) this.mesh.instanceColor.needsUpdate = true;
  }

  update(seconds: number): void {
    for (const [index, tracer] of this.tracers.entries()) {
      if (tracer === undefined) continue;
      this.mesh.setMatrixAt(index, this.place(tracer));
      tracer.age += seconds;
      if (tracer.age > tracer.seconds) {
        this.tracers[index] = undefined;
        this.mesh.setMatrixAt(index, HIDDEN);
      }
    }
    this.mesh.instanceMatrix.needsUpdate = true;
  }

  /** The tail runs after the head, so that a shot has a direction. */
  private place(tracer: Tracer): Matrix4 {
    const share = Math.min(tracer.age / tracer.seconds, 1);
    line.copy(tracer.to).sub(tracer.from);
    const length = Math.max(line.length(), 0.01);
    turn.setFromUnitVectors(FORWARD, line.divideScalar(length));
    const start = share * share * length;
    const width = tracer.width * (1 - share * 0.7);
    place.copy(tracer.from).addScaledVector(line, start);
    return matrix.compose(place, turn, size.set(width, width, length - start));
  }
}

export class Decals {
  private readonly mesh: InstancedMesh;
  private next = 0;

  constructor(
    scene: Scene,
    private readonly capacity: number,
  ) {
    const material = new MeshBasicMaterial({ transparent: true, opacity: 0.75, depthWrite: false, polygonOffset: true, polygonOffsetFactor: -2, polygonOffsetUnits: -2 });
    this.mesh = new InstancedMesh(new CircleGeometry(1, 7), material, capacity);
    this.mesh.frustumCulled = false;
    this.clear();
    scene.add(this.mesh);
  }

  add(at: Triple, normal: Triple, tint: number, radius: number): void {
    const index = this.next;
    this.next = (this.next + 1) % this.capacity;
    line.set(...normal);
    if (line.lengthSq() < 0.5) return;
    turn.setFromUnitVectors(FORWARD, line.normalize());
    roll.setFromAxisAngle(line, Math.random() * Math.PI * 2);
    place.set(...at).addScaledVector(line, 0.012);
    this.mesh.setMatrixAt(index, matrix.compose(place, roll.multiply(turn), size.setScalar(radius)));
    this.mesh.setColorAt(index, colour.set(tint));
    this.mesh.instanceMatrix.needsUpdate = true;
    if (this.mesh.instanceColor !== null) this.mesh.instanceColor.needsUpdate = true;
  }

  clear(): void {
    for (let index = 0; index < this.capacity; index += 1) {
      this.mesh.setMatrixAt(index, HIDDEN);
      this.mesh.setColorAt(index, colour.set(0));
    }
    this.mesh.instanceMatrix.needsUpdate = true;
  }
}

const TRACERS = 96;
const HIDDEN = new Matrix4().makeScale(0, 0, 0);
const FORWARD = new Vector3(0, 0, 1);
const colour = new Color();
const line = new Vector3();
const place = new Vector3();
const size = new Vector3();
const turn = new Quaternion();
const roll = new Quaternion();
const matrix = new Matrix4();
