import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { variables } from "../../../core/config.ts";
import { svc } from "../../../tests/support/cli/process.ts";

const main = join(import.meta.dir, "../../main.ts");
const directory = mkdtempSync(join(tmpdir(), "svc-config-"));
afterAll(() => rmSync(directory, { recursive: true }));
writeFileSync(
  join(directory, ".env"),
  "SVC_DOMAIN=file.example\nSVC_ADMIN_GROUP=from-file\nSVC_KEY_SECRET=hunter2-hunter2-hunter2-hunter2-hunter2\n",
);
const secretFile = join(directory, "client_secret");
writeFileSync(secretFile, "hunter2\n");

const config = async (env: Record<string, string> = {}, ...args: string[]) =>
  await svc(["server", "config", ...args], env, directory);
const rowOf = (text: string, key: string) =>
  text
    .split("\n")
    .find((line) => line.startsWith(`${key} `))
    ?.split(/ {2,}/)
    .slice(1);

test("shows key and value of every variable, including those of plugins", async () => {
  const { code, stdout, stderr } = await config();
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const [header, ...rows] = stdout.trimEnd().split("\n");
  expect(header).toMatch(/^Key +Value$/);
  const keys = rows.map((row) => row.split(" ")[0]!);
  expect(keys.slice(0, Object.keys(variables).length)).toEqual(
    Object.values(variables).map(({ name }) => name),
  );
  expect(keys).toContain("SVC_PLUGIN_WEBHOOK_URL");
  expect(rowOf(stdout, "SVC_ADMIN_GROUP")).toEqual(["from-file"]);
  expect(rowOf(stdout, "SVC_SSO")).toEqual(["oidc"]);
});

test("--verbose shows the source of each value; the environment overrides .env", async () => {
  const env = { SVC_ADMIN_GROUP: "mine", SVC_OIDC_CLIENT_SECRET_FILE: secretFile, SVC_SSO: " " };
  const { stdout } = await config(env, "--verbose");
  expect(stdout).toMatch(/^Key +Value +Source\n/);
  expect(rowOf(stdout, "SVC_DOMAIN")).toEqual(["file.example", ".env"]);
  expect(rowOf(stdout, "SVC_ADMIN_GROUP")).toEqual(["mine", "environment"]);
  expect(rowOf(stdout, "SVC_SSO")).toEqual(["oidc", "default"]);
  expect(rowOf(stdout, "SVC_KEY_SECRET")).toEqual(["********", ".env"]);
  expect(rowOf(stdout, "SVC_OIDC_CLIENT_SECRET")).toEqual([
    "********",
    "SVC_OIDC_CLIENT_SECRET_FILE (environment)",
  ]);
  expect(rowOf(stdout, "SVC_OIDC_ISSUER")).toBeUndefined();
  expect(stdout).toMatch(/^SVC_OIDC_ISSUER$/m);
});

test("shows no secret, valid or not, also as JSON", async () => {
  const env = {
    SVC_DATABASE_URL: "mysql://svc:hunter2@db/svc",
    SVC_PLUGIN_WEBHOOK_SECRET: "hunter2",
    SVC_OIDC_CLIENT_SECRET: "hunter2",
  };
  for (const args of [["--verbose"], ["--json"]]) {
    const { code, stdout, stderr } = await config(env, ...args);
    expect(code).toBe(1);
    expect(stdout + stderr).not.toContain("hunter2");
    expect(stderr).toContain("SVC_DATABASE_URL: this value is not an address such as postgres://");
  }
});

test("masks a password in the address of any variable", async () => {
  const env = {
    SVC_OIDC_ISSUER: "https://svc:hunter2@issuer.example/a",
    STATIC_DIR: "x://:hunter2@hunter2@/",
  };
  for (const args of [["--verbose"], ["--json"]]) {
    const { stdout } = await config(env, ...args);
    expect(stdout).not.toContain("hunter2");
    expect(stdout).toContain("https://svc:********@issuer.example/a");
    expect(stdout).toContain("x://:********@/");
  }
});

test("a value cannot control the terminal or break the table", async () => {
  const hostile = {
    SVC_DOMAIN: "a\nSVC_SSO  proxy",
    STATIC_DIR: "\x1b[31mred\u202e",
    SVC_ADMIN_GROUP: "ops",
  };
  const { stdout } = await config(hostile, "--verbose");
  expect(stdout).toMatch(/^SVC_DOMAIN +a\uFFFDSVC_SSO {2}proxy +environment$/m);
  expect(stdout).toMatch(/^STATIC_DIR +\uFFFD\[31mred\uFFFD +environment$/m);
  expect(rowOf(stdout, "SVC_ADMIN_GROUP")).toEqual(["ops", "environment"]);
});

test("--json prints the rows of the table as a list", async () => {
  const { stdout } = await config({}, "--json");
  expect(JSON.parse(stdout)).toContainEqual({ key: "SVC_DOMAIN", value: "file.example", source: ".env" });
});

test("reports all errors together, after the table", async () => {
  const { code, stdout, stderr } = await config({ SVC_SSO: "saml", SVC_RATE_POLL: "many" });
  expect(code).toBe(1);
  expect(stderr).toBe(
    'svc: SVC_RATE_POLL: "many" is not a whole number of at least 1\nsvc: SVC_SSO: "saml" is not one of oidc, proxy\n',
  );
  expect(rowOf(stdout, "SVC_SSO")).toEqual(["saml"]);
});

test("a slow reader gets the complete output", () => {
  const scope = "x".repeat(100_000);
  // Read only after the output that follows the table, when the program would have exited if it did not wait.
  const script = `mkfifo said
"$0" --no-env-file "$1" server config --json 2> said | {
  read -r fault < said; echo "$fault" >&2
  sleep 0.5; cat
}`;
  const { stdout, stderr } = Bun.spawnSync(["sh", "-c", script, process.execPath, main], {
    cwd: directory,
    env: { PATH: process.env.PATH, SVC_OIDC_SCOPE: scope, SVC_SSO: "saml" },
  });
  expect(stderr.toString()).toContain('SVC_SSO: \\"saml\\" is not one of oidc, proxy');
  expect(JSON.parse(stdout.toString())).toContainEqual({
    key: "SVC_OIDC_SCOPE",
    value: scope,
    source: "environment",
  });
});

test("an unknown variable is reported with the closest known one", async () => {
  const env = {
    SVC_PUBLIK_URL: "x",
    SVC_PLUGIN_WEBHOOK_UR: "x",
    SVC_QQQQQQQ: "x",
    SVC_SERVER: "x",
    SVC_INCIDENT: "x",
    SVC_EMPTY: "",
  };
  const { code, stderr } = await config(env);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: `svc: unknown variable: SVC_PLUGIN_WEBHOOK_UR. Did you mean SVC_PLUGIN_WEBHOOK_URL?
svc: unknown variable: SVC_PUBLIK_URL. Did you mean SVC_PUBLIC_URL?
svc: unknown variable: SVC_QQQQQQQ
`,
  });
});
