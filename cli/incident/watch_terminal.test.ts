import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { IncidentApi } from "../../tests/support/cli/incident_api.ts";
import { configHome } from "../../tests/support/cli/io.ts";
import { svcOnTerminal } from "../../tests/support/cli/process.ts";
import { TerminalScreen } from "../../tests/support/cli/terminal_screen.ts";
import { descendants } from "../../tests/support/process/processes.ts";
import { within } from "../../tests/support/process/until.ts";

/** What `svc incident watch` shows on a real pseudo-terminal, whatever happens to it. */

let server: IncidentApi;
let env: Record<string, string>;

beforeEach(() => {
  server = new IncidentApi();
  env = { XDG_CONFIG_HOME: configHome(), SVC_SERVER: server.url, SVC_TOKEN: fakeToken() };
  server.incident(7);
  server.happens(7, "Incident reported: Checkout is down", { kind: "incident.reported" });
});
afterEach(() => server.stop());

const COLOUR = /\x1b\[[\d;]*m/;

function watch(words: string[], { columns = 80, rows = 24, more = {} as Record<string, string> } = {}) {
  const screen = new TerminalScreen(columns, rows);
  const terminal = svcOnTerminal(["incident", "watch", ...words], { ...env, ...more }, { picture: screen });
  const pictures = (pattern: RegExp) => picture(screen, pattern, terminal.pictures(pattern));
  return { ...terminal, screen, pictures };
}

/** Fails with what the screen shows instead. */
function picture(screen: TerminalScreen, pattern: RegExp, shown: Promise<void>): Promise<void> {
  return within(`${pattern}`, shown).catch((cause: Error) => {
    throw new Error(`${cause.message}:\n${screen.text}`, { cause });
  });
}

/** Text that others could have written to take over a terminal. */
const hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\nsecond\u202Egnp\u2066 line\u200B\x00";
const wide = "支払いが失敗する支払いが失敗する支払いが失敗する 👩‍🚒 e\u0301";
const rightToLeft = "التطبيق لا يعمل ולא עובד";

describe("one incident", () => {
  test.each([80, 40, 20, 10])("the state is the last line of a terminal of %i columns", async (columns) => {
    const terminal = watch(["7"], { columns });
    await terminal.pictures(/\nINC-7 · /);
    server.happens(7, "Note: rolled back to the release of 11:40, which was good");
    server.happens(7, "Note: last");
    await terminal.pictures(/last\nINC-7 · .*$/);
    const { lines, cursor } = terminal.screen;
    const shown = lines.filter((line) => /^INC-7 · /.test(line));
    expect(shown).toHaveLength(1);
    expect(Bun.stringWidth(shown[0]!)).toBeLessThan(columns);
    expect(lines[cursor.y]).toBe(shown[0]);
  });

  test.each([
    ["wide characters", wide],
    ["right-to-left letters", rightToLeft],
  ])("one line shows the state, whatever the size becomes: %s", async (_what, title) => {
    server.incident(7, { title });
    const terminal = watch(["7"], { columns: 78 });
    await terminal.pictures(/\nINC-7 · /);
    for (const [index, columns] of [30, 100, 5, 51, 13, 80].entries()) {
      terminal.resize(columns);
      server.happens(7, `#${index}`);
      await terminal.pictures(new RegExp(`#${index}\\nINC.*$`));
      const states = terminal.screen.history.split("\n").filter((line) => line.startsWith("INC"));
      expect(states, `${columns} columns:\n${terminal.screen.history}`).toHaveLength(1);
    }
    for (const index of [0, 1, 2, 3, 4, 5])
      expect(terminal.screen.history.replaceAll("\n", "")).toContain(`#${index}`);
  });

  test("no event is erased when the terminal has another width than the program knows", async () => {
    const terminal = watch(["7"], { columns: 78 });
    await terminal.pictures(/\nINC-7 · /);
    for (const index of [0, 1, 2, 3]) {
      terminal.resize(20);
      terminal.screen.resize(78);
      server.happens(7, `#${index}`);
      await terminal.pictures(new RegExp(`#${index}\\nINC.*$`));
      terminal.resize(78);
      await terminal.pictures(/ · Dana · \d+.$/);
    }
    expect(terminal.screen.history.match(/reported|#\d/g)).toEqual(["reported", "#0", "#1", "#2", "#3"]);
  });

  test("text of others moves no cursor, hides nothing and sets no title", async () => {
    const name = `Eve${hostile}`;
    server.incident(7, { title: hostile, commander: { id: 2, name, email: "eve@example.com" } });
    server.incident(7, { incident_priority: { id: 1, name: hostile } });
    const terminal = watch(["7"], { columns: 160 });
    server.happens(7, `Note: ${hostile}`, { actor: `${hostile}@example.com` });
    await terminal.pictures(/^ {4}second.*\n.*INC-7 · Active/m);
    // The screen throws when anything but our own sequences arrives.
    expect(terminal.output()).not.toMatch(/[\x07\x9b\u202e\u2066\u200b\x00]/);
    terminal.press("\x03");
    expect(await terminal.exitCode()).toBe(130);
  });

  test("the state says that the incident is Restricted", async () => {
    server.incident(7, { visibility: "Restricted" });
    const terminal = watch(["7"], { columns: 60 });
    await terminal.pictures(/\nINC-7 · Active · \[Restricted\] Chec/);
  });

  test("NO_COLOR: without colour", async () => {
    const terminal = watch(["7"], { more: { NO_COLOR: "1" } });
    await terminal.pictures(/\nINC-7 · Active · Checkout is down · High · Dana · 1\dm$/);
    expect(terminal.output()).not.toMatch(COLOUR);
  });

  test("TERM=dumb: a line for each event, and no escape sequences", async () => {
    const terminal = watch(["7"], { more: { TERM: "dumb" } });
    await terminal.pictures(/dana {2}Incident reported: Checkout is down$/);
    await server.requested(1);
    server.happens(7, "Note: rolled back");
    await terminal.pictures(/dana {2}Note: rolled back$/);
    expect(terminal.output()).not.toContain("\x1b");
    expect(terminal.screen.text).not.toContain("Active");
  });

  test("the state says that the server is gone, and that it is back", async () => {
    const terminal = watch(["7"]);
    await terminal.pictures(/\nINC-7 · Active/);
    await server.requested(1);
    await server.kill();
    await terminal.pictures(/\nreconnecting · INC-7 · Active · .*$/);
    server.incident(7, { status: "Stable" });
    server.restart();
    await terminal.pictures(/\nINC-7 · Stable · .*$/);
    expect(terminal.screen.text).not.toContain("svc: ");
  });

  test("an error is below the state, which stays", async () => {
    const terminal = watch(["7"]);
    await terminal.pictures(/\nINC-7 · Active/);
    await server.requested(1);
    server.answers.set("stream", () => Response.json({ detail: "No" }, { status: 404 }));
    server.end();
    expect(await terminal.exitCode()).toBe(1);
    await terminal.pictures(
      /\n(?:reconnecting · )?INC-7 · Active.*\nsvc: INC-7 is no longer visible to you$/,
    );
  });
});

describe("the board", () => {
  test.each([
    [80, 24],
    [40, 10],
    [10, 2],
  ])("fits %i columns and %i rows", async (columns, rows) => {
    for (let id = 8; id < 40; id += 1) server.incident(id, { title: id % 2 ? wide : rightToLeft });
    const terminal = watch([], { columns, rows });
    await terminal.pictures(/^33 open/);
    server.happens(7, "Note: rolled back");
    if (columns >= 40) await terminal.pictures(/Not/);
    // A line that is too long would have moved the title off the screen.
    expect(terminal.screen.text).toMatch(/^33 open/);
    expect(terminal.screen.isAlternate).toBe(true);
  });

  test.each([
    [2, []],
    [3, [/^… and 32 more/m]],
    [4, [/^NAME/m, /^… and 32 more/m]],
  ])("shows an incident and the count in %i rows", async (rows, others) => {
    for (let id = 8; id < 40; id += 1) server.incident(id);
    const terminal = watch([], { rows });
    await terminal.pictures(/^33 open incidents · live/);
    for (const pattern of [/^INC-\d+ /m, ...others]) expect(terminal.screen.text).toMatch(pattern);
    expect(terminal.screen.text).not.toContain("No open incidents");
  });

  test("shows what is reported and closed meanwhile, and no longer what is hidden", async () => {
    server.incident(8, { title: "Disk full" });
    const terminal = watch([]);
    await terminal.pictures(/^2 open incidents · live/);
    server.incident(9, { title: "New" });
    server.happens(9, "Reported: New", { kind: "incident.reported" });
    await terminal.pictures(/^INC-9 +Active/m);
    server.incident(7, { status: "Closed", closed_at: new Date().toISOString() });
    server.happens(7, "Closed", { kind: "incident.closed" });
    await terminal.pictures(/^INC-7 +Closed/m);
    server.incidents.delete(8);
    server.send('event: incident\ndata: {"id":8,"name":"INC-8"}\n\n');
    await terminal.pictures(/^1 open incident · live/);
    expect(terminal.screen.text).not.toMatch(/^INC-8 /m);
  });

  test("says that there are more incidents than it shows", async () => {
    for (let id = 8; id < 107; id++) server.incident(id);
    const terminal = watch([]);
    await terminal.pictures(/^100\+ open incidents · live/);
    expect(terminal.screen.text).toMatch(/… and \d+ more: svc incident list/);
  });

  test("shows the most urgent incidents first, and those that are Restricted by a word", async () => {
    const items = [
      { id: 1, name: "High", rank: 3 },
      { id: 2, name: "Info", rank: 1 },
      { id: 3, name: "Urgent", rank: 9 },
    ];
    server.answers.set("/incident_priorities/", () => Response.json({ items, next_cursor: null }));
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
    const of = (id: number, title: string, priority: number, more = {}) =>
      server.incident(id, {
        title,
        incident_priority_id: priority,
        incident_priority: { id: priority, name: items[priority - 1]!.name },
        reported_at: at(100 - id),
        ...more,
      });
    of(8, "First", 3, { visibility: "Restricted" });
    of(9, "Last", 2);
    of(10, "Second", 1);
    of(11, "Stable", 3, { status: "Stable" });
    const terminal = watch([]);
    await terminal.pictures(/5 open incidents · live/);
    const rows = terminal.screen.lines.filter((line) => /^INC-\d+ +(Active|Stable)/.test(line));
    const names = rows.map((row) => row.split(/\s/)[0]);
    expect(names).toEqual(["INC-8", "INC-7", "INC-10", "INC-9", "INC-11"]);
    expect(rows[0]).toContain("[Restricted] First");
  });

  test("is drawn again when the size changes", async () => {
    const terminal = watch([], { columns: 100 });
    await terminal.pictures(/^NAME +STATUS +PRIORITY +TITLE +COMMANDER +AGE$/m);
    terminal.resize(40, 12);
    await terminal.pictures(/^NAME +STATUS +PRIORITY +TITLE +AGE$/m);
    terminal.resize(120, 30);
    await terminal.pictures(/^NAME +STATUS +PRIORITY +TITLE +COMMANDER +AGE$/m);
    expect(terminal.screen.text.match(/^NAME/gm)).toHaveLength(1);
  });

  test.each([
    ["q", "q", 0],
    ["Ctrl-C", "\x03", 130],
  ] as const)("%s restores the screen, and leaves the last picture", async (_name, key, code) => {
    const screen = new TerminalScreen();
    const terminal = onShell('echo before; "$@"; echo "exit $?"; stty -a', screen);
    await terminal.pictures(/1 open incident · live/);
    expect([screen.isAlternate, screen.isCursorVisible]).toEqual([true, false]);
    expect(screen.text).not.toContain("before");
    server.happens(7, "Note: rolled back");
    await terminal.pictures(/Note: rolled back/);
    terminal.press(key);
    await terminal.exited;
    expect([screen.isAlternate, screen.isCursorVisible]).toEqual([false, true]);
    const [before, header, incident, empty] = screen.history.split("\n");
    expect([before, empty]).toEqual(["before", ""]);
    expect(header).toMatch(/^NAME +STATUS/);
    expect(incident).toMatch(/^INC-7 +Active +High +Checkout is down/);
    expect(screen.history).toContain("Note: rolled back");
    expect(screen.history).toContain(`exit ${code}`);
    // The terminal shows what is typed, line by line.
    for (const mode of ["isig", "icanon", "echo"]) expect(screen.history.split(/\s+/)).toContain(mode);
  });

  test.each(["SIGTERM", "SIGHUP"] as const)("%s restores the screen", async (signal) => {
    const screen = new TerminalScreen();
    const terminal = onShell('"$@"; stty -a', screen);
    await terminal.pictures(/1 open incident · live/);
    const [board] = descendants(terminal.pid).filter(({ command }) => command.includes("incident watch"));
    process.kill(board!.pid, signal);
    await terminal.exited;
    expect([screen.isAlternate, screen.isCursorVisible]).toEqual([false, true]);
    for (const mode of ["isig", "icanon", "echo"]) expect(screen.history.split(/\s+/)).toContain(mode);
  });

  test("says that the server is gone, and shows what happened meanwhile", async () => {
    const terminal = watch([]);
    await terminal.pictures(/1 open incident · live/);
    await server.requested(1);
    await server.kill();
    await terminal.pictures(/1 open incident · reconnecting/);
    expect(terminal.screen.text).toContain("Checkout is down");
    server.happens(7, "Note: in the dark");
    server.incident(8, { title: "Disk full" });
    server.restart();
    await terminal.pictures(/2 open incidents · live/);
    await terminal.pictures(/Note: in the dark/);
    expect(terminal.screen.text).toContain("Disk full");
  });

  test("shows older states after a backup was restored", async () => {
    const [incident, events] = [server.incidents.get(7)!, [...server.events.get(7)!]];
    server.incident(7, { status: "Stable" });
    server.happens(7, "Stable", { kind: "incident.stable" });
    const terminal = watch([]);
    await terminal.pictures(/^INC-7 +Stable/m);
    await server.requested(1);
    server.incidents.set(7, incident);
    server.events.set(7, events);
    server.end();
    await terminal.pictures(/^INC-7 +Active/m);
  });

  test("text of others is harmless", async () => {
    server.incident(7, { title: hostile });
    const terminal = watch([]);
    await terminal.pictures(/INC-7 +Active/);
    server.happens(7, `Note: ${hostile}`, { actor: hostile });
    await terminal.pictures(/Note: /);
    terminal.press("q");
    expect(await terminal.exitCode()).toBe(0);
    expect(terminal.output()).not.toMatch(/[\x07\x9b\u202e\u2066\u200b\x00]/);
  });

  test("NO_COLOR: without colour", async () => {
    const terminal = watch([], { more: { NO_COLOR: "1" } });
    await terminal.pictures(/1 open incident · live/);
    expect(terminal.output()).not.toMatch(COLOUR);
  });

  test("TERM=dumb: a line for each event, and no escape sequences", async () => {
    const terminal = watch([], { more: { TERM: "dumb" } });
    await terminal.pictures(/INC-7 {2}dana {2}Incident reported: Checkout is down$/);
    server.happens(7, "Note: rolled back");
    await terminal.pictures(/INC-7 {2}dana {2}Note: rolled back$/);
    expect(terminal.output()).not.toContain("\x1b");
  });
});

test.each([
  ["one incident", "7", /^INC-7 · Active · Checkout is down · High · Dana · 1\dm$/m],
  ["the board", "", /^1 open incident · live/],
] as const)("Ctrl-Z gives the terminal to the shell, and fg goes on: %s", async (_what, id, shown) => {
  const screen = new TerminalScreen(100, 30);
  const job = `"$@" ${id}; echo "stopped: $?"; stty -a; read -r word; clear() { printf '\\033[H\\033[J'; }; clear; fg; echo "exit $?"`;
  const terminal = onShell(`set -m; ${job}`, screen);
  await terminal.pictures(shown);
  terminal.press("\x1a");
  await terminal.pictures(/ icanon /);
  expect([screen.isAlternate, screen.isCursorVisible]).toEqual([false, true]);
  expect(screen.text).toMatch(/^stopped: 14\d$/m);
  terminal.press("\n");
  await terminal.pictures(shown);
  server.happens(7, "Note: rolled back");
  await terminal.pictures(/Note: rolled back/);
  terminal.press("\x03");
  await terminal.pictures(/^exit 130$/m);
  await terminal.exited;
  expect(screen.isAlternate).toBe(false);
  // Nothing of the board was drawn on the screen of the shell, but its last picture.
  expect(screen.text).not.toContain("q to leave");
  expect(screen.text.match(/Note: rolled back/g)).toHaveLength(1);
});

test("fg draws in the size that the terminal got while the board was suspended", async () => {
  const screen = new TerminalScreen(100, 30);
  const terminal = onShell('set -m; "$@"; echo stopped; read -r word; fg', screen);
  await terminal.pictures(/^NAME +STATUS +PRIORITY +TITLE +COMMANDER +AGE$/m);
  terminal.press("\x1a");
  await terminal.pictures(/^stopped$/m);
  terminal.resize(40, 12);
  terminal.press("\n");
  await terminal.pictures(/^NAME +STATUS +PRIORITY +TITLE +AGE$/m);
  terminal.press("q");
  await terminal.exited;
});

/** A shell on a pseudo-terminal; `"$@"` is the board. */
function onShell(script: string, screen: TerminalScreen) {
  const terminal = svcOnTerminal(["incident", "watch"], env, { script, picture: screen });
  const pictures = (pattern: RegExp) => picture(screen, pattern, terminal.pictures(pattern));
  return { ...terminal, pictures, pid: terminal.child.pid, exited: terminal.child.exited };
}
