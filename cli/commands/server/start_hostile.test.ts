import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { frontEnd, secret } from "../../../tests/support/browser/front_end.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";
import { exchange, exchangePieces, statusesOf } from "../../../tests/support/http/raw_http.ts";
import { appFolder, type Started, startServing } from "../../../tests/support/http/serving.ts";
import "../../../tests/support/seed.ts";

const folder = appFolder();
const site = frontEnd();
let database: TestDatabase;
let own: Started;
let plain: Started;
beforeAll(async () => {
  database = await createTestDatabase();
  const env = {
    SVC_DATABASE_URL: database.url,
    SVC_OIDC_ISSUER: "http://127.0.0.1:1",
    STATIC_DIR: site.path,
    SVC_KEY_SECRET: "a-secret-for-tests-of-thirty-two-characters",
  };
  own = await startServing(folder.path, [], { app: "server/main:app", env });
  plain = await startServing(folder.path, []);
});
afterAll(async () => {
  await own[Symbol.asyncDispose]();
  await plain[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
  site[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const post = (headers: string, body: string) => `POST / HTTP/1.1\r\nHost: a\r\n${headers}\r\n${body}`;
const get = (headers = "", target = "/", version = "HTTP/1.1") =>
  `GET ${target} ${version}\r\nHost: a\r\n${headers}\r\n`;
const json = (headers: string, body: string) =>
  post(`Content-Type: application/json\r\nConnection: close\r\n${headers}`, body);
const chunked = (body: string) => post("Transfer-Encoding: chunked\r\n", body);
const many = (count: number) => Array.from({ length: count }, (_, at) => `X-${at}: a\r\n`).join("");

const header = fc
  .tuple(
    fc.constantFrom(
      "Content-Length",
      "Transfer-Encoding",
      "Connection",
      "Expect",
      "Range",
      "Host",
      "X\0",
      "",
    ),
    fc.constantFrom(": ", ": ", ":", " : ", ":\t", ":\r\n ", "\0:"),
    fc.constantFrom("5", "0", "-1", "1e9", "4294967296", "chunked", "close", "100-continue", "a", "\x0b"),
    fc.constantFrom("\r\n", "\r\n", "\r\n", "\n", "\r"),
  )
  .map((parts) => parts.join(""));
const noise = fc.oneof(
  fc.constantFrom("3\r\nabc\r\n", "0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\n", "-1\r\n", "3;\nabc", "abcde", "\0"),
  fc.constantFrom("a".repeat(17_000), "X: a\r\n".repeat(300)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => String.fromCharCode(...bytes)),
);
/** Usually valid, because one invalid part prevents the others from being checked. */
const mostly = (inOrder: readonly string[], not: readonly string[]) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...inOrder) },
    { weight: 1, arbitrary: fc.constantFrom(...not) },
  );
const orderly = fc.constantFrom(
  "Connection: close\r\n",
  "Range: bytes=0-1\r\n",
  "Accept: text/html\r\n",
  "Expect: 100-continue\r\n",
  "Content-Length: 5\r\n",
  "Content-Type: application/json\r\n",
  "Transfer-Encoding: chunked\r\n",
);
/** A request in which each part may be valid or not. */
const hostile = fc
  .tuple(
    mostly(["GET", "GET", "POST", "HEAD", "PUT", "OPTIONS"], ["CONNECT", "PRI", "get", ""]),
    mostly([" /healthcheck", " /", " //", " /../..", " /%00"], [" *", " http://b/x", " "]),
    mostly([" HTTP/1.1\r\n"], [" HTTP/1.0\r\n", " HTTP/2.0\r\n", " HTTP/1.1\n", "\r\n"]),
    mostly(["Host: a\r\n"], ["Host: a, b\r\n", "Host: \xff\r\n", ""]),
    fc
      .array(fc.oneof({ weight: 5, arbitrary: orderly }, { weight: 1, arbitrary: header }), { maxLength: 3 })
      .map((lines) => lines.join("")),
    mostly(["\r\n"], ["\n", ""]),
    fc.array(noise, { maxLength: 2 }).map((parts) => parts.join("")),
  )
  .map((parts) => parts.join(""));

describe("an ambiguous request is refused, and nothing after it is read", () => {
  test.each<[string, number, string]>([
    ["length and chunks", 400, post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n")],
    ["chunks and length", 400, post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n")],
    ["two lengths", 400, post("Content-Length: 5\r\nContent-Length: 0\r\n", "abcde")],
    ["the same length twice", 400, post("Content-Length: 5\r\nContent-Length: 5\r\n", "abcde")],
    ["a list of lengths", 400, post("Content-Length: 5, 5\r\n", "abcde")],
    ["a length with a sign", 400, post("Content-Length: +5\r\n", "abcde")],
    ["a length below nothing", 400, post("Content-Length: -1\r\n", "")],
    ["a length in hexadecimal", 400, post("Content-Length: 0x5\r\n", "abcde")],
    ["a length beyond all numbers", 400, post("Content-Length: 99999999999999999999999\r\n", "")],
    ["another coding", 400, post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")],
    ["chunks that are not last", 400, post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n")],
    ["two codings", 400, post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", "0\r\n\r\n")],
    ["a space before the colon", 400, post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n")],
    ["a folded line", 400, post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n")],
    ["a folded header", 400, get("X: a\r\n b\r\n")],
    ["a bare LF", 400, get("X: a\nY: b\r\n")],
    ["a bare CR", 400, get("X: a\rY: b\r\n")],
    ["NUL in a header", 400, get("X: a\0b\r\n")],
    ["a header without a name", 400, get(": a\r\n")],
    ["a header without a colon", 400, get("abc\r\n")],
    ["bare LFs alone", 505, "GET / HTTP/1.1\nHost: a\n\n"],
    ["NUL in the path", 505, get("", "/a\0b")],
    ["chunks of LF", 400, chunked("3\nabc\n0\n\n")],
    ["a chunk in C", 400, chunked("0x3\r\nabc\r\n0\r\n\r\n")],
    ["a chunk below nothing", 400, chunked("-3\r\nabc\r\n0\r\n\r\n")],
    ["a chunk beyond all numbers", 400, chunked("FFFFFFFFFFFFFFFFF\r\nabc")],
    ["a chunk that goes on", 400, chunked("3\r\nabcXX0\r\n\r\n")],
    ["an extension with LF", 400, chunked("3;a\nabc\r\n0\r\n\r\n")],
    ["no Host", 400, "GET / HTTP/1.1\r\n\r\n"],
    ["HTTP/0.9", 505, "GET /\r\n"],
    ["HTTP/2.0", 505, get("", "/", "HTTP/2.0")],
    ["the preface of HTTP/2", 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["a hello of TLS", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["more headers than fit", 431, get(many(300))],
    ["a header that does not fit", 431, get(`X: ${"a".repeat(20_000)}\r\n`)],
    ["a path that does not fit", 431, get("", `/${"a".repeat(20_000)}`)],
  ])("%s: %d", async (_, status, bytes) => {
    const answer = await exchange(plain.port, bytes + smuggled);
    expect(statusesOf(answer)).toEqual([status]);
    expect(answer).not.toContain("smuggled");
    expect((await plain.fetch("/")).status).toBe(200);
  });

  test("an unknown method closes the connection", async () => {
    expect(await exchange(plain.port, `BREW / HTTP/1.1\r\nHost: a\r\n\r\n${smuggled}`)).toBe("");
  });

  test("valid requests get one response each", async () => {
    // Guards the test itself: a server that refuses everything would pass the lines above.
    const answer = await exchange(plain.port, `${post("Content-Length: 2\r\n", "ab")}${get()}${smuggled}`);
    expect(statusesOf(answer)).toEqual([200, 200, 200]);
    expect(answer).toContain('"pathname":"/smuggled"');
  });
});

describe("a chunked request gets one answer, which closes the connection, whatever follows", () => {
  const head = "Transfer-Encoding: chunked\r\n";
  const trailer = ["0\r\n", "X-Trailer: a\r\n", "\r\n"];

  test("a valid one is answered, and the connection is closed", async () => {
    const answer = await exchange(plain.port, chunked("3;a=b\r\nabc\r\n0\r\n\r\n"));
    expect(statusesOf(answer)).toEqual([200]);
    expect(answer).toContain("Connection: close");
    expect(answer).toContain('"length":3');
  });

  // `/elsewhere` is answered before any of the body has arrived, and `/read` needs all of it.
  describe.each(["POST /elsewhere", "POST /read", "GET /elsewhere"])("%s", (line) => {
    const request = `${line} HTTP/1.1\r\nHost: a\r\n${head}\r\n`;
    test.each([
      ["a trailer", [request, "3\r\nabc\r\n", ...trailer]],
      ["a trailer, in one packet", [[request, "3\r\nabc\r\n", ...trailer].join("")]],
      ["a trailer, behind the last chunk", [`${request}3\r\nabc\r\n0\r\n`, "X-Trailer: a\r\n\r\n"]],
      ["a broken chunk", [request, "3\r\nabc\r\n", "zz\r\n"]],
      ["another request", [request, "0\r\n\r\n", smuggled]],
      [
        "more than a megabyte",
        [request, `100000\r\n${"a".repeat(0x10_0000)}\r\n10\r\n`, `${"a".repeat(16)}\r\n0\r\n\r\n`],
      ],
    ])("%s", async (_, pieces) => {
      const answer = await exchangePieces(plain.port, pieces);
      expect(statusesOf(answer)).toHaveLength(1);
      expect(answer).toMatch(/^connection: close\r$/im);
      expect(answer).not.toContain("smuggled");
    });
  });

  test("our own application: without a token, the body is not read", async () => {
    const request = `POST /incidents HTTP/1.1\r\nHost: a\r\n${head}\r\n`;
    for (const pieces of [
      [request, "3\r\nabc\r\n", ...trailer],
      [[request, "3\r\nabc\r\n", ...trailer].join("")],
    ])
      expect(statusesOf(await exchangePieces(own.port, pieces))).toHaveLength(1);
  });
});

describe("our own application", () => {
  const healthy = async () => expect((await own.fetch("/healthcheck")).status).toBe(200);

  test.each<[string, number, string]>([
    ["two Hosts", 400, "GET /healthcheck HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"],
    [
      "a Host that is none, and what follows it",
      400,
      `GET /healthcheck HTTP/1.1\r\nHost: a b\r\n\r\n${get("Connection: close\r\n", "/healthcheck")}`,
    ],
    ["HTTP/1.0 without a Host, as load balancers check", 200, "GET /healthcheck HTTP/1.0\r\n\r\n"],
    ["a body of another length", 413, json("Content-Length: 1048577\r\n", "")],
    ["a form of another length", 413, post("Content-Length: 99999999999\r\n", "")],
    ["a header that does not fit", 431, get(`X: ${"a".repeat(17_000)}\r\n`)],
    ["a path that does not fit", 431, get("", `/${"a".repeat(17_000)}`)],
    ["headers that do not fit", 431, get(many(150).replaceAll("a", "a".repeat(110)))],
    [
      "chunks that become too many, for a path that does not exist",
      400,
      json("Transfer-Encoding: chunked\r\n", `10000\r\n${"a".repeat(65_536)}\r\n`.repeat(93)),
    ],
    [
      "a body that claims to be compressed",
      400,
      json("Content-Encoding: gzip\r\nContent-Length: 3\r\n", "\x1f\x8b\x08"),
    ],
    ["a tunnel", 400, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"],
    ["a trace", 405, "TRACE /healthcheck HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Secret: b\r\n\r\n"],
  ])("%s: %d", async (_, status, bytes) => {
    const answer = await exchange(own.port, bytes.replace("POST / ", "POST /approve/1 "));
    expect(statusesOf(answer)).toEqual([status]);
    // Every refusal gives the reason, including that of a body that is too large.
    if (status >= 413) expect(answer).toMatch(/larger than/);
    expect(answer).not.toContain("X-Secret");
    await healthy();
  });

  test.each([
    // server/static/file_path.test.ts has every spelling of a path.
    "/../secret.txt",
    "/%2e%2e%2fsecret.txt",
    "/..\\secret.txt",
    "/%252e%252e/secret.txt",
    "/assets/..%2f..%2fsecret.txt",
    "/../secret.txt%00.js",
    "//../secret.txt",
    "/link.txt",
    "/up/secret.txt",
    "/beside/secret.txt",
    "/.env",
    "/.well-known/%2e%2e/.env",
    "//etc/passwd",
    "/proc/self/environ",
    "http://a/%2e%2e/secret.txt",
    "../secret.txt",
    "*",
    `/${site.path}/../secret.txt`,
    "/#/../secret.txt",
  ])("STATIC_DIR has no way out: %s", async (target) => {
    for (const headers of ["", "Accept: text/html\r\n", "Accept-Encoding: br, gzip\r\nRange: bytes=0-\r\n"]) {
      for (const method of ["GET", "HEAD", "POST"]) {
        const answer = await exchange(
          own.port,
          `${method} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`,
        );
        expect(answer).not.toContain(secret);
        expect(answer).not.toContain("root:");
        expect(answer).not.toContain("SVC_KEY_SECRET");
        expect(statusesOf(answer).filter((status) => status >= 500 && status !== 505)).toEqual([]);
      }
    }
  });

  test("serves a valid path", async () => {
    // Guards the list above: the folder is served.
    expect(await exchange(own.port, get("Connection: close\r\n", "/index.html"))).toContain(
      '<main id="app">',
    );
  });

  test("arbitrary bytes neither crash it nor get more answers than requests", async () => {
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { minLength: 1, maxLength: 4 }), async (pieces) => {
        const bytes = pieces.join("");
        const statuses = statusesOf(await exchange(own.port, bytes, 50));
        const requests = bytes.match(/HTTP\/1\.[01]/g)?.length ?? 0;
        // Input that is not a request may get one error.
        expect(statuses.length).toBeLessThanOrEqual(requests + 1);
        expect(statuses.filter((status) => status >= 500 && status !== 505)).toEqual([]);
        // Nothing is read after invalid input.
        const broken = statuses.findIndex((status) => [413, 431, 505].includes(status));
        expect(broken === -1 || broken === statuses.length - 1).toBe(true);
        for (const status of statuses) seen.add(status);
      }),
      { numRuns: 400 },
    );
    // Guards the test itself: some of the requests are valid.
    expect([200, 400, 404, 405].filter((status) => !seen.has(status))).toEqual([]);
    await healthy();
    const { code, stderr } = await own.end("SIGTERM");
    expect({ code, faults: stderr.split("\n").filter((line) => /"level":[56]0|rror:/.test(line)) }).toEqual({
      code: 0,
      faults: [],
    });
  }, 120_000);
});
