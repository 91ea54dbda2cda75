import { describe, expect, test } from "bun:test";
import type { Transaction } from "../../drizzle/client.ts";
import { Refused, Unavailable } from "../../platform/errors.ts";
import { type ActivePlugin, callPlugin } from "./call.ts";
import type { CallContext } from "./methods.ts";

const term = { externalId: "1", text: "term", definitions: [] };
type Call = CallContext & Record<string, unknown>;

function plugin(
  list: (call: Call) => unknown,
  more: Partial<ActivePlugin<"term">> = {},
): ActivePlugin<"term"> {
  return {
    slug: "fake",
    title: "Fake",
    type: "term",
    methods: { list: (call) => list(call as Call) },
    secrets: ["hunter2", "p@ss/word"],
    timeoutMilliseconds: 10_000,
    ...more,
  };
}

const member = { email: "ada@example.com", name: "Ada" };
/** The outcome for an answer whose items are validated. */
const members = (answer: unknown) =>
  callPlugin(
    { ...plugin(() => {}), type: "participant_group", methods: { members: () => answer } },
    "members",
    { group: {} } as never,
  );

test("a valid answer is returned without unknown properties", async () => {
  expect(await members([{ ...member, colour: "red" }])).toEqual({ ok: true, value: [member] });
});

test("a source's items are returned unchecked: the reader validates each one", async () => {
  const items = [term, { ...term, text: "a\0b" }, "hunter2"];
  expect(
    await callPlugin(
      plugin(() => items),
      "list",
      {},
    ),
  ).toEqual({ ok: true, value: items as never });
});

test("a call gets a signal, a key and its own copy of the facts", async () => {
  const person = { id: 1, name: "Ada", email: "ada@example.com" };
  const message = { subject: "s", text: "t" };
  let seen: Call | undefined;
  const chat: ActivePlugin<"conversation"> = {
    ...plugin(() => {}),
    type: "conversation",
    methods: {
      direct: (call) => {
        seen = call as Call;
        (seen.person as typeof person).name = "Eve";
        return "anything";
      },
    },
  };
  const outcome = await callPlugin(chat, "direct", { person, message }, { key: "k1" });
  expect(outcome).toEqual({ ok: true, value: undefined });
  expect(seen).toMatchObject({ key: "k1", message });
  expect(person.name).toBe("Ada");
  // The call is over, so its signal has aborted.
  expect(seen!.signal.aborted).toBe(true);
  expect(await callPlugin(chat, "archive", {} as never)).toMatchObject({ ok: false, reason: "missing" });
});

describe("a method that throws", () => {
  const cases: [string, unknown, string][] = [
    ["an error whose message is not shown", new TypeError("password is hunter2"), "fake failed: TypeError"],
    [
      "an error with a code",
      Object.assign(new Error("no"), { code: "ECONNREFUSED" }),
      "fake failed: Error, ECONNREFUSED",
    ],
    [
      "an error with a detail",
      { detail: "the glossary answers 500" },
      "fake failed: the glossary answers 500",
    ],
    [
      "a detail with secrets and escapes",
      { detail: "hunter2 at\n\x1b[31m p%40ss%2Fword, p@ss/word" },
      "fake failed: *** at \uFFFD[31m ***, ***",
    ],
    ["a name that is a secret", Object.assign(new Error(), { name: "hunter2" }), "fake failed: ***"],
    ["a string", "hunter2", "fake failed: string"],
    ["undefined", undefined, "fake failed: undefined"],
    [
      "an object that throws when inspected",
      new Proxy(
        {},
        {
          get: () => {
            throw new Error("hunter2");
          },
        },
      ),
      "fake failed: unknown",
    ],
  ];
  for (const [name, error, detail] of cases) {
    test(name, async () => {
      const thrown = await callPlugin(
        plugin(() => {
          throw error;
        }),
        "list",
        {},
      );
      expect(thrown).toMatchObject({ ok: false, reason: "failed", detail });
      const rejected = await callPlugin(
        plugin(() => Promise.reject(error)),
        "list",
        {},
      );
      expect(rejected).toMatchObject({ ok: false, reason: "failed", detail });
      expect(JSON.stringify([thrown, rejected])).not.toContain("hunter2");
    });
  }

  test("only an error with a detail can be permanent, never a library's error", async () => {
    const says = async (error: unknown) =>
      await callPlugin(
        plugin(() => {
          throw error;
        }),
        "list",
        {},
      );
    expect(await says(new Refused("no such list"))).toMatchObject({ permanent: true });
    expect(await says({ detail: "no such list", permanent: true })).toMatchObject({ permanent: true });
    for (const error of [
      new Unavailable("later"),
      Object.assign(new Error(), { permanent: true }),
      { detail: "later", permanent: "yes" },
      undefined,
    ])
      expect(await says(error)).toMatchObject({ ok: false, permanent: false });
  });

  test("only an error with a detail can name a time to wait", async () => {
    const says = async (error: unknown) => {
      const failing = plugin(() => {
        throw error;
      });
      return (await callPlugin(failing, "list", {})) as { retryAfter?: number };
    };
    expect((await says(new Unavailable("later", { retryAfter: 90 }))).retryAfter).toBe(90);
    for (const error of [
      Object.assign(new Error(), { retryAfter: 90 }),
      { detail: "later", retryAfter: "90" },
      { detail: "later", retryAfter: Number.POSITIVE_INFINITY },
    ])
      expect((await says(error)).retryAfter).toBeUndefined();
  });

  test("the frames show where it was thrown", async () => {
    const broken = () => {
      throw new Error("hunter2");
    };
    const outcome = await callPlugin(plugin(broken), "list", {});
    expect(outcome).toMatchObject({
      frames: expect.arrayContaining([expect.stringMatching(/call\.test\.ts:\d+/)]),
    });
    expect(JSON.stringify(outcome)).not.toContain("hunter2");
  });
});

