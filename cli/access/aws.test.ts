import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { sourceProgram, spawnSvc } from "../../tests/support/cli/process.ts";
import { type FakeSts, startFakeSts } from "../../tests/support/domain/fake_sts.ts";
import { createUsualRole } from "../../tests/support/domain/usual_role.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { awsCli } from "../../tests/support/programs.ts";
import { formatCredentials } from "../client/credentials.ts";
import { systemIo } from "../io.ts";
import { runWithAccess } from "./run.ts";

let server: TestServer;
let sts: FakeSts;
let home: string;
let env: Record<string, string>;
let token: string;

const roleArn = "arn:aws:iam::123456789012:role/deploy";

beforeAll(async () => {
  sts = startFakeSts();
  server = await startTestServer({ pluginCredential: "aws-web-identity,oidc-token" });
  sts.provider.issuer = server.url;
  sts.roles.set(roleArn, {
    maxSessionSeconds: 43_200,
    web: { audience: "sts.amazonaws.com", subject: "role:aws-*:user:*@example.com" },
  });
  // The CLI uses the real time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const more = { groups: ["*"], max_duration: 43_200 };
  const awsRole = { roleArn, endpoint: sts.url, region: "eu-central-1" };
  for (const [slug, plugin, settings] of [
    ["aws-deploy", "aws-web-identity", awsRole],
    ["aws-other", "aws-web-identity", awsRole],
    ["vault", "oidc-token", { audience: "vault" }],
  ] as const)
    await createUsualRole(admin, { slug, plugin, settings, ...more });
  server.issuer.user = "alice@example.com";
  server.issuer.claims = { email_verified: true, groups: [] };
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sts.stop();
});
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "svc-home-"));
  env = { HOME: home };
  sts.asked.length = 0;
  sts.next.length = 0;
  token = await signInToken(server);
  await signIn();
  return () => rm(home, { recursive: true, force: true });
});

const ends = "2026-12-24T12:00:00.000Z";

/** Stores a sign-in, like `svc login`. */
async function signIn(base = server.url, user = "alice@example.com", stored = token): Promise<void> {
  const directory = join(home, ".config/svc");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const entry = { user, storage: "file" as const, token: stored, expires_at: ends };
  const text = formatCredentials({ last: base, servers: { [base]: entry } });
  await writeFile(join(directory, "credentials.json"), text, { mode: 0o600 });
}

const svc = (...args: string[]) => spawnSvc(args, env).finished;
const get = (role = "aws-deploy", ...more: string[]) =>
  svc("access", "get", role, "--format", "aws", ...more);
const stranger = 12_345;
/** Runs svc as if by another user, with the token in a variable, because it could not use the stored one. */
async function getAsStranger() {
  const preload = join(home, "stranger.mjs");
  await writeFile(preload, `process.getuid = () => ${stranger};`);
  const variables = { ...env, SVC_SERVER: server.url, SVC_TOKEN: token };
  return spawnSvc(["access", "get", "aws-deploy", "--format", "aws"], variables, preload).finished;
}
/** Runs svc as if the clock of this machine were 15 minutes behind. */
async function getBehind() {
  const preload = join(home, "behind.mjs");
  const now = "static now = () => super.now() - 900_000";
  const create = "constructor(...given) { given.length > 0 ? super(...given) : super(Date.now()); }";
  await writeFile(preload, `globalThis.Date = class extends Date { ${now}; ${create} };`);
  return spawnSvc(["access", "get", "aws-deploy", "--format", "aws"], env, preload).finished;
}
const directory = () => join(home, ".config/svc/issued");
const files = () =>
  fs.existsSync(directory()) ? fs.readdirSync(directory()).filter((name) => name.endsWith(".json")) : [];
const file = () => join(directory(), files()[0]!);
const mode = (path: string) => (fs.statSync(path).mode & 0o777).toString(8);

/** Asserts that the output is a session of the fake STS, and returns its access key id. */
function sessionIn({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }) {
  expect([code, stderr]).toEqual([0, ""]);
  const { Version, AccessKeyId, SecretAccessKey, SessionToken, Expiration, ...rest } = JSON.parse(stdout);
  expect([Version, rest, stdout.endsWith("}\n")]).toEqual([1, {}, true]);
  expect(sts.secrets.get(AccessKeyId)).toBe(SecretAccessKey);
  expect(SessionToken).toStartWith("token/");
  expect(Expiration).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  return AccessKeyId as string;
}

