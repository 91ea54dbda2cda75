import { describe, expect, test } from "bun:test";
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
/** What comes back of an answer whose items the guard judges. */
const members = (answer: unknown) =>
  callPlugin(
    { ...plugin(() => {}), type: "participant_group", methods: { members: () => answer } },
    "members",
    { group: {} } as never,
  );

test("an answer that fits comes back, without what nobody knows", async () => {
  expect(await members([{ ...member, colour: "red" }])).toEqual({ ok: true, value: [member] });
});

test("items of a source come back as they are: their reader judges each", async () => {
  const items = [term, { ...term, text: "a\0b" }, "hunter2"];
  expect(
    await callPlugin(
      plugin(() => items),
      "list",
      {},
    ),
  ).toEqual({ ok: true, value: items as never });
});

test("a call has a signal and a key, and facts of its own", async () => {
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
  // Nobody waits for it any more.
  expect(seen!.signal.aborted).toBe(true);
  expect(await callPlugin(chat, "archive", {} as never)).toMatchObject({ ok: false, reason: "missing" });
});

describe("it throws", () => {
  const cases: [string, unknown, string][] = [
    ["an error, whose message is not shown", new TypeError("password is hunter2"), "fake failed: TypeError"],
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
    ["a word", "hunter2", "fake failed: string"],
    ["nothing", undefined, "fake failed: undefined"],
    [
      "something that throws when it is looked at",
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

  test("and says by its error that it would each time: an error for people alone, and no library's", async () => {
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
      ...[new Unavailable("later"), Object.assign(new Error(), { permanent: true })],
      ...[{ detail: "later", permanent: "yes" }, undefined],
    ])
      expect(await says(error)).toMatchObject({ ok: false, permanent: false });
  });

  test("and the frames say where", async () => {
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

describe("it answers nonsense", () => {
  const cases: [string, unknown][] = [
    ["nothing", undefined],
    ["a word", "hunter2"],
    ["no list", { items: [member] }],
    ["a number for a text", [{ ...member, name: 7 }]],
    ["an empty text", [{ ...member, name: "" }]],
    ["a text with NUL", [{ ...member, name: "a\0b" }]],
    ["a text without end", [{ ...member, name: "x".repeat(201) }]],
    ["a list without end", Array(10_001).fill(member)],
    ["a function", [{ ...member, name: () => "" }]],
    ["a thenable in it", [{ ...member, name: Promise.resolve("") }]],
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
      expect(outcome).toMatchObject({ ok: false, reason: "nonsense" });
      expect(JSON.stringify(outcome)).not.toContain("hunter2");
    });
  }

  test("and the detail says where", async () => {
    const outcome = await members([member, { ...member, name: 7 }]);
    expect(outcome).toMatchObject({ detail: "fake returned an invalid answer: /1/name: Expected string" });
  });

  test("a link that runs in the reader's browser", async () => {
    const chat = { ...plugin(() => {}), type: "conversation" as const };
    const methods = { create: () => ({ weblink: "javascript:alert(1)" }) };
    expect(await callPlugin({ ...chat, methods }, "create", {} as never)).toMatchObject({
      reason: "nonsense",
    });
  });
});

describe("it hangs", () => {
  test("until its time is up; then it is told, and what comes late is not heard", async () => {
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

  test("until whoever asked gives up", async () => {
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

  test("and is not even asked when nobody waits", async () => {
    let calls = 0;
    const counted = plugin(() => {
      calls++;
      return [];
    });
    const outcome = await callPlugin(counted, "list", {}, { signal: AbortSignal.abort() });
    expect([outcome.ok, calls]).toEqual([false, 0]);
  });
});
