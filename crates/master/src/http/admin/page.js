// The operators' page. Text from outside only ever becomes text nodes; the token lives in the tab.

const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem("operator") ?? "";
let tab = location.hash.slice(1);
let turn = 0;

// ---- elements

function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node && key !== "list") node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const button = (text, act, kind = "small") => el("button", { type: "button", className: kind, onclick: act }, text);
const tag = (text, kind) => el("span", { className: `tag ${kind}` }, text);

function table(heads, rows, empty) {
  if (rows.length === 0) return el("div", { className: "table" }, el("p", { className: "empty" }, empty));
  const head = (text) => el("th", { className: text.startsWith("#") ? "number" : "", scope: "col" }, text.replace("#", ""));
  return el("div", { className: "table" },
    el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(head))), el("tbody", {}, ...rows)));
}

const cell = (content, className = "") => el("td", { className }, content ?? "");
const number = (value) => cell(value.toLocaleString("en"), "number");

function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

const time = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
const wishes = (preferences) => {
  const words = Object.entries(preferences.choices ?? {}).map(([name, value]) => `${name}: ${value}`);
  if (preferences.players) words.unshift(`${preferences.players} players`);
  if (preferences.bots) words.push("bots");
  return words.join(", ") || "anything";
};

// ---- calls

async function call(method, path, body) {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(`/admin/api/${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const failure = await answer.json().catch(() => ({ message: answer.statusText }));
  if (answer.status === 401 && path !== "sign-in") signOut();
  throw new Error(failure.message);
}

function say(text, failed = false) {
  $("message").textContent = text;
  $("message").className = failed ? "failed" : "";
  clearTimeout(say.timer);
  say.timer = setTimeout(() => { $("message").textContent = ""; }, 5000);
}

async function act(done, work) {
  try {
    await work();
    say(done);
  } catch (error) {
    say(error.message, true);
  }
  await show();
}

// ---- dialogs

function ask(title, fields, confirm, work) {
  const inputs = fields.map(({ label, ...rest }) => {
    const { kind = "input", options = [], ...attributes } = rest;
    const input = el(kind, attributes, ...options.map(([value, text]) => el("option", { value }, text)));
    return [el("label", {}, label, input), input];
  });
  const form = el("form", { className: "form", method: "dialog", onsubmit: async (event) => {
    event.preventDefault();
    $("dialog").close();
    await work(...inputs.map(([, input]) => input.value));
  } },
  el("h2", {}, title), ...inputs.map(([label]) => label),
  el("div", { className: "bar" }, button("Cancel", () => $("dialog").close(), ""), el("button", { type: "submit", className: "danger" }, confirm)));
  open("narrow", form);
}

function open(kind, ...content) {
  $("dialog").className = kind;
  $("dialog").replaceChildren(...content);
  $("dialog").showModal();
}

const hours = { label: "For", kind: "select", name: "hours", options: [["1", "an hour"], ["24", "a day"], ["168", "a week"], ["720", "a month"], ["876000", "ever"]] };
const reason = { label: "Reason (the player is told)", name: "reason", maxLength: 200 };

function impose(kind, player) {
  const label = player.name ?? player.account;
  ask(`${kind === "ban" ? "Ban" : "Mute"} ${label}`, [hours, reason], kind === "ban" ? "Ban" : "Mute", (length, why) =>
    act(`${label}: ${kind} is in force`, () => call("PUT", `players/${player.account}/${kind}`, { hours: Number(length), reason: why })));
}

function kick(player) {
  const label = player.name ?? player.account;
  ask(`Kick ${label}`, [reason], "Kick", (why) =>
    act(`${label} was sent away`, () => call("POST", `players/${player.account}/kick`, { reason: why })));
}

// ---- charts

function chart(title, samples, every, series) {
  const [width, height, left, bottom] = [480, 150, 44, 18];
  const names = ["var(--accent)", "var(--good)", "var(--warn)"];
  const most = Math.max(1, ...samples.flatMap((sample) => series.map(([key, , scale = 1]) => sample[key] * scale)));
  const step = 10 ** Math.floor(Math.log10(most));
  const top = Math.ceil(most / step) * step;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", title);
  const add = (name, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
  };
  const y = (value) => 6 + (height - bottom - 6) * (1 - value / top);
  for (const part of [0, 0.5, 1]) {
    add("line", { class: "grid", x1: left, x2: width, y1: y(top * part), y2: y(top * part) });
    add("text", { x: left - 6, y: y(top * part) + 4, "text-anchor": "end" }, (top * part).toLocaleString("en"));
  }
  const room = Math.max(60, samples.length) - 1;
  const x = (index) => left + (width - left) * ((index + room + 1 - samples.length) / room);
  series.forEach(([key, , scale = 1], index) => {
    const points = samples.map((sample, at) => `${x(at).toFixed(1)} ${y(sample[key] * scale).toFixed(1)}`);
    if (points.length > 0) add("path", { class: "line", d: `M${points.join("L")}`, stroke: names[index] });
  });
  add("text", { x: left, y: height - 4 }, `${duration(room * every * 1000)} ago`);
  add("text", { x: width, y: height - 4, "text-anchor": "end" }, "now");
  const legend = series.map(([, label], index) => {
    const mark = el("i");
    mark.style.background = names[index];
    return el("span", {}, mark, label);
  });
  return el("div", { className: "chart" }, el("h3", {}, title), svg, el("div", { className: "legend" }, ...legend));
}

// ---- views

const views = {
  async overview() {
    const data = await call("GET", "overview");
    state(data);
    const figure = (label, value) => el("div", { className: "figure" }, label, el("b", {}, value));
    const now = data.now;
    const nodes = [
      el("div", { className: "figures" },
        figure("Players online", `${now.sessions} / ${data.players_max}`),
        figure("Tickets waiting", now.queued.toLocaleString("en")),
        figure("Longest wait", duration(now.waited_ms_max)),
        figure("Matches", now.matches.toLocaleString("en")),
        figure("Servers busy", now.servers_busy.toLocaleString("en")),
        figure("Servers ready", now.servers_starting > 0 ? `${now.servers_ready} (+${now.servers_starting})` : String(now.servers_ready)),
        figure("Up", duration(data.up_s * 1000))),
      el("div", { className: "charts" },
        chart("Players online", data.history, data.sample_every_s, [["sessions", "players"]]),
        chart("Queue", data.history, data.sample_every_s, [["queued", "tickets waiting"]]),
        chart("Longest wait in seconds", data.history, data.sample_every_s, [["waited_ms_max", "seconds", 0.001]]),
        chart("Matches and servers", data.history, data.sample_every_s, [["matches", "matches"], ["servers_busy", "servers busy"], ["servers_ready", "servers ready"]])),
    ];
    const controls = el("div", { className: "bar" },
      button("Announce…", () => ask("Announce to every player", [{ label: "Words", kind: "textarea", rows: 3, maxLength: 500, required: true }], "Announce", (text) =>
        act("Announced", () => call("POST", "announcements", { text }))), ""),
      data.draining
        ? button("Make matches again", () => act("Matches are made again", () => call("PUT", "drain", { draining: false })), "")
        : button("Drain…", () => ask("Drain this master: no new matches, running ones finish", [], "Drain", () => act("Draining", () => call("PUT", "drain", { draining: true }))), "danger"));
    return [controls, ...nodes];
  },

  async players() {
    const search = el("input", { type: "search", placeholder: "Name or number", value: views.search ?? "", name: "search", maxLength: 32,
      onkeydown: (event) => { if (event.key === "Enter") { views.search = search.value.trim(); show(); } } });
    const players = await call("GET", `players?search=${encodeURIComponent(views.search ?? "")}`);
    const row = (player) => el("tr", {},
      cell(el("code", {}, String(player.account))), cell(player.name ?? el("span", { className: "faint" }, "guest")),
      cell(el("span", { className: "tags" },
        player.online ? tag("online", "good") : tag("offline", "faint"),
        player.ticket ? tag("in the queue", "warn") : null,
        player.match_id ? tag("in a match", "good") : null,
        player.banned_until_ms ? tag(`banned until ${time(player.banned_until_ms)}`, "bad") : null,
        player.muted_until_ms ? tag(`muted until ${time(player.muted_until_ms)}`, "bad") : null)),
      number(Math.round(player.rating)), number(player.points), cell(time(player.created_ms), "time"),
      cell(el("span", {},
        button("Chat", () => { views.writer = player.account; go("chat"); }),
        button("Kick…", () => kick(player)),
        player.muted_until_ms ? button("Unmute", () => act("Unmuted", () => call("DELETE", `players/${player.account}/mute`))) : button("Mute…", () => impose("mute", player)),
        player.banned_until_ms ? button("Unban", () => act("Unbanned", () => call("DELETE", `players/${player.account}/ban`))) : button("Ban…", () => impose("ban", player), "small danger")), "actions"));
    return [
      el("div", { className: "bar" }, search, button("Search", () => { views.search = search.value.trim(); show(); }, ""),
        views.search ? button("Who is online", () => { views.search = ""; show(); }, "") : null),
      table(["Account", "Name", "State", "#Rating", "#Points", "Since (UTC)", ""], players.map(row), views.search ? "Nobody is called so." : "Nobody is online."),
    ];
  },

  async queue() {
    const tickets = await call("GET", "queue");
    const row = (ticket) => el("tr", {}, cell(el("code", {}, String(ticket.ticket))), cell(ticket.party.join(", "), "wide"),
      cell(duration(ticket.waited_ms), "number"), cell(wishes(ticket.preferences), "wide"), number(ticket.attempts));
    return [table(["Ticket", "Players", "#Waited", "Wants", "#Called off"], tickets.map(row), "Nobody waits.")];
  },

  async matches() {
    const [matches, servers] = await Promise.all([call("GET", "matches"), call("GET", "servers")]);
    const outcome = { finished: "good", cancelled: "warn", aborted: "bad" };
    const row = (match) => el("tr", {}, cell(el("code", {}, String(match.match_id))),
      cell(match.ended_ms ? tag(match.outcome, outcome[match.outcome]) : match.running ? tag("running", "good") : match.server ? tag("starting", "warn") : tag("waits for a server", "warn")),
      cell(match.players.join(", "), "wide"), cell(wishes(match.preferences), "wide"), cell(match.address ? el("code", {}, match.address) : ""),
      cell(time(match.created_ms), "time"), cell(duration((match.ended_ms ?? Date.now()) - match.created_ms), "number"),
      cell(el("span", {}, button("Log", () => log(match)),
        match.ended_ms || !match.server ? null : button("End…", () => ask(`End match ${match.match_id}; nothing of it counts`, [], "End", () => act("Ended", () => call("DELETE", `matches/${match.match_id}`))), "small danger")), "actions"));
    const server = (line) => el("tr", {}, cell(el("code", {}, String(line.server))), cell(String(line.port), "number"),
      cell(tag(line.standing, { starting: "warn", ready: "faint", busy: "good" }[line.standing])),
      cell(line.connected ? "connected" : el("span", { className: "warn" }, "not connected")), cell(line.adopted ? "of an earlier master" : ""));
    const heads = ["Match", "State", "Players", "Played", "Server", "Made (UTC)", "#Length", ""];
    return [
      el("h2", {}, "Matches"), table(heads, matches.filter((match) => !match.ended_ms).map(row), "No match is on."),
      el("h2", {}, "Game servers"), table(["Server", "#Port", "State", "Connection", ""], servers.map(server), "There are no servers."),
      el("h2", {}, "Over"), table(heads, matches.filter((match) => match.ended_ms).map(row), "No match has been played."),
    ];
  },

  async chat() {
    const data = await call("GET", views.writer ? `chat?account=${views.writer}` : "chat");
    const row = (line) => el("tr", {}, cell(time(line.at_ms), "time"), cell(el("code", {}, line.channel)),
      cell(button(String(line.from), () => { views.search = String(line.from); go("players"); })), cell(line.text, "wide"),
      cell(el("span", {}, button("Delete", () => act("Deleted", () => call("DELETE", `chat/${line.id}`)), "small danger"),
        button("Mute…", () => impose("mute", { account: line.from, name: null }))), "actions"));
    return [
      el("div", { className: "bar" }, views.writer ? `Lines of ${views.writer}` : "The last hundred lines",
        views.writer ? button("Everybody", () => { views.writer = null; show(); }, "") : null),
      table(["Time (UTC)", "Channel", "From", "Text", ""], data.lines.map(row), "Nobody has written."),
    ];
  },

  async audit() {
    const [lines, operators] = await Promise.all([call("GET", "audit"), call("GET", "operators")]);
    const row = (line) => el("tr", {}, cell(time(line.at_ms), "time"), cell(line.operator), cell(line.action), cell(line.subject), cell(line.detail, "wide"));
    const operator = (name) => el("tr", {}, cell(name),
      cell(el("span", {}, button("New password…", () => setOperator(name)), button("Remove…", () => ask(`Remove ${name}`, [], "Remove", () =>
        act("Removed", () => call("DELETE", `operators/${name}`))), "small danger")), "actions"));
    return [
      el("h2", {}, "Operators"), el("div", { className: "bar" }, button("Add…", () => setOperator(null), "")),
      table(["Name", ""], operators.map(operator), ""),
      el("h2", {}, "What operators did"), table(["Time (UTC)", "Operator", "Action", "To", "Detail"], lines.map(row), "Nothing yet."),
    ];
  },
};

function setOperator(name) {
  const fields = [{ label: "Password (12 characters or more)", type: "password", minLength: 12, maxLength: 128, required: true, autocomplete: "new-password" }];
  if (name === null) fields.unshift({ label: "Name", required: true, maxLength: 24, pattern: "[A-Za-z0-9_\\-]+" });
  ask(name === null ? "Add an operator" : `New password for ${name}`, fields, "Save", (...values) => {
    const [who, password] = name === null ? values : [name, ...values];
    return act("Saved", () => call("PUT", `operators/${encodeURIComponent(who)}`, { password }));
  });
}

async function log(match) {
  try {
    const data = await call("GET", `matches/${match.match_id}`);
    const lines = data.master.map((line) => `${time(line.at_ms)}  ${line.text}`).join("\n");
    open("", el("h2", {}, `Match ${match.match_id}`), el("h2", {}, "Master"), el("pre", {}, lines || "nothing in this master's memory"),
      el("h2", {}, "Game server"), el("pre", {}, data.server === null ? "its output is not kept: see --logs" : data.server || "it has written nothing"),
      el("div", { className: "bar" }, button("Close", () => $("dialog").close(), "")));
  } catch (error) {
    say(error.message, true);
  }
}

// ---- frame

function state(data) {
  $("state").replaceChildren(
    data.leading ? tag("leads the queue", "good") : tag("does not lead", "warn"),
    ...(data.draining ? [tag("draining", "bad")] : []),
    tag(`version ${data.version}`, "faint"));
}

function go(name) {
  tab = name;
  location.hash = name;
  return show();
}

async function show() {
  const mine = ++turn;
  const signedIn = token !== "";
  $("sign-in").hidden = signedIn;
  $("view").hidden = $("tabs").hidden = $("sign-out").hidden = !signedIn;
  if (!signedIn) return;
  if (!["overview", "players", "queue", "matches", "chat", "audit"].includes(tab)) tab = "overview";
  $("tabs").replaceChildren(...["overview", "players", "queue", "matches", "chat", "audit"].map((name) => {
    const made = button(name[0].toUpperCase() + name.slice(1), () => go(name), "");
    if (name === tab) made.setAttribute("aria-current", "page");
    return made;
  }));
  try {
    const nodes = await views[tab]();
    if (mine === turn) $("view").replaceChildren(...nodes);
    document.body.dataset.shown = tab;
  } catch (error) {
    say(error.message, true);
  }
}

function signOut() {
  token = "";
  sessionStorage.removeItem("operator");
  $("state").replaceChildren();
  show();
}

$("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  try {
    const signedIn = await call("POST", "sign-in", { name: form.elements.name.value, password: form.elements.password.value });
    token = signedIn.token;
    sessionStorage.setItem("operator", token);
    form.reset();
    await show();
  } catch (error) {
    say(error.message, true);
  }
});
$("sign-out").addEventListener("click", signOut);
window.addEventListener("hashchange", () => { tab = location.hash.slice(1); show(); });
// Live, but never under somebody's hands.
setInterval(() => {
  const typing = document.activeElement?.matches("input, textarea, select");
  if (token && !$("dialog").open && !typing && !document.hidden) show();
}, 2000);
show();
