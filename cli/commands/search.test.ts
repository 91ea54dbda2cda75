import { beforeAll, expect, test } from "bun:test";
import { conversation } from "../../drizzle/schema/index.ts";
import { type CliUser, cliUser, wideTerminal } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let { server, member, reported } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, reported } = given);
});

let carol: CliUser;
let open: { id: number; name: string };
let secret: { id: number; name: string };
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
  open = await reported("Checkout is down", { description: "zebra" });
  secret = await reported("Leak", { visibility: "Restricted" });
  const channel = { incidentId: open.id, pluginSlug: "channel", createdAt: server.clock.now() };
  await server.db.insert(conversation).values(channel);
  const notes = { [open.id]: "The zebra\nis loose", [secret.id]: "zebra in secret" };
  for (const [id, description] of Object.entries(notes))
    await member.call("POST", `/incidents/${id}/events/`, { description });
  const report = { conditions: "giraffe", actions: "zebra", needs: "" };
  await member.call("POST", `/incidents/${open.id}/reports/`, report);
  for (const args of [
    ["say", "-i", open.name, "Who has seen the zebra?"],
    ["task", "add", "-i", open.name, "Catch the zebra"],
  ])
    expect((await carol.svc("inc", ...args)).code).toBe(0);
});

const types = (stdout: string) =>
  JSON.parse(stdout)
    .items.map(({ type }: { type: string }) => type)
    .toSorted();

test("finds what the API finds, with its type and its incident", async () => {
  const { code, stdout, stderr } = await carol.svc("search", "zebra");
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^TYPE +ID +INCIDENT +TEXT$/);
  for (const line of [
    new RegExp(`^incident +\\d+ +${open.name} +${open.name}: Checkout is down: zebra$`),
    new RegExp(`^note +\\d+ +${open.name} +The zebra is loose$`),
    new RegExp(`^note +\\d+ +${secret.name} +zebra in secret$`),
    new RegExp(`^report +\\d+ +${open.name} +giraffe zebra$`),
    new RegExp(`^message +\\d+ +${open.name} +Who has seen the zebra\\?$`),
    new RegExp(`^task +\\d+ +${open.name} +Catch the zebra$`),
  ])
    expect(lines).toContainEqual(expect.stringMatching(line));
  expect(lines).toHaveLength(7);
});

test("takes several words, kinds and a limit, and says that there are more", async () => {
  const words = await carol.svc("search", "zebra", "loose", "--json");
  expect(types(words.stdout)).toEqual(["note"]);
  expect(
    types((await carol.svc("search", "--json", "--", "zebra", "-loose", "-secret")).stdout),
  ).not.toContain("note");
  const kinds = await carol.svc("search", "-t", "note,report", "--json", "zebra");
  expect([types(kinds.stdout), kinds.stderr]).toEqual([["note", "note", "report"], ""]);
  const some = await carol.svc("search", "zebra", "-L", "2", "--json");
  expect(types(some.stdout)).toHaveLength(2);
  expect(some.stderr).toBe("There are more: --limit 4\n");
  expect(await carol.svc("search", "walrus")).toEqual({ code: 0, stdout: "", stderr: "Nothing found.\n" });
  for (const [args, reason] of [
    [["-L", "51", "zebra"], "--limit must be 1 to 50"],
    [["-t", "animal", "zebra"], "The types are incident, "],
    [[], "missing argument: WORD"],
    [["", " "], "missing argument: WORD"],
  ] as const) {
    const { code, stderr } = await carol.svc("search", ...args);
    expect(code).not.toBe(0);
    expect(stderr).toContain(reason);
  }
});

test("never writes a text raw, and fits a narrow terminal", async () => {
  const item = { type: "note", id: 7, title: "x", excerpt: "\x1b[2J\u202egnp\nzebra ".repeat(9), rank: 1 };
  const items = [{ ...item, incident_id: null }];
  const fetch = async () => Response.json({ items, next_cursor: null });
  for (const columns of [80, 40, 20]) {
    const stdout = wideTerminal(columns);
    expect((await carol.with({ fetch, stdout }).svc("search", "zebra")).code).toBe(0);
    const shown = Bun.stripANSI(stdout.text);
    expect(shown).not.toMatch(/[\x1b\u202e]/);
    for (const line of shown.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns);
  }
});

test("list -S says how many other incidents have the words in their parts", async () => {
  const { code, stdout, stderr } = await carol.svc("inc", "list", "-S", "zebra");
  expect(code).toBe(0);
  expect(stdout).toContain(open.name);
  expect(stdout).not.toContain(secret.name);
  const where = "these words in notes, reports, messages, tasks or documents";
  expect(stderr).toBe(`1 other incident has ${where}: svc search zebra\n`);
  const none = await carol.svc("inc", "list", "-S", "giraffe zebra", "--json");
  expect(none.stderr).toBe(`1 other incident has ${where}: svc search 'giraffe zebra'\n`);
  expect((await carol.svc("inc", "list", "-S", "walrus")).stderr).toBe("No incidents found.\n");
});
