import { beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type CliUser, cliUser } from "../../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { pluginDocument: "markdown" },
);

let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(given.server, "carol@example.com");
});

test("a post-mortem is drafted once, edited, and added to", async () => {
  const { name, id } = await given.reported("Broken <b>");
  await carol.svc("inc", "note", name, "It was the disk");
  const drafted = await carol.svc("inc", "postmortem", name);
  expect(drafted.stdout).toStartWith(`# ${name}: Broken \\<b\\>\n`);
  expect(drafted.stdout).toContain("It was the disk");
  expect(drafted.stderr).toContain(
    "Nobody has written yet: Impact, What went well, What went badly, Follow-up\n",
  );
  const [, document] = drafted.stderr.match(/Edit it: svc incident doc edit (\d+)\n/)!;
  expect(document).toBeDefined();

  await carol.svc("inc", "note", name, "And the fan");
  const again = await carol.svc("inc", "postmortem", name);
  expect(again.stdout).toBe(drafted.stdout);
  // Another incident may be in use.
  expect(again.stderr).toContain(`drafted: svc incident postmortem ${name} --add\n`);
  await carol.svc("inc", "use", name);
  expect((await carol.svc("inc", "postmortem")).stderr).toContain("drafted: svc incident postmortem --add\n");
  const file = join(carol.home, "review.md");
  const added = await carol.svc("inc", "postmortem", name, "--add", "-o", file);
  expect(added.stdout).toBe("");
  expect(readFileSync(file, "utf8")).toContain("And the fan");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const refused = await carol.svc("inc", "postmortem", name, "-o", file);
  const { body } = await given.member.call("GET", `/incidents/${id}/events?kind=note`);
  const event = body.items.find(({ description }: { description: string }) => description === "And the fan");
  await carol.svc("inc", "withdraw", `e${event.id}`, "-i", name, "--yes");
  const { stderr } = await carol.svc("inc", "postmortem", name);
  expect(stderr).toMatch(new RegExp(`^Look at what it says of e${event.id}: withdrawn by carol at \\d`, "m"));
  const root = await cliUser(given.server, "root@example.com", ["admin"]);
  const redacted = await root.svc(
    ...["inc", "redact", `e${event.id}`, "-i", name, "--reason", "A name", "--yes"],
  );
  expect(redacted.stderr).toContain(
    `${name} post-mortem: Broken <b> may have its words: remove them with svc incident doc edit ${document}, then redact each version that had them: svc incident doc redact ${document} --version N\n`,
  );
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("use --force")]);
});
