import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { decodeJwt } from "jose";
import {
  type FakeSts,
  faultAnswer,
  sessionXml,
  startFakeSts,
  xml,
} from "../../tests/support/domain/fake_sts.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { createUsualRole, usualRole } from "../../tests/support/domain/usual_role.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let sts: FakeSts;
let admin: Person;
let alice: Person;

const roleArn = "arn:aws:iam::123456789012:role/ops/deploy";
const keyId = "AKIAIOSFODNN7EXAMPLE";
const secretAccessKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

beforeAll(async () => {
  sts = startFakeSts();
  server = await startTestServer({ pluginCredential: "aws-web-identity,aws-assume-role" });
  sts.provider.issuer = server.url;
  admin = await personOf(server, "root@example.com", ["admin"]);
  alice = await personOf(server, "alice@example.com", ["oncall"]);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sts.stop();
});
beforeEach(() => {
  sts.secrets.clear();
  sts.secrets.set(keyId, secretAccessKey);
  sts.roles.clear();
  sts.roles.set(roleArn, {
    maxSessionSeconds: 7200,
    web: { audience: "sts.amazonaws.com", subject: "role:aws-*:user:*" },
    keys: { ids: [keyId] },
  });
  sts.asked.length = 0;
  sts.next.length = 0;
});

const plugins = {
  "aws-web-identity": {},
  "aws-assume-role": { accessKeyId: keyId, secretAccessKey },
};
type PluginSlug = keyof typeof plugins;
const each = Object.keys(plugins) as PluginSlug[];

const makeRole = (plugin: PluginSlug, settings: object = {}, more: object = {}) =>
  createUsualRole(admin, {
    plugin,
    settings: { roleArn, endpoint: sts.url, ...plugins[plugin], ...settings },
    max_duration: 86_400,
    ...more,
  });

const issue = (role: string, more: object = {}, person = alice) =>
  person.call("POST", "/access/leases/", { role, ...more });

async function refusal(role: string, more: object = {}): Promise<string> {
  const { http, body } = await issue(role, more);
  expect(http).toBe(503);
  return body.detail;
}

const problemsOf = async (role: string) =>
  (await admin.call("GET", `/access/roles/${role}/check`)).body.problems as {
    problem: string;
    fix?: string;
  }[];

