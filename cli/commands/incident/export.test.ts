import { beforeAll, describe, expect, test } from "bun:test";
import {
  linkSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fromMarkdown } from "mdast-util-from-markdown";
import { conversation, conversationMessage } from "../../../drizzle/schema/index.ts";
import { type CliUser, cliUser, fetchAt, wideTerminal } from "../../../tests/support/cli/incident_cli.ts";
import { testProgram } from "../../../tests/support/cli/process.ts";
import { type IncidentServer, useIncidentServer } from "../../../tests/support/http/incident_server.ts";

let { server, member, reported: report } = {} as IncidentServer;
useIncidentServer(
  (given) => {
    ({ server, member, reported: report } = given);
  },
  { pluginDocument: "markdown" },
);

let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
});

const nasty = "<script>alert(1)</script> | *bold* [x](javascript:1) \x1b[2J\nsecond & line";

const reported = (title?: string, description = "First") =>
  report(title, { description, commander: "carol@example.com" });

test("an export has all parts, as Markdown, HTML and JSON", async () => {
  const [{ id, name }, other] = [await reported("Broken <b>", nasty), await reported("Other")];
  await member.call("POST", `/incidents/${id}/links/`, { incident: other.name, kind: "related" });
  await member.call("POST", `/incidents/${id}/reports/`, {
    conditions: nasty,
    actions: "Waiting",
    needs: "",
  });
  await carol.svc("inc", "task", "add", name, nasty);
  await carol.svc("inc", "doc", "new", name, "Dashboard", "--link", "https://example.com/d/1");
  for (let i = 0; i < 60; i++)
    await member.call("POST", `/incidents/${id}/events/`, { description: `Note ${i}` });

  const markdown = (await carol.svc("inc", "export", name)).stdout;
  expect(markdown).toStartWith(`# ${name}: Broken \\<b\\>\n`);
  for (const part of [
    "## People",
    "## Status reports",
    "## Tasks",
    "## Documents",
    "## Linked incidents",
    other.name,
  ])
    expect(markdown).toContain(part);
  for (let i = 0; i < 60; i++) expect(markdown).toMatch(new RegExp(`\\| Note ${i} \\(e\\d+\\) \\|`));
  expect(markdown.indexOf("| Note 0 (")).toBeLessThan(markdown.indexOf("| Note 59 ("));
  expect(markdown).not.toContain("\x1b");
  expect(markdown).not.toMatch(/(?<!\\)<(?!br>)/);

  const html = (await carol.svc("inc", "export", name, "--format", "html")).stdout;
  expect(html).toStartWith("<!doctype html>");
  expect(html).not.toContain("<script>");
  expect(html).not.toContain("\x1b");
  expect(html).toContain("&lt;script&gt;");

  const exported = JSON.parse((await carol.svc("inc", "export", name, "--format", "json")).stdout);
  expect(exported).toMatchObject({
    name,
    description: nasty,
    tasks: [{}],
    documents: [{}, {}],
    reports: [{}],
  });
  expect(exported.events.filter(({ kind }: { kind: string }) => kind === "note")).toHaveLength(60);
});

/** A document that tries to leave its place in an export. */
const hostileText = [
  "# Minutes",
  "```js",
  "alert(1)",
  "`````",
  "</pre></body><script>alert(2)</script><!-- \u202egnp",
  "<img src=x onerror=alert(3)>",
  "~~~",
  "| a | b |",
  "\x1b[2J",
].join("\n");

