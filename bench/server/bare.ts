import { openDatabase } from "../../drizzle/client.ts";
import { schemaStatus } from "../../drizzle/revision/status.ts";
import { createLog } from "../../platform/log.ts";
import { usualHeaders } from "../../server/http/security_headers.ts";
import { shared } from "../../server/http/shared.ts";

// The cost of /healthcheck without an application: the same query at the same rate, and a response with the same body.
// With BENCH_ALIKE it also sends the same headers and logs a line per request. The difference is then the router's
// cost: routes, validation, methods, bodies, authentication.

const { SVC_DATABASE_URL = "", BENCH_ALIKE, BENCH_PORT = "0" } = process.env;
const { db } = openDatabase(SVC_DATABASE_URL, 1);
const log = createLog("info");
const prefix = crypto.randomUUID().slice(0, 13);
let count = 0;
const schemaNow = shared(() => schemaStatus(db), { goodFor: 100, isGood: ({ state }) => state === "ok" });

async function health(): Promise<object> {
  const { state, current, head } = await schemaNow();
  return { status: "ok", database: "ok", revision: { status: state, current, head } };
}

async function alike({ method }: Request): Promise<Response> {
  count += 1;
  const id = `${prefix}-${count.toString(36)}`;
  const response = Response.json(await health(), { headers: { ...usualHeaders, "x-request-id": id } });
  setImmediate(() =>
    log.info({ request_id: id, method, route: "/healthcheck", status: response.status }, "request"),
  );
  return response;
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(BENCH_PORT),
  fetch: BENCH_ALIKE ? alike : async () => Response.json(await health()),
});
console.log(`bare on http://127.0.0.1:${server.port}`);
