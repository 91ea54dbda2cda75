import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { knownVariables } from "../server/known_variables.ts";
import { startTestServer } from "./support/server.ts";

const folder = join(import.meta.dir, "../kubernetes");

interface Container {
  name: string;
  image: string;
  command: string[];
  args?: string[];
  env?: { name: string; value: string }[];
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
    volumes: { name: string; secret?: { items?: { path: string }[] } }[];
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
    template: Pod;
    jobTemplate: { spec: { template: Pod } };
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
}
const kustomizations = ["kustomization.yaml", "release/kustomization.yaml"].map(
  (file) => read(file)[0] as unknown as Kustomization,
);
const files = [
  ...kustomizations[0]!.resources,
  ...kustomizations[1]!.resources.map((file) => `release/${file}`),
];
const manifests = files.flatMap(read);
const pods = manifests.flatMap(({ kind, spec }) => {
  const pod = kind === "CronJob" ? spec.jobTemplate.spec.template : spec?.template;
  return pod ? [pod] : [];
});
const containers = pods.flatMap(({ spec }) => spec.containers);
const named = (kind: string, name: string) =>
  manifests.find((one) => one.kind === kind && one.metadata.name === name)!;

test("every file of the folder is in a kustomization", () => {
  const all = [...new Bun.Glob("**/*.yaml").scanSync(folder)].filter(
    (file) => !file.endsWith("kustomization.yaml"),
  );
  expect(all.sort()).toEqual(files.toSorted());
});

test.each(manifests.map((one) => [`${one.kind} ${one.metadata.name}`, one] as const))(
  "%s is what the schema of Kubernetes says",
  async (_, manifest) => {
    const { apiVersion, kind } = manifest;
    const kinds = await import(`kubernetes-models/${apiVersion}`);
    expect(() => new kinds[kind](manifest).validate()).not.toThrow();
    expect(() => new kinds[kind]({ ...manifest, spec: 7, data: 7 }).validate()).toThrow();
  },
);

describe("what runs", () => {
  test("is of one release, by the names that both kustomizations set", () => {
    const images = kustomizations.flatMap((one) => one.images);
    expect(new Set(images.map(({ newTag }) => newTag)).size).toBe(1);
    expect(new Set(containers.map(({ image }) => image))).toEqual(new Set(images.map(({ name }) => name)));
  });

  test("is nobody's root, writes nowhere but in its volumes, and gets no more rights", () => {
    for (const { spec } of pods) {
      expect(spec).toMatchObject({ automountServiceAccountToken: false });
      expect(spec.securityContext).toEqual(pods[0]!.spec.securityContext);
    }
    expect(pods[0]!.spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    for (const { securityContext } of containers)
      expect(securityContext).toEqual({
        ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
      });
  });

  test("asks for what it needs, and takes no more memory than is there for it", () => {
    for (const { resources } of containers) {
      expect(Object.keys(resources?.requests ?? {})).toEqual(["cpu", "memory"]);
      expect(Object.keys(resources?.limits ?? {})).toEqual(["memory"]);
    }
  });

  test("is selected by what is meant for it, and by nothing else", () => {
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
      "NetworkPolicy svc-server: server",
      "NetworkPolicy svc: backup migrate server worker",
      "PodDisruptionBudget svc-server: server",
      "PodDisruptionBudget svc-worker: worker",
      "Service svc: server",
    ]);
  });

  test("knows its variables, and finds each secret where it is mounted", async () => {
    const { names } = await knownVariables({});
    const variables = new Set(names);
    const config = Object.keys(named("ConfigMap", "svc").data!);
    expect(config.filter((name) => !variables.has(name))).toEqual([]);
    for (const { spec } of pods) {
      const secrets = spec.volumes.find(({ secret }) => secret)!.secret!;
      for (const { env = [], volumeMounts } of spec.containers) {
        expect(volumeMounts.find(({ name }) => name === "secrets")?.mountPath).toBe("/run/secrets/svc");
        for (const { name, value } of env) {
          expect(variables).toContain(name);
          const [, file = ""] = value.match(/^\/run\/secrets\/svc\/(\w+)$/)!;
          // Who gets only some of the secrets gets those that it reads.
          if (secrets.items) expect(secrets.items.map(({ path }) => path)).toContain(file);
        }
      }
    }
  });

  test("asks of the server what it answers, on the port that it listens on", async () => {
    const [server] = named("Deployment", "svc-server").spec.template.spec.containers as [Container];
    expect(server.args).toContain(`--port=${server.ports![0]!.containerPort}`);
    await using running = await startTestServer();
    for (const probe of ["readinessProbe", "livenessProbe", "startupProbe"] as const) {
      expect(server[probe]!.httpGet!.port).toBe(server.ports![0]!.name);
      expect((await running.fetch(server[probe]!.httpGet!.path)).status).toBe(200);
    }
    expect(server.livenessProbe!.httpGet!.path).not.toBe("/healthcheck");
  });

  test("has the time to end that it takes, and somebody left while one is moved", () => {
    const pod = named("Deployment", "svc-server").spec.template.spec;
    const seconds = (option: string) =>
      Number(pod.containers[0]!.args!.find((one) => one.startsWith(`${option}=`))!.split("=")[1]);
    const needed = seconds("--timeout-drain") + seconds("--timeout-graceful-shutdown");
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(needed + 5);
    expect(
      named("Deployment", "svc-worker").spec.template.spec.terminationGracePeriodSeconds,
    ).toBeGreaterThan(25);
    for (const name of ["svc-server", "svc-worker"])
      expect(named("PodDisruptionBudget", name).spec.minAvailable).toBeLessThan(
        named("Deployment", name).spec.replicas,
      );
  });
});
