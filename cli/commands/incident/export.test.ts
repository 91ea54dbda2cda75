import { beforeAll, expect, test } from "bun:test";
import { linkSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fromMarkdown } from "mdast-util-from-markdown";
import { type CliUser, cliUser, wideTerminal } from "../../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../../tests/support/http/incident_server.ts";

let { server, member, reported: report } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, reported: report } = given);
});

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
  for (let i = 0; i < 60; i++) expect(markdown).toContain(`| Note ${i} |`);
  expect(markdown.indexOf("| Note 0 |")).toBeLessThan(markdown.indexOf("| Note 59 |"));
  expect(markdown).not.toContain("\x1b");
  expect(markdown).not.toMatch(/(?<!\\)<(?!br>)/);

  const html = (await carol.svc("inc", "export", name, "--format", "html")).stdout;
  expect(html).toStartWith("<!doctype html>");
  expect(html).not.toContain("<script>");
  expect(html).not.toContain("\x1b");
  expect(html).toContain("&lt;script&gt;");

  const exported = JSON.parse((await carol.svc("inc", "export", name, "--format", "json")).stdout);
  expect(exported).toMatchObject({ name, description: nasty, tasks: [{}], documents: [{}], reports: [{}] });
  expect(exported.events.filter(({ kind }: { kind: string }) => kind === "note")).toHaveLength(60);
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

test("status shows what one commands, tasks, overdue reports and access", async () => {
  const frank = await cliUser(server, "frank@example.com");
  const none = await frank.svc("inc", "status");
  expect(none).toMatchObject({ code: 0, stderr: "" });
  expect(none.stdout.match(/^ {2}None$/gm)).toHaveLength(5);
  const { name } = await reported("Slow");
  await carol.svc("inc", "role", "give", name, "frank@example.com");
  await carol.svc("inc", "task", "add", name, "Order disks", "--assign", "frank@example.com");
  expect(JSON.parse((await frank.svc("inc", "status", "--json")).stdout)).toMatchObject({
    commanding: [{ name }],
    tasks: [{ description: "Order disks" }],
    overdue_reports: [],
    requests: [],
    leases: [],
  });
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
