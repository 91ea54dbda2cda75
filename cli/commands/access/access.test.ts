import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { desc, eq } from "drizzle-orm";
import { accessLease, accessRequest, accessRole, incident } from "../../../drizzle/schema/index.ts";
import { fetchAt } from "../../../tests/support/cli/incident_cli.ts";
import { testIo } from "../../../tests/support/cli/io.ts";
import { spawnSvc, testProgram } from "../../../tests/support/cli/process.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { type AccessTarget, startAccessTarget } from "../../../tests/support/domain/access_target.ts";
import { insertIncident } from "../../../tests/support/domain/incident.ts";
import { roleWithoutSecrets, startWithoutKeySecret } from "../../../tests/support/http/key_file_server.ts";
import { signInToken, startTestServer, type TestServer } from "../../../tests/support/http/server.ts";
import { until } from "../../../tests/support/process/until.ts";
import { run } from "../../run.ts";

setDefaultTimeout(60_000);

let server: TestServer;
let target: AccessTarget;
let home: string;
let incidentName: string;
let alice: Record<string, string>;
let root: Record<string, string>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "svc-home-"));
  [server, target] = await Promise.all([
    startTestServer({ pluginCredential: "postgresql-role" }),
    startAccessTarget(),
  ]);
  // The CLI uses the real time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const { incidentId } = await insertIncident(server.db, server.clock.now());
  const [row] = await server.db.select().from(incident).where(eq(incident.id, incidentId));
  incidentName = row!.name;
  alice = await signIn("alice@example.com", ["oncall"]);
  root = await signIn("root@example.com", ["admin"]);
});
afterAll(async () => {
  await target[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

async function signIn(user: string, groups: string[], at = server): Promise<Record<string, string>> {
  at.issuer.user = user;
  at.issuer.claims = { email_verified: true, groups };
  return { SVC_SERVER: at.url, SVC_TOKEN: await signInToken(at), HOME: home };
}
/** Runs a command in this process, which does for all but those that start a program or wait. */
const svc = async (env: Record<string, string>, ...args: string[]) => {
  const io = testIo({ env, clock: server.clock, fetch: (url, init) => fetchAt(server, url, init) });
  const code = await run(["access", ...args], io);
  return { code, ...io.out };
};
const svcRun = (env: Record<string, string>, ...args: string[]) =>
  spawnSvc(["access", "run", ...args], env).finished;
const newest = async () => {
  const [lease] = await server.db.select().from(accessLease).orderBy(desc(accessLease.id)).limit(1);
  return lease!;
};

test("admins apply and check roles from files, and users list the roles they may request", async () => {
  const { host, port, database, user, password, sslMode, parents } = target.settings;
  const settings = { host, port, database, user, password, sslMode, parents };
  const file = async (slug: string, more: string) => {
    const path = join(home, `${slug}.yaml`);
    const lines = Object.entries(settings).map(([key, value]) => `  ${key}: ${JSON.stringify(value)}`);
    await writeFile(
      path,
      `slug: ${slug}\ndescription: The ${slug}\nplugin: postgresql-role\nsettings:\n${lines.join("\n")}\n${more}`,
    );
    return path;
  };
  const shop = await file("shop", "groups: [oncall]\napproval: none\n");
  const till = await file(
    "till",
    "groups: [oncall]\napproval: admin\nbreak_glass: true\nmax_duration: 7200\n",
  );
  expect(await svc(alice, "apply", "-f", shop)).toMatchObject({ code: 1, stdout: "" });
  for (const path of [shop, till]) expect(await svc(root, "apply", "-f", path)).toMatchObject({ code: 0 });
  const roles = [
    { slug: "first", plugin: "postgresql-role", settings, groups: ["oncall"] },
    { slug: "second", plugin: "no-such-plugin" },
  ];
  await writeFile(join(home, "roles.json"), JSON.stringify(roles));
  expect(await svc(root, "apply", "-f", join(home, "roles.json"))).toMatchObject({
    code: 1,
    stdout: "first created\n",
  });
  const row = (role: string, approval: string) =>
    expect.stringMatching(new RegExp(`${role} +${approval} +1h`));
  expect((await svc(root, "list")).stdout).toEqual(row("first", "only for oncall"));
  expect((await svc(alice, "list")).stdout).toEqual(row("first", "admin"));
  expect(await svc(root, "apply", "--json", "-f", join(home, "roles.json"))).toMatchObject({
    code: 1,
    stdout: `${JSON.stringify({ items: [{ role: "first", did: "updated" }] })}\n`,
    stderr: expect.stringContaining('"message":"second: The plugin no-such-plugin is not enabled'),
  });
  await writeFile(join(home, "roles.json"), JSON.stringify([{ ...roles[0], slug: "nobodys", groups: [] }]));
  expect(await svc(root, "apply", "-f", join(home, "roles.json"))).toMatchObject({ code: 0 });
  expect((await svc(root, "list")).stdout).toMatch(/nobodys +nobody: no groups +1h/);
  expect(await svc(root, "delete", "nobodys")).toMatchObject({ code: 0 });
  expect(await svc(root, "delete", "first")).toMatchObject({ code: 0 });
  expect(await svc(root, "check", "shop")).toMatchObject({ code: 0 });
  await target.sql.unsafe(`alter role ${target.broker} nocreaterole`);
  const checked = await svc(root, "check", "shop");
  expect(checked.code).not.toBe(0);
  expect(checked.stdout + checked.stderr).toContain(`alter role "${target.broker}" createrole;`);
  await target.sql.unsafe(`alter role ${target.broker} createrole`);
  const { code, stdout } = await svc(alice, "list");
  expect([code, stdout]).toEqual([0, expect.stringContaining("till")]);
  expect(stdout).toContain("The shop");
  expect(stdout).not.toContain(String(password));
  expect(await svc(alice, "get", "nothing")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("svc access list"),
  });
});

test("a file that fails half way says which role failed, and which were applied before it", async () => {
  const path = join(home, "half.json");
  const secret = { slug: "secret", plugin: "postgresql-role", settings: target.settings };
  await writeFile(path, JSON.stringify([roleWithoutSecrets, secret]));
  await using without = await startWithoutKeySecret();
  without.clock.advance((Date.now() - without.clock.now().getTime()) / 1000);
  expect(await svc(await signIn("root@example.com", ["admin"], without), "apply", "-f", path)).toMatchObject({
    code: 1,
    stdout: "no-secrets created\n",
    stderr: expect.stringMatching(/^svc: secret: The server's log has the details .*\(request .+\)\n$/),
  });
  const open = { ...secret, slug: "open" };
  await writeFile(path, JSON.stringify([open, { ...open, slug: "deleted" }]));
  await svc(root, "apply", "-f", path);
  const [ran] = await inTheWay(
    server.db,
    (tx) => tx.delete(accessRole).where(eq(accessRole.slug, "deleted")),
    () => svc(root, "apply", "-f", path),
  );
  expect(ran).toMatchObject({
    value: {
      code: 1,
      stdout: "open updated\n",
      stderr: expect.stringMatching(/^svc: deleted: There is no such access role/),
    },
  });
});

test("leases --explain shows what the end of a lease hands over, drops or waits for", async () => {
  const got = JSON.parse((await svc(alice, "get", "shop", "--format", "json")).stdout);
  const client = target.open({ ...got, ...got.fields, ...got.credential?.fields });
  await client.unsafe(`create table mine (id int); create function used() returns int language sql as 'select 1';
    create function unused() returns int language sql as 'select 1'`);
  await client.end();
  await target.sql.unsafe("create view uses as select used()");
  const { id } = await newest();
  const { stdout, code } = await svc(alice, "leases", "--explain");
  const at = `in ${target.settings.database}`;
  expect(stdout).toContain(`\nWhen lease ${id} ends:
  routine public.used() ${at}: is used, so it stays, and the role with it, until a person decides
  routine public.unused() ${at}: is dropped
  table public.mine ${at}: goes to ${target.broker}_leftovers
`);
  expect(code).toBe(0);
  const { items } = JSON.parse((await svc(alice, "leases", "--explain", "--json")).stdout);
  expect(items.find((one: { id: number }) => one.id === id).explain).toHaveLength(3);
  await target.sql.unsafe("drop view uses");
  expect(await svc(alice, "revoke", String(id))).toMatchObject({ code: 0 });
});

test("run passes the credential in the environment, revokes it afterwards, and returns the exit code", async () => {
  const program = `
    const { SQL } = require("bun");
    const sql = new SQL(process.env.DATABASE_URL);
    const [row] = await sql\`select current_user as who, count(*)::int as n from shop\`;
    console.log(row.who === process.env.PGUSER, row.n, process.argv.slice(2).join());
    await sql.close();
    process.exit(7);`;
  const path = join(home, "program.mjs");
  await writeFile(path, program);
  const ran = await svcRun(alice, "shop", "--", process.execPath, path, "--json", "-x");
  expect(ran).toEqual({ code: 7, stdout: "true 2 --json,-x\n", stderr: "" });
  expect(await newest()).toMatchObject({
    state: "Revoking",
    endReason: "revoked",
    userName: "alice@example.com",
  });
  const lasts = async () => {
    const { createdAt, expiresAt, maxExpiresAt } = await newest();
    return [expiresAt, maxExpiresAt].map((end) => (end.getTime() - createdAt.getTime()) / 1000);
  };
  expect(await lasts()).toEqual([900, 8 * 3600]);
  await svcRun(alice, "shop", "--duration", "20m", "--", "true");
  expect(await lasts()).toEqual([900, 1200]);
  const killed = await svcRun(alice, "shop", "--", "sh", "-c", "kill -9 $$");
  expect(killed.code).toBe(137);
  expect((await newest()).state).toBe("Revoking");
  for (const program of ["no-such-program", "./no-such-program"])
    expect(await svcRun(alice, "shop", "--", program)).toEqual({
      code: 127,
      stdout: "",
      stderr: `svc: Command not found: ${program}\n`,
    });
  expect(await svc(alice, "run", "shop")).toMatchObject({ code: 2 });
});

test.each([
  ["> /dev/full", "ENOSPC"],
  ["| :", "EPIPE"],
])("get revokes a credential that cannot be printed: %s", async (output, reason) => {
  const script = `{ "$@" access get shop; echo "exit $?" >&2; } ${output}`;
  const child = Bun.spawn(["sh", "-c", script, "sh", ...testProgram], {
    env: { PATH: process.env.PATH, ...alice },
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toBe(`svc: cannot write the output (${reason})\nexit 1\n`);
  expect(await newest()).toMatchObject({ state: "Revoking", endReason: "revoked" });
});

test("get --format env quotes values for a shell", async () => {
  const { code, stdout } = await svc(alice, "get", "shop", "--format", "env");
  expect(code).toBe(0);
  const { stdout: seen } = Bun.spawnSync(["sh", "-c", `${stdout}\nprintf %s "$PGUSER@$PGDATABASE"`]);
  expect(seen.toString()).toBe(`${(await newest()).name}@${target.settings.database}`);
  const refused = await svc(alice, "get", "shop", "--format", "env", "--duration", "8d");
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(await svc(alice, "get", "shop", "--duration", "nonsense")).toMatchObject({ code: 2, stdout: "" });
});

test("run waits for approval, and continues when the request is approved elsewhere", async () => {
  const reason = `Find the "stuck" order; $(rm -rf /) \`x\``;
  const waiting = spawnSvc(
    ["access", "run", "till", "-i", incidentName, "-r", reason, "--", "sh", "-c", 'echo "as $PGUSER"'],
    alice,
  );
  await until("the request", async () => (await server.db.select().from(accessRequest)).length === 1);
  const [request] = await server.db.select().from(accessRequest);
  expect(request).toMatchObject({ state: "Pending", reason, incidentName });
  const listed = await svc(root, "requests");
  expect(listed.stdout).toContain("alice@example.com");
  expect(listed.stdout).toContain(reason);
  expect(await svc(alice, "approve", String(request!.id))).toMatchObject({ code: 1 });
  expect(await svc(root, "approve", String(request!.id))).toMatchObject({
    code: 0,
    stdout: "Approved: till for alice@example.com\n",
  });
  expect(await waiting.finished).toMatchObject({ code: 0, stdout: `as ${(await newest()).name}\n` });
  expect((await newest()).requestId).toBe(request!.id);
});

test("a denied request fails with the approver's note, and a cancelled one cannot be approved", async () => {
  const ask = () => spawnSvc(["access", "get", "till", "-i", incidentName, "-r", "again", "-d", "2h"], alice);
  const pending = async () => {
    const rows = await server.db.select().from(accessRequest).where(eq(accessRequest.state, "Pending"));
    return rows[0]?.id;
  };
  // The approved request of the previous test would be used.
  await server.db.update(accessRequest).set({ expiresAt: new Date(Date.now() - 60_000) });
  const denied = ask();
  await until("a request", async () => (await pending()) !== undefined);
  expect(await svc(root, "deny", String(await pending()), "-n", "Not today")).toMatchObject({ code: 0 });
  const { code, stdout, stderr } = await denied.finished;
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("The request was denied by root@example.com: Not today");
  const cancelled = ask();
  await until("another request", async () => (await pending()) !== undefined);
  const id = String(await pending());
  expect(await svc(alice, "cancel", id)).toMatchObject({ code: 0 });
  expect(await svc(root, "approve", id)).toMatchObject({ code: 1 });
  expect((await cancelled.finished).code).toBe(1);
});

test("list, check, requests and approve show who may approve, and how many have", async () => {
  const frida = await signIn("frida@example.com", ["dba"]);
  const path = join(home, "vault.json");
  const role = {
    slug: "vault",
    plugin: "postgresql-role",
    settings: target.settings,
    groups: ["oncall"],
    approval: "group",
    approver_groups: ["security", "dba"],
    approvals_needed: 2,
  };
  await writeFile(path, JSON.stringify(role));
  expect(await svc(root, "apply", "-f", path)).toMatchObject({ code: 0 });
  expect((await svc(alice, "list")).stdout).toMatch(/vault +group security or dba, 2 approvals +1h/);
  const checked = await svc(root, "check", "vault");
  expect(checked.stdout).toStartWith("vault: ok; approval: group security or dba, 2 approvals\n  Warning: ");
  const { stdout } = await svc(alice, "request", "vault", "-r", "again", "--no-wait");
  const id = stdout.trim();
  expect(await svc(frida, "approve", id)).toMatchObject({
    code: 0,
    stdout: "Approved: vault for alice@example.com (1 of 2 approvals)\n",
  });
  for (const who of [alice, frida])
    expect((await svc(who, "requests")).stdout).toMatch(
      /Pending +group security or dba, 1 of 2 approvals +again/,
    );
  expect(await svc(alice, "cancel", id)).toMatchObject({ code: 0 });
  expect(await svc(root, "apply", "-f", path)).toMatchObject({ code: 0 });
});

test("break-glass access is immediate, and listed until another user reviews it", async () => {
  const args = ["get", "till", "-i", incidentName, "-r", "Everything is down", "--break-glass"];
  expect((await svc(alice, ...args)).code).toBe(0);
  const unreviewed = async () => (await svc(root, "requests", "--unreviewed")).stdout;
  expect(await unreviewed()).toContain("Everything is down");
  const [row] = await server.db.select().from(accessRequest).where(eq(accessRequest.breakGlass, true));
  expect((await svc(alice, "review", String(row!.id))).code).toBe(1);
  expect(await svc(root, "review", String(row!.id))).toMatchObject({ code: 0 });
  expect(await unreviewed()).not.toContain("Everything is down");
});

test("leases shows failed revocations with their error, and revoke ends the matching leases", async () => {
  const lease = await newest();
  await server.db
    .update(accessLease)
    .set({ state: "Revoking", endReason: "incident_closed", error: "PostgreSQL is on fire", attempts: 3 })
    .where(eq(accessLease.id, lease.id));
  const { stdout } = await svc(root, "leases");
  const line = stdout.split("\n").find((text) => text.startsWith(`${lease.id} `));
  expect(line).toMatch(/Revoking .* incident closed +3, next .* +PostgreSQL is on fire$/);
  const { code, stdout: issued } = await svc(alice, "get", "shop");
  expect(code).toBe(0);
  const { id } = JSON.parse(issued);
  expect((await svc(alice, "revoke", String(id))).code).toBe(0);
  expect((await newest()).state).toBe("Revoking");
  expect((await svc(alice, "revoke", "--user", "root")).code).toBe(1);
  expect((await svc(alice, "revoke")).code).not.toBe(0);
});
