import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  buildImage,
  type Compose,
  docker,
  killHard,
  runName,
  saidBy,
} from "../support/containers/containers.ts";
import { publishedPort } from "../support/containers/network.ts";
import { productionIn, secrets } from "../support/containers/production.ts";
import { asClient, CertificateFolder } from "../support/http/client_certificates.ts";
import { until } from "../support/process/until.ts";

/** An installation of compose.production.yaml. */

setDefaultTimeout(600_000);

let image: Awaited<ReturnType<typeof buildImage>>;
let compose: Compose;
beforeAll(async () => {
  image = await buildImage();
  compose = await productionIn(image.directory, { env: { SERVER_REPLICAS: "2" } });
  // A trial ran in the same clone before.
  await compose.type("docker compose -f compose.yaml up --detach db\n");
  await compose.healthy(["db"]);
  await compose.type("docker compose -f compose.yaml down\n");
  await compose.done("up", "--detach");
  await compose.healthy(["server"]);
}, 1_200_000);
afterAll(async () => {
  await compose?.[Symbol.asyncDispose]();
  image?.[Symbol.dispose]();
});

/** Not of the health check, which reports that a server is stopping. */
async function status(): Promise<number> {
  const url = `https://localhost:${compose.env.HTTPS_PORT}/.well-known/jwks.json`;
  return (await fetch(url, { tls: { rejectUnauthorized: false }, keepalive: false })).status;
}

test("the servers are behind TLS, and plain HTTP redirects to it", async () => {
  expect(await until("an answer", () => status().catch(() => undefined), 180)).toBe(200);
  const response = await fetch(`http://localhost:${compose.env.HTTP_PORT}/`, { redirect: "manual" });
  const address = `https://localhost:${compose.env.HTTPS_PORT}`;
  expect([response.status, response.headers.get("location")]).toEqual([308, `${address}/`]);
  const [server] = await compose.containers("server");
  const config = await docker("exec", server!, "svc", "server", "config", "--json");
  const shown = (JSON.parse(config) as { key: string; value: string }[]).find(
    ({ key }) => key === "SVC_PUBLIC_URL",
  );
  expect(shown?.value).toBe(address);
});

test("every part has the same settings", async () => {
  const settings = async (service: string) => {
    const [container] = await compose.containers(service);
    const lines: string[] = JSON.parse(await docker("inspect", "-f", "{{json .Config.Env}}", container!));
    return lines
      .filter((line) => line.startsWith("SVC_") && !/^SVC_(KEY|OIDC_CLIENT)_SECRET/.test(line))
      .sort();
  };
  const expected = await settings("server");
  expect(expected.length).toBeGreaterThan(4);
  for (const service of ["worker", "migrate", "backup"])
    expect([service, await settings(service)]).toEqual([service, expected]);
});

test("`up` again changes nothing: the same containers keep running", async () => {
  const running = async () =>
    Promise.all(["server", "worker", "balancer", "proxy", "db"].map((one) => compose.containers(one)));
  const before = await running();
  expect(before[0]!.length).toBe(2);
  await compose.done("up", "--detach");
  expect(await running()).toEqual(before);
});

test("the command for a more verbose log keeps Docker's restart policy working", async () => {
  const page = readFileSync(join(import.meta.dir, "../../docs/observability.md"), "utf8");
  const [, command] = page.match(/^(for id in .*USR2.*)$/m)!;
  const [container] = await compose.containers("server");
  const since = new Date();
  await compose.type(`${command}\n`);
  await until(
    "a line about it",
    async () => (await saidBy(container!, since)).includes("the log level has changed"),
    60,
  );
  const started = () => docker("inspect", "-f", "{{.State.StartedAt}}", container!);
  const before = await started();
  await killHard(container!);
  await until("another start", async () => (await started()) !== before, 60);
  await compose.healthy(["server"]);
});

test("a server that is stopped and started is skipped: every request is answered", async () => {
  const [container] = await compose.containers("server");
  let over = false;
  const restart = docker("restart", "--time", "60", container!).finally(() => (over = true));
  const answers = new Map<number, number>();
  while (!over) {
    const answer = await status();
    answers.set(answer, (answers.get(answer) ?? 0) + 1);
  }
  await restart;
  expect([...answers.keys()]).toEqual([200]);
});

test("the trial's services do not run, and only the proxy is published", async () => {
  const services = (await compose.done("ps", "--services")).split("\n");
  const running = await Promise.all(
    ["idp", "door", "server", "worker", "backup", "db", "balancer", "proxy"].map(async (service) => ({
      service,
      containers: services.includes(service) ? await compose.containers(service) : [],
    })),
  );
  for (const { service, containers } of running) {
    const count = { idp: 0, door: 0, server: 2 }[service] ?? 1;
    expect([service, containers.length]).toEqual([service, count]);
    for (const container of containers) {
      const ports = await docker("inspect", "-f", "{{json .HostConfig.PortBindings}}", container);
      expect([service, /HostPort/.test(ports)]).toEqual([service, service === "proxy"]);
    }
  }
});

test("every volume has a name, so none is left when the project is removed", async () => {
  const names: string[] = [];
  for (const container of (await compose.done("ps", "--all", "--quiet")).split("\n").filter(Boolean)) {
    const mounts = JSON.parse(await docker("inspect", "-f", "{{json .Mounts}}", container));
    for (const { Type, Name } of mounts) if (Type === "volume") names.push(Name);
  }
  expect(names.length).toBeGreaterThan(2);
  expect(names.filter((name) => !name.startsWith(runName))).toEqual([]);
});

