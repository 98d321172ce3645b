// Builds flat-shaded geometry out of coloured pieces: every rigid part of a robot, an enemy or a device is one geometry and one draw call,
// whatever it is made of. Colour and glow are vertex attributes, so that all of them share one material.

import { BoxGeometry, BufferAttribute, BufferGeometry, Color, ConeGeometry, CylinderGeometry, Euler, IcosahedronGeometry, Matrix4, Quaternion, TorusGeometry, Vector3 } from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import type { Triple } from "../model.ts";

/** Place of a piece, and its own light. */
export interface Placement {
  at?: Triple;
  turn?: Triple;
  /** 0 takes the light of the scene, 1 shines in its own colour. */
  glow?: number;
}

export class Shape {
  private readonly pieces: BufferGeometry[] = [];

  /** A box whose top may be narrower than its foot (`taper` 1 is a plain box). */
  box(size: Triple, colour: number, placement: Placement = {}, taper = 1): this {
    const geometry = new BoxGeometry(size[0], size[1], size[2]);
    if (taper !== 1) {
      const positions = geometry.getAttribute("position");
      for (let index = 0; index < positions.count; index += 1) {
        if (positions.getY(index) > 0) {
          positions.setX(index, positions.getX(index) * taper);
          positions.setZ(index, positions.getZ(index) * taper);
        }
      }
    }
    return this.add(geometry, colour, placement);
  }

  /** A cylinder along y; along another axis by `turn`. */
  tube(radiusTop: number, radiusFoot: number, height: number, sides: number, colour: number, placement: Placement = {}): this {
    return this.add(new CylinderGeometry(radiusTop, radiusFoot, height, sides), colour, placement);
  }

  spike(radius: number, height: number, sides: number, colour: number, placement: Placement = {}): this {
    return this.add(new ConeGeometry(radius, height, sides), colour, placement);
  }

  ball(radius: number, detail: number, colour: number, placement: Placement = {}): this {
    return this.add(new IcosahedronGeometry(radius, detail), colour, placement);
  }

  ring(radius: number, thickness: number, sides: number, colour: number, placement: Placement = {}): this {
    return this.add(new TorusGeometry(radius, thickness, 4, sides), colour, placement);
  }

  /** Any geometry; it is taken over and must not be used again. */
  add(geometry: BufferGeometry, colour: number, placement: Placement = {}): this {
    const { at = [0, 0, 0], turn = [0, 0, 0], glow = 0 } = placement;
    const flat = geometry.index === null ? geometry : geometry.toNonIndexed();
    flat.deleteAttribute("uv");
    const rotation = new Quaternion().setFromEuler(new Euler(...turn));
    flat.applyMatrix4(new Matrix4().compose(new Vector3(...at), rotation, new Vector3(1, 1, 1)));
    flat.computeVertexNormals();
    paint(flat, colour, glow);
    this.pieces.push(flat);
    return this;
  }

  build(): BufferGeometry {
    const geometry = mergeGeometries(this.pieces, false);
    geometry.computeBoundingSphere();
    return geometry;
  }
}

function paint(geometry: BufferGeometry, colour: number, glow: number): void {
  const count = geometry.getAttribute("position").count;
  const linear = new Color(colour);
  const colours = new Float32Array(count * 3);
  for (let index = 0; index < count; index += 1) linear.toArray(colours, index * 3);
  geometry.setAttribute("color", new BufferAttribute(colours, 3));
  geometry.setAttribute("glow", new BufferAttribute(new Float32Array(count).fill(glow), 1));
}
