import { Conflict, InvalidInput } from "../../../platform/errors.ts";
import { nameLength } from "../../../platform/text.ts";
import { defineCommand } from "../../command.ts";
import { ExplainedConflict, UsageError } from "../../errors.ts";
import { clientArgs, idDashArgs, textArgs, textOption } from "../../incident/args.ts";
import { changeIncident, fieldsOf, type IncidentFields } from "../../incident/change.ts";
import { keyOfSeen, wasSeen } from "../../incident/drafts.ts";
import { editDraft } from "../../incident/editor.ts";
import {
  type Incident,
  IncidentClient,
  type IncidentDetail,
  type Named,
  pickNamed,
} from "../../incident/incident.ts";
import { sectionsOf, sectionText, templateOf } from "../../incident/template.ts";
import { atText } from "../../incident/text.ts";
import {
  againLine,
  done,
  followTheirs,
  fromFile,
  idOf,
  option,
  sending,
  sourceOf,
  type Written,
  withNext,
  withStdin,
  wordAndDash,
} from "../../incident/write.ts";
import { checkText, largestText, readText } from "../../incident/written_text.ts";
import type { Io } from "../../io.ts";
import { parseWhen } from "../../when.ts";

const timeOption = (description: string) =>
  ({
    type: "string",
    metavar: "TIME",
    description: `${description}: 10m (ago), 14:05 (today), 2026-11-20T14:05:00Z, or "" to clear it`,
    mayBeEmpty: true,
  }) as const;

export default defineCommand({
  summary: "Change an incident",
  args: {
    ...idDashArgs,
    title: { type: "string", metavar: "TITLE", description: "New title" },
    description: textOption("d", "New description"),
    ...textArgs("the description"),
    type: { type: "string", short: "t", metavar: "TYPE", description: "New type" },
    priority: { type: "string", short: "p", metavar: "PRIORITY", description: "New priority" },
    resolution: textOption("r", "New resolution"),
    impactStart: timeOption("When the harm began"),
    impactEnd: timeOption("When the harm ended"),
    restricted: { type: "boolean", description: "Make it visible only to its participants" },
    open: { type: "boolean", description: "Make it visible to everybody" },
    ...clientArgs,
  },
  examples: ["svc incident edit", 'svc incident edit INC-44 --title "Checkout is slow" -p Low'],
  notes: [
    "Without an option, title and description open in your editor (VISUAL, or else EDITOR).",
    "The impact is when customers were harmed; the times of report, stable and closed are those of the commands.",
    "If somebody else has changed the incident in the meantime, both changes are kept; if they changed the same field, nothing is saved, svc shows where both versions differ, and keeps a text in a file.",
  ],
  async run(options, io) {
    const { title, editor, type, priority, restricted, open, json } = options;
    const { word, file: given } = wordAndDash(options.id, options.dash, options);
    const id = idOf({ ...options, id: word });
    if (restricted && open) throw new UsageError("give either --restricted or --open");
    const { text, file } = sourceOf(options.description, given, editor, "--description");
    const description = file === undefined ? text : undefined;
    let { resolution } = options;
    const isPiped = resolution === "-";
    if (isPiped && file === "-") throw new UsageError("only one text can come from stdin");
    if (title !== undefined) checkTitle(title);
    const impact = impactOf(options, io);
    const changes = [title, description, file, type, priority, resolution, restricted, open, ...impact];
    const isNothing = changes.every((value) => value === undefined || value === false);
    if (isNothing && !editor && !io.canAsk())
      throw new UsageError("nothing to change: give an option, or --editor");

    const again = (incident = id) =>
      againLine(io, [
        "edit",
        incident,
        ...option("--title", title),
        ...option("--type", type),
        ...option("--priority", priority),
        ...(restricted ? ["--restricted"] : []),
        ...(open ? ["--open"] : []),
        ...impact.flatMap(({ option, at }) => [option, at?.toISOString() ?? ""]),
        ...option("--resolution", resolution),
      ]);
    await withStdin(io, "edit", { file: isPiped ? "-" : file }, again(), async (io) => {
      const { seen, kind } = await IncidentClient.within(io, async (client) => {
        const seen = await client.resolve(id);
        for (const { option, text, at } of impact) if (at) client.checkClock(option, text);
        return { seen, kind: await kindOf(client, type, priority) };
      });
      const { names, ...ids } = kind;
      const change: Partial<IncidentFields> = ids;
      if (isPiped) resolution = checkText(await readText(io, "-", "resolution"), "resolution");
      if (title !== undefined) change.title = title.trim();
      if (resolution !== undefined) change.resolution = resolution;
      if (restricted) change.visibility = "Restricted";
      if (open) change.visibility = "Open";
      for (const { field, at } of impact) change[field] = at?.toISOString() ?? null;
      const saved = (more: Partial<IncidentFields> = {}, before?: Edited["before"]) =>
        IncidentClient.within(io, (client) =>
          save(client, seen, { ...change, ...more }, names, before),
        ).catch((error: unknown) => {
          // Only participants may restrict an incident.
          if (!restricted || !(error instanceof Conflict) || error instanceof ExplainedConflict) throw error;
          throw withNext(error, `To take part: svc incident join ${seen.name}`);
        });
      const send = (written: Written, read: (written: Written) => Edited) =>
        sending(io, "edit", written, again(seen.name), () => {
          const { edited, before } = read(written);
          return saved(edited, before).catch(followTheirs<IncidentFields>(io, written, textsOf));
        });
      let incident: Incident;
      if (description !== undefined)
        incident = await send({ text: description, key: keyOfSeen(textsOf(seen)) }, () => ({
          edited: { description },
        }));
      else if (isNothing || editor || file !== undefined)
        incident = await send(await writtenIncident(io, { title, file }, seen, again(seen.name)), (written) =>
          parseEdited(written, seen),
        );
      else
        incident = await saved().catch((error: unknown) => {
          if (resolution === undefined || error instanceof InvalidInput) throw error;
          const line = `To try again: ${again(seen.name)}`;
          if (error instanceof Conflict) throw withNext(error, line);
          io.stderr.write(`${line}\n`);
          throw error;
        });
      done(io, incident, json, incident);
      for (const { word, at } of impact) if (at) io.stderr.write(`Impact ${word} at ${atText(at, io)}\n`);
    });
  },
});

