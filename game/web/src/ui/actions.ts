// Actions that screens may take. The application implements them; screens know nothing else of it.

import type { ApiAnswer } from "../link.ts";
import type { Api, Mode, Preferences } from "../protocol.ts";
import type { Settings } from "../settings.ts";

export type ScreenName = "title" | "home" | "play" | "friends" | "practice" | "watch" | "ranking" | "settings";

export interface PracticeOptions {
  game: Mode;
  bots: number;
  difficulty: number;
}

export interface Actions {
  readonly settings: Settings;
  /** The account's number, once signed in and connected. */
  readonly account: number | undefined;
  /** One line about the master: connected, trying again, full. */
  readonly masterStatus: { text: string; online: boolean };
  /** The room's code, if there is one. */
  room: string | undefined;
  show(screen: ScreenName): void;
  back(): void;
  saveSettings(): void;
  signIn(name: string): void;
  play(preferences: Preferences): void;
  leaveQueue(): void;
  practice(options: PracticeOptions): void;
  watch(bytes: ArrayBuffer): void;
  again(): void;
  api(method: Api["method"], path: string, body?: unknown): Promise<ApiAnswer>;
}
