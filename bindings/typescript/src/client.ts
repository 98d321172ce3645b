/** A client's connection to a game server: the transport in WebAssembly, over a session of the browser's. */

import { openSession, type LinkKind, type Listener, type Session } from "./session.ts";
import init, { Connection, EventKind, Settings } from "./wasm/muse.js";

/** The delivery of a channel's messages; docs/guide/delivery.md helps to choose. */
export type Delivery =
  | "unreliable"
  | "sequenced"
  | "reliable-unordered"
  | "reliable-sequenced"
  | "reliable-ordered"
  /** In order, and of each `window` messages at least `percent` per cent. */
  | { window: number; percent: number };

export interface Channel {
  delivery: Delivery;
  /** The price that reliable messages pay for low latency under loss. Default: balanced. */
  repair?: "frugal" | "balanced" | "fast";
  /** Default: normal. */
  priority?: "urgent" | "high" | "normal" | "low";
}

export interface Options {
  /** The game's number, as the server has it. */
  protocol: bigint;
  /**
   * Everything else that both sides must share, a line for each thing: `7 Say { text: text max 100 }`, `tick rate 50`. The server has the same lines
   * (`Config::shared`; `Protocol::describe` says them), in any order; a client that differs is refused and told which do. Default: nothing.
   */
  shared?: string;
  /** The server's channels, in its order. */
  channels: Channel[];
  /** The server's public key in hexadecimal. Either this or `token`. */
  serverKey?: string;
  /** A connect token, as the master gives it. */
  token?: string;
  /** Reaches the server with the connection, at most 256 bytes. */
  hello?: Uint8Array;
  /** The kind of session that is tried first. Default: WebTransport where the browser has it. */
  prefer?: LinkKind;
  /** Milliseconds until an attempt is given up. Default: 10,000. */
  connectWithin?: number;
  /** Milliseconds between packets when there is nothing to say. */
  keepAlive?: number;
  /** Milliseconds of silence after which the connection counts as interrupted. */
  silence?: number;
  /** Milliseconds within which an interrupted connection may come back. */
  resumeWithin?: number;
  /** Longest message in bytes. */
  messageMax?: number;
  /** Opens sessions, for tests and for networks of your own. */
  open?: typeof openSession;
  /** The WebAssembly, or its address; by default beside this module. */
  wasm?: URL | BufferSource;
}

/** The kind of reason for which a server refused a client. */
export type Refusal = "version" | "schema" | "full" | "token" | "wrong-key" | "denied" | "busy" | "insecure" | "other";

/** The error of a connection that could not be made, or of a message that could not be sent. */
export class MuseError extends Error {
  override name = "MuseError";
  /** The kind of reason, if the server refused us. */
  readonly refusal: Refusal | undefined;
  /** The number that the server's application gave when it denied the connection; 0 otherwise. */
  readonly code: number;
  /** The words of the server's application if it `denied` the connection; each difference on a line, `here` being the client, if the `schema` differs. */
  readonly detail: string;

  constructor(message: string, refusal?: Refusal, code = 0, detail = "") {
    super(message);
    this.refusal = refusal;
    this.code = code;
    this.detail = detail;
  }
}

export type Outcome = "delivered" | "lost" | "expired";

export interface Stats {
  /** Milliseconds. */
  roundTrip: number;
  jitter: number;
  /** From 0 to 1. */
  loss: number;
  bytesSent: number;
  bytesReceived: number;
  packetsSent: number;
  packetsReceived: number;
  /** Bytes a second that arrive at the server. */
  bandwidth: number;
}

export interface Ending {
  /** The reason in words: `by us`, `lost`, `replaced`, `protocol`, or what the server said. */
  reason: string;
  /** The server's number for it, 0 otherwise. */
  code: number;
}

/** Called when something happens; set those that you need. */
export interface Handlers {
  /** A message came. The bytes are yours. */
  message?(channel: number, payload: Uint8Array): void;
  /** Nothing has been heard for a while; the connection may come back. */
  interrupted?(): void;
  /** It is back, and nothing reliable was lost. */
  resumed?(): void;
  /** It is over. Told once. */
  closed?(ending: Ending): void;
}

