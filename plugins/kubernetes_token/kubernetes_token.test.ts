import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { spawnSvc, testProgram } from "../../tests/support/cli/process.ts";
import { type KubernetesApi, startKubernetesApi } from "../../tests/support/domain/kubernetes_api.ts";
import { createUsualRole, usualRole } from "../../tests/support/domain/usual_role.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let cluster: KubernetesApi;
let admin: Person;
let alice: Person;
let home: string;
let env: Record<string, string>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "svc-home-"));
  cluster = await startKubernetesApi();
  server = await startTestServer({ pluginCredential: "kubernetes-token", pluginTimeout: 5 });
  // The CLI and the cluster use the real time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  admin = await personOf(server, "root@example.com", ["admin"]);
  alice = await personOf(server, "alice@example.com", ["oncall"]);
  env = { SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server), HOME: home };
});
afterEach(() => {
  cluster.instead = undefined;
  cluster.allowed = true;
  cluster.lifetime = (seconds) => seconds;
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

function makeRole(more: object = {}): Promise<string> {
  const settings = {
    server: cluster.url,
    certificateAuthority: cluster.authority,
    token: cluster.brokerToken,
    namespace: "shop",
    serviceAccount: "reader",
    ...more,
  };
  return createUsualRole(admin, { plugin: "kubernetes-token", settings });
}

async function issue(role: string, more: object = {}) {
  const { http, body } = await alice.call("POST", "/access/leases/", { role, ...more });
  return { http, body, said: body.detail as string };
}

const check = async (role: string) => (await admin.call("GET", `/access/roles/${role}/check`)).body.problems;

test("a lease is a token of the service account and expires with it", async () => {
  const role = await makeRole();
  const began = performance.now();
  const { http, body } = await issue(role);
  const took = performance.now() - began;
  expect([http, body.credential.kind]).toEqual([201, "token"]);
  const { token, ...fields } = body.credential.fields;
  expect(fields).toEqual({
    server: cluster.url,
    namespace: "shop",
    certificate_authority: cluster.authority,
  });
  const difference = Math.abs(cluster.tokens.get(token)!.getTime() - Date.parse(body.expires_at));
  expect(difference).toBeLessThan(3000 + took);
  // A token that is shorter than requested shortens the lease.
  cluster.lifetime = () => 900;
  const shorter = (await issue(role)).body;
  expect(shorter.expires_at).toBe(cluster.tokens.get(shorter.credential.fields.token)!.toISOString());
});

test("a server whose clock is slow issues tokens, too", async () => {
  const role = await makeRole();
  server.clock.advance(-1800);
  const { http } = await issue(role);
  server.clock.advance(1800);
  expect(http).toBe(201);
});

test("a role can set another address for users and other audiences", async () => {
  let asked: unknown;
  cluster.instead = async (request) => {
    asked = await request.json();
    const expirationTimestamp = new Date(Date.now() + 3_600_000).toISOString();
    return Response.json({ status: { token: "a.b.c", expirationTimestamp } });
  };
  const role = await makeRole({ clientServer: "https://shop.example.com:6443", audiences: "vault, other" });
  const { body } = await issue(role);
  expect(body.credential.fields.server).toBe("https://shop.example.com:6443");
  expect(asked).toMatchObject({ spec: { audiences: ["vault", "other"], expirationSeconds: 3600 } });
});

test("svc access check reports a missing permission and the command that grants it", async () => {
  const role = await makeRole();
  expect(await check(role)).toEqual([]);
  cluster.allowed = false;
  expect(await check(role)).toEqual([
    {
      problem: "The broker cannot create tokens of shop/reader",
      fix: expect.stringMatching(
        /^kubectl apply -f - <<'END'\n[\s\S]*resourceNames: \[reader\][\s\S]*\nEND$/,
      ),
    },
  ]);
});

test("svc access check reports an answer that is not an access review", async () => {
  cluster.instead = () => Response.json({ status: {} });
  expect(await check(await makeRole())).toEqual([
    { problem: expect.stringMatching(/without an access review: is it a Kubernetes API server\?$/) },
  ]);
});

const endless = () =>
  new ReadableStream<Uint8Array>({
    pull: async (answer) => {
      answer.enqueue(new Uint8Array(65_536));
      await Bun.sleep(1);
    },
  });

describe("no token is issued, and the error says why,", () => {
  const faults: [string, object, Partial<KubernetesApi>, RegExp][] = [
    [
      "when the broker lacks the permission",
      {},
      { allowed: false },
      /does not allow the broker to create tokens of shop\/reader/,
    ],
    ["when the cluster issues a longer token", {}, { lifetime: (s) => 2 * s + 600 }, /longer than requested/],
    ["when the cluster fails", {}, { instead: () => new Response("secret", { status: 500 }) }, /status 500/],
    ["when the answer is invalid", {}, { instead: () => new Response("<p>Sign in</p>") }, /without a token/],
    ["when the answer never ends", {}, { instead: () => new Response(endless()) }, /without a token/],
    [
      "when the cluster hangs",
      {},
      { instead: () => new Promise<never>(() => {}) },
      /did not answer within 5 s/,
    ],
  ];
  test.each(faults)("%s", async (_, more, changed, said) => {
    const role = await makeRole();
    Object.assign(cluster, changed);
    const answer = await issue(role, more);
    expect([answer.http, answer.said]).toEqual([503, expect.stringMatching(said)]);
    expect(server.logged.join("")).not.toContain(cluster.brokerToken);
  });

  test("when the cluster redirects, and nothing is sent to the other address", async () => {
    let asked = 0;
    const expirationTimestamp = new Date(Date.now() + 3_600_000).toISOString();
    using other = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => {
        asked += 1;
        return Response.json({ status: { token: "a.b.c", expirationTimestamp } });
      },
    });
    cluster.instead = () => Response.redirect(`http://127.0.0.1:${other.port}/`, 307);
    const { http, said } = await issue(await makeRole());
    expect([http, said, asked]).toEqual([503, expect.stringContaining("cannot be reached"), 0]);
  });

  test("for less than ten minutes", async () => {
    const { http, body } = await issue(await makeRole(), { duration: 599 });
    expect([http, body.field, body.detail]).toEqual([
      400,
      "duration",
      expect.stringContaining("at least 10 minutes"),
    ]);
  });

  test("when the broker's token is wrong, the account does not exist, or nothing listens", async () => {
    const said = async (settings: object) => (await issue(await makeRole(settings))).said;
    expect(await said({ token: "another" })).toContain("rejected the token of the broker");
    expect(await said({ serviceAccount: "nobody" })).toContain("has no service account shop/nobody");
    expect(await said({ server: "https://127.0.0.1:9" })).toContain("cannot be reached");
  });

  test("when the cluster's certificate is signed by another authority", async () => {
    await using other = await startKubernetesApi();
    const { said } = await issue(await makeRole({ certificateAuthority: other.authority }));
    expect(said).toContain("certificate that certificateAuthority did not sign");
    expect(other.tokens.size + cluster.tokens.size).toBeGreaterThan(0);
  });
});

