// The application: which screen, which match, which events lead where. Every way back ends at a screen from which one can play again.

import { ATTRACT_LEVEL, attractCamera, attractMoment } from "./attract.ts";
import { publish } from "./diagnostics.ts";
import { Game } from "./game.ts";
import { InputDevices } from "./input/devices.ts";
import { type MenuKey, PadMenu } from "./input/pad_menu.ts";
import { toLevel } from "./level.ts";
import type { ApiAnswer, Link } from "./link.ts";
import type { Api, GameEvent, Preferences } from "./protocol.ts";
import { suitableQuality } from "./render/quality.ts";
import { Stage } from "./render/stage.ts";
import { loadSettings, saveSettings, type Settings } from "./settings.ts";
import { SoundEngine } from "./sound/engine.ts";
import { GameSounds } from "./sound/game_sounds.ts";
import * as recipes from "./sound/recipes.ts";
import type { Actions, PracticeOptions, ScreenName } from "./ui/actions.ts";
import { element, focusable, moveFocus, take } from "./ui/dom.ts";
import { pausePanel } from "./ui/panels.ts";
import { loadingScreen, playScreen, practiceScreen, queueScreen } from "./ui/play.ts";
import { lead, resultScreen } from "./ui/result.ts";
import { type Screen, Screens } from "./ui/screens.ts";
import { settingsScreen } from "./ui/settings_screen.ts";
import { friendsScreen, rankingScreen } from "./ui/social.ts";
import { homeScreen, titleScreen } from "./ui/title.ts";
import { watchScreen } from "./ui/watch.ts";

export class App implements Actions {
  readonly settings: Settings;
  /** Parameters of the page's address; docs/game.md lists them. */
  private readonly parameters = new URLSearchParams(location.search);
  account: number | undefined;
  room: string | undefined;
  masterStatus = { text: "Not signed in", online: false };
  readonly screens: Screens;
  game: Game | undefined;
  private readonly sounds: GameSounds;
  private readonly devices: InputDevices;
  private readonly padMenu = new PadMenu();
  private stage: Stage;
  private captured: ((key: string) => void) | undefined;
  private pause: HTMLElement | undefined;
  private loading: ReturnType<typeof loadingScreen> | undefined;
  private readonly notice = element("div", { class: "notice", attributes: { role: "status" } });
  private lastPractice: PracticeOptions | undefined;
  private lastPreferences: Preferences | undefined;
  private invitation = this.parameters.get("room");
  private queuedSince = 0;
  private watched = false;
  private signedIn = false;
  /** The game server is of another version than this page. */
  private outdated = false;
  firstPictureMs: number | undefined;
  private lastPictureMs = performance.now();
  private readonly beganMs = performance.now();

  constructor(
    private canvas: HTMLCanvasElement,
    private readonly parent: HTMLElement,
    private readonly link: Link,
  ) {
    this.settings = loadSettings(localStorage, suitableQuality);
    const wanted = this.parameters.get("quality");
    if (wanted === "low" || wanted === "medium" || wanted === "high") this.settings.quality = wanted;
    this.sounds = new GameSounds(new SoundEngine());
    this.sounds.engine.setVolume(this.settings.volume);
    this.stage = this.makeStage();
    this.devices = new InputDevices(() => this.canvas);
    this.screens = new Screens(parent, () => this.sounds.play(recipes.UI_MOVE));
    parent.append(this.notice);
    this.wire();
    this.stage.load(ATTRACT_LEVEL);
    this.show("title");
    requestAnimationFrame((now) => this.picture(now));
  }

  show(name: ScreenName): void {
    this.sounds.play(recipes.UI_ACCEPT);
    this.leaveGame();
    this.screens.show(this.make(name === "home" && !this.signedIn ? "title" : name));
  }

  back(): void {
    this.sounds.play(recipes.UI_BACK);
    if (this.game !== undefined) {
      this.screens.hide();
      this.openPause();
      return;
    }
    this.show("home");
  }

  saveSettings(): void {
    saveSettings(localStorage, this.settings);
    this.sounds.engine.setVolume(this.settings.volume);
    this.stage.view.shakeAllowed = this.settings.shake;
    if (this.stage.quality !== this.settings.quality) this.changeQuality();
  }

