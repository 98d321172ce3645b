// Debris of something that was destroyed: its own parts, thrown apart from where they were, bouncing once or twice on the floor that
// the caller names, then sinking away.

import { Mesh, type Object3D, Quaternion, type Scene, Vector3 } from "three";

interface Piece {
  mesh: Mesh;
  speed: Vector3;
  axis: Vector3;
  spin: number;
  floor: number;
  age: number;
}

export class Debris {
  private readonly pieces: Piece[] = [];

  constructor(private readonly scene: Scene) {}

  /** Throws apart every mesh below `source`; the source itself stays as it is. */
  burst(source: Object3D, floor: number, force: number): void {
    source.updateMatrixWorld(true);
    const centre = source.getWorldPosition(new Vector3());
    source.traverse((child) => {
      if (!(child instanceof Mesh) || this.pieces.length >= PIECES_MAX) return;
      const mesh = new Mesh(child.geometry, child.material);
      child.matrixWorld.decompose(mesh.position, mesh.quaternion, mesh.scale);
      mesh.castShadow = true;
      const away = mesh.position.clone().sub(centre).setY(0).normalize();
      const speed = away.multiplyScalar(force * (0.4 + Math.random())).add(new Vector3(random(1), force * (0.5 + Math.random()), random(1)));
      const axis = new Vector3(random(1), random(1), random(1)).normalize();
      this.pieces.push({ mesh, speed, axis, spin: random(12), floor, age: 0 });
      this.scene.add(mesh);
    });
  }

  update(seconds: number): void {
    for (let index = this.pieces.length - 1; index >= 0; index -= 1) {
      const piece = this.pieces[index];
      if (piece === undefined) continue;
      this.move(piece, seconds);
      if (piece.age > LIFE_SECONDS) {
        this.scene.remove(piece.mesh);
        this.pieces.splice(index, 1);
      }
    }
  }

  clear(): void {
    for (const piece of this.pieces) this.scene.remove(piece.mesh);
    this.pieces.length = 0;
  }

  private move(piece: Piece, seconds: number): void {
    piece.age += seconds;
    piece.speed.y -= 20 * seconds;
    piece.mesh.position.addScaledVector(piece.speed, seconds);
    piece.mesh.quaternion.premultiply(turn.setFromAxisAngle(piece.axis, piece.spin * seconds));
    const rest = piece.floor + 0.08 - Math.max(0, piece.age - LIFE_SECONDS + 1) * 0.5;
    if (piece.mesh.position.y < rest) {
      piece.mesh.position.y = rest;
      piece.speed.set(piece.speed.x * 0.5, Math.abs(piece.speed.y) * 0.35, piece.speed.z * 0.5);
      piece.spin *= 0.4;
      if (piece.speed.y < 0.6) piece.speed.set(0, 0, 0);
    }
  }
}

function random(spread: number): number {
  return (Math.random() * 2 - 1) * spread;
}

const turn = new Quaternion();
const PIECES_MAX = 160;
const LIFE_SECONDS = 5;
