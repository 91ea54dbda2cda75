import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { openSql } from "../drizzle/client.ts";
import { createEmptyTestDatabase } from "./support/database/database.ts";
import { asAuthority, CertificateFolder } from "./support/http/client_certificates.ts";
import { checkProxy, type ProxyName } from "./support/http/proxies.ts";
import { blocksOf } from "./support/process/page.ts";
import { awsCli, sshServer } from "./support/programs.ts";

// Every block of the documentation that another program reads is loaded by that program.

const root = join(import.meta.dir, "..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const pages = ["*.md", "docs/**/*.md"].flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(root)].sort());
const blocks = pages.flatMap(blocksOf);
type Block = (typeof blocks)[number];

let folder: string;
let certificates: CertificateFolder;
let pem: string;
let revocationList: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "svc-documented-"));
  certificates = new CertificateFolder();
  const { certificate, key, ...names } = certificates.issue({ subject: "/CN=Root", extensions: asAuthority });
  pem = readFileSync(certificate, "utf8") + readFileSync(key, "utf8");
  revocationList = certificates.revocationList({ certificate, key, ...names }, []);
});
afterAll(() => {
  certificates[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

function expectAccepted(exitCode: number, output: string): void {
  expect([exitCode, exitCode === 0 && !/warn|ignoring/i.test(output) ? "" : output]).toEqual([0, ""]);
}
/** Runs a program, which must accept what it reads without a warning. */
function run(...command: string[]): void {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command, { stdin: "ignore" });
  expectAccepted(exitCode, `${stdout}${stderr}`);
}

/** Writes a file, and returns its path. */
function write(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}

/** Replaces the paths of files that exist only on the reader's machine with files that have suitable contents. */
const withFiles = (text: string) =>
  text.replaceAll(/\/(?:etc|usr\/local\/sbin)\/[\w./%-]+/g, (path) => {
    const made = write(path, /\.(pem|key)$/.test(path) ? pem : "#!/bin/sh\n");
    if (path.endsWith("crl.pem")) writeFileSync(made, revocationList);
    if (path.includes("/sbin/")) run("chmod", "755", made);
    return made;
  });

const proxy = (name: ProxyName) => (block: Block) => {
  // A port below 1024 needs root.
  const text = withFiles(block.lines).replaceAll("listen 443", "listen 8443");
  const variables = { PUBLIC_HOST: "svc.example.com", HTTPS_PORT: "8444" };
  const { exitCode, output } = checkProxy(name, join(folder, name), text, variables);
  // Caddy warns about its formatting, and about what the test turns off.
  expectAccepted(exitCode, name === "caddy" && exitCode === 0 ? "" : output);
};

/** With the units of docs/credentials-ssh.md: a timer needs its service, and a drop-in needs the rest. */
function systemd({ lines }: Block): void {
  const units = blocks.filter(({ page, language }) => page.endsWith("ssh.md") && language === "ini");
  const [service = "", timer = ""] = units.map((unit) => unit.lines);
  write("svc-ssh-trust.service", withFiles(lines === timer ? service : `${service}\n${lines}`));
  const path = write("svc-ssh-trust.timer", timer);
  run("systemd-analyze", "verify", "--man=no", path.replace(/timer$/, "service"), path);
}

function sshd({ lines }: Block): void {
  const key = write("host_key", pem);
  run("chmod", "600", key);
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true });
  run(sshServer, "-t", "-h", key, "-f", write("sshd_config", withFiles(lines)));
}

function aws({ lines }: Block): void {
  const get = [awsCli, "configure", "get", "credential_process", "--profile", "deploy"];
  run("env", `AWS_CONFIG_FILE=${write("aws", lines)}`, ...get);
}

function prometheus({ lines }: Block): void {
  cpSync(join(root, "deploy/alerts.yaml"), join(folder, "alerts.yaml"));
  const whole = lines.startsWith("  - job_name") ? `scrape_configs:\n${lines}` : lines;
  const { scrape_configs = [] } = Bun.YAML.parse(whole) as { scrape_configs?: Scrape[] };
  for (const { kubernetes_sd_configs, relabel_configs: [pods] = [] } of scrape_configs) {
    if (!kubernetes_sd_configs || !pods) continue;
    expect(kubernetes_sd_configs).toEqual([{ role: "pod", namespaces: { names: ["svc"] } }]);
    const labels = ["pod_label_app_kubernetes_io_component", "pod_container_port_name"];
    expect(pods.source_labels).toEqual(labels.map((label) => `__meta_kubernetes_${label}`));
    const [component, port] = pods.regex.split(";");
    const manifest = read(`deploy/kubernetes/${component}.yaml`);
    expect(manifest).toContain(`app.kubernetes.io/component: ${component} `);
    expect(manifest).toContain(`name: ${port},`);
  }
  // Debian's Prometheus is built without discovery in Kubernetes.
  const text = whole.replaceAll("kubernetes_sd_configs:", "static_configs:").replace(/(?<=&pods ).*/, "[]");
  run("promtool", "check", "config", "--lint-fatal", write("prometheus.yml", text));
}
interface Scrape {
  kubernetes_sd_configs?: object[];
  relabel_configs?: { source_labels: string[]; regex: string }[];
}

