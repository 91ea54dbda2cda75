import { measureClaims } from "./schedule/claims.ts";
import { measureCost } from "./schedule/cost.ts";
import { measureLateness } from "./schedule/lateness.ts";
import { measureMemory } from "./schedule/memory.ts";
import { measureTakeover } from "./schedule/takeover.ts";
import { measureTerms } from "./schedule/terms.ts";
import * as support from "./support.ts";

/** Measures the worker and its tasks on a durable PostgreSQL. */
export async function benchSchedule(parts: AsyncDisposableStack): Promise<void> {
  const directory = await support.temporaryDirectory(parts);
  const url = await support.startDatabase(parts, directory);
  console.log(`server   PostgreSQL ${await support.postgresVersion(url)}, durable`);
  await measureLateness(parts, directory, url);
  await measureClaims(parts, directory, url);
  await measureTakeover(parts, directory, url);
  await measureMemory(parts, directory, url);
  await measureCost(url);
  await measureTerms(url);
}
