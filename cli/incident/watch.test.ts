import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { IncidentApi } from "../../tests/support/cli/incident_api.ts";
import { configHome, NOW, testIo } from "../../tests/support/cli/io.ts";
import { spawnSvc, svcOnTerminal, testProgram } from "../../tests/support/cli/process.ts";
import { until } from "../../tests/support/process/until.ts";
import { withEntry } from "../client/credentials.ts";
import { updateCredentials } from "../client/credentials_file.ts";
import type { Session } from "../client/token.ts";
import { type Io, systemIo } from "../io.ts";
import { run } from "../run.ts";
import { firstEvents } from "./watch.ts";
import { endingText } from "./watch_text.ts";

/** `svc incident watch` as a process: through a pipe, and on a real pseudo-terminal. */

let server: IncidentApi;
let env: Record<string, string>;

beforeEach(() => {
  server = new IncidentApi();
  env = { XDG_CONFIG_HOME: configHome(), SVC_SERVER: server.url, SVC_TOKEN: fakeToken() };
  server.incident(7);
  server.happens(7, "Incident reported: Checkout is down", { kind: "incident.reported" });
});
afterEach(() => server.stop());

/** As through a pipe, in this process. */
function watchHere(...words: string[]) {
  const { clock, fetch, sleep } = systemIo();
  const io = testIo({ env, clock, fetch, sleep });
  const finished = run(["incident", "watch", ...words], io).then((code) => ({ code, ...io.out }));
  const shows = (stream: "stdout" | "stderr") => (text: string) =>
    until(text, () => io.out[stream].includes(text));
  return { finished, interrupt: () => io.interrupt(), prints: shows("stdout"), says: shows("stderr") };
}

