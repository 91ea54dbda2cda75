import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { knownVariables } from "../../server/installed_plugins.ts";

/** Checks of the compose files without an engine; tests/containers runs them. */

const root = join(import.meta.dir, "..", "..");
const read = (file: string) => readFileSync(join(root, file), "utf8");

interface Service {
  image: string;
  user?: string;
  command?: string | string[];
  env_file?: string;
  environment?: Record<string, string>;
  volumes?: string[];
  ports?: string[];
  tmpfs?: string[];
  healthcheck?: object;
  mem_limit?: string;
  logging?: { driver: string; options: Record<string, string> };
  deploy?: { replicas: string };
  stop_grace_period?: string;
  profiles?: string[];
}
type Services = Record<string, Service>;

const trial = servicesOf("compose.yaml");
/** Merges the second file into the first, as compose does. */
const production = merged(trial, servicesOf("compose.production.yaml"));

function servicesOf(file: string): Services {
  return (Bun.YAML.parse(read(file)) as { services: Services }).services;
}

function merged(below: Services, above: Services): Services {
  const both = Object.keys({ ...below, ...above }).map((name) => {
    const [one, other] = [below[name], above[name]];
    const environment = { ...one?.environment, ...other?.environment };
    return [name, { ...one, ...other, environment } as Service] as const;
  });
  return Object.fromEntries(both);
}

const variable = (name: string, otherwise: string) => `\${${name}:-${otherwise}}`;

const parts = ["migrate", "server", "worker", "tools"];
const cases = [
  ["compose.yaml", trial, parts],
  ["compose.production.yaml", production, [...parts, "backup"]],
] as const;

describe.each(cases)("%s", (_, services, names) => {
  test("every part of svc has the same settings, and only those that need secrets have them", async () => {
    const { SVC_KEY_SECRET_FILE, SVC_OIDC_CLIENT_SECRET_FILE, ...shared } = services.server!.environment!;
    expect(SVC_KEY_SECRET_FILE).toBeDefined();
    expect(SVC_OIDC_CLIENT_SECRET_FILE).toBeDefined();
    expect(services.worker!.environment).toEqual({ ...shared, SVC_KEY_SECRET_FILE: SVC_KEY_SECRET_FILE! });
    expect(shared).toContainKeys(["SVC_DATABASE_URL", "SVC_PUBLIC_URL", "SVC_DOMAIN", "SVC_OIDC_ISSUER"]);
    for (const name of names.filter((name) => !["server", "worker"].includes(name)))
      expect([name, services[name]!.environment]).toEqual([name, shared]);
    const known = (await knownVariables({})).names;
    expect(Object.keys(services.server!.environment!).filter((name) => !known.includes(name))).toEqual([]);
  });

  test("every part of svc reads the same settings file, which is empty by default", () => {
    const files = new Set(names.map((name) => services[name]!.env_file));
    expect([...files]).toEqual([variable("SETTINGS_FILE", ".env.example")]);
    expect(parseEnv(read(".env.example"))).toEqual({});
  });

  test("every container has a memory limit and rotates its log", () => {
    for (const [name, { mem_limit, logging }] of Object.entries(services)) {
      expect([name, mem_limit]).toEqual([name, name === "db" ? variable("DATABASE_MEMORY", "2g") : "512m"]);
      const rotated = { driver: "json-file", options: { "max-size": "10m", "max-file": "5" } };
      expect([name, logging]).toEqual([name, rotated]);
    }
  });

  test("every file system in memory has a size", () => {
    for (const [name, { tmpfs = [] }] of Object.entries(services))
      expect([name, tmpfs.filter((one) => !/:size=\d+m$/.test(one))]).toEqual([name, []]);
  });

  test("variables set the numbers of servers and workers for `up`", () => {
    expect(services.server!.deploy?.replicas).toBe(variable("SERVER_REPLICAS", "1"));
    expect(services.worker!.deploy?.replicas).toBe(variable("WORKER_REPLICAS", "1"));
  });

  test("a container has more time to stop than it needs at most", () => {
    const words = [services.server!.command!].flat().join(" ");
    const option = (name: string, value: number) => Number(words.match(`${name}[= ](\\d+)`)?.[1] ?? value);
    const needed = option("--timeout-drain", 0) + option("--timeout-graceful-shutdown", 5);
    const margin = 15;
    expect(Number.parseInt(services.server!.stop_grace_period!, 10)).toBeGreaterThanOrEqual(needed + margin);
    expect(Number.parseInt(services.worker!.stop_grace_period!, 10)).toBeGreaterThanOrEqual(20 + margin);
  });
});

describe("compose.production.yaml", () => {
  test("every part that keeps running has a health check: its own, or that of its image", () => {
    const ofImage = /svc\}?$/;
    const unchecked = Object.entries(production)
      .filter(([, { image, healthcheck }]) => !healthcheck && !ofImage.test(image))
      .map(([name]) => name);
    expect(unchecked).toEqual([]);
  });

  test("shares no volume with a trial in the same clone", () => {
    const volumesOf = (services: Services, names: string[]) =>
      names.flatMap((name) => services[name]!.volumes ?? []).map((volume) => volume.split(":")[0]!);
    const used = volumesOf(production, ["db", "backup", "tools"]);
    expect(used.length).toBe(3);
    expect(used.filter((name) => volumesOf(trial, Object.keys(trial)).includes(name))).toEqual([]);
  });

  test("HTTPS_PORT is the proxy's port, is published, and is part of the public address", () => {
    const port = variable("HTTPS_PORT", "443");
    expect(production.server!.environment!.SVC_PUBLIC_URL).toEndWith(`:${port}`);
    expect(production.proxy!.ports).toContain(`${port}:${port}`);
    expect(production.proxy!.environment!.HTTPS_PORT).toBe(port);
    expect(read("deploy/containers/Caddyfile")).toContain("\n{$PUBLIC_HOST}:{$HTTPS_PORT} {");
  });

  test("the balancer does not change with the release", () => {
    const { image, volumes, command } = production.balancer!;
    expect(read("Dockerfile")).toContain(`\nFROM ${image}\n`);
    expect(JSON.stringify(production.balancer)).not.toContain("RELEASE_IMAGE");
    expect(volumes).toEqual(["./deploy/containers:/app/deploy/containers:ro"]);
    expect(command).toContain("deploy/containers/forward.ts");
  });
});
