import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../../core/populate/populate.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../drizzle/embedded.ts";
import { freePort } from "../../platform/free_port.ts";
import { openSpoiltWay, type SpoiltWay } from "../support/database/spoilt_way.ts";
import { itemsOf } from "../support/http/pages.ts";
import { type Person, personOf } from "../support/http/people.ts";
import { environmentOf, signInToken, startTestServer, type TestServer } from "../support/http/server.ts";
import { type Block, StreamClient } from "../support/http/stream.ts";
import { killPostgres } from "../support/process/processes.ts";
import { Program } from "../support/process/program.ts";
import { listening } from "../support/process/stack.ts";
import { within } from "../support/process/until.ts";

/** Streams of real servers, which are killed, stopped, replaced and cut off while others write (docs/stream.md). */

setDefaultTimeout(90_000);

/** This file's own, since one test kills it. What it has acknowledged survives that. */
let postgres: EmbeddedPostgres;
/** Never stops: others write through it. */
let writer: TestServer;
let alice: Person;
let token: string;
let home: string;
let database: SpoiltWay;
let path: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-stream-"));
  postgres = await startPostgres();
  const shared = process.env.SVC_TEST_DATABASE_URL;
  process.env.SVC_TEST_DATABASE_URL = postgres.url;
  writer = await startTestServer({ pluginDocument: "markdown" });
  if (shared === undefined) delete process.env.SVC_TEST_DATABASE_URL;
  else process.env.SVC_TEST_DATABASE_URL = shared;
  writer.clock.advance((Date.now() - writer.clock.now().getTime()) / 1000);
  await populate(writer.db, writer.clock);
  alice = await personOf(writer, "alice@example.com", ["admin"]);
  token = await signInToken(writer);
  database = await openSpoiltWay(writer.databaseUrl);
});
afterAll(async () => {
  database?.close();
  await writer?.[Symbol.asyncDispose]();
  await postgres?.stop();
  rmSync(home, { recursive: true });
});
beforeEach(async () => {
  path = await report("Checkout is down");
});

/** @returns the path of the new incident */
async function report(title: string): Promise<string> {
  const kind = { incident_type_id: 1, incident_priority_id: 1 };
  const fields = { title, description: "", visibility: "Open", ...kind };
  const { http, body, headers } = await alice.call("POST", "/incidents/", fields);
  expect([http, body]).toEqual([201, expect.anything()]);
  return headers.get("location")!;
}

const startPostgres = (port?: number) =>
  startEmbeddedPostgres({ directory: join(home, "postgres"), port, durable: true });

/** A server whose database may be cut off. */
async function startServer(port: number, ...options: string[]): Promise<Program> {
  const args = ["server", "start", "server/main:app", "--port", String(port), ...options];
  const server = new Program(args, {
    cwd: home,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      TZ: "UTC",
      ...environmentOf(writer),
      SVC_DATABASE_URL: database.url,
      SVC_PLUGIN_DOCUMENT: "markdown",
    },
  });
  await listening(server);
  return server;
}

/** Opens streams of the server on this port. */
function personAt(port: number, accessToken: string) {
  const authorization = `Bearer ${accessToken}`;
  const open = (at: string, headers?: Record<string, string>, signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}${at}`, { headers: { ...headers, authorization }, signal });
  return { ...alice, open, headers: { authorization } };
}

/** A client as the specification describes it: it reconnects with the last id until it has seen the last event. */
class Follower {
  readonly ids: number[] = [];
  readonly ends: Block[][] = [];
  #lastId = "";
  #retry = 100;
  connections = 0;
  refused = 0;

  constructor(private readonly base: () => string) {}

  async readTo(last: Promise<number>): Promise<number[]> {
    let wanted: number | undefined;
    void last.then((id) => {
      wanted = id;
    });
    while (wanted === undefined || this.ids.at(-1) !== wanted) {
      await this.#connect(() => wanted).catch(() => {
        this.refused += 1;
      });
      await Bun.sleep(Math.min(this.#retry, 200));
    }
    return this.ids;
  }

  async #connect(wanted: () => number | undefined): Promise<void> {
    const open = (_: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
      fetch(`${this.base()}${path}/stream${this.#lastId === "" ? "?after=0" : ""}`, {
        headers: { ...headers, authorization: `Bearer ${token}` },
        signal,
      });
    const lastEventId: Record<string, string> = this.#lastId === "" ? {} : { "last-event-id": this.#lastId };
    const stream = await StreamClient.open({ ...alice, open }, path, lastEventId);
    this.connections += 1;
    for (;;) {
      const block = await stream.next();
      if (block === undefined) return;
      if (block.retry !== undefined) this.#retry = Number(block.retry);
      if (block.id !== undefined) this.#lastId = block.id;
      if (block.data !== undefined) this.ids.push(JSON.parse(block.data).id);
      if (this.ids.at(-1) === wanted()) return stream.leave();
    }
  }
}

/** Writes notes, and calls `disturb` in the middle. @returns the id of the last one */
async function write(disturb: () => Promise<unknown>): Promise<number> {
  let last = 0;
  let isDisturbed = false;
  /** Again, if PostgreSQL was killed meanwhile. */
  const note = async (n: number) => {
    const { http, body } = await alice.call("POST", `${path}/events/`, { description: `Note ${n}` });
    if (http === 503 && isDisturbed) {
      await Bun.sleep(20);
      return note(n);
    }
    expect(http).toBe(201);
    last = body.id;
  };
  for (let n = 0; n < 60; n++) await note(n);
  isDisturbed = true;
  const disturbed = disturb();
  for (let n = 60; n < 160; n++) await note(n);
  await disturbed;
  for (let n = 160; n < 180; n++) await note(n);
  return last;
}

