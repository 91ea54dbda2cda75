import { freePort } from "../platform/free_port.ts";
import { fill } from "./api/data.ts";
import { issueTokens } from "./api/tokens.ts";
import * as support from "./support.ts";
import { measureChanges } from "./web/changes.ts";
import { fillTimelines, signInBrowsers } from "./web/data.ts";
import { measurePages } from "./web/pages.ts";
import { measureRates } from "./web/rates.ts";

const incidents = support.countFrom("SVC_BENCH_INCIDENTS", 100_000);
const size = { incidents, documents: incidents * 10 };
/** Incidents with a long timeline. */
const busyIncidents = 200;
const people = 1000;

/** The pages: first byte and size, requests a second beside SvelteKit, and changes on pages that are open. */
export async function benchWeb(parts: AsyncDisposableStack): Promise<void> {
  const directory = await support.temporaryDirectory(parts);
  const databaseUrl = await support.startDatabase(parts, directory, { shared_buffers: "2GB" });
  await fill(databaseUrl, size);
  const busy = await fillTimelines(databaseUrl, incidents, busyIncidents);
  const browsers = await signInBrowsers(databaseUrl, people);
  const port = await freePort();
  const environment = support.serverEnvironment(databaseUrl, port);
  const [token = ""] = await issueTokens(environment, 1);
  const svc = await support.startServer(parts, directory, port, environment);
  console.log(
    `database ${incidents.toLocaleString("en")} incidents, ${size.documents.toLocaleString("en")} documents; PostgreSQL ${await support.postgresVersion(databaseUrl)}, durable`,
  );
  console.log(`svc      svc server start server/main:app on Bun ${Bun.version}, one process\n`);
  await measurePages(svc.address, { browsers, busy, documents: size.documents });
  await measureRates(parts, directory, { svc, databaseUrl, browsers, busy });
  await measureChanges(parts, directory, { svc, token, browsers, incident: busy[0]! });
}