describe("documents and messages", () => {
  const large = `${"Ordinary line of a long document.\n".repeat(20_000)}The end of it`;
  let id: number;
  let name: string;
  beforeAll(async () => {
    ({ id, name } = await reported("Talk"));
    const channel = { incidentId: id, pluginSlug: "channel", createdAt: server.clock.now() };
    const [opened] = await server.db.insert(conversation).values(channel).returning();
    const at = server.clock.now();
    const repeated = { conversationId: opened!.id, at, text: "Repeated by svc" };
    await server.db.insert(conversationMessage).values(repeated);
    const file = join(carol.home, "text.md");
    for (const [title, text] of [
      ["Minutes", hostileText.replace("\x1b", "")],
      ["Long", large],
    ] as const) {
      writeFileSync(file, text);
      expect(await carol.svc("inc", "doc", "new", name, title, "-F", file)).toMatchObject({ code: 0 });
    }
    await carol.svc("inc", "doc", "new", name, "Dashboard", "--link", "https://example.com/d/1");
    for (const text of ["Who can help?", "<b>x</b> | *y*\nsecond"])
      expect((await carol.svc("inc", "say", "-i", name, text)).code).toBe(0);
    await member.call("POST", `/incidents/${id}/participants/`, { email: "alice@example.com" });
    expect(await carol.svc("inc", "say", "-i", name, "--to", "alice", "Only you")).toMatchObject({ code: 0 });
  });
  const exported = async (format: string, user = carol) =>
    user.svc("inc", "export", name, "--format", format);

  test("are in the JSON, whole, without messages to one person", async () => {
    const { stdout, stderr } = await exported("json");
    expect(stderr).toBe(`Left out: 1 message to one person (svc incident messages ${name})\n`);
    expect(stdout).not.toContain("Only you");
    const { documents, messages } = JSON.parse(stdout);
    expect(documents.map(({ content }: { content: { text: string } | null }) => content?.text)).toEqual([
      "",
      hostileText.replace("\x1b", ""),
      large,
      undefined,
    ]);
    expect(messages.map(({ text }: { text: string }) => text)).toContain("Who can help?");
  });

  test("are in Markdown as blocks that they cannot leave", async () => {
    const { stdout } = await exported("md");
    const { children } = fromMarkdown(stdout);
    const blocks = children.flatMap((node) => (node.type === "code" ? [node.value] : []));
    expect(blocks).toEqual([hostileText.replace("\x1b", "").replace("\u202e", "\ufffd"), large]);
    expect(children.some(({ type }) => type === "html")).toBe(false);
    const headings = children.flatMap((node) =>
      node.type === "heading" ? node.children.map((one) => (one.type === "text" ? one.value : "")) : [],
    );
    expect(headings).toEqual(expect.arrayContaining(["Messages", "Document: Minutes", "Document: Long"]));
    expect(headings).not.toContain("Document: Dashboard");
    expect(headings).not.toContain("Minutes");
    expect(stdout).toMatch(/\| \S+Z \| carol@example\.com \| Who can help\? \(e\d+\) \|/);
    expect(stdout).not.toContain("Only you");
    expect(stdout).not.toContain("Repeated by svc");
    expect(stdout.match(/Who can help/g)).toHaveLength(1);
  });

  test("are in HTML as text", async () => {
    const { stdout } = await exported("html");
    const texts: string[] = [];
    const scripts: string[] = [];
    const rewriter = new HTMLRewriter()
      .on("pre", { text: ({ text }) => void texts.push(text) })
      .on("script,img,b", { element: ({ tagName }) => void scripts.push(tagName) });
    rewriter.transform(stdout);
    expect(scripts).toEqual([]);
    const shown = texts.join("");
    expect(shown).toContain("&lt;/pre&gt;&lt;/body&gt;&lt;script&gt;alert(2)");
    expect(shown).toContain("The end of it");
    expect(shown.length).toBeGreaterThan(large.length);
    expect(stdout).toMatch(/<td>&lt;b&gt;x&lt;\/b&gt; \| \*y\*\nsecond \(e\d+\)<\/td>/);
    expect(stdout).not.toContain("\u202e");
    expect(stdout).not.toContain("Only you");
  });

  test("a text that cannot be read is named, in the export too, and the rest is there", async () => {
    const failing = (status: number) =>
      carol.with({
        fetch: async (url, init) =>
          /documents\/\d+\/content/.test(url)
            ? Response.json({ code: "unavailable", detail: "The wiki is down" }, { status })
            : fetchAt(server, url, init),
      });
    for (const format of ["md", "html", "json"]) {
      const { code, stdout, stderr } = await exported(format, failing(503));
      expect(code).toBe(0);
      expect(stderr).toMatch(/svc: warning: the text of document \d+ could not be read: .*The wiki is down/);
      expect(stdout).toContain("The wiki is down");
      expect(stdout).toContain("Who can help?");
    }
    expect((await exported("md", failing(401))).code).toBe(4);
  });
});

test.each([
  "Cause\n---",
  "Cause\n===",
  "Cause\n-",
  "Cause\n -- -",
  "---",
  "Cause:\n\n    rm *.log\n\tls",
  "Cause\n    of it\n\n1)",
  "- a\n+ b\n1. c\n23) d",
])("a text like %p is no markup in an export", async (text) => {
  const { name } = await reported("Broken", `First\n\n${text}`);
  const { stdout } = await carol.svc("inc", "export", name);
  const [, shown = ""] = /## Description\n\n(.*?)\n\n## People/s.exec(stdout) ?? [];
  const { children } = fromMarkdown(shown);
  expect(children.map(({ type }) => type)).toEqual(children.map(() => "paragraph"));
  const parts = children.flatMap((one) => (one.type === "paragraph" ? one.children : []));
  const words = parts.map((part) => (part.type === "text" ? part.value : "")).join("");
  expect(words.replaceAll(/\s/g, "")).toBe(`First${text}`.replaceAll(/\s/g, ""));
});