test("no environment, argument or log contains a secret", async () => {
  for (const service of ["migrate", "server", "worker", "backup"]) {
    for (const container of await compose.containers(service)) {
      const text = (await docker("inspect", container)) + (await compose.logs(service));
      for (const [name, value] of Object.entries(secrets))
        expect([service, name, text.includes(value)]).toEqual([service, name, false]);
    }
  }
});

test("a dump is made at the start, and only its owner can read it", async () => {
  const list = () => compose.exec("backup", "sh", "-c", "stat -c '%a %u %n' svc-*.dump");
  const line = await until("a dump", () => list().catch(() => undefined), 120);
  expect(line).toMatch(/^600 1000 svc-\d{4}-\d\d-\d\dT\d{6}Z\.dump\n$/);
  expect(await compose.logs("backup")).toContain("Wrote svc-backup.dump (");
});

const psql = (statement: string) =>
  compose.exec("db", "psql", "-h", "/var/run/postgresql", "-U", "svc", "-d", "svc", "-tAc", statement);
const newestDump = async () => (await compose.exec("backup", "sh", "-c", "ls svc-*Z.dump | tail -1")).trim();

/** The commands of a section of docs/restore.md, for the existing dump and without prompts. */
async function restoreCommands(title: string): Promise<string> {
  const page = readFileSync(join(import.meta.dir, "../../docs/restore.md"), "utf8");
  const [, section = ""] = page.match(new RegExp(`^###? ${title}$(.*?)(?=^##|$(?![^]))`, "ms")) ?? [];
  const commands = [...section.matchAll(/^```(?:bash|sh)\n(.*?)^```$/gms)]
    .map(([, block]) => block!)
    .join("");
  return commands
    .replace(/^dump=.*$/m, `dump=${await newestDump()}`)
    .replace(/database restore$/m, "database restore --yes")
    .replaceAll("compose exec db", "compose exec -T db");
}

test("docs/restore.md restores the dump while servers and workers run", async () => {
  const later = "from audit_log where action = 'later'";
  await psql(
    "insert into audit_log (at, actor, action, data) values (now(), gen_random_uuid(), 'later', '{}')",
  );
  expect(await psql(`select count(*) ${later}`)).toBe("1\n");
  const said = await compose.type(await restoreCommands("compose.production.yaml"));
  expect(said).toContain("Restored svc-backup.dump (");
  expect(said).toContain("No drift\n");
  expect(await psql(`select count(*) ${later}`)).toBe("0\n");
  expect(await compose.exec("backup", "ls")).toContain("before-restore.dump\n");
  await compose.healthy(["server", "worker"]);
  expect(await status()).toBe(200);
});

test("docs/restore.md tests the newest dump in a second database", async () => {
  expect(await compose.type(await restoreCommands("Test a backup"))).toContain("Restored svc-backup.dump");
});

test("docs/restore.md restores a dump on a new machine", async () => {
  const kept = "select actor from audit_log where action = 'kept'";
  await psql(
    "insert into audit_log (at, actor, action, data) values (now(), gen_random_uuid(), 'kept', '{}')",
  );
  const before = await psql(kept);
  const [backup] = await compose.containers("backup");
  await compose.exec("backup", "/app/deploy/containers/backup", "once");
  const dump = await newestDump();
  await docker("cp", `${backup}:/backup/${dump}`, compose.directory);
  const commands = await restoreCommands("On a new machine");
  await compose.done("down", "--volumes");
  const ready = "until docker compose exec -T db pg_isready -h 127.0.0.1 -U svc; do sleep 1; done";
  await compose.type(
    // The images exist. The old docker-compose has no --wait.
    commands.replace(/^.* build .*$/m, "").replace("--wait db", `db\n${ready}`),
  );
  await compose.healthy(["server", "worker"]);
  expect(before).not.toBe("");
  expect(await psql(kept)).toBe(before);
});

test("docs/mutual-tls.md forwards the certificates of clients, and never a header of theirs", async () => {
  const page = readFileSync(join(import.meta.dir, "../../docs/mutual-tls.md"), "utf8");
  const section = page.slice(page.indexOf("### In containers"));
  const port = String(await publishedPort());
  const block = (language: string) =>
    section.match(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s"))![1]!.replaceAll("8443", port);
  const files = {
    "compose.mtls.yaml": block("yaml"),
    "Caddyfile.mtls": block("caddyfile"),
    "settings.env": `SVC_MTLS_PROXY_HEADER=Client-Cert\nSVC_MTLS_URL=https://localhost:${port}\n`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(compose.directory, name), text);
  await compose.type(
    `export COMPOSE_FILE="$COMPOSE_FILE:compose.mtls.yaml" SETTINGS_FILE=settings.env\n${block("sh")}`,
  );
  using certificates = new CertificateFolder();
  const { certificate, key } = certificates.issue({ subject: "/CN=Stranger", extensions: asClient });
  const [cert, secret] = [readFileSync(certificate, "utf8"), readFileSync(key, "utf8")];
  const header = `:${Buffer.from(cert.replace(/-----.*-----|\n/g, ""), "base64").toString("base64")}:`;
  const ask = async (at: string, init: RequestInit) => {
    const options = { tls: { rejectUnauthorized: false, cert, key: secret }, keepalive: false, ...init };
    return (await fetch(`https://localhost:${at}/whoami`, options)).status;
  };
  const refused = async () =>
    (await compose.logs("server")).match(/client certificate refused/g)?.length ?? 0;
  const answer = () => ask(port, {}).catch(() => undefined);
  expect(await until("an answer with a certificate", answer, 180)).toBe(401);
  const before = await until("the reason in the log", refused);
  expect(await ask(compose.env.HTTPS_PORT!, { headers: { "client-cert": header } })).toBe(401);
  expect(await ask(compose.env.HTTPS_PORT!, { headers: { "client-cert-chain": header } })).toBe(401);
  expect(await refused()).toBe(before);
});
