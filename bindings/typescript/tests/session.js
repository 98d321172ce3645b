// The session that every binding plays against the same server, to the same result: all delivery modes under loss, a message of a megabyte, a cut
// that the connection survives, and a second connection; and clients that it refuses. `bindings/capi/examples/session` has the server and the client in Rust.
//
// The faults that a browser's links lack are made here: datagrams are lost both ways, by a seed, and the line is cut for a while.

const NUMBERS = 200;
const AFTER = 10;
const LARGE = 1 << 20;
const [WINDOW, PERCENT] = [10, 80];
const ORDERED = 4;
const LOSS = 0.05;
const CUT_MS = 900;
const PATIENCE_MS = 60_000;
const [NUMBER, BULK, REPORT, CUT, HELLO, TEXT] = [..."NLRCHT"].map((letter) => letter.charCodeAt(0));

/** The settings that both sides share. */
const SHARED = {
  protocol: 0x6d75_7365_0009n,
  shared: "large message 1048577 bytes\nsession rules 1",
  channels: [
    { delivery: "unreliable" },
    { delivery: "sequenced" },
    { delivery: "reliable-unordered" },
    { delivery: "reliable-sequenced" },
    { delivery: "reliable-ordered" },
    { delivery: { window: WINDOW, percent: PERCENT } },
  ],
};

/** Clients that the server refuses: one that its application denies, and one of another version. They read why. */
export async function refusals(muse, address, key, prefer, wasm) {
  const refused = async (options) => {
    const connected = muse.connect(address, { ...SHARED, serverKey: key, prefer, wasm, ...options });
    const error = await connected.then(
      () => new Error("a client was let in that should not have been"),
      (error) => error,
    );
    if (!(error instanceof muse.MuseError)) throw error;
    return error;
  };
  const expect = (error, refusal, code, detail, message) => {
    const told = [error.refusal, error.code, error.detail, error.message];
    const wanted = [refusal, code, detail, message];
    if (wanted.some((part, index) => part !== told[index])) throw new Error(`told ${JSON.stringify(told)}, not ${JSON.stringify(wanted)}`);
  };
  const denied = await refused({ hello: new TextEncoder().encode("banned") });
  expect(denied, "denied", 7, "banned until Monday", "refused: the server denied the connection: banned until Monday (code 7)");
  const other = await refused({ shared: "large message 1048577 bytes\nsession rules 2\nmap size 64" });
  const lines = ["`map size 64` only here", "`session rules 2` here, `session rules 1` there"];
  expect(other, "schema", 0, lines.join("\n"), `refused: client (here) and server (there) do not share what they must: ${lines.join("; ")}`);
}

/** Plays, and returns the lines. `muse` is the package, `prefer` the kind of session, `wasm` where the module is. */
export async function play(muse, address, key, prefer, wasm) {
  const lines = [];
  const say = (line) => lines.push(line);
  const weather = { cutUntil: 0 };
  const meet = async (hello) => {
    const player = new Player(say);
    player.client = await muse.connect(
      address,
      {
        ...SHARED,
        keepAlive: 100,
        silence: 300,
        resumeWithin: 20_000,
        serverKey: key,
        hello: new TextEncoder().encode(hello),
        prefer,
        wasm,
        open: badly(muse.openSession, weather),
      },
      player.handlers(),
    );
    if (player.client.link !== prefer) throw new Error(`connected by ${player.client.link}`);
    say("connected");
    return player;
  };

  let player = await meet("first");
  await player.numbers();
  await player.large();
  await player.cut(weather);
  player.client.finish(7, "bye");
  await player.until("closed", () => player.closed);
  say(`closed by us: ${player.closed.reason === "by us"}`);

  player = await meet("second");
  player.client.send(ORDERED, Uint8Array.of(HELLO));
  await player.until("hello", () => player.texts.length > 0);
  player.printTexts();
  const outcome = await player.client.sendWithReceipt(ORDERED, numbered(0));
  say(`receipt: delivered: ${outcome === "delivered"}`);
  const stats = player.client.stats;
  if (!(stats.roundTrip > 0 && stats.bytesSent > 0 && stats.packetsReceived > 0)) throw new Error(JSON.stringify(stats));
  player.client.close();
  say("done");
  return lines;
}

class Player {
  texts = [];
  echoes = [[], [], [], [], [], []];
  after = [];
  large_ = undefined;
  closed = undefined;
  interrupted = false;
  resumed = false;

  constructor(say) {
    this.say = say;
  }

  handlers() {
    return {
      message: (channel, payload) => this.message(channel, payload),
      interrupted: () => (this.interrupted = true),
      resumed: () => (this.resumed = this.interrupted),
      closed: (ending) => (this.closed = ending),
    };
  }

  message(channel, payload) {
    if (payload[0] === TEXT) this.texts.push(new TextDecoder().decode(payload.subarray(1)));
    else if (payload[0] === BULK) this.large_ = `${payload.length} bytes, digest ${digest(payload)}`;
    else {
      const number = numberOf(payload);
      if (number >= NUMBERS) this.after.push(number);
      else this.echoes[channel].push(number);
    }
  }

