import { afterEach, beforeEach, expect, test } from "bun:test";
import { Forbidden, NotFound, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { type TestIo, testIo } from "../../tests/support/cli/io.ts";
import { SseServer } from "../../tests/support/cli/sse_server.ts";
import { Interrupted } from "../errors.ts";
import { follow, type News } from "./follow.ts";
import { parseServer } from "./server.ts";
import { readToken } from "./token.ts";

let server: SseServer;
let io: TestIo;
let stop: AbortController;

beforeEach(() => {
  server = new SseServer();
  io = testIo({ fetch: (url, init) => fetch(url, init) });
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await server.stop();
});

function start({ after, random = () => 0 }: { after?: string; random?: () => number } = {}) {
  const endpoint = parseServer(server.url, (fault) => new Error(fault));
  const token = readToken(fakeToken())!;
  const session = {
    server: endpoint,
    endpoint,
    token,
    expiresAt: token.expiresAt,
    user: "alice@example.com",
    source: "file" as const,
  };
  return follow({ io, session, path: "/incidents/7/stream", signal: stop.signal, random, after });
}

async function next(news: AsyncGenerator<News>): Promise<News> {
  const { done, value } = await news.next();
  if (done) throw new Error("the stream ended");
  return value;
}

/** The next message, over any number of connections. */
async function nextId(news: AsyncGenerator<News>): Promise<string> {
  for (;;) {
    const one = await next(news);
    if (one.type === "message") return one.message.id;
  }
}

async function opened(news: AsyncGenerator<News>): Promise<void> {
  while ((await next(news)).type !== "open");
}

test("resumes after the last message when the server ends the stream", async () => {
  const news = start();
  expect(await next(news)).toEqual({ type: "open" });
  server.event({ id: 5 });
  expect(await nextId(news)).toBe("5");
  server.end();
  expect(await next(news)).toEqual({
    type: "lost",
    reason: `${server.url} ended the connection`,
    delay: 500,
  });
  expect(await next(news)).toEqual({ type: "open" });
  expect(server.streams.map(({ after }) => after)).toEqual([null, "5"]);
  expect(io.slept).toEqual([500]);
});

test("resumes when the server is killed in the middle of a message, and starts again", async () => {
  const news = start({ after: "3" });
  expect(await next(news)).toEqual({ type: "open" });
  server.event({ id: 4 });
  expect(await nextId(news)).toBe("4");
  server.send("id: 5\nevent: event\nda");
  await server.kill();
  expect(await next(news)).toMatchObject({ type: "lost" });
  expect(await next(news)).toMatchObject({ type: "lost", reason: expect.stringContaining("refused") });
  server.restart();
  await opened(news);
  expect(server.streams.map(({ after }) => after)).toEqual(["3", "4"]);
});

test("waits as long as the server says, longer after each failure, with jitter", async () => {
  const news = start({ random: () => 1 });
  await next(news);
  server.send("retry: 2000\n\n");
  server.end();
  expect(await next(news)).toMatchObject({ type: "lost", delay: 3000 });
  server.answers.set("stream", () => Response.json({ detail: "draining" }, { status: 503 }));
  expect(await next(news)).toMatchObject({ type: "lost", reason: "draining", delay: 6000 });
  server.answers.set("stream", () => new Response("<html>", { status: 502 }));
  expect(await next(news)).toMatchObject({ type: "lost", delay: 12_000 });
  server.answers.set("stream", () => Response.json({}, { status: 429, headers: { "retry-after": "100" } }));
  expect(await next(news)).toMatchObject({ type: "lost", delay: 100_000 });
  server.answers.delete("stream");
  expect(await next(news)).toEqual({ type: "open" });
  server.event({ id: 1 });
  expect(await nextId(news)).toBe("1");
  server.end();
  // A connection that delivered something was a good one.
  expect(await next(news)).toMatchObject({ type: "lost", delay: 3000 });
});

test("waits longer after each failure also if the server says 0", async () => {
  const news = start({ random: () => 1 });
  await next(news);
  server.answers.set("stream", () => Response.json({}, { status: 503 }));
  server.send("retry: 0\n\n");
  server.end();
  for (const delay of [750, 1500, 3000]) expect(await next(news)).toMatchObject({ type: "lost", delay });
});

test("no wait grows beyond 45 s", async () => {
  const news = start({ random: () => 1 });
  await next(news);
  server.answers.set("stream", () => Response.json({}, { status: 503 }));
  server.send("retry: 600000\n\n");
  server.end();
  for (let count = 0; count < 40; count += 1) expect(await next(news)).toMatchObject({ delay: 45_000 });
});

test.each([
  [401, Unauthenticated],
  [403, Forbidden],
  [404, NotFound],
] as const)("ends for good when the server answers %i", async (status, kind) => {
  const news = start();
  await next(news);
  server.answers.set("stream", () => Response.json({ detail: "No" }, { status }));
  server.end();
  await next(news);
  expect(next(news)).rejects.toBeInstanceOf(kind);
});

test("a response that is not a stream is an error at first, and later a fault that may pass", async () => {
  server.answers.set("stream", () => new Response("<html>Welcome to our hotel</html>"));
  expect(next(start())).rejects.toBeInstanceOf(Unavailable);
  server.answers.set("stream", () => Response.json({ items: [] }));
  expect(next(start())).rejects.toThrow("not a stream");
  server.answers.set("stream", () => Response.redirect("https://hotel.example/", 302));
  expect(next(start())).rejects.toThrow("redirects");
  server.answers.delete("stream");
  const news = start();
  await next(news);
  server.answers.set("stream", () => Response.redirect("https://hotel.example/", 302));
  server.end();
  await next(news);
  expect(await next(news)).toMatchObject({ type: "lost", reason: expect.stringContaining("redirects") });
});

test("a connection without a heartbeat is abandoned, also after the machine slept", async () => {
  const news = start();
  await next(news);
  server.event({ id: 1 });
  await nextId(news);
  const silent = next(news);
  // The clock of a machine that wakes up is far ahead.
  await io.sleep(60_000, stop.signal);
  expect(await silent).toMatchObject({ type: "lost", reason: `${server.url} was silent` });
});

test("each connection says what time it is", async () => {
  const news = start();
  await opened(news);
  expect(Math.abs(io.clock.now().getTime() - Date.now())).toBeLessThan(60_000);
});

test("an endless message is an error", async () => {
  const news = start();
  await next(news);
  server.send(`data: ${"x".repeat(1_100_000)}`);
  expect(next(news)).rejects.toThrow("characters");
});

test("Ctrl-C ends it, during a connection and between two", async () => {
  const news = start();
  await next(news);
  const waiting = next(news);
  stop.abort();
  expect(waiting).rejects.toBeInstanceOf(Interrupted);
});
