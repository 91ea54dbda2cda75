import { readConfig } from "../../../core/config.ts";
import { openDatabase, openSql } from "../../../drizzle/client.ts";
import { createLog } from "../../../platform/log.ts";
import { fakeConversation } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { sendDeliveries } from "../../../worker/deliveries.ts";
import { DatabaseTime } from "../../../worker/time.ts";

// A worker's deliveries in a separate process. Its plugin records each call in the table `said`, and answers slowly.

const { SVC_DATABASE_URL: databaseUrl = "" } = process.env;
const notes = openSql(databaseUrl, { max: 4 });
const channel = fakeConversation(
  {
    direct: async ({ key }) => {
      await notes`insert into said values (${key}, ${process.pid})`;
      await Bun.sleep(100);
    },
  },
  { slug: "channel" },
);
const { db } = openDatabase(databaseUrl, 4);
const time = new DatabaseTime();
time.observe(new Date(), performance.now(), performance.now());
const config = { ...readConfig({}), databaseUrl };
const deps = { db: () => db, time, config, log: createLog("silent"), plugins: pluginsOf(channel) };
await sendDeliveries(deps, new AbortController().signal, { poll: 0.5 });
