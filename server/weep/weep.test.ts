import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import { accessLease, accessRequest, accessRole } from "../../drizzle/schema/index.ts";
import { Unavailable } from "../../platform/errors.ts";
import { fakeCredential } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { startFakeSts } from "../../tests/support/domain/fake_sts.ts";
import { createUsualRole } from "../../tests/support/domain/usual_role.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";
import {
  decodeCredentials,
  decodeRoleArns,
  decodeRoleDetails,
  decodeTitles,
  decodeWebResponse,
  decodeWeepError,
  weepHeaders,
} from "../../tests/support/process/weep.ts";

const arnOf = (name: string, account = "123456789012") => `arn:aws:iam::${account}:role/${name}`;
const end = "2030-01-01T00:00:00.000Z";
const secret = "s3cr3t/With+Signs";
const issued = {
  kind: "aws" as const,
  fields: { access_key_id: "ASIAEXAMPLE", secret_access_key: secret, session_token: "t", expiration: end },
};

let server: TestServer;
let alice: Person;
const fake = fakeCredential();

beforeAll(async () => {
  server = await startTestServer({}, pluginsOf(fake));
  alice = await personOf(server, "alice@example.com", ["oncall"]);
  await insertRole("reader", arnOf("team/orders-reader"), { accountName: "Shop (live)" });
  await insertRole("writer", arnOf("team/orders-writer"), {}, { approval: "admin" });
  await insertRole("other-account", arnOf("orders-reader", "999999999999"));
  await insertRole("for-others", arnOf("hidden"), {}, { groups: ["others"] });
  await insertRole("disabled", arnOf("disabled"), {}, { disabledAt: new Date() });
  await insertRole("broken", "arn:aws:s3:::bucket");
  await insertRole("no-aws", undefined);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await server.db.delete(accessLease);
  await server.db.delete(accessRequest);
  fake.answer({ issue: () => issued });
});

async function insertRole(slug: string, roleArn?: string, settings: object = {}, more: object = {}) {
  const at = new Date();
  await server.db.insert(accessRole).values({
    slug,
    description: "",
    pluginSlug: fake.plugin.slug,
    groups: ["oncall"],
    approval: "none",
    settings: { ...(roleArn === undefined ? {} : { roleArn }), ...settings },
    defaultDuration: 3600,
    maxDuration: 7200,
    incidentRequired: false,
    breakGlass: false,
    createdAt: at,
    updatedAt: at,
    ...more,
  });
}

/** Sends a request as Weep does, with the token in the cookie. */
async function weep(person: Person, method: string, path: string, body?: unknown) {
  const { http, body: answer, headers } = await person.call(method, path, body, weepHeaders);
  return { http, text: JSON.stringify(answer), headers };
}
const credentialsFor = (role: string) =>
  weep(alice, "POST", "/api/v1/get_credentials", { requested_role: role, no_ip_restrictions: false });
const leases = () => server.db.select().from(accessLease);

test("Weep lists only the AWS roles that the user may request", async () => {
  const arns = [
    arnOf("team/orders-reader"),
    arnOf("team/orders-writer"),
    arnOf("orders-reader", "999999999999"),
  ];
  const v1 = await weep(alice, "GET", "/api/v1/get_roles?all=true");
  expect(v1.http).toBe(200);
  expect(decodeRoleArns(v1.text).sort()).toEqual(arns);
  const v2 = await weep(alice, "GET", "/api/v2/get_roles?all=true");
  expect(v2.http).toBe(200);
  const roles = decodeRoleDetails(v2.text);
  expect(roles.map(({ arn }) => arn).sort()).toEqual(arns);
  expect(roles.find(({ arn }) => arn === arns[0])).toEqual({
    arn: arns[0]!,
    account_id: "123456789012",
    account_friendly_name: "Shop (live)",
    role_name: "team/orders-reader",
    apps: { app_details: [] },
  });
  const nobody = await personOf(server, "carol@example.com", ["accounting"]);
  expect(decodeRoleArns((await weep(nobody, "GET", "/api/v1/get_roles?all=true")).text)).toEqual([]);
  expect(decodeRoleDetails((await weep(nobody, "GET", "/api/v2/get_roles?all=true")).text)).toEqual([]);
});

test("Weep gets credentials by ARN, slug or part of the name, expiring at a whole second", async () => {
  for (const role of [arnOf("team/orders-reader"), "reader", "TEAM/orders-R"]) {
    const { http, text, headers } = await credentialsFor(role);
    expect([role, http, headers.get("cache-control")]).toEqual([role, 200, "no-store"]);
    expect(decodeCredentials(text)).toEqual({
      AccessKeyId: "ASIAEXAMPLE",
      SecretAccessKey: secret,
      SessionToken: "t",
      Expiration: Date.parse(end) / 1000,
      RoleArn: arnOf("team/orders-reader"),
    });
  }
  const rows = await leases();
  expect(rows.map(({ state, userName }) => [state, userName])).toEqual(
    Array(3).fill(["Active", "alice@example.com"]),
  );
  expect(JSON.stringify(rows) + server.logged.join("")).not.toContain(secret);
});