describe("through a pipe", () => {
  test("prints a line for each event, first those that were", async () => {
    const { child, finished, prints } = spawnSvc(["incident", "watch", "INC-7"], env);
    await server.requested(1);
    expect(server.streams).toEqual([{ path: "/incidents/7/stream", after: "1" }]);
    const { at } = server.happens(7, "Note: two\nlines \x1b[31m");
    server.happens(7, "Closed", { kind: "incident.closed" });
    server.incident(7, { status: "Closed" });
    await prints("Closed");
    child.kill("SIGINT");
    const { code, stdout, stderr } = await finished;
    expect([code, stderr]).toEqual([130, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe(`${at}  INC-7  dana@example.com  Note: two lines \ufffd[31m`);
  });

  test("what the server does by itself is one line; what people say is shown whole, in its order", async () => {
    const step = (description: string) =>
      server.happens(7, description, { actor: "system", kind: "step.done" });
    const { interrupt, finished, prints } = watchHere("INC-7");
    await server.requested(1);
    server.happens(7, "Bob joined", { kind: "participant.joined" });
    for (const group of ["Conversation", "Conversation", "Group"]) step(`${group} members updated`);
    server.happens(7, "Who can help?", { kind: "message.sent" });
    server.happens(7, "Status report:\nConditions: Down\nNeeds: Disks", { kind: "report.written" });
    server.happens(7, "Alarm", { data: { noted_at: "2026-11-20T14:00:00.000Z" } });
    step("Conversation archived");
    // Without another event.
    await prints("Conversation archived");
    interrupt();
    const { stdout } = await finished;
    expect(stdout.split("\n").map((line) => line.split("  ").slice(2).join("  "))).toEqual([
      "dana@example.com  Incident reported: Checkout is down",
      "dana@example.com  Bob joined",
      "system  Conversation members updated (2 times); Group members updated",
      "dana@example.com  says: Who can help?",
      "dana@example.com  Status report: Conditions: Down Needs: Disks",
      "dana@example.com  (backdated, written 2026-11-20T14:00:00.000Z) Alarm",
      "system  Conversation archived",
      "",
    ]);
  });

  test("begins with ten lines, whatever happened by itself since", async () => {
    for (let count = 0; count < 12; count += 1) server.happens(7, `Note ${count}`);
    for (let count = 0; count < 50; count += 1)
      server.happens(7, "Conversation members updated", { actor: "system", kind: "step.done" });
    const { interrupt, finished, prints } = watchHere("INC-7");
    await prints("(50 times)");
    interrupt();
    const { stdout } = await finished;
    expect([...stdout.matchAll(/Note \d+/g)].map(String)).toEqual(
      Array.from({ length: 9 }, (_, at) => `Note ${at + 3}`),
    );
  });

  test("--json prints each event as the API has it, with the name of its incident", async () => {
    const { finished } = watchHere("7", "--json", "--until", "stable");
    await server.requested(1);
    server.happens(7, "Note: two\nlines");
    server.happens(7, "Stable", { kind: "incident.stable" });
    const { code, stdout, stderr } = await finished;
    expect([code, stderr]).toEqual([0, ""]);
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events).toEqual(server.events.get(7)!.map((event) => ({ incident: "INC-7", ...event })));
  });

  test("continues after the last event when the server is killed and starts again", async () => {
    const { finished, prints, says } = watchHere("INC-7", "--until", "closed");
    await server.requested(1);
    server.happens(7, "Note: before");
    await prints("Note: before");
    await server.kill();
    await says("reconnecting");
    server.restart();
    await server.requested(2);
    await says("connected again");
    expect(server.streams[1]).toEqual({ path: "/incidents/7/stream", after: "2" });
    // The server repeats one: it is not shown again.
    server.event(server.events.get(7)![1]!);
    server.happens(7, "Closed", { kind: "incident.closed" });
    const { code, stdout, stderr } = await finished;
    expect(code).toBe(0);
    expect(stdout.match(/Note: before/g)).toHaveLength(1);
    expect(stderr).toMatch(/^svc: .*; reconnecting\nsvc: connected again\n$/);
  });

  test("continues when the server fails just after the first events", async () => {
    const detail = server.answers.get("/incidents/7")!;
    let asked = 0;
    server.answers.set("/incidents/7", (request) =>
      ++asked === 1 ? detail(request) : Response.json({ detail: "Later" }, { status: 503 }),
    );
    const { finished } = watchHere("7", "--until", "closed");
    await server.requested(1);
    expect(asked).toBe(2);
    server.happens(7, "Closed", { kind: "incident.closed" });
    expect(await finished).toMatchObject({ code: 0, stderr: "" });
  });

  test("shows events with smaller ids after a backup was restored", async () => {
    for (let count = 0; count < 5; count += 1) server.happens(7, "Note: lost");
    const { finished } = watchHere("INC-7", "--until", "closed", "--json");
    await server.requested(1);
    // The server says where the client stands: there is no event after 3.
    server.send("retry: 1000\nid: 3\n\n");
    server.event({ ...server.events.get(7)![0]!, id: 4, kind: "incident.closed" });
    const { stdout } = await finished;
    const ids = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).id);
    expect(ids).toEqual([1, 2, 3, 4, 5, 6, 4]);
  });

  test.each([
    [401, 4, /does not accept the token in SVC_TOKEN; set a new one/],
    [403, 1, /No/],
    [404, 1, /INC-7 is no longer visible to you/],
  ] as const)("ends when the server answers %i", async (status, exitCode, reason) => {
    const { finished } = watchHere("INC-7");
    await server.requested(1);
    server.answers.set("stream", () => Response.json({ detail: "No" }, { status }));
    server.end();
    const { code, stderr } = await finished;
    expect(code).toBe(exitCode);
    expect(stderr).toMatch(reason);
  });

  describe("when the token ends", () => {
    const [old, fresh] = [fakeToken({ seconds: 1000 }), fakeToken({ seconds: 3600 })];
    const signIn = (token: string, user = "alice@example.com") => {
      const expires_at = new Date(Date.now() + 3_600_000).toISOString();
      updateCredentials(env, (all) =>
        withEntry(all, server.url, { user, storage: "file", token, expires_at }),
      );
    };
    /** The server accepts the old token no longer. */
    const endOldToken = () => {
      const detail = server.answers.get("/incidents/7")!;
      const refused = ({ headers }: Request) =>
        headers.get("authorization") === `Bearer ${old}`
          ? Response.json({ detail: "No" }, { status: 401 })
          : undefined;
      server.answers.set("stream", refused);
      server.answers.set("/incidents/7", (request) => refused(request) ?? detail(request));
      server.end();
    };
    beforeEach(() => {
      delete env.SVC_TOKEN;
      signIn(old);
    });

    test("it goes on if the user has signed in again in another terminal", async () => {
      const { finished } = watchHere("7", "--until", "closed");
      await server.requested(1);
      signIn(fresh);
      endOldToken();
      await server.requested(3);
      server.happens(7, "Closed", { kind: "incident.closed" });
      const { code, stdout } = await finished;
      expect(code).toBe(0);
      expect(stdout).toContain("Closed");
    });

    test("it ends if somebody else has signed in", async () => {
      const { finished } = watchHere("7");
      await server.requested(1);
      signIn(fresh, "bob@example.com");
      endOldToken();
      expect(await finished).toMatchObject({ code: 4 });
    });
  });

  describe("when the token expires", () => {
    /** A token that ends in so many seconds, by the clock of the test. */
    const seconds = 1200;
    let now: number;
    let home: string;
    beforeEach(() => {
      now = Date.now();
      home = configHome();
      signIn(fakeToken({ seconds }), seconds);
    });
    const signIn = (token: string, left: number, user = "alice@example.com") => {
      const expires_at = new Date(now + left * 1000).toISOString();
      updateCredentials({ XDG_CONFIG_HOME: home }, (all) =>
        withEntry(all, server.url, { user, storage: "file", token, expires_at }),
      );
    };
    /** Answers 401 to every token until `fresh`. */
    const accept = (fresh: string) => {
      const detail = server.answers.get("/incidents/7")!;
      const refused = ({ headers }: Request) =>
        headers.get("authorization") === `Bearer ${fresh}`
          ? undefined
          : Response.json({ detail: "No" }, { status: 401 });
      server.answers.set("stream", refused);
      server.answers.set("/incidents/7", (request) => refused(request) ?? detail(request));
    };
    const start = (words: string[], sleep: Io["sleep"]) => {
      const io = testIo({
        clock: { now: () => new Date(now) },
        env: { XDG_CONFIG_HOME: home, SVC_SERVER: server.url },
        fetch: async (url, init) => {
          const response = await fetch(url, init);
          // The answer has the time of the test's clock.
          const headers = new Headers(response.headers);
          headers.set("date", new Date(now).toUTCString());
          return new Response(response.body, { status: response.status, headers });
        },
        sleep,
      });
      return { io, exit: run(["inc", "watch", ...words], io) };
    };

    test.each([
      ["one incident", ["7", "--until", "closed"]],
      ["JSON", ["7", "--until", "closed", "--json"]],
    ])(
      "it warns ten minutes before, says what to type, and goes on after a new sign-in: %s",
      async (_, words) => {
        const fresh = fakeToken({ seconds: 9000 });
        let looked = 0;
        const sleep = async (_: number, signal: AbortSignal) => {
          signal.throwIfAborted();
          await Bun.sleep(1);
          // The user signs in when they notice.
          if (io.out.stderr.includes("has expired") && ++looked === 3) {
            server.happens(7, "Note: in between");
            server.happens(7, "Closed", { kind: "incident.closed" });
            signIn(fresh, 9000);
          }
        };
        const { io, exit } = start(words, sleep);
        await server.requested(1);
        const says = (text: string) => until(text, () => io.out.stderr.includes(text) || undefined);
        now += (seconds - 601) * 1000;
        server.happens(7, "Note: before");
        await until("the note", () => io.out.stdout.includes("before") || undefined);
        expect(io.out.stderr).toBe("");
        now += 2000;
        await says("svc: signed out in 10m: svc login in another terminal\n");
        now += 600_000;
        accept(fresh);
        server.end();
        await says("svc: the sign-in has expired; to go on, sign in again: svc login in another terminal\n");
        expect(await exit).toBe(0);
        expect(looked).toBe(3);
        expect(io.out.stdout.match(/Note: in between/g)).toHaveLength(1);
        expect(io.out.stderr).toEndWith("svc: connected again\n");
        expect(io.out.stderr.match(/signed out in/g)).toHaveLength(1);
      },
    );

    test("the sign-in of somebody else does not count, and Ctrl-C ends the wait", async () => {
      let looked = 0;
      const fresh = fakeToken({ seconds: 9000 });
      const sleep = async (_: number, signal: AbortSignal) => {
        signal.throwIfAborted();
        await Bun.sleep(1);
        looked += 1;
        if (looked === 2) signIn(fresh, 9000, "bob@example.com");
        if (looked === 5) io.interrupt();
      };
      const { io, exit } = start(["7"], sleep);
      await server.requested(1);
      now += (seconds + 1) * 1000;
      accept(fresh);
      server.end();
      expect(await exit).toBe(130);
      expect(server.streams.length).toBeGreaterThan(1);
    });
  });

  test("--until ends at once if the incident is there already", async () => {
    server.incident(7, { status: "Closed" });
    expect(await watchHere("INC-7", "--until", "stable").finished).toMatchObject({ code: 0 });
  });

  test("--until shows all events up to the last one, also those of the first moment", async () => {
    const detail = server.answers.get("/incidents/7")!;
    let asked = 0;
    server.answers.set("/incidents/7", (request) => {
      asked += 1;
      if (asked !== 2) return detail(request);
      // Between the first events and the state.
      server.happens(7, "Note: last");
      server.happens(7, "Closed", { kind: "incident.closed" });
      server.incident(7, { status: "Closed" });
      return server.answers.get("/incidents/7")!(request);
    });
    const { code, stdout } = await watchHere("7", "--until", "closed").finished;
    expect(code).toBe(0);
    const texts = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split("  ")[3]);
    expect(texts).toEqual(["Incident reported: Checkout is down", "Note: last", "Closed"]);
  });

  test("--until needs an incident, and --since a time", async () => {
    expect(await watchHere("--until", "stable").finished).toMatchObject({ code: 2 });
    expect(await watchHere("INC-7", "--since", "tomorrow").finished).toMatchObject({ code: 2 });
    expect(await watchHere("INC-7", "--until", "open").finished).toMatchObject({ code: 2 });
  });

  test("--since begins with the events since then", async () => {
    const old = server.events.get(7)![0]!;
    old.at = new Date(Date.now() - 7_200_000).toISOString();
    // The server's clock is known to a second.
    server.happens(7, "Note: recent", { at: new Date(Date.now() - 60_000).toISOString() });
    server.incident(7, { status: "Stable" });
    const since = async (time: string) => {
      const { stdout } = await watchHere("INC-7", "--since", time, "--until", "stable").finished;
      return stdout.split("\n").length - 1;
    };
    expect([await since("1h"), await since("3h"), await since("now")]).toEqual([1, 2, 0]);
  });

  test.each([[["7"]], [["7", "--json"]], [[]]])("ends when nobody reads it any more: %p", async (words) => {
    const shell = Bun.spawn(
      ["bash", "-c", '"$@" | head -1', "sh", ...testProgram, "incident", "watch", ...words],
      { env: { PATH: process.env.PATH, ...env }, stdout: "pipe", stderr: "pipe" },
    );
    // Without another event: the next one may be hours away.
    await shell.exited;
    expect(await new Response(shell.stdout).text()).toContain("Checkout is down");
    expect(await new Response(shell.stderr).text()).toBe("");
  });

  test("a program that reads slowly gets every event once", async () => {
    const gate = join(env.XDG_CONFIG_HOME!, "gate");
    // Reads a line, and the others when the gate is open.
    const script = `"$@" | { read -r line; echo "$line"; until [ -e '${gate}' ]; do sleep 0.05; done; cat; }`;
    const words = ["incident", "watch", "7", "--json", "--until", "closed"];
    const reader = Bun.spawn(["bash", "-c", script, "sh", ...testProgram, ...words], {
      env: { PATH: process.env.PATH, ...env },
      stdout: "pipe",
    });
    await server.requested(1);
    // More than the pipe holds.
    for (let count = 0; count < 120; count += 1) server.happens(7, `${count} ${"x".repeat(9000)}`);
    server.happens(7, "Closed", { kind: "incident.closed" });
    writeFileSync(gate, "");
    const ids = (await new Response(reader.stdout).text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).id);
    expect(ids).toEqual(server.events.get(7)!.map(({ id }) => id));
  });

  test("without ID shows an event once, also when two reads of its incident overlap", async () => {
    const { interrupt, finished, prints } = watchHere("--json");
    await prints("Checkout is down");
    const events = server.answers.get("/incidents/7/events/")!;
    const held = Promise.withResolvers<void>();
    const reading = Promise.withResolvers<void>();
    server.answers.set("/incidents/7/events/", async (request) => {
      reading.resolve();
      await held.promise;
      return events(request)!;
    });
    server.happens(7, "Note: once");
    await reading.promise;
    // The next connection reads the whole board: when it has read this one, it also reads the other.
    server.incident(8, { title: "Disk full" });
    server.happens(8, "Note: eight", { kind: "incident.reported" });
    server.end();
    await prints("Note: eight");
    held.resolve();
    server.happens(7, "Note: next");
    await prints("Note: next");
    interrupt();
    expect((await finished).stdout.match(/Note: once/g)).toHaveLength(1);
  });

  test("without ID shows an event once, also when it happens between two requests of a read", async () => {
    const { interrupt, finished, prints } = watchHere("--json");
    await prints("Checkout is down");
    const events = server.answers.get("/incidents/7/events/")!;
    server.answers.set("/incidents/7/events/", (request) => {
      const isSecond = new URL(request.url).searchParams.has("after");
      if (isSecond && !server.events.get(7)!.some(({ description }) => description === "Note: between"))
        server.happens(7, "Note: between", { id: 250 });
      return events(request);
    });
    // More than the first request of a read returns.
    const many = server.events.get(7)!;
    for (let id = 100; id < 100 + firstEvents; id += 1) many.push({ ...many[0]!, id, kind: "note" });
    server.happens(7, "Note: many", { id: 200 });
    await prints("Note: between");
    server.happens(7, "Note: last", { id: 300 });
    await prints("Note: last");
    interrupt();
    expect((await finished).stdout.match(/Note: between/g)).toHaveLength(1);
  });

  test("without ID prints the events of all incidents", async () => {
    server.incident(8, { title: "Disk full" });
    const { interrupt, finished, prints } = watchHere("--json");
    await prints("Checkout is down");
    server.happens(8, "Note: on eight");
    server.happens(7, "Note: on seven");
    server.incident(9, { title: "New" });
    server.happens(9, "Reported: New", { kind: "incident.reported" });
    for (const text of ["on eight", "on seven", "Reported: New"]) await prints(text);
    interrupt();
    const { stdout } = await finished;
    const seen = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
      .map(({ incident, description }) => `${incident} ${description}`);
    expect(seen.toSorted()).toEqual([
      "INC-7 Incident reported: Checkout is down",
      "INC-7 Note: on seven",
      "INC-8 Note: on eight",
      "INC-9 Reported: New",
    ]);
  });
});

describe("on a terminal", () => {
  test("the last minutes of a sign-in are shown", async () => {
    const more = { ...env, SVC_TOKEN: fakeToken({ seconds: 200 }) };
    const one = svcOnTerminal(["incident", "watch", "INC-7"], more);
    await one.shows(/signed out in 4m: svc login · INC-7 · /);
    const board = svcOnTerminal(["incident", "watch"], more);
    await board.shows(/1 open incident · signed out in 4m: svc login/);
    for (const terminal of [one, board]) {
      terminal.press("\x03");
      expect(await terminal.exitCode()).toBe(130);
    }
  });
});

test("a clock that is set days ahead while watching does not say that the sign-in has ended", () => {
  const textAfter = (minutes: number) =>
    endingText({ expiresAt: NOW } as Session, {
      clock: { now: () => new Date(NOW.getTime() + minutes * 60_000) },
    });
  expect([-11, -10, 0, 3 * 24 * 60].map(textAfter)).toEqual([
    undefined,
    "signed out in 10m: svc login",
    "signed out in a minute: svc login",
    undefined,
  ]);
});
