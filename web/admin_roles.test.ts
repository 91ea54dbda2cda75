import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { accessRole, auditLog } from "../drizzle/schema/index.ts";
import { fieldsOf, type Page, PageReader, textOf } from "../tests/support/browser/reader.ts";
import { inTheWay, somebodyWaits } from "../tests/support/database/blocked.ts";
import { type AccessWorld, startAccessWorld } from "../tests/support/domain/access_world.ts";
import { roleWithoutSecrets, startWithoutKeySecret } from "../tests/support/http/key_file_server.ts";

const path = "/app/admin/roles";
let world: AccessWorld;
let root: PageReader;
let carol: PageReader;
beforeAll(async () => {
  world = await startAccessWorld();
  root = await PageReader.signIn(world.server, "root@example.com", ["admin"]);
  carol = await PageReader.signIn(world.server);
});
afterAll(() => world[Symbol.asyncDispose]());

const apply = (text: unknown) =>
  root.submit(path, { text: typeof text === "string" ? text : JSON.stringify(text) });
const stored = async (slug: string) => (await world.admin.call("GET", `/access/roles/${slug}`)).body;
const roleOf = (slug: string, more: object = {}) => ({
  slug,
  plugin: "postgresql-role",
  settings: world.target.settings,
  ...more,
});

test("only admins see the roles, and apply, check, disable, enable and delete them", async () => {
  const slug = await world.makeRole();
  const { csrf } = fieldsOf((await carol.open("/app/report")).html, "/app/report") as { csrf: string };
  const before = await world.server.db.$count(auditLog);
  for (const at of ["", `/${slug}`, `/${slug}/disable`, `/${slug}/delete`]) {
    const { status, html } = await carol.open(`${path}${at}`);
    expect([at, status]).toEqual([at, 403]);
    expect(html).not.toContain(world.target.broker);
  }
  for (const at of ["", ...["check", "disable", "enable", "delete"].map((step) => `/${slug}/${step}`)]) {
    const text = JSON.stringify(roleOf("carols"));
    const { status } = await carol.send(`${path}${at}`, { csrf, key: crypto.randomUUID(), text });
    expect([at, status]).toEqual([at, 403]);
  }
  expect(await world.server.db.$count(auditLog)).toBe(before);
});

test("a file of one role leads to its page, which shows everything but the secrets", async () => {
  const { password, ...settings } = world.target.settings;
  const lines = Object.entries({ ...settings, password }).map(
    ([key, value]) => `  ${key}: ${JSON.stringify(value)}`,
  );
  const made = await apply(
    `slug: shop\nplugin: postgresql-role\ngroups: [oncall, ops]\nsettings:\n${lines.join("\n")}`,
  );
  expect([made.status, made.path]).toEqual([200, `${path}/shop`]);
  const shown = textOf(made.html);
  for (const text of ["oncall, ops", "1 hour, at most 8 hours", ...Object.values(settings).map(String)])
    expect(shown).toContain(text);
  expect(shown).not.toContain(String(password));
  expect(await stored("shop")).toMatchObject({ approval: "admin", default_duration: 3600, version: 1 });
  expect((await root.open(path)).html).toContain(`href="${path}/shop"`);
  // Without the secret, which is kept.
  await apply({ ...roleOf("shop", { approval: "none", groups: ["*"] }), settings });
  expect(await stored("shop")).toMatchObject({ approval: "none", version: 2 });
  const { html } = await root.submit(`${path}/shop`, {}, `${path}/shop/check`);
  expect(html).toContain("It can issue credentials");
});

test("the secrets of a file are in no database row and no log line", async () => {
  const { server, target } = world;
  const secret = `secret-${crypto.randomUUID()}`;
  const settings = { ...target.settings, password: secret };
  const keys = () => server.db.execute(sql`select 1 from idempotency_key`);
  const before = await keys();
  await apply([{ ...roleOf("sealed"), settings }]);
  const refused = await apply([{ ...roleOf("sealed"), settings, approval: "nobody" }]);
  expect(refused.status).toBe(400);
  await apply(`{"password": "${secret}`);
  // Nor a digest of them.
  expect(await keys()).toHaveLength(before.length);
  const tables = await server.db.execute<{ name: string }>(
    sql`select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`,
  );
  for (const { name } of tables) {
    const found = await server.db.execute(
      sql`select 1 from ${sql.raw(name)} t where position(${secret} in t::text) > 0`,
    );
    expect([name, found.length]).toEqual([name, 0]);
  }
  expect(server.logged.join("")).not.toContain(secret);
});

