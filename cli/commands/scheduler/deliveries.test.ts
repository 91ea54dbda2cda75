import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { auditLog, delivery } from "../../../drizzle/schema/index.ts";
import { after } from "../../../platform/clock.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { runHere } from "../../../tests/support/cli/io.ts";
import { at, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
  await outbox.deliver(
    pluginsOf(fakeConversation({}, { slug: "channel" })),
    ...["a", "b", "c"].map((whom) => ({
      key: { task: "t", what: "w", whom },
      incidentId: outbox.ids.incidentId,
      message: { subject: "Secret subject", text: "Secret text" },
    })),
  );
  const ended = { dueAt: null, finishedAt: at };
  const { key } = delivery;
  const set = (whom: string, values: object) =>
    outbox.db
      .update(delivery)
      .set({ ...ended, ...values })
      .where(eq(key, `t/w/${whom}/channel`));
  await set("a", { state: "Done" });
  await set("c", { dueAt: after(at, 30), finishedAt: null });
  await set("b", { state: "Dead", attempts: 10, error: "mail failed: \u001b[31mError" });
});
afterAll(() => outbox[Symbol.asyncDispose]());
const deliveries = (...args: string[]) =>
  runHere(["scheduler", "deliveries", ...args], { SVC_DATABASE_URL: outbox.url });

test("lists pending and dead deliveries, without their text", async () => {
  expect(await deliveries()).toEqual({
    code: 0,
    stderr: "1 queued, 1 dead, 1 done\n",
    stdout: `\
Key            State   Attempts  Queued                Next Try              Last Error
t/w/b/channel  Dead    10        2026-12-01T12:00:00Z  -                     mail failed: �[31mError
t/w/c/channel  Queued  0         2026-12-01T12:00:00Z  2026-12-01T12:00:30Z
`,
  });
});

test("filters by state, and prints JSON", async () => {
  const { stdout, stderr } = await deliveries("--state", "Done", "--json");
  expect(stderr).toBe("");
  expect(JSON.parse(stdout)).toEqual({
    counts: { Queued: 1, Done: 1, Dead: 1, Obsolete: 0 },
    deliveries: [
      {
        key: "t/w/a/channel",
        state: "Done",
        incident_id: outbox.ids.incidentId,
        plugin: "channel",
        recipient: null,
        attempts: 0,
        queued_at: at.toISOString(),
        due_at: null,
        finished_at: at.toISOString(),
        last_error: null,
      },
    ],
  });
});

test("refuses conflicting options, an unknown key, and a delivery that is not dead", async () => {
  expect(await deliveries("--resend", "x", "--all-dead")).toMatchObject({ code: 2 });
  expect(await deliveries("--all-dead", "--json")).toMatchObject({ code: 2 });
  expect(await deliveries("--discard", "x", "--discard-all-dead")).toMatchObject({ code: 2 });
  expect(await deliveries("--state", "Lost")).toMatchObject({ code: 2 });
  expect(await deliveries("--resend", "x")).toMatchObject({
    code: 1,
    stderr: "svc: There is no such work: svc scheduler work lists the keys\n",
  });
  for (const [key, state] of [
    ["t/w/a/channel", "Done"],
    ["t/w/c/channel", "Queued"],
  ] as const)
    expect(await deliveries("--resend", key)).toMatchObject({
      code: 1,
      stderr: `svc: Only a dead delivery can be sent again: this delivery is ${state}\n`,
    });
});

test("resends dead deliveries, with an entry in the audit log", async () => {
  expect((await deliveries("--resend", "t/w/b/channel")).stdout).toBe("Queued t/w/b/channel\n");
  const [, again] = await outbox.all();
  expect(again).toMatchObject({ state: "Queued", attempts: 0, finishedAt: null });
  expect(again?.dueAt?.getTime()).toBeWithin(Date.now() - 60_000, Date.now() + 1000);
  const noted = await outbox.db.select().from(auditLog).where(eq(auditLog.action, "delivery.resent"));
  expect(noted).toMatchObject([{ actor: "system", subject: "t/w/b/channel" }]);
  await outbox.db
    .update(delivery)
    .set({ state: "Dead", dueAt: null, finishedAt: at, error: "x" })
    .where(eq(delivery.state, "Queued"));
  expect((await deliveries("--all-dead")).stdout).toBe("Queued 2\n");
  expect((await deliveries("--all-dead")).stdout).toBe("Queued 0\n");
});

test("discards dead deliveries, with their error and an entry in the audit log", async () => {
  await outbox.db
    .update(delivery)
    .set({ state: "Dead", dueAt: null, finishedAt: at, error: "x" })
    .where(eq(delivery.state, "Queued"));
  expect((await deliveries("--discard", "t/w/b/channel")).stdout).toBe("Discarded t/w/b/channel\n");
  const [, discarded, other] = await outbox.all();
  expect([discarded, other]).toMatchObject([
    { state: "Done", error: "Discarded: x" },
    { state: "Dead", error: "x" },
  ]);
  const noted = await outbox.db.select().from(auditLog).where(eq(auditLog.action, "delivery.discarded"));
  expect(noted).toMatchObject([{ actor: "system", subject: "t/w/b/channel" }]);
  expect(await deliveries("--discard", "t/w/b/channel")).toMatchObject({
    code: 1,
    stderr: "svc: Only a dead delivery can be discarded: this delivery is Done\n",
  });
  expect((await deliveries("--discard-all-dead")).stdout).toBe("Discarded 1\n");
  expect((await deliveries("--discard-all-dead")).stdout).toBe("Discarded 0\n");
});
