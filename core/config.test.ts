import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readEnvironment } from "../platform/environment.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { whyUnreadable } from "../platform/unreadable.ts";
import { readConfig, variables } from "./config.ts";

test("uses the documented defaults without any variable", () => {
  expect(readConfig({})).toMatchObject({
    publicUrl: "http://127.0.0.1:8000",
    challengeLifetime: 120,
    challengeInterval: 2,
    challengeLegacy: "same_ip",
    tokenLifetime: 3600,
    tokenAlgorithm: "ES256",
    databaseUrl: undefined,
  });
});

test("an empty variable counts as not set, and values are converted", () => {
  const config = readConfig({
    SVC_DOMAIN: " ",
    SVC_CHALLENGE_LIFETIME: "90",
    SVC_PUBLIC_URL: "https://svc.example/",
  });
  expect(config).toMatchObject({
    domain: undefined,
    challengeLifetime: 90,
    publicUrl: "https://svc.example",
  });
  expect(() => Object.assign(config, { domain: "x" })).toThrow();
});

test.each([
  ["https://svc.example:443", "https://svc.example"],
  ["http://svc.example:80/", "http://svc.example"],
  ["https://svc.example:8443", "https://svc.example:8443"],
  ["https://SVC.example", "https://svc.example"],
  ["https://[::1]:443", "https://[::1]"],
])("the public URL %s is the origin %s", (url, origin) => {
  expect(readConfig({ SVC_PUBLIC_URL: url }).publicUrl).toBe(origin);
});

test("reports all faults at once, each with its variable and without a secret", () => {
  try {
    readConfig({
      SVC_CHALLENGE_LIFETIME: "soon",
      SVC_CHALLENGE_INTERVAL: "0",
      SVC_CHALLENGE_LEGACY: "maybe",
      SVC_KEY_SECRET: "hunter2",
      SVC_DATABASE_URL: "mysql://root:hunter2@db/svc",
      SVC_PUBLIC_URL: "https://operator:hunter2@svc.example",
      SVC_OIDC_CLIENT_SECRET_FILE: "/nowhere",
    });
    expect.unreachable();
  } catch (error) {
    const { faults } = error as ConfigurationError;
    expect(faults.map((fault) => fault.split(":")[0])).toEqual([
      "SVC_DATABASE_URL",
      "SVC_PUBLIC_URL",
      "SVC_CHALLENGE_LIFETIME",
      "SVC_CHALLENGE_INTERVAL",
      "SVC_CHALLENGE_LEGACY",
      "SVC_OIDC_CLIENT_SECRET_FILE",
      "SVC_KEY_SECRET",
    ]);
    expect(String(error)).not.toContain("hunter2");
    expect(String(error)).toContain("allow, same_ip, deny");
  }
});

test("an unsupported parameter of PostgreSQL's address is named", () => {
  const read = (parameters: string) => () =>
    readConfig({ SVC_DATABASE_DIRECT_URL: `postgres://u:hunter2@h/n?${parameters}` });
  expect(read("sslmode=require&channel_binding=prefer")).not.toThrow();
  expect(read("channel_binding=require")).toThrow(
    "SVC_DATABASE_DIRECT_URL: this value asks for a channel_binding that svc does not support: use one of disable, prefer",
  );
});

test("a secret may be in a file, and the environment overrides .env", async () => {
  const directory = await mkdtemp(join(tmpdir(), "svc-config-"));
  await writeFile(join(directory, "secret"), "from-a-file\n");
  await writeFile(join(directory, ".env"), "SVC_DOMAIN=file.example\nSVC_ADMIN_GROUP='ops'\n");
  const environment = { SVC_OIDC_CLIENT_SECRET_FILE: join(directory, "secret"), SVC_DOMAIN: "env.example" };
  expect(readConfig(readEnvironment(environment, join(directory, ".env")))).toMatchObject({
    oidcClientSecret: "from-a-file",
    domain: "env.example",
    adminGroup: "ops",
  });
  expect(readEnvironment(environment, join(directory, "none"))).toEqual(environment);
  expect(() => readEnvironment({}, directory)).toThrow(ConfigurationError);
});

test("every variable with a pattern describes the valid form in words", () => {
  for (const { name, schema } of Object.values(variables)) {
    if (!("pattern" in schema)) continue;
    expect(() => readConfig({ [name]: "\u0001 ? =" })).toThrow(/ is not (an?|the) [a-z(]/);
  }
  expect(() => readConfig({ SVC_PUBLIC_URL: "svc.example.com" })).toThrow(
    'SVC_PUBLIC_URL: "svc.example.com" is not an http(s) address without path, user and query, such as https://svc.example.com',
  );
});

describe("a secret in a file", () => {
  const read = (environment: Record<string, string>) => () => readConfig(environment);
  const folder = mkdtempSync(join(tmpdir(), "svc-secret-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("is refused together with the variable itself", () => {
    const both = { SVC_OIDC_CLIENT_SECRET: "hunter2", SVC_OIDC_CLIENT_SECRET_FILE: join(folder, "any") };
    expect(read(both)).toThrow(
      "SVC_OIDC_CLIENT_SECRET and SVC_OIDC_CLIENT_SECRET_FILE are both set: remove one of them",
    );
  });

  test("that cannot be read is reported with the reason", () => {
    const empty = join(folder, "empty");
    writeFileSync(empty, "\n");
    for (const [file, reason] of [
      [join(folder, "none"), "the file does not exist"],
      [folder, "it is a directory"],
      [join(empty, "below"), "a part of its path is not a directory"],
    ] as const)
      expect(read({ SVC_KEY_SECRET_FILE: file })).toThrow(
        `SVC_KEY_SECRET_FILE: cannot read ${file}: ${reason}`,
      );
    expect(read({ SVC_KEY_SECRET_FILE: empty })).toThrow(`SVC_KEY_SECRET_FILE: ${empty} is empty`);
    expect(whyUnreadable({ code: "EACCES" })).toBe(`permission denied to user ${process.geteuid!()}`);
  });

  test("overrides a lower layer's variable, and vice versa", () => {
    const file = join(folder, "layer.env");
    writeFileSync(file, "A=1\nB_FILE=/b\nC=3\n");
    expect(readEnvironment({ A_FILE: "/a", B: "2", C: "" }, file)).toEqual({ A_FILE: "/a", B: "2", C: "3" });
  });
});

test.each([
  ["A=1\n\n  # comment\nexport B = two words # comment\r\nC='it is\nlong' # comment\nD=\"#\"\nE=", []],
  ['A=it\'s\nB=""\nC=a=b', []],
  ["A", [1]],
  ["A=1\nSVC_KEY_SECRET hunter2\n=2\n", [2, 3]],
  ["A='1\nB=2\n", [1]],
  ['A="hunter2" hunter2\n1A=1\nA-B=1', [1, 2, 3]],
  ["A='1\n2'\nnonsense\n", [3]],
  ["\ufeffA=1", []],
] as const)("a file of variables %j: the lines %j are refused, and not repeated", (text, lines) => {
  const file = join(mkdtempSync(join(tmpdir(), "svc-lines-")), "a.env");
  writeFileSync(file, text);
  const faults = lines.map(
    (line) =>
      `${file}, line ${line}: expected NAME=value, with a quoted value closed at its end, or # and a comment`,
  );
  const read = () => readEnvironment({}, file);
  if (faults.length === 0) expect(read).not.toThrow();
  else expect(read).toThrow(new ConfigurationError(faults));
});