async function timeline(): Promise<number[]> {
  const events = await itemsOf(alice, `${path}/events/?limit=100&sort=id`);
  return events.map(({ id }) => id);
}

/** Three clients see every event once, in order, whatever happens in the middle. */
async function loseNothing(base: () => string, disturb: () => Promise<unknown>): Promise<Follower[]> {
  const followers = [1, 2, 3].map(() => new Follower(base));
  const last = write(disturb);
  const seen = followers.map((follower) => follower.readTo(last));
  await last;
  const all = await timeline();
  for (const ids of await within("the clients", Promise.all(seen), 60)) expect(ids).toEqual(all);
  return followers;
}

test("no event is lost or repeated when the server is killed and starts again", async () => {
  const port = await freePort();
  let server = await startServer(port);
  const followers = await loseNothing(
    () => `http://127.0.0.1:${port}`,
    async () => {
      server.kill("SIGKILL");
      await server.exit(30);
      server = await startServer(port);
    },
  );
  for (const { connections } of followers) expect(connections).toBeGreaterThan(1);
  server.kill("SIGTERM");
  expect(await server.exit(30)).toBe(0);
});

test("no event is lost or repeated when one server after the other is replaced", async () => {
  const ports = [await freePort(), await freePort()];
  const servers = await Promise.all(ports.map((port) => startServer(port, "--timeout-drain", "1")));
  let turn = 0;
  // A proxy that asks one server, and then the other.
  const followers = await loseNothing(
    () => `http://127.0.0.1:${ports[turn++ % 2]}`,
    async () => {
      for (const [i, port] of ports.entries()) {
        servers[i]!.kill("SIGTERM");
        expect(await servers[i]!.exit(30)).toBe(0);
        servers[i] = await startServer(port, "--timeout-drain", "1");
      }
    },
  );
  for (const { connections } of followers) expect(connections).toBeGreaterThan(1);
  for (const server of servers) server.kill("SIGTERM");
  for (const server of servers) expect(await server.exit(30)).toBe(0);
});

test("no event is lost or repeated when PostgreSQL is killed and starts again", async () => {
  const port = await freePort();
  await using _server = await startServer(port);
  await loseNothing(
    () => `http://127.0.0.1:${port}`,
    async () => {
      await Promise.all([postgres.exited, killPostgres()]);
      postgres = await startPostgres(postgres.port);
    },
  );
});

test("a server that stops ends its streams at once, and spreads its clients", async () => {
  const port = await freePort();
  const server = await startServer(port, "--timeout-drain", "0");
  const person = personAt(port, token);
  const streams = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      StreamClient.open(person, i % 2 ? "/incidents/stream" : `${path}/stream`),
    ),
  );
  server.kill("SIGTERM");
  const ends = await within("the streams to end", Promise.all(streams.map((stream) => stream.rest())), 10);
  const waits = ends.map((blocks) => Number(blocks.at(-1)!.retry));
  for (const wait of waits) expect(wait).toBeGreaterThanOrEqual(500);
  expect(new Set(waits).size).toBeGreaterThan(5);
  expect(await server.exit(15)).toBe(0);
});

test("a server shows new events at once by hints, and within seconds without", async () => {
  const port = await freePort();
  await using _server = await startServer(port);
  const person = personAt(port, token);
  const [one, all] = [
    await StreamClient.open(person, `${path}/stream`),
    await StreamClient.open(person, "/incidents/stream"),
  ];
  await report("Marker");
  await all.data();
  const took: number[] = [];
  for (const description of ["one", "two", "three"]) {
    const begun = performance.now();
    await alice.call("POST", `${path}/events/`, { description });
    await one.data();
    await all.data();
    took.push(performance.now() - begun);
  }
  // Without hints, each would be read five seconds after the one before it; with them, a busy machine may delay some.
  expect(Math.min(...took.slice(1))).toBeLessThan(2500);
  const id = Number(path.split("/").at(-1));
  // Without a hint.
  await writer.db.execute(`insert into event (incident_id, at, actor, source, kind, description)
    values (${id}, now(), 'system', 'core', 'note', 'unheard')`);
  const seen = (async () => {
    for (;;) if ((await one.data()).description === "unheard") return true;
  })();
  const told = (async () => {
    for (;;) if ((await all.data()).id === id) return true;
  })();
  expect(await within("the event", Promise.all([seen, told]), 8)).toEqual([true, true]);
  one.leave();
  all.leave();
});

test("streams continue after the server's connections to PostgreSQL have gone silent", async () => {
  const port = await freePort();
  await using _server = await startServer(port);
  const person = personAt(port, token);
  const leaving = personAt(port, await signInToken(writer));
  const [one, all, left] = [
    await StreamClient.open(person, `${path}/stream`),
    await StreamClient.open(person, "/incidents/stream"),
    await StreamClient.open(leaving, `${path}/stream`),
  ];
  // So that each connection of the pool is in use, however many there are.
  await Promise.all(Array.from({ length: 20 }, () => person.open(path).then((answer) => answer.text())));
  database.silence();
  const signOut = await fetch(`${writer.url}/tokens/current`, { method: "DELETE", headers: leaving.headers });
  expect(signOut.status).toBe(204);
  await alice.call("POST", `${path}/events/`, { description: "after the silence" });
  const id = Number(path.split("/").at(-1));
  const seen = async () => expect((await one.data()).description).toBe("after the silence");
  const told = async () => expect((await all.data()).id).toBe(id);
  // Well before TCP gives up, after a quarter of an hour.
  await within("the events and the end", Promise.all([seen(), told(), left.rest()]), 80);
  one.leave();
  all.leave();
});