describe("an invalid answer", () => {
  const cases: [string, unknown][] = [
    ["undefined", undefined],
    ["a string", "hunter2"],
    ["an object instead of a list", { items: [member] }],
    ["a number instead of a string", [{ ...member, name: 7 }]],
    ["an empty string", [{ ...member, name: "" }]],
    ["a string with NUL", [{ ...member, name: "a\0b" }]],
    ["a string that is too long", [{ ...member, name: "x".repeat(201) }]],
    ["a list that is too long", Array(10_001).fill(member)],
    ["a function", [{ ...member, name: () => "" }]],
    ["a nested thenable", [{ ...member, name: Promise.resolve("") }]],
    [
      "a getter that throws",
      [
        {
          ...member,
          get name() {
            throw new Error("hunter2");
          },
        },
      ],
    ],
    ["a proxy", new Proxy([member], {})],
  ];
  for (const [name, answer] of cases) {
    test(name, async () => {
      const outcome = await members(answer);
      expect(outcome).toMatchObject({ ok: false, reason: "invalid_answer" });
      expect(JSON.stringify(outcome)).not.toContain("hunter2");
    });
  }

  test("the detail gives the location", async () => {
    const outcome = await members([member, { ...member, name: 7 }]);
    expect(outcome).toMatchObject({ detail: "fake returned an invalid answer: /1/name: Expected string" });
  });

  test("a link that would run in the reader's browser", async () => {
    const chat = { ...plugin(() => {}), type: "conversation" as const };
    const methods = { create: () => ({ weblink: "javascript:alert(1)" }) };
    expect(await callPlugin({ ...chat, methods }, "create", {} as never)).toMatchObject({
      reason: "invalid_answer",
    });
  });
});

describe("a method that hangs", () => {
  test("is aborted when its time is up, and a late answer is ignored", async () => {
    let signal: AbortSignal | undefined;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const outcome = await callPlugin(
      plugin((call) => {
        signal = call.signal;
        return late;
      }),
      "list",
      {},
      { timeoutMilliseconds: 20 },
    );
    expect(outcome).toMatchObject({
      ok: false,
      reason: "timeout",
      detail: "fake did not answer within 0.02 s",
    });
    expect(signal!.aborted).toBe(true);
    // An unhandled rejection would fail this file.
    reject(new Error("too late"));
    await Bun.sleep(1);
  });

  test("is aborted when the caller gives up", async () => {
    const controller = new AbortController();
    const { promise: called, resolve } = Promise.withResolvers<CallContext>();
    const hanging = plugin((call) => {
      resolve(call);
      return new Promise(() => {});
    });
    const outcome = callPlugin(hanging, "list", {}, { signal: controller.signal });
    const { signal } = await called;
    expect(signal.aborted).toBe(false);
    controller.abort();
    expect(await outcome).toMatchObject({ ok: false, reason: "aborted" });
    expect(signal.aborted).toBe(true);
  });

  test("is not called at all if the caller has already given up", async () => {
    let calls = 0;
    const counted = plugin(() => {
      calls++;
      return [];
    });
    const outcome = await callPlugin(counted, "list", {}, { signal: AbortSignal.abort() });
    expect([outcome.ok, calls]).toEqual([false, 0]);
  });
});

test("a call within a transaction is over when it has ended, even if it took too long", async () => {
  const gate = Promise.withResolvers<void>();
  const slow = async () => {
    await gate.promise;
    return [term];
  };
  const within = plugin(slow, { timeoutMilliseconds: 1, methodsWithin: () => ({ list: slow }) });
  const ended = callPlugin(within, "list", {}, { within: {} as Transaction });
  // Ended by its time.
  expect(await callPlugin(within, "list", {})).toMatchObject({ reason: "timeout" });
  gate.resolve();
  expect(await ended).toMatchObject({ ok: true });
});
