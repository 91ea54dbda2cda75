import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { accessRole } from "../../drizzle/schema/index.ts";
import { Unavailable } from "../../platform/errors.ts";
import { fakeCredential } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import { newCertificateRequest, newP256Key } from "../../tests/support/domain/certificate_request.ts";
import { asAuthority, asClient, CertificateFolder } from "../../tests/support/http/client_certificates.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";
import { personOf } from "../../tests/support/http/people.ts";
import type { TestServer } from "../../tests/support/http/server.ts";
import {
  decodeCredentials,
  decodeRoleArns,
  decodeRoleDetails,
  decodeTitles,
  decodeWebResponse,
  decodeWeepError,
  weepHeaders,
} from "../../tests/support/process/weep.ts";

// Weep with `authentication_method: mtls` uses HTTP/1.1 with keep-alive and a client certificate, without a cookie.

const certificates = new CertificateFolder();
const root = certificates.issue({ subject: "/CN=Root", extensions: asAuthority });
const end = "2030-01-01T00:00:00.000Z";
const reader = "arn:aws:iam::123456789012:role/reader";
const fake = fakeCredential();
let server: TestServer;
let mtls: MtlsServer;
let port: number;
beforeAll(async () => {
  mtls = await startMtlsServer({ mtlsCaCerts: root.certificate }, { certificates, plugins: pluginsOf(fake) });
  ({ server, port } = mtls);
  const at = new Date();
  const common = {
    description: "",
    pluginSlug: fake.plugin.slug,
    groups: ["oncall"],
    approval: "none" as const,
    defaultDuration: 3600,
    maxDuration: 7200,
    incidentRequired: false,
    breakGlass: false,
    createdAt: at,
    updatedAt: at,
  };
  await server.db.insert(accessRole).values([
    { ...common, slug: "reader", settings: { roleArn: reader, accountName: "Shop" } },
    {
      ...common,
      slug: "writer",
      approval: "admin" as const,
      settings: { roleArn: reader.replace("reader", "writer") },
    },
  ]);
  fake.answer({
    issue: () => ({
      kind: "aws",
      fields: { access_key_id: "ASIA", secret_access_key: "s", session_token: "t", expiration: end },
    }),
  });
});
afterAll(() => mtls[Symbol.asyncDispose]());

class Weep implements Disposable {
  readonly #agent: Agent;

  constructor(certificate?: { chain: string; key: string }) {
    const files = certificate && {
      cert: readFileSync(certificate.chain),
      key: readFileSync(certificate.key),
    };
    this.#agent = new Agent({ keepAlive: true, rejectUnauthorized: false, ...files });
  }

  call(method: string, path: string, body?: unknown): Promise<{ status?: number; text: string }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ status?: number; text: string }>();
    const options = { method, headers: weepHeaders, agent: this.#agent };
    request(`https://127.0.0.1:${port}${path}`, options, async (answer) => {
      resolve({
        status: answer.statusCode,
        text: Buffer.concat(await Array.fromAsync(answer)).toString(),
      });
    })
      .on("error", reject)
      .end(body === undefined ? undefined : JSON.stringify(body));
    return promise;
  }

  credentials(role: string) {
    const body = { requested_role: role, no_ip_restrictions: false };
    return this.call("POST", "/api/v1/get_credentials", body);
  }

  /** The status and the code of a refusal. */
  async refusal(role: string): Promise<[number | undefined, string]> {
    const { status, text } = await this.credentials(role);
    return [status, decodeWeepError(text).code];
  }

  [Symbol.dispose]() {
    this.#agent.destroy();
  }
}

/** Issues a certificate for a user in the group `oncall`. */
async function ownCertificate(user: string) {
  const key = newP256Key();
  const person = await personOf(server, user, ["oncall"]);
  const { http, body } = await person.call("POST", "/certificates/", { csr: newCertificateRequest(key) });
  expect(http).toBe(201);
  const files = { chain: certificates.at(`${user}.pem`), key: certificates.at(`${user}.key`) };
  writeFileSync(files.chain, body.certificate as string);
  writeFileSync(files.key, key.export({ type: "pkcs8", format: "pem" }));
  return { ...files, serial: body.serial as string, person };
}

