import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { document, individual, task } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { at, type Outbox, startOutbox } from "../../../tests/support/domain/delivery.ts";
import { rita } from "../../../tests/support/domain/flow.ts";
import { removeDocument } from "../document/remove.ts";
import { createTask } from "./create.ts";

let outbox: Outbox;
beforeAll(async () => {
  outbox = await startOutbox();
});
afterAll(() => outbox[Symbol.asyncDispose]());

test("a document cannot be deleted while a task for it is created", async () => {
  const { db, ids } = outbox;
  const context = outbox.context(pluginsOf());
  const stamps = { createdAt: at, updatedAt: at };
  const [runbook] = await db
    .insert(document)
    .values({ name: "Runbook", resourceType: "reference", ...stamps })
    .returning({ id: document.id });
  const documentId = runbook!.id;
  const fields = { description: "Free some disk", owner: null, assignees: [], reminders: true };
  const [made, removed] = await inTheWay<unknown>(
    db,
    // The task's creator becomes an individual, too, after the document was read.
    (tx) => tx.insert(individual).values({ name: "rita", email: rita.user, ...stamps }),
    () => createTask(context, rita, { ...fields, incidentId: ids.incidentId, documentId }),
    () => removeDocument(context, { ...rita, admin: true }, { id: documentId, address: "127.0.0.1" }),
  );
  expect(made).toMatchObject({ status: "fulfilled", value: { documentId } });
  expect(removed).toEqual({ status: "rejected", reason: expect.any(Conflict) });
  expect(await db.$count(task, eq(task.documentId, documentId))).toBe(1);
});