  async numbers() {
    for (let number = 0; number < NUMBERS; number += 1) {
      for (let channel = 0; channel < 6; channel += 1) this.client.send(channel, numbered(number));
      await sleep(2);
    }
    const [, , unordered, newest, ordered, partial] = this.echoes;
    const complete = () =>
      unordered.length >= NUMBERS && newest.at(-1) === NUMBERS - 1 && ordered.length >= NUMBERS && partial.length >= NUMBERS / 2;
    await this.until("echoes", complete);
    this.client.send(ORDERED, Uint8Array.of(REPORT));
    await this.until("report", () => this.texts.length === 6);
    this.printTexts();
    for (const line of echoLines(this.echoes)) this.say(`echo: ${line}`);
  }

  async large() {
    this.client.send(ORDERED, bulk(1));
    await this.until("large", () => this.large_ !== undefined);
    this.printTexts();
    this.say(`large: ${this.large_}`);
  }

  async cut(weather) {
    await this.client.sendWithReceipt(ORDERED, Uint8Array.of(CUT));
    weather.cutUntil = performance.now() + CUT_MS;
    await this.until("interrupted", () => this.interrupted);
    this.say("interrupted");
    for (let number = NUMBERS; number < NUMBERS + AFTER; number += 1) this.client.send(ORDERED, numbered(number));
    await this.until("resumed", () => this.resumed);
    this.say("resumed");
    await this.until("after", () => this.after.length === AFTER);
    const inOrder = this.after.every((number, index) => number === NUMBERS + index);
    this.say(`after the cut: ${AFTER} in order: ${inOrder}`);
  }

  printTexts() {
    for (const text of this.texts.splice(0)) this.say(`server: ${text}`);
  }

  async until(what, done) {
    const began = performance.now();
    while (!done()) {
      if (performance.now() - began > PATIENCE_MS) throw new Error(`waited too long: ${what}`);
      await sleep(2);
    }
  }
}

/** Sessions that lose datagrams both ways, and all of them during a cut. */
function badly(openSession, weather) {
  let state = 1;
  const passes = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return performance.now() >= weather.cutUntil && state / 2 ** 32 >= LOSS;
  };
  return async (address, prefer, listener, trying) => {
    const lossy = { datagram: (bytes) => passes() && listener.datagram(bytes), lost: () => listener.lost() };
    const session = await openSession(address, prefer, lossy, trying);
    return { kind: session.kind, send: (bytes) => passes() && session.send(bytes), close: () => session.close() };
  };
}

function echoLines([unreliable, sequenced, unordered, newest, ordered, partial]) {
  const good = (is) => (is ? "ok" : "broken");
  const ascending = (numbers) => numbers.every((number, index) => index === 0 || numbers[index - 1] < number);
  const eachOnce = (numbers) => ascending(numbers.toSorted((a, b) => a - b));
  return [
    `unreliable: none twice, most there: ${good(eachOnce(unreliable) && unreliable.length > NUMBERS / 2)}`,
    `sequenced: ascending: ${good(ascending(sequenced))}`,
    `reliable unordered: ${unordered.length} of ${NUMBERS}, each once: ${good(eachOnce(unordered))}`,
    `reliable sequenced: ascending up to ${newest.at(-1) ?? 0}: ${good(ascending(newest))}`,
    `reliable ordered: ${ordered.length} of ${NUMBERS} in order: ${good(ordered.every((number, index) => number === index))}`,
    `partially reliable: ascending, as many as promised: ${good(ascending(partial))}`,
  ];
}

function numbered(number) {
  const message = new Uint8Array(24).fill(number);
  message[0] = NUMBER;
  new DataView(message.buffer).setUint32(1, number, true);
  return message;
}

function numberOf(message) {
  const number = new DataView(message.buffer, message.byteOffset).getUint32(1, true);
  if (message.length !== 24 || numbered(number).some((byte, index) => byte !== message[index])) throw new Error("a message that nobody sent");
  return number;
}

function bulk(seed) {
  const message = new Uint8Array(1 + LARGE);
  message[0] = BULK;
  for (let index = 1; index <= LARGE; index += 1) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    message[index] = seed >>> 24;
  }
  return message;
}

/** FNV-1a with 64 bits, in four parts of 16: numbers of JavaScript have 53. */
function digest(bytes) {
  let [a, b, c, d] = [0x2325, 0x8422, 0x9ce4, 0xcbf2];
  for (const byte of bytes) {
    a ^= byte;
    // Times 0x100000001b3.
    const [low, second, third, fourth] = [a * 0x1b3, b * 0x1b3, c * 0x1b3 + a * 0x100, d * 0x1b3 + b * 0x100];
    a = low & 0xffff;
    const carryB = second + Math.floor(low / 65_536);
    b = carryB & 0xffff;
    const carryC = third + Math.floor(carryB / 65_536);
    c = carryC & 0xffff;
    d = (fourth + Math.floor(carryC / 65_536)) & 0xffff;
  }
  return [d, c, b, a].map((part) => part.toString(16).padStart(4, "0")).join("");
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
