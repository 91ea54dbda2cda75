import { and, asc, eq, isNull, or, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { lockName } from "../../../drizzle/lock_name.ts";
import { document, incident } from "../../../drizzle/schema/index.ts";
import { InvalidInput } from "../../../platform/errors.ts";
import { parseName, parseUrl } from "../../../platform/text.ts";
import type { MethodAnswer } from "../../plugin/methods.ts";
import { recordEvent } from "../timeline/event.ts";
import { keyFor, type StepRun } from "./ask.ts";
import { keepEach } from "./keep.ts";
import { recommend } from "./recommend.ts";

type Proposal = MethodAnswer<"document-resolver", "resolve">[number];

const columns = { id: document.id, name: document.name, incidentId: document.incidentId };
type Found = Pick<typeof document.$inferSelect, keyof typeof columns>;

/** Asks every resolver which documents help. Returns how many do, and what went wrong. */
export async function proposeDocuments(run: StepRun): Promise<{ proposed: number; failures: string[] }> {
  const { context, incident: facts } = run;
  const plugins = context.plugins.ofType("document-resolver");
  if (plugins.length === 0) return { proposed: 0, failures: [] };
  const key = keyFor(run, "proposed-documents");
  const asked = { plugins, method: "resolve", input: { incident: facts }, key } as const;
  const { kept, failures } = await keepEach(run, asked, (tx, slug, answer) =>
    keepProposals(tx, run, slug, answer),
  );
  return { proposed: kept.reduce((sum, one) => sum + one.proposed, 0), failures };
}

async function keepProposals(
  tx: Transaction,
  run: StepRun,
  pluginSlug: string,
  proposals: readonly Proposal[],
): Promise<{ proposed: number; faults: string[] }> {
  const incidentId = run.incident.id;
  const at = run.context.clock.now();
  const faults = new Set<string>();
  const documents = new Map<number, { words: string; reasons: Proposal["reasons"] }>();
  const parsed = parseProposals(proposals, faults);
  await lockLinks(tx, parsed);
  for (const { document: one, reasons } of parsed) {
    const found = "id" in one ? await byId(tx, run, one.id, faults) : await byLink(tx, run, one);
    if (!found) continue;
    const earlier = documents.get(found.id)?.reasons ?? [];
    documents.set(found.id, { words: wordsFor(run, found), reasons: [...earlier, ...reasons] });
  }
  for (const [id, { words, reasons }] of documents) {
    const isNew = await recommend(tx, "document", id, { incidentId, pluginSlug, reasons, at });
    if (!isNew) continue;
    await recordEvent(tx, {
      incidentId,
      at,
      actor: "system",
      source: pluginSlug,
      kind: "document.proposed",
      description: `Document proposed: ${words}`,
      data: { document_id: id },
    });
  }
  return { proposed: documents.size, faults: [...faults] };
}

/** Drops those with an invalid name or link. */
function parseProposals(proposals: readonly Proposal[], faults: Set<string>): Proposal[] {
  return proposals.flatMap(({ document: one, reasons }): Proposal[] => {
    if ("id" in one) return [{ document: one, reasons }];
    try {
      const [name, weblink] = [parseName("name", one.name), parseUrl("weblink", one.weblink)];
      return [{ document: { name, weblink }, reasons }];
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      faults.add("proposed a document without a valid name or link");
      return [];
    }
  });
}

/**
 * Locks the links, because nothing else keeps two transactions from creating documents for the same link. All links are
 * locked first and in a fixed order, so that two answers cannot deadlock.
 */
async function lockLinks(tx: Transaction, proposals: readonly Proposal[]): Promise<void> {
  const links = proposals.flatMap(({ document: one }) => ("id" in one ? [] : [one.weblink]));
  for (const link of [...new Set(links)].sort()) await lockName(tx, `document ${link}`);
}

/**
 * The timeline's words for a document. A document of another incident is not named: the timeline is never rewritten,
 * and that incident may become Restricted. Its id reveals nothing to those who may not read it.
 */
function wordsFor({ incident }: StepRun, { name, incidentId }: Found): string {
  return incidentId === null || incidentId === incident.id ? name : "a document of another incident";
}

/** What this incident's people may see: no document of another incident that is Restricted. */
const isFree = ({ incident: { id } }: StepRun) =>
  or(isNull(document.incidentId), eq(document.incidentId, id), eq(incident.visibility, "Open"));

/** Undefined for a document that this incident's people may not see, or that does not exist, which is a fault. */
async function byId(tx: Transaction, run: StepRun, id: number, faults: Set<string>) {
  const [found] = await tx
    .select({ ...columns, free: sql<boolean>`${isFree(run)}` })
    .from(document)
    .leftJoin(incident, eq(incident.id, document.incidentId))
    .where(eq(document.id, id))
    .for("key share", { of: document });
  if (!found) faults.add("proposed a document that does not exist");
  return found?.free ? found : undefined;
}

/** The document with this link, created if there is none. The link must be locked. */
async function byLink(tx: Transaction, run: StepRun, { name, weblink }: { name: string; weblink: string }) {
  const [found] = await tx
    .select(columns)
    .from(document)
    .leftJoin(incident, eq(incident.id, document.incidentId))
    .where(and(eq(document.weblink, weblink), isFree(run)))
    .orderBy(asc(document.id))
    .limit(1)
    .for("key share", { of: document });
  if (found) return found;
  const { id, visibility } = run.incident;
  const at = run.context.clock.now();
  const [made] = await tx
    .insert(document)
    .values({
      name,
      weblink,
      resourceType: "reference",
      createdAt: at,
      updatedAt: at,
      // Which pages help may itself be confidential.
      incidentId: visibility === "Restricted" ? id : null,
    })
    .returning(columns);
  return made;
}
