// Small pieces of procedural animation: springs, and easing that does not depend on the frame rate.

/** A damped spring; kicked by `push`, it swings back to its target. */
export class Spring {
  value = 0;
  private speed = 0;

  constructor(
    private readonly stiffness: number,
    private readonly damping: number,
  ) {}

  push(speed: number): void {
    this.speed += speed;
  }

  step(seconds: number, target = 0): number {
    // Two half steps keep the integration stable at the 20 frames a second of software rendering.
    for (let half = 0; half < 2; half += 1) {
      const time = Math.min(seconds, 0.1) / 2;
      this.speed += ((target - this.value) * this.stiffness - this.speed * this.damping) * time;
      this.value += this.speed * time;
    }
    return this.value;
  }
}

/** Moves `from` towards `to`, by the same share per second at any frame rate. */
export function ease(from: number, to: number, rate: number, seconds: number): number {
  return from + (to - from) * (1 - Math.exp(-rate * seconds));
}

/** The same for an angle, along the shorter way. */
export function easeAngle(from: number, to: number, rate: number, seconds: number): number {
  return from + angleBetween(from, to) * (1 - Math.exp(-rate * seconds));
}

/** From one angle to another along the shorter way, -π to π. */
export function angleBetween(from: number, to: number): number {
  const turn = (to - from) % (2 * Math.PI);
  if (turn > Math.PI) return turn - 2 * Math.PI;
  if (turn < -Math.PI) return turn + 2 * Math.PI;
  return turn;
}
