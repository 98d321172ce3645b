// WebAudio, reduced to what the game's sounds need: tones that glide, noise through a filter, a place in the world, a little room around it.
// Nothing is recorded; every sound is a few oscillators. The context begins with the player's first key or click, as browsers demand.

import type { Triple } from "../model.ts";

export interface Tone {
  wave: OscillatorType;
  from: number;
  to: number;
  seconds: number;
  gain: number;
  delay?: number;
}

export interface Noise {
  filter: BiquadFilterType;
  from: number;
  to: number;
  sharpness?: number;
  seconds: number;
  gain: number;
  delay?: number;
}

/** A sound that goes on until it is stopped. */
export interface Hum {
  move(at: Triple): void;
  set(pitch: number, gain: number): void;
  stop(): void;
}

export class SoundEngine {
  private context: BaseAudioContext | undefined;
  private master: GainNode | undefined;
  private room: ConvolverNode | undefined;
  private noiseBuffer: AudioBuffer | undefined;
  private volume = 0.7;
  private voices = 0;

  /** Call on the first key or click. Another context than the loudspeakers' is for tests. */
  wake(into?: OfflineAudioContext): void {
    if (this.context !== undefined) {
      if (this.context instanceof AudioContext && this.context.state === "suspended") void this.context.resume();
      return;
    }
    const context = into ?? new AudioContext();
    this.context = context;
    const limiter = context.createDynamicsCompressor();
    limiter.connect(context.destination);
    this.master = context.createGain();
    this.master.gain.value = this.volume;
    this.master.connect(limiter);
    this.noiseBuffer = noise(context, 1.5, () => 1);
    this.room = context.createConvolver();
    this.room.buffer = noise(context, 0.9, (share) => (1 - share) ** 3);
    const wet = context.createGain();
    wet.gain.value = 0.12;
    this.room.connect(wet).connect(this.master);
  }

  setVolume(volume: number): void {
    this.volume = volume;
    if (this.master !== undefined) this.master.gain.value = volume;
  }

  /** Moves the ears. */
  listen(at: Triple, forward: Triple): void {
    const listener = this.context?.listener;
    if (listener === undefined || listener.positionX === undefined) return;
    [listener.positionX.value, listener.positionY.value, listener.positionZ.value] = at;
    [listener.forwardX.value, listener.forwardY.value, listener.forwardZ.value] = forward;
  }

  /** Plays a sound made of parts; without a place it is in the player's head. */
  play(parts: { tones?: Tone[]; noises?: Noise[] }, at?: Triple, loudness = 1): void {
    if (this.context === undefined || this.voices >= VOICES_MAX) return;
    // What cannot be heard yet would be heard all at once later.
    if (this.context instanceof AudioContext && this.context.state !== "running") return;
    const out = this.outlet(at, loudness);
    if (out === undefined) return;
    let longest = 0;
    for (const tone of parts.tones ?? []) longest = Math.max(longest, this.tone(tone, out));
    for (const part of parts.noises ?? []) longest = Math.max(longest, this.noise(part, out));
    this.voices += 1;
    setTimeout(() => {
      out.disconnect();
      this.voices -= 1;
    }, (longest + 0.1) * 1000);
  }

  hum(wave: OscillatorType, frequency: number, at?: Triple): Hum | undefined {
    const { context } = this;
    if (context === undefined || this.master === undefined) return undefined;
    const oscillator = context.createOscillator();
    const filter = context.createBiquadFilter();
    const gain = context.createGain();
    const panner = at === undefined ? undefined : this.panner(at);
    oscillator.type = wave;
    oscillator.frequency.value = frequency;
    filter.type = "lowpass";
    filter.frequency.value = frequency * 5;
    gain.gain.value = 0;
    oscillator.connect(filter).connect(gain);
    if (panner === undefined) gain.connect(this.master);
    else gain.connect(panner).connect(this.master);
    oscillator.start();
    return {
      move: (place) => panner !== undefined && movePanner(panner, place),
      set: (pitch, loudness) => {
        oscillator.frequency.setTargetAtTime(frequency * pitch, context.currentTime, 0.08);
        gain.gain.setTargetAtTime(loudness, context.currentTime, 0.08);
      },
      stop: () => {
        oscillator.stop();
        gain.disconnect();
      },
    };
  }

  private outlet(at: Triple | undefined, loudness: number): AudioNode | undefined {
    const { context, master, room } = this;
    if (context === undefined || master === undefined || room === undefined) return undefined;
    const gain = context.createGain();
    gain.gain.value = loudness;
    if (at === undefined) {
      gain.connect(master);
      return gain;
    }
    const panner = this.panner(at);
    gain.connect(panner);
    panner.connect(master);
    panner.connect(room);
    return gain;
  }

  private panner(at: Triple): PannerNode {
    const panner = new PannerNode(this.context as BaseAudioContext, { panningModel: "equalpower", distanceModel: "inverse", refDistance: 3, maxDistance: 90, rolloffFactor: 1.2 });
    movePanner(panner, at);
    return panner;
  }

  private tone(tone: Tone, out: AudioNode): number {
    const context = this.context as BaseAudioContext;
    const start = context.currentTime + (tone.delay ?? 0);
    const oscillator = context.createOscillator();
    oscillator.type = tone.wave;
    oscillator.frequency.setValueAtTime(tone.from, start);
    oscillator.frequency.exponentialRampToValueAtTime(Math.max(tone.to, 1), start + tone.seconds);
    oscillator.connect(this.envelope(tone, start)).connect(out);
    oscillator.start(start);
    oscillator.stop(start + tone.seconds);
    return (tone.delay ?? 0) + tone.seconds;
  }

  private noise(part: Noise, out: AudioNode): number {
    const context = this.context as BaseAudioContext;
    const start = context.currentTime + (part.delay ?? 0);
    const source = context.createBufferSource();
    source.buffer = this.noiseBuffer ?? null;
    source.loop = true;
    const filter = context.createBiquadFilter();
    filter.type = part.filter;
    filter.Q.value = part.sharpness ?? 0.8;
    filter.frequency.setValueAtTime(part.from, start);
    filter.frequency.exponentialRampToValueAtTime(Math.max(part.to, 10), start + part.seconds);
    source.connect(filter).connect(this.envelope(part, start)).connect(out);
    source.start(start, Math.random());
    source.stop(start + part.seconds);
    return (part.delay ?? 0) + part.seconds;
  }

  private envelope(part: { gain: number; seconds: number }, start: number): GainNode {
    const gain = (this.context as BaseAudioContext).createGain();
    gain.gain.setValueAtTime(0, start);
    gain.gain.linearRampToValueAtTime(part.gain, start + Math.min(0.006, part.seconds / 4));
    gain.gain.exponentialRampToValueAtTime(0.0008, start + part.seconds);
    return gain;
  }
}

function movePanner(panner: PannerNode, [x, y, z]: Triple): void {
  panner.positionX.value = x;
  panner.positionY.value = y;
  panner.positionZ.value = z;
}

function noise(context: BaseAudioContext, seconds: number, shape: (share: number) => number): AudioBuffer {
  const length = Math.floor(context.sampleRate * seconds);
  const buffer = context.createBuffer(1, length, context.sampleRate);
  const samples = buffer.getChannelData(0);
  for (let index = 0; index < length; index += 1) samples[index] = (Math.random() * 2 - 1) * shape(index / length);
  return buffer;
}

const VOICES_MAX = 40;
