import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadExample } from "../trial/example/load.ts";
import { type Person, personOf } from "./support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "./support/http/server.ts";
import { shellBlocks, typeLines } from "./support/process/page.ts";

// Runs the commands of docs/api.md.

const commands = shellBlocks("docs/api.md").map(({ lines }) => lines);

let server: TestServer;
let person: Person;
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-api-"));
  server = await startTestServer({ pluginDocument: "markdown", pluginConversation: "channel" });
  // The command line uses the machine's clock to check whether the token is valid.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  await loadExample(server.db, server.clock.now());
  person = await personOf(server, "alice@example.com", ["admin"]);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

const type = async (lines: string) =>
  typeLines(lines, {
    HOME: home,
    SVC_SERVER: server.url,
    SVC_TOKEN: await signInToken(server),
    SVC_DATABASE_URL: server.databaseUrl,
    SVC_DOMAIN: "example.com",
  });

test("a failed call prints its reason, and defines nothing", async () => {
  const { code, stdout, stderr } = await type(
    `${commands[0]}incident="$(create "$api/incidents/" --json '{}')"; echo on`,
  );
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain('"code":"invalid_input"');
  const shadowed = await type(
    `${commands[0]}for name in call create; do unset -f $name; command -v $name || true; done`,
  );
  expect(shadowed).toEqual({ code: 0, stdout: "", stderr: "" });
});

test("runs from the first request to the end", async () => {
  const { code, stdout: said, stderr } = await type(commands.join(""));
  expect(code, `${said}\n${stderr}`).toBe(0);

  const { body: incidents } = await person.call("GET", "/incidents/?q=Checkout+is+down");
  const [{ id }] = incidents.items;
  const path = `/incidents/${id}`;
  expect(incidents.items.slice(0, 1)).toMatchObject([
    { title: "Checkout is down", status: "Closed", resolution: "Rolled back", version: 3 },
  ]);
  expect((await person.call("GET", path)).body.commander.email).toBe("dana@example.com");
  const { body: documents } = await person.call("GET", `/documents/?incident_id=${id}`);
  const [document] = documents.items;
  const { body: content } = await person.call("GET", `/documents/${document.id}/content`);
  expect(content.text).toBe("# Notes\n\n- [ ] Tell the shops @dana");
  expect((await person.call("GET", `/tasks/?incident_id=${id}`)).body.items).toMatchObject([
    { description: "Roll back the release", document_id: document.id },
  ]);
  expect((await person.call("GET", `${path}/reports/`)).body.items).toHaveLength(1);
  const answers = said.split("\n").filter((line) => line.startsWith("{"));
  const pages = answers.map((line) => JSON.parse(line).items ?? []);
  const timeline = pages.find((items) => items[0]?.kind === "incident.reported");
  expect(timeline.map(({ kind }: { kind: string }) => kind)).toEqual(
    expect.arrayContaining(["task.created", "report.written", "note", "incident.stable", "incident.closed"]),
  );
  expect(pages.flat()).toContainEqual(expect.objectContaining({ type: "incident", id }));
  expect(said).toContain('"name":"Alice Adams"');
  expect(said).toContain("Event bus lost its quorum in the north");
  expect(said).toMatch(/^incident-task-sync: [1-9]\d* done, 0 skipped, 0 failed$/m);
  const { body: ticked } = await person.call("GET", "/documents/80/content");
  expect(ticked.text).not.toContain("- [ ] ");
  const tasks = await person.call("GET", "/tasks/?incident_id=34");
  const ofDocument = tasks.body.items.filter((task: { document_id: number }) => task.document_id === 80);
  expect(ofDocument.length).toBeGreaterThan(1);
  expect(new Set(ofDocument.map(({ status }: { status: string }) => status))).toEqual(new Set(["Resolved"]));
}, 120_000);