/** The times of the impact that were given; null clears one. @throws UsageError */
function impactOf(options: { impactStart?: string; impactEnd?: string }, io: Io) {
  const given = [
    { field: "impact_started_at", word: "started", option: "--impact-start", text: options.impactStart },
    { field: "impact_ended_at", word: "ended", option: "--impact-end", text: options.impactEnd },
  ] as const;
  return given.flatMap(({ text, ...one }) =>
    text === undefined
      ? []
      : [{ ...one, text, at: text === "" ? null : parseWhen(one.option, text, io.clock.now(), false) }],
  );
}

/** Only what differs from what the user saw, so that nobody else's change is lost. */
async function save(
  client: IncidentClient,
  seen: IncidentDetail,
  change: Partial<IncidentFields>,
  names: Partial<Record<keyof IncidentFields, string>>,
  before?: Partial<IncidentFields>,
) {
  const differing = Object.entries(change).filter(
    ([field, value]) => seen[field as keyof IncidentFields] !== value,
  );
  if (differing.length === 0) return seen;
  return changeIncident(client, seen, Object.fromEntries(differing), names, before);
}

/** The ids of a type and a priority, with their names. */
async function kindOf(client: IncidentClient, type: string | undefined, priority: string | undefined) {
  const find = async (path: string, text: string | undefined, what: string) =>
    text === undefined ? undefined : pickNamed(await client.list<Named>(path), text, what);
  const found = {
    incident_type_id: await find("/incident_types/", type, "type"),
    incident_priority_id: await find("/incident_priorities/", priority, "priority"),
  };
  const given = Object.entries(found).filter((one): one is [string, Named] => one[1] !== undefined);
  const ids: Partial<IncidentFields> = Object.fromEntries(given.map(([field, { id }]) => [field, id]));
  return { ...ids, names: Object.fromEntries(given.map(([field, { name }]) => [field, name])) };
}

const headings = ["Title", "Description"];

/** The text of the editor, or of a file: a draft of it, or a description. */
async function writtenIncident(
  io: Io,
  { file, title }: { file?: string; title?: string },
  seen: IncidentDetail,
  again: string,
): Promise<Written> {
  const comment = [`${seen.name}. This comment is not saved.`];
  const asTemplate = (description: string) =>
    templateOf(comment, [
      ["Title", title?.trim() ?? seen.title],
      ["Description", description],
    ]);
  const key = keyOfSeen(textsOf(seen));
  if (file !== undefined) {
    const written = await fromFile(io, file, "description", key);
    checkText(written.text, "description", largestText);
    // A draft that was kept before the incident could be read has no headings.
    const isTemplate = written.path !== undefined && /^# Title\s*$/im.test(written.text);
    return isTemplate ? written : { ...written, text: asTemplate(written.text) };
  }
  const { text, draft } = await editDraft(io, "edit", asTemplate(seen.description), again, key);
  return { ...draft, text };
}

/** What a text is compared with to find out who has changed it. */
const textsOf = ({ title, description }: Partial<IncidentFields>) =>
  [title, description].map((text) => text && sectionText(text));

interface Edited {
  edited: Partial<IncidentFields>;
  /** What the user saw, as far as it is known, if it is no longer current. */
  before?: Partial<IncidentFields>;
}

/** What the user changed in the text. It takes precedence over an option, which the text began with. */
function parseEdited({ text, key }: Written, seen: IncidentDetail): Edited {
  const [title = "", description = ""] = sectionsOf(text, headings);
  checkTitle(title);
  if (description !== "") checkText(description, "description");
  const edited: Partial<IncidentFields> = {};
  const before: Partial<IncidentFields> = fieldsOf(seen);
  const now = textsOf(seen);
  for (const [at, field] of (["title", "description"] as const).entries()) {
    const text = { title, description }[field];
    if (wasSeen(key, text, at) ?? text === now[at]) continue;
    edited[field] = text;
    if (wasSeen(key, now[at]!, at) === false) delete before[field];
  }
  return { edited, before };
}

function checkTitle(title: string): void {
  checkText(title, "title", nameLength);
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(title.trim()))
    throw new UsageError("the title must be a single line of text");
}
