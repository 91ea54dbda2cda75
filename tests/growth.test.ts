import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { startIdp } from "../trial/idp/main.ts";
import { clicked, TestBrowser } from "./support/browser/browser.ts";
import { type Person, personOf } from "./support/http/people.ts";
import { newChallenge, startTestServer, type TestServer } from "./support/http/server.ts";
import { processorMilliseconds } from "./support/process/processor_time.ts";

// No request may take processor time that grows faster than its size: one small request of a stranger would stop the
// server. Every route and every header gets inputs that are hard to parse, of 1x, 4x and 16x the size up to the limit.

/** Times below this are too short to compare. */
const leastMilliseconds = 15;
/** Four times the input takes four times as long; quadratic work takes sixteen times as long. */
const mostGrowth = 9;
/** A busy machine only adds time, so the least of several rounds counts. */
const mostRounds = 6;
/** No request may take this long, whatever its size. */
const hopelessMilliseconds = 2000;

const largestHead = 14_000;
const largestBody = 1024 * 1024 - 1000;

let server: TestServer;
/** Where everything that a proxy may send is trusted. */
let proxied: TestServer;
let admin: Person;
let behindProxy: Person;
let idp: { issuer: string; stop(): Promise<void> };
beforeAll(async () => {
  const mtlsUrl = "https://svc.example.com:8443";
  const settings = { pluginDocument: "markdown", staticDir: "docs", mtlsUrl };
  server = await startTestServer(settings);
  proxied = await server.another({
    proxyHeaders: true,
    trustedProxies: "127.0.0.1,10.0.0.0/8",
    mtlsProxyHeader: "client-cert",
  });
  admin = await personOf(server, "root@example.com", ["admin"]);
  behindProxy = await personOf(proxied, "root@example.com", ["admin"]);
  const trial = { host: "127.0.0.1", port: 0, publicUrl: server.url, clientSecret: "secret", log() {} };
  idp = await startIdp(trial);
});
afterAll(async () => {
  await idp.stop();
  await proxied[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

type Send = (text: string) => Promise<unknown>;
interface Case {
  name: string;
  send: Send;
  make: (size: number) => string;
  largest: number;
}

/** Describes how the time grows with the input, if it grows faster than the input. */
async function excess({ send, make, largest }: Case): Promise<string | undefined> {
  const inputs = [16, 4, 1].map((part) => make(Math.floor(largest / part)));
  const times = inputs.map(() => Number.POSITIVE_INFINITY);
  const measure = async (at: number) => {
    const before = process.cpuUsage();
    await send(inputs[at]!);
    times[at] = Math.min(times[at]!, processorMilliseconds(before));
  };
  const isInProportion = () =>
    times.every((time, at) => {
      const smaller = times[at - 1] ?? time;
      return time < leastMilliseconds || time < mostGrowth * smaller;
    });
  for (let round = 0; round < mostRounds; round += 1) {
    for (const at of times.keys()) {
      if (at === 1 && times[0]! < leastMilliseconds) continue;
      await measure(at);
      // Nobody waits for the next one.
      if (times[at]! > hopelessMilliseconds) return describe(times);
    }
    if (times[2]! < leastMilliseconds) return undefined;
    if (times[0]! < leastMilliseconds) await measure(1);
    if (isInProportion()) return undefined;
  }
  return describe(times);
}

const describe = (times: readonly number[]) => times.map((time) => `${time.toFixed(1)} ms`).join(", ");

async function excesses(cases: Iterable<Case>): Promise<string[]> {
  const found: string[] = [];
  for (const one of cases) {
    const times = await excess(one);
    if (times !== undefined) found.push(`${one.name}: ${times}`);
  }
  return found;
}

/** Texts of a size that parsers of headers, parameters and fields may take long for. */
const texts: Record<string, (size: number) => string> = {
  "inner white space": (size) => `a${" ".repeat(size)}b`,
  "white space after a semicolon": (size) => `a;${"\t".repeat(size)}b`,
  "white space after a comma": (size) => `wait,${" ".repeat(size)}b`,
  "white space before =": (size) => `wait${" ".repeat(size)}x`,
  commas: (size) => ",".repeat(size),
  "commas and spaces": (size) => `${", ".repeat(size / 2)}b`,
  "a list": (size) => "a,".repeat(size / 2),
  tags: (size) => '"a",'.repeat(size / 4),
  quotes: (size) => `${'"'.repeat(size)}x`,
  parameters: (size) => "a; ".repeat(size / 3),
  pairs: (size) => "a=".repeat(size / 2),
  "different pairs": (size) => numbered(size, (n) => `${n}=1; `),
  ranges: (size) => `bytes=${"1-1,".repeat(size / 4)}`,
  digits: (size) => `${"1".repeat(size)}x`,
  "a token": (size) => `Bearer ${"e30.".repeat(size / 4)}`,
  "white space before a token": (size) => `Bearer ${" ".repeat(size)}x`,
  addresses: (size) => "10.0.0.1, ".repeat(size / 10),
  brackets: (size) => `${"[".repeat(size)}]x`,
  "a certificate of white space": (size) => `-----BEGIN%20CERTIFICATE-----${"%20".repeat(size / 3)}x`,
  base64: (size) => `:${"A".repeat(size)}!`,
  dashes: (size) => `${"-a".repeat(size / 2)}!`,
  dots: (size) => `a${".a".repeat(size / 2)}!@a`,
  "an address": (size) => `a@${"a.".repeat(size / 2)}!`,
  slashes: (size) => "/".repeat(size),
  backticks: (size) => "`a``b".repeat(size / 5),
  asterisks: (size) => `**a ${"*".repeat(size)}`,
};

/** The headers that the server reads, from its source, and those that a setting names. */
function headersRead(): string[] {
  const names = [
    "client-cert",
    "client-cert-chain",
    "x-forwarded-assertion",
    "range",
    "if-range",
    "forwarded",
  ];
  for (const file of new Bun.Glob("{server,platform}/**/*.ts").scanSync(".")) {
    if (file.endsWith(".test.ts")) continue;
    for (const [, name] of readFileSync(file, "utf8").matchAll(/\b(?:get|has)\("([a-z][a-z-]+)"\)/g))
      names.push(name!);
  }
  // Those of the connection itself, which Bun or the proxy reads.
  const own = ["connection", "content-length", "transfer-encoding", "host"];
  return [...new Set(names)].filter((name) => !own.includes(name));
}

/** Different texts of a size, each written with a number. */
function numbered(size: number, write: (n: string) => string): string {
  const count = Math.floor(size / write("xxxx").length);
  return Array.from({ length: count }, (_, n) => write(n.toString(36).padStart(4, "x"))).join("");
}

const id = "00000000-0000-4000-8000-000000000000";
const addressOf = (path: string, value?: string) =>
  path.replaceAll(/(?<=\/):(\w+)/g, (_, name) => value ?? (name === "id" ? id : "1")).replace("*", "x");

/** Reads the whole answer, except for a stream. */
async function ended(answer: Promise<Response>): Promise<void> {
  const { body, headers } = await answer;
  if (headers.get("content-type")?.startsWith("text/event-stream")) await body?.cancel();
  else await new Response(body).arrayBuffer();
}

const get = (path: string, headers?: Record<string, string>) => ended(admin.open(path, headers));

test("each header takes time in proportion to its size", async () => {
  const names = headersRead();
  expect(names).toContain("accept-encoding");
  expect(names).toContain("if-none-match");
  const paths = [
    "/incidents/",
    "/incidents/stream",
    "/api.md",
    `/approve/${id}`,
    "/noauth/v1/challenge_poller/a",
  ];
  function* cases(): Generator<Case> {
    for (const path of paths)
      for (const header of names)
        for (const [kind, make] of Object.entries(texts)) {
          const send: Send = (text) => ended(behindProxy.open(path, { [header]: text }));
          yield { name: `${path}, ${header}: ${kind}`, send, make, largest: largestHead };
        }
  }
  expect(await excesses(cases())).toEqual([]);
}, 300_000);

const queries: Record<string, (size: number) => string> = {
  "the same parameter": (size) => "q=a&".repeat(size / 4),
  "different parameters": (size) => numbered(size, (n) => `${n}=1&`),
  "parameters without a name": (size) => "&=".repeat(size / 2),
  percents: (size) => `q=${"%".repeat(size)}`,
};
const parameters = ["q", "cursor", "after", "code_challenge", "state", "incident_id"];
const escaped = (text: string, size: number) => encodeURIComponent(text).slice(0, size).replace(/%.?$/, "");

test("each path and query takes time in proportion to its size", async () => {
  function* cases(): Generator<Case> {
    for (const { method, path } of server.app.routes) {
      if (method !== "GET") continue;
      const ask: Send = (query) => get(`${addressOf(path)}?${query}`);
      for (const [kind, make] of Object.entries(queries))
        yield { name: `${path}?${kind}`, send: ask, make, largest: largestHead };
      for (const [kind, text] of Object.entries(texts)) {
        const make = (size: number) =>
          parameters
            .map((name) => `${name}=${escaped(text(size / parameters.length), size / parameters.length)}`)
            .join("&");
        yield { name: `${path}?${kind}`, send: ask, make, largest: largestHead };
        if (path.includes("/:"))
          yield {
            name: `${path} with ${kind}`,
            send: (segment) => get(addressOf(path, segment)),
            make: (size) => escaped(text(size), size),
            largest: largestHead,
          };
      }
    }
  }
  expect(await excesses(cases())).toEqual([]);
}, 300_000);

/** The part of a schema that is needed to fill its fields. */
interface Field {
  type?: string;
  maxLength?: number;
  anyOf?: Field[];
  properties?: Record<string, Field>;
}

/** The names of the fields that may have this type. */
function fieldsOf(schema: Field | undefined, type: string): string[] {
  return Object.entries(schema?.properties ?? {})
    .filter(([, field]) => [field, ...(field.anyOf ?? [])].some((one) => one.type === type))
    .map(([name]) => name);
}

/** The most characters of a text. */
const longestOf = ({ maxLength, anyOf = [] }: Field): number =>
  maxLength ?? Math.min(...anyOf.map(longestOf), largestBody);

const json = "application/json";
const form = "application/x-www-form-urlencoded";
type Body = [kind: string, make: (size: number) => string];

const objects: Body[] = [
  ["fields", (size) => `{${numbered(size, (n) => `"${n}":1,`)}"a":1}`],
  ["fields in a field", (size) => `{"settings":{${numbered(size, (n) => `"${n}":1,`)}"a":1}}`],
  ["the same field", (size) => `{${'"a":1,'.repeat(size / 6)}"a":1}`],
  ["levels", (size) => `{"a":${"[".repeat(size / 2)}${"]".repeat(size / 2)}}`],
  ["levels of objects", (size) => `{"a":${'{"a":'.repeat(size / 6)}1${"}".repeat(size / 6)}}`],
];

/** Each field of the type as a list of items. */
const lists = (schema: Field | undefined): Body[] => {
  const names = [...fieldsOf(schema, "array"), "unknown"];
  return ["1", "{}", '"a"'].map((item) => [
    `lists of ${item}`,
    (size) => {
      const items = Array(Math.floor(size / names.length / (item.length + 1))).fill(item);
      return `{${names.map((name) => `"${name}":[${items}]`)}}`;
    },
  ]);
};

/** What is hard to parse or to normalize only in a field. */
const inFields: Record<string, (size: number) => string> = {
  "a certificate request of white space": (size) => `-----BEGIN CERTIFICATE REQUEST-----${" ".repeat(size)}!`,
  "a key of white space": (size) => `-----BEGIN PUBLIC KEY-----${" ".repeat(size)}!`,
  "combining marks": (size) => `a${"\u0301".repeat(size / 2)}${"\u0316".repeat(size / 2)}`,
};
for (const kind of ["inner white space", "digits", "dashes", "an address", "brackets"])
  inFields[kind] = texts[kind]!;

/** The fields that take a text, together, up to the longest text that the schema admits for any of them. */
function* written(schema: Field | undefined): Generator<[...Body, largest: number]> {
  const names = fieldsOf(schema, "string");
  if (names.length === 0) return;
  const longest = Math.max(...names.map((name) => longestOf(schema!.properties![name]!)));
  for (const [kind, write] of Object.entries(inFields)) {
    const make = (size: number) => {
      // Less than the limit, with what begins and ends it.
      const text = write(Math.max(size - 100, 1));
      return JSON.stringify(Object.fromEntries(names.map((name) => [name, text])));
    };
    yield [kind, make, Math.min(longest, Math.floor(largestBody / names.length / 3))];
  }
}

const forms: Body[] = [
  ["a form of many fields", (size) => numbered(size, (n) => `${n}=1&`)],
  ["a form of one field", (size) => "a=1&".repeat(size / 4)],
  ["a form of percents", (size) => `csrf=${"%".repeat(size)}`],
];

test("each body takes time in proportion to its size", async () => {
  function* cases(): Generator<Case> {
    for (const { method, path, hooks } of server.app.routes) {
      if (!["POST", "PUT", "PATCH", "DELETE"].includes(method) || path === "/tokens/current") continue;
      const schema = (hooks as { body?: Field }).body;
      const address = addressOf(path);
      const to = (
        type: string,
        bodies: [...Body, largest?: number][],
        send: (body: string, type: string) => Promise<unknown>,
      ) =>
        bodies.map(([kind, make, largest = largestBody]) => ({
          name: `${method} ${path}: ${kind}`,
          make,
          largest,
          send: (body: string) => send(body, type),
        }));
      const asAdmin = (body: string, type: string) =>
        admin.call(method, address, body, { "content-type": type });
      const asStranger = (body: string, type: string) =>
        ended(server.fetch(address, { method, body, headers: { "content-type": type } }));
      yield* to(json, [...objects.slice(0, 1), ...lists(schema), ...written(schema)], asAdmin);
      // A stranger's body is not read at all.
      yield* to(json, objects.slice(0, 1), asStranger);
      yield* to(form, forms, asStranger);
    }
  }
  expect(await excesses(cases())).toEqual([]);
}, 600_000);

test("a body with many values is refused before each of them is validated", async () => {
  const bodies = [...objects, ...lists({ properties: { term_ids: { type: "array" } } })];
  for (const [kind, make] of bodies) {
    const body = make(largestBody);
    let [parsing, answering] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    const isCheap = () => answering < 2.5 * parsing + leastMilliseconds;
    for (let round = 0; round < mostRounds && !isCheap(); round += 1) {
      const began = process.cpuUsage();
      JSON.parse(body);
      parsing = Math.min(parsing, processorMilliseconds(began));
      const asked = process.cpuUsage();
      const { http } = await admin.call("POST", "/definitions/", body);
      answering = Math.min(answering, processorMilliseconds(asked));
      expect([kind, http]).toEqual([kind, 400]);
    }
    expect([kind, isCheap(), parsing, answering]).toEqual([kind, true, parsing, answering]);
  }
});

test("the form of a browser that opened a challenge takes time in proportion to its size", async () => {
  const browser = new TestBrowser();
  const { url } = await browser.open((await newChallenge(server)).challengeUrl);
  const headers = { ...clicked, "content-type": form, origin: server.url };
  function* cases(): Generator<Case> {
    for (const path of ["", "/switch"])
      for (const [kind, make] of forms)
        for (const largest of [largestBody, 4000]) {
          const send: Send = (body) => ended(browser.request(url + path, { method: "POST", body, headers }));
          yield { name: `${path}: ${kind}`, send, make, largest };
        }
  }
  expect(await excesses(cases())).toEqual([]);
});

test("the largest text of a document takes time in proportion to its size", async () => {
  const { body } = await admin.call("POST", "/documents/", { resource_type: "notes", name: "a" });
  const path = `/documents/${body.id}/content`;
  function* cases(): Generator<Case> {
    for (const [kind, make] of Object.entries(texts).slice(0, 4))
      yield {
        name: kind,
        make,
        largest: 990_000,
        async send(text) {
          const { http } = await admin.call("PUT", path, { version: null, text });
          // The version is another one from the second time on.
          expect(http === 200 || http === 409).toBe(true);
        },
      };
    for (const [kind, make] of objects)
      yield { name: kind, make, largest: 5_000_000, send: (text) => admin.call("PUT", path, text) };
  }
  expect(await excesses(cases())).toEqual([]);
}, 120_000);

test("the sign-in provider of trials takes time in proportion to the size of a request", async () => {
  const known = "client_id=svc&response_type=code&scope=openid&";
  function* cases(): Generator<Case> {
    const all = { ...queries, ...texts };
    for (const [kind, make] of Object.entries(all)) {
      const url = (text: string) => `${idp.issuer}/auth?${known}${text}`;
      const encoded = (size: number) => (kind in queries ? make(size) : `nonce=${escaped(make(size), size)}`);
      yield { name: `GET: ${kind}`, send: (text) => ended(fetch(url(text))), make: encoded, largest: 14_000 };
      for (const path of ["/auth", "/token", "/me", "/sign-in/a"])
        yield {
          name: `POST ${path}: ${kind}`,
          send: (body) =>
            ended(
              fetch(idp.issuer + path, {
                method: "POST",
                body,
                headers: { "content-type": form, authorization: `Basic ${btoa("svc:secret")}` },
              }),
            ),
          make: encoded,
          largest: 56_000,
        };
      for (const header of ["cookie", "accept", "authorization", "origin", "forwarded"])
        yield {
          name: `${header}: ${kind}`,
          send: (text) => ended(fetch(url(""), { headers: { [header]: text } })),
          make,
          largest: 14_000,
        };
    }
  }
  expect(await excesses(cases())).toEqual([]);
}, 120_000);
