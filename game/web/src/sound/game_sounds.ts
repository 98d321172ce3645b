// Which sound belongs to what happens, and the hums that go on: tanks, wasps, the boss, lifts, the wind. Hums are few; the nearest get them.

import type { EnemyView, Moment, Triple } from "../model.ts";
import { Species, Stance } from "../model.ts";
import type { Hum, SoundEngine } from "./engine.ts";
import * as recipes from "./recipes.ts";

export class GameSounds {
  private readonly hums = new Map<number, Hum>();
  private wind: Hum | undefined;

  constructor(readonly engine: SoundEngine) {}

  step(at: Triple, material: string, own: boolean): void {
    this.engine.play(recipes.STEPS[material] ?? recipes.STEPS.concrete ?? {}, own ? undefined : at, own ? 0.35 : 0.8);
  }

  jump(at: Triple, own: boolean): void {
    this.engine.play(recipes.JUMP, own ? undefined : at, own ? 0.6 : 1);
  }

  land(at: Triple, strength: number, own: boolean): void {
    this.engine.play(recipes.LAND, own ? undefined : at, Math.min(1, strength / 10));
  }

  shot(at: Triple, weapon: number, own: boolean): void {
    this.engine.play(recipes.SHOTS[weapon] ?? recipes.SHOTS[1] ?? {}, own ? undefined : at, own ? 0.8 : 1.2);
  }

  impact(at: Triple, material: string): void {
    this.engine.play(recipes.IMPACTS[material] ?? recipes.IMPACTS.concrete ?? {}, at, 0.7);
  }

  play(recipe: recipes.Recipe, at?: Triple, loudness = 1): void {
    this.engine.play(recipe, at, loudness);
  }

  enemyShot(at: Triple, species: Species): void {
    this.engine.play(recipes.ENEMY_SHOTS[species] ?? {}, at);
  }

  enemyDied(at: Triple, species: Species): void {
    this.engine.play(recipes.ENEMY_DEATHS[species] ?? {}, at, 1.3);
  }

  /** An enemy that has just seen somebody says so. */
  enemyCall(at: Triple, species: Species): void {
    const calls: Partial<Record<Species, recipes.Recipe>> = { [Species.Cat]: recipes.CAT_CALL, [Species.Tank]: recipes.TANK_CALL, [Species.Boss]: recipes.BOSS_CALL };
    const call = calls[species];
    if (call !== undefined) this.engine.play(call, at, 1.4);
  }

  /** Keeps the hums of the nearest enemies going. */
  update(moment: Moment, ears: Triple): void {
    const near = moment.enemies
      .filter((enemy) => enemy.species !== Species.Cat && enemy.stance !== Stance.Dead)
      .map((enemy) => ({ enemy, distance: distance(enemy.position, ears) }))
      .filter(({ distance }) => distance < HUM_METRES)
      .sort((one, two) => one.distance - two.distance)
      .slice(0, HUMS_MAX);
    const wanted = new Set(near.map(({ enemy }) => enemy.entity));
    for (const [entity, hum] of this.hums) {
      if (wanted.has(entity)) continue;
      hum.stop();
      this.hums.delete(entity);
    }
    for (const { enemy } of near) this.humOf(enemy);
    this.wind ??= this.startWind();
  }

  silence(): void {
    for (const hum of this.hums.values()) hum.stop();
    this.hums.clear();
    this.wind?.stop();
    this.wind = undefined;
  }

  private humOf(enemy: EnemyView): void {
    let hum = this.hums.get(enemy.entity);
    if (hum === undefined) {
      const [wave, frequency] = HUMS[enemy.species] ?? ["sine", 60];
      hum = this.engine.hum(wave, frequency, enemy.position);
      if (hum === undefined) return;
      this.hums.set(enemy.entity, hum);
    }
    const speed = Math.hypot(...enemy.velocity);
    hum.move(enemy.position);
    hum.set(1 + speed * 0.06, enemy.species === Species.Wasp ? 0.05 : 0.12);
  }

  private startWind(): Hum | undefined {
    const wind = this.engine.hum("triangle", 46);
    wind?.set(1, 0.05);
    return wind;
  }
}

function distance(from: Triple, to: Triple): number {
  return Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
}

const HUMS: Partial<Record<Species, [OscillatorType, number]>> = {
  [Species.Tank]: ["sawtooth", 42],
  [Species.Wasp]: ["sawtooth", 180],
  [Species.Boss]: ["sawtooth", 33],
};
const HUMS_MAX = 5;
const HUM_METRES = 40;
