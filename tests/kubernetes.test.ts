import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { readConfig } from "../core/config.ts";
import { knownVariables } from "../server/installed_plugins.ts";
import { scheduleConnections } from "../worker/connections.ts";
import { serveHealth, WorkerHealth } from "../worker/health.ts";
import { startTestServer } from "./support/http/server.ts";

const folder = join(import.meta.dir, "../deploy/kubernetes");

interface Container {
  name: string;
  image: string;
  command: string[];
  args?: string[];
  env?: { name: string; value: string }[];
  envFrom: unknown[];
  ports?: { name: string; containerPort: number }[];
  [probe: `${string}Probe`]: { httpGet?: { path: string; port: string }; exec?: { command: string[] } };
  securityContext: unknown;
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  volumeMounts: { name: string; mountPath: string }[];
}

interface Pod {
  metadata: { labels: Record<string, string> };
  spec: {
    containers: Container[];
    securityContext: Record<string, unknown>;
    terminationGracePeriodSeconds?: number;
    volumes: { name: string; secret?: { items?: { key: string; path: string }[] } }[];
  };
}

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  data?: Record<string, string>;
  spec: {
    replicas: number;
    minAvailable: number;
    unhealthyPodEvictionPolicy?: string;
    template: Pod;
    jobTemplate: { spec: { template: Pod; activeDeadlineSeconds?: number } };
    ingress?: { from?: object[]; ports?: { port: string }[] }[];
    selector?: { matchLabels?: Record<string, string> } & Record<string, unknown>;
    podSelector?: { matchLabels: Record<string, string> };
  };
}

function read(file: string): Manifest[] {
  const documents = Bun.YAML.parse(readFileSync(join(folder, file), "utf8"));
  return (Array.isArray(documents) ? documents : [documents]) as Manifest[];
}

interface Kustomization {
  resources: string[];
  images: { name: string; newTag: string }[];
  configMapGenerator: unknown;
}
const [kustomization, releaseKustomization, configKustomization] = [
  "kustomization.yaml",
  "release/kustomization.yaml",
  "config/kustomization.yaml",
].map((file) => read(file)[0] as unknown as Kustomization) as [Kustomization, Kustomization, Kustomization];
const kustomizations = [kustomization, releaseKustomization];
const inFolder = (paths: string[], under = "") =>
  paths.filter((path) => path.endsWith(".yaml")).map((path) => under + path);
const files = [...inFolder(kustomization.resources), ...inFolder(releaseKustomization.resources, "release/")];
const settings = parseEnv(readFileSync(join(folder, "config/settings.env"), "utf8"));
const manifests = files.flatMap(read);
const pods = manifests.flatMap(({ kind, spec }) => {
  const pod = kind === "CronJob" ? spec.jobTemplate.spec.template : spec?.template;
  return pod ? [pod] : [];
});
const containers = pods.flatMap(({ spec }) => spec.containers);
const named = (kind: string, name: string) =>
  manifests.find((one) => one.kind === kind && one.metadata.name === name)!;

test("settings.env and docs/scale.md count the connections that the programs may open", () => {
  const config = readConfig({});
  const pool = config.databasePoolSize;
  expect(Number(settings.SVC_DATABASE_POOL_SIZE)).toBe(pool);
  // Each process listens on one more. The commands: `svc scheduler status`, an upgrade and a dump.
  const [listening, commands] = [1, 4 + 2 + 2];
  const ofSchedule = scheduleConnections + listening;
  const most = (servers: number, workers: number) =>
    servers * (pool + listening) + workers * (pool + ofSchedule) + commands;
  const [servers, workers] = ["svc-server", "svc-worker"].map(
    (name) => named("Deployment", name).spec.replicas,
  );
  const normal = most(servers!, workers!);
  const text = readFileSync(join(folder, "config/settings.env"), "utf8");
  expect(text).toContain(`at most ${normal} connections (docs/scale.md)`);
  const page = readFileSync(join(import.meta.dir, "../docs/scale.md"), "utf8");
  const [ofServer, ofWorker] = ["server", "worker"].map(
    (name) => page.match(new RegExp(`^\\| ${name} .*\\| P \\+ (\\d)`, "m"))?.[1],
  );
  expect([ofServer, ofWorker]).toEqual([String(listening), String(ofSchedule)]);
  expect(page).toContain(`servers x (P + ${listening}) + workers x (P + ${ofSchedule}) + ${commands}\n`);
  const rows = [...page.matchAll(/^\| .* \| (\d+) \| (\d+) \|$/gm)].map(([, ...counts]) =>
    counts.map(Number),
  );
  expect(rows).toEqual([
    [normal, most(servers! + 1, workers! + 1)],
    [normal, Math.max(most(2 * servers!, workers!), most(servers!, 2 * workers!))],
    [most(10, 4), most(11, 5)],
  ]);
});

