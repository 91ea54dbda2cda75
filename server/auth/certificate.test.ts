import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { eq } from "drizzle-orm";
import { token } from "../../drizzle/schema/index.ts";
import { noteStatements } from "../../tests/support/database/statements.ts";
import {
  asAuthority,
  asClient,
  CertificateFolder,
  type Issued,
  type IssueOptions,
  thumbprintOf,
  tlsWith,
} from "../../tests/support/http/client_certificates.ts";
import { type MtlsServer, startMtlsServer } from "../../tests/support/http/mtls.ts";
import { decide, newChallenge, poll, signInToken, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";

const certificates = new CertificateFolder();
const root = certificates.issue({ subject: "/CN=Root", extensions: asAuthority });
const middle = certificates.issue({ subject: "/CN=Middle", extensions: asAuthority, by: root });
const stranger = certificates.issue({ subject: "/CN=Stranger", extensions: asAuthority });
const email = (name: string) => [...asClient, `subjectAltName=email:${name}`];
const good = certificates.issue({ extensions: email("Alice@Example.com"), by: middle });

let server: TestServer;
let mtls: MtlsServer;
let port: number;
const failures: string[] = [];
beforeAll(async () => {
  mtls = await startMtlsServer(
    { mtlsCaCerts: root.certificate, mtlsGroups: "ou:Platform=oncall, user:alice@example.com=staff" },
    { certificates, onFailedHandshake: (reason) => failures.push(reason) },
  );
  ({ server, port } = mtls);
});
afterAll(() => mtls[Symbol.asyncDispose]());

const ask = (client: Issued | undefined, path = "/whoami", init: BunFetchRequestInit = {}) =>
  fetch(`https://127.0.0.1:${port}${path}`, { tls: tlsWith(client), keepalive: false, ...init });

/** The reason in the log for the latest refusal. */
function lastReason(): Record<string, unknown> | undefined {
  return server.logged
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === "client certificate refused")
    .at(-1);
}

test("a certificate stands for its user, with the groups of the settings", async () => {
  const answer = await ask(good);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ user: "alice@example.com", groups: ["staff"] });
});

test("each later request costs one statement", async () => {
  const client = certificates.issue({ extensions: email("frugal@example.com"), by: middle });
  expect((await ask(client)).status).toBe(200);
  const statements = noteStatements(server.db);
  for (let request = 0; request < 3; request += 1) expect((await ask(client)).status).toBe(200);
  expect(statements.filter((text) => text.includes("token"))).toHaveLength(3);
  expect(statements.filter((text) => text.includes("client_certificate"))).toEqual([]);
});

const opensslTime = (date: Date) => date.toISOString().replace(/[-:T]|\.\d+/g, "");
const of = (more: IssueOptions) =>
  certificates.issue({ extensions: email("alice@example.com"), by: middle, ...more });
