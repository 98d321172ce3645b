/**
 * Sessions with a game server, by which whole datagrams travel: WebTransport where the browser and the page's address allow it, else
 * WebSocket. The server's `GET /link` says where both are (crates/drivers/src/native/web.rs).
 */

/** By what datagrams travel. */
export type LinkKind = "webtransport" | "websocket";

export interface Session {
  readonly kind: LinkKind;
  /** Sends a datagram, or loses it, as networks do. */
  send(bytes: Uint8Array): void;
  close(): void;
}

export interface Listener {
  datagram(bytes: Uint8Array): void;
  /** The session is over; told once, and not after `close`. */
  lost(): void;
}

/** Opens a session of the preferred kind, or of the other if that fails. Throws if neither can be had. */
export async function openSession(address: string, prefer: LinkKind, listener: Listener, trying: (kind: LinkKind) => void): Promise<Session> {
  const links = await findLinks(address);
  const order: LinkKind[] = prefer === "websocket" ? ["websocket", "webtransport"] : ["webtransport", "websocket"];
  let failure: unknown = new Error("the server has no link for browsers");
  for (const kind of order) {
    if (kind === "webtransport" && !hasWebTransport()) continue;
    trying(kind);
    try {
      return kind === "webtransport" ? await openTransport(links, listener) : await openSocket(links, listener);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** WebTransport exists in secure contexts only: over HTTPS, or on this very machine. */
export function hasWebTransport(): boolean {
  return "WebTransport" in globalThis;
}

interface Links {
  host: string;
  /** The address that the answer came from: `host:port`. */
  authority: string;
  webtransport: { port: number; path: string; certificates: string[] };
  websocket: { path: string; secure: boolean };
}

async function findLinks(address: string): Promise<Links> {
  const [url, answer] = await askForLinks(address);
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  const links = await answer.json();
  if (links.muse !== 1) throw new Error(`${address} is no game server of this version`);
  return { host: url.hostname, authority: url.host, webtransport: links.webtransport, websocket: links.websocket };
}

/** The server's answer, by the protocol of the page. A page over HTTPS may only ask over HTTPS, except on this machine, where HTTP will do. */
async function askForLinks(address: string): Promise<[URL, Response]> {
  const ask = async (protocol: string): Promise<[URL, Response]> => {
    const url = new URL(`${protocol}//${address}/link`);
    return [url, await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(OPEN_MS) })];
  };
  // Not the location, which is another in a Worker whose script is a blob.
  if (!globalThis.origin?.startsWith("https:")) return ask("http:");
  const here = ["localhost", "127.0.0.1", "[::1]"].includes(new URL(`http://${address}`).hostname);
  return here ? ask("https:").catch(() => ask("http:")) : ask("https:");
}

async function openTransport(links: Links, listener: Listener): Promise<Session> {
  const { port, path, certificates } = links.webtransport;
  const options: WebTransportOptions = { congestionControl: "low-latency", requireUnreliable: true };
  if (certificates.length > 0) {
    options.serverCertificateHashes = certificates.map((hash) => ({ algorithm: "sha-256", value: decodeBase64(hash) }));
  }
  const transport = new WebTransport(`https://${links.host}:${port}${path}`, options);
  let open = true;
  const end = () => {
    if (!open) return;
    open = false;
    listener.lost();
  };
  try {
    await within(OPEN_MS, transport.ready);
  } catch (error) {
    open = false;
    transport.closed.catch(() => {});
    transport.close();
    throw error;
  }
  transport.closed.then(end, end);
  transport.datagrams.incomingHighWaterMark = QUEUE_DATAGRAMS;
  transport.datagrams.outgoingHighWaterMark = QUEUE_DATAGRAMS;
  const writer = transport.datagrams.writable.getWriter();
  void readDatagrams(transport, listener).catch(end);
  void readStreams(transport, listener).catch(end);
  return {
    kind: "webtransport",
    send(bytes) {
      if (!open) return;
      if (bytes.length <= transport.datagrams.maxDatagramSize) writer.write(bytes).catch(() => {});
      else void sendStream(transport, bytes).catch(() => {});
    },
    close() {
      open = false;
      transport.close();
    },
  };
}

async function readDatagrams(transport: WebTransport, listener: Listener): Promise<void> {
  const reader = transport.datagrams.readable.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    listener.datagram(value);
  }
}

/** Datagrams that were too long for one of QUIC come as streams of their own. */
async function readStreams(transport: WebTransport, listener: Listener): Promise<void> {
  const streams = transport.incomingUnidirectionalStreams.getReader();
  for (;;) {
    const { value, done } = await streams.read();
    if (done) return;
    void readStream(value, listener).catch(() => {});
  }
}

async function readStream(stream: ReadableStream<Uint8Array>, listener: Listener): Promise<void> {
  const whole = new Uint8Array(await new Response(stream as ReadableStream<Uint8Array<ArrayBuffer>>).arrayBuffer());
  if (whole.length > 0 && whole.length <= DATAGRAM_MAX) listener.datagram(whole);
}

async function sendStream(transport: WebTransport, bytes: Uint8Array): Promise<void> {
  const writer = (await transport.createUnidirectionalStream()).getWriter();
  await writer.write(bytes);
  await writer.close();
}

async function openSocket(links: Links, listener: Listener): Promise<Session> {
  const { path, secure } = links.websocket;
  const socket = new WebSocket(`${secure ? "wss" : "ws"}://${links.authority}${path}`);
  socket.binaryType = "arraybuffer";
  await within(
    OPEN_MS,
    new Promise<void>((resolve, reject) => {
      socket.onopen = () => resolve();
      socket.onclose = () => reject(new Error("the WebSocket was refused"));
    }),
  ).catch((error) => {
    socket.close();
    throw error;
  });
  let open = true;
  socket.onclose = () => {
    if (!open) return;
    open = false;
    listener.lost();
  };
  socket.onmessage = (message) => {
    if (message.data instanceof ArrayBuffer) listener.datagram(new Uint8Array(message.data));
  };
  return {
    kind: "websocket",
    send(bytes) {
      // What TCP holds back is stale when it goes: better lost, and said anew.
      if (open && socket.bufferedAmount < BUFFERED_BYTES_MAX) socket.send(bytes as Uint8Array<ArrayBuffer>);
    },
    close() {
      open = false;
      socket.close();
    },
  };
}

function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no answer in time")), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** Longest time that a session may take to open. */
const OPEN_MS = 4_000;
const QUEUE_DATAGRAMS = 256;
/** A datagram of the transport and what a relay puts in front. */
const DATAGRAM_MAX = 1_208;
const BUFFERED_BYTES_MAX = 64 * 1024;