/** Connects; fulfilled as soon as the server has let us in, rejected with a MuseError otherwise. */
export async function connect(address: string, options: Options, handlers: Handlers = {}): Promise<Client> {
  if ((options.serverKey === undefined) === (options.token === undefined)) {
    throw new MuseError("give either serverKey or token: somebody has to be trusted");
  }
  await load(options.wasm);
  const client = new Client(address, options, handlers);
  return client.connected;
}

export class Client {
  /** Fulfilled when the server has let us in. `connect` has awaited it. */
  readonly connected: Promise<Client>;
  /** The words of the server when it let us in. */
  welcome: Uint8Array = new Uint8Array(0);
  readonly #connection: Connection;
  readonly #address: string;
  readonly #options: Options;
  readonly #handlers: Handlers;
  #settle: { resolve(client: Client): void; reject(error: MuseError): void } | undefined;
  #session: Session | undefined;
  #opening = false;
  #over = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pumping = false;
  readonly #receipts = new Map<string, (outcome: Outcome) => void>();

  /** Use {@link connect}. */
  constructor(address: string, options: Options, handlers: Handlers) {
    this.#address = address;
    this.#options = options;
    this.#handlers = handlers;
    this.#connection = begin(options);
    this.connected = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.#open();
    this.#pumpSoon();
  }

  /** The kind of session that datagrams travel by at present; nothing while one is being opened. */
  get link(): LinkKind | undefined {
    return this.#session?.kind;
  }

  /** True once the connection is over. */
  get isClosed(): boolean {
    return this.#over;
  }

  /** Sends a message. Messages of one turn of the event loop share packets. Throws a MuseError when the channel's queue is full or the connection over. */
  send(channel: number, payload: Uint8Array): void {
    this.#send(channel, payload, false);
  }

