import { afterAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { readConfig } from "../../core/config.ts";
import type { Context } from "../../core/context.ts";
import { callPlugin } from "../../core/plugin/call.ts";
import { choosePlugins } from "../../core/plugin/choose.ts";
import { createRegistry } from "../../core/plugin/registry.ts";
import type { IncidentFacts } from "../../core/plugin.ts";
import { noPlugins } from "../../tests/support/domain/plugins.ts";
import { keyOf, signedHeaders } from "./signature.ts";
import webhook from "./webhook.ts";

const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const received: { headers: Headers; body: string }[] = [];
let answer: () => Response = () => new Response();
const { promise: stopped, resolve: stop } = Promise.withResolvers<Response>();
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: async (request) => {
    const { pathname } = new URL(request.url);
    received.push({ headers: request.headers, body: await request.text() });
    return pathname === "/hangs" ? stopped : answer();
  },
});
afterAll(async () => {
  stop(new Response());
  await server.stop(true);
});

const registry = createRegistry([{ origin: "svc", exported: webhook }]);
const now = new Date("2026-01-02T03:04:05.678Z");
const silent = () => {};

async function open(more: Record<string, string> = {}) {
  const environment = {
    SVC_PLUGIN_CONVERSATION: "webhook",
    SVC_PLUGIN_WEBHOOK_URL: `http://127.0.0.1:${server.port}/hooks/hunter2`,
    SVC_PLUGIN_WEBHOOK_SECRET: secret,
    ...more,
  };
  const plugins = await choosePlugins(registry, readConfig({ ...noPlugins, ...environment }), environment, {
    fetch: (url, init) => fetch(url, init),
    context: {} as Context,
    clock: { now: () => now },
    log: { debug: silent, info: silent, warn: silent, error: silent },
  });
  return plugins.ofType("conversation")[0]!;
}

const ada = { id: 1, name: "Ada", email: "ada@example.com" };
const incident: IncidentFacts = {
  id: 7,
  name: "INC-7",
  title: "Payments are down",
  description: "All of them",
  status: "Active",
  visibility: "Open",
  type: { id: 1, name: "Outage" },
  priority: { id: 1, name: "High", rank: 3 },
  terms: [],
  reportedAt: "2026-01-02T03:00:00.000Z",
  weblink: "https://svc.example/incidents/7",
};
const message = { subject: "INC-7", text: "Commander: *Ada*" };
const place = { occurredAt: "2026-01-02T03:01:00.000Z", sequence: 17 };

describe("the signature", () => {
  test("matches the test vector of Standard Webhooks", () => {
    // From svix-webhooks, go/webhook_test.go, TestWebhookSign; standard-webhooks has the same.
    const headers = signedHeaders(keyOf("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), {
      id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
      at: new Date(1614265330_000),
      body: '{"test": 2432232314}',
    });
    expect(headers).toEqual({
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    });
  });

  test("covers id, time and body", () => {
    const sign = (id: string, at: number, body: string) =>
      signedHeaders(keyOf(secret), { id, at: new Date(at), body })["webhook-signature"];
    const all = [sign("a", 0, "x"), sign("b", 0, "x"), sign("a", 1000, "x"), sign("a", 0, "y")];
    expect(new Set(all).size).toBe(4);
  });

  for (const [name, bad] of [
    ["too short", `whsec_${Buffer.alloc(23).toString("base64")}`],
    ["too long", `whsec_${Buffer.alloc(65).toString("base64")}`],
    ["invalid Base64", `whsec_${"hunter2!".repeat(5)}`],
  ] as const) {
    test(`rejects a secret that is ${name}`, async () => {
      const opening = open({ SVC_PLUGIN_WEBHOOK_SECRET: bad });
      await expect(opening).rejects.toThrow("the secret is not whsec_ and 24 to 64 bytes in Base64");
      await expect(opening).rejects.not.toThrow(bad);
    });
  }
});

