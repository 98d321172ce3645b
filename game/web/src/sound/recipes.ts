// Sounds: each one is a short list of tones and noises. Weapons differ in weight, steps in material.

import type { Noise, Tone } from "./engine.ts";

export interface Recipe {
  tones?: Tone[];
  noises?: Noise[];
}

export const SHOTS: Record<number, Recipe> = {
  1: { tones: [{ wave: "square", from: 900, to: 160, seconds: 0.12, gain: 0.16 }], noises: [{ filter: "highpass", from: 2500, to: 900, seconds: 0.08, gain: 0.25 }] },
  2: { tones: [{ wave: "sine", from: 140, to: 40, seconds: 0.3, gain: 0.6 }], noises: [{ filter: "lowpass", from: 1400, to: 200, seconds: 0.35, gain: 0.5 }] },
  3: { tones: [{ wave: "sawtooth", from: 220, to: 45, seconds: 0.16, gain: 0.3 }], noises: [{ filter: "lowpass", from: 5200, to: 500, seconds: 0.28, gain: 0.7 }] },
  4: {
    tones: [
      { wave: "sawtooth", from: 1800, to: 90, seconds: 0.5, gain: 0.3 },
      { wave: "sine", from: 70, to: 30, seconds: 0.6, gain: 0.6 },
    ],
    noises: [{ filter: "bandpass", from: 6000, to: 900, seconds: 0.5, gain: 0.3, sharpness: 3 }],
  },
};

/** By species: tank, cat, wasp, boss. */
export const ENEMY_SHOTS: Recipe[] = [
  { tones: [{ wave: "sine", from: 95, to: 28, seconds: 0.55, gain: 0.9 }], noises: [{ filter: "lowpass", from: 900, to: 90, seconds: 0.6, gain: 0.8 }] },
  { tones: [{ wave: "triangle", from: 1500, to: 500, seconds: 0.09, gain: 0.3 }] },
  { tones: [{ wave: "sawtooth", from: 700, to: 1400, seconds: 0.12, gain: 0.14 }] },
  { tones: [{ wave: "sawtooth", from: 60, to: 180, seconds: 0.5, gain: 0.5 }], noises: [{ filter: "bandpass", from: 300, to: 1500, seconds: 0.4, gain: 0.4 }] },
];

export const ENEMY_DEATHS: Recipe[] = [
  { tones: [{ wave: "sine", from: 70, to: 22, seconds: 1.1, gain: 0.9 }], noises: [{ filter: "lowpass", from: 2600, to: 80, seconds: 1.1, gain: 0.9 }] },
  { tones: [{ wave: "sawtooth", from: 900, to: 180, seconds: 0.4, gain: 0.25 }], noises: [{ filter: "bandpass", from: 2200, to: 500, seconds: 0.3, gain: 0.4 }] },
  { tones: [{ wave: "square", from: 500, to: 60, seconds: 0.3, gain: 0.16 }], noises: [{ filter: "highpass", from: 3000, to: 800, seconds: 0.2, gain: 0.3 }] },
  { tones: [{ wave: "sawtooth", from: 200, to: 20, seconds: 2.4, gain: 0.8 }], noises: [{ filter: "lowpass", from: 4000, to: 60, seconds: 2.4, gain: 1 }] },
];

/** A cat that has seen somebody. */
export const CAT_CALL: Recipe = {
  tones: [
    { wave: "sawtooth", from: 520, to: 880, seconds: 0.16, gain: 0.12 },
    { wave: "sawtooth", from: 880, to: 420, seconds: 0.3, gain: 0.12, delay: 0.15 },
  ],
};
export const TANK_CALL: Recipe = { tones: [{ wave: "square", from: 110, to: 104, seconds: 0.5, gain: 0.16 }, { wave: "square", from: 165, to: 160, seconds: 0.5, gain: 0.1 }] };
export const BOSS_CALL: Recipe = { tones: [{ wave: "sawtooth", from: 45, to: 90, seconds: 1.4, gain: 0.7 }, { wave: "square", from: 91, to: 46, seconds: 1.6, gain: 0.25 }] };

export const STEPS: Record<string, Recipe> = {
  concrete: { noises: [{ filter: "bandpass", from: 900, to: 300, seconds: 0.07, gain: 0.3 }] },
  metal: { tones: [{ wave: "triangle", from: 420, to: 300, seconds: 0.12, gain: 0.09 }], noises: [{ filter: "bandpass", from: 2400, to: 1200, seconds: 0.06, gain: 0.22, sharpness: 4 }] },
  wood: { tones: [{ wave: "sine", from: 190, to: 120, seconds: 0.08, gain: 0.25 }], noises: [{ filter: "bandpass", from: 600, to: 300, seconds: 0.05, gain: 0.2 }] },
  glass: { tones: [{ wave: "sine", from: 1900, to: 1700, seconds: 0.06, gain: 0.06 }], noises: [{ filter: "highpass", from: 3000, to: 2000, seconds: 0.04, gain: 0.1 }] },
  organic: { noises: [{ filter: "highpass", from: 1800, to: 900, seconds: 0.1, gain: 0.1 }] },
};

