import { beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { document as documentTable, event } from "../drizzle/schema/index.ts";
import { fieldsOf, PageReader } from "../tests/support/browser/reader.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000, pluginConversation: "channel", pluginDocument: "markdown" },
);

let carol: PageReader;
let id: number;
let path: string;
beforeEach(async () => {
  carol = await PageReader.signIn(given.server);
  ({ id } = await given.reported("Broken <b>"));
  path = `/app/incidents/${id}`;
});

const get = async (of: string) => (await given.admin.call("GET", of)).body;

describe("a document", () => {
  test("is read, and changed unless somebody else has changed it", async () => {
    const found = await given.documentOf(id);
    const page = `/app/documents/${found.id}`;
    const stale = fieldsOf((await carol.open(`${page}/edit`)).html, `${page}/edit`);
    const { html } = await carol.submit(`${page}/edit`, { text: "# Plan\n\n<script>x</script> **now**" });
    expect(html).toContain("<h2>Plan</h2><p>&lt;script&gt;x&lt;/script&gt; <strong>now</strong></p>");
    const preview = await carol.send(`${page}/edit`, {
      ...stale,
      text: "<i>Mine</i> **soon**",
      preview: "on",
    });
    expect([preview.status, preview.html]).toEqual([
      200,
      expect.stringContaining("<p>&lt;i&gt;Mine&lt;/i&gt; <strong>soon</strong></p>"),
    ]);
    expect(fieldsOf(preview.html, `${page}/edit`)).toMatchObject({
      version: stale.version,
      text: "<i>Mine</i> **soon**",
    });
    expect((await carol.open(page)).html).not.toContain("soon");
    const conflict = await carol.send(`${page}/edit`, { ...stale, text: "Mine" });
    expect([conflict.status, conflict.html]).toEqual([409, expect.stringContaining("# Plan")]);
    expect((await carol.send(`${page}/edit`, fieldsOf(conflict.html, `${page}/edit`))).html).toContain(
      "<p>Mine</p>",
    );
  });

  test("is added, written, and redacted, as a whole or an earlier version", async () => {
    const { path: page } = await carol.submit(`${path}/document`, { name: "Vendor's <log>" });
    expect(page).toMatch(/^\/app\/documents\/\d+\/edit$/);
    const at = page.slice(0, -"/edit".length);
    await carol.submit(page, { text: "The password is hunter2" });
    await carol.submit(page, { text: "The password is elsewhere" });
    const { html } = await carol.open(`${at}/versions`);
    const versions = [...html.matchAll(/\/versions\/(\d+)"/g)].map(([, version]) => version);
    // The plugin wrote the first one.
    expect(versions).toEqual(["3", "2", "1"]);
    expect((await carol.open(`${at}/versions/2`)).html).toContain("hunter2");
    const redact = `${at}/redact?version=2`;
    expect((await carol.submit(redact, { reason: "A password" })).status).toBe(403);
    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    const links = (html: string) => html.match(/\/redact\?version=\d+/g) ?? [];
    expect(links((await root.open(`${at}/versions`)).html)).toEqual([
      "/redact?version=2",
      "/redact?version=1",
    ]);
    const redacted = await root.submit(redact, { reason: "A password" });
    expect(redacted.path).toBe(`${at}/versions`);
    expect(redacted.html.match(/, (current|redacted)/g)).toEqual([", current", ", redacted"]);
    expect(links(redacted.html)).toEqual(["/redact?version=1"]);
    expect((await carol.open(`${at}/versions/2`)).html).not.toContain("hunter2");
    expect((await carol.open(at)).html).toContain("elsewhere");
    await root.submit(`${at}/redact`, { reason: "All of it" });
    expect(links((await root.open(`${at}/versions`)).html)).toEqual([]);
    expect((await carol.open(at)).html).not.toContain("elsewhere");
    expect((await carol.open(path)).html).toContain("All of it");
    const dashboard = { name: "Dashboard", weblink: "https://grafana.example.com/d/1" };
    expect((await carol.submit(`${path}/document`, dashboard)).path).toBe(`${path}#documents`);
    await carol.submit(page, { text: "# Plan\n\n<script>x</script>" });
    const md = await carol.open(`${at}/download/md`);
    expect([md.html, md.headers.get("content-disposition")]).toEqual([
      "# Plan\n\n<script>x</script>",
      "attachment; filename*=UTF-8''Vendor-s-log-.md",
    ]);
    expect((await carol.open(`${at}/download/html`)).html).toContain(
      "<h2>Plan</h2><p>&lt;script&gt;x&lt;/script&gt;</p>",
    );
    expect((await carol.open(`${at}/download/exe`)).status).toBe(404);
  });

  test("whose plugin is down says so, and what is written for it is kept", async () => {
    const { id: document } = await given.documentOf(id);
    const page = `/app/documents/${document}`;
    const fields = fieldsOf((await carol.open(`${page}/edit`)).html, `${page}/edit`);
    const elsewhere = { pluginSlug: "wiki", resourceId: `W${document}` };
    await given.server.db.update(documentTable).set(elsewhere).where(eq(documentTable.id, document));
    const { status, html } = await carol.open(page);
    expect([status, html]).toEqual([
      200,
      expect.stringMatching(/role="alert"[^>]*><p>The plugin that stores/),
    ]);
    const sent = await carol.send(`${page}/edit`, { ...fields, text: "Half an hour of work" });
    expect([sent.status, sent.html]).toEqual([503, expect.stringContaining("Half an hour of work")]);
    expect((await carol.open(path)).status).toBe(200);
  });

  test("whose name has a letter of two units at the end of the file's name can be downloaded", async () => {
    const { path: page } = await carol.submit(`${path}/document`, { name: `${"a".repeat(99)}𠮷` });
    await carol.submit(page, { text: "Text" });
    expect((await carol.open(page.replace("/edit", "/download/md"))).html).toBe("Text");
  });
});

describe("a post-mortem", () => {
  test("is drafted, edited, and added to", async () => {
    const page = `${path}/postmortem`;
    await carol.submit(`${path}/note`, { text: "It was <the> disk" });
    const { html: preview } = await carol.open(page);
    expect(preview).toContain("It was &lt;the&gt; disk");
    expect(preview).toContain("draft it after the closing");
    const drafted = await carol.submit(page);
    expect(drafted.path).toMatch(/^\/app\/documents\/\d+$/);
    expect(drafted.html).toContain("It was &lt;the&gt; disk");
    await carol.submit(`${drafted.path}/edit`, { text: "# Mine\n\n## Timeline\n\nNothing.\n" });
    for (const text of ["Unwanted", "It was <its> fan"]) await carol.submit(`${path}/note`, { text });
    const fields = fieldsOf((await carol.open(page)).html, page);
    const [one, ...others] = Object.keys(fields).filter((name) => name.startsWith("entry-"));
    expect(others).toHaveLength(1);
    const kept = Object.fromEntries(Object.entries(fields).filter(([name]) => name !== one));
    const added = await carol.send(page, kept);
    expect([added.path, added.html.includes("Nothing new since the last draft.")]).toEqual([page, true]);
    const { html } = await carol.open(drafted.path);
    expect(html).toContain("<p>Nothing.</p>");
    expect(html).toContain("It was &lt;its&gt; fan");
    expect(html).not.toContain(`#event-${one!.slice("entry-".length)}"`);
    await carol.submit(`${drafted.path}/edit`, { text: "" });
    expect((await carol.open(page)).html).not.toContain("checkbox");
    await carol.submit(page);
    const anew = (await carol.open(drafted.path)).html;
    for (const words of ["What went well", "It was &lt;the&gt; disk", "Unwanted"])
      expect(anew).toContain(words);
  });

  test("names the entries that were withdrawn since, without their words", async () => {
    await carol.submit(`${path}/note`, { text: "It was Bob" });
    await carol.submit(`${path}/postmortem`);
    expect((await carol.open(`${path}/postmortem`)).html).not.toContain("Changed since");
    const { items } = await get(`/incidents/${id}/events?kind=note`);
    await given.member.call("POST", `/incidents/${id}/events/${items[0].id}/withdraw`, { version: 1 });
    const { html } = await carol.open(`${path}/postmortem`);
    expect(html).toContain(`?at=${items[0].id}#event-${items[0].id}">Entry e${items[0].id}</a>`);
    expect(html).toContain("withdrawn by carol");
    expect(html).not.toContain("Bob");
    const root = await PageReader.signIn(given.server, "root@example.com", ["admin"]);
    const redact = `${path}/redact?entry=${items[0].id}`;
    expect((await carol.open(redact)).status).toBe(403);
    const cites = /<a href="\/app\/documents\/(\d+)"><bdi>INC-\d+ post-mortem: Broken &lt;b><\/bdi><\/a>/;
    const [, cited] = (await root.open(redact)).html.match(cites)!;
    const done = await root.submit(redact, { reason: "A name" });
    expect(done.path).toStartWith(`${path}/redacted/`);
    for (const words of [
      `<a href="/app/documents/${cited}/edit">Edit</a>`,
      `<a href="/app/documents/${cited}/versions">Versions</a>`,
    ])
      expect(done.html).toContain(words);
    expect(done.html).toMatch(cites);
    expect((await carol.open(done.path)).status).toBe(403);
    const { body: other } = await given.member.call("POST", "/documents/", {
      name: "Elsewhere",
      description: "",
      resource_type: "reference",
      weblink: null,
      incident_id: (await given.reported("Other")).id,
    });
    const odd = `plugin=slack&plugin=%3Cb%3E&document=${other.id}&document=987654&document=x`;
    const { status, html: others } = await root.open(`${path}/redacted/${items[0].id}?${odd}`);
    expect([status, others]).toEqual([
      200,
      expect.stringContaining("<h2>Plugins that were sent the text</h2>"),
    ]);
    const section = others.slice(others.indexOf("<h2>Plugins"));
    expect(section).toContain("<ul><li>slack</li></ul>");
    expect(section).not.toContain("<h2>Documents");
    const after = async (count: number) => {
      const before = Array.from({ length: count }, (_, at) => `document=${900_000 + at}`);
      const address = `${path}/redacted/${items[0].id}?${[...before, `document=${cited}`].join("&")}`;
      return (await root.open(address)).html.includes("<h2>Documents");
    };
    expect([await after(99), await after(100)]).toEqual([true, false]);
  });

  test("with more new entries than the page shows proposes the rest afterwards", async () => {
    const page = `${path}/postmortem`;
    const wanted = {
      name: "Review",
      description: "",
      resource_type: "review",
      weblink: null,
      incident_id: id,
    };
    const { body: made } = await given.member.call("POST", "/documents/", wanted);
    await carol.submit(`/app/documents/${made.id}/edit`, { text: "# Ours" });
    const { db, clock } = given.server;
    const at = (n: number) => new Date(+clock.now() - 1000 * n);
    const note = { incidentId: id, actor: "carol@example.com", kind: "note", source: "core", data: {} };
    // Each later one happened before the one before it.
    const notes = Array.from({ length: 230 }, (_, n) => ({ ...note, at: at(n), description: `Note ${n}.` }));
    await db.insert(event).values(notes);
    expect((await carol.open(page)).html).toContain("Sections: Summary, Impact, Timeline");
    await carol.submit(page, {}, page);
    await carol.submit(page, {}, page);
    const { text } = await get(`/documents/${made.id}/content`);
    for (const { description } of notes) expect(text).toContain(` ${description}\n`);
  });
});
