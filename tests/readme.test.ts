import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../core/populate/populate.ts";
import { type Person, personOf } from "./support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "./support/http/server.ts";
import { shellBlocks, typeLines } from "./support/process/page.ts";

// Runs the README's commands from report to closure.

const commands = shellBlocks("README.md")
  .filter(({ section }) => section === "An incident, from report to closure")
  .map(({ lines }) => lines);

let server: TestServer;
let person: Person;
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-readme-"));
  server = await startTestServer({ pluginDocument: "markdown", pluginConversation: "channel" });
  // The command line uses the machine's clock to check whether the token is valid.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  await populate(server.db, server.clock);
  person = await personOf(server, "alice@example.com");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

const type = async (lines: string) =>
  typeLines(lines, { HOME: home, SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server) });

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

test("runs an incident from report to closure", async () => {
  const { code, stdout: said, stderr } = await type(commands.join(""));
  expect([code, stderr], said).toEqual([0, ""]);

  const { body: incidents } = await person.call("GET", "/incidents/");
  const [{ id }] = incidents.items;
  const path = `/incidents/${id}`;
  expect(incidents.items).toMatchObject([
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
  // It prints the timeline and the search results last.
  const [timeline, found] = said
    .trimEnd()
    .split("\n")
    .slice(-2)
    .map((line) => JSON.parse(line));
  const kinds = timeline.items.map(({ kind }: { kind: string }) => kind);
  expect(kinds[0]).toBe("incident.reported");
  expect(kinds).toEqual(
    expect.arrayContaining(["task.created", "report.written", "note", "incident.stable", "incident.closed"]),
  );
  expect(found.items).toContainEqual(expect.objectContaining({ type: "incident", id }));
}, 60_000);
