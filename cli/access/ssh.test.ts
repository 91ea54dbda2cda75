import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { sql } from "drizzle-orm";
import { spawnSvc } from "../../tests/support/cli/process.ts";
import { type SshServer, startSshServer } from "../../tests/support/domain/sshd.ts";
import { createUsualRole } from "../../tests/support/domain/usual_role.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { signInToken, startTestServer, type TestServer } from "../../tests/support/http/server.ts";
import { until } from "../../tests/support/process/until.ts";
import { privateDirectory } from "../client/private_file.ts";
import { ExitCode } from "../errors.ts";
import { systemIo } from "../io.ts";
import { runWithAccess } from "./run.ts";

let server: TestServer;
let sshd: SshServer;
let home: string;
let env: Record<string, string>;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "svc-home-"));
  [server, sshd] = await Promise.all([
    startTestServer({ pluginCredential: "ssh-ca" }),
    startSshServer(["deploy"]),
  ]);
  // The CLI uses the real time.
  server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
  const admin = await personOf(server, "root@example.com", ["admin"]);
  const settings = { principals: "deploy", host: "127.0.0.1", user: sshd.account };
  const more = { groups: ["*"], default_duration: 600 };
  await createUsualRole(admin, { slug: "web-hosts", plugin: "ssh-ca", settings, ...more });
  await admin.call("GET", "/access/roles/web-hosts/check");
  const keys = await server.fetch("/access/ssh/default/ca.pub");
  await sshd.trust(await keys.text());
  await sshd.revoke(new Uint8Array(await (await server.fetch("/access/ssh/default/krl")).arrayBuffer()));
  server.issuer.user = "alice@example.com";
  server.issuer.claims = { email_verified: true, groups: [] };
  env = { SVC_SERVER: server.url, SVC_TOKEN: await signInToken(server), HOME: home };
});
afterAll(async () => {
  await sshd[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

const leases = async () => [...(await server.db.execute(sql`select * from access_lease order by id`))];
const at = () => ["-p", String(sshd.port), `${sshd.account}@127.0.0.1`];
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** Runs a printed ssh command with options that isolate it from the account that runs the tests. */
function runPrinted(command: string, remote: string): string {
  const options = [...sshd.options, "-p", String(sshd.port)].join(" ");
  const line = `${command.trim().replace(/^ssh/, `ssh ${options}`)} ${remote}`;
  const { stdout, stderr } = Bun.spawnSync(["sh", "-c", line], {
    env: { PATH: process.env.PATH!, HOME: home },
  });
  return `${stdout}${stderr}`.trim();
}

test("svc access get --format ssh writes a key and a certificate to private files and prints the command", async () => {
  const get = () => spawnSvc(["access", "get", "web-hosts", "--format", "ssh"], env).finished;
  const first = await get();
  const folder = privateDirectory({ HOME: home }, server.url, "ssh");
  const path = join(folder, "web-hosts");
  expect(first).toEqual({
    code: 0,
    stdout: `ssh -i ${path} -o IdentitiesOnly=yes ${sshd.account}@127.0.0.1\n`,
    stderr: expect.stringMatching(/^Until \d{4}-\d\d-\d\d \d\d:\d\d\n$/),
  });
  expect(readdirSync(folder).sort()).toEqual(["web-hosts", "web-hosts-cert.pub", "web-hosts.pub"]);
  expect([mode(path), mode(`${path}-cert.pub`), mode(folder), mode(dirname(folder))]).toEqual([
    "600",
    "600",
    "700",
    "700",
  ]);
  expect(runPrinted(first.stdout, "echo there")).toBe("there");
  const [key, certificate] = [readFileSync(path, "utf8"), readFileSync(`${path}-cert.pub`, "utf8")];
  expect((await get()).code).toBe(0);
  expect(readFileSync(path, "utf8")).toBe(key);
  expect(readFileSync(`${path}-cert.pub`, "utf8")).not.toBe(certificate);
  expect(runPrinted(first.stdout, "echo again")).toBe("again");
  // In OpenSSH's format.
  const { stdout } = Bun.spawnSync(["ssh-keygen", "-y", "-f", path]);
  expect(stdout.toString()).toBe(readFileSync(`${path}.pub`, "utf8"));
  Bun.spawnSync(["chmod", "644", path]);
  expect(await get()).toMatchObject({
    code: 1,
    stderr: `svc: ${path} can be read by others; to fix it: rm ${path}\n`,
  });
  Bun.spawnSync(["chmod", "600", path]);
});

test("of two first svc access get, one waits until the other has written both files of its key", async () => {
  const fresh = await mkdtemp(join(home, "fresh-"));
  const folder = privateDirectory({ HOME: fresh }, server.url, "ssh");
  const lock = join(dirname(dirname(folder)), "credentials.lock");
  await mkdir(dirname(lock), { recursive: true, mode: 0o700 });
  const other = new Database(lock, { create: true });
  other.run("begin exclusive");
  const get = spawnSvc(["access", "get", "web-hosts", "--format", "ssh"], { ...env, HOME: fresh });
  await until("svc to wait for the lock", () => opens(get.child.pid, lock));
  expect(existsSync(folder)).toBe(false);
  other.close();
  expect(await get.finished).toMatchObject({ code: 0 });
  expect(readdirSync(folder).sort()).toEqual(["web-hosts", "web-hosts-cert.pub", "web-hosts.pub"]);
});

/** Whether a process has opened this file. */
function opens(pid: number, path: string): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === path);
  } catch {
    // A descriptor was closed meanwhile.
    return false;
  }
}

