import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../../core/populate/populate.ts";
import { freePort } from "../../platform/free_port.ts";
import { svcOnTerminal, testProgram } from "../support/cli/process.ts";
import { TerminalScreen } from "../support/cli/terminal_screen.ts";
import { itemsOf } from "../support/http/pages.ts";
import { type Person, personOf } from "../support/http/people.ts";
import { environmentOf, signInToken, startTestServer, type TestServer } from "../support/http/server.ts";
import { Program } from "../support/process/program.ts";
import { listening } from "../support/process/stack.ts";
import { until, within } from "../support/process/until.ts";

/** `svc incident watch` against a real server, which is killed and starts again while others write. */

setDefaultTimeout(60_000);

/** Never stops: others write through it. */
let writer: TestServer;
let alice: Person;
let home: string;
let token: string;
let port: number;
let incident: { id: number; name: string; version: number };
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-watch-"));
  writer = await startTestServer({ pluginDocument: "markdown", pluginConversation: "channel" });
  writer.clock.advance((Date.now() - writer.clock.now().getTime()) / 1000);
  await populate(writer.db, writer.clock);
  port = await freePort();
});
afterAll(async () => {
  await writer?.[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});
beforeEach(async () => {
  alice = await personOf(writer, "alice@example.com", ["admin"]);
  token = await signInToken(writer);
  incident = await report("Open");
});

async function report(visibility: string): Promise<typeof incident> {
  const { body, headers } = await alice.call("POST", "/incidents/", {
    title: "Checkout is down",
    description: "",
    visibility,
    incident_type_id: 1,
    incident_priority_id: 1,
  });
  const path = headers.get("location") ?? `/incidents/${body.id}`;
  return (await alice.call("GET", path)).body;
}

/** The server of those who watch. It shares the database with the writer, and starts again at the same address. */
async function startServer(): Promise<Program> {
  const server = svc(["server", "start", "server/main:app", "--port", String(port)], {
    ...environmentOf(writer),
    SVC_PLUGIN_DOCUMENT: "markdown",
    SVC_PLUGIN_CONVERSATION: "channel",
  });
  await listening(server);
  return server;
}

function svc(args: string[], env: Record<string, string | undefined>, columns?: number): Program {
  const base = { PATH: process.env.PATH, HOME: home, TZ: "UTC", TERM: "xterm-256color" };
  return new Program(args, { env: { ...base, ...env }, cwd: home, columns });
}

const watch = (words: string[], columns?: number) =>
  svc(["incident", "watch", ...words], { SVC_SERVER: `http://127.0.0.1:${port}`, SVC_TOKEN: token }, columns);

async function note(text: string, { id } = incident, at?: Date): Promise<void> {
  const fields = { description: text, ...(at === undefined ? {} : { at: at.toISOString() }) };
  const { http, body } = await alice.call("POST", `/incidents/${id}/events/`, fields);
  expect(http, JSON.stringify(body)).toBe(201);
}

async function change({ id }: { id: number }, values: Record<string, unknown>): Promise<void> {
  const { body: now } = await alice.call("GET", `/incidents/${id}`);
  const { title, description, status, visibility, resolution, version } = now;
  const { incident_type_id, incident_priority_id } = now;
  const fields = { title, description, status, visibility, resolution, version };
  const all = { ...fields, incident_type_id, incident_priority_id, ...values };
  expect((await alice.call("PUT", `/incidents/${id}`, all)).http).toBe(200);
}

const close = () => change(incident, { status: "Closed", resolution: "Rolled back" });

/** The ids of the events, in order, up to the one that closed the incident. */
async function timeline(): Promise<number[]> {
  const events = await itemsOf(alice, `/incidents/${incident.id}/events/?limit=100&sort=id`);
  return events.slice(0, events.findIndex(({ kind }) => kind === "incident.closed") + 1).map(({ id }) => id);
}

test.each([
  ["killed", "SIGKILL"],
  ["stopped", "SIGTERM"],
] as const)("no event is lost or repeated when the server is %s and starts again", async (_how, signal) => {
  await using first = await startServer();
  await using watcher = watch([incident.name, "--json", "--until", "closed", "--since", "1d"]);
  let notes = 0;
  const write = async (count: number) => {
    for (const last = notes + count; notes < last;) await note(`Note ${++notes}`);
  };
  const writing = write(200);
  await watcher.says(/Note 10"/);
  first.kill(signal);
  await first.exit();
  await watcher.says(/reconnecting/);
  await writing;
  await using _second = await startServer();
  await watcher.says(/connected again/);
  await write(10);
  await close();
  expect(await watcher.exit()).toBe(0);
  const seen = watcher.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(seen.map(({ id }) => id)).toEqual(await timeline());
  expect(new Set(seen.map((event) => event.incident))).toEqual(new Set([incident.name]));
  expect(watcher.stderr).toMatch(/^svc: .*; reconnecting\nsvc: connected again\n$/);
});

test("a program that reads slowly gets every event once", async () => {
  await using _server = await startServer();
  const gate = join(home, "gate");
  // Reads up to the line with "ready", and the others when the gate is open.
  const first = `while IFS= read -r line; do echo "$line"; case "$line" in *ready*) break;; esac; done`;
  const script = `"$@" | { ${first}; while [ ! -e '${gate}' ]; do sleep 0.05; done; cat; }`;
  const words = ["incident", "watch", incident.name, "--json", "--since", "1d", "--until", "closed"];
  const reader = Bun.spawn(["bash", "-c", script, "sh", ...testProgram, ...words], {
    env: { PATH: process.env.PATH, HOME: home, SVC_SERVER: `http://127.0.0.1:${port}`, SVC_TOKEN: token },
    stdout: "pipe",
  });
  let output = "";
  const ended = (async () => {
    for await (const chunk of reader.stdout.pipeThrough(new TextDecoderStream())) output += chunk;
  })();
  await until("the first line", () => output.includes("incident.reported"));
  await note("ready");
  await until("the last line that is read", () => output.includes("ready"));
  // More than the pipe and the server hold for it.
  for (let count = 0; count < 120; count += 1) await note(`${count} ${"x".repeat(9000)}`);
  await close();
  writeFileSync(gate, "");
  await ended;
  const ids = output
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).id);
  expect(ids).toEqual(await timeline());
});

