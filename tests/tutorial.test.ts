import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadExample } from "../trial/example/load.ts";
import { type Person, personOf } from "./support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "./support/http/server.ts";
import { shellBlocks, walk } from "./support/process/page.ts";

// Runs the commands of docs/tutorial.md, except for signing in.

/**
 * Runs what `npx svc` finds in a clone, without the half second of processor time in which npm finds it. Anything else
 * fails. tests/readme.test.ts runs the commands of README.md with the real one.
 */
const npx = `#!/bin/sh
[ "$1" = svc ] && shift && exec node ${join(import.meta.dir, "../bin/svc.mjs")} "$@"
`;

/** Prints the name of the last note, report or message of an incident. */
const lastEntry = (incident = "") =>
  `$(npx svc incident view ${incident} --timeline | grep -o '(e[0-9]*' | tail -1 | tr -d '(')`;

let server: TestServer;
let alice: Person;
let home: string;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "svc-tutorial-"));
  mkdirSync(join(home, "bin"));
  writeFileSync(join(home, "bin/npx"), npx, { mode: 0o755 });
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
  const blocks = shellBlocks("docs/tutorial.md").map(({ lines }) =>
    lines
      .replace("npx svc login alice@example.com\n", "")
      .replace("npx svc login bob@example.com\n", `echo "=== bob"; export SVC_TOKEN=${bobToken}\n`)
      // The names that a reader sees, and the answer to the confirmation.
      .replace("e1042", `--yes "${lastEntry("INC-33")}"`)
      .replace("e1043", `"${lastEntry()}"`)
      // With SVC_TOKEN, svc logout has nothing to do.
      .replace("npx svc logout\n", ""),
  );
  expect(blocks.join("")).not.toContain("npx svc log");

  const { code, stdout, stderr, watched } = await walk(
    blocks,
    {
      HOME: home,
      SVC_SERVER: server.url,
      SVC_DATABASE_URL: server.databaseUrl,
      SVC_TOKEN: aliceToken,
      PATH: `${join(home, "bin")}:${process.env.PATH}`,
      SVC_DOMAIN: "example.com",
      EDITOR: "sed -i 's/^# Conditions$/&\\nA third of payments fail/'",
    },
    /is closed.* · Closed/s,
  );
  const [asAlice = "", asBob = ""] = stdout.split("=== bob\n");
  expect(code, stderr).toBe(0);

  const { body: found } = await alice.call("GET", "/incidents/?sort=-id&limit=1");
  const [{ id, name }] = found.items;
  expect(found.items[0]).toMatchObject({ status: "Closed", resolution: "Rolled back to 1.4.2" });
  expect((await alice.call("GET", `/incidents/${id}/reports/`)).body.items).toMatchObject([
    { conditions: "A third of payments fail" },
  ]);
  expect(watched).toContain("The release of 11:40 is the cause");
  expect(watched).toContain("payments 200");
  expect(watched).toMatch(/corrected e\d+: Released 1\.4\.4/);
  expect(watched).toContain("Conditions: A third of payments fail");

  expect(asAlice).toContain(`${name}\n`);
  expect(asAlice).toContain("Northern replica is twenty minutes behind");
  expect(asAlice).toContain("Event bus lost its quorum in the north");
  expect((await alice.call("GET", "/incidents/27")).body).toMatchObject({ visibility: "Restricted" });
  expect(stderr).toContain("there is no incident INC-27 that you may see");
  expect(asBob).toContain("For Bob, there is no INC-27.");
  expect(asBob).toMatch(/^incident-task-reminders +1:00:00/m);
}, 120_000);
