import { Elysia } from "elysia";
import { useContext } from "preact/hooks";
import { render } from "preact-render-to-string";
import { type DocumentText, getContent, putContent } from "../core/incident/document/content.ts";
import { getDocument } from "../core/incident/document/get.ts";
import { redactDocument } from "../core/incident/document/redact.ts";
import { ownTextSlug } from "../core/incident/document/texts.ts";
import { type DocumentVersion, getVersion, listVersions } from "../core/incident/document/versions.ts";
import { Conflict, NotFound, noRoute, Unavailable } from "../platform/errors.ts";
import { assets } from "./assets.ts";
import { fileHeaders } from "./download.ts";
import { Alert, FormPage, type Trouble } from "./pages/forms.tsx";
import { type Field, Form } from "./parts/form.tsx";
import { Markdown } from "./parts/markdown.tsx";
import { nameOf } from "./parts/person.tsx";
import { Reader } from "./parts/reader.ts";
import { Clock } from "./parts/time.tsx";
import { documentPath, incidentPath } from "./paths.ts";
import { type PageContent, pathId, type Site, type Visit } from "./site.tsx";
import { Values } from "./values.ts";

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
    return fieldsFor((await textOf(visit, found)) ?? { version: null, text: "" });
  }

  async function view(visit: Visit): Promise<PageContent> {
    const found = await documentOf(visit);
    try {
      return { title: found.name, content: <DocumentPage found={found} kept={await textOf(visit, found)} /> };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      // The plugin that keeps the text is down. What svc knows is still here.
      return { title: found.name, content: <DocumentPage found={found} trouble={error} /> };
    }
  }

  /** The text in a file, as it is or as a page of its own. */
  async function download(visit: Visit): Promise<Response> {
    const { format } = visit.params;
    if (format !== "md" && format !== "html") throw new NotFound(noRoute);
    const found = await documentOf(visit);
    const { text } = await getContent(deps, visit.visitor.actor, found.id);
    const name = found.name
      .replaceAll(/[^\p{L}\p{N}]+/gu, "-")
      .slice(0, 100)
      .toWellFormed();
    const type = format === "md" ? "text/markdown" : "text/html";
    return new Response(format === "md" ? text : standalone(found.name, text), {
      headers: fileHeaders(`${name}.${format}`, type),
    });
  }

  async function form(visit: Visit): Promise<PageContent> {
    const found = await documentOf(visit);
    return editing(found, { fields: await fieldsOf(visit, found) });
  }

  const save = site.submit(async (visit, values) => {
    const found = await documentOf(visit);
    if (values.isTicked("preview")) {
      const [version, text] = [values.text("version"), values.text("text")];
      return editing(found, { fields: fieldsFor({ version, text }), preview: text });
    }
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

  async function versionsPage(visit: Visit): Promise<PageContent> {
    const found = await documentOf(visit);
    const cursor = visit.url.searchParams.get("cursor") ?? undefined;
    const page = await listVersions(deps, visit.visitor.actor, { id: found.id, cursor, limit: 100 });
    // The newest one comes first.
    const current = cursor === undefined ? page.items[0]?.version : undefined;
    return {
      title: `Versions of ${found.name}`,
      content: <Versions found={found} page={page} current={current} />,
    };
  }

  async function versionPage(visit: Visit): Promise<PageContent> {
    const found = await documentOf(visit);
    const wanted = pathId(visit.params.version, "There is no such version");
    const kept = await getVersion(deps, visit.visitor.actor, { id: found.id, version: wanted });
    return { title: `${found.name}, version ${wanted}`, content: <Version found={found} kept={kept} /> };
  }

  async function redacting(
    visit: Visit,
    { about, fields, trouble }: { about: Values; fields?: readonly Field[]; trouble?: Trouble },
  ): Promise<PageContent> {
    const { id, name, incidentId } = await documentOf(visit);
    const version = about.given("version");
    const title = version === undefined ? "Redact a document" : `Redact version ${version}`;
    const page = {
      title,
      about: `Removes ${version === undefined ? "the text with all its versions" : "this version of the text"} from the database permanently. Plugins and backups may still have it.`,
      button: "Redact",
      isDangerous: true,
      action: `${documentPath(id)}/redact`,
      back: documentPath(id),
      fields: fields ?? redactionFields(about),
      trouble,
    };
    return {
      title: `${title} · ${name}`,
      content: (
        <FormPage crumb={<Crumb incidentId={incidentId} />} {...page}>
          <p>
            <b dir="auto">{name}</b>
          </p>
        </FormPage>
      ),
    };
  }

  const redact = site.submit(async (visit, values, address) => {
    const { id } = await documentOf(visit);
    return {
      run: async (context) => {
        const version = values.given("version") === undefined ? undefined : values.id("version");
        const wanted = { id, version, reason: values.text("reason"), address };
        await redactDocument(context, visit.visitor.actor, wanted);
        return version === undefined ? documentPath(id) : `${documentPath(id)}/versions`;
      },
      again: (fill) => redacting(visit, { about: values, ...fill(redactionFields(values)) }),
    };
  });

  return new Elysia({ name: "document pages", prefix: "/documents/:document_id" })
    .get("/", site.read(view))
    .get("/edit", site.read(form))
    .post("/edit", save)
    .get("/download/:format", site.read(download))
    .get("/versions", site.read(versionsPage))
    .get("/versions/:version", site.read(versionPage))
    .get(
      "/redact",
      site.read((visit) => redacting(visit, { about: new Values(new Map(visit.url.searchParams)) })),
    )
    .post("/redact", redact);
}

const fieldsFor = ({ version, text }: DocumentText): Field[] => [
  { name: "version", label: "", kind: "hidden", value: version ?? "" },
  {
    name: "text",
    label: "Text",
    kind: "text",
    value: text,
    help: "Markdown. Lines like “- [ ] Ask Bob @bob (due 2026-12-01)” become tasks",
  },
];

const redactionFields = (about: Values): Field[] => [
  { name: "version", label: "", kind: "hidden", value: about.given("version") ?? "" },
  {
    name: "reason",
    label: "Reason",
    kind: "line",
    isRequired: true,
    help: "Everybody who may read the document sees it",
  },
];

/** Without anything from elsewhere. */
function standalone(title: string, text: string): string {
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
        {/* biome-ignore lint/security/noDangerouslySetInnerHtml: the style sheet of the pages, which has nobody's texts */}
        <style dangerouslySetInnerHTML={{ __html: assets.style.text }} />
      </head>
      <body>
        <main>
          <Markdown text={text} />
        </main>
      </body>
    </html>
  );
  return `<!doctype html>${render(page)}`;
}

