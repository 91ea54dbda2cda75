import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { PgBoss } from "pg-boss";
import { bossOptions, deliveryQueue, recipientQueue } from "../../core/outbox/job.ts";
import { systemClock } from "../../platform/clock.ts";
import { createDatabaseOn, temporaryDirectory } from "../../tests/support/database/backup.ts";
import { testServerUrl } from "../../tests/support/database/database.ts";
import { type DebianServer, startDebianPostgres } from "../../tests/support/database/debian_postgres.ts";
import { findDrift } from "../revision/check.ts";
import { dropAll } from "../revision/drop.ts";
import { upgrade } from "../revision/upgrade.ts";
import { dump, type Format } from "./dump.ts";
import { restore } from "./restore.ts";

let debian: DebianServer;
beforeAll(async () => {
  debian = await startDebianPostgres();
});
afterAll(() => debian.stop());

const cases: [Format, () => Promise<string>][] = [
  ["custom", async () => debian.url],
  ["portable", () => testServerUrl()],
];

/** A job of each queue is sent, taken and done, and pg-boss looks after its tables. */
async function work(url: string, id: string): Promise<void> {
  const faults: unknown[] = [];
  const boss = new PgBoss({ ...bossOptions, connectionString: url, max: 2 });
  boss.on("error", (error) => void faults.push(error));
  await boss.start();
  for (const queue of [deliveryQueue, recipientQueue]) {
    await boss.insert(queue, [{ id, data: { key: id } }]);
    expect(await boss.fetch(queue)).toMatchObject([{ id, data: { key: id } }]);
    await boss.complete(queue, id);
    await boss.supervise(queue);
    expect(await boss.fetch(queue)).toEqual([]);
  }
  await boss.stop();
  expect(faults).toEqual([]);
}

test.each(cases)("%s: workers find their queues as they were, and go on", async (format, server) => {
  await using database = await createDatabaseOn(await server());
  await using directory = await temporaryDirectory();
  const { url } = database;
  const common = { url, path: join(directory.path, "backup"), env: { PATH: debian.tools } };
  await upgrade({ url });
  await work(url, crypto.randomUUID());
  await dump({ ...common, format, release: "0", clock: systemClock });
  await dropAll(url);
  await restore({ ...common, confirm: async () => {} });
  expect(await findDrift(url)).toEqual([]);
  await work(url, crypto.randomUUID());
});
