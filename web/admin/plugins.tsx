import { Elysia } from "elysia";
import { databaseClock } from "../../core/database_clock.ts";
import { listDeliveries } from "../../core/outbox/list.ts";
import { scheduleStatus } from "../../core/schedule/status.ts";
import type { Deps } from "../../server/deps.ts";
import { Clock } from "../parts/time.tsx";
import type { Site } from "../site.tsx";
import { admins, Crumb, Table } from "./shared.tsx";

/** How many unfinished deliveries are looked through for failures. */
const mostDeliveries = 200;

interface Failure {
  at: Date;
  text: string;
}

/** What `svc plugin list` shows, and what fails. */
export function pluginPages(site: Site) {
  const { deps } = site;
  return new Elysia({ name: "plugin pages" }).get(
    "/plugins",
    admins(site, async () => {
      const failures = await failuresOf(deps);
      return { title: "Plugins", content: <Plugins deps={deps} failures={failures} /> };
    }),
  );
}

/** The failures of plugins, by slug: in scheduled tasks, and of messages that are not sent yet. */
async function failuresOf({ db, config }: Deps): Promise<Map<string, Failure[]>> {
  const failures = new Map<string, Failure[]>();
  const add = (slug: string, failure: Failure) =>
    failures.set(slug, [...(failures.get(slug) ?? []), failure]);
  const { tasks } = await scheduleStatus({ db, databaseClock, config });
  for (const { name, failingPlugins } of tasks)
    for (const { plugin, since, runs } of failingPlugins)
      add(plugin, { at: since, text: `fails in ${name}, ${runs} ${runs === 1 ? "run" : "runs"}` });
  const deliveries = await listDeliveries({ db }, { states: ["Queued", "Dead"], limit: mostDeliveries });
  const failed = deliveries.filter(({ error }) => error !== null);
  for (const slug of new Set(failed.map(({ pluginSlug }) => pluginSlug))) {
    const ofPlugin = failed.filter(({ pluginSlug }) => pluginSlug === slug);
    const text = `${ofPlugin.length} unsent, the newest: ${ofPlugin[0]!.error}`;
    add(slug, { at: ofPlugin.at(-1)!.queuedAt, text });
  }
  return failures;
}

function Plugins({
  deps: { registry, plugins },
  failures,
}: {
  deps: Pick<Deps, "registry" | "plugins">;
  failures: ReadonlyMap<string, readonly Failure[]>;
}) {
  return (
    <>
      <Crumb />
      <h1>Plugins</h1>
      <Table columns={[["Plugin"], ["Type", "wide"], ["Version", "wide num"], ["State"]]}>
        {registry.all.map(({ slug, title, type, version }) => {
          const failing = failures.get(slug) ?? [];
          return (
            <tr key={slug}>
              <td>
                <span dir="auto">{title}</span> <span class="name">{slug}</span>
              </td>
              <td class="wide">{type}</td>
              <td class="wide num">{version}</td>
              <td>
                {plugins.find(type, slug) ? "in use" : <span class="quiet">not in use</span>}
                {failing.map(({ at, text }) => (
                  <small key={text} class="block">
                    <span class="late">
                      since <Clock at={at} />
                    </span>{" "}
                    <bdi>{text}</bdi>
                  </small>
                ))}
              </td>
            </tr>
          );
        })}
      </Table>
    </>
  );
}