interface DocumentProps {
  found: Found;
  kept?: DocumentText;
  /** Why the text could not be read. */
  trouble?: Trouble;
}

function DocumentPage({ found, kept, trouble }: DocumentProps) {
  const { id, name, description, incidentId, weblink, pluginSlug } = found;
  const { admin } = useContext(Reader);
  return (
    <article>
      <Crumb incidentId={incidentId} />
      <div class="row head">
        <h1 dir="auto">{name}</h1>
        <a class="button" href={`${documentPath(id)}/edit`}>
          {kept || trouble ? "Edit" : "Write"}
        </a>
        {kept && pluginSlug === ownTextSlug && (
          <a class="button" href={`${documentPath(id)}/versions`}>
            Versions
          </a>
        )}
        {kept && (
          <>
            <a class="button" href={`${documentPath(id)}/download/md`} download>
              Markdown
            </a>
            <a class="button" href={`${documentPath(id)}/download/html`} download>
              HTML
            </a>
          </>
        )}
        {kept && admin && (
          <a class="button" href={`${documentPath(id)}/redact`}>
            Redact
          </a>
        )}
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
      <Alert trouble={trouble} />
      {kept && <Markdown text={kept.text} />}
      {!kept && !trouble && <p class="empty">It has no text here.</p>}
    </article>
  );
}

function Versions({
  found,
  page,
  current,
}: {
  found: Found;
  page: Awaited<ReturnType<typeof listVersions>>;
  /** Only redacted with all others. */
  current: number | undefined;
}) {
  const { admin } = useContext(Reader);
  const path = documentPath(found.id);
  return (
    <section class="list">
      <Crumb incidentId={found.incidentId} />
      <h1>
        Versions of <a href={path}>{found.name}</a>
      </h1>
      <ul>
        {page.items.map(({ version, author, at, isRedacted }) => (
          <li key={version}>
            <div>
              <a href={`${path}/versions/${version}`} data-row>
                Version {version}
              </a>{" "}
              <span class="quiet">
                {author && <bdi>{nameOf(author)}</bdi>}, <Clock at={at} />
                {version === current && ", current"}
                {isRedacted && ", redacted"}
              </span>
            </div>
            {admin && !isRedacted && version !== current && (
              <a href={`${path}/redact?version=${version}`}>Redact</a>
            )}
          </li>
        ))}
      </ul>
      {page.next_cursor && (
        <a href={`${path}/versions?cursor=${encodeURIComponent(page.next_cursor)}`}>Older</a>
      )}
    </section>
  );
}

function Version({ found, kept }: { found: Found; kept: DocumentVersion & { text: string } }) {
  return (
    <article>
      <p class="crumb">
        <a href={`${documentPath(found.id)}/versions`}>
          Versions of <bdi>{found.name}</bdi>
        </a>
      </p>
      <h1>Version {kept.version}</h1>
      <p class="quiet">
        {kept.author && <bdi>{nameOf(kept.author)}</bdi>}, <Clock at={kept.at} />
      </p>
      <Markdown text={kept.text} />
    </article>
  );
}

function editing(
  found: Found,
  { fields, trouble, preview }: { fields: readonly Field[]; trouble?: Trouble; preview?: string },
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
          <button type="submit" name="preview" value="on" formaction={`${path}/edit#preview`}>
            Preview
          </button>
          <a href={path}>Cancel</a>
        </Form>
        {preview !== undefined && (
          <section class="preview" aria-label="Preview">
            <h2 id="preview" tabIndex={-1}>
              Preview, not saved yet
            </h2>
            <Markdown text={preview} />
          </section>
        )}
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
