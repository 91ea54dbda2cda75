import { setTimeout as delay } from "node:timers/promises";
import { refusePooler } from "./database_address.ts";
import { openSql } from "./sql.ts";

const heartbeatMilliseconds = 5000;
const heartbeatPatienceMilliseconds = 3000;

/**
 * Listens for notifications on one connection until `stop` aborts. It does not reconnect, because the caller must know
 * when it may miss messages. A heartbeat detects a connection that died silently.
 *
 * @param on.listening called when it begins to listen
 * @throws the reason why the connection cannot be opened or was lost
 * @throws Unavailable when the address is a pooler's, which delivers no notifications
 */
export async function listen(
  url: string,
  channels: readonly string[],
  on: { listening(): void; notified(channel: string, payload: string): void },
  stop: AbortSignal,
): Promise<void> {
  if (stop.aborted) return;
  const timers = new AbortController();
  const closed = Promise.withResolvers<never>();
  closed.promise.catch(() => {});
  const end = () => closed.reject(stop.reason);
  stop.addEventListener("abort", end, { once: true });
  const options = {
    max: 1,
    // So that operators and tests can tell this connection from those of the pool.
    connection: { application_name: "svc listen" },
    idle_timeout: undefined,
    max_lifetime: null,
    // After the error of the current statement, which says why.
    onclose: () => void setImmediate(() => closed.reject(new Error("connection closed"))),
    // The types of postgres.js do not know it.
    onnotify: on.notified,
  };
  const sql = openSql(url, options);
  const unlessClosed = (step: Promise<unknown>) => Promise.race([step, closed.promise]);
  const pause = (milliseconds: number) => delay(milliseconds, undefined, { signal: timers.signal });
  try {
    await unlessClosed(refusePooler(sql));
    await unlessClosed(sql.unsafe(channels.map((channel) => `listen ${channel}`).join("; ")));
    on.listening();
    for (;;) {
      await unlessClosed(pause(heartbeatMilliseconds));
      const late = pause(heartbeatPatienceMilliseconds).then(() => {
        throw new Error("no heartbeat");
      });
      await unlessClosed(Promise.race([sql`select 1`, late]));
    }
  } catch (error) {
    if (!stop.aborted) throw error;
  } finally {
    stop.removeEventListener("abort", end);
    timers.abort();
    await sql.end({ timeout: 0 }).catch(() => {});
  }
}