test("every file of the folder is in a kustomization", () => {
  const all = [...new Bun.Glob("**/*.yaml").scanSync(folder)].filter(
    (file) => !file.endsWith("kustomization.yaml"),
  );
  expect(all.sort()).toEqual(files.toSorted());
});

test.each(manifests.map((one) => [`${one.kind} ${one.metadata.name}`, one] as const))(
  "%s is valid according to the schema of Kubernetes",
  async (_, manifest) => {
    const { apiVersion, kind } = manifest;
    const kinds = await import(`kubernetes-models/${apiVersion}`);
    expect(() => new kinds[kind](manifest).validate()).not.toThrow();
    expect(() => new kinds[kind]({ ...manifest, spec: 7, data: 7 }).validate()).toThrow();
  },
);

describe("what runs", () => {
  test("uses one release, by the names that both kustomizations set", () => {
    const images = kustomizations.flatMap((one) => one.images);
    expect(new Set(images.map(({ newTag }) => newTag)).size).toBe(1);
    expect(new Set(containers.map(({ image }) => image))).toEqual(new Set(images.map(({ name }) => name)));
  });

  test("runs without root, writes only to its volumes, and cannot gain privileges", () => {
    for (const { spec } of pods) {
      expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      expect(spec.securityContext).toEqual(pods[0]!.spec.securityContext);
    }
    expect(pods[0]!.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    for (const { securityContext } of containers)
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
  });

  test("requests its resources, and has a memory limit", () => {
    for (const { resources } of containers) {
      expect(Object.keys(resources?.requests ?? {})).toEqual(["cpu", "memory"]);
      expect(Object.keys(resources?.limits ?? {})).toEqual(["memory"]);
    }
  });

  test("is selected by exactly the intended selectors", () => {
    const selected = manifests.flatMap(({ kind, metadata, spec }) => {
      const { podSelector, selector = podSelector } = spec ?? {};
      if (!selector) return [];
      const labels = Object.entries(selector.matchLabels ?? selector);
      const found = pods.filter((pod) =>
        labels.every(([name, value]) => pod.metadata.labels[name] === value),
      );
      const component = (pod: Pod) => pod.metadata.labels["app.kubernetes.io/component"];
      return [`${kind} ${metadata.name}: ${found.map(component).sort().join(" ")}`];
    });
    expect(selected.sort()).toEqual([
      "Deployment svc-server: server",
      "Deployment svc-worker: worker",
      "NetworkPolicy svc-metrics: backup migrate server worker",
      "NetworkPolicy svc-server: server",
      "NetworkPolicy svc: backup migrate server worker",
      "PodDisruptionBudget svc-server: server",
      "PodDisruptionBudget svc-worker: worker",
      "Service svc: server",
    ]);
  });

  test("has its variables, and finds each secret where it is mounted", async () => {
    const { names } = await knownVariables({});
    const variables = new Set(names);
    expect(Object.keys(settings).filter((name) => !variables.has(name) && !name.endsWith("_FILE"))).toEqual(
      [],
    );
    for (const { spec } of pods) {
      const secrets = spec.volumes.find(({ secret }) => secret)!.secret!;
      const ofAll = Object.entries(settings).filter(([name]) => name.endsWith("_FILE"));
      for (const { env = [], volumeMounts } of spec.containers) {
        expect(volumeMounts.find(({ name }) => name === "secrets")?.mountPath).toBe("/run/secrets/svc");
        for (const { name, value } of [...env, ...ofAll.map(([name, value]) => ({ name, value: value! }))]) {
          expect(variables).toContain(name);
          const [, file = ""] = value.match(/^\/run\/secrets\/svc\/(\w+)$/)!;
          // Pods that mount only some secrets mount those that they read.
          if (secrets.items) expect(secrets.items.map(({ path }) => path)).toContain(file);
        }
      }
    }
  });

  test("has all settings from one place, and is replaced when a setting changes", () => {
    const generator = [{ name: "svc", envs: ["settings.env"] }];
    expect(configKustomization.configMapGenerator).toMatchObject(generator);
    expect(JSON.stringify(configKustomization)).not.toContain("disableNameSuffixHash");
    expect(kustomization.resources).toContain("config");
    expect(releaseKustomization.resources).toContain("../config");
    const ownVariables = containers.map(({ name, envFrom, env = [] }) => {
      expect([name, envFrom]).toEqual([name, [{ configMapRef: { name: "svc" } }]]);
      return [name, env.map((one) => one.name)];
    });
    // Only servers talk to the issuer. Workers decrypt the secrets of access roles, to revoke leases.
    expect(Object.fromEntries(ownVariables)).toEqual({
      server: ["SVC_KEY_SECRET_FILE", "SVC_OIDC_CLIENT_SECRET_FILE"],
      worker: ["SVC_KEY_SECRET_FILE"],
      backup: [],
      migrate: [],
    });
  });

  test("is reachable only by the ingress controller and Prometheus, on its ports", () => {
    const policies = manifests.filter(({ kind }) => kind === "NetworkPolicy");
    const open = policies.flatMap(({ metadata, spec }) =>
      (spec.ingress ?? []).map(({ from = [], ports = [] }) => {
        expect([metadata.name, from.length, ports.length]).toEqual([metadata.name, 1, 1]);
        return [JSON.stringify(from[0]), ports[0]!.port];
      }),
    );
    const namespace = (name: string) =>
      JSON.stringify({ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": name } } });
    expect(open).toEqual([
      [namespace("ingress-nginx"), "http"],
      [namespace("monitoring"), "metrics"],
    ]);
    const portsOf = (name: string) => containers.find((one) => one.name === name)!.ports;
    const config = readConfig({ ...settings, SVC_DATABASE_URL_FILE: "" });
    expect(portsOf("server")).toContainEqual({ name: "metrics", containerPort: config.metricsPort });
    expect(portsOf("worker")).toContainEqual({ name: "metrics", containerPort: config.schedulerMetricsPort });
    expect([settings.METRIC_PROVIDERS, settings.SVC_METRICS_HOST]).toEqual(["prometheus", "0.0.0.0"]);
    // An example address, like all in that file, so that no real pod is trusted by accident.
    expect(settings.SVC_FORWARDED_ALLOW_IPS).toBe("192.0.2.0/24");
  });

  test("waits neither for a dump that hangs, nor for a broken pod when a node is drained", () => {
    const { activeDeadlineSeconds } = named("CronJob", "svc-backup").spec.jobTemplate.spec;
    expect(activeDeadlineSeconds).toBeLessThan(24 * 3600);
    for (const name of ["svc-server", "svc-worker"])
      expect(named("PodDisruptionBudget", name).spec.unhealthyPodEvictionPolicy).toBe("AlwaysAllow");
  });

  test("has probes that match the server's routes and port", async () => {
    const [server] = named("Deployment", "svc-server").spec.template.spec.containers as [Container];
    expect(server.args).toContain(`--port=${server.ports![0]!.containerPort}`);
    await using running = await startTestServer();
    for (const probe of ["readinessProbe", "livenessProbe", "startupProbe"] as const) {
      expect(server[probe]!.httpGet!.port).toBe(server.ports![0]!.name);
      expect((await running.fetch(server[probe]!.httpGet!.path)).status).toBe(200);
    }
    expect(server.livenessProbe!.httpGet!.path).not.toBe("/healthcheck");
  });

  test("has probes that match the worker's, and liveness does not need the database", async () => {
    const [worker] = named("Deployment", "svc-worker").spec.template.spec.containers as [Container];
    const port = worker.ports!.find(({ name }) => name === "health")!;
    expect(worker.command).toContain(`--health-port=${port.containerPort}`);
    const health = new WorkerHealth();
    const endpoint = serveHealth({ host: "127.0.0.1", port: 0 }, health);
    const status = async (probe: "readinessProbe" | "livenessProbe" | "startupProbe") => {
      const { httpGet } = worker[probe]!;
      expect(httpGet!.port).toBe(port.name);
      return (await fetch(new URL(httpGet!.path, endpoint.address))).status;
    };
    expect([await status("readinessProbe"), await status("livenessProbe")]).toEqual([503, 200]);
    health.asks();
    health.answered();
    expect([await status("readinessProbe"), await status("startupProbe")]).toEqual([200, 200]);
    await endpoint.stop();
  });

  test("has enough time to stop, and keeps a pod running while another is moved", () => {
    const pod = named("Deployment", "svc-server").spec.template.spec;
    const seconds = (option: string) =>
      Number(pod.containers[0]!.args!.find((one) => one.startsWith(`${option}=`))!.split("=")[1]);
    const needed = seconds("--timeout-drain") + seconds("--timeout-graceful-shutdown");
    const margin = 20;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(needed + margin);
    expect(
      named("Deployment", "svc-worker").spec.template.spec.terminationGracePeriodSeconds,
    ).toBeGreaterThanOrEqual(20 + margin);
    for (const name of ["svc-server", "svc-worker"])
      expect(named("PodDisruptionBudget", name).spec.minAvailable).toBeLessThan(
        named("Deployment", name).spec.replicas,
      );
  });
});

describe("deploy/kubernetes/release/wait", () => {
  const directory = mkdtempSync(join(tmpdir(), "svc-wait-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  /** The job's conditions that are true, as reported by a fake `kubectl`. */
  const waitFor = async (conditions: string) => {
    const kubectl = `#!/bin/sh
case "$*" in
  "--namespace svc get job svc-migrate --output jsonpath="*) echo "${conditions}" ;;
  "--namespace svc logs --selector=job-name=svc-migrate "*) echo "svc: what the pod said" ;;
  "--namespace svc get pods --selector=job-name=svc-migrate") echo "svc-migrate-x 0/1 Error" ;;
  *) exit 9 ;;
esac
`;
    writeFileSync(join(directory, "kubectl"), kubectl, { mode: 0o755 });
    const waiting = Bun.spawn([join(folder, "release/wait"), "1"], {
      env: { PATH: `${directory}:${process.env.PATH}` },
      stdio: ["ignore", "ignore", "pipe"],
    });
    return [await waiting.exited, await new Response(waiting.stderr).text()];
  };
  const shown = "svc-migrate-x 0/1 Error\nsvc: what the pod said\n";

  test.each(["Complete", "SuccessCriteriaMet Complete"])("%s: it is done", async (conditions) => {
    expect(await waitFor(conditions)).toEqual([0, ""]);
  });

  test.each(["Failed", "FailureTarget Failed"])("%s: it shows what the job said", async (conditions) => {
    const end = "svc-migrate failed; running servers and workers were not changed\n";
    expect(await waitFor(conditions)).toEqual([1, shown + end]);
  });

  test("gives up on a job that does not end", async () => {
    const end =
      "svc-migrate has not ended in time and is still running; running servers and workers were not changed\n";
    expect(await waitFor("")).toEqual([1, shown + end]);
  });

  test("is the command in docs/scale.md", () => {
    const page = readFileSync(join(import.meta.dir, "../docs/scale.md"), "utf8");
    expect(page).toContain("\ndeploy/kubernetes/release/wait\n");
    expect(page).not.toContain("--for=condition=complete");
  });
});