test("a file is written for its owner only, and replaced only with --force", async () => {
  const { name } = await reported();
  const file = join(carol.home, "export.md");
  const written = await carol.svc("inc", "export", name, "-o", file);
  expect(written).toEqual({ code: 0, stdout: "", stderr: `${name}: Broken\n` });
  expect([readFileSync(file, "utf8").slice(0, 5), statSync(file).mode & 0o777]).toEqual(["# INC", 0o600]);
  const again = await carol.svc("inc", "export", name, "-o", file);
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("use --force to replace it")]);
  // Whole or not at all: what another name of the file shows is not touched.
  const kept = `${file}.kept`;
  linkSync(file, kept);
  writeFileSync(file, "old");
  expect((await carol.svc("inc", "export", name, "-o", file, "--force")).code).toBe(0);
  expect([readFileSync(file, "utf8").slice(0, 5), readFileSync(kept, "utf8")]).toEqual(["# INC", "old"]);
  const nowhere = await carol.svc("inc", "export", name, "-o", join(carol.home, "no/such/file"));
  expect([nowhere.code === 0, nowhere.stderr]).toEqual([
    false,
    expect.stringContaining("cannot be written (ENOENT)"),
  ]);
});

test("a file that cannot be written whole is not there, and an old one stays", async () => {
  const { name } = await reported("Long", "word ".repeat(2000));
  const directory = carol.elsewhere().home;
  const old = join(directory, "old.md");
  const link = join(directory, "link.md");
  writeFileSync(old, "old");
  symlinkSync(old, link);
  // As on a full disk: no file may be longer than 512 bytes or so.
  const limited = `trap '' 25; ulimit -f 1; exec "$@"`;
  for (const [output, ...more] of [[join(directory, "new.md")], [old, "--force"], [link, "--force"]]) {
    const args = ["incident", "export", name, "-o", output!, ...more];
    const { exited } = Bun.spawn(["bash", "-c", limited, "bash", ...testProgram, ...args], {
      env: { PATH: process.env.PATH, ...carol.env },
      stdio: ["ignore", "ignore", "ignore"],
    });
    expect([output, await exited]).toEqual([output, 1]);
  }
  expect(readFileSync(old, "utf8")).toBe("old");
  expect(readdirSync(directory).sort()).toEqual(["link.md", "old.md"]);
  // What the link names is replaced, and not the link.
  expect((await carol.svc("inc", "export", name, "-o", link, "--force")).code).toBe(0);
  expect([lstatSync(link).isSymbolicLink(), readFileSync(old, "utf8").slice(0, 5)]).toEqual([true, "# INC"]);
});

test("a device or a pipe is written to, and stays what it is", async () => {
  const { name } = await reported();
  const pipe = join(carol.elsewhere().home, "pipe");
  expect(await Bun.spawn(["mkfifo", pipe]).exited).toBe(0);
  const reader = Bun.spawn(["cat", pipe]);
  expect((await carol.svc("inc", "export", name, "-o", pipe)).code).toBe(0);
  expect(await new Response(reader.stdout).text()).toStartWith(`# ${name}`);
  expect(statSync(pipe).isFIFO()).toBe(true);
  expect((await carol.svc("inc", "export", name, "-o", "/dev/null", "--force")).code).toBe(0);
  expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
});

test("status shows what one commands, tasks, overdue reports and access", async () => {
  const frank = await cliUser(server, "frank@example.com");
  const none = await frank.svc("inc", "status");
  expect(none).toMatchObject({ code: 0, stderr: "" });
  expect(none.stdout.match(/^ {2}None$/gm)).toHaveLength(6);
  const { name } = await reported("Slow");
  await carol.svc("inc", "role", "give", name, "frank@example.com");
  await carol.svc("inc", "task", "add", name, "Order disks", "--assign", "frank@example.com");
  expect(JSON.parse((await frank.svc("inc", "status", "--json")).stdout)).toMatchObject({
    commanding: [{ name }],
    tasks: [{ description: "Order disks", incident: name }],
    overdue_reports: [],
    postmortems_due: [],
    requests: [],
    leases: [],
  });
  const lines = (await frank.svc("inc", "status")).stdout;
  expect(lines).toMatch(new RegExp(`ID +INCIDENT +DESCRIPTION.*\\n +\\d+ +${name} +Order disks`));
  // Also of an incident that somebody else commands.
  const { name: other } = await reported("Theirs");
  await carol.svc("inc", "task", "add", other, "Call them", "--assign", "frank@example.com");
  expect((await frank.svc("inc", "status")).stdout).toMatch(new RegExp(` ${other} +Call them`));
  server.clock.advance(400 * 24 * 3600);
  const later = await cliUser(server, "frank@example.com");
  const terminal = wideTerminal(60);
  await later.with({ stdout: terminal }).svc("inc", "status");
  server.clock.advance(-400 * 24 * 3600);
  expect(terminal.text).toMatch(new RegExp(`Overdue reports[\\s\\S]*${name} +Slow +\\S+ late`));
  for (const columns of [60, 40]) {
    const stdout = wideTerminal(columns);
    expect((await frank.with({ stdout }).svc("inc", "status")).code).toBe(0);
    const lines = Bun.stripANSI(stdout.text).split("\n");
    expect(Math.max(...lines.map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(columns);
  }
});