async function kubernetes({ lines }: Block): Promise<void> {
  const [, heredoc] = /<<'END'\n(.*?)^END$/ms.exec(lines) ?? [];
  const parsed = [Bun.YAML.parse(heredoc ?? lines)].flat() as { apiVersion: string; kind: string }[];
  for (const manifest of parsed) {
    // docs/scale.md says that the operator's manifest has not been tested.
    if (manifest.apiVersion === "postgresql.cnpg.io/v1") continue;
    const kinds = await import(`kubernetes-models/${manifest.apiVersion}`);
    expect(() => new kinds[manifest.kind](manifest).validate()).not.toThrow();
  }
}

/** Checks the names without Docker, whose engine reads these files in tests/containers. */
function compose({ lines }: Block): void {
  const servicesOf = (text: string) =>
    (Bun.YAML.parse(text) as { services: Record<string, object> }).services;
  const known = ["compose.yaml", "compose.production.yaml"].map((file) => servicesOf(read(file)));
  const keys = known.flatMap((services) => Object.values(services).flatMap(Object.keys));
  for (const [name, service] of Object.entries(servicesOf(lines))) {
    expect(known.flatMap(Object.keys)).toContain(name);
    expect(keys).toEqual(expect.arrayContaining(Object.keys(service)));
  }
}

/** Runs the statements, and rolls them back. */
async function postgres({ lines }: Block): Promise<void> {
  await using database = await createEmptyTestDatabase();
  const sql = openSql(database.url, { max: 1 });
  const own = `database "${new URL(database.url).pathname.slice(1)}" `;
  await sql.unsafe(`begin; ${lines.replace("database svc ", own)}; rollback`);
  await sql.end();
}

function shell(block: Block): unknown {
  run(block.language, "-n", write("script", block.lines));
  return block.lines.includes("apiVersion:") ? kubernetes(block) : undefined;
}

/** A test loads the block in a running program. */
const testedBy = (path: string) => (block: Block) => expect(read(path)).toContain(basename(block.page));

/** By language, and what the block contains. */
const checks: readonly [language: string, pattern: RegExp, check: (block: Block) => unknown][] = [
  ["nginx", /^/, proxy("nginx")],
  ["haproxy", /^/, proxy("haproxy")],
  ["caddy", /^/, proxy("caddy")],
  ["caddyfile", /^/, proxy("caddy")],
  ["sshdconfig", /^/, sshd],
  ["ini", /^\[(Unit|Service)\]$/m, systemd],
  ["ini", /^\[pgbouncer\]$/m, testedBy("tests/support/database/pgbouncer.ts")],
  ["ini", /^\[profile /, aws],
  ["yaml", /^scrape_configs:|^rule_files:|^ {2}- job_name:/m, prometheus],
  ["yaml", /^apiVersion: v1\nkind: Config/, testedBy("plugins/kubernetes_token/kubernetes_token.test.ts")],
  ["yaml", /^apiVersion: (?!v1\nkind: Config)/, kubernetes],
  ["yaml", /^services:/m, compose],
  ["yaml", /^(slug|approval|- term): /, ({ lines }) => Bun.YAML.parse(lines)],
  ["dotenv", /^/, testedBy("tests/containers/release.test.ts")],
  ["sh", /^/, shell],
  ["bash", /^/, shell],
  ["json", /^/, ({ lines }) => JSON.parse(lines)],
  ["js", /^/, testedBy("cli/commands/plugin/list.test.ts")],
  ["sql", /^/, postgres],
  // Nothing but svc and people read these.
  ["csv", /^/, () => {}],
  ["markdown", /^/, () => {}],
  ["console", /^/, () => {}],
  ["text", /^/, () => {}],
];

test.each(blocks.map((block) => [`${block.page}:${block.line} ${block.language}`, block] as const))(
  "%s is accepted by its program",
  async (_, block) => {
    const found = checks.filter(
      ([language, pattern]) => language === block.language && pattern.test(block.lines),
    );
    expect(found, "add a check for it to this test").toHaveLength(1);
    await found[0]![2](block);
  },
);

test("every fence is found, and every check has a block", () => {
  const fences = pages.flatMap((page) => read(page).match(/^ *(```|~~~)/gm) ?? []);
  expect(blocks.length * 2).toBe(fences.length);
  const unused = checks.filter(
    ([language, pattern]) => !blocks.some((one) => one.language === language && pattern.test(one.lines)),
  );
  expect(unused.map(([language, pattern]) => `${language} ${pattern}`)).toEqual([]);
});