  signIn(name: string): void {
    this.settings.name = name;
    saveSettings(localStorage, this.settings);
    const address = this.parameters.get("server");
    if (address !== null) return this.joinServer(address, name);
    this.signedIn = true;
    this.masterStatus = { text: "Connecting", online: false };
    const url = this.parameters.get("master") ?? location.origin;
    this.link.send({ kind: "sign-in", url, name, deviceKey: this.settings.deviceKey });
    this.show("home");
  }

  play(preferences: Preferences): void {
    this.lastPreferences = preferences;
    this.lastPractice = undefined;
    this.queuedSince = performance.now();
    this.link.send({ kind: "play", preferences });
    this.showQueue(preferences);
  }

  leaveQueue(): void {
    this.link.send({ kind: "leave-queue" });
    this.show("home");
  }

  practice(options: PracticeOptions): void {
    this.lastPractice = options;
    this.showLoading("Preparing the level");
    this.watched = false;
    const name = this.settings.name === "" ? "You" : this.settings.name;
    this.link.send({ kind: "start", mode: "practice", name, ...options });
  }

  watch(bytes: ArrayBuffer): void {
    this.showLoading("Opening the recording");
    this.watched = true;
    this.link.send({ kind: "start", mode: "replay", bytes }, [bytes]);
  }

  again(): void {
    if (this.lastPractice !== undefined) this.practice(this.lastPractice);
    else if (this.lastPreferences !== undefined) this.play(this.lastPreferences);
    else this.show("home");
  }

  api(method: Api["method"], path: string, body?: unknown): Promise<ApiAnswer> {
    return this.link.api(method, path, body);
  }

  private make(name: ScreenName): Screen {
    switch (name) {
      case "title":
        return titleScreen(this);
      case "home":
        return homeScreen(this);
      case "play":
        return playScreen(this);
      case "friends":
        return friendsScreen(this);
      case "practice":
        return practiceScreen(this);
      case "watch":
        return watchScreen(this);
      case "ranking":
        return rankingScreen(this);
      case "settings":
        return settingsScreen(this, (take) => {
          this.captured = take;
        });
    }
  }

  private wire(): void {
    this.link.onFrame = (buffer) => this.game?.takeFrame(buffer);
    this.link.onEvent = (event) => this.event(event);
    this.devices.onKey = (key, event) => this.key(key, event.target);
    this.devices.onLook = (x, y) => this.game?.mouse(x, y);
    this.devices.onChange = () => this.game?.heldChanged();
    this.devices.onWheel = (steps) => this.game?.wheel(steps);
    addEventListener("resize", () => this.stage.resize());
    addEventListener("pointerdown", () => this.sounds.engine.wake());
    document.addEventListener("pointerlockchange", () => {
      const { game } = this;
      if (this.devices.locked || game === undefined || game.wantsPointer) return;
      this.openPause();
    });
    publish(this);
  }

  private key(key: string, target: EventTarget | null): boolean {
    this.sounds.engine.wake();
    if (this.captured !== undefined) {
      const take = this.captured;
      this.captured = undefined;
      take(key);
      return true;
    }
    if (this.pause !== undefined) return this.pauseKey(key);
    const { game } = this;
    const covered = this.screens.current !== "game";
    if (game === undefined || covered) return this.screens.key(key);
    if (key === "Escape" && !game.chat.open) {
      if (game.watching) this.show("home");
      else this.openPause();
      return true;
    }
    const onPicture = target === this.canvas && game.netGraph.open;
    if (key === "Mouse0" && !this.devices.locked && (!game.wantsPointer || onPicture)) {
      this.devices.lock();
      return true;
    }
    return game.key(key);
  }

  /** The gamepad steers what the keyboard steers: screens, the pause menu, a vote. In the game it plays, except for Start. */
  private padKeys(nowMs: number): void {
    for (const key of this.padMenu.poll(this.devices.padButtons(), nowMs)) this.padKey(key);
  }

