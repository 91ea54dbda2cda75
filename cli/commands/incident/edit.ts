import { Conflict } from "../../../platform/errors.ts";
import { nameLength } from "../../../platform/text.ts";
import { defineCommand } from "../../command.ts";
import { ExplainedConflict, UsageError } from "../../errors.ts";
import { clientArgs, idDashArgs, textArgs, textOption } from "../../incident/args.ts";
import {
  changeIncident,
  fieldsOf,
  type IncidentFields,
  refetch,
  resolutionOf,
} from "../../incident/change.ts";
import { draftKind } from "../../incident/drafts.ts";
import { editDraft } from "../../incident/editor.ts";
import {
  type Incident,
  IncidentClient,
  type IncidentDetail,
  type Named,
  pickNamed,
} from "../../incident/incident.ts";
import { replaceText } from "../../incident/replace_text.ts";
import { sectionsOf, sectionText, templateOf } from "../../incident/template.ts";
import { atText } from "../../incident/text.ts";
import {
  againLine,
  done,
  fromFile,
  idOf,
  option,
  sourceOf,
  type Written,
  withNext,
  withStdin,
  wordAndDash,
} from "../../incident/write.ts";
import { checkText, largestText } from "../../incident/written_text.ts";
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
    "If somebody else has changed the incident in the meantime, both changes are kept; two texts are merged. If they changed the same lines, your editor opens with both versions; without a terminal, or for another field, nothing is saved, and svc shows where both versions differ.",
  ],
  async run(options, io) {
    const { title, editor, type, priority, restricted, open, json } = options;
    const { word, file: given } = wordAndDash(options.id, options.dash, options);
    const id = idOf({ ...options, id: word });
    if (restricted && open) throw new UsageError("give either --restricted or --open");
    const { text, file } = sourceOf(options.description, given, editor, "--description");
    const description = file === undefined ? text : undefined;
    const { resolution } = options;
    const isPiped = resolution === "-";
    const isResolution = file !== undefined && draftKind(io.env, file) === "resolution";
    if (isResolution && resolution !== undefined)
      throw new UsageError("give only one of --resolution and the file of one");
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
      ]);
    await withStdin(
      io,
      // A kept resolution is known by its kind.
      isPiped ? "resolution" : "edit",
      { file: isPiped ? "-" : file },
      again(id),
      async (io) => {
        const { seen, kind } = await IncidentClient.within(io, async (client) => {
          const seen = await client.resolve(id);
          for (const { option, text, at } of impact) if (at) client.checkClock(option, text);
          return { seen, kind: await kindOf(client, type, priority) };
        });
        const { names, ...ids } = kind;
        const change: Partial<IncidentFields> = ids;
        if (title !== undefined) change.title = title.trim();
        if (restricted) change.visibility = "Restricted";
        if (open) change.visibility = "Open";
        for (const { field, at } of impact) change[field] = at?.toISOString() ?? null;
        const put: Put = (texts, before, now) =>
          IncidentClient.within(io, (client) => {
            const all = { ...differing(change, fieldsOf(seen)), ...texts };
            if (Object.keys(all).length === 0) return Promise.resolve(now);
            return changeIncident(client, now, all, names, { ...fieldsOf(seen), ...before });
          }).catch((error: unknown) => {
            // Only participants may restrict an incident.
            if (!restricted || !(error instanceof Conflict) || error instanceof ExplainedConflict)
              throw error;
            throw withNext(error, `To take part: svc incident join ${seen.name}`);
          });
        const hasText =
          description !== undefined || isNothing || editor || (file !== undefined && !isResolution);
        let putAll = put;
        if (resolution !== undefined || isResolution) {
          const source = isResolution ? { file } : isPiped ? { file: "-" } : { text: resolution };
          const written = await writtenResolution(io, source, seen);
          const command = hasText ? againLine(io, ["edit", seen.name]) : again(seen.name);
          putAll = (texts, before, now) =>
            replaceText<Incident, Incident>(io, "resolution", written, command, now, {
              ...resolutionOf(io, seen),
              put: (resolution, now) => {
                const more = resolution === (now.resolution ?? "") ? {} : { resolution };
                return put({ ...texts, ...more }, { ...before, resolution: now.resolution }, now);
              },
            });
        }
        const writeText = async () => {
          const written = await writtenIncident(io, { title, description, file }, seen, again(seen.name));
          return replaceText<Incident, Incident>(io, "edit", written, again(seen.name), seen, {
            label: seen.name,
            textOf: (now) => asTemplate(now, now),
            put: (text, now) => {
              const { title, description } = now;
              return putAll(parseEdited(text, now), { title, description }, now);
            },
            refetch: () => refetch(io, seen.id),
          });
        };
        const incident = hasText ? await writeText() : await putAll({}, {}, seen);
        done(io, incident, json, incident);
        for (const { word, at } of impact) if (at) io.stderr.write(`Impact ${word} at ${atText(at, io)}\n`);
      },
    );
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

