// The page's end of the Worker: typed messages, and calls of the master's interface as promises.

import type { Api, FromWorker, GameEvent, ToWorker } from "./protocol.ts";

export interface ApiAnswer {
  /** 0 if the master could not be reached. */
  status: number;
  body: unknown;
}

export class Link {
  onFrame: (buffer: ArrayBuffer) => void = () => undefined;
  onEvent: (event: GameEvent) => void = () => undefined;
  /** The Worker's version, once it is there. */
  version: string | undefined;
  private readonly waiting = new Map<number, (answer: ApiAnswer) => void>();
  private nextCall = 1;

  constructor(private readonly worker: Worker) {
    worker.onmessage = (message: MessageEvent<FromWorker>) => this.receive(message.data);
    worker.onerror = (error) => this.onEvent({ type: "error", text: error.message || "The game could not be started." });
  }

  send(message: ToWorker, transfer: Transferable[] = []): void {
    this.worker.postMessage(message, transfer);
  }

  /** Calls the master's HTTP interface with the account's token. */
  api(method: Api["method"], path: string, body?: unknown): Promise<ApiAnswer> {
    const id = this.nextCall;
    this.nextCall += 1;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.send(body === undefined ? { kind: "api", id, method, path } : { kind: "api", id, method, path, body });
    });
  }

  private receive(message: FromWorker): void {
    switch (message.kind) {
      case "ready":
        this.version = message.version;
        break;
      case "frame":
        this.onFrame(message.buffer);
        break;
      case "event":
        this.onEvent(message.event);
        break;
      case "api":
        this.waiting.get(message.id)?.({ status: message.status, body: message.body });
        this.waiting.delete(message.id);
        break;
    }
  }
}
