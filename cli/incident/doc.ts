import type { Static } from "elysia";
import { Conflict, NotFound } from "../../platform/errors.ts";
import type { documentRedactionView, versionView } from "../../server/document/content.ts";
import type { documentView } from "../../server/document/model.ts";
import { confirmByName } from "../confirm.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { type Column, printTable } from "../table.ts";
import { printable, printableLines, printJson } from "../text.ts";
import { limitOf, tellMore } from "./args.ts";
import { removeDraft } from "./drafts.ts";
import { editDraft } from "./editor.ts";
import { IncidentClient, type IncidentDetail, printIncident } from "./incident.ts";
import { postOnce } from "./post_once.ts";
import { replaceText } from "./replace_text.ts";
import { linkText, whenText } from "./text.ts";
import {
  againLine,
  checked,
  done,
  fromFile,
  type IdOptions,
  idOf,
  incidentOf,
  option,
  sending,
  sourceOf,
  splitWords,
  takeDash,
  type WordOptions,
  type Written,
  withStdin,
  wordAndDash,
} from "./write.ts";
import { checkText, optionText } from "./written_text.ts";

export type Document = Static<typeof documentView>;

export interface Content {
  text: string;
  version: string | null;
}

type Common = Omit<WordOptions, "words">;

/** Characters; the limit of the server. */
const longestContent = 1_000_000;

const columns: Column[] = [
  { header: "ID" },
  { header: "TYPE", leaveOut: 1 },
  { header: "NAME", flexible: true },
  { header: "LINK", leaveOut: 2 },
];

/** `svc incident doc list` */
export async function docListCommand({ json, ...named }: IdOptions, io: Io): Promise<void> {
  const id = idOf(named);
  const { incident, items } = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(id);
    return { incident, items: await documentsOf(client, incident) };
  });
  if (json) return printJson(io, { items });
  const proposed = proposedLines(incident).map((line) => `${line}\n`);
  io.stderr.write(items.length === 0 ? ["No documents found.\n", ...proposed].join("") : "");
  if (items.length === 0) return;
  const rows = items.map((one) => [
    String(one.id),
    printable(one.resource_type, 40),
    printable(one.name),
    printable(one.weblink ?? ""),
  ]);
  printTable(io, columns, rows);
  io.stderr.write(proposed.join(""));
}

const mostProposed = 10;

/** The documents, such as runbooks, that svc proposes for an incident. */
export function proposedLines({ name, documents }: IncidentDetail): string[] {
  const proposed = [...new Map(documents.map((one) => [one.document_id, one])).values()];
  if (proposed.length === 0) return [];
  const lines = proposed
    .slice(0, mostProposed)
    .map((one) => `  svc incident doc show ${one.document_id}   # ${printable(one.name, 100)}`);
  const left = proposed.length - lines.length;
  return [`Documents that may help with ${name}:`, ...lines, ...(left > 0 ? [`  and ${left} more`] : [])];
}

interface DocNewOptions extends WordOptions {
  type: string;
  link?: string;
  file?: string;
  editor?: boolean;
}

/** `svc incident doc new` */
export async function docNewCommand(options: DocNewOptions, io: Io): Promise<void> {
  const { type, link, editor, json } = options;
  const { words: given, file } = takeDash(options);
  const { incident: typed, words } = splitWords({ ...options, words: given }, "doc new NAME");
  const name = words.join(" ").trim();
  if (name === "") throw new UsageError("missing argument: NAME");
  sourceOf(undefined, file, editor);
  const again = (incident = typed) =>
    againLine(io, [
      "doc",
      "new",
      ...option("-i", incident),
      name,
      ...option("--type", type),
      ...option("--link", link),
    ]);
  await withStdin(io, "document", { file }, again(), async (io) => {
    const incident = await incidentOf(io, typed);
    const text = await newText(io, file, editor, again(incident.name));
    const create = () =>
      IncidentClient.within(io, (client) => {
        const body = { name, resource_type: type, incident_id: incident.id, weblink: link };
        return text === undefined
          ? postOnce<Document>(io, client, "document", body)
          : client.post<Document>("/documents/", body, { key: text.key });
      });
    const created =
      text === undefined
        ? await create()
        : await sending(io, "document", text, again(incident.name), create, false);
    if (text !== undefined) {
      // From here on, repeating the command would add a second document.
      const edit = againLine(io, ["doc", "edit", String(created.id)]);
      await sending(io, "document", text, edit, () => firstText(io, created, text.text));
    }
    done(io, incident, json, created);
    if (!json) io.stdout.write(`${created.id}\n`);
  });
}

