import { issueLease } from "../../../core/access/issue.ts";
import { readConfig } from "../../../core/config.ts";
import type { Actor } from "../../../core/context.ts";
import { openPlugins } from "../../../core/plugin/open.ts";
import { openDatabase } from "../../../drizzle/client.ts";
import { systemClock } from "../../../platform/clock.ts";
import { createLog } from "../../../platform/log.ts";
import { builtinPlugins } from "../../../plugins/builtin.ts";
import { revokeLeases } from "../../../worker/leases.ts";
import { DatabaseTime } from "../../../worker/time.ts";

// Issues a lease like a server, or revokes leases like a worker, in a separate process that a test can kill.

const [role, actor] = process.argv.slice(2);
const { SVC_DATABASE_URL: databaseUrl = "" } = process.env;
const config = { ...readConfig(process.env), databaseUrl };
const log = createLog("silent");
const { db } = openDatabase(databaseUrl, 4);
const { plugins } = await openPlugins({
  config,
  environment: {},
  builtin: builtinPlugins,
  directory: process.cwd(),
  deps: { fetch, clock: systemClock, log, context: { db, config, clock: systemClock, log } } as never,
});
if (role !== undefined && actor !== undefined) {
  const { expiresAt, ...rest } = JSON.parse(actor);
  const who: Actor = { ...rest, expiresAt: new Date(expiresAt) };
  await issueLease({ db, config, clock: systemClock, log, plugins }, who, { role });
} else {
  const time = new DatabaseTime();
  time.observe(new Date(), performance.now(), performance.now());
  const deps = { db: () => db, time, config, log, plugins };
  await revokeLeases(deps, new AbortController().signal, { poll: 0.1 });
}
process.exit(0);
