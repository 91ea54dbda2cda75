import { Elysia, status, t } from "elysia";
import { reasonOf } from "../../core/database_error.ts";
import { type SchemaStatus, schemaStatus } from "../../core/revision/status.ts";
import type { Deps } from "../deps.ts";
import { oneOf } from "../schema.ts";
import { shared } from "./shared.ts";

const health = t.Object({
  status: oneOf(["ok", "unavailable", "leaving"]),
  database: t.Union([t.Literal("ok"), t.Literal("unreachable")]),
  revision: t.Object({
    status: oneOf(["ok", "ahead", "behind", "newer", "heads", "unknown"]),
    current: t.Array(t.String()),
    head: t.Array(t.String()),
  }),
});

const patienceSeconds = 3;
/** Nobody needs to sign in to ask, so it must not keep the database busy. */
const goodMilliseconds = 100;

/**
 * Whether this process can serve: the database answers, and its schema is one that we can work on. One that is about to
 * stop still can, and says 503 so that balancers look elsewhere in time.
 */
export const healthRoutes = (deps: Deps, presence: { readonly leaving: boolean }) => {
  const schemaNow = shared(() => currentSchema(deps), { goodFor: goodMilliseconds, isGood });
  return new Elysia({ name: "health" }).get(
    "/healthcheck",
    async ({ set }) => {
      set.headers["cache-control"] = "no-store";
      const schema = await schemaNow();
      if (!schema) {
        const revision = { status: "unknown" as const, current: [], head: [] };
        return status(503, { status: "unavailable" as const, database: "unreachable" as const, revision });
      }
      const { state, current, head } = schema;
      const revision = { status: state, current, head };
      if (!isGood(schema))
        return status(503, { status: "unavailable" as const, database: "ok" as const, revision });
      if (presence.leaving)
        return status(503, { status: "leaving" as const, database: "ok" as const, revision });
      return { status: "ok" as const, database: "ok" as const, revision };
    },
    { response: { 200: health, 503: health }, detail: { summary: "Ask whether this process can serve" } },
  );
};

const isGood = (schema: SchemaStatus | undefined) => schema?.state === "ok" || schema?.state === "ahead";

async function currentSchema({ db, log }: Deps): Promise<SchemaStatus | undefined> {
  const late = Bun.sleep(patienceSeconds * 1000).then(() => undefined);
  const status = schemaStatus(db).catch((error: unknown) => {
    log.warn({ err: error, ...reasonOf(error) }, "the database does not answer");
    return undefined;
  });
  return Promise.race([status, late]);
}
