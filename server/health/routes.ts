import { Elysia, status, t } from "elysia";
import { oneOf } from "../http/schema.ts";
import type { ReadinessCheck } from "./readiness.ts";

const health = t.Object({
  status: oneOf(["ok", "unavailable", "leaving"]),
  database: oneOf(["ok", "unreachable", "read_only", "disk_full"]),
  keys: oneOf(["ok", "unusable", "unknown"]),
  revision: t.Object({
    status: oneOf(["ok", "ahead", "behind", "newer", "heads", "unknown"]),
    current: t.Array(t.String()),
    head: t.Array(t.String()),
  }),
});

/**
 * Reports whether this process can serve requests. One that is about to stop still can, but answers 503 so that load
 * balancers switch in time.
 */
export const healthRoutes = (check: ReadinessCheck, presence: { readonly leaving: boolean }) =>
  new Elysia({ name: "health" }).get(
    "/healthcheck",
    async () => {
      const { ready, database, keys, schema } = await check.now();
      const { state, current, head } = schema ?? { state: "unknown" as const, current: [], head: [] };
      const parts = { database, keys, revision: { status: state, current, head } };
      if (!ready) return status(503, { status: "unavailable" as const, ...parts });
      if (presence.leaving) return status(503, { status: "leaving" as const, ...parts });
      return { status: "ok" as const, ...parts };
    },
    { response: { 200: health, 503: health }, detail: { summary: "Get the health of this server process" } },
  );
