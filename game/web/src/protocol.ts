/**
 * Messages between the page and its Worker.
 *
 * The Worker owns the WASM client, the connection and all timers; the page draws, reads input and plays sounds. The page sends
 * `input` once per picture it draws and asks for nothing: each `input` is answered by one `frame`, and a page that sends none (a
 * hidden tab) still gets one frame per tick. Everything rare is an `event`, plain JSON.
 */

// ---------------------------------------------------------------------------------------------------- page to Worker

export type ToWorker =
  | StartPractice
  | StartServer
  | StartReplay
  | Stop
  | Loaded
  | Input
  | Chat
  | Vote
  | Conditions
  | Switches
  | ReplayControl
  | SignIn
  | Play
  | LeaveQueue
  | LeaveMatch
  | SignOut
  | Api
  | Recycle;

/** Which game is played. */
export type Mode = "cooperative" | "versus" | "ball";

/** A match in this Worker alone, over memory: no server at all. Bots take the other places. */
export interface StartPractice {
  kind: "start";
  mode: "practice";
  game: Mode;
  name: string;
  /** Players besides this one, played by bots: 0 or 1 in co-operative mode, 0 to 15 in versus, 0 to 7 with the ball. */
  bots: number;
  /** 0 easy, 1 normal, 2 hard. */
  difficulty: number;
  /** The same seed gives the same match; chosen at random if left out. */
  seed?: number;
  /** Progress that was saved with the account: unlocked checkpoints and weapons. */
  progress?: unknown;
}

/** A game server, without a master: its address and either its public key (64 hexadecimal digits) or a connect token. */
export interface StartServer {
  kind: "start";
  mode: "server";
  name: string;
  /** `host:port`, as the server prints it: its port for Muse over UDP, and over TCP for browsers. */
  address: string;
  key?: string;
  token?: string;
  /** The first link to try. `webtransport` by default; the other one follows if it fails. */
  prefer?: LinkKind;
}

/** A recorded match. */
export interface StartReplay {
  kind: "start";
  mode: "replay";
  bytes: ArrayBuffer;
}

/** Leaves the match, the server or the replay. The connection to the master stays. */
export interface Stop {
  kind: "stop";
}

/** The level is built and can be drawn: the match may begin. Answers the event `welcome`. */
export interface Loaded {
  kind: "loaded";
}

/**
 * The player's input, sent once per picture. The Worker takes the newest at each tick, and keeps a press of `jump`, `fire`, `reload`,
 * `use` or `weapon` that was let go within a tick until the tick has seen it.
 */
export interface Input {
  kind: "input";
  /** 1 forward, -1 back. */
  forward: -1 | 0 | 1;
  /** 1 right, -1 left. */
  right: -1 | 0 | 1;
  jump: boolean;
  fire: boolean;
  /** Aiming down the sights. */
  aim: boolean;
  reload: boolean;
  use: boolean;
  /** 1 to 4 to change the weapon, 0 to keep it. */
  weapon: 0 | 1 | 2 | 3 | 4;
  /** Radians: 0 looks along -z, positive turns left. */
  yaw: number;
  /** Radians, positive looks up, within 1.55 of the horizon. */
  pitch: number;
}

/** Says something to the others in the match. */
export interface Chat {
  kind: "chat";
  text: string;
}

/** A vote after somebody dropped: wait and go on, or end the match. */
export interface Vote {
  kind: "vote";
  choice: "continue" | "finish";
}

/** Worsens this client's own link, each way. All zero switches it off. */
export interface Conditions {
  kind: "conditions";
  delayMs: number;
  jitterMs: number;
  lossPercent: number;
}

/** Techniques to switch off, so that one sees what they do. All are on at the start. */
export interface Switches {
  kind: "switches";
  prediction: boolean;
  interpolation: boolean;
  lagCompensation: boolean;
}

/** Steers a replay. What is left out stays as it is. */
export interface ReplayControl {
  kind: "replay";
  /** 0 pauses, 1 is as it was, up to 8. */
  speed?: number;
  /** Jumps to this tick. */
  tick?: number;
  /** Whose eyes to look through. */
  slot?: number;
}

/** Connects to a master as a guest, and stays connected: retries, comes back after every loss. */
export interface SignIn {
  kind: "sign-in";
  /** `http://host:port` of the master. */
  url: string;
  name: string;
  /** At least 16 random bytes as text, kept on the device like a password. */
  deviceKey: string;
}

