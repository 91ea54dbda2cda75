import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { sql } from "drizzle-orm";
import { openDatabase } from "../../drizzle/client.ts";
import { session } from "../../drizzle/schema/index.ts";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { createTestDatabase } from "../support/database/database.ts";
import { insertIncident } from "../support/domain/incident.ts";
import { startTestIssuer } from "../support/http/issuer.ts";
import { listen } from "../support/listen.ts";
import { Program } from "../support/process/program.ts";
import { listening } from "../support/process/stack.ts";
import { until } from "../support/process/until.ts";

/** A page that is open for a night, with a half-written note, while servers and sessions end (docs/web.md, "Live"). */

setDefaultTimeout(300_000);

/** The address of the service. It leads to a server, or to none. */
class Front {
  /** Undefined while there is no server. */
  target: number | undefined;
  /** Connections that led to no server. */
  refused = 0;
  port = 0;
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((client) => {
    if (this.target === undefined) {
      this.refused += 1;
      client.destroy();
      return;
    }
    const server = connect(this.target, "127.0.0.1");
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on("data", (data) => this.#sockets.has(socket) && other.write(data));
      socket.on("error", () => {}).on("close", () => this.#sockets.has(socket) && other.destroy());
    }
  });

  async listen(): Promise<void> {
    this.port = await listen(this.#server);
  }

  /** From now on, nothing passes on the connections that are open, and nobody hears of it. */
  forget(): void {
    this.#sockets.clear();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

const front = new Front();
const parts = new AsyncDisposableStack();
let tab: Tab;
let db: ReturnType<typeof openDatabase>["db"];
let id: number;
let startServer: () => Promise<{ program: Program; port: number }>;

beforeAll(async () => {
  const { url } = parts.use(await createTestDatabase());
  const client = parts.adopt(openDatabase(url, 2), ({ close }) => close());
  db = client.db;
  ({ incidentId: id } = await insertIncident(db, new Date()));
  for (let n = 1; n <= 60; n += 1) await note(`Note ${n} of the day`);
  const issuer = parts.adopt(await startTestIssuer(), (one) => one.stop());
  await front.listen();
  parts.defer(() => front.close());
  const directory = mkdtempSync(`${tmpdir()}/svc-night-`);
  parts.defer(() => rmSync(directory, { recursive: true, force: true }));
  const env = {
    PATH: process.env.PATH,
    HOME: directory,
    TZ: "UTC",
    SVC_DATABASE_URL: url,
    SVC_PUBLIC_URL: `http://127.0.0.1:${front.port}`,
    SVC_DOMAIN: "example.com",
    SVC_OIDC_ISSUER: issuer.url,
    SVC_OIDC_CLIENT_SECRET: "issuer-client-secret",
    SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
  };
  startServer = async () => {
    const args = ["server", "start", "server/main:app", "--port", "0"];
    const program = parts.use(new Program(args, { env, cwd: directory }));
    return { program, port: Number(new URL(await listening(program)).port) };
  };
});
afterAll(async () => {
  await closeChromium();
  await parts.disposeAsync();
});

/** As somebody in a terminal writes it. */
async function note(text: string): Promise<void> {
  await db.execute(sql`
    with told as (
      insert into event (incident_id, at, actor, source, kind, description)
      values (${id}, now(), 'dana@example.com', 'core', 'note', ${text}) returning id)
    select pg_notify('svc_event', ${`${id} `} || max(id)) from told`);
}

const word = () => tab.ask<string>("document.querySelector('.live').textContent");
const says = (text: string) => until(text, async () => (await word()) === text, 60);

/** What the reader has written, and has before them. */
const seen = () =>
  tab.ask<{ text: string; focus: string; caret: number; entry: string }>(`({
    text: document.querySelector("#text").value,
    focus: document.activeElement.id,
    caret: document.querySelector("#text").selectionStart,
    entry: document.elementFromPoint(400, 400).closest(".timeline > li").textContent.match(/Note \\d+/)[0],
  })`);

/** Waits until the page is right again. @returns the seconds that it took */
async function rightAgain(text: string): Promise<number> {
  const start = performance.now();
  await tab.says(text);
  await says("live");
  return (performance.now() - start) / 1000;
}

test("is right again after a restart, a rolling release, a sleep and the end of its session, and has kept everything", async () => {
  const first = await startServer();
  front.target = first.port;
  tab = await Tab.open();
  await tab.goto(`http://127.0.0.1:${front.port}/app/incidents/${id}`);
  await says("live");
  await tab.click("#text");
  await tab.type("Half a thought");
  await tab.ask("(document.querySelector('#text').setSelectionRange(4, 4), scrollTo(0, 900))");
  const before = await seen();
  expect(before).toMatchObject({ text: "Half a thought", focus: "text", caret: 4 });
  const took: Record<string, number> = {};

  // The server is killed, and away for longer than the page waits between two attempts.
  front.target = undefined;
  first.program.kill("SIGKILL");
  await says("not live");
  await note("While it was away");
  const { refused } = front;
  await until("many attempts", () => front.refused > refused + 20, 120);
  expect(await word()).toBe("not live");
  const second = await startServer();
  front.target = second.port;
  took.restart = await rightAgain("While it was away");
  expect(await seen()).toEqual(before);

  // Another server takes over, and the old one drains.
  const third = await startServer();
  front.target = third.port;
  second.program.kill("SIGTERM");
  expect(await second.program.exit(60)).toBe(0);
  await note("After the release");
  took.release = await rightAgain("After the release");
  expect(await seen()).toEqual(before);

  // The laptop sleeps: no connection survives, and nothing says so.
  front.forget();
  await note("While it slept");
  await tab.ask(`(() => { const now = Date.now; Date.now = () => now() + 3_600_000; })()`);
  took.sleep = await rightAgain("While it slept");
  expect(await seen()).toEqual(before);

  // The session ends; the user signs in in another tab, and sends the text.
  await db.delete(session);
  await says("signed out");
  await note("While signed out");
  expect(await tab.text()).not.toContain("While signed out");
  using other = await Tab.open();
  await other.goto(`http://127.0.0.1:${front.port}/app/sign_in?return=/app/signed_in`);
  await other.shows("You are signed in");
  took.session = await rightAgain("While signed out");
  expect(await seen()).toEqual(before);
  await tab.ask("document.querySelector('.say button').click()");
  await until("the note", async () => {
    const [{ count }] = (await db.execute(
      sql`select count(*)::int from event where description = 'Half a thought'`,
    )) as unknown as [{ count: number }];
    return count === 1;
  });
  await until("an empty field", () => tab.ask<boolean>("document.querySelector('#text').value === ''"));
  // A generous limit, for a busy machine; docs/web.md promises five seconds.
  for (const [what, seconds] of Object.entries(took)) expect([what, seconds < 60]).toEqual([what, true]);
});
