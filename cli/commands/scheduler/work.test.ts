import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { auditLog, delivery, flowStep } from "../../../drizzle/schema/index.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { runHere } from "../../../tests/support/cli/io.ts";
import { at, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";

let outbox: Outbox;
let incidentId: number;
beforeAll(async () => {
  outbox = await startOutbox();
  ({ incidentId } = outbox.ids);
  await outbox.deliver(
    pluginsOf(fakeConversation({}, { slug: "channel" })),
    ...["waits", "dead", "done"].map((whom) => ({
      key: { task: "t", what: "w", whom },
      incidentId,
      message: { subject: "Secret subject", text: "Secret text" },
    })),
  );
  const set = (whom: string, values: Partial<typeof delivery.$inferInsert>) =>
    outbox.db
      .update(delivery)
      .set(values)
      .where(eq(delivery.key, `t/w/${whom}/channel`));
  await set("waits", { dueAt: at });
  const ended = { dueAt: null, finishedAt: at };
  await set("dead", { ...ended, state: "Dead", attempts: 10, error: "channel failed: \u001b[31mError" });
  await set("done", { ...ended, state: "Done", attempts: 1 });
  // Excludes the steps that the incident was inserted with.
  await outbox.db.delete(flowStep);
  await outbox.db.insert(flowStep).values([
    { incidentId, step: "reported:documents", state: "Failed", attempts: 10, error: "no template" },
    { incidentId, step: "reported:group:groups", state: "Failed", attempts: 2, dueAt: at, error: "away" },
    { incidentId, step: "reported:commander", state: "Done", attempts: 1, finishedAt: at },
  ]);
});
afterAll(() => outbox[Symbol.asyncDispose]());
const work = (...args: string[]) => runHere(["scheduler", "work", ...args], { SVC_DATABASE_URL: outbox.url });

test("lists pending messages and steps, dead ones first, without their text", async () => {
  const { code, stdout, stderr } = await work();
  expect({ code, stderr }).toEqual({ code: 0, stderr: "2 pending, 2 dead\n" });
  expect(stdout).toBe(`\
Kind      Key                          State   Attempts  Next Try              Last Error
step      INC-1/reported:documents     Failed  10        -                     no template
delivery  t/w/dead/channel             Dead    10        -                     channel failed: \ufffd[31mError
step      INC-1/reported:group:groups  Failed  2         2026-12-01T12:00:00Z  away
delivery  t/w/waits/channel            Queued  0         2026-12-01T12:00:00Z
`);
});

test("filters by kind and by dead, and prints JSON", async () => {
  expect(JSON.parse((await work("--kind", "step", "--dead", "--json")).stdout)).toEqual([
    {
      kind: "step",
      key: "INC-1/reported:documents",
      state: "Failed",
      attempts: 10,
      due_at: null,
      error: "no template",
      dead: true,
    },
  ]);
  const keys = JSON.parse((await work("--kind", "delivery", "--json")).stdout) as { key: string }[];
  expect(keys.map(({ key }) => key)).toEqual(["t/w/dead/channel", "t/w/waits/channel"]);
});

test("retries dead work of either kind, with an entry in the audit log", async () => {
  expect((await work("--retry", "INC-1/reported:documents")).stdout).toBe(
    "Due now: INC-1/reported:documents\n",
  );
  const ofStep = and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, "reported:documents"));
  const [step] = await outbox.db.select().from(flowStep).where(ofStep);
  expect(step).toMatchObject({ state: "Pending", attempts: 0 });
  expect(step!.dueAt!.getTime()).toBeWithin(Date.now() - 60_000, Date.now() + 1000);
  expect((await work("--retry", "t/w/dead/channel")).code).toBe(0);
  const [sent] = await outbox.db.select().from(delivery).where(eq(delivery.key, "t/w/dead/channel"));
  expect(sent).toMatchObject({ state: "Queued", attempts: 0 });
  const noted = await outbox.db.select().from(auditLog).orderBy(auditLog.id);
  expect(noted.map(({ action, subject }) => [action, subject])).toEqual([
    ["step.retried", "INC-1/reported:documents"],
    ["delivery.resent", "t/w/dead/channel"],
  ]);
});

test("refuses finished or unknown work, and conflicting options", async () => {
  expect(await work("--retry", "INC-1/reported:commander")).toMatchObject({
    code: 1,
    stderr: "svc: Only a failed step can be retried: this step is Done\n",
  });
  expect(await work("--retry", "nothing")).toMatchObject({
    code: 1,
    stderr: "svc: There is no such work: svc scheduler work lists the keys\n",
  });
  expect(await work("--retry", "x", "--dead")).toMatchObject({ code: 2 });
});
