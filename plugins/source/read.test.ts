import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigurationError, Unavailable } from "../../platform/errors.ts";
import { parseLocations, readLocation } from "./read.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-source-"));
const seen: { path: string; authorization: string | null }[] = [];
const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();

/** An endless body, sent as fast as it is read. */
function endless(): ReadableStream {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024).fill(32)) });
}

const other = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });

async function answer(request: Request): Promise<Response> {
  const { pathname, origin } = new URL(request.url);
  seen.push({ path: pathname, authorization: request.headers.get("authorization") });
  const redirect = (location: string) => new Response(null, { status: 302, headers: { location } });
  if (pathname === "/good") return new Response("[]", { headers: { "content-type": "Text/CSV; charset=x" } });
  if (pathname === "/once") return redirect("/good");
  if (pathname === "/away") return redirect(`http://127.0.0.1:${other.port}/good`);
  if (pathname === "/loop") return redirect(`${origin}/loop`);
  if (pathname === "/file") return redirect(`file://${directory}/secret`);
  if (pathname === "/lost") return new Response(null, { status: 302 });
  if (pathname === "/error") return new Response("password hunter2", { status: 500 });
  if (pathname === "/large") return new Response("x".repeat(2000));
  if (pathname === "/endless") return new Response(endless());
  if (pathname === "/bomb") {
    const headers = { "content-encoding": "gzip" };
    return new Response(Bun.gzipSync(Buffer.alloc(1_000_000)), { headers });
  }
  if (pathname === "/latin1") return new Response(new Uint8Array([0x63, 0xe9]));
  if (pathname === "/slow") await stopped;
  return new Response(null, { status: 404 });
}

afterAll(async () => {
  stop();
  await Promise.all([server.stop(true), other.stop(true)]);
  rmSync(directory, { recursive: true });
});

const at = (path: string) => parseLocations(`http://127.0.0.1:${server.port}${path}`)[0]!;
const real = { fetch: (url: string, init?: RequestInit) => fetch(url, init) };
const read = (location: ReturnType<typeof at>, more = {}) =>
  readLocation(location, real, { signal: new AbortController().signal, bytes: 1000, ...more });

test("reads an address, through redirects", async () => {
  expect(await read(at("/good"))).toEqual({ text: "[]", mediaType: "text/csv" });
  expect(await read(at("/once"))).toMatchObject({ text: "[]" });
});

test("sends the token only to the configured server", async () => {
  seen.length = 0;
  await read(at("/once"), { bearerToken: "t" });
  await read(at("/away"), { bearerToken: "t" });
  expect(seen.map(({ authorization }) => authorization)).toEqual(["Bearer t", "Bearer t", "Bearer t", null]);
});

test("reads a file, without its byte order mark", async () => {
  const path = join(directory, "good");
  writeFileSync(path, "\uFEFFterm\n");
  expect(await read({ path })).toEqual({ text: "term\n" });
});

describe("fails with only the reason for", () => {
  const origin = () => `http://127.0.0.1:${server.port}`;
  const cases: [string, () => ReturnType<typeof at>, () => string][] = [
    ["an error", () => at("/error?token=hunter2"), () => `${origin()} answers 500`],
    ["nothing there", () => at("/nowhere"), () => `${origin()} answers 404`],
    ["a loop", () => at("/loop"), () => `${origin()} redirects more than 5 times`],
    ["a redirect to a file", () => at("/file"), () => `${origin()} redirects to a forbidden address`],
    ["a redirect to nowhere", () => at("/lost"), () => `${origin()} redirects to a forbidden address`],
    ["too large", () => at("/large"), () => `${origin()} is larger than 0.001 MB`],
    ["endless", () => at("/endless"), () => `${origin()} is larger than 0.001 MB`],
    ["too large when unpacked", () => at("/bomb"), () => `${origin()} is larger than 0.001 MB`],
    ["not UTF-8", () => at("/latin1"), () => `${origin()} is not UTF-8`],
    [
      "a closed port",
      () => parseLocations("http://127.0.0.1:1/")[0]!,
      () => "http://127.0.0.1:1 cannot be read (ECONNREFUSED)",
    ],
    ["no such file", () => ({ path: "/nowhere" }), () => "/nowhere cannot be read (ENOENT)"],
    ["a folder", () => ({ path: directory }), () => `${directory} is not a file`],
    ["a device", () => ({ path: "/dev/zero" }), () => "/dev/zero is not a file"],
  ];
  for (const [name, location, message] of cases) {
    test(name, async () => {
      const error = await read(location()).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(Unavailable);
      expect((error as Error).message).toBe(message());
    });
  }

  test("a link to a pipe without a writer", async () => {
    const pipe = join(directory, "pipe");
    expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
    symlinkSync(pipe, join(directory, "link"));
    await expect(read({ path: join(directory, "link") })).rejects.toThrow("is not a file");
  });

  test("a large file", async () => {
    const path = join(directory, "large");
    writeFileSync(path, "x".repeat(1001));
    await expect(read({ path })).rejects.toThrow(`${path} is larger than 0.001 MB`);
  });

  test("a server that does not answer in time", async () => {
    await expect(read(at("/slow"), { milliseconds: 20 })).rejects.toThrow("did not answer within 0.02 s");
  });

  test("an aborted call", async () => {
    const controller = new AbortController();
    const reading = read(at("/slow"), { signal: controller.signal });
    controller.abort();
    await expect(reading).rejects.toThrow("cannot be read (AbortError)");
  });

  test("a redirect from https to http", async () => {
    const down = async () => new Response(null, { status: 301, headers: { location: "http://a.example/" } });
    const reading = readLocation(
      parseLocations("https://a.example")[0]!,
      { fetch: down },
      {
        signal: new AbortController().signal,
      },
    );
    await expect(reading).rejects.toThrow("https://a.example redirects to a forbidden address");
  });
});

describe("rejects as a location", () => {
  for (const text of [
    "",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "ftp://example.com",
    "data:,x",
    "s3://bucket/x",
    "https://",
    "https://user:hunter2@example.com",
  ]) {
    test(`"${text}"`, () => {
      expect(() => parseLocations(text)).toThrow(ConfigurationError);
      expect(() => parseLocations(text)).not.toThrow("hunter2");
    });
  }

  test("several servers with one token", () => {
    const two = "https://a.example/x https://b.example/y";
    expect(parseLocations(two)).toHaveLength(2);
    expect(() => parseLocations(two, "t")).toThrow("all addresses are on one server");
    expect(parseLocations("./a.csv https://a.example/x C:\\b.csv", "t")).toHaveLength(3);
  });
});