test("svc access run gives ssh and scp an agent that ends with the command", async () => {
  const inside = [
    'ssh-add -l | sed "s/ .*(/ (/"; echo "$SSH_AUTH_SOCK"; stat -c %a "$(dirname "$SSH_AUTH_SOCK")"',
    `ssh ${[...sshd.options, ...at()].join(" ")} echo "there"`,
    `echo copied > ${home}/a && scp ${sshd.options.join(" ")} -P ${sshd.port} ${home}/a ${sshd.account}@127.0.0.1:${home}/b`,
    `cat ${home}/b; exit 7`,
  ].join(" && ");
  const { code, stdout, stderr } = await spawnSvc(
    ["access", "run", "web-hosts", "--", "sh", "-c", inside],
    env,
  ).finished;
  expect(stderr).toBe("");
  const [listed, socket, ...rest] = stdout.trim().split("\n");
  expect(listed).toBe("256 (ED25519-CERT)");
  expect(rest).toEqual(["700", "there", "copied"]);
  expect(code).toBe(7);
  expect(() => statSync(dirname(socket!))).toThrow("ENOENT");
  await until("the agent to end", () => agents(socket!).length === 0);
  const [lease] = (await leases()).slice(-1);
  expect(lease).toMatchObject({ state: "Revoking", end_reason: "revoked" });
});

/** The processes that were started with this socket. */
function agents(socket: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(dirname(socket));
    } catch {
      return false;
    }
  });
}

test("the agent ends with svc, even if svc is killed", async () => {
  const running = spawnSvc(
    ["access", "run", "web-hosts", "--", "sh", "-c", `echo "$SSH_AUTH_SOCK" > ${home}/socket; sleep 60`],
    env,
  );
  let socket = "";
  await until("the command to run", () => {
    socket = readdirSync(home).includes("socket") ? readFileSync(join(home, "socket"), "utf8").trim() : "";
    return socket !== "";
  });
  expect(agents(socket).length).toBeGreaterThan(0);
  const [command] = Bun.spawnSync(["pgrep", "-P", String(running.child.pid), "-x", "sh"])
    .stdout.toString()
    .split("\n");
  running.child.kill("SIGKILL");
  await running.child.exited;
  await until("the agent to end", () => agents(socket).length === 0);
  expect(() => statSync(dirname(socket))).toThrow("ENOENT");
  for (const pid of Bun.spawnSync(["pgrep", "-P", command!]).stdout.toString().trim().split("\n"))
    if (pid) process.kill(Number(pid));
});

test("svc access run fails without ssh-agent, and issues nothing", async () => {
  const bin = join(home, "bin");
  await mkdir(bin);
  for (const program of ["true"]) await symlink(Bun.which(program)!, join(bin, program));
  const before = (await leases()).length;
  const { code, stderr } = await spawnSvc(["access", "run", "web-hosts", "--", "true"], { ...env, PATH: bin })
    .finished;
  expect([code, stderr]).toEqual([1, "svc: Command not found: ssh-agent: install the OpenSSH client\n"]);
  expect(await leases()).toHaveLength(before);
});

