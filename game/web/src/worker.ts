/**
 * The Worker: owns the WASM client, its session with a game server, its connection to the master, and all timers. What it decides
 * itself is only when to open a session again; everything else the client says.
 */

import type { FromWorker, GameEvent, Input, LinkKind, SignIn, ToWorker } from "./protocol.ts";
import init, { Client } from "./wasm/biobot.js";
import { openSession, type Session } from "../../../bindings/typescript/src/session.ts";
import { MasterLink } from "./worker_master.ts";

interface Scope {
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
  onmessage: ((message: MessageEvent<ToWorker>) => void) | null;
}
const scope = globalThis as unknown as Scope;

/** The server that sessions are opened to, until the client says that the connection is over. */
interface Server {
  address: string;
  prefer: LinkKind;
  session: Session | undefined;
  opening: boolean;
  failures: number;
  connected: boolean;
  fromMaster: boolean;
}

let client: Client;
let server: Server | undefined;
let master: MasterLink | undefined;
let playerName = "Player";
let timer: ReturnType<typeof setTimeout> | undefined;
let lastFrameMs = 0;
let lastInputMs = 0;
/** WASM has panicked: nothing of it may be called any more. */
let broken = false;

/** Runs something of the client's. A panic in WASM leaves it unusable: that is said once, rather than to stand still. */
function guarded(act: () => void): void {
  if (broken) return;
  try {
    act();
  } catch (error) {
    broken = true;
    clearTimeout(timer);
    post({ type: "error", text: `The game stopped: ${error}` });
  }
}

function handle(message: ToWorker): void {
  const now = performance.now();
  switch (message.kind) {
    case "start":
      leaveServer();
      if (message.mode === "practice") {
        playerName = message.name;
        client.startPractice(now, JSON.stringify(message));
      } else if (message.mode === "replay") {
        client.startReplay(now, new Uint8Array(message.bytes));
      } else {
        playerName = message.name;
        join(message.address, message.prefer ?? "webtransport", message.key ?? "", message.token ?? "", false);
      }
      break;
    case "stop":
      leaveServer();
      client.stop(now);
      break;
    case "input":
      lastInputMs = now;
      giveInput(message);
      pump();
      postFrame();
      return;
    case "sign-in":
      signIn(message);
      break;
    case "sign-out":
      client.masterStop();
      break;
    case "api":
      void callApi(message);
      return;
    case "recycle":
      return;
    default:
      // Everything else concerns the client alone.
      client.handle(now, JSON.stringify(message));
  }
  pump();
}

function giveInput(input: Input): void {
  const buttons = [input.jump, input.fire, input.aim, input.reload, input.use].reduce((bits, pressed, place) => bits | (Number(pressed) << place), 0);
  client.input(input.forward, input.right, buttons, input.weapon, input.yaw, input.pitch);
}

/** Does everything that is due, and comes back when the next thing is. */
function pump(): void {
  clearTimeout(timer);
  const now = performance.now();
  client.advance(now);
  takeEvents();
  takeActions();
  send();
  const rate = now - lastInputMs < WATCHED_MS ? FRAME_MS : UNWATCHED_FRAME_MS;
  if (now - lastFrameMs >= rate) postFrame();
  const wait = client.pollTimeout(performance.now());
  timer = setTimeout(() => guarded(pump), Math.min(Math.max(wait, 1), FRAME_MS));
}

function send(): void {
  const now = performance.now();
  for (;;) {
    const bytes = client.pollTransmit(now);
    if (bytes === undefined) return;
    // Without a session it is lost, as it would be without a network.
    server?.session?.send(bytes);
  }
}

function postFrame(): void {
  const floats = client.frame(performance.now());
  if (floats === undefined) return;
  lastFrameMs = performance.now();
  const buffer = floats.buffer as ArrayBuffer;
  scope.postMessage({ kind: "frame", buffer }, [buffer]);
}

function takeEvents(): void {
  for (;;) {
    const text = client.pollEvent(performance.now());
    if (text === undefined) return;
    const event: GameEvent = JSON.parse(text);
    if (event.type === "connected" && server) {
      server.connected = true;
      event.link = server.session?.kind ?? "memory";
      event.encrypted = true;
      if (server.fromMaster) client.masterGameConnected();
    } else if (event.type === "resumed" && server) {
      event.link = server.session?.kind ?? "memory";
    } else if (event.type === "closed" && server) {
      const { fromMaster } = server;
      leaveServer();
      // The master would only send us there again.
      if (fromMaster && event.reason === "version") client.handle(performance.now(), JSON.stringify({ kind: "leave-match" }));
      else if (fromMaster) client.masterGameLost(performance.now());
    }
    post(event);
  }
}

