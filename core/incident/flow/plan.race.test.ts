import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { flowStep } from "../../../drizzle/schema/index.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { type FlowTest, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { planSteps } from "./plan.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

test("planning the same steps in different orders does not deadlock", async () => {
  const { db, clock } = flow;
  const incidentId = await flow.report(pluginsOf());
  const [first, middle, last] = ["joined:group:a", "joined:group:b", "joined:group:c"] as const;
  const plan = (...steps: string[]) =>
    db.transaction((tx) => planSteps(tx, { incidentId, at: clock.now() }, steps));
  await plan(first, middle, last);
  const answers = await inTheWay(
    db,
    (tx) =>
      tx
        .select()
        .from(flowStep)
        .where(and(eq(flowStep.incidentId, incidentId), eq(flowStep.step, middle)))
        .for("update"),
    () => plan(first, middle, last),
    () => plan(last, middle, first),
  );
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled"]);
});