  private padKey(key: MenuKey): void {
    const { game } = this;
    const playing = game !== undefined && this.pause === undefined && this.screens.current === "game";
    if (key === "Start") {
      if (playing || this.pause !== undefined) this.key("Escape", null);
      return;
    }
    if (playing && !game.wantsMenu) return;
    if (key === "Enter" || !this.key(key, null)) take(key);
  }

  private event(event: GameEvent): void {
    switch (event.type) {
      case "connecting":
        this.showLoading(`Connecting by ${event.link === "webtransport" ? "WebTransport" : "WebSocket"}`, 0.2);
        break;
      case "connected":
        this.loading?.progress(0.5, "Connected");
        break;
      case "welcome":
        this.begin(event);
        break;
      case "result":
        this.finish(event);
        break;
      case "closed":
        this.outdated ||= event.reason === "version";
        this.connectionOver(event.text);
        break;
      case "error":
        this.say(event.text);
        if (this.game !== undefined || this.loading !== undefined) this.show("home");
        break;
      case "match-found":
        this.sounds.play(recipes.UI_ALERT);
        this.showLoading("Match found", 0.1);
        break;
      case "game-lost":
        this.say("The game server was lost. Asking the master.");
        this.wentHome();
        break;
      case "back":
        if (event.outcome !== "finished" && this.screens.current !== "result") {
          this.say(event.outcome === "cancelled" ? "The match was called off." : "The match is over.");
          this.wentHome();
        }
        break;
      default:
        this.masterEvent(event);
        this.game?.event(event);
    }
  }

  private masterEvent(event: GameEvent): void {
    switch (event.type) {
      case "online":
        this.account = event.account;
        this.masterStatus = { text: `Online as number ${event.account}`, online: true };
        void this.enterInvitedRoom();
        break;
      case "offline":
        this.masterStatus = { text: event.full ? "The server is full; trying again" : "No server; trying again", online: false };
        break;
      case "queue":
        this.queuedSince = performance.now() - event.waitedMs;
        if (this.game === undefined && this.screens.current !== "queue") this.showQueue(event.preferences);
        break;
      case "left-queue":
        if (this.screens.current === "queue") this.show("home");
        break;
      case "master":
        if (event.message.type === "invitation") this.say(`Number ${String(event.message.from)} invites you to room ${String(event.message.room)}.`);
        if (event.message.type === "refused") this.say(String(event.message.message));
        if (event.message.type === "announcement") this.say(String(event.message.text));
        break;
      default:
        break;
    }
  }

  /** A player who came by a friend's address enters the friend's room, once. */
  private async enterInvitedRoom(): Promise<void> {
    const code = this.invitation;
    this.invitation = null;
    if (code === null) return;
    const answer = await this.api("POST", `/v1/room/${encodeURIComponent(code)}`);
    if (answer.status !== 200) return this.say(`There is no room ${code}.`);
    this.room = code;
    this.say(`You are in room ${code}.`);
  }

  /** A game server that the address of the page names, without a master. */
  private joinServer(address: string, name: string): void {
    this.showLoading(`Joining ${address}`);
    this.link.send({ kind: "start", mode: "server", name, address, key: this.parameters.get("key") ?? "" });
  }

  private begin(event: Extract<GameEvent, { type: "welcome" }>): void {
    this.leaveGame(false);
    this.loading?.progress(0.8, "Building the level");
    const parts = { link: this.link, stage: this.stage, devices: this.devices, settings: this.settings, sounds: this.sounds, parent: this.parent, leave: () => this.show("home") };
    this.game = new Game(parts, toLevel(event.level), event.mode, event.slot);
    this.link.send({ kind: "loaded" });
    this.loading = undefined;
    this.screens.hide();
    this.canvas.focus();
    // A recording is steered with the pointer, a match with the mouse.
    if (!this.watched) this.devices.lock();
    this.watched = false;
  }

  private finish(event: Extract<GameEvent, { type: "result" }>): void {
    const { game } = this;
    // A recording goes on after the end it shows.
    if (game === undefined || game.watching) return;
    const goals = game.newest?.round.goals ?? [0, 0];
    const result = { won: event.won, lines: event.lines, mode: game.mode, goals, ownSlot: game.slot };
    const won = game.mode === "ball" ? lead(result) > 0 : event.won;
    this.sounds.play(won ? recipes.VICTORY : recipes.DEFEAT);
    this.leaveGame();
    this.screens.show(resultScreen(this, result));
  }

