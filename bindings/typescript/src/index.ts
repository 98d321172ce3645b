/** Muse for browsers: `connect` is where to begin. */

export { connect, Client, MuseError } from "./client.ts";
export type { Channel, Delivery, Ending, Handlers, Options, Outcome, Refusal, Stats } from "./client.ts";
export { hasWebTransport, openSession } from "./session.ts";
export type { LinkKind, Listener, Session } from "./session.ts";