describe.each(each)("%s", (plugin) => {
  test("issues a session of the role, named after the user", async () => {
    const role = await makeRole(plugin, { region: "eu-central-1", sessionPolicy: '{"Statement":[]}' });
    expect(await problemsOf(role)).toEqual([]);
    sts.asked.length = 0;
    const { http, body } = await issue(role);
    expect([http, body.credential]).toEqual([
      201,
      {
        kind: "aws",
        fields: {
          access_key_id: expect.stringMatching(/^ASIA\d{16}$/),
          secret_access_key: sts.secrets.get(body.credential.fields.access_key_id),
          session_token: expect.stringMatching(/^token\//),
          expiration: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
          role_arn: roleArn,
          region: "eu-central-1",
        },
      },
    ]);
    const { WebIdentityToken: _, ...asked } = sts.asked[0]!;
    expect(asked).toEqual({
      Action: plugin === "aws-assume-role" ? "AssumeRole" : "AssumeRoleWithWebIdentity",
      Version: "2011-06-15",
      RoleArn: roleArn,
      RoleSessionName: "alice@example.com",
      DurationSeconds: "3600",
      Policy: '{"Statement":[]}',
    });
    expect(Date.parse(body.expires_at)).toBeLessThanOrEqual(Date.parse(body.credential.fields.expiration));
  });

  test("requests the user's duration, within the limits of AWS", async () => {
    const role = await makeRole(plugin);
    expect((await issue(role, { duration: 900 })).http).toBe(201);
    // Part of the 15 minutes may have passed.
    expect((await issue(role, { duration: 841 })).http).toBe(201);
    expect(sts.asked.map(({ DurationSeconds }) => DurationSeconds)).toEqual(["900", "900"]);
    expect(await refusal(role, { duration: 839 })).toContain("An AWS session lasts at least 15 minutes");
    expect(await refusal(role, { duration: 43_201 })).toContain("An AWS session can last at most 12 hours");
    expect(sts.asked).toHaveLength(2);
    expect(await refusal(role, { duration: 7201 })).toBe(
      `${role}: ${plugin} failed: The duration exceeds the AWS role's MaxSessionDuration: use a shorter --duration, or raise it (ValidationError, request 5d6e1b2c-9a1b-4c0e-8f0e-0123456789ab)`,
    );
  });

  test("a user name that AWS would reject becomes a unique, valid session name", async () => {
    const role = await makeRole(plugin);
    for (const user of ["jörg@example.com", "jürg@example.com", `${"a".repeat(60)}@example.com`])
      expect((await issue(role, {}, await personOf(server, user, ["oncall"]))).http).toBe(201);
    const names = sts.asked.map(({ RoleSessionName }) => RoleSessionName!);
    expect(names[0]).toMatch(/^j-rg@example.com-[0-9a-f]{8}$/);
    expect(names[1]).toMatch(/^j-rg@example.com-[0-9a-f]{8}$/);
    expect(names[2]).toMatch(/^a{55}-[0-9a-f]{8}$/);
    expect(new Set(names).size).toBe(3);
  });

  test("describes AWS errors without repeating AWS's message", async () => {
    const role = await makeRole(plugin);
    sts.roles.get(roleArn)!.web!.subject = "role:other:*";
    sts.roles.get(roleArn)!.keys!.ids = [];
    const denied =
      plugin === "aws-assume-role"
        ? "The stored key may not assume this AWS role: check the role's trust policy and the user's sts:AssumeRole"
        : `role:${role}:user:alice@example.com may not assume this AWS role: check its trust policy`;
    expect(await refusal(role)).toStartWith(`${role}: ${plugin} failed: ${denied} (AccessDenied, request `);
    expect((await problemsOf(role))[0]!.problem).toStartWith(
      denied.replace("alice@example.com", "svc-check"),
    );
    const codes = {
      MalformedPolicyDocument: "rejected the session policy as malformed",
      PackedPolicyTooLarge: "rejected the session policy as too large",
      RegionDisabledException: "has STS disabled in this region",
      ValidationError: "rejected a setting of this access role",
      SomethingNew: "AWS rejected the request (SomethingNew",
    };
    for (const [code, said] of Object.entries(codes)) {
      sts.next.push(() => faultAnswer(400, code, `echo ${JSON.stringify(sts.asked.at(-1))}`));
      const detail = await refusal(role);
      expect(detail).toContain(said);
      expect(detail).not.toContain("echo");
    }
    const hidden = sts.asked.map(({ WebIdentityToken }) => WebIdentityToken ?? "").filter(Boolean);
    for (const secret of [...hidden, secretAccessKey]) {
      expect(server.logged.join("")).not.toContain(secret);
      expect(server.logged.join("")).not.toContain(encodeURIComponent(secret));
    }
  });

  test("retries when AWS is busy or fails, up to three attempts", async () => {
    const role = await makeRole(plugin);
    sts.next.push(() => faultAnswer(400, "Throttling", "Rate exceeded"));
    sts.next.push(() => new Response("upstream connect error", { status: 503 }));
    expect((await issue(role)).http).toBe(201);
    for (let time = 0; time < 3; time++) sts.next.push(() => faultAnswer(503, "ServiceUnavailable", "x"));
    expect(await refusal(role)).toContain("AWS failed with an internal error (ServiceUnavailable");
    expect(sts.next).toHaveLength(0);
    sts.next.push(() => faultAnswer(403, "AccessDenied", "x"));
    const before = sts.asked.length;
    await refusal(role);
    expect(sts.asked).toHaveLength(before + 1);
  });

  test("accepts only a valid session from AWS", async () => {
    const role = await makeRole(plugin);
    const action = plugin === "aws-assume-role" ? "AssumeRole" : "AssumeRoleWithWebIdentity";
    const session = {
      accessKeyId: "ASIA0000000000000001",
      secretAccessKey: "a",
      sessionToken: "b",
      expiration: "2030-01-01T00:00:00Z",
    };
    const whole = await sessionXml(action, session).text();
    const bad: Record<string, string> = {
      empty: "",
      "plain text": "hello",
      HTML: "<html><body>Sign in to the network<br></body></html>",
      JSON: JSON.stringify({ Credentials: session }),
      truncated: whole.slice(0, -20),
      "the answer to another action": whole.replaceAll(action, "GetSessionToken"),
      "no key": whole.replace(/<AccessKeyId>.*<\/AccessKeyId>/, ""),
      "two keys": whole.replace(/(<AccessKeyId>.*<\/AccessKeyId>)/, "$1$1"),
      "a key in a comment": whole.replace(/(<AccessKeyId>.*<\/AccessKeyId>)/, "<!-- $1 -->"),
      "a newline in a secret": whole.replace("<SecretAccessKey>a", "<SecretAccessKey>a&#10;b"),
      "no time": whole.replace(session.expiration, "tomorrow"),
      "a custom entity": `<!DOCTYPE x [<!ENTITY e "a">]>${whole.replace(">a<", ">&e;<")}`,
      deep: "<a>".repeat(100_000),
      large: whole.replace(">b<", `>${"b".repeat(70_000)}<`),
    };
    for (const [name, text] of Object.entries(bad)) {
      sts.next.push(() => xml(200, text));
      expect([name, await refusal(role)]).toEqual([
        name,
        expect.stringMatching(/127\.0\.0\.1:\d+ answered without a valid session$/),
      ]);
    }
    const good = {
      "a comment": whole.replace(">b<", "><!-- x -->b<"),
      CDATA: whole.replace(">b<", "><![CDATA[b]]><"),
    };
    for (const text of Object.values(good)) {
      sts.next.push(() => xml(200, text));
      expect((await issue(role)).body.credential.fields.session_token).toBe("b");
    }
    sts.next.push(() => new Response(null, { status: 307, headers: { location: "http://127.0.0.1:9/" } }));
    expect(await refusal(role)).toContain("answered with status 307 and no error of STS");
  });

  test("reports an unreachable address", async () => {
    const role = await makeRole(plugin, { endpoint: "http://127.0.0.1:9" });
    expect(await refusal(role)).toMatch(/127\.0\.0\.1:9 cannot be reached \(\w+\)$/);
  });

  test("retries when AWS does not answer", async () => {
    const role = await makeRole(plugin);
    const timeout = AbortSignal.timeout;
    using limits = spyOn(AbortSignal, "timeout").mockImplementation((ms) => timeout(ms === 8000 ? 100 : ms));
    const { promise, resolve } = Promise.withResolvers<Response>();
    sts.next.push(() => promise);
    expect((await issue(role)).http).toBe(201);
    for (let time = 0; time < 3; time++) sts.next.push(() => promise);
    expect(await refusal(role)).toEndWith("did not answer within 8 s");
    expect(limits).toHaveBeenCalledWith(8000);
    resolve(new Response());
  });

  test("waits for a slow answer no longer than the plugin's timeout", async () => {
    await using hasty = await server.another({ pluginTimeout: 1 });
    const role = await makeRole(plugin);
    const { promise, resolve } = Promise.withResolvers<Response>();
    sts.next.push(() => promise);
    const person = await personOf(hasty, "alice@example.com", ["oncall"]);
    const { http, body } = await issue(role, {}, person);
    expect([http, body.detail]).toEqual([503, `${role}: ${plugin} did not answer within 1 s`]);
    resolve(new Response());
  });

  test.each([
    ["roleArn", "arn:aws:iam::123456789012:user/alice"],
    ["roleArn", "arn:aws:iam::12345:role/x"],
    ["endpoint", "http://sts.example.com"],
    ["endpoint", "https://user@sts.example.com"],
    ["endpoint", "http://127.0.0.1.example.com"],
    ["region", "EU"],
    ["region", "eu-central-1.example.com/"],
    ["sessionPolicy", "x".repeat(2049)],
  ])("refuses a role whose %s is %s", async (key, value) => {
    const { http, body } = await admin.call("POST", "/access/roles/", {
      slug: "aws-bad",
      description: "x",
      plugin,
      settings: { roleArn, ...plugins[plugin], [key]: value },
      ...usualRole,
    });
    expect([http, body.field]).toEqual([400, `settings.${key}`]);
  });

  test("check reports settings that cannot work", async () => {
    const role = await makeRole(plugin, { sessionPolicy: "{}" });
    const problem = "sessionPolicy is not an IAM policy in JSON, with Version and Statement";
    expect(await problemsOf(role)).toEqual([{ problem }]);
    expect(await refusal(role)).toContain(problem);
    expect(sts.asked).toEqual([]);
  });

  test("serves Weep on ConsoleMe's paths", async () => {
    const arn = `${roleArn}-${plugin}`;
    sts.roles.set(arn, sts.roles.get(roleArn)!);
    await makeRole(plugin, { roleArn: arn, accountName: "production" });
    const { body: listed } = await alice.call("GET", "/api/v2/get_roles?all=true");
    expect(listed.data.roles).toContainEqual({
      arn,
      account_id: "123456789012",
      account_friendly_name: "production",
      role_name: `ops/deploy-${plugin}`,
      apps: { app_details: [] },
    });
    const { http, body } = await alice.call("POST", "/api/v1/get_credentials", { requested_role: arn });
    expect([http, body]).toEqual([
      200,
      {
        Credentials: {
          AccessKeyId: expect.stringMatching(/^ASIA/),
          SecretAccessKey: sts.secrets.get(body.Credentials.AccessKeyId),
          SessionToken: expect.any(String),
          Expiration: expect.any(Number),
          RoleArn: arn,
        },
      },
    ]);
    expect(Number.isInteger(body.Credentials.Expiration)).toBe(true);
    sts.next.push(() => faultAnswer(403, "AccessDenied", "x"));
    const refused = await alice.call("POST", "/api/v1/get_credentials", { requested_role: arn });
    expect([refused.http >= 400, refused.body.code]).toEqual([true, "902"]);
  });

  test("issues leases that cannot be renewed, and stores no part of the session", async () => {
    const role = await makeRole(plugin);
    const { body } = await issue(role, { renewable: true });
    expect(Date.parse(body.expires_at) - Date.parse(body.created_at)).toBeGreaterThan(3_590_000);
    expect((await alice.call("DELETE", `/access/leases/${body.id}`)).http).toBe(200);
    expect((await alice.call("POST", `/access/leases/${body.id}/renew`)).http).toBe(409);
    const [row] = await server.db.execute<{ text: string }>(
      sql`select l::text as text from access_lease l where id = ${body.id}`,
    );
    const { access_key_id, secret_access_key, session_token } = body.credential.fields;
    for (const part of [access_key_id, secret_access_key, session_token])
      expect(row!.text).not.toContain(part);
  });
});

describe("web identity", () => {
  test("sends a five-minute token for AWS alone, about the user and the incident", async () => {
    const ids = await insertIncident(server.db, server.clock.now());
    const [incident] = await server.db.execute<{ name: string }>(
      sql`select name from incident where id = ${ids.incidentId}`,
    );
    const role = await makeRole("aws-web-identity");
    const { body } = await issue(role, { incident: incident!.name });
    const { jti, iat, exp, ...claims } = decodeJwt(sts.asked[0]!.WebIdentityToken!);
    expect(claims).toEqual({
      iss: server.url,
      aud: "sts.amazonaws.com",
      sub: `role:${role}:user:alice@example.com`,
      user: "alice@example.com",
      role,
      lease: body.id,
      incident: incident!.name,
    });
    expect([typeof jti, exp! - iat!]).toEqual(["string", 300]);
    expect(JSON.stringify(body)).not.toContain(sts.asked[0]!.WebIdentityToken);
  });

  test("names the issuer and the audience that AWS does not trust", async () => {
    const role = await makeRole("aws-web-identity", { audience: "another" });
    const said = `AWS rejected our token: check that the account has the OpenID provider ${server.url} with the audience another (InvalidIdentityToken`;
    expect(await refusal(role)).toContain(said);
    const [{ problem, fix }] = (await problemsOf(role)) as [{ problem: string; fix: string }];
    expect(problem).toStartWith(said);
    const name = server.url.replace("http://", "");
    expect(JSON.parse(fix)).toEqual({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Action: "sts:AssumeRoleWithWebIdentity",
          Principal: { Federated: `arn:aws:iam::123456789012:oidc-provider/${name}` },
          Condition: {
            StringEquals: { [`${name}:aud`]: "another" },
            StringLike: { [`${name}:sub`]: `role:${role}:user:*` },
          },
        },
      ],
    });
  });

  test("retries when AWS cannot fetch our keys", async () => {
    const role = await makeRole("aws-web-identity");
    sts.next.push(() => faultAnswer(400, "IDPCommunicationError", "x"));
    expect((await issue(role)).http).toBe(201);
    sts.next.push(() => faultAnswer(400, "ExpiredTokenException", "x"));
    expect(await refusal(role)).toContain("AWS rejected our token as expired");
  });

  test("requires an https issuer and a signature that AWS supports", async () => {
    const role = await makeRole("aws-web-identity", { endpoint: "https://127.0.0.1:9" });
    await admin.call("PUT", `/access/roles/${role}`, {
      ...(await admin.call("GET", `/access/roles/${role}`)).body,
      settings: { roleArn },
    });
    const problem = `AWS requires an https address for the issuer, not ${server.url}`;
    expect(await problemsOf(role)).toEqual([{ problem, fix: "SVC_FEDERATION_ISSUER=https://..." }]);
    expect(await refusal(role)).toContain(problem);
    await using other = await startTestServer({
      tokenAlgorithm: "Ed25519",
      pluginCredential: "aws-web-identity",
    });
    const root = await personOf(other, "root@example.com", ["admin"]);
    const settings = { roleArn, endpoint: sts.url };
    const slug = await createUsualRole(root, { plugin: "aws-web-identity", settings });
    expect((await root.call("GET", `/access/roles/${slug}/check`)).body.problems).toEqual([
      { problem: "AWS does not accept tokens signed with Ed25519", fix: "SVC_TOKEN_ALGORITHM=ES256" },
    ]);
  });
});