async function firstText(io: Io, { id }: Document, text: string): Promise<void> {
  try {
    await IncidentClient.within(io, async (client) => {
      const path = `/documents/${id}/content`;
      const before = await client.call<Content>("GET", path).catch(ifNone);
      await client.call("PUT", path, { text, version: before?.version ?? null });
    });
  } catch (error) {
    io.stderr.write(`Document ${id} was created, without its text.\n`);
    throw error;
  }
}

async function newText(
  io: Io,
  file: string | undefined,
  editor: boolean | undefined,
  again: string,
): Promise<Written | undefined> {
  if (file !== undefined) {
    const written = await fromFile(io, file, "document");
    return { ...written, text: checkText(written.text, "document", longestContent) };
  }
  if (!editor) return undefined;
  const { text, draft } = await editDraft(io, "document", "", again);
  if (text.trim() === "") {
    removeDraft(io.env, draft.path);
    return undefined;
  }
  return checked(io, text, "document", draft, again, longestContent);
}

/** A document has no text yet. */
function ifNone(error: unknown): undefined {
  if (error instanceof Conflict || error instanceof NotFound) return undefined;
  throw error;
}

/** `svc incident doc show` */
export async function docShowCommand(
  options: { doc: string; version?: number } & Common,
  io: Io,
): Promise<void> {
  const { doc, incident, version, json } = options;
  const { found, content } = await IncidentClient.within(io, async (client) => {
    const found = await findDocument(client, doc, incident);
    if (version !== undefined) return { found, content: await versionOf(client, found, version) };
    const content = await contentOf(client, found).catch((error) => {
      // Its text is elsewhere, and its link leads there.
      if (found.weblink !== null && ifNone(error) === undefined) return undefined;
      throw error;
    });
    return { found, content };
  });
  if (json) return printJson(io, { ...found, content: content ?? null });
  if (content === undefined) {
    io.stdout.write(`${linkText(printable(found.weblink!), found.weblink!, io)}\n`);
    return;
  }
  // Other programs get the text as it is.
  const text = io.stdout.isTTY ? printableLines(content.text).join("\n") : content.text.replace(/\n$/, "");
  io.stdout.write(`${text}\n`);
}

type Version = Static<typeof versionView>;
type DocumentRedaction = Static<typeof documentRedactionView>;

/** `svc incident doc history` */
export async function docHistoryCommand(
  options: { doc: string; limit: number } & Common,
  io: Io,
): Promise<void> {
  const { doc, incident, json } = options;
  const limit = limitOf(options.limit);
  const all = await IncidentClient.within(io, async (client) => {
    const { id } = await findDocument(client, doc, incident);
    return client.list<Version>(`/documents/${id}/versions/`, {}, limit + 1);
  });
  const items = all.slice(0, limit);
  if (json) printJson(io, { items });
  else {
    const rows = items.map(({ version, at, author, redacted }) => [
      version,
      whenText(at, io),
      `${printable(author ?? "")}${redacted ? " (redacted)" : ""}`,
    ]);
    printTable(io, ["VERSION", "WRITTEN", { header: "AUTHOR", flexible: true }], rows);
  }
  if (all.length > limit) tellMore(io, limit, "GET /documents/{document_id}/versions/");
}

/** `svc incident doc redact` */
export async function docRedactCommand(
  options: { doc: string; version?: number; reason: string; yes?: boolean } & Common,
  io: Io,
): Promise<void> {
  const { doc, incident: typed, version, reason, yes, json } = options;
  checkVersion(version);
  await IncidentClient.within(io, async (client) => {
    const found = await findDocument(client, doc, typed);
    const incident = found.incident_id === null ? undefined : await client.get(String(found.incident_id));
    const which = version === undefined ? "the text and all its versions" : `version ${version} of the text`;
    const where = incident === undefined ? "" : ` of ${incident.name}`;
    const what = `This removes ${which} of document ${found.id}${where}, "${printable(found.name, 80)}". It cannot be undone.`;
    await confirmByName(io, what, String(found.id), yes);
    const redaction = await client.post<DocumentRedaction>(`/documents/${found.id}/redact`, {
      reason: await optionText(io, reason, "reason"),
      version: version?.toString(),
    });
    if (incident) printIncident(io, incident);
    if (json) printJson(io, redaction);
    io.stderr.write(`${printable(redaction.notice, 200)}\n`);
  });
}

/** @throws UsageError */
function checkVersion(version: number | undefined): void {
  if (version !== undefined && (!Number.isSafeInteger(version) || version < 1))
    throw new UsageError("--version must be a number of svc incident doc history");
}

/** @throws UsageError, NotFound */
async function versionOf(client: IncidentClient, { id }: Document, version: number) {
  checkVersion(version);
  return client.call<Version & Content>("GET", `/documents/${id}/versions/${version}`);
}

