// The colours of the game, in one place. Warm sand in the light, violet slate in the shadow, one glowing accent per player; enemies are
// near-black with red eyes, so that friend and foe are told apart by silhouette and by glow alone.

import { Color, Vector3 } from "three";
import { teamOf } from "../model.ts";

export const SKY_TOP = 0x4a4482;
export const SKY_HORIZON = 0xf2a679;
/** Their strength, and the sun's place. */
export const KEY_STRENGTH = 2.7;
export const SKY_STRENGTH = 2.9;
export const SUN = new Vector3(-0.5, 0.74, 0.4).normalize();
export const ABYSS = 0x3a2740;
export const FOG = 0xc98a78;
export const KEY_LIGHT = 0xffd9a8;
export const SKY_LIGHT = 0xb9aee0;
export const GROUND_LIGHT = 0xb48a8c;

/** By name; the order is the game's own numbering. */
export const MATERIAL_COLOURS: Record<string, number> = {
  concrete: 0xb8a49b,
  metal: 0x7a84a6,
  wood: 0xa8663f,
  glass: 0x8fc7d8,
  energy: 0x9d7bff,
  organic: 0x6f8a58,
};
export const MATERIAL_NAMES: readonly string[] = Object.keys(MATERIAL_COLOURS);

export const HULL_DARK = 0x322f40;
export const HULL_ENEMY = 0x2d2733;
export const HULL_ROBOT = 0xe6dcc8;
export const JOINT = 0x3b3a4c;
export const ENEMY_GLOW = 0xff3528;
export const BOSS_GLOW = 0xff9a1f;
export const NEUTRAL_GLOW = 0xfff2d6;
export const OPEN_GLOW = 0x7dff9a;

const PLAYER_COLOURS = [
  0x2fe6ff, 0xff8a1f, 0xc6ff3d, 0xff5ac8, 0x9d7bff, 0xffe14a, 0x4dffa6, 0xff6b6b, 0x58a6ff, 0xffb38a, 0xb4ff9e, 0xf29bff, 0x7de0d0, 0xd6c08a,
  0x8affff, 0xffffff,
] as const;

/** By team. */
export const TEAM_COLOURS = [0x2fe6ff, 0xff8a1f] as const;
export const TEAM_NAMES = ["Blue", "Orange"] as const;
let inTeams = false;

/** Whether robots have the colour of their team instead of one of their own. */
export function useTeamColours(teams: boolean): void {
  inTeams = teams;
}

/** A team's colour, as the interface writes it. */
export function teamStyle(team: 0 | 1): string {
  return `#${new Color(TEAM_COLOURS[team]).getHexString()}`;
}

/** The accent of the robot in a slot. */
export function playerColour(slot: number): number {
  if (inTeams) return TEAM_COLOURS[teamOf(slot)];
  return PLAYER_COLOURS[((slot % PLAYER_COLOURS.length) + PLAYER_COLOURS.length) % PLAYER_COLOURS.length] ?? NEUTRAL_GLOW;
}

/** The same, as the interface writes it. */
export function playerStyle(slot: number): string {
  return `#${new Color(playerColour(slot)).getHexString()}`;
}

export function materialColour(material: string): number {
  return MATERIAL_COLOURS[material] ?? 0xb39c94;
}

/** The name of a material's number, as effects carry it. */
export function materialName(number: number): string {
  return MATERIAL_NAMES[number] ?? "concrete";
}
