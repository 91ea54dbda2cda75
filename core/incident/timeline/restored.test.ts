import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { and, asc, eq, gt } from "drizzle-orm";
import { dump } from "../../../drizzle/backup/dump.ts";
import { restore } from "../../../drizzle/backup/restore.ts";
import { openDatabase } from "../../../drizzle/client.ts";
import { readRevisions } from "../../../drizzle/revision/history.ts";
import { event } from "../../../drizzle/schema/index.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { createDatabaseOn, temporaryDirectory } from "../../../tests/support/database/backup.ts";
import { type DebianServer, debianServer } from "../../../tests/support/database/debian_postgres.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { noteOnTimeline } from "../event/note.ts";

let flow: FlowTest;
let debian: DebianServer;
beforeAll(async () => {
  flow = await startFlowTest();
  debian = await debianServer();
});
afterAll(async () => {
  await flow[Symbol.asyncDispose]();
});

test("the order of events survives a restore", async () => {
  await using directory = await temporaryDirectory();
  const plugins = pluginsOf();
  const incidentId = await flow.report(plugins);
  const options = {
    release: "1.2.3",
    clock: flow.clock,
    revisions: await readRevisions(),
    confirm: async () => {
      throw new Error("asked");
    },
  };
  const readFrom = (db: FlowTest["db"], cursor: number) =>
    db
      .select()
      .from(event)
      .where(and(eq(event.incidentId, incidentId), gt(event.id, cursor)))
      .orderBy(asc(event.id));
  const write = async (db: FlowTest["db"]) => {
    const ids: number[] = [];
    for (let n = 0; n < 20; n++) {
      const context = { ...flow.context(plugins), db };
      ids.push((await noteOnTimeline(context, rita, { incidentId, description: `${n}` })).id);
    }
    return ids;
  };
  await write(flow.db);
  let from = { db: flow.db, url: flow.url };
  await using parts = new AsyncDisposableStack();
  for (const name of ["first", "second"]) {
    const target = parts.use(await createDatabaseOn(debian.url));
    const path = join(directory.path, name);
    await dump({ ...options, path, url: from.url });
    await restore({ ...options, path, url: target.url });
    const { db } = parts.adopt(openDatabase(target.url, 4), (client) => client.close());
    const before = await readFrom(from.db, 0);
    expect(await readFrom(db, 0)).toEqual(before);
    // A reader goes on where it was, and the next events come after it.
    const written = await write(db);
    const read = await readFrom(db, before.at(-1)!.id);
    expect(read.map(({ id }) => id)).toEqual(written);
    from = { db, url: target.url };
  }
});