test("the roles before a refused one are applied and listed, and the text is kept", async () => {
  await apply(roleOf("before"));
  const roles = [roleOf("before"), roleOf("between"), roleOf("refused", { plugin: "no-such-plugin" })];
  const { status, html } = await apply([...roles, roleOf("after")]);
  expect(status).toBe(409);
  expect(textOf(html)).toContain(
    "refused: The plugin no-such-plugin is not enabled: ask an operator to add it to SVC_PLUGIN_CREDENTIAL. Applied before it: before updated, between created.",
  );
  expect(fieldsOf(html, path).text).toBe(JSON.stringify([...roles, roleOf("after")]));
  expect([(await stored("between")).version, (await stored("after")).code]).toEqual([1, "not_found"]);
});

const applied = "Applied before it: open";

test("without SVC_KEY_SECRET, the roles before the first secret are applied and listed", async () => {
  await using without = await startWithoutKeySecret();
  const reader = await PageReader.signIn(without, "root@example.com", ["admin"]);
  const text = JSON.stringify([roleWithoutSecrets, roleOf("secret")]);
  const { html } = await reader.submit(path, { text });
  expect(textOf(html)).toContain(
    `secret: SVC_KEY_SECRET: required to store the secrets of access roles. Applied before it: no-secrets created`,
  );
  for (const [slug, status] of [
    ["no-secrets", 200],
    ["secret", 404],
  ] as const)
    expect([slug, (await reader.open(`${path}/${slug}`)).status]).toEqual([slug, status]);
});

test("the roles before one that is deleted meanwhile are applied and listed", async () => {
  const roles = [roleOf("open"), roleOf("deleted")];
  await apply(roles);
  const [ended] = await inTheWay(
    world.server.db,
    (tx) => tx.delete(accessRole).where(eq(accessRole.slug, "deleted")),
    () => apply(roles),
  );
  const { status, html } = (ended as PromiseFulfilledResult<Page>).value;
  expect([status, textOf(html)]).toEqual([
    404,
    expect.stringMatching(new RegExp(`deleted: There is no such access role.*${applied} updated`)),
  ]);
});

test.each([
  ["the disk of the database is full", "53100", 503, "fails: The disk of the database is full"],
  ["the server has a fault", "P0001", 500, "fails: Unexpected error"],
])("the roles before a failure are listed, too, when %s", async (_, sqlstate, status, reason) => {
  const { db } = world.server;
  await db.execute(
    sql.raw(`create or replace function fail() returns trigger language plpgsql as
      $$ begin raise 'a secret' using errcode = '${sqlstate}'; end $$;
    create or replace trigger fail before insert on access_role for each row when (new.slug = 'fails')
      execute function fail()`),
  );
  const answer = await apply([roleOf("open"), roleOf("fails")]);
  expect(answer.status).toBe(status);
  for (const text of [reason, `${applied} `]) expect(textOf(answer.html)).toContain(text);
  expect(answer.html).not.toContain("a secret");
});

test.each([
  ["neither YAML nor JSON", () => "slug: [", "The text is neither YAML nor JSON"],
  ["too deep", () => "[".repeat(100_000), "The text is neither YAML nor JSON"],
  ["no slug", () => [{ plugin: "postgresql-role" }], "The text: every role needs a slug"],
  ["nothing", () => "#", "The text: every role needs a slug"],
  ["a slug that cannot be stored", () => [roleOf("\0")], "role 1 of the text: The field slug"],
  ["an unknown field", () => roleOf("odd", { grups: ["oncall"] }), "odd: The field grups is unknown"],
  [
    "a value of another type",
    () => roleOf("odd", { disabled: "yes" }),
    "odd: The field disabled must be true or false",
  ],
  ["a limit of the core", () => roleOf("odd", { default_duration: 90_000 }), "exceeds max_duration"],
  ["over 1 MiB", () => `# ${"a".repeat(1024 * 1024)}`, "The text is longer than 1 MiB"],
  ["101 roles", () => Array(101).fill(roleOf("odd")), "Apply at most 100 roles at once"],
])("a text with %s is refused, and kept", async (_, made, reason) => {
  const text = typeof made() === "string" ? (made() as string) : JSON.stringify(made());
  const { status, html } = await apply(text);
  expect([status, textOf(html)]).toEqual([400, expect.stringContaining(reason)]);
  expect(fieldsOf(html, path).text).toBe(text);
  expect((await stored("odd")).code).toBe("not_found");
});

