import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadExample } from "../trial/example/load.ts";
import { type Person, personOf } from "./support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "./support/http/server.ts";
import { shellBlocks, typeLines } from "./support/process/page.ts";

// Runs the commands of docs/tutorial.md, except for signing in.

let server: TestServer;
let alice: Person;
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-tutorial-"));
  server = await startTestServer({ pluginDocument: "markdown", pluginConversation: "channel" });
  // The command line uses the machine's clock to check whether the token is valid.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  await loadExample(server.db, server.clock.now());
  alice = await personOf(server, "alice@example.com", ["admin"]);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

test("runs from the first request to the end", async () => {
  // The person who signed in last.
  const aliceToken = await signInToken(server);
  await personOf(server, "bob@example.com");
  const bobToken = await signInToken(server);
  const lines = shellBlocks("docs/tutorial.md")
    .map(({ lines }) => lines)
    .join("")
    .replace("npx svc login alice@example.com\n", `export SVC_TOKEN=${aliceToken}\n`)
    .replace("npx svc login bob@example.com\n", `echo "=== bob"; export SVC_TOKEN=${bobToken}\n`)
    // With SVC_TOKEN, svc logout has nothing to do.
    .replace("npx svc logout\n", "");
  expect(lines).not.toContain("npx svc log");

  const { code, stdout, stderr } = await typeLines(lines, {
    ...{ HOME: home, SVC_SERVER: server.url, SVC_DATABASE_URL: server.databaseUrl },
    SVC_DOMAIN: "example.com",
  });
  const [asAlice = "", asBob = ""] = stdout.split("=== bob\n");
  expect(code, stderr).toBe(0);

  expect(asAlice).toContain('"user":"alice@example.com"');
  expect(asAlice).toContain('"title":"Northern replica is twenty minutes behind"');
  expect(asAlice).toContain('"name":"Alice Adams"');
  expect(asAlice).toContain("Event bus lost its quorum in the north");
  expect(asAlice).toMatch(/^incident-task-sync: [1-9]\d* done, 0 skipped, 0 failed$/m);
  const { body } = await alice.call("GET", "/documents/80/content");
  expect(body.text).not.toContain("- [ ] ");
  const tasks = await alice.call("GET", "/tasks/?incident_id=34");
  const ofDocument = tasks.body.items.filter((task: { document_id: number }) => task.document_id === 80);
  expect(ofDocument.length).toBeGreaterThan(1);
  expect(new Set(ofDocument.map(({ status }: { status: string }) => status))).toEqual(new Set(["Resolved"]));

  expect((await alice.call("GET", "/incidents/27")).body).toMatchObject({ visibility: "Restricted" });
  expect(asBob).toContain('"status":404');
  expect(asBob).toContain("For Bob, there is no INC-27.");
  expect(asBob).toMatch(/^incident-task-reminders +1:00:00/m);
}, 120_000);
