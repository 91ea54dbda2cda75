import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { populate } from "../core/populate/populate.ts";
import { type Person, personOf } from "./support/people.ts";
import { signInToken, startTestServer, type TestServer } from "./support/server.ts";

// The README's walk from report to closure, typed as it stands there.

const root = join(import.meta.dir, "..");
const readme = readFileSync(join(root, "README.md"), "utf8");
const [, section = ""] = /^## An incident, from report to closure$(.*?)^## /ms.exec(readme) ?? [];
const commands = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block);

let server: TestServer;
let person: Person;
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-readme-"));
  server = await startTestServer({ pluginDocument: "markdown", pluginConversation: "channel" });
  // The command line asks the machine's clock whether the token is still good.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  await populate(server.db, server.clock);
  person = await personOf(server, "alice@example.com");
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(home, { recursive: true });
});

test("runs an incident from report to closure", async () => {
  const { PATH } = process.env;
  const shell = Bun.spawn({
    cmd: ["sh", "-eu", "-c", commands.join("")],
    cwd: root,
    env: {
      ...{ PATH, HOME: home, SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server) },
      npm_config_update_notifier: "false",
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, complaints] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
  ]);
  expect([await shell.exited, complaints], said).toEqual([0, ""]);

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
  // What it prints last: the timeline, and what is found.
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