test("a lease ends if Weep no longer waits for the credentials", async () => {
  const client = new AbortController();
  fake.answer({
    issue: async () => {
      client.abort();
      // Until the server, in this process, knows that the connection is closed.
      for (let turn = 0; turn < 10; turn += 1) await Bun.sleep(10);
      return issued;
    },
  });
  const body = { requested_role: "reader" };
  const answer = alice.call("POST", "/api/v1/get_credentials", body, weepHeaders, client.signal);
  expect(await answer.catch((error: Error) => error.name)).toBe("AbortError");
  await until("the end of the lease", async () => (await leases())[0]?.state === "Revoking");
  expect((await leases())[0]!.endReason).toBe("not_received");
});

test("credentials without an expiration expire with their lease", async () => {
  const { expiration: _, ...fields } = issued.fields;
  fake.answer({ issue: () => ({ ...issued, fields }) });
  const { text } = await credentialsFor("reader");
  const [lease] = await leases();
  expect(decodeCredentials(text).Expiration).toBe(Math.floor(lease!.expiresAt.getTime() / 1000));
});

test("unknown fields from later versions of Weep are ignored", async () => {
  const body = { requested_role: "reader", no_ip_restrictions: true, metadata: { a: 1 }, new_field: [] };
  expect((await weep(alice, "POST", "/api/v1/get_credentials", body)).http).toBe(200);
});

describe("an error has the code that Weep expects", () => {
  const refusedAs = async (role: string) => {
    const { http, text } = await credentialsFor(role);
    return [http, decodeWeepError(text)] as const;
  };
  test.each([
    ["arn:aws:iam::12:role/x", 400, "899"],
    ["arn:aws:s3:::bucket", 400, "899"],
    [arnOf("nothing"), 404, "900"],
    ["nothing-like-it", 404, "900"],
    ["hidden", 404, "900"],
    [arnOf("hidden"), 404, "900"],
    [arnOf("disabled"), 404, "900"],
    ["orders", 409, "901"],
    ["%' or 1=1 --", 404, "900"],
    [arnOf("x", "111111111111"), 404, "906"],
  ])("%s: %i %s", async (role, http, code) => {
    expect(await refusedAs(role)).toMatchObject([http, { code, requested_role: role }]);
    expect(await leases()).toEqual([]);
  });

  test("902 until a role that needs approval is approved, with the command to request it", async () => {
    const [http, error] = await refusedAs("writer");
    expect([http, error.code]).toEqual([403, "902"]);
    expect(error.message).toContain("svc access request writer");
    const [role] = await server.db.select().from(accessRole).where(eq(accessRole.slug, "writer"));
    const at = new Date();
    const approved = {
      roleId: role!.id,
      userName: "alice@example.com",
      reason: "r",
      duration: 3600,
      createdAt: at,
      state: "Approved" as const,
      decidedAt: at,
      decidedBy: "root@example.com",
    };
    await server.db.insert(accessRequest).values([
      { ...approved, expiresAt: sql`now() - interval '1 second'` },
      { ...approved, userName: "bob@example.com", expiresAt: sql`now() + interval '1 hour'` },
    ]);
    expect((await refusedAs("writer"))[1].code).toBe("902");
    // The incident of the first one was deleted.
    await server.db.insert(accessRequest).values([
      { ...approved, incidentName: "INC-9", expiresAt: sql`now() + interval '2 hours'` },
      { ...approved, expiresAt: sql`now() + interval '1 hour'` },
    ]);
    expect((await credentialsFor("writer")).http).toBe(200);
  });

  test("902 when AWS fails, and the lease ends", async () => {
    fake.answer({
      issue: () => {
        throw new Unavailable("STS does not answer");
      },
    });
    const [http, error] = await refusedAs("reader");
    expect([http, error.code]).toEqual([503, "902"]);
    expect((await leases())[0]!.state).toBe("Revoking");
  });

  test("902 when the plugin issues another kind of credential, and the lease ends", async () => {
    fake.answer({ issue: () => ({ kind: "token", fields: { token: secret } }) });
    const [http, error] = await refusedAs("reader");
    expect([http, error.code]).toEqual([503, "902"]);
    expect((await leases())[0]!.state).toBe("Revoking");
  });

  test.each<[string, unknown]>([
    ["invalid JSON", "{"],
    ["no role", { no_ip_restrictions: true }],
    ["a number as the role", { requested_role: 1 }],
    ["an empty role", { requested_role: "" }],
    ["a list", []],
    ["a role of 100,000 characters", { requested_role: "x".repeat(100_000) }],
  ])("904 for a body with %s", async (_, body) => {
    const { http, text } = await weep(alice, "POST", "/api/v1/get_credentials", body);
    expect([http, decodeWeepError(text).code]).toEqual([400, "904"]);
  });

  test("904 for an unknown parameter or another media type", async () => {
    for (const [method, path, body, headers] of [
      ["GET", "/api/v1/get_roles?all=true&unheard=1", undefined, {}],
      ["GET", "/api/v1/policies/typeahead?search=x", undefined, {}],
      ["POST", "/api/v1/get_credentials", { requested_role: "reader" }, { "content-type": "text/plain" }],
    ] as const) {
      const { http, body: answer } = await alice.call(method, path, body, headers);
      expect([path, http >= 400, decodeWeepError(JSON.stringify(answer)).code]).toEqual([path, true, "904"]);
    }
  });

  test.each([
    ["GET", "/api/v1/get_roles?all=true"],
    ["GET", "/api/v2/get_roles?all=true"],
    ["POST", "/api/v1/get_credentials"],
    ["GET", "/api/v2/get_resource_url?arn=x"],
    ["GET", "/api/v1/policies/typeahead?search=&resource=account"],
  ])("invalid_jwt at %s %s for every refused token", async (method, path) => {
    const revoked = await personOf(server, "dave@example.com", ["oncall"]);
    await revoked.call("DELETE", "/tokens/current");
    const nobody = await personOf(server);
    const body = method === "POST" ? { requested_role: "reader" } : undefined;
    for (const [who, headers] of [
      [revoked, {}],
      [nobody, {}],
      [nobody, { cookie: "svc_auth=nonsense" }],
      [nobody, { cookie: "svc_auth=" }],
      [nobody, { authorization: "Bearer a.b.c" }],
      [nobody, { authorization: "Basic YTpi" }],
    ] as const) {
      const answer = await who.call(method, path, body, { ...weepHeaders, ...headers });
      expect([answer.http, decodeWeepError(JSON.stringify(answer.body)).code]).toEqual([401, "invalid_jwt"]);
    }
  });
});