test("every method sends one signed message, with the same id when it is retried", async () => {
  const plugin = await open();
  const conversation = { incident, externalId: "C1" };
  received.length = 0;
  const outcomes = [
    await callPlugin(plugin, "create", { incident }, { key: "k1" }),
    await callPlugin(plugin, "send", { conversation, message, ...place }, { key: "k2" }),
    await callPlugin(plugin, "send", { conversation, message, ...place }, { key: "k2" }),
    await callPlugin(plugin, "direct", { person: ada, message, incident, ...place }, { key: "k3" }),
    await callPlugin(plugin, "add", { conversation, people: [ada] }, { key: "k4" }),
    await callPlugin(plugin, "archive", { conversation }, { key: "k5" }),
    await callPlugin(plugin, "reopen", { conversation }, { key: "k6" }),
    await callPlugin(plugin, "remove", { conversation, people: [ada] }, { key: "k7" }),
    await callPlugin(plugin, "restrict", { conversation, people: [ada] }, { key: "k8" }),
    await callPlugin(plugin, "edit", { conversation, message, original: "k2", ...place }, { key: "k9" }),
    await callPlugin(plugin, "withdraw", { conversation, original: "k2", ...place }, { key: "k10" }),
  ];
  expect(outcomes).toEqual([{ ok: true, value: {} }, ...Array(10).fill({ ok: true, value: undefined })]);
  const replaces = received[1]!.headers.get("webhook-id");
  const at = { occurred_at: place.occurredAt, sequence: place.sequence };
  const data: [string, { occurred_at?: string; incident: object; [name: string]: unknown }][] = [
    ["conversation.create", { incident, occurred_at: incident.reportedAt }],
    ["conversation.send", { incident, externalId: "C1", message, ...at }],
    ["conversation.send", { incident, externalId: "C1", message, ...at }],
    ["conversation.direct", { person: ada, message, incident, ...at }],
    ["conversation.add", { incident, externalId: "C1", people: [ada] }],
    ["conversation.archive", { incident, externalId: "C1" }],
    ["conversation.reopen", { incident, externalId: "C1" }],
    ["conversation.remove", { incident, externalId: "C1", people: [ada] }],
    ["conversation.restrict", { incident, externalId: "C1", people: [ada] }],
    ["conversation.edit", { incident, externalId: "C1", message, replaces, ...at }],
    ["conversation.withdraw", { incident, externalId: "C1", replaces, ...at }],
  ];
  expect(received.map(({ body }) => JSON.parse(body))).toEqual(
    // When it happened, and not when it was sent: that is in the header.
    data.map(([type, data]) => ({ type, timestamp: data.occurred_at ?? now.toISOString(), data })),
  );
  for (const { headers, body } of received) {
    const content = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
    const expected = createHmac("sha256", Buffer.alloc(32, 7)).update(content).digest("base64");
    expect(headers.get("webhook-signature")).toBe(`v1,${expected}`);
    expect(headers.get("webhook-timestamp")).toBe("1767323045");
    expect(headers.get("content-type")).toBe("application/json");
  }
  const ids = received.map(({ headers }) => headers.get("webhook-id"));
  expect(ids[1]).toBe(ids[2]!);
  expect(new Set(ids).size).toBe(10);
  expect(ids.join("")).not.toContain(".");
});

test("sends only the name of a Restricted incident, unless allowed to send more", async () => {
  const conversation = { incident: { ...incident, visibility: "Restricted" as const } };
  received.length = 0;
  await callPlugin(await open(), "send", { conversation, message, ...place });
  await callPlugin(await open(), "direct", {
    incident: conversation.incident,
    person: ada,
    message,
    ...place,
  });
  for (const { body } of received) {
    expect(JSON.parse(body).data).toEqual({
      incident: { id: 7, name: "INC-7", visibility: "Restricted", weblink: incident.weblink },
      occurred_at: place.occurredAt,
      sequence: 17,
      withheld: true,
    });
  }
  received.length = 0;
  await callPlugin(await open({ SVC_PLUGIN_WEBHOOK_RESTRICTED: "true" }), "send", { conversation, message });
  expect(received[0]!.body).toContain("Commander");
});

describe("the receiver's answer", () => {
  const create = async () => await callPlugin(await open(), "create", { incident });
  test("may name the conversation", async () => {
    answer = () => Response.json({ externalId: "C1", weblink: "https://chat.example/C1", ok: true });
    const value = { externalId: "C1", weblink: "https://chat.example/C1" };
    expect(await create()).toEqual({ ok: true, value });
  });

  const json = { headers: { "content-type": "application/json" } };
  const cases: [string, () => Response, string][] = [
    ["an error", () => new Response("hunter2", { status: 500 }), "webhook failed: the receiver answered 500"],
    ["a redirect", () => Response.redirect("/hooks/x", 307), "redirects (307), which is not followed"],
    ["invalid JSON", () => new Response("{hunter2", json), "the receiver's answer cannot be read"],
    [
      "too large",
      () => new Response(`"${"x".repeat(70_000)}"`, json),
      "the receiver's answer is larger than 64 KB",
    ],
    ["a number", () => Response.json(7), "webhook returned an invalid answer: the answer: Expected object"],
    [
      "an invalid link",
      () => Response.json({ weblink: "data:,x" }),
      /webhook returned an invalid answer: \/weblink/,
    ] as never,
  ];
  for (const [name, response, fault] of cases) {
    test(`must not be ${name}`, async () => {
      answer = response;
      const outcome = await create();
      expect(outcome).toMatchObject({ ok: false, detail: expect.stringMatching(fault) });
      expect(JSON.stringify(outcome)).not.toContain("hunter2");
    });
  }
});

