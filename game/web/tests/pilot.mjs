// Fingers and eyes for tests: a pilot inside of the page, who sees what `window.biobot` says and presses the same keys as a player. It runs where the
// picture is drawn, so that a slow connection between test and browser never makes a robot run too far. `install` goes into the page before anything of its own.

/** Makes `window.pilot`. Everything it needs is inside: it is sent to the browser as text. */
export function install() {
  const held = new Set();
  const key = (type, code) => dispatchEvent(new KeyboardEvent(type, { code, bubbles: true, cancelable: true }));
  const hold = (...codes) => {
    for (const code of held) if (!codes.includes(code)) key("keyup", code);
    for (const code of codes) if (!held.has(code)) key("keydown", code);
    held.clear();
    for (const code of codes) held.add(code);
  };
  const soon = () => new Promise((resolve) => setTimeout(resolve, 12));
  const ground = ([x, , z], [toX, toZ]) => Math.hypot(toX - x, toZ - z);

  /** The pilot's view, or the reason why it cannot go on. */
  function see() {
    const { match, screen } = window.biobot;
    if (match === undefined || screen !== "game") throw new Error(`no match: ${screen}`);
    if (!match.alive || match.newest === undefined) throw new Error("died");
    return match;
  }

  function face([x, , z], [toX, toZ], pitch = 0) {
    window.biobot.look(Math.atan2(x - toX, z - toZ), pitch);
  }

  /** Does something until it is done, dies or has taken too long; lets go of every key then. Says how it ended. */
  async function act(limitMs, step) {
    const until = performance.now() + limitMs;
    try {
      for (;;) {
        if (step(see()) === true) return "done";
        if (performance.now() > until) return "late";
        await soon();
      }
    } catch (error) {
      return error.message;
    } finally {
      hold();
    }
  }

  window.pilot = {
    /** Walks to a point on the ground, the nearer the slower. */
    walk: (to, near = 0.6, limitMs = 15_000) =>
      act(limitMs, ({ newest }) => {
        const far = ground(newest.position, to);
        const speed = Math.hypot(newest.velocity[0], newest.velocity[2]);
        if (far < near) return speed < 1 || hold();
        face(newest.position, to);
        // Brakes in time: what is under way when the key is let go takes a moment.
        hold(...(far < near + speed * 0.12 ? [] : ["KeyW"]));
        return false;
      }),
    /** Jumps ahead to a point at some height, and stands there in the end. */
    leap: (to, height, near = 0.6, limitMs = 10_000) =>
      act(limitMs, ({ newest }) => {
        const far = ground(newest.position, to);
        const standing = newest.standing !== 0;
        const there = Math.abs(newest.position[1] - height) < 0.3;
        if (standing && there && far < near) return true;
        face(newest.position, to);
        // One press for one jump: let go on the ground, pressed until it is in the air.
        const jump = standing && !held.has("Space") && (!there || far > near + 1);
        hold(...(far < 0.2 ? [] : ["KeyW"]), ...(jump ? ["Space"] : []));
        return false;
      }),
    /** Presses a key again and again, looking at something, until a device says what is wanted. */
    use: (at, door, limitMs = 45_000) => {
      let next = 0;
      return act(limitMs, ({ newest, doors }) => {
        if (doors[door] > 0) return true;
        face(newest.position, at);
        const now = performance.now();
        if (now > next) {
          hold(...(held.has("KeyE") ? [] : ["KeyE"]));
          next = now + 150;
        }
        return false;
      });
    },
    /** Fights what is awake, the nearest first, until nothing is. Fires with the key that is named. */
    fight: (fireKey, limitMs = 60_000) => {
      let quietSince;
      return act(limitMs, ({ newest, enemies, magazine }) => {
        const [x, y, z] = newest.position;
        const far = ({ position }) => Math.hypot(position[0] - x, position[1] - y, position[2] - z);
        const [target] = enemies.filter(({ dead, stance }) => !dead && stance !== "Idle").sort((one, other) => far(one) - far(other));
        if (target === undefined) {
          hold();
          quietSince ??= performance.now();
          return performance.now() > quietSince + 1_000;
        }
        quietSince = undefined;
        const rise = target.position[1] + (HEIGHTS[target.species] ?? 0.5) - (y + 1.6);
        const flat = Math.hypot(target.position[0] - x, target.position[2] - z);
        face(newest.position, [target.position[0], target.position[2]], Math.atan2(rise, flat));
        // Backs off from what is near, and reloads in time.
        hold(...(magazine > 0 ? [fireKey] : ["KeyR"]), ...(flat < 3 ? ["KeyS"] : []));
        return false;
      });
    },
  };
  /** Height to aim at, above the feet. */
  const HEIGHTS = { Cat: 0.45, Tank: 0.9, Wasp: 0 };
}