test("a role that somebody else changes at the same time is refused", async () => {
  const { db } = world.server;
  await apply(roleOf("raced"));
  let answer: ReturnType<typeof apply> | undefined;
  await db.transaction(async (tx) => {
    await tx
      .update(accessRole)
      .set({ version: 2, description: "Theirs" })
      .where(eq(accessRole.slug, "raced"));
    answer = apply(roleOf("raced", { description: "Mine" }));
    await somebodyWaits(db);
  });
  const { status, html } = await answer!;
  expect([status, textOf(html)]).toEqual([
    409,
    expect.stringContaining("raced: This access role has changed"),
  ]);
  expect((await stored("raced")).description).toBe("Theirs");
});

test("a check shows what is wrong with a role", async () => {
  await apply(roleOf("unreachable", { settings: { ...world.target.settings, password: "wrong" } }));
  const { html } = await root.submit(`${path}/unreachable`, {}, `${path}/unreachable/check`);
  expect(html).toContain("It cannot issue credentials");
  expect(html).toContain("<li");
  const { db } = world.server;
  await db.update(accessRole).set({ pluginSlug: "gone" }).where(eq(accessRole.slug, "unreachable"));
  const gone = await root.submit(`${path}/unreachable`, {}, `${path}/unreachable/check`);
  for (const text of ["It cannot issue credentials", "The plugin gone is not enabled"])
    expect(gone.html).toContain(text);
});

test("a check of a target that does not answer in time says that the result is not known", async () => {
  using silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  await apply(roleOf("silent", { settings: { ...world.target.settings, port: silent.port } }));
  const { status, html } = await root.submit(`${path}/silent`, {}, `${path}/silent/check`);
  expect(status).toBe(200);
  for (const text of [
    "It is not known whether it can issue",
    "<code>svc access check silent</code> waits longer",
  ])
    expect(html).toContain(text);
  for (const verdict of ["It can", 'role="alert"']) expect(html).not.toContain(verdict);
});

test("a role is deleted after a question, unless it was used", async () => {
  await apply(roleOf("unused"));
  const at = `${path}/unused/delete`;
  expect((await root.submit(at, {}, at)).path).toBe(path);
  expect((await stored("unused")).code).toBe("not_found");
  const used = await world.makeRole();
  expect((await world.issue(world.alice, used)).http).toBe(201);
  const refused = await root.submit(`${path}/${used}/delete`, {}, `${path}/${used}/delete`);
  expect([refused.status, refused.html]).toEqual([409, expect.stringContaining("still has leases")]);
  for (const missing of ["none", "none/delete"]) {
    const { status, html } = await root.open(`${path}/${missing}`);
    expect([missing, status]).toEqual([missing, 404]);
    expect(html).not.toContain("may not request");
  }
});

test("a used role is disabled after a question, which ends its leases, and enabled again", async () => {
  const slug = await world.makeRole();
  const at = `${path}/${slug}`;
  const before = await stored(slug);
  expect((await world.issue(world.alice, slug)).http).toBe(201);
  expect((await root.open(at)).html).toContain(`href="${at}/disable"`);
  expect((await root.open(`${at}/disable`)).html).toContain("its leases end");
  expect((await stored(slug)).disabled).toBe(false);
  const disabled = await root.submit(`${at}/disable`, {}, `${at}/disable`);
  expect([disabled.path, textOf(disabled.html)]).toEqual([at, expect.stringContaining("Disabled: nobody")]);
  const { version, updated_at, ...kept } = before;
  expect(await stored(slug)).toMatchObject({ ...kept, disabled: true, version: version + 1 });
  expect((await world.issue(world.alice, slug)).http).toBe(404);
  const enabled = await root.submit(at, {}, `${at}/enable`);
  expect([enabled.path, enabled.html]).toEqual([at, expect.stringContaining(`href="${at}/disable"`)]);
  expect(await stored(slug)).toMatchObject({ ...kept, disabled: false, version: version + 2 });
  // With its secrets.
  expect((await world.issue(world.alice, slug)).http).toBe(201);
});

test("a role that cannot be enabled says why", async () => {
  await apply(roleOf("lost", { disabled: true }));
  const lost = { pluginSlug: "gone" };
  await world.server.db.update(accessRole).set(lost).where(eq(accessRole.slug, "lost"));
  const { status, html } = await root.submit(`${path}/lost`, {}, `${path}/lost/enable`);
  expect([status, textOf(html)]).toEqual([409, expect.stringContaining("The plugin gone is not enabled")]);
  expect((await stored("lost")).disabled).toBe(true);
  for (const [at, step] of [
    ["/none/disable", 404],
    ["/lost/disable", 200],
  ] as const)
    expect([at, (await root.open(`${path}${at}`)).status]).toEqual([at, step]);
});