function takeActions(): void {
  for (;;) {
    const text = client.pollMasterAction();
    if (text === undefined) return;
    const action = JSON.parse(text);
    switch (action.do) {
      case "connect":
        void master?.connect();
        break;
      case "disconnect":
        master?.disconnect();
        break;
      case "send":
        master?.send(action.text);
        break;
      case "join":
        leaveServer();
        join(action.address, "webtransport", "", action.token, true);
        break;
      case "leave":
        leaveServer();
        client.stop(performance.now());
        break;
    }
  }
}

function signIn(message: SignIn): void {
  master?.disconnect();
  playerName = message.name;
  master = new MasterLink(message, {
    connected: () =>
      guarded(() => {
        client.masterConnected(performance.now());
        pump();
      }),
    message: (text) =>
      guarded(() => {
        client.masterMessage(performance.now(), text);
        pump();
      }),
    lost: () =>
      guarded(() => {
        client.masterLost(performance.now());
        pump();
      }),
  });
  client.masterStart(performance.now());
}

async function callApi(message: Extract<ToWorker, { kind: "api" }>): Promise<void> {
  const answer = (await master?.call(message)) ?? { status: 0, body: null };
  scope.postMessage({ kind: "api", id: message.id, ...answer });
}

// ---------------------------------------------------------------------------------------------------- the game server

function join(address: string, prefer: LinkKind, key: string, token: string, fromMaster: boolean): void {
  const unixS = Math.floor(Date.now() / 1000);
  server = { address, prefer, session: undefined, opening: false, failures: 0, connected: false, fromMaster };
  const problem = client.startServer(performance.now(), unixS, playerName, key, token);
  if (problem !== undefined) {
    server = undefined;
    post({ type: "closed", reason: "refused", text: problem });
    if (fromMaster) client.masterGameLost(performance.now());
    return;
  }
  void open(server);
}

/** Opens a session, again and again, until there is one or the client gives the connection up. */
async function open(to: Server): Promise<void> {
  if (to.opening || to !== server) return;
  to.opening = true;
  try {
    const session = await openSession(
      to.address,
      to.prefer === "websocket" ? "websocket" : "webtransport",
      {
        datagram: (bytes) =>
          guarded(() => {
            if (to !== server) return;
            client.handleDatagram(performance.now(), bytes);
            pump();
          }),
        lost: () => {
          to.session = undefined;
          void open(to);
        },
      },
      (link) => !to.connected && post({ type: "connecting", address: to.address, link }),
    );
    to.opening = false;
    if (to !== server) {
      session.close();
      return;
    }
    to.session = session;
    to.prefer = session.kind;
    to.failures = 0;
    guarded(() => {
      client.setLink(session.kind === "webtransport" ? 1 : 2);
      pump();
    });
  } catch (error) {
    to.opening = false;
    to.failures += 1;
    if (to !== server) return;
    console.warn(`no session with ${to.address}: ${error}`);
    setTimeout(() => void open(to), Math.min(RETRY_MS * to.failures, RETRY_MS_MAX));
  }
}

function leaveServer(): void {
  if (server === undefined) return;
  const { session } = server;
  client.leaveServer(performance.now());
  // What was said last goes out before the session ends.
  send();
  server = undefined;
  if (session) setTimeout(() => session.close(), GOODBYE_MS);
}

function post(event: GameEvent): void {
  scope.postMessage({ kind: "event", event });
}

/** A frame for every tick, and for every picture of a page that sends input. */
const FRAME_MS = 20;
const WATCHED_MS = 1_000;
const UNWATCHED_FRAME_MS = 200;
const RETRY_MS = 250;
const RETRY_MS_MAX = 2_000;
const GOODBYE_MS = 200;

// Messages of the page wait until the client is there.
const early: ToWorker[] = [];
scope.onmessage = ({ data }) => early.push(data);
init({ module_or_path: new URL("./wasm/biobot_bg.wasm", import.meta.url) }).then(
  () => {
    client = new Client();
    scope.onmessage = ({ data }) => guarded(() => handle(data));
    scope.postMessage({ kind: "ready", version: client.version() });
    for (const message of early) guarded(() => handle(message));
    guarded(pump);
  },
  (error: unknown) => post({ type: "error", text: `The game could not be loaded: ${error}` }),
);
