import { schemaStatus } from "../../core/revision/status.ts";
import { openDatabase } from "../../drizzle/client.ts";

// What /healthcheck costs without anything around it: the database is asked the same, one question at a time, and the
// answer has the same body. No routes, no validation, no request id, no log.

const { db } = openDatabase(process.env.SVC_DATABASE_URL!, 1);
let asked: ReturnType<typeof schemaStatus> | undefined;

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch() {
    asked ??= schemaStatus(db).finally(() => {
      asked = undefined;
    });
    const { state, current, head } = await asked;
    return Response.json({ status: "ok", database: "ok", revision: { status: state, current, head } });
  },
});
console.log(`bare on http://127.0.0.1:${server.port}`);
