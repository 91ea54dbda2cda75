import { getContent, putContent } from "../../../core/incident/document/content.ts";
import { findIncident } from "../../../core/incident/incident/incident.ts";
import { reportIncident } from "../../../core/incident/lifecycle/report.ts";
import { updateIncident } from "../../../core/incident/lifecycle/update.ts";
import { writeReport } from "../../../core/incident/report/write.ts";
import type { AppContext } from "../../../core/plugin/context.ts";
import { signedIn } from "./actor.ts";
import type { Example } from "./example.ts";
import type { GoldenWorker } from "./golden_schedule.ts";

const labels = "Labels of one carrier come out blank";
const replica = "Northern replica is twenty minutes behind";
const messages = "Text messages to customers arrive twice";

/** The events of the evening, and when a worker runs what is due. */
export async function playEvening(worker: GoldenWorker): Promise<void> {
  const { context, example } = worker;
  const glossary = glossaryOf(example);
  const catalog = catalogOf(example);
  await worker.write("glossary.json", JSON.stringify(glossary));
  await worker.write("catalog-info.yaml", JSON.stringify(catalog));

  await worker.works("2026-11-20T14:47:00Z");
  await worker.works("2026-11-20T14:47:30Z");
  await worker.works("2026-11-20T15:00:00Z");

  await worker.happens("2026-11-20T15:10:00Z", `Kofi writes a status report of "${labels}"`, () =>
    writeReport(context, signedIn("kofi"), {
      incidentId: idOf(example, labels),
      conditions: "Both servers print again.",
      needs: "Nothing.",
      actions: "Depots compare a sample.",
    }),
  );
  await worker.happens(
    "2026-11-20T15:20:00Z",
    `Dave ticks a task of "${replica}" and writes another into its document`,
    () =>
      rewrite(context, example, replica, (text) =>
        text
          .replace("- [ ]", "- [x]")
          .concat("- [ ] Tell *everybody* when the north is free @dave (due 2026-11-24)\n"),
      ),
  );
  await worker.happens("2026-11-20T15:30:00Z", `Alice sets "${messages}" to Stable`, () =>
    setStatus(context, "alice", idOf(example, messages), "Stable"),
  );
  await worker.happens(
    "2026-11-20T16:00:00Z",
    "The glossary loses egress, calls TTL otherwise and gains carrier; the catalog is cut off",
    async () => {
      const changed = glossary
        .filter(({ term }) => term !== "egress")
        .map((one) => (one.term === "TTL" ? { ...one, term: "time to live" } : one));
      const carrier = { id: "T-100", term: "carrier", definition: "Who brings a parcel to the door." };
      await worker.write("glossary.json", JSON.stringify([...changed, carrier]));
      await worker.write("catalog-info.yaml", JSON.stringify(catalog).slice(0, 1000));
    },
  );
  await worker.happens(
    "2026-11-20T16:50:00Z",
    "Zoe reports an incident, and nothing that follows from it is done yet",
    async () => {
      const { incidentTypeId, incidentPriorityId } = await readIncident(
        context,
        "zoe",
        idOf(example, labels),
      );
      const text = { title: "Scanners of <one> depot are offline", description: "All twelve since noon." };
      return reportIncident(context, signedIn("zoe"), { ...text, incidentTypeId, incidentPriorityId });
    },
  );
  await worker.works("2026-11-20T17:00:00Z");
  await worker.works("2026-11-20T17:00:30Z");
  await worker.works("2026-11-20T23:00:00Z");
}

function idOf({ incidents }: Example, title: string): number {
  const found = incidents.find((one) => one.title === title);
  if (!found) throw new Error(`the example has no incident "${title}" any more`);
  return found.id;
}

/** The example's terms of that source, as a file of `term-source`. */
function glossaryOf({ terms, definitions }: Example) {
  return terms
    .filter(({ source, deletedAt }) => source !== null && deletedAt === null)
    .map(({ id, externalId, text }) => ({
      id: externalId,
      term: text,
      definition: definitions.find(({ termIds }) => termIds.includes(id))?.text,
    }));
}

/** The example's applications as a file of `backstage-catalog`, in JSON, which is YAML. */
function catalogOf({ applications }: Example) {
  return applications
    .filter(({ source }) => source !== null)
    .map(({ name, description, uri, externalId }) => ({
      apiVersion: "backstage.io/v1alpha1",
      kind: "Component",
      metadata: {
        name: externalId?.split("/")[1],
        title: name,
        description,
        annotations: { "backstage.io/view-url": uri },
      },
    }));
}

async function readIncident({ db }: AppContext, name: string, id: number) {
  const found = await findIncident(db, signedIn(name), id);
  if (!found) throw new Error(`there is no incident ${id} that ${name} may read`);
  return found;
}

async function setStatus(context: AppContext, name: string, id: number, status: "Stable") {
  await updateIncident(context, signedIn(name), { ...(await readIncident(context, name, id)), status });
}

async function rewrite(
  context: AppContext,
  example: Example,
  title: string,
  change: (text: string) => string,
) {
  const of = idOf(example, title);
  const { id } = example.documents.find(
    ({ incidentId, resourceType }) => incidentId === of && resourceType === "incident",
  )!;
  const { text, version } = await getContent(context, signedIn("dave"), id);
  await putContent(context, signedIn("dave"), { id, version, text: change(text) });
}