  /** Sends a message; fulfilled when it is known whether it was delivered. */
  sendWithReceipt(channel: number, payload: Uint8Array): Promise<Outcome> {
    const number = this.#send(channel, payload, true);
    return new Promise((resolve) => this.#receipts.set(`${channel} ${number}`, resolve));
  }

  /** Counters and the state of the path; nothing before and after the connection. */
  get stats(): Stats | undefined {
    if (this.#over) return undefined;
    const [roundTrip, jitter, loss, bytesSent, bytesReceived, packetsSent, packetsReceived, bandwidth] = this.#connection.stats() as unknown as number[];
    if (roundTrip === undefined) return undefined;
    return { roundTrip, jitter, loss, bytesSent, bytesReceived, packetsSent, packetsReceived, bandwidth } as Stats;
  }

  /** Closes the connection once everything reliable has arrived. */
  finish(code = 0, text = ""): void {
    if (this.#over) return;
    this.#connection.close(now(), code, text, true);
    this.#pumpSoon();
  }

  /** Closes the connection at once. */
  close(code = 0, text = ""): void {
    if (this.#over) return;
    this.#connection.close(now(), code, text, false);
    this.#pump();
  }

  #send(channel: number, payload: Uint8Array, receipt: boolean): number {
    if (this.#over) throw new MuseError("the connection is over");
    let number: number;
    try {
      number = this.#connection.send(now(), channel, payload, receipt);
    } catch (error) {
      throw new MuseError(String(error));
    }
    this.#pumpSoon();
    return number;
  }

  /** Opens a session; when it breaks, another: the server moves the connection there. */
  #open(): void {
    if (this.#opening || this.#over) return;
    this.#opening = true;
    const listener: Listener = {
      datagram: (bytes) => {
        if (this.#over) return;
        this.#connection.handle_datagram(now(), bytes);
        this.#pumpSoon();
      },
      lost: () => {
        this.#session = undefined;
        this.#open();
      },
    };
    const { prefer = "webtransport", open = openSession } = this.#options;
    open(this.#address, prefer, listener, () => {}).then(
      (session) => {
        this.#opening = false;
        if (this.#over) return session.close();
        this.#session = session;
        this.#pump();
      },
      () => {
        this.#opening = false;
        setTimeout(() => this.#open(), REOPEN_MS);
      },
    );
  }

  #pumpSoon(): void {
    if (this.#pumping || this.#over) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      this.#pump();
    });
  }

  /** Does what is due, tells what happened, sends what is to be sent, and sleeps until there is more. */
  #pump(): void {
    if (this.#over) return;
    clearTimeout(this.#timer);
    const connection = this.#connection;
    connection.advance(now());
    let ending: Ending | MuseError | undefined;
    for (let kind = connection.next_event(); kind !== EventKind.None; kind = connection.next_event()) {
      ending = this.#tell(kind) ?? ending;
    }
    for (let datagram = connection.poll_transmit(now()); datagram; datagram = connection.poll_transmit(now())) {
      // Without a session it is lost, and sent again when there is one.
      this.#session?.send(datagram);
    }
    if (ending) return this.#end(ending);
    const due = connection.poll_timeout();
    if (due !== undefined) this.#timer = setTimeout(() => this.#pump(), Math.max(0, due - now()));
  }

  /** Tells of an event; returns why the connection is over, or was never made, if it is so. */
  #tell(kind: EventKind): Ending | MuseError | undefined {
    const connection = this.#connection;
    switch (kind) {
      case EventKind.Connected:
        this.welcome = connection.take_payload();
        this.#settle?.resolve(this);
        this.#settle = undefined;
        return undefined;
      case EventKind.Message:
        this.#handlers.message?.(connection.channel, connection.take_payload());
        return undefined;
      case EventKind.Receipt: {
        const key = `${connection.channel} ${connection.receipt}`;
        this.#receipts.get(key)?.(connection.text as Outcome);
        this.#receipts.delete(key);
        return undefined;
      }
      case EventKind.Interrupted:
        this.#handlers.interrupted?.();
        return undefined;
      case EventKind.Resumed:
        this.#handlers.resumed?.();
        return undefined;
      case EventKind.Refused:
        return new MuseError(`refused: ${connection.text}`, connection.refusal as Refusal, connection.code, connection.detail);
      case EventKind.Unanswered:
        return new MuseError("nobody answered");
      default:
        return { reason: connection.text, code: connection.code };
    }
  }

  #end(ending: Ending | MuseError): void {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#session?.close();
    this.#session = undefined;
    for (const resolve of this.#receipts.values()) resolve("lost");
    this.#receipts.clear();
    this.#connection.free();
    const error = ending instanceof MuseError ? ending : new MuseError(ending.reason, undefined, ending.code);
    if (this.#settle) this.#settle.reject(error);
    else this.#handlers.closed?.({ reason: error.message, code: error.code });
  }
}

let loaded: Promise<unknown> | undefined;

/** Compiles the module, once. */
function load(wasm: URL | BufferSource | undefined): Promise<unknown> {
  loaded ??= init({ module_or_path: wasm ?? new URL("./wasm/muse_bg.wasm", import.meta.url) });
  return loaded;
}

function begin(options: Options): Connection {
  const settings = new Settings(options.protocol);
  try {
    if (options.shared !== undefined) settings.shared(options.shared);
    for (const { delivery, repair = "balanced", priority = "normal" } of options.channels) {
      if (typeof delivery === "string") settings.channel(delivery, 0, 0, repair, priority);
      else settings.channel("partially-reliable", delivery.window, delivery.percent, repair, priority);
    }
    if (options.connectWithin !== undefined) settings.connect_within(options.connectWithin);
    if (options.keepAlive !== undefined) settings.keep_alive(options.keepAlive);
    if (options.silence !== undefined) settings.silence(options.silence);
    if (options.resumeWithin !== undefined) settings.resume_within(options.resumeWithin);
    if (options.messageMax !== undefined) settings.message_max(options.messageMax);
    const trust = options.token ?? options.serverKey ?? "";
    const hello = options.hello ?? new Uint8Array(0);
    return new Connection(now(), Date.now() / 1000, settings, trust, options.token !== undefined, hello);
  } catch (error) {
    throw new MuseError(String(error));
  }
}

function now(): number {
  return performance.now();
}

/** Between two attempts to open a session. */
const REOPEN_MS = 500;
