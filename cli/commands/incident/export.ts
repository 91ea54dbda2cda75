import type { ExportedContent, ExportedIncident } from "../../../core/incident/export/file.ts";
import { Conflict, NotFound, Unavailable } from "../../../platform/errors.ts";
import { outputArgs, outputFile } from "../../client/output_file.ts";
import { NetworkFault } from "../../client/request.ts";
import { defineCommand } from "../../command.ts";
import { affectedBy, nothingAffected } from "../../incident/affected.ts";
import { clientArgs, idArg } from "../../incident/args.ts";
import type { Content, Document } from "../../incident/doc.ts";
import {
  IncidentClient,
  type IncidentDetail,
  ifUnknown,
  type Message,
  printIncident,
  type StatusReport,
  type Task,
  type TimelineEvent,
} from "../../incident/incident.ts";
import type { Link } from "../../incident/link.ts";
import { idOf } from "../../incident/write.ts";
import type { Io } from "../../io.ts";
import { counted, printable } from "../../text.ts";

export default defineCommand({
  summary: "Export an incident with all its parts",
  args: {
    ...idArg,
    format: {
      type: "enum",
      choices: ["md", "json", "html"],
      default: "md",
      metavar: "FORMAT",
      description: "Format of the file",
    },
    ...outputArgs,
    ...clientArgs,
  },
  examples: ["svc incident export INC-44 -o INC-44.md", "svc incident export --format html -o review.html"],
  notes: [
    "The export contains only what you may see, with the texts of the documents and the messages to everyone, but without messages to one person, because an export is for others.",
  ],
  async run({ format, output, force, json, ...named }, io) {
    const { exported } = await import("../../../core/incident/export/file.ts");
    const file = outputFile(output, force);
    let text = "";
    const incident = await IncidentClient.within(io, async (client) => {
      const found = await client.resolve(idOf(named));
      const parts = await readAll(io, client, found);
      for await (const piece of exported(parts, json ? "json" : format)) text += piece;
      return found;
    });
    if (!file) {
      io.stdout.write(text);
      return;
    }
    file.write(text);
    printIncident(io, incident);
  },
});

const all = Number.POSITIVE_INFINITY;
/** In seconds. The text may come from another system. */
const contentTimeout = 60;

async function readAll(io: Io, client: IncidentClient, incident: IncidentDetail): Promise<ExportedIncident> {
  const path = `/incidents/${incident.id}`;
  const incident_id = String(incident.id);
  const [participants, affected, links, reports, tasks, documents, messages, events] = await Promise.all([
    client.participants(incident, false),
    affectedBy(client, incident).catch(ifUnknown(nothingAffected)),
    client.list<Link>(`${path}/links/`, {}, all).catch(ifUnknown<Link[]>([])),
    client.list<StatusReport>(`${path}/reports/`, {}, all),
    client.list<Task>("/tasks/", { incident_id, sort: "id" }, all),
    client.list<Document>("/documents/", { incident_id, sort: "id" }, all),
    client.list<Message>(`${path}/messages/`, {}, all),
    client.list<TimelineEvent>(`${path}/events/`, {}, all),
  ]);
  // The API lists these with the newest first.
  for (const list of [reports, messages, events]) list.reverse();
  const left = messages.filter(({ recipient }) => recipient !== null).length;
  if (left > 0)
    io.stderr.write(
      `Left out: ${counted(left, "message")} to one person (svc incident messages ${incident.name})\n`,
    );
  return {
    ...{ incident, participants, affected, links, reports, tasks, documents, messages, events },
    contentOf: (document) => contentOf(io, client, document),
  };
}

/** One text that cannot be read does not spoil the rest of an export, but both say so. */
async function contentOf(io: Io, client: IncidentClient, { id }: { id: number }): Promise<ExportedContent> {
  try {
    const options = { timeout: contentTimeout };
    return { content: await client.call<Content>("GET", `/documents/${id}/content`, undefined, options) };
  } catch (error) {
    // It has none, such as a link.
    if (error instanceof Conflict) return { content: null };
    const isOfPlugin =
      error instanceof NotFound || (error instanceof Unavailable && !(error instanceof NetworkFault));
    if (!isOfPlugin) throw error;
    const detail = printable(error.detail);
    io.stderr.write(`svc: warning: the text of document ${id} could not be read: ${detail}\n`);
    return { content: null, content_error: error.detail };
  }
}