test("a certificate is replaced before it expires, for the same key", async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  let slept = 0;
  const io = {
    ...systemIo(),
    env: { ...process.env, ...env },
    sleep: async (_: number, signal: AbortSignal) => {
      slept += 1;
      // 15 + 15 + 10 s, a third of its time.
      if (slept <= 3) return;
      resolve();
      await new Promise((_, reject) => signal.addEventListener("abort", reject));
    },
  };
  const [output, go] = [join(home, "listed"), join(home, "go")];
  void asked.then(() => writeFile(go, ""));
  const command = ["sh", "-c", `while ! [ -e ${go} ]; do sleep 0.05; done; ssh-add -L > ${output}; exit 3`];
  const run = runWithAccess(io, { role: "web-hosts", command, wanted: { duration: 120 } });
  expect(await run.catch((error: unknown) => error)).toBeInstanceOf(ExitCode);
  const certificates = readFileSync(output, "utf8").trim().split("\n");
  const path = join(home, "listed-cert.pub");
  const shown = certificates.map((one) => {
    Bun.write(path, one);
    return Bun.spawnSync(["ssh-keygen", "-L", "-f", path]).stdout.toString();
  });
  const of = (pattern: RegExp) => new Set(shown.map((text) => pattern.exec(text)![1]));
  expect(of(/Public key: ED25519-CERT (\S+)/).size).toBe(1);
  const [first, second] = (await leases()).slice(-2);
  expect(of(/Serial: (\d+)/)).toContain(String(second!.id));
  expect([first, second]).toMatchObject([{ state: "Revoking" }, { state: "Revoking" }]);
});

test("svc access revoke says until when a certificate may still be accepted", async () => {
  expect((await spawnSvc(["access", "get", "web-hosts", "--format", "ssh"], env).finished).code).toBe(0);
  const [lease] = (await leases()).slice(-1);
  expect(await spawnSvc(["access", "revoke", String(lease!.id)], env).finished).toEqual({
    code: 0,
    stdout: "Ended web-hosts\n",
    stderr: expect.stringMatching(
      /^svc: the credential may still be accepted until \d{4}-\d\d-\d\d \d\d:\d\d\n$/,
    ),
  });
});

test("svc access revoke --role says until when some certificates may still be accepted", async () => {
  const revoke = ["access", "revoke", "--role", "web-hosts"];
  expect((await spawnSvc(revoke, env).finished).code).toBe(0);
  expect((await spawnSvc(["access", "get", "web-hosts", "--format", "ssh"], env).finished).code).toBe(0);
  expect(await spawnSvc(revoke, env).finished).toEqual({
    code: 0,
    stdout: "Ended 1\n",
    stderr: expect.stringMatching(
      /^svc: some of the credentials may still be accepted until \d{4}-\d\d-\d\d \d\d:\d\d\n$/,
    ),
  });
  // All of them have ended.
  expect(await spawnSvc(revoke, env).finished).toEqual({ code: 0, stdout: "", stderr: "No leases found.\n" });
});

test("svc access authority lists the keys and creates the next one", async () => {
  server.issuer.user = "root@example.com";
  server.issuer.claims = { email_verified: true, groups: ["admin"] };
  const admin = { ...env, SVC_TOKEN: await signInToken(server) };
  const rotate = () => spawnSvc(["access", "authority", "rotate", "ssh", "default"], admin).finished;
  expect(await rotate()).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^SHA256:\S{43} signs from \d{4}-\d\d-\d\d \d\d:\d\d\n$/),
    stderr: "",
  });
  expect(await rotate()).toMatchObject({ code: 1, stderr: expect.stringContaining("already exists") });
  const { stdout } = await spawnSvc(["access", "authority", "list"], admin).finished;
  expect(stdout.split("\n")).toEqual([
    expect.stringMatching(/^Kind +Name +Fingerprint +Signs From +Trusted Until +State *$/),
    ...Array.from({ length: 2 }, () => expect.stringMatching(/^ssh +default +SHA256:/)),
    "",
  ]);
  const asked = await spawnSvc(["access", "authority", "list"], env).finished;
  expect(asked).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("Only admins can manage authorities"),
  });
});
