/** The Worker's connection to the master: signs in as a guest, keeps the WebSocket, and makes HTTP calls with the account's token. */

import type { Api, SignIn } from "./protocol.ts";

export interface MasterListener {
  connected(): void;
  message(text: string): void;
  lost(): void;
}

export class MasterLink {
  private socket: WebSocket | undefined;
  private token = "";
  private tokenUntilMs = 0;
  /** Of the attempt that counts; a later one makes earlier ones void. */
  private attempt = 0;

  constructor(
    private readonly who: SignIn,
    private readonly listener: MasterListener,
  ) {}

  /** Signs in if need be and opens the WebSocket. */
  async connect(): Promise<void> {
    const attempt = ++this.attempt;
    this.socket?.close();
    this.socket = undefined;
    try {
      const token = await this.accessToken();
      if (attempt !== this.attempt) return;
      const url = new URL("/v1/push", this.who.url);
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      const socket = new WebSocket(url, ["muse.v1", `bearer.${token}`]);
      this.socket = socket;
      const current = () => this.socket === socket;
      socket.onopen = () => current() && this.listener.connected();
      socket.onmessage = ({ data }) => current() && typeof data === "string" && this.listener.message(data);
      socket.onclose = () => {
        if (!current()) return;
        this.socket = undefined;
        // The token may be what it was refused for.
        this.tokenUntilMs = 0;
        this.listener.lost();
      };
    } catch {
      if (attempt === this.attempt) this.listener.lost();
    }
  }

  disconnect(): void {
    this.attempt += 1;
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }

  send(text: string): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(text);
  }

  /** A call of the HTTP interface; status 0 if the master cannot be reached. */
  async call({ method, path, body }: Api): Promise<{ status: number; body: unknown }> {
    try {
      let answer = await this.request(method, path, body);
      if (answer.status === 401) {
        this.tokenUntilMs = 0;
        answer = await this.request(method, path, body);
      }
      const text = await answer.text();
      return { status: answer.status, body: text === "" ? null : JSON.parse(text) };
    } catch {
      return { status: 0, body: null };
    }
  }

  private async request(method: string, path: string, body: unknown): Promise<Response> {
    const headers: Record<string, string> = { authorization: `Bearer ${await this.accessToken()}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const signal = AbortSignal.timeout(CALL_MS);
    return fetch(new URL(path, this.who.url), { method, headers, signal, ...(body !== undefined && { body: JSON.stringify(body) }) });
  }

  /** A guest's device key signs in as often as need be: no refresh token to lose. */
  private async accessToken(): Promise<string> {
    if (Date.now() < this.tokenUntilMs) return this.token;
    const answer = await fetch(new URL("/v1/guest", this.who.url), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ device_key: this.who.deviceKey }),
      signal: AbortSignal.timeout(CALL_MS),
    });
    if (!answer.ok) throw new Error(`the master answered ${answer.status}`);
    const signedIn: { access_token: string; expires_s: number } = await answer.json();
    this.token = signedIn.access_token;
    this.tokenUntilMs = Date.now() + (signedIn.expires_s - 30) * 1000;
    return this.token;
  }
}

const CALL_MS = 8_000;
