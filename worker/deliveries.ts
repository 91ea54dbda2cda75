import { PgBoss } from "pg-boss";
import { attemptDelivery, buryDelivery } from "../core/incident/delivery/attempt.ts";
import { bossError, bossOptions, deadQueue, deliveryQueue, recipientQueue } from "../core/outbox/job.ts";
import { addressForPg } from "../drizzle/connection/address_pg.ts";
import type { WorkerDeps } from "./deps.ts";
import { Outage } from "./outage.ts";

type DeliveryDeps = Pick<WorkerDeps, "db" | "time" | "config" | "log" | "plugins" | "observed">;

/** Its own, beside those of the schedule and of the tasks. */
const connections = 3;
/** What it tries at once. */
const atOnce = [
  [deliveryQueue, 8],
  [recipientQueue, 6],
] as const;
/** Of one plugin, so that one which hangs leaves room for the others. */
const atOnceByPlugin = 3;
const pollSeconds = 2;
/** After a stop, for plugins that are being called; what is left, another worker does. */
const graceMilliseconds = 20_000;

/** Sends what is due in the outbox until `stop` aborts. Any number of workers may share it. */
export async function sendDeliveries(
  deps: DeliveryDeps,
  stop: AbortSignal,
  { poll = pollSeconds, grace = graceMilliseconds }: { poll?: number; grace?: number } = {},
): Promise<void> {
  const { config, log, observed } = deps;
  const address = await new Outage(log).outlast(() => addressForPg(config.databaseUrl!), stop);
  if (!address) return;
  const boss = new PgBoss({
    ...{ ...bossOptions, ...address, max: connections, application_name: "svc" },
    ...{ superviseIntervalSeconds: 30, monitorIntervalSeconds: 30, reindex: false, monitorVacuum: false },
  });
  boss.on("error", (error) => log.warn({ err: bossError(error) }, "the outbox cannot be asked"));
  const stopped = Promise.withResolvers<void>();
  const end = () => stopped.resolve();
  stop.addEventListener("abort", end, { once: true });
  if (!(await new Outage(log).outlast(() => boss.start(), stop))) return;
  const context = () => {
    const { db, time: clock, plugins } = deps;
    return { db: db(), clock, config, log, plugins };
  };
  const often = { pollingIntervalSeconds: poll };
  for (const [queue, localConcurrency] of atOnce) {
    // There may be hundreds: whoever has done one looks for the next without a pause.
    const goOn = () => {
      for (const { id, name, count } of boss.getWipData())
        if (name === queue && count > 0) boss.notifyWorker(id);
    };
    await boss.work(
      queue,
      { ...often, localConcurrency, localGroupConcurrency: atOnceByPlugin },
      async (jobs) => {
        for (const job of jobs) {
          const attempt = () => attemptDelivery(context(), job.id, job.signal);
          await (observed ? observed.delivery(attempt) : attempt());
        }
        goOn();
      },
    );
  }
  await boss.work(deadQueue, { ...often, includeMetadata: true }, async (jobs) => {
    for (const { sourceId } of jobs) if (sourceId !== null) await buryDelivery(context(), sourceId);
  });
  await stopped.promise;
  // Aborts the signals of what has not ended by then, and has its jobs tried again.
  await boss.stop({ graceful: true, timeout: grace });
}
