import { beforeAll, expect, test } from "bun:test";
import { audit } from "../../core/audit.ts";
import { auditLog } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let server: IncidentServer["server"];
useIncidentServer((given) => {
  ({ server } = given);
});

let root: CliUser;
let carol: CliUser;
let at: string;
beforeAll(async () => {
  [root, carol] = [
    await cliUser(server, "root@example.com", ["admin"]),
    await cliUser(server, "carol@example.com"),
  ];
  await server.db.delete(auditLog);
  const now = server.clock.now();
  at = after(now, -60).toISOString();
  const hourAgo = after(now, -3600);
  await audit(server.db, {
    at: hourAgo,
    actor: "carol@example.com",
    action: "token.revoked",
    subject: "x\n\u001b[31m",
  });
  await audit(server.db, { at: new Date(at), actor: "system", action: "task.deleted", address: "192.0.2.1" });
});

test("svc audit prints the newest entries first, in printable text", async () => {
  const { code, stdout, stderr } = await root.svc("audit");
  expect([code, stderr]).toEqual([0, ""]);
  const lines = stdout.trimEnd().split("\n");
  expect(lines[0]).toMatch(/^TIME +ACTOR +ACTION +SUBJECT +ADDRESS$/);
  expect(lines[1]).toMatch(new RegExp(`^${at} +system +task\\.deleted +192\\.0\\.2\\.1$`));
  expect(lines[2]).toContain("carol@example.com  token.revoked");
  expect(lines).toHaveLength(3);
  expect(stdout).not.toContain("\u001b");
});

test("filters and the limit select entries", async () => {
  const actions = async (...args: string[]) => {
    const { code, stdout, stderr } = await root.svc("audit", "--json", ...args);
    return [code, JSON.parse(stdout).items.map(({ action }: { action: string }) => action), stderr];
  };
  expect(await actions("--since", "10m")).toEqual([0, ["task.deleted"], ""]);
  expect(await actions("--until", "10m")).toEqual([0, ["token.revoked"], ""]);
  const today = at.slice(0, 10);
  expect((await actions("--since", today, "--until", today))[1]).toContain("task.deleted");
  expect(await actions("--actor", "system")).toEqual([0, ["task.deleted"], ""]);
  expect(await actions("--actor", "carol")).toEqual([0, ["token.revoked"], ""]);
  expect(await actions("--action", "token.revoked")).toEqual([0, ["token.revoked"], ""]);
  expect(await actions("--limit", "1")).toEqual([0, ["task.deleted"], "There are more: --limit 2\n"]);
  expect(await root.svc("audit", "--subject", "nothing")).toEqual({
    code: 0,
    stdout: "",
    stderr: "No entries found.\n",
  });
});

test("a member gets the server's refusal", async () => {
  const { code, stdout, stderr } = await carol.svc("audit");
  expect([code === 0, stdout, stderr]).toEqual([
    false,
    "",
    expect.stringContaining("Only admins can read the audit log"),
  ]);
});