/**
 * Whether at least one event was shown at once after the one before it. Without hints, the server would read each of them five
 * seconds after the last; with them, a busy machine may delay some.
 */
const atOnce = (milliseconds: readonly number[]) => Math.min(...milliseconds.slice(1)) < 2500;

test("a terminal shows an event at once, and the new state", async () => {
  await using _server = await startServer();
  await using watcher = watch([incident.name], 80);
  await watcher.says(/ · .*Active.* · Checkout is down/);
  const took: number[] = [];
  for (const text of ["Rolling back", "Half of it", "Rolled back"]) {
    const begun = performance.now();
    await note(text);
    await watcher.says(new RegExp(`alice {2}.*${text}`));
    took.push(performance.now() - begun);
  }
  expect(atOnce(took)).toBe(true);
  await close();
  await watcher.says(/ · .*Closed.* · Checkout is down/);
  watcher.press("\x03");
  expect(await watcher.exit()).toBe(130);
});

test("it ends when the user may no longer see the incident, and when they sign out", async () => {
  await using _server = await startServer();
  await personOf(writer, "bob@example.com");
  const bobToken = await signInToken(writer);
  const asBob = () =>
    svc(["incident", "watch", incident.name], {
      SVC_SERVER: `http://127.0.0.1:${port}`,
      SVC_TOKEN: bobToken,
    });
  await using excluded = asBob();
  await excluded.says(/Checkout is down/);
  await change(incident, { visibility: "Restricted" });
  expect(await excluded.exit()).toBe(1);
  expect(excluded.stderr).toEndWith(`svc: ${incident.name} is no longer visible to you\n`);

  incident = await report("Open");
  await using signedOut = asBob();
  await signedOut.says(/Checkout is down/);
  const headers = { authorization: `Bearer ${bobToken}` };
  expect((await writer.fetch("/tokens/current", { method: "DELETE", headers })).status).toBe(204);
  expect(await signedOut.exit()).toBe(4);
  expect(signedOut.stderr).toEndWith("does not accept the token in SVC_TOKEN; set a new one\n");
});