export const IMPACTS: Record<string, Recipe> = {
  concrete: { noises: [{ filter: "bandpass", from: 1800, to: 400, seconds: 0.12, gain: 0.35 }] },
  metal: { tones: [{ wave: "triangle", from: 2600, to: 1500, seconds: 0.22, gain: 0.12 }], noises: [{ filter: "highpass", from: 4000, to: 2000, seconds: 0.06, gain: 0.3 }] },
  wood: { tones: [{ wave: "sine", from: 300, to: 150, seconds: 0.1, gain: 0.3 }], noises: [{ filter: "bandpass", from: 900, to: 400, seconds: 0.1, gain: 0.3 }] },
  glass: { tones: [{ wave: "sine", from: 3400, to: 2900, seconds: 0.25, gain: 0.1 }, { wave: "sine", from: 4700, to: 4200, seconds: 0.2, gain: 0.07 }] },
  enemy: { tones: [{ wave: "square", from: 700, to: 300, seconds: 0.07, gain: 0.12 }], noises: [{ filter: "bandpass", from: 3000, to: 900, seconds: 0.1, gain: 0.35 }] },
};

export const EXPLOSION: Recipe = {
  tones: [{ wave: "sine", from: 110, to: 24, seconds: 0.8, gain: 0.9 }],
  noises: [{ filter: "lowpass", from: 3600, to: 100, seconds: 1, gain: 0.9 }],
};
export const JUMP: Recipe = { tones: [{ wave: "triangle", from: 170, to: 420, seconds: 0.16, gain: 0.14 }], noises: [{ filter: "bandpass", from: 500, to: 1500, seconds: 0.12, gain: 0.12 }] };
export const LAND: Recipe = { tones: [{ wave: "sine", from: 130, to: 50, seconds: 0.14, gain: 0.4 }], noises: [{ filter: "lowpass", from: 900, to: 200, seconds: 0.14, gain: 0.3 }] };
export const RELOAD: Recipe = {
  noises: [
    { filter: "bandpass", from: 2200, to: 1400, seconds: 0.05, gain: 0.3, sharpness: 3 },
    { filter: "bandpass", from: 1400, to: 2600, seconds: 0.06, gain: 0.3, sharpness: 3, delay: 0.28 },
  ],
};
export const EMPTY: Recipe = { noises: [{ filter: "highpass", from: 3000, to: 2500, seconds: 0.03, gain: 0.25 }] };
export const DEATH: Recipe = { tones: [{ wave: "sawtooth", from: 480, to: 40, seconds: 0.8, gain: 0.3 }], noises: [{ filter: "lowpass", from: 3000, to: 120, seconds: 0.8, gain: 0.6 }] };
export const RESPAWN: Recipe = { tones: [{ wave: "sine", from: 220, to: 880, seconds: 0.5, gain: 0.2 }, { wave: "sine", from: 330, to: 1320, seconds: 0.5, gain: 0.12, delay: 0.08 }] };
export const PICKUP: Recipe = { tones: [{ wave: "triangle", from: 660, to: 660, seconds: 0.1, gain: 0.2 }, { wave: "triangle", from: 990, to: 990, seconds: 0.22, gain: 0.2, delay: 0.1 }] };
export const CHECKPOINT: Recipe = {
  tones: [523, 659, 784].map((from, index) => ({ wave: "triangle" as const, from, to: from, seconds: 0.35, gain: 0.16, delay: index * 0.09 })),
};
export const SWITCH: Recipe = { tones: [{ wave: "square", from: 180, to: 320, seconds: 0.07, gain: 0.16 }], noises: [{ filter: "bandpass", from: 1600, to: 900, seconds: 0.06, gain: 0.3 }] };
export const DOOR: Recipe = { tones: [{ wave: "sawtooth", from: 60, to: 84, seconds: 0.7, gain: 0.16 }], noises: [{ filter: "bandpass", from: 300, to: 700, seconds: 0.7, gain: 0.35 }] };
export const THUD: Recipe = { tones: [{ wave: "sine", from: 90, to: 40, seconds: 0.25, gain: 0.6 }], noises: [{ filter: "lowpass", from: 600, to: 100, seconds: 0.2, gain: 0.4 }] };

export const HIT_MARK: Recipe = { tones: [{ wave: "square", from: 1500, to: 1350, seconds: 0.045, gain: 0.14 }] };
export const KILL_MARK: Recipe = { tones: [{ wave: "square", from: 1000, to: 1000, seconds: 0.06, gain: 0.14 }, { wave: "square", from: 1500, to: 1500, seconds: 0.14, gain: 0.14, delay: 0.06 }] };
export const HURT: Recipe = { tones: [{ wave: "sawtooth", from: 160, to: 70, seconds: 0.18, gain: 0.25 }], noises: [{ filter: "lowpass", from: 1500, to: 300, seconds: 0.15, gain: 0.3 }] };

export const UI_MOVE: Recipe = { tones: [{ wave: "sine", from: 620, to: 640, seconds: 0.04, gain: 0.07 }] };
export const UI_ACCEPT: Recipe = { tones: [{ wave: "triangle", from: 440, to: 440, seconds: 0.06, gain: 0.14 }, { wave: "triangle", from: 660, to: 660, seconds: 0.12, gain: 0.14, delay: 0.05 }] };
export const UI_BACK: Recipe = { tones: [{ wave: "triangle", from: 500, to: 330, seconds: 0.1, gain: 0.12 }] };
export const UI_ALERT: Recipe = { tones: [0, 0.16].map((delay) => ({ wave: "square" as const, from: 740, to: 740, seconds: 0.1, gain: 0.1, delay })) };
export const VICTORY: Recipe = { tones: [392, 523, 659, 784, 1046].map((from, index) => ({ wave: "triangle" as const, from, to: from, seconds: 0.5, gain: 0.16, delay: index * 0.11 })) };
export const DEFEAT: Recipe = { tones: [392, 330, 262].map((from, index) => ({ wave: "triangle" as const, from, to: from * 0.97, seconds: 0.6, gain: 0.16, delay: index * 0.2 })) };