test("svc access check prints the trust policy of docs/credentials-aws.md", async () => {
  const page = await Bun.file(join(import.meta.dir, "../../docs/credentials-aws.md")).text();
  const [trust] = [...page.matchAll(/```json\n(.*?)```/gs)].map(([, block]) => JSON.parse(block!));
  const person = await personOf(server, "root@example.com", ["admin"]);
  const role = await makeRole("aws-web-identity");
  sts.roles.get(roleArn)!.web!.subject = "";
  const { fix } = (await person.call("GET", `/access/roles/${role}/check`)).body.problems[0];
  const here = server.url.replace("http://", "");
  expect(JSON.parse(fix.replaceAll(here, "svc.example.com").replaceAll(role, "aws-deploy"))).toEqual(trust);
});

describe("a stored key", () => {
  test("is never shown, and its signature passes another implementation", async () => {
    const role = await makeRole("aws-assume-role", { externalId: "svc:1/2" });
    sts.roles.get(roleArn)!.keys!.externalId = "svc:1/2";
    expect((await issue(role)).http).toBe(201);
    expect((await admin.call("GET", `/access/roles/${role}`)).body.settings).toEqual({
      roleArn,
      accessKeyId: keyId,
      externalId: "svc:1/2",
      endpoint: sts.url,
    });
    const [row] = await server.db.execute<{ text: string }>(
      sql`select r::text as text from access_role r where slug = ${role}`,
    );
    expect(row!.text).not.toContain(secretAccessKey);
  });

  test("that does not exist in AWS, or has the wrong secret, is reported", async () => {
    const role = await makeRole("aws-assume-role");
    sts.secrets.set(keyId, "another-secret-than-the-one-that-we-have");
    const detail = await refusal(role);
    expect(detail).toContain("AWS rejected the signature");
    expect(detail).not.toContain("another-secret");
    sts.secrets.delete(keyId);
    expect(await refusal(role)).toContain("The stored key does not exist in AWS");
    expect(await problemsOf(role)).toEqual([
      { problem: expect.stringContaining("The stored key does not exist in AWS") },
    ]);
  });
});
