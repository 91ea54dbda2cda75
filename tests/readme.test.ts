import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadExample } from "../trial/example/load.ts";
import { personOf } from "./support/http/people.ts";
import { signInToken, startTestServer } from "./support/http/server.ts";
import { shellBlocks, walk } from "./support/process/page.ts";

// Runs the README's commands from report to closure.

const commands = shellBlocks("README.md")
  .filter(({ section }) => section === "An incident, from report to closure")
  .map(({ lines }) => lines);

test("runs an incident from report to closure, and a second terminal shows it", async () => {
  await using server = await startTestServer({ pluginConversation: "channel" });
  const home = mkdtempSync(join(tmpdir(), "svc-readme-"));
  // The command line uses the machine's clock to check whether the token is valid.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  await loadExample(server.db, server.clock.now());
  const alice = await personOf(server, "alice@example.com");
  const { code, stdout, stderr, watched } = await walk(
    commands,
    {
      HOME: home,
      SVC_SERVER: server.url,
      SVC_TOKEN: await signInToken(server),
      EDITOR: "sed -i 's/^# Conditions$/&\\nA third of payments fail/'",
    },
    /is closed.* · Closed/s,
  );
  rmSync(home, { recursive: true });
  expect(code, stderr).toBe(0);
  const { body: incidents } = await alice.call("GET", "/incidents/?sort=-id&limit=1");
  const [{ id }] = incidents.items;
  expect(incidents.items).toMatchObject([
    {
      title: "Checkout is down",
      status: "Closed",
      resolution: "Rolled back",
      incident_priority: { name: "High" },
    },
  ]);
  const { body: timeline } = await alice.call("GET", `/incidents/${id}/events/?sort=at`);
  const kinds = timeline.items.map(({ kind }: { kind: string }) => kind);
  expect(kinds).toEqual(
    expect.arrayContaining(["incident.reported", "note", "report.written", "incident.closed"]),
  );
  expect(stdout).toMatch(/Conditions: +A third of payments fail/);
  for (const text of ["The release of 11:40 is the cause", "Conditions: A third of payments fail"])
    expect(watched).toContain(text);
  // Ten commands in turn.
}, 60_000);
