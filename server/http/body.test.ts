import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { TestBrowser } from "../../tests/support/browser/browser.ts";
import {
  newChallenge,
  signInToken,
  startTestServer,
  type TestServer,
} from "../../tests/support/http/server.ts";

let server: TestServer;
let authorization: string;
beforeAll(async () => {
  server = await startTestServer({ pluginDocument: "markdown" });
  authorization = `Bearer ${await signInToken(server)}`;
});
afterAll(() => server[Symbol.asyncDispose]());

async function post(body: BodyInit, type: string, path = "/documents/") {
  const headers = { authorization, "content-type": type };
  const response = await server.fetch(path, { method: "POST", headers, body });
  return { http: response.status, body: (await response.json()) as Record<string, unknown> };
}
const unread = {
  http: 400,
  body: { code: "invalid_input", detail: "The body does not match its Content-Type" },
};

const quoted = (inside: number[]) =>
  new Uint8Array([...Buffer.from('{"resource_type":"x","name":"'), ...inside, ...Buffer.from('"}')]);
test.each([
  ["a byte that is invalid in UTF-8", [0xff]],
  ["half a character", [0xc3]],
  ["a character in more bytes than it needs", [0xc0, 0xaf]],
  ["half a pair, as UTF-8", [0xed, 0xa0, 0x80]],
])("%s is refused, not replaced", async (_, bytes) => {
  expect(await post(quoted(bytes), "application/json")).toMatchObject(unread);
});

test("a byte order mark is skipped, and four-byte characters are kept", async () => {
  const { http, body } = await post(
    `\ufeff{"resource_type":"x","name":"\u{1f469}\u200d\u{1f680}"}`,
    "application/json",
  );
  expect([http, body.name]).toEqual([201, "\u{1f469}\u200d\u{1f680}"]);
});

test.each(["gzip", "br", "identity", "unknown"])(
  "a body with Content-Encoding: %s is refused",
  async (coding) => {
    const body = '{"resource_type":"x","name":"x"}';
    const headers = { authorization, "content-type": "application/json", "content-encoding": coding };
    const response = await server.fetch("/documents/", { method: "POST", headers, body });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: "invalid_input", field: "Content-Encoding" });
  },
);

const part = (name: string, text: string) =>
  `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;
const parts = (...pairs: [string, string][]) =>
  `${[["name", "x"], ["resource_type", "x"], ...pairs].map(([name, text]) => part(name!, text!)).join("")}--x--\r\n`;

test.each([
  ["with the fields of a document", parts()],
  ["whose text is JSON with a method", parts(["name", '{"toString":1}'])],
  ["whose names are a path to a method", parts(["name.toString", "1"])],
  ["whose name makes a long list", parts(["name[99999].a", "1"])],
])("a multipart form %s is not read", async (_, body) => {
  for (const type of ["multipart/form-data; boundary=x", "MULTIPART/form-data;boundary=x"])
    expect(await post(body, type)).toMatchObject({
      http: 415,
      body: { code: "unsupported_media_type" },
    });
});

test("a page does not read one, either", async () => {
  const browser = new TestBrowser();
  const { url } = await browser.open((await newChallenge(server)).challengeUrl);
  const response = await browser.request(url, {
    method: "POST",
    headers: { "content-type": "multipart/form-data; boundary=x", origin: server.url },
    body: parts(["csrf", '{"toString":1}']),
  });
  expect(response.status).toBe(400);
});

test("a body with more values or levels than any route accepts is refused before validation", async () => {
  const tooMany = "The body has more than 10,000 values";
  const tooDeep = "The body has more than 100 levels";
  const deep = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
  for (const [body, detail] of [
    [
      JSON.stringify({ resource_type: "a", name: "a", term_ids: Array(9997).fill(1) }),
      "The field term_ids has too many entries: at most 200",
    ],
    [JSON.stringify({ term_ids: Array(10_000).fill(1) }), tooMany],
    [JSON.stringify({ a: Array(100).fill(Array(100).fill(1)) }), tooMany],
    [JSON.stringify(Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`a${n}`, 1]))), tooMany],
    [deep(100), "The field name is missing"],
    [deep(101), tooDeep],
    [`{"a":${'{"a":'.repeat(100)}1${"}".repeat(101)}`, tooDeep],
    ['{"a":[{"__proto__":1}]}', "The body does not match its Content-Type"],
  ] as const)
    expect(await post(body, "application/json")).toMatchObject({ http: 400, body: { detail } });
});

describe("a text of 1,000,000 characters", () => {
  const texts: [string, string, (text: string) => string][] = [
    ["of one byte each", "a".repeat(1_000_000), JSON.stringify],
    ["of three bytes each", "\u20ac".repeat(1_000_000), JSON.stringify],
    ["of four bytes for two", "\u{1f680}".repeat(500_000), JSON.stringify],
    ["that are escaped", "\n".repeat(1_000_000), JSON.stringify],
    [
      "that are written as \\u",
      "\u20ac".repeat(1_000_000),
      (text) => `"${text.replaceAll("\u20ac", "\\u20ac")}"`,
    ],
  ];
  test.each(texts)("%s is stored", async (_, text, write) => {
    const { body } = await post('{"resource_type":"x","name":"x"}', "application/json");
    const path = `/documents/${body.id}/content`;
    const headers = { authorization, "content-type": "application/json" };
    const sent = `{"version":null,"text":${write(text)}}`;
    const put = await server.fetch(path, { method: "PUT", headers, body: sent });
    expect(put.status).toBe(200);
    const { text: kept } = (await (await server.fetch(path, { headers })).json()) as { text: string };
    expect(kept === text).toBe(true);
  });

  test("with one more character is refused", async () => {
    const { body } = await post('{"resource_type":"x","name":"x"}', "application/json");
    const headers = { authorization, "content-type": "application/json" };
    const sent = JSON.stringify({ version: null, text: "a".repeat(1_000_001) });
    const path = `/documents/${body.id}/content`;
    expect((await server.fetch(path, { method: "PUT", headers, body: sent })).status).toBe(400);
  });

  test.each([
    ["a list", "[".repeat(2_000_000)],
    ["numbers", `[${"0,".repeat(1_000_000)}0]`],
    ["a deep field", `{"version":null,"text":"a","more":${"[".repeat(600_000)}${"]".repeat(600_000)}}`],
    ["many fields", `{${Array.from({ length: 200_000 }, (_, i) => `"f${i}":1`).join(",")}}`],
  ])("%s of as many bytes is refused", async (_, body) => {
    const headers = { authorization, "content-type": "application/json" };
    const answer = await server.fetch("/documents/1/content", { method: "PUT", headers, body });
    expect(answer.status).toBe(400);
  });
});

test("any other body of more than 1 MiB is refused, also in chunks", async () => {
  const sent = JSON.stringify({ resource_type: "x", name: "x", description: "a".repeat(1024 * 1024) });
  const refused = { http: 413, body: { code: "body_too_large", detail: "The body is larger than 1 MiB" } };
  expect(await post(sent, "application/json")).toMatchObject(refused);
  expect(await post(new Blob([sent]).stream(), "application/json")).toMatchObject(refused);
});