describe("without ID", () => {
  test("prints the events of all incidents once, although the server is killed and starts again", async () => {
    const others = [await report("Open"), await report("Restricted")];
    const known = [incident, ...others];
    await using first = await startServer();
    await using watcher = watch(["--json"]);
    await watcher.says(new RegExp(`"${others[1]!.name}"`));
    const from = watcher.stdout.length;
    for (let round = 0; round < 5; round += 1) for (const one of known) await note(`Before ${round}`, one);
    first.kill("SIGKILL");
    await first.exit();
    await watcher.says(/reconnecting/);
    // More than the board reads at once.
    for (let round = 0; round < 15; round += 1) for (const one of known) await note(`Dark ${round}`, one);
    const reported = await report("Open");
    await using _second = await startServer();
    await watcher.says(/connected again/);
    await watcher.says(new RegExp(`${reported.name} reported`));
    for (const one of [...known, reported]) await note("After", one);
    for (const { name } of [...known, reported]) await watcher.says(new RegExp(`"${name}".*"After"`));
    watcher.kill("SIGINT");
    expect(await watcher.exit()).toBe(130);
    const seen = watcher.stdout
      .slice(from)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
      .filter(({ kind }) => kind === "note");
    for (const { name } of known) {
      const texts = seen.filter((event) => event.incident === name).map(({ description }) => description);
      const rounds = (word: string, count: number) => Array.from({ length: count }, (_, i) => `${word} ${i}`);
      expect(texts).toEqual([...rounds("Before", 5), ...rounds("Dark", 15), "After"]);
    }
  });

  test("shows what others report, change and hide, at once", async () => {
    await using _server = await startServer();
    await personOf(writer, "bob@example.com");
    const bobToken = await signInToken(writer);
    const screen = new TerminalScreen(100, 40);
    const board = svcOnTerminal(
      ["incident", "watch"],
      { XDG_CONFIG_HOME: home, SVC_SERVER: `http://127.0.0.1:${port}`, SVC_TOKEN: bobToken },
      { picture: screen },
    );
    const shows = (pattern: RegExp) => within(`${pattern}`, board.pictures(pattern));
    await shows(/· live/);
    await shows(new RegExp(`^${incident.name} +Active`, "m"));
    for (let count = 0; count < 10; count += 1) await note(`Note ${count}`);
    const times = [performance.now()];
    const reported = await report("Open");
    await shows(new RegExp(`^${reported.name} +Active`, "m"));
    times.push(performance.now());
    await note("Rolled back");
    await shows(/Rolled back/);
    times.push(performance.now());
    // More than ten events are newer, by their times.
    await note("Backdated", incident, new Date(writer.clock.now().getTime() - 3_600_000));
    await shows(/Backdated/);
    times.push(performance.now());
    await close();
    await shows(new RegExp(`^${incident.name} +Closed`, "m"));
    times.push(performance.now());
    expect(atOnce(times.slice(1).map((at, nth) => at - times[nth]!))).toBe(true);
    await change(reported, { visibility: "Restricted" });
    await until("it to be gone", () => !new RegExp(`^${reported.name} `, "m").test(screen.text));
    await note("Not for Bob", reported);
    await note("For Bob");
    await shows(/For Bob/);
    expect(screen.text).not.toContain("Not for Bob");
    board.press("q");
    expect(await board.exitCode()).toBe(0);
  });
});
