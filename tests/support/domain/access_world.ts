import { afterAll, beforeAll, beforeEach } from "bun:test";
import { randomBytes } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import type { Plugins } from "../../../core/plugin/choose.ts";
import { openPlugins } from "../../../core/plugin/open.ts";
import { accessLease, incident } from "../../../drizzle/schema/index.ts";
import { createLog } from "../../../platform/log.ts";
import type { Telemetry } from "../../../platform/telemetry/telemetry.ts";
import { builtinPlugins } from "../../../plugins/builtin.ts";
import { fakeConversation, fakeCredential } from "../../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { revokeLeases } from "../../../worker/leases.ts";
import { DatabaseTime } from "../../../worker/time.ts";
import { type Person, personOf } from "../http/people.ts";
import { startTestServer, type TestServer } from "../http/server.ts";
import { type AccessTarget, startAccessTarget } from "./access_target.ts";
import { type IncidentIds, insertIncident } from "./incident.ts";
import { createUsualRole } from "./usual_role.ts";

/** A server with people and an incident, and a PostgreSQL target for leases. */
export interface AccessWorld extends AsyncDisposable {
  server: TestServer;
  target: AccessTarget;
  plugins: Plugins;
  admin: Person;
  /** The commander of the incident. */
  alice: Person;
  bob: Person;
  ids: IncidentIds;
  /** The name of the incident. */
  incident: string;
  /** Creates an access role as an admin. `more` replaces its fields; by default it is for the target. @returns its slug */
  makeRole(more?: Record<string, unknown>): Promise<string>;
  issue(who: Person, role: string, more?: object): ReturnType<Person["call"]>;
  leaseRow(id: number): Promise<typeof accessLease.$inferSelect>;
  /** Inserts leases like this one, of many@example.com, who has not signed in. */
  copyLease(row: typeof accessLease.$inferSelect, count: number): Promise<void>;
  /** Runs the part of a worker that ends leases, until it is disposed. It polls every 0.1 seconds, or every `poll`. */
  startWorker(poll?: number): AsyncDisposable;
}

/** @param plugins instead of `pluginCredential` */
export async function startAccessWorld(
  plugins?: Plugins,
  telemetry?: Telemetry,
  pluginCredential = "postgresql-role",
): Promise<AccessWorld> {
  // A separate installation, because other files have leases in the same PostgreSQL.
  const keySecret = randomBytes(24).toString("hex");
  const [server, target] = await Promise.all([
    startTestServer({ keySecret, ...(plugins ? {} : { pluginCredential }) }, plugins, telemetry),
    startAccessTarget(),
  ]);
  const { db, config, clock } = server;
  const ids = await insertIncident(db, clock.now());
  const [row] = await db.select().from(incident).where(eq(incident.id, ids.incidentId));
  const log = createLog("silent");
  const opened =
    plugins ??
    (
      await openPlugins({
        config,
        environment: {},
        builtin: builtinPlugins,
        directory: process.cwd(),
        deps: { fetch, clock, log, context: { db, config, clock, log } } as never,
      })
    ).plugins;
  const admin = await personOf(server, "root@example.com", ["admin"]);
  return {
    server,
    target,
    plugins: opened,
    admin,
    ids,
    incident: row!.name,
    alice: await personOf(server, "alice@example.com", ["oncall"]),
    bob: await personOf(server, "bob@example.com", ["oncall"]),
    makeRole: (more = {}) =>
      createUsualRole(admin, { plugin: "postgresql-role", settings: target.settings, ...more }),
    issue: (who, role, more = {}) => who.call("POST", "/access/leases/", { role, ...more }),
    leaseRow: async (id) => (await db.select().from(accessLease).where(eq(accessLease.id, id)))[0]!,
    copyLease: async ({ id: _, ...row }, count) => {
      const rows = Array.from({ length: count }, (_, index) => ({
        ...row,
        name: `${row.name}_${index}`,
        userName: "many@example.com",
      }));
      await db.insert(accessLease).values(rows);
    },
    startWorker: (poll = 0.1) => {
      const time = new DatabaseTime();
      time.observe(new Date(), performance.now(), performance.now());
      const stop = new AbortController();
      const deps = { db: () => db, time, config, log, plugins: opened };
      const working = revokeLeases(deps, stop.signal, { poll, grace: 1000 });
      return {
        [Symbol.asyncDispose]: async () => {
          stop.abort();
          await working;
        },
      };
    },
    [Symbol.asyncDispose]: async () => {
      await target[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Makes the lease expire now. */
export async function expire({ server }: AccessWorld, id: number): Promise<void> {
  await server.db
    .update(accessLease)
    .set({ dueAt: sql`now()` })
    .where(eq(accessLease.id, id));
}

/** Starts such a world with a worker for a whole file, and passes it to `take`. Its credentials are scripted. */
export function useFakeCredentials(take: (given: AccessWorld) => void) {
  const credential = fakeCredential({ check: () => [] }, { timeoutMilliseconds: 2000 });
  const issued = () => ({ kind: "token" as const, fields: { token: "s3cret" }, handle: "handle-1" });
  let world: AccessWorld;
  let worker: AsyncDisposable;
  beforeAll(async () => {
    world = await startAccessWorld(pluginsOf(credential, fakeConversation({}, { slug: "channel" })));
    worker = world.startWorker();
    take(world);
  });
  afterAll(async () => {
    await worker[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });
  beforeEach(() => credential.answer({ issue: issued, revoke: () => {}, renew: () => ({}) }));
  const makeRole = (more: object = {}) =>
    world.makeRole({ plugin: "fake-credential", settings: {}, ...more });
  return { credential, issued, makeRole };
}