/** Enters the queue, changes the preferences in place, or leaves the queue if they are the same as before. */
export interface Play {
  kind: "play";
  preferences: Preferences;
}

export interface Preferences {
  players?: number;
  /** For instance `{ mode: "cooperative", difficulty: "1" }`; a missing one is for anything. */
  choices: Record<string, string>;
  latency_ms: Record<string, number>;
  bots: boolean;
}

export interface LeaveQueue {
  kind: "leave-queue";
}

/** Gives the seat up for good. */
export interface LeaveMatch {
  kind: "leave-match";
}

export interface SignOut {
  kind: "sign-out";
}

/** A call of the master's HTTP interface (friends, rooms, ranking, progress), made with the account's token. */
export interface Api {
  kind: "api";
  /** Names the answer. */
  id: number;
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** For instance `/v1/ranking`. */
  path: string;
  body?: unknown;
}

/** Gives the buffer of a drawn frame back, so that it is used again. Optional. */
export interface Recycle {
  kind: "recycle";
  buffer: ArrayBuffer;
}

// ---------------------------------------------------------------------------------------------------- Worker to page

export type FromWorker =
  | { kind: "ready"; version: string }
  /** Transferred. `frame.ts` reads it. */
  | { kind: "frame"; buffer: ArrayBuffer }
  | { kind: "event"; event: GameEvent }
  /** The answer to `api`; status 0 if the master could not be reached. */
  | { kind: "api"; id: number; status: number; body: unknown };

/** The link that carries the packets. */
export type LinkKind = "webtransport" | "websocket" | "memory";

export type GameEvent =
  /** A link is being opened. */
  | { type: "connecting"; address: string; link: LinkKind }
  /** The game server let us in. */
  | { type: "connected"; link: LinkKind; encrypted: boolean }
  /** Nothing heard for a while; the match goes on without us until we are back. */
  | { type: "interrupted" }
  | { type: "resumed"; link: LinkKind }
  /** The connection is over: left, refused, lost, full, another version. */
  | { type: "closed"; reason: string; text: string }
  /** The first message of a match. Build the level, then send `loaded`. */
  | { type: "welcome"; slot: number; mode: Mode; seed: number; level: Level }
  /** Players by slot; an empty text is nobody. */
  | { type: "names"; names: string[] }
  | { type: "chat"; slot: number; text: string }
  | { type: "kill"; killer: number; victim: number; weapon: number }
  /** A goal for a team; `scorer` is the slot that touched the ball last, or -1, and may be of the other team. */
  | { type: "goal"; team: 0 | 1; scorer: number; goals: [number, number] }
  /** A shot of ours hit. */
  | { type: "hit"; damage: number; kill: boolean }
  /** We were hit; the direction it came from in the world, radians like a yaw. */
  | { type: "hurt"; damage: number; direction: number }
  /** Somebody dropped: the others decide. */
  | { type: "paused"; slot: number; seconds: number }
  | { type: "votes"; continue: number; finish: number }
  | { type: "unpaused" }
  /** The match is over. */
  | { type: "result"; won: boolean; lines: ResultLine[] }
  /** Any other message of the game server, as its schema writes it. */
  | { type: "message"; message: unknown }
  /** A replay is open: its last tick and its first, and the ticks at which something was told. */
  | { type: "replay"; ticks: number; first?: number; tickMs: number; names: string[]; marks?: number[] }
  // With the master.
  | { type: "online"; account: number }
  | { type: "offline"; retryMs: number; full: boolean }
  | { type: "queue"; waitedMs: number; preferences: Preferences }
  | { type: "left-queue" }
  | { type: "match-found"; match: number }
  | { type: "playing"; match: number }
  | { type: "game-lost"; match: number }
  /** Back at the master; the outcome is none if we left. */
  | { type: "back"; match: number; outcome: "finished" | "cancelled" | "aborted" | null }
  /** Chat, friends, offers, refusals of the master: `FromMaster` of docs/master.md. */
  | { type: "master"; message: { type: string; [field: string]: unknown } }
  /** Something is broken beyond repair; a sentence for the player. */
  | { type: "error"; text: string };

export interface ResultLine {
  slot: number;
  name: string;
  points: number;
  kills: number;
  deaths: number;
}

/** A level as its file says: `game/biobot/levels/*.json`. */
export type Level = { name: string; [field: string]: unknown };