/** Changes the cached credential. */
function rewrite(change: (issued: { created_at: string; expires_at: string }) => void): void {
  const kept = JSON.parse(fs.readFileSync(file(), "utf8"));
  change(kept.issued);
  fs.writeFileSync(file(), JSON.stringify(kept));
}

/** Makes the cached credential, which lasts an hour, expire in this number of seconds. */
const endIn = (seconds: number) =>
  rewrite((issued) => {
    issued.expires_at = new Date(Date.now() + seconds * 1000).toISOString();
    issued.created_at = new Date(Date.now() + (seconds - 3600) * 1000).toISOString();
  });

describe("svc access get --format aws", () => {
  test("asks AWS once, and caches the credential in a private file", async () => {
    const first = sessionIn(await get());
    expect(sessionIn(await get())).toBe(first);
    expect(sessionIn(await svc("credentials", "get", "--format=aws", "aws-deploy"))).toBe(first);
    expect(sessionIn(await get("aws-deploy", "--server", server.url))).toBe(first);
    expect(sts.asked).toHaveLength(1);
    expect([mode(directory()), mode(file())]).toEqual(["700", "600"]);
    for (const secret of [token, sts.asked[0]!.WebIdentityToken!])
      expect(fs.readFileSync(file(), "utf8")).not.toContain(secret);
    // Another role or duration has a different credential.
    expect(sessionIn(await get("aws-other"))).not.toBe(first);
    expect(sessionIn(await get("aws-deploy", "--duration", "15m"))).not.toBe(first);
    expect(sts.asked).toHaveLength(3);
  });

  test("prints a cached credential without loading the command-line parser or the HTTP client", async () => {
    const first = sessionIn(await get());
    const log = join(home, "modules");
    const recorder = join(import.meta.dir, "../../tests/support/cli/record_modules.ts");
    const args = ["access", "get", "aws-deploy", "--format", "aws"];
    const finished = await spawnSvc(args, { ...env, SVC_TEST_MODULES: log }, recorder).finished;
    expect(sessionIn(finished)).toBe(first);
    const loaded = fs.readFileSync(log, "utf8");
    expect(loaded).toContain("access/shortcut.ts");
    for (const name of ["gunshi", "cli/run.ts", "client/request.ts"]) expect(loaded).not.toContain(name);
  });

  test("gets a new credential for a new session", async () => {
    const first = sessionIn(await get());
    env.SVC_TOKEN = await signInToken(server);
    const second = sessionIn(await get("aws-deploy", "--server", server.url));
    expect(second).not.toBe(first);
    expect(sessionIn(await get("aws-deploy", "--server", server.url))).toBe(second);
  });

  test("caches a credential for each user and server", async () => {
    const first = sessionIn(await get());
    const { url } = server;
    await signIn(url, "bob@example.com");
    expect(sessionIn(await get())).not.toBe(first);
    await signIn(url.replace("127.0.0.1", "localhost"));
    expect(sessionIn(await get())).not.toBe(first);
    await signIn();
    expect(sessionIn(await get())).toBe(first);
    // A file copied to another credential's name is not used.
    const [mine, ...others] = files().map((name) => join(directory(), name));
    for (const other of others) fs.copyFileSync(mine!, other);
    const owner = JSON.parse(JSON.parse(fs.readFileSync(mine!, "utf8")).key)[1];
    const stranger = owner === "bob@example.com" ? "alice@example.com" : "bob@example.com";
    await signIn(url, stranger);
    const asked = sts.asked.length;
    sessionIn(await get());
    expect(sts.asked.length).toBe(asked + 1);
  });

  test("prints a cached credential even when signed out, and replaces it ten minutes before its end", async () => {
    const first = sessionIn(await get());
    await signIn(server.url, "alice@example.com", fakeToken({ seconds: -10 }));
    expect(sessionIn(await get())).toBe(first);
    await signIn();
    endIn(601);
    expect(sessionIn(await get())).toBe(first);
    endIn(599);
    const second = sessionIn(await get());
    expect(second).not.toBe(first);
    expect(sessionIn(await get())).toBe(second);
    // Even if the clock of this machine is 15 minutes behind.
    endIn(-901);
    const third = sessionIn(await getBehind());
    expect(sessionIn(await getBehind())).toBe(third);
    // The server's time is known to the second.
    endIn(590);
    expect(sessionIn(await getBehind())).not.toBe(third);
  });

  test("prints the cached credential until it expires if it cannot be replaced", async () => {
    const first = sessionIn(await get());
    endIn(300);
    await signIn(server.url, "alice@example.com", fakeToken({ seconds: -10 }));
    const { code, stdout, stderr } = await get();
    expect([code, JSON.parse(stdout).AccessKeyId]).toEqual([0, first]);
    expect(stderr).toBe(
      `svc: warning: cannot replace the credential for aws-deploy: the sign-in to ${server.url} has expired; run svc login\n`,
    );
    endIn(-1);
    expect(await get()).toEqual({
      code: 4,
      stdout: "",
      stderr: `svc: the sign-in to ${server.url} has expired; run svc login\n`,
    });
  });

  test("concurrent commands get one credential", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let waiting = 0;
    sts.next.push(async () => {
      waiting++;
      await promise;
      return new Response(null, { status: 503 });
    });
    const all = Array.from({ length: 8 }, () => get());
    while (waiting === 0) await Bun.sleep(10);
    resolve();
    const keys = (await Promise.all(all)).map(sessionIn);
    expect(new Set(keys).size).toBe(1);
    // STS answered the first request with 503.
    expect(sts.asked).toHaveLength(2);
    expect(files()).toHaveLength(1);
  });

  test("svc logout and svc access revoke delete the cached credential", async () => {
    sessionIn(await get());
    const { stdout } = await svc("access", "leases", "--json");
    const [{ id }] = (JSON.parse(stdout) as { items: [{ id: number }] }).items;
    expect(await svc("access", "revoke", String(id))).toMatchObject({ code: 0 });
    expect(files()).toEqual([]);
    sessionIn(await get());
    expect(files()).toHaveLength(1);
    expect(await svc("logout")).toMatchObject({ code: 0 });
    expect(files()).toEqual([]);
    expect(await get()).toEqual({
      code: 4,
      stdout: "",
      stderr: `svc: not signed in to ${server.url}; run svc login\n`,
    });
  });

  test("deletes an expired credential when it caches another", async () => {
    sessionIn(await get("aws-other"));
    const old = file();
    endIn(-1);
    sessionIn(await get());
    expect(fs.existsSync(old)).toBe(false);
    expect(files()).toHaveLength(1);
  });

  test("fails for a role that issues another kind of credential", async () => {
    expect(await get("vault")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: "svc: vault is not an AWS role: --format aws does not support credentials of kind token\n",
    });
  });
});