test("aws-web-identity gets credentials from STS with a token for STS alone", async () => {
  await using real = await startTestServer({ pluginCredential: "aws-web-identity" });
  const sts = startFakeSts();
  sts.provider.issuer = real.url;
  const roleArn = arnOf("ops/deploy");
  sts.roles.set(roleArn, {
    maxSessionSeconds: 7200,
    web: { audience: "sts.amazonaws.com", subject: "role:deploy:user:bob@example.com" },
  });
  const root = await personOf(real, "root@example.com", ["admin"]);
  const settings = { roleArn, endpoint: sts.url, region: "eu-central-1" };
  await createUsualRole(root, { slug: "deploy", plugin: "aws-web-identity", settings });
  const bob = await personOf(real, "bob@example.com", ["oncall"]);
  const answer = await weep(bob, "POST", "/api/v1/get_credentials", { requested_role: "deploy" });
  expect(answer.http).toBe(200);
  const { RoleArn, Expiration } = decodeCredentials(answer.text);
  expect(RoleArn).toBe(roleArn);
  expect(Expiration).toBeGreaterThan(real.clock.now().getTime() / 1000 + 3000);
  sts.roles.clear();
  const refused = await weep(bob, "POST", "/api/v1/get_credentials", { requested_role: "deploy" });
  expect([refused.http, decodeWeepError(refused.text).code]).toEqual([503, "902"]);
  await sts.stop();
});

test("Weep gets the path of a role, and decodes the error for an unknown one", async () => {
  const { text } = await weep(alice, "GET", `/api/v2/get_resource_url?arn=${arnOf("team/orders-reader")}`);
  expect(decodeWebResponse(text).data).toEqual({ url: "/access/roles/reader" });
  const refused = await weep(alice, "GET", `/api/v2/get_resource_url?arn=${arnOf("nothing")}`);
  expect([refused.http, decodeWebResponse(refused.text).errors]).toMatchObject([404, [expect.any(String)]]);
});

test("typeahead finds accounts and roles, with an empty search and with brackets in a name", async () => {
  const titles = async (query: Record<string, string>) => {
    const { http, text } = await weep(
      alice,
      "GET",
      `/api/v1/policies/typeahead?${new URLSearchParams({ limit: "1000", ...query })}`,
    );
    expect(http).toBe(200);
    return decodeTitles(text);
  };
  expect(await titles({ resource: "account", search: "shop" })).toEqual(["Shop live (123456789012)"]);
  expect(await titles({ resource: "account", search: "" })).toHaveLength(3);
  const search = "arn:aws:iam::123456789012:role/";
  expect(await titles({ resource: "iam_arn", search })).toEqual([
    arnOf("team/orders-reader"),
    arnOf("team/orders-writer"),
  ]);
  expect(await titles({ resource: "iam_arn", search: "hidden" })).toEqual([]);
  for (const resource of ["s3", "__proto__", "constructor"])
    expect(await titles({ resource, search: "" })).toEqual([]);
  expect(await titles({ resource: "iam_arn", search: "", limit: "1" })).toHaveLength(1);
});