test.each([
  ["plain http", { server: "http://127.0.0.1:6443" }],
  ["a path as the namespace", { namespace: "../../apis" }],
  ["a path as the service account", { serviceAccount: "a/../b" }],
  ["a query in the address", { server: "https://127.0.0.1/?a=" }],
])("a role with %s is refused", async (_, settings) => {
  const target = {
    server: cluster.url,
    token: "t",
    namespace: "shop",
    serviceAccount: "reader",
    ...settings,
  };
  const { http } = await admin.call("POST", "/access/roles/", {
    ...usualRole,
    slug: "bad",
    description: "",
    plugin: "kubernetes-token",
    settings: target,
    groups: ["*"],
  });
  expect(http).toBe(400);
});

/** Strict: allows no other fields, and only times without fractions, like Go's metav1.Time. */
const execCredential = Type.Object(
  {
    apiVersion: Type.Literal("client.authentication.k8s.io/v1"),
    kind: Type.Literal("ExecCredential"),
    status: Type.Object(
      {
        expirationTimestamp: Type.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$" }),
        token: Type.String({ minLength: 1 }),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);

const get = (role: string, more: Record<string, string> = {}) =>
  spawnSvc(["access", "get", role, "--format", "kube"], { ...env, ...more }).finished;

describe("svc access get --format kube", () => {
  test("prints the same ExecCredential until it is about to expire", async () => {
    const role = await makeRole();
    const first = await get(role);
    expect([first.code, first.stderr]).toEqual([0, ""]);
    const credential = Value.Decode(execCredential, JSON.parse(first.stdout));
    expect(cluster.tokens.has(credential.status.token)).toBe(true);
    const issued = cluster.tokens.size;
    expect(await get(role)).toEqual(first);
    expect(cluster.tokens.size).toBe(issued);
    const folder = join(home, ".config/svc/issued");
    const [file, ...others] = readdirSync(folder);
    expect(others).toEqual([]);
    const modes = [folder, join(folder, file!)].map((path) => (statSync(path).mode & 0o777).toString(8));
    expect(modes).toEqual(["700", "600"]);
    // It gets a new one for another session, for an incident, and if others can read the file.
    const other = { SVC_TOKEN: await signInToken(server) };
    expect((await get(role, other)).stdout).not.toBe(first.stdout);
    await chmod(join(folder, file!), 0o644);
    expect((await get(role)).stdout).not.toBe(first.stdout);
    const second = await get(role);
    const path = join(folder, file!);
    const text = await Bun.file(path).json();
    await writeFile(
      path,
      JSON.stringify({
        ...text,
        issued: { ...text.issued, expires_at: new Date(Date.now() + 59_000).toISOString() },
      }),
    );
    expect((await get(role)).stdout).not.toBe(second.stdout);
  });

  test("works without a usable cache directory", async () => {
    const config = join(home, "elsewhere");
    await mkdir(join(config, "svc"), { recursive: true, mode: 0o700 });
    await writeFile(join(config, "svc/issued"), "");
    const role = await makeRole();
    const [first, second] = [
      await get(role, { XDG_CONFIG_HOME: config }),
      await get(role, { XDG_CONFIG_HOME: config }),
    ];
    for (const { code, stderr } of [first, second])
      expect([code, stderr]).toEqual([0, expect.stringMatching(/so the credential is not cached\n$/)]);
    expect(first.stdout).not.toBe(second.stdout);
  });

  test("works with kubectl and the kubeconfig in docs/credentials-kubernetes.md", async () => {
    const page = await Bun.file(join(import.meta.dir, "../../docs/credentials-kubernetes.md")).text();
    const [, block] = /```yaml\n(apiVersion: v1\nkind: Config\n.*?)```/s.exec(page)!;
    const role = await makeRole();
    const wrapper = join(home, "svc");
    const quoted = testProgram.map((word) => `'${word}'`).join(" ");
    await writeFile(wrapper, `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 });
    const config = join(home, "kubeconfig");
    // Kubernetes supports v1 since 1.22, and Debian's kubectl is older.
    const { stdout } = Bun.spawnSync(["kubectl", "version", "--client", "-o", "json"]);
    const { minor } = JSON.parse(stdout.toString()).clientVersion;
    const version = Number.parseInt(minor, 10) >= 22 ? "v1" : "v1beta1";
    const text = block!
      .replace("https://kubernetes.example.com:6443", cluster.url)
      .replace(/certificate-authority-data: .*/, `certificate-authority-data: ${btoa(cluster.authority)}`)
      .replace("client.authentication.k8s.io/v1", `client.authentication.k8s.io/${version}`)
      .replace("command: svc", `command: ${wrapper}`)
      .replace("shop-reader, --format", `${role}, --format`);
    expect(text).toContain(wrapper);
    await writeFile(config, text, { mode: 0o600 });
    const run = async () => {
      const child = Bun.spawn(
        ["kubectl", "--kubeconfig", config, "get", "--raw", "/api/v1/namespaces/shop/pods"],
        {
          env: { ...env, PATH: process.env.PATH! },
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      const [out, errors] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      return `${errors}${out}`;
    };
    expect(JSON.parse(await run())).toMatchObject({ kind: "PodList" });
    const issued = cluster.tokens.size;
    expect(JSON.parse(await run())).toMatchObject({ kind: "PodList" });
    expect(cluster.tokens.size).toBe(issued);
    // As when the service account is created again. The kubectl that is refused asks again, and the next one succeeds.
    cluster.tokens.clear();
    expect(await run()).toContain("You must be logged in");
    expect(JSON.parse(await run())).toMatchObject({ kind: "PodList" });
    expect(cluster.tokens.size).toBe(1);
  });

  test("prints a new token if the same Kubernetes client asks again, but not for another", async () => {
    const role = await makeRole();
    const client = {
      KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion: "client.authentication.k8s.io/v1" }),
    };
    const { stdout: first } = await get(role);
    const { stdout: received } = await get(role, client);
    expect(received).toBe(first);
    const { stdout: replaced } = await get(role, client);
    expect(JSON.parse(replaced).kind).toBe("ExecCredential");
    expect(replaced).not.toBe(first);
    const words = [...testProgram, "access", "get", role, "--format", "kube"];
    // The shell waits for the command, and is then another client.
    const shell = Bun.spawn(["sh", "-c", '"$@"; exit $?', "sh", ...words], {
      env: { ...env, ...client },
      cwd: home,
    });
    expect(await new Response(shell.stdout).text()).toBe(replaced);
    // If no other can be issued, the refused one is not printed again.
    cluster.allowed = false;
    const failed = await get(role, client);
    expect([failed.code === 0, failed.stdout]).toEqual([false, ""]);
  });
});

test("svc access run sets KUBECONFIG to a private file and deletes it afterwards", async () => {
  const role = await makeRole();
  const inside =
    'kubectl get --raw /api/v1/namespaces/shop/pods; echo; echo "$KUBECONFIG"; stat -c %a "$KUBECONFIG" "$(dirname "$KUBECONFIG")"';
  const { code, stdout, stderr } = await spawnSvc(["access", "run", role, "--", "sh", "-c", inside], env)
    .finished;
  expect([code, stderr]).toEqual([0, ""]);
  const [pods, path, ...modes] = stdout.trim().split("\n");
  expect(JSON.parse(pods!)).toMatchObject({ kind: "PodList" });
  expect(modes).toEqual(["600", "700"]);
  expect(() => statSync(dirname(path!))).toThrow("ENOENT");
});