describe("a cache file is ignored", () => {
  const replaced = async (change: () => void, fault?: string) => {
    const first = sessionIn(await get());
    const path = file();
    change();
    const { code, stdout, stderr } = await get();
    expect([code, stderr]).toEqual([
      0,
      fault === undefined ? "" : `svc: warning: ignoring ${path}, which ${fault}\n`,
    ]);
    const second = JSON.parse(stdout).AccessKeyId;
    expect(second).not.toBe(first);
    // The new credential is cached.
    expect(sessionIn(await get())).toBe(second);
    expect([fs.lstatSync(path).isFile(), mode(path)]).toEqual([true, "600"]);
  };

  test("that others can read", () =>
    replaced(() => fs.chmodSync(file(), 0o644), "can be read or written by others"));

  test("that belongs to another user", async () => {
    // Only root can change a file's owner. Other users run svc as if by another user.
    const isRoot = process.getuid?.() === 0;
    if (isRoot)
      return await replaced(() => fs.chownSync(file(), stranger, stranger), "belongs to another user");
    env = { ...env, SVC_SERVER: server.url, SVC_TOKEN: token };
    const first = sessionIn(await get());
    const { stdout, stderr } = await getAsStranger();
    expect(stderr).toContain(`svc: warning: ignoring ${file()}, which belongs to another user\n`);
    expect(JSON.parse(stdout).AccessKeyId).not.toBe(first);
  });

  test.each(["{", "null", '{"issued":{}}'])("that contains %p", (text) =>
    replaced(() => fs.writeFileSync(file(), text)),
  );

  test("whose times are invalid", () =>
    replaced(() =>
      rewrite((issued) => {
        issued.expires_at = "later";
      }),
    ));

  test("that is a link to another file", () =>
    replaced(() => {
      const [path, elsewhere] = [file(), join(home, "elsewhere")];
      fs.renameSync(path, elsewhere);
      fs.symlinkSync(elsewhere, path);
    }));

  test("that is a pipe", () =>
    replaced(() => {
      const path = file();
      fs.rmSync(path);
      expect(Bun.spawnSync(["mkfifo", "-m", "600", path]).exitCode).toBe(0);
    }));
});

