import type { Static } from "elysia";
import { Conflict, NotFound } from "../../platform/errors.ts";
import type { documentView } from "../../server/document/model.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { type Column, printTable } from "../table.ts";
import { printable, printableLines, printJson } from "../text.ts";
import { keyOfSeen, removeDraft, wasSeen } from "./drafts.ts";
import { editDraft } from "./editor.ts";
import { announce, IncidentClient, type IncidentDetail } from "./incident.ts";
import { postOnce } from "./post_once.ts";
import { putChange } from "./put_change.ts";
import { linkText } from "./text.ts";
import {
  againLine,
  checked,
  done,
  followTheirs,
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
import { checkText } from "./written_text.ts";

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
    .map((one) => `  svc incident doc open ${one.document_id}   # ${printable(one.name, 100)}`);
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

/** `svc incident doc open` */
export async function docOpenCommand(options: { doc: string } & Common, io: Io): Promise<void> {
  const { doc, incident, json } = options;
  const { found, content } = await IncidentClient.within(io, async (client) => {
    const found = await findDocument(client, doc, incident);
    const content = await client.call<Content>("GET", `/documents/${found.id}/content`).catch((error) => {
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

/** `svc incident doc edit` */
export async function docEditCommand(
  options: { doc: string; dash?: string; file?: string } & Common,
  io: Io,
): Promise<void> {
  const { incident: typed, json } = options;
  const { word: doc, file } = wordAndDash(options.doc, options.dash, options);
  if (doc === undefined) throw new UsageError("missing argument: DOCUMENT");
  if (file === undefined && !io.canAsk())
    throw new UsageError("missing option: --file (your editor opens only on a terminal)");
  const words = ["doc", "edit", doc, ...option("-i", typed)];
  await withStdin(io, "document", { file }, againLine(io, words), async (io) => {
    const { found, incident, before } = await IncidentClient.within(io, async (client) => {
      const found = await findDocument(client, doc, typed);
      const incident = found.incident_id === null ? undefined : await client.get(String(found.incident_id));
      const before = await client.call<Content>("GET", `/documents/${found.id}/content`).catch(ifNone);
      return { found, incident, before: before ?? { text: "", version: null } };
    });
    const again = againLine(io, ["doc", "edit", String(found.id)]);
    const written = await editedContent(io, file, before.text, again);
    if (written === undefined) {
      io.stderr.write("Nothing was changed.\n");
      return;
    }
    const after = await sending(io, "document", written, again, () =>
      IncidentClient.within(io, (client) => putContent(client, found, before, written)).catch(
        followTheirs<{ text: string }>(io, written, ({ text }) => [text]),
      ),
    );
    if (incident) announce(io, incident);
    if (json) printJson(io, { ...found, content: after });
  });
}

async function editedContent(
  io: Io,
  file: string | undefined,
  before: string,
  again: string,
): Promise<Written | undefined> {
  const key = keyOfSeen([before]);
  if (file !== undefined) {
    const written = await fromFile(io, file, "document", key);
    checkText(written.text, "document", longestContent);
    return written;
  }
  const { text, draft } = await editDraft(io, "document", before, again, key);
  if (text !== before) return { ...draft, text };
  removeDraft(io.env, draft.path);
  return undefined;
}

/** @throws Conflict if somebody else has changed the text in the meantime */
async function putContent(client: IncidentClient, { id }: Document, now: Content, { text, key }: Written) {
  const path = `/documents/${id}/content`;
  return putChange<Content, { text: string }>(
    now,
    { text },
    {
      fieldsOf: ({ text }) => ({ text }),
      put: (body) => client.call("PUT", path, body),
      refetch: async () => (await client.call<Content>("GET", path).catch(ifNone)) ?? now,
      label: () => `The text of document ${id}`,
      shown: (text) => text,
    },
    wasSeen(key, now.text) === false ? {} : undefined,
  );
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