/** `svc incident doc edit` */
export async function docEditCommand(
  options: { doc: string; dash?: string; file?: string; version?: number } & Common,
  io: Io,
): Promise<void> {
  const { incident: typed, version, json } = options;
  const { word: doc, file } = wordAndDash(options.doc, options.dash, options);
  if (doc === undefined) throw new UsageError("missing argument: DOCUMENT");
  if (file === undefined && !io.canAsk())
    throw new UsageError("missing option: --file (your editor opens only on a terminal)");
  const words = ["doc", "edit", doc, ...option("-i", typed), ...option("--version", version?.toString())];
  // Read before stdin: the program that writes to it may have read the same text.
  const reading = IncidentClient.within(io, async (client) => {
    const found = await findDocument(client, doc, typed);
    const incident = found.incident_id === null ? undefined : await client.get(String(found.incident_id));
    const now = (await contentOf(client, found).catch(ifNone)) ?? { text: "", version: null };
    const base = version === undefined ? now.text : (await versionOf(client, found, version)).text;
    return { found, incident, now, base };
  });
  // Awaited below, where stdin is kept if it fails.
  reading.catch(() => {});
  await withStdin(io, "document", { file }, againLine(io, words), async (io) => {
    const { found, incident, now, base } = await reading;
    const again = againLine(io, ["doc", "edit", String(found.id)]);
    const written = await editedContent(io, { file, isNamed: version !== undefined }, base, again);
    if (written === undefined) {
      io.stderr.write("Nothing was changed.\n");
      return;
    }
    const within = <T>(work: (client: IncidentClient) => Promise<T>) => IncidentClient.within(io, work);
    const after = await replaceText<Content, Content>(io, "document", written, again, now, {
      label: `The text of document ${found.id}`,
      textOf: ({ text }) => text,
      put: (text, { version }) =>
        within((client) => client.call("PUT", `/documents/${found.id}/content`, { text, version })),
      refetch: async () => (await within((client) => contentOf(client, found)).catch(ifNone)) ?? now,
    });
    if (incident) printIncident(io, incident);
    if (json) printJson(io, { ...found, content: after });
  });
}

const contentOf = (client: IncidentClient, { id }: Document) =>
  client.call<Content>("GET", `/documents/${id}/content`);

async function editedContent(
  io: Io,
  { file, isNamed }: { file: string | undefined; isNamed: boolean },
  base: string,
  again: string,
): Promise<Written | undefined> {
  if (file !== undefined) {
    const written = await fromFile(io, file, "document", base, isNamed);
    checkText(written.text, "document", longestContent);
    return written;
  }
  const { text, draft } = await editDraft(io, "document", base, again, base);
  if (text !== base) return { ...draft, text, base };
  removeDraft(io.env, draft.path);
  return undefined;
}

async function documentsOf(client: IncidentClient, incident: IncidentDetail): Promise<Document[]> {
  return client.list<Document>("/documents/", { incident_id: String(incident.id), sort: "id" });
}

/** @param incident that it must belong to, or be proposed for */
async function byNumber(client: IncidentClient, number: string, incident?: string): Promise<Document> {
  let found: Document;
  try {
    found = await client.call<Document>("GET", `/documents/${number}`);
  } catch (error) {
    if (!(error instanceof NotFound)) throw error;
    throw new NotFound(`there is no document ${number} that you may see: svc incident doc list`, {
      cause: error,
    });
  }
  if (incident === undefined) return found;
  const { id, name, documents } = await client.resolve(incident);
  if (found.incident_id !== id && !documents.some(({ document_id }) => document_id === found.id))
    throw new NotFound(`${name} has no document ${number}: svc incident doc list ${name}`);
  return found;
}

/** Finds a document by its number or name. @throws NotFound */
async function findDocument(
  client: IncidentClient,
  text: string,
  incident: string | undefined,
): Promise<Document> {
  const word = text.trim();
  if (/^#?[1-9]\d{0,14}$/.test(word)) return byNumber(client, word.replace("#", ""), incident);
  const resolved = await client.resolve(incident);
  const proposed = resolved.documents.map(({ document_id: id, name }) => ({ id, name }));
  const own = await documentsOf(client, resolved);
  const documents = [...new Map([...proposed, ...own].map((one) => [one.id, one])).values()];
  const wanted = word.toLowerCase();
  const found = documents.filter(({ name }) => name.toLowerCase() === wanted);
  if (found.length === 1) return client.call("GET", `/documents/${found[0]!.id}`);
  if (found.length > 1) {
    const ids = found.map(({ id }) => id).join(", ");
    throw new UsageError(`"${printable(text, 80)}" is the name of several documents: ${ids}`);
  }
  const names = documents.map(({ id, name }) => `${id} (${printable(name, 60)})`).join(", ");
  const hint = names === "" ? "it has no documents" : `it has ${names}`;
  throw new NotFound(`${resolved.name} has no document "${printable(text, 80)}": ${hint}`);
}