  private connectionOver(text: string): void {
    if (this.game === undefined && this.loading === undefined) return;
    this.say(text);
    this.wentHome();
  }

  /** The Worker has left the match by itself, and may be on its way into another: it is not told to stop. */
  private wentHome(): void {
    this.leaveGame(false);
    this.show("home");
  }

  /** Ends the match on this page; `stop` also leaves it. */
  private leaveGame(stop = true): void {
    this.closePause();
    this.loading = undefined;
    if (this.game === undefined) return;
    this.game.end();
    this.game = undefined;
    this.devices.release();
    if (stop) this.link.send({ kind: "stop" });
    this.stage.load(ATTRACT_LEVEL);
  }

  private showLoading(text: string, share = 0.05): void {
    if (this.game !== undefined) this.leaveGame(false);
    if (this.loading === undefined) {
      this.loading = loadingScreen(text, () => this.leaveMatch());
      this.screens.show(this.loading);
    }
    this.loading.progress(share, text);
  }

  private showQueue(preferences: Preferences): void {
    this.screens.show(queueScreen(this, () => performance.now() - this.queuedSince, preferences));
  }

  /** Gives the seat up, wherever one is on the way into a match or in it. */
  private leaveMatch(): void {
    this.link.send({ kind: "leave-match" });
    this.link.send({ kind: "stop" });
    this.show("home");
  }

  private openPause(): void {
    const { game } = this;
    if (game === undefined || this.pause !== undefined || this.screens.current !== "game") return;
    game.paused = true;
    this.devices.release();
    this.pause = pausePanel({
      resume: () => {
        this.closePause();
        this.devices.lock();
      },
      settings: () => {
        this.closePause();
        game.paused = true;
        this.screens.show(this.make("settings"));
      },
      leave: () => this.leaveMatch(),
    });
    this.parent.append(this.pause);
    this.pause.querySelector<HTMLElement>("[data-focus]")?.focus();
  }

  private closePause(): void {
    this.pause?.remove();
    this.pause = undefined;
    if (this.game !== undefined) this.game.paused = false;
  }

  private pauseKey(key: string): boolean {
    if (this.pause === undefined) return false;
    if (key === "Escape") {
      focusable(this.pause)[0]?.click();
      return true;
    }
    return moveFocus(this.pause, key);
  }

  private say(text: string): void {
    // Nothing else matters until the page is loaded again.
    if (this.outdated && this.notice.classList.contains("stays")) return;
    this.notice.textContent = text;
    this.notice.classList.toggle("stays", this.outdated);
    if (this.outdated) return;
    this.notice.animate([{ opacity: 1 }, { opacity: 1, offset: 0.85 }, { opacity: 0 }], { duration: 6000 });
  }

  private picture(nowMs: number): void {
    requestAnimationFrame((next) => this.picture(next));
    this.padKeys(nowMs);
    const seconds = Math.min(0.1, (nowMs - this.lastPictureMs) / 1000);
    if (this.game === undefined && this.settings.quality === "low" && seconds < 0.09) return;
    this.lastPictureMs = nowMs;
    if (this.game !== undefined) {
      this.game.picture(nowMs, seconds);
      return;
    }
    const time = (nowMs - this.beganMs) / 1000;
    const { at, towards } = attractCamera(time);
    this.stage.drawFrom(at, towards, attractMoment(time), seconds);
    this.firstPictureMs ??= performance.now();
  }

  private makeStage(): Stage {
    return new Stage(this.canvas, this.settings.quality, this.settings, this.sounds);
  }

  /** A canvas keeps its first context, so another quality needs another canvas. */
  private changeQuality(): void {
    const { level } = this.game ?? { level: ATTRACT_LEVEL };
    const { view } = this.stage.view;
    this.stage.dispose();
    const fresh = element("canvas", { id: "view", attributes: { "aria-label": "The game" } });
    this.canvas.replaceWith(fresh);
    this.canvas = fresh;
    this.stage = this.makeStage();
    this.stage.setView(view);
    this.stage.load(level);
    this.game?.useStage(this.stage);
  }
}