const attacks: [string, () => Issued, string][] = [
  ["expired", () => of({ to: "20210101000000Z" }), "expired"],
  ["not yet valid", () => of({ from: "20980101000000Z" }), "not yet valid"],
  [
    "for servers",
    () => of({ extensions: ["extendedKeyUsage=serverAuth", "subjectAltName=email:alice@example.com"] }),
    "wrong extended key usage",
  ],
  [
    "for any use, or without extended key usage",
    () => of({ extensions: ["subjectAltName=email:alice@example.com"] }),
    "wrong extended key usage",
  ],
  ["of an unknown authority", () => of({ by: stranger }), "unknown authority"],
  ["signed by itself", () => of({ by: undefined }), "self-signed"],
  [
    "with a weak key",
    () => of({ key: ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"] }),
    "weak key",
  ],
  ["with SHA-1", () => of({ digest: "sha1" }), "weak signature"],
  ["without e-mail address", () => of({ extensions: asClient }), "no user name"],
  [
    "with two e-mail addresses",
    () => of({ extensions: [...asClient, "subjectAltName=email:a@example.com,email:b@example.com"] }),
    "several user names",
  ],
  [
    "with an invalid name",
    () => of({ extensions: [...asClient, "subjectAltName=email:alice"] }),
    "invalid user name",
  ],
  [
    "with an unknown critical extension",
    () => of({ extensions: [...email("alice@example.com"), "1.2.3.4=critical,ASN1:NULL"] }),
    "unknown critical extension",
  ],
  ["signed by a client's certificate", () => of({ by: good }), "invalid authority"],
  [
    "of 20 kB",
    () =>
      of({ extensions: [...email("alice@example.com"), `1.2.3.4=ASN1:UTF8String:${"x".repeat(20_000)}`] }),
    "too large",
  ],
  [
    "with a chain that is too long",
    () => {
      let by = middle;
      for (const name of ["A", "B", "C"])
        by = certificates.issue({ subject: `/CN=${name}`, extensions: asAuthority, by });
      return of({ by });
    },
    "chain too long",
  ],
  [
    "below an authority that may have none below it",
    () => {
      const last = [...asAuthority.slice(1), "basicConstraints=critical,CA:TRUE,pathlen:0"];
      const by = certificates.issue({ subject: "/CN=Last", extensions: last, by: root });
      return of({ by: certificates.issue({ subject: "/CN=Below", extensions: asAuthority, by }) });
    },
    "chain too long",
  ],
  [
    "of an authority that has expired",
    () =>
      of({
        by: certificates.issue({
          subject: "/CN=Old",
          extensions: asAuthority,
          by: root,
          to: "20210101000000Z",
        }),
      }),
    "expired",
  ],
  [
    "outside of its authority's names",
    () => {
      const only = [...asAuthority, "nameConstraints=critical,permitted;email:example.org"];
      return of({ by: certificates.issue({ subject: "/CN=Only", extensions: only, by: root }) });
    },
    "outside of the authority's names",
  ],
  [
    "of an authority for servers",
    () => {
      const servers = [...asAuthority, "extendedKeyUsage=serverAuth"];
      return of({ by: certificates.issue({ subject: "/CN=Servers", extensions: servers, by: root }) });
    },
    "invalid authority",
  ],
];
test.each(attacks)(
  "a certificate %s is refused: the log says why, the answer does not",
  async (_, make, reason) => {
    const client = make();
    const answer = await ask(client);
    expect(answer.status).toBe(401);
    const { detail } = (await answer.json()) as { detail: string };
    const told =
      reason === "expired"
        ? /^The client certificate has expired/
        : /^The client certificate is not accepted$/;
    expect(detail).toMatch(told);
    expect(lastReason()).toMatchObject({
      reason,
      certificate: thumbprintOf(client.certificate),
      address: "127.0.0.1",
    });
  },
);

test("a certificate of 100 kB ends the handshake, and the server continues", async () => {
  const large = of({ extensions: [...asClient, `1.2.3.4=ASN1:UTF8String:${"x".repeat(110_000)}`] });
  await expect(ask(large)).rejects.toThrow();
  while (failures.length === 0) await Bun.sleep(10);
  expect(failures[0]).toMatch(/EXCESSIVE_MESSAGE_SIZE|ERR_/);
  expect((await ask(good)).status).toBe(200);
});

test("it expires between two requests of one connection", async () => {
  const { clock } = server;
  const client = of({ to: opensslTime(new Date(clock.now().getTime() + 60_000)) });
  const keep = { keepalive: true };
  expect((await ask(client, "/whoami", keep)).status).toBe(200);
  clock.advance(61);
  expect((await ask(client, "/whoami", keep)).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "expired" });
});

test("an intermediate expires between two requests, of which the client has sent a newer certificate", async () => {
  const { clock } = server;
  const to = opensslTime(new Date(clock.now().getTime() + 60_000));
  const ending = certificates.issue({
    subject: "/CN=Middle",
    extensions: asAuthority,
    by: root,
    keyOf: middle,
    to,
  });
  const client = of({ by: ending });
  const keep = { keepalive: true };
  const others = readFileSync(stranger.certificate, "utf8");
  appendFileSync(client.chain, others + readFileSync(middle.certificate, "utf8"));
  expect((await ask(client, "/whoami", keep)).status).toBe(200);
  clock.advance(61);
  expect((await ask(client, "/whoami", keep)).status).toBe(200);
});

const requestText = (path: string) => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n`;

/** What openssl says about a connection on which it sends this text. */
async function talk(text: string, ...args: string[]): Promise<string> {
  const child = Bun.spawn(["openssl", "s_client", "-connect", `127.0.0.1:${port}`, "-ign_eof", ...args], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  child.stdin.write(text);
  child.stdin.flush();
  return await new Response(child.stdout).text();
}

describe.each([
  ["a session ticket of TLS 1.2", "-tls1_2", "Reused, TLSv1.2"],
  ["a pre-shared key of TLS 1.3", "-tls1_3", "Reused, TLSv1.3"],
])("a session resumed by %s", (_, version, reused) => {
  /** Opens a session, and checks that it can be resumed. */
  async function resumable(client: Issued): Promise<() => Promise<string>> {
    const sessions = certificates.at(`session${version}${client.name}`);
    const own = ["-cert", client.certificate, "-key", client.key, "-cert_chain", middle.certificate];
    const first = await talk(requestText("/whoami"), version, ...own, "-sess_out", sessions);
    expect(first).toContain("HTTP/1.1 200");
    const resume = async () => {
      const said = await talk(requestText("/whoami"), version, "-sess_in", sessions, "-sess_out", sessions);
      expect(said).toContain(reused);
      return /HTTP\/1.1 \d+/.exec(said)![0];
    };
    expect(await resume()).toBe("HTTP/1.1 200");
    return resume;
  }

  test("is refused after signing out", async () => {
    const client = of({ extensions: email("bob@example.com") });
    const resume = await resumable(client);
    expect((await ask(client, "/tokens/current", { method: "DELETE" })).status).toBe(204);
    expect(await resume()).toBe("HTTP/1.1 401");
    expect(lastReason()).toMatchObject({ reason: "revoked" });
    expect((await ask(client)).status).toBe(401);
  });

  test("is refused when its authority was replaced, and accepted when it is back", async () => {
    const resume = await resumable(of({ extensions: email("carol@example.com") }));
    const before = readFileSync(root.certificate);
    writeFileSync(root.certificate, readFileSync(stranger.certificate));
    expect(await server.organisation.reload()).toBe(true);
    expect(await resume()).toBe("HTTP/1.1 401");
    expect(lastReason()).toMatchObject({ reason: "unknown authority" });
    writeFileSync(root.certificate, before);
    expect(await server.organisation.reload()).toBe(true);
    expect(await resume()).toBe("HTTP/1.1 200");
  });

  test("is refused when a revocation list has its certificate", async () => {
    const client = of({ extensions: email("dora@example.com") });
    const resume = await resumable(client);
    const before = readFileSync(root.certificate, "utf8");
    const list = certificates.revocationList(middle, [client]);
    writeFileSync(root.certificate, before + readFileSync(middle.certificate, "utf8") + list);
    await server.organisation.reload();
    expect(await resume()).toBe("HTTP/1.1 401");
    expect(lastReason()).toMatchObject({ reason: "revoked" });
    writeFileSync(root.certificate, before);
    await server.organisation.reload();
  });
});

test("a key that TLS does not accept ends the handshake, with a reason in the log", async () => {
  const [key, certificate] = [certificates.at("p192.key"), certificates.at("p192.pem")];
  certificates.run("ecparam", "-name", "prime192v1", "-genkey", "-noout", "-out", key);
  certificates.run("req", "-x509", "-new", "-key", key, "-subj", "/CN=x", "-out", certificate);
  const seen = failures.length;
  const weak = ["-tls1_2", "-cipher", "DEFAULT@SECLEVEL=0", "-cert", certificate, "-key", key];
  expect(await talk(requestText("/whoami"), ...weak)).not.toContain("HTTP/1.1");
  await until("the reason", () => failures.length > seen);
  expect(failures.slice(seen)).toEqual(["ERR_SSL_UNSUPPORTED_ALGORITHM"]);
  expect((await ask(good)).status).toBe(200);
});

test("renegotiation ends the connection", async () => {
  const child = Bun.spawn(
    [
      "openssl",
      "s_client",
      "-connect",
      `127.0.0.1:${port}`,
      "-tls1_2",
      "-cert",
      good.certificate,
      "-key",
      good.key,
    ],
    { stdin: "pipe", stdout: "pipe", stderr: "pipe" },
  );
  child.stdin.write("R\n");
  child.stdin.flush();
  expect(await new Response(child.stderr).text()).toContain("no renegotiation");
  expect(failures).toContain("ERR_SSL_NO_RENEGOTIATION");
  expect((await ask(good)).status).toBe(200);
});

test("without a certificate, a header does not authenticate anybody", async () => {
  expect((await ask(undefined)).status).toBe(401);
  const header = `:${Buffer.from("x").toString("base64")}:`;
  expect((await ask(good, "/whoami", { headers: { "client-cert": header } })).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "header on the mTLS port" });
  expect((await server.fetch("/whoami", { headers: { "client-cert": header } })).status).toBe(401);
  expect(lastReason()).toMatchObject({ reason: "header from an untrusted address" });
});

test("a browser's certificate does not authenticate requests that another site triggers", async () => {
  const headers = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
  expect((await ask(good, "/tokens/current", { method: "DELETE", headers })).status).toBe(403);
  expect((await ask(good)).status).toBe(200);
});

test("Weep gets the code that makes it renew its certificate", async () => {
  expect(await (await ask(good, "/api/v1/get_roles?all=true")).json()).toEqual([]);
  const answer = await ask(of({ to: "20210101000000Z" }), "/api/v1/get_roles?all=true");
  expect([answer.status, await answer.json()]).toMatchObject([401, { code: "905" }]);
});

describe("a token collected with a certificate", () => {
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const collect = async (client: Issued) => {
    const challenge = await newChallenge(server, { user: server.issuer.user });
    await decide(challenge, "approve");
    const overMtls = { fetch: (path: string, init: RequestInit = {}) => ask(client, path, init) };
    const first = (await poll(overMtls, challenge)).body.encoded_jwt;
    const again = (await poll(overMtls, challenge)).body.encoded_jwt;
    return [first, again] as string[];
  };
  const claims = (jwt: string) => JSON.parse(Buffer.from(jwt.split(".")[1]!, "base64url").toString());

  test("is valid only with that certificate", async () => {
    const other = of({ extensions: email("alice@example.com") });
    const tokens = await collect(good);
    for (const token of tokens) {
      expect(claims(token).cnf).toEqual({ "x5t#S256": thumbprintOf(good.certificate) });
      expect((await ask(good, "/whoami", bearer(token))).status).toBe(200);
      const without = [ask(undefined, "/whoami", bearer(token)), server.fetch("/whoami", bearer(token))];
      for (const answer of await Promise.all([...without, ask(other, "/whoami", bearer(token))]))
        expect([answer.status, await answer.json()]).toMatchObject([
          401,
          { detail: "The access token is not valid: svc login" },
        ]);
      const cookie = { headers: { cookie: `svc_auth=${token}` } };
      expect((await ask(good, "/whoami", cookie)).status).toBe(200);
      expect((await server.fetch("/whoami", cookie)).status).toBe(401);
      // Weep drops its token then.
      const weep = "/api/v1/get_roles?all=true";
      expect((await ask(good, weep, cookie)).status).toBe(200);
      for (const answer of [await ask(other, weep, cookie), await server.fetch(weep, cookie)])
        expect([answer.status, await answer.json()]).toMatchObject([401, { code: "invalid_jwt" }]);
    }
  });

  test("ends when its user ends the certificate", async () => {
    const user = `zoe-${crypto.randomUUID()}@example.com`;
    const client = of({ extensions: email(user) });
    server.issuer.user = user;
    const [jwt] = await collect(client);
    const listed = await ask(client, `/sign_ins/?user=${user}`, bearer(jwt!));
    const { items } = (await listed.json()) as { items: Record<string, string>[] };
    const certificate = items.find(({ kind }) => kind === "organisation certificate")!;
    expect((await ask(client, `/sign_ins/${certificate.id}`, { method: "DELETE" })).status).toBe(204);
    const rows = await server.db.select().from(token).where(eq(token.userName, user));
    expect(rows.map(({ revokedAt }) => revokedAt !== null)).toEqual([true, true]);
    server.issuer.user = "alice@example.com";
  });

  test("ends with it", async () => {
    const { clock } = server;
    const inTwoMinutes = new Date(clock.now().getTime() + 120_000);
    const client = of({ to: opensslTime(inTwoMinutes) });
    const [token] = await collect(client);
    expect((await ask(client, "/whoami", bearer(token!))).status).toBe(200);
    clock.advance(121);
    expect((await ask(client, "/whoami", bearer(token!))).status).toBe(401);
    expect(lastReason()).toMatchObject({ reason: "expired" });
  });

  test("may be bound to a certificate without a user: holding its key is enough", async () => {
    const client = of({ by: stranger });
    const [token] = await collect(client);
    expect((await ask(client, "/whoami", bearer(token!))).status).toBe(200);
    expect((await ask(good, "/whoami", bearer(token!))).status).toBe(401);
    expect((await ask(client)).status).toBe(401);
  });

  test("is not bound without one, and then works on both ports", async () => {
    const token = await signInToken(server);
    expect(claims(token)).not.toHaveProperty("cnf");
    for (const client of [undefined, good, of({ by: stranger })])
      expect((await ask(client, "/whoami", bearer(token))).status).toBe(200);
  });
});
