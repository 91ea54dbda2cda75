import { Elysia, status, t } from "elysia";
import { type SchemaStatus, schemaStatus } from "../../core/revision/status.ts";
import type { Deps } from "../deps.ts";
import { oneOf } from "../schema.ts";

const health = t.Object({
  status: t.Union([t.Literal("ok"), t.Literal("unavailable")]),
  database: t.Union([t.Literal("ok"), t.Literal("unreachable")]),
  revision: t.Object({
    status: oneOf(["ok", "ahead", "behind", "newer", "heads", "unknown"]),
    current: t.Array(t.String()),
    head: t.Array(t.String()),
  }),
});

const patienceSeconds = 3;

/** Whether this process can serve: the database answers, and its schema is the one that we were built for. */
export const healthRoutes = (deps: Deps) =>
  new Elysia({ name: "health" }).get(
    "/healthcheck",
    async ({ set }) => {
      set.headers["cache-control"] = "no-store";
      const schema = await currentSchema(deps);
      if (!schema) {
        const revision = { status: "unknown" as const, current: [], head: [] };
        return status(503, { status: "unavailable" as const, database: "unreachable" as const, revision });
      }
      const { state, current, head } = schema;
      const revision = { status: state, current, head };
      if (state !== "ok" && state !== "ahead")
        return status(503, { status: "unavailable" as const, database: "ok" as const, revision });
      return { status: "ok" as const, database: "ok" as const, revision };
    },
    { response: { 200: health, 503: health }, detail: { summary: "Ask whether this process can serve" } },
  );

async function currentSchema({ db, log }: Deps): Promise<SchemaStatus | undefined> {
  const late = Bun.sleep(patienceSeconds * 1000).then(() => undefined);
  const status = schemaStatus(db).catch((error: unknown) => {
    log.warn({ err: error }, "the database does not answer");
    return undefined;
  });
  return Promise.race([status, late]);
}