test("warns when the cache directory cannot be created", async () => {
  await writeFile(directory(), "");
  const { code, stdout, stderr } = await get();
  expect([code, JSON.parse(stdout).Version]).toEqual([0, 1]);
  expect(stderr).toMatch(
    /^svc: warning: \S+\/issued cannot be written \(\w+\), so the credential is not cached\n$/,
  );
});

test("nothing is cached in a directory of another user", async () => {
  sessionIn(await get());
  for (const name of files()) fs.rmSync(join(directory(), name));
  const { code, stderr } = await getAsStranger();
  expect(code).toBe(0);
  expect(stderr).toBe(
    `svc: warning: ${directory()} belongs to another user, so the credential is not cached\n`,
  );
  expect(files()).toEqual([]);
});

describe("the AWS CLI", () => {
  /** Runs the AWS CLI with only the configuration that the documentation shows. */
  async function runAws(...args: string[]) {
    await mkdir(join(home, ".aws"), { recursive: true });
    const program = sourceProgram.map((word) => `"${word}"`).join(" ");
    await writeFile(
      join(home, ".aws/config"),
      `[profile deploy]\nregion = eu-central-1\ncredential_process = ${program} access get aws-deploy --format aws\n`,
    );
    const child = Bun.spawn([awsCli, "--profile", "deploy", "--endpoint-url", sts.url, ...args], {
      env: { HOME: home, PATH: "/usr/bin:/bin", AWS_EC2_METADATA_DISABLED: "true" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      cwd: home,
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { code: await child.exited, stdout, stderr };
  }

  test("gets credentials by credential_process and signs with them", async () => {
    for (let time = 0; time < 2; time++) {
      const { code, stdout, stderr } = await runAws("sts", "get-caller-identity", "--output", "json");
      expect([code, stderr]).toEqual([0, ""]);
      expect(JSON.parse(stdout).Arn).toBe(
        `arn:aws:sts::123456789012:assumed-role/of/${sessionIn(await get())}`,
      );
    }
    expect(sts.asked.filter(({ Action }) => Action === "AssumeRoleWithWebIdentity")).toHaveLength(1);
  }, 60_000);

  test("shows the error of svc", async () => {
    expect(await svc("logout")).toMatchObject({ code: 0 });
    const { code, stderr } = await runAws("sts", "get-caller-identity");
    expect(code).not.toBe(0);
    expect(stderr).toContain(`svc: not signed in to ${server.url}; run svc login`);
  }, 60_000);

  test("uses the variables of svc access run", async () => {
    const command = [awsCli, "--endpoint-url", sts.url, "sts", "get-caller-identity", "--output", "json"];
    const { code, stdout, stderr } = await svc("access", "run", "aws-deploy", "--", ...command);
    expect([code, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout).Arn).toMatch(/assumed-role\/of\/ASIA\d{16}$/);
  }, 60_000);
});

test("svc access get --format env prints AWS credentials and tokens", async () => {
  const { code, stdout } = await svc("access", "get", "aws-deploy", "--format", "env");
  expect(code).toBe(0);
  const lines = stdout.trim().split("\n");
  expect(lines.map((line) => line.split("=", 1)[0])).toEqual(
    ["ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION", "DEFAULT_REGION"].map(
      (name) => `export AWS_${name}`,
    ),
  );
  expect(lines[3]).toBe("export AWS_REGION='eu-central-1'");
  const shown = await svc("access", "get", "vault", "--format", "env");
  expect(shown.stdout).toMatch(/^export OIDC_TOKEN='ey[\w-]+\.[\w-]+\.[\w-]+'\n$/);
  expect((await svc("access", "get", "vault", "--format", "token")).stdout).toMatch(
    /^ey[\w-]+\.[\w-]+\.[\w-]+\n$/,
  );
  expect(files()).toEqual([]);
});

test("svc access run warns once that access cannot be renewed", async () => {
  let stderr = "";
  const io = {
    ...systemIo(),
    env: { ...env, PATH: process.env.PATH },
    stderr: { write: (text: string) => (stderr += text) },
    sleep: async () => {},
  };
  await runWithAccess(io, { role: "vault", command: ["sleep", "0.5"], wanted: { duration: 60 } });
  expect(stderr).toMatch(
    /^svc: the access ends at \d{4}-\d\d-\d\d \d\d:\d\d, and cannot be renewed while the command runs\n$/,
  );
});
