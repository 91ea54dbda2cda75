import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { fakeMailing } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { startOutbox } from "../../tests/support/domain/delivery.ts";
import { Refused } from "../../platform/errors.ts";
import { downgrade } from "../../drizzle/revision/downgrade.ts";
import { upgrade } from "../../drizzle/revision/upgrade.ts";
import { attemptDelivery } from "../incident/delivery/attempt.ts";

const before = "20261121T1838_pages_of_the_newest";

test("the release that knows no recipients finds nothing that it would send to everyone", async () => {
  await using outbox = await startOutbox();
  const mailing = fakeMailing({ recipients: () => ["done", "dead", "queued"] }, { slug: "channel" });
  const plugins = pluginsOf(mailing);
  const say = (whom: string) => ({
    ...{ key: { task: "t", what: "w", whom }, incidentId: outbox.ids.incidentId },
    message: { subject: "s", text: "t" },
  });
  const attempt = async (key: string) => {
    const row = (await outbox.all()).find((one) => one.key === `t/w/${key}`)!;
    return attemptDelivery(outbox.context(plugins), row.jobId!);
  };
  await outbox.deliver(plugins, say("a"));
  expect(await attempt("a/channel")).toBe("split");
  mailing.answer({ send: [() => {}, () => Promise.reject(new Refused("no"))] });
  expect([await attempt("a/channel/done"), await attempt("a/channel/dead")]).toEqual(["done", "dead"]);
  await outbox.deliver(plugins, say("b"));

  await expect(downgrade({ url: outbox.url, target: before })).rejects.toThrow(
    "the values of delivery.recipient",
  );
  await downgrade({ url: outbox.url, target: before, allowDataLoss: true });
  const rows = await outbox.db.execute(sql`select key, state from delivery order by key`);
  expect([...rows]).toEqual([
    ...[
      { key: "t/w/a/channel", state: "Done" },
      { key: "t/w/a/channel/done", state: "Done" },
    ],
    { key: "t/w/b/channel", state: "Queued" },
  ]);
  const names = (await outbox.jobs()).map(({ name }) => name);
  expect(new Set(names)).toEqual(new Set(["delivery"]));

  await upgrade({ url: outbox.url });
  expect(await attempt("b/channel")).toBe("split");
});