describe("an endless answer is not read completely", () => {
  const type = { "content-type": "application/json" };
  const endless = (init: ResponseInit, piece: string) => {
    const ended = Promise.withResolvers<void>();
    const body = new ReadableStream({
      // Sent as fast as it is read; an empty piece sends nothing more.
      pull: (controller) => (piece === "" ? new Promise(() => {}) : controller.enqueue(Buffer.from(piece))),
      cancel: () => ended.resolve(),
    });
    answer = () => new Response(body, init);
    return ended.promise;
  };

  test.each([
    ["of a receiver that took it", 200, true],
    ["of one that refuses it", 500, false],
  ])("%s", async (_, status, ok) => {
    const cancelled = endless({ status }, "x".repeat(100_000));
    expect(await callPlugin(await open(), "send", { conversation: { incident }, message })).toMatchObject({
      ok,
    });
    await cancelled;
  });

  test.each([
    ["that is large", `"${"x".repeat(100_000)}`, 60_000, "the receiver's answer is larger than 64 KB"],
    ["that does not go on", "", 200, "did not answer within 0.2 s"],
  ])("%s", async (_, piece, timeoutMilliseconds, detail) => {
    const cancelled = endless({ headers: type }, piece);
    const outcome = await callPlugin(await open(), "create", { incident }, { timeoutMilliseconds });
    expect(outcome).toMatchObject({ ok: false, detail: expect.stringContaining(detail) });
    await cancelled;
  });
});

test("text that is not ASCII, or looks like a header, is sent and signed unchanged", async () => {
  received.length = 0;
  answer = () => new Response();
  const evil = { subject: "x\r\nwebhook-id: msg_1\r\n\r\n\u{1F600}\u2028", text: "\0 \u00e9" };
  const key = "a/b\r\nwebhook-signature: v1,x";
  const call = callPlugin(await open(), "send", { conversation: { incident }, message: evil }, { key });
  expect(await call).toMatchObject({ ok: true });
  const [{ headers, body }] = received as [(typeof received)[0]];
  expect(JSON.parse(body).data.message).toEqual(evil);
  expect(headers.get("webhook-id")).toMatch(/^msg_[0-9a-f]{32}$/);
  const signed = createHmac("sha256", Buffer.alloc(32, 7));
  signed.update(`${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`);
  expect(headers.get("webhook-signature")).toBe(`v1,${signed.digest("base64")}`);
});

test.each([
  [400, true],
  [401, false],
  [403, false],
  [404, false],
  [408, false],
  [409, false],
  [410, true],
  [413, true],
  [422, true],
  [423, false],
  [425, false],
  [429, false],
  [307, false],
  [500, false],
  [503, false],
])("an answer of %i is permanent: %p", async (status, permanent) => {
  answer = () => new Response("no", { status });
  const call = callPlugin(await open(), "send", { conversation: { incident }, message });
  expect(await call).toMatchObject({ ok: false, permanent });
});

test.each([
  [429, "120", 120],
  [503, "Fri, 02 Jan 2026 03:14:05 GMT", 599.322],
  [307, "120", 120],
  [503, "soon", undefined],
  [503, "", undefined],
  [413, "120", undefined],
] as const)(
  "an answer of %i with Retry-After: %s asks us to wait %p s",
  async (status, value, retryAfter) => {
    answer = () => new Response("no", { status, headers: { "retry-after": value } });
    const outcome = await callPlugin(await open(), "send", { conversation: { incident }, message });
    expect((outcome as { retryAfter?: number }).retryAfter).toBe(retryAfter);
  },
);

test("errors about an unreachable receiver do not contain its address", async () => {
  const call = async (url: string) =>
    await callPlugin(
      await open({ SVC_PLUGIN_WEBHOOK_URL: url }),
      "create",
      { incident },
      { timeoutMilliseconds: 200 },
    );
  expect(await call("http://127.0.0.1:1/hunter2")).toMatchObject({
    detail: "webhook failed: the receiver cannot be reached (ECONNREFUSED)",
  });
  expect(await call(`http://127.0.0.1:${server.port}/hangs`)).toMatchObject({ reason: "timeout" });
});
