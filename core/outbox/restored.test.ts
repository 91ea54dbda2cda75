import { expect, test } from "bun:test";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { dump } from "../../drizzle/backup/dump.ts";
import { restore } from "../../drizzle/backup/restore.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { upgrade } from "../../drizzle/revision/upgrade.ts";
import { delivery } from "../../drizzle/schema/index.ts";
import { createLog } from "../../platform/log.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { TestClock } from "../../tests/support/clock.ts";
import { createDatabaseOn, temporaryDirectory } from "../../tests/support/database/backup.ts";
import { testServerUrl } from "../../tests/support/database/database.ts";
import { attemptAll, claimAll } from "../../tests/support/domain/delivery.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { readConfig } from "../config.ts";
import { attemptDelivery } from "../incident/delivery/attempt.ts";
import { deliver } from "./deliver.ts";
import { resendDelivery } from "./resend.ts";

const clock = new TestClock();
const channel = fakeConversation({ send: () => {} }, { slug: "channel" });
const plugins = pluginsOf(channel);

test("sent deliveries stay sent, waiting ones are dead until somebody resends them", async () => {
  await using database = await createDatabaseOn(await testServerUrl());
  await using directory = await temporaryDirectory();
  await upgrade({ url: database.url });
  const { db, close } = openDatabase(database.url, 2);
  const { incidentId } = await insertIncident(db, clock.now());
  const say = (...whom: string[]) =>
    db.transaction((tx) =>
      deliver(
        tx,
        { clock, plugins },
        whom.map((one) => ({
          key: { task: "t", what: "w", whom: one },
          incidentId,
          message: { subject: "s", text: "t" },
        })),
      ),
    );
  const all = () => db.select().from(delivery).orderBy(delivery.key);
  const context = { db, clock, plugins, config: readConfig({}), log: createLog("silent") };
  await say("a", "b");
  const ofA = eq(delivery.key, "t/w/a/channel");
  expect(await attemptAll(context, ofA)).toEqual(["done"]);
  const path = join(directory.path, "backup");
  const common = { url: database.url, path };
  await dump({ ...common, release: "1.2.3", clock });
  // The original database continues and sends what was waiting.
  const [late] = await claimAll(context);
  expect(await attemptDelivery(context, late!)).toBe("done");
  const confirm = async () => {};
  await restore({ ...common, confirm });
  expect(await all()).toMatchObject([
    { state: "Done", error: null },
    {
      state: "Dead",
      leaseUntil: null,
      error: expect.stringContaining("It was pending in a restored backup"),
    },
  ]);
  await say("a", "b", "c");
  expect((await all()).map(({ state }) => state)).toEqual(["Done", "Dead", "Queued"]);
  expect(await attemptDelivery(context, late!)).toBe("stale");
  await resendDelivery({ db, clock }, (await all())[1]!.key);
  expect(await attemptAll(context, eq(delivery.key, "t/w/b/channel"))).toEqual(["done"]);
  await close();
});