test("a client certificate gets roles, credentials, addresses and completions", async () => {
  using weep = new Weep(await ownCertificate("alice@example.com"));
  const arns = [reader, reader.replace("reader", "writer")];
  const v1 = await weep.call("GET", "/api/v1/get_roles?all=true");
  expect([v1.status, decodeRoleArns(v1.text).sort()]).toEqual([200, arns]);
  const v2 = await weep.call("GET", "/api/v2/get_roles?all=true");
  expect([v2.status, decodeRoleDetails(v2.text).map(({ arn }) => arn)]).toEqual([200, arns]);
  const got = await weep.credentials(reader);
  expect([got.status, decodeCredentials(got.text)]).toMatchObject([
    200,
    { RoleArn: reader, Expiration: Date.parse(end) / 1000 },
  ]);
  const { text: address } = await weep.call("GET", `/api/v2/get_resource_url?arn=${reader}`);
  expect(decodeWebResponse(address).data).toEqual({ url: "/access/roles/reader" });
  const { text: titles } = await weep.call(
    "GET",
    "/api/v1/policies/typeahead?resource=account&search=shop&limit=10",
  );
  expect(decodeTitles(titles)).toEqual(["Shop (123456789012)"]);
});

test("errors have the codes that Weep knows", async () => {
  using weep = new Weep(await ownCertificate("bob@example.com"));
  expect(await weep.refusal("arn:aws:s3:::bucket")).toEqual([400, "899"]);
  expect(await weep.refusal(reader.replace("reader", "nothing"))).toEqual([404, "900"]);
  expect(await weep.refusal("er")).toEqual([409, "901"]);
  expect((await weep.refusal("writer"))[1]).toBe("902");
  expect(await weep.refusal("arn:aws:iam::555555555555:role/reader")).toEqual([404, "906"]);
  const { status, text } = await weep.call("POST", "/api/v1/get_credentials", { role: 1 });
  expect([status, decodeWeepError(text).code]).toEqual([400, "904"]);
  fake.answer({
    issue: () => {
      throw new Unavailable("AWS refused");
    },
  });
  expect((await weep.refusal("reader"))[1]).toBe("902");
});

test("905 for a certificate that is revoked or expires on an open connection", async () => {
  const { person, serial, ...files } = await ownCertificate("carol@example.com");
  using weep = new Weep(files);
  expect((await weep.call("GET", "/api/v2/get_roles?all=true")).status).toBe(200);
  expect((await person.call("DELETE", `/certificates/${serial}`)).http).toBe(204);
  expect(await weep.refusal(reader)).toEqual([401, "905"]);
  const { status, text } = await weep.call("GET", "/api/v2/get_roles?all=true");
  expect([status, decodeWebResponse(text).errors]).toEqual([
    401,
    ["The client certificate has been revoked"],
  ]);

  using other = new Weep(await ownCertificate("dave@example.com"));
  expect((await other.call("GET", "/api/v1/get_roles?all=true")).status).toBe(200);
  server.clock.advance(25 * 3600);
  expect(await other.refusal(reader)).toEqual([401, "905"]);
  server.clock.advance(-25 * 3600);
});

test("905 for a certificate of another authority, and invalid_jwt without a certificate", async () => {
  const other = certificates.issue({ subject: "/CN=Other", extensions: asAuthority });
  const extensions = [...asClient, "subjectAltName=email:alice@example.com"];
  using stranger = new Weep(certificates.issue({ by: other, extensions }));
  expect(await stranger.refusal(reader)).toEqual([401, "905"]);
  using nobody = new Weep();
  expect(await nobody.refusal(reader)).toEqual([401, "invalid_jwt"]);
});
