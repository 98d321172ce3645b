/**
 * The program that browsers.mjs runs in a page: a host or a guest of a relay's room, over the links of the npm package (bindings/typescript/src/session.ts). The
 * test looks at everything that happened through `globalThis.test`.
 */

import { openSession, type Session } from "../../../bindings/typescript/src/session.ts";
import init, { Peer } from "relay_web";

type Kind = "webtransport" | "websocket";
type Happened = { type: string; peer?: number; channel?: number; text?: string; code?: string };

const events: Happened[] = [];
let peer: Peer | undefined;
let session: Session | undefined;
let timer = 0;
/** True while the link is cut: nothing is opened. */
let cut = false;
let way: { address: string; kind: Kind } | undefined;

/** Does everything that is due, and again when more is. */
function run(): void {
  clearTimeout(timer);
  if (!peer) return;
  const now = performance.now();
  peer.advance(now);
  for (let event = peer.pollEvent(); event; event = peer.pollEvent()) events.push(JSON.parse(event));
  // Without a session it is lost, as networks lose things.
  for (let bytes = peer.pollTransmit(now); bytes; bytes = peer.pollTransmit(now)) session?.send(bytes);
  timer = setTimeout(run, Math.ceil(peer.pollTimeout(now)));
}

/** Opens a session with the relay, again and again until there is one. */
async function open(): Promise<void> {
  while (way && !cut) {
    try {
      const listener = {
        datagram: (bytes: Uint8Array) => {
          peer?.handleDatagram(performance.now(), bytes);
          run();
        },
        lost: () => {
          session = undefined;
          void open();
        },
      };
      session = await openSession(way.address, way.kind, listener, () => {});
      run();
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

async function begin(address: string, kind: Kind, make: () => Peer): Promise<void> {
  await init({ module_or_path: "/relay_web_bg.wasm" });
  peer = make();
  way = { address, kind };
  await open();
}

const test = {
  events,
  kind: () => session?.kind,
  host: (address: string, kind: Kind) => begin(address, kind, () => Peer.host(performance.now(), Date.now() / 1000)),
  guest: (address: string, kind: Kind, code: string, key: string) =>
    begin(address, kind, () => Peer.guest(performance.now(), Date.now() / 1000, code, key)),
  /** The lines that a host tells its guests, and the secret that nobody may have. */
  room: (relay: string) => ({
    code: peer!.code(),
    key: peer!.publicKey(),
    invitation: peer!.invitation(relay),
    secret: Array.from(peer!.dangerPrivateKey()),
  }),
  /** Sends so many messages on either channel, a few at a time, as a game would. */
  send: async (to: number, count: number, mark: string) => {
    for (let number = 0; number < count; number += 1) {
      const now = performance.now();
      const wrong = peer!.send(now, to, 0, `${mark} unreliable ${number}`) ?? peer!.send(now, to, 1, `${mark} reliable ${number}`);
      if (wrong) throw new Error(wrong);
      if (number % 5 === 4) {
        run();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
    run();
  },
  /** Ends the session and opens none until `mend`. */
  cut: () => {
    cut = true;
    session?.close();
    session = undefined;
  },
  mend: () => {
    cut = false;
    return open();
  },
  leave: () => {
    peer!.leave(performance.now());
    run();
  },
  count: (type: string) => events.filter((event) => event.type === type).length,
  texts: (from: number, channel: number, mark: string) =>
    events.filter((it) => it.type === "message" && it.peer === from && it.channel === channel && it.text!.startsWith(`${mark} `)).map((it) => it.text!),
};
Object.assign(globalThis, { test });
