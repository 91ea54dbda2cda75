import { Elysia } from "elysia";
import { type DocumentText, getContent, putContent } from "../core/incident/document/content.ts";
import { getDocument } from "../core/incident/document/get.ts";
import { Conflict, NotFound } from "../platform/errors.ts";
import { Alert, type Trouble } from "./pages/forms.tsx";
import { type Field, Form } from "./parts/form.tsx";
import { Markdown } from "./parts/markdown.tsx";
import { documentPath, incidentPath } from "./paths.ts";
import { type PageContent, pathId, type Site, type Visit } from "./site.tsx";

type Found = Awaited<ReturnType<typeof getDocument>>;

/** The text of a document, and how it is changed. */
export function documentPages(site: Site) {
  const { deps } = site;
  const documentOf = ({ visitor, params }: Visit) =>
    getDocument(deps, visitor.actor, pathId(params.document_id, "There is no such document"));

  /** Undefined if nothing keeps a text for it. */
  const textOf = async ({ visitor }: Visit, { id }: Found): Promise<DocumentText | undefined> => {
    try {
      return await getContent(deps, visitor.actor, id);
    } catch (error) {
      if (error instanceof Conflict || error instanceof NotFound) return undefined;
      throw error;
    }
  };

  async function fieldsOf(visit: Visit, found: Found): Promise<Field[]> {
    const kept = await textOf(visit, found);
    return [
      { name: "version", label: "", kind: "hidden", value: kept?.version ?? "" },
      {
        name: "text",
        label: "Text",
        kind: "text",
        value: kept?.text,
        help: "Markdown. Lines like “- [ ] Ask Bob @bob (due 2026-12-01)” become tasks",
      },
    ];
  }

  async function view(visit: Visit): Promise<PageContent> {
    const found = await documentOf(visit);
    return { title: found.name, content: <DocumentPage found={found} kept={await textOf(visit, found)} /> };
  }

  async function form(visit: Visit): Promise<PageContent> {
    const found = await documentOf(visit);
    return editing(found, { fields: await fieldsOf(visit, found) });
  }

  const save = site.submit(async (visit, values) => {
    const found = await documentOf(visit);
    return {
      run: async (context) => {
        const change = { id: found.id, text: values.text("text"), version: values.given("version") ?? null };
        await putContent(context, visit.visitor.actor, change);
        return documentPath(found.id);
      },
      // A plugin writes the text, which may take a while.
      isVersioned: true,
      again: async (fill) => editing(found, fill(await fieldsOf(visit, found))),
    };
  });

  return new Elysia({ name: "document pages", prefix: "/documents/:document_id" })
    .get("/", site.read(view))
    .get("/edit", site.read(form))
    .post("/edit", save);
}

function DocumentPage({ found, kept }: { found: Found; kept: DocumentText | undefined }) {
  const { id, name, description, incidentId, weblink } = found;
  return (
    <article>
      <Crumb incidentId={incidentId} />
      <div class="row head">
        <h1 dir="auto">{name}</h1>
        <a class="button" href={`${documentPath(id)}/edit`}>
          {kept ? "Edit" : "Write"}
        </a>
      </div>
      {description !== "" && (
        <p class="quiet" dir="auto">
          {description}
        </p>
      )}
      {weblink && /^https?:/.test(weblink) && (
        <p>
          <a href={weblink} rel="noreferrer">
            {weblink}
          </a>
        </p>
      )}
      {kept ? <Markdown text={kept.text} /> : <p class="empty">It has no text here.</p>}
    </article>
  );
}

function editing(
  found: Found,
  { fields, trouble }: { fields: readonly Field[]; trouble?: Trouble },
): PageContent {
  const path = documentPath(found.id);
  return {
    title: `Edit ${found.name}`,
    content: (
      <div class="writing">
        <Crumb incidentId={found.incidentId} />
        <h1 dir="auto">{found.name}</h1>
        <Alert trouble={trouble} />
        <Form action={`${path}/edit`} fields={fields}>
          <button type="submit" class="primary">
            Save
          </button>
          <a href={path}>Cancel</a>
        </Form>
      </div>
    ),
  };
}

function Crumb({ incidentId }: { incidentId: number | null }) {
  if (incidentId === null) return null;
  return (
    <p class="crumb">
      <a href={incidentPath(incidentId)}>To the incident</a>
    </p>
  );
}