/** Changes the options, and the texts, which were merged with those in `before`, of the incident as it is now. */
type Put = (
  texts: Partial<IncidentFields>,
  before: Partial<IncidentFields>,
  now: Incident,
) => Promise<Incident>;

/** Only what differs from what the user saw, so that nobody else's change is lost. */
function differing(change: Partial<IncidentFields>, seen: IncidentFields): Partial<IncidentFields> {
  return Object.fromEntries(
    Object.entries(change).filter(([field, value]) => seen[field as keyof IncidentFields] !== value),
  );
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

/** The title and description as one text. */
function asTemplate(
  { name }: Incident,
  { title, description }: Pick<Incident, "title" | "description">,
): string {
  return templateOf(
    [`${name}. This comment is not saved.`],
    [
      ["Title", title],
      ["Description", description],
    ],
  );
}

/** The text of the editor, or of a file: a draft of it, or a description. */
async function writtenIncident(
  io: Io,
  { file, title, description }: { file?: string; title?: string; description?: string },
  seen: IncidentDetail,
  again: string,
): Promise<Written> {
  const base = asTemplate(seen, seen);
  const withTitle = (description: string) =>
    asTemplate(seen, { title: title?.trim() ?? seen.title, description });
  if (description !== undefined) return { text: withTitle(description), key: crypto.randomUUID(), base };
  if (file !== undefined) {
    const written = await fromFile(io, file, "description", base);
    checkText(written.text, "description", largestText);
    // A draft that was kept before the incident could be read has no headings.
    const isTemplate = written.path !== undefined && /^# Title\s*$/im.test(written.text);
    if (isTemplate) return written;
    const unseen = written.isUnseen && { base: asTemplate(seen, { title: seen.title, description: "" }) };
    return { ...written, text: withTitle(written.text), ...unseen };
  }
  const { text, draft } = await editDraft(io, "edit", withTitle(seen.description), again, base);
  return { ...draft, text, base };
}

/** The text of `--resolution`, or a draft of it. */
async function writtenResolution(
  io: Io,
  { text, file }: { text?: string; file?: string },
  seen: Incident,
): Promise<Written> {
  const base = seen.resolution ?? "";
  if (file === undefined) return { text: text ?? "", key: crypto.randomUUID(), base };
  const written = await fromFile(io, file, "resolution", base);
  return { ...written, text: checkText(written.text, "resolution") };
}

/** What the user changed in the text. It takes precedence over an option, which the text began with. */
function parseEdited(text: string, now: Incident): Partial<IncidentFields> {
  const [title = "", description = ""] = sectionsOf(text, headings);
  checkTitle(title);
  if (description !== "") checkText(description, "description");
  return {
    ...(title !== sectionText(now.title) && { title }),
    ...(description !== sectionText(now.description) && { description }),
  };
}

function checkTitle(title: string): void {
  checkText(title, "title", nameLength);
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(title.trim()))
    throw new UsageError("the title must be a single line of text");
}
