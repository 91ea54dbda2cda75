import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { issueTokens } from "../../bench/api/tokens.ts";
import { headsOf, readRevisions } from "../../drizzle/revision/history.ts";
import { version } from "../../package.json" with { type: "json" };
import { accountOf } from "../support/containers/account.ts";
import { type Compose, docker, done, makeClone, runName } from "../support/containers/containers.ts";
import { Load } from "../support/containers/load.ts";
import { writeLoadFile } from "../support/containers/load_file.ts";
import { productionIn, secrets } from "../support/containers/production.ts";
import { testRevision } from "../support/database/revision.ts";
import { until } from "../support/process/until.ts";

/** Runs the commands of docs/release.md under load; each test continues from the state after the previous one. */

setDefaultTimeout(1_200_000);

const page = readFileSync(join(import.meta.dir, "../../docs/release.md"), "utf8");
const [older, newer] = [`${runName}-older`, `${runName}-newer`];
/** Replaces the page's example; all other lines are unchanged. */
const releases = `from=${older} to=${newer}\n`;

/** The commands of a section. */
function blocksOf(title: string): string[] {
  const [, section = ""] = page.match(new RegExp(`^## ${title}$(.*?)(?=^## )`, "ms")) ?? [];
  return [...section.matchAll(/^```bash\n(.*?)^```$/gms)].map(([, block]) => block!);
}

let directory: string;
let compose: Compose;
let load: Load;
const oldHead = headsOf(await readRevisions())[0]!;
const newHead = "29991231T2359_release";
const type = (block: string) => compose.type(releases + block);

beforeAll(async () => {
  directory = await makeClone();
  const { files, databasePort } = await writeLoadFile(directory, `svc:${older}`);
  compose = await productionIn(directory, { files, env: { RELEASE_IMAGE: undefined } });
  await commitBoth();
  const settings = [`RELEASE_IMAGE=svc:${older}`, "SERVER_REPLICAS=3", "WORKER_REPLICAS=2"];
  writeFileSync(join(directory, ".env"), `${settings.join("\n")}\n`);
  for (const block of blocksOf("Install the first release")) await type(block);
  await compose.healthy(["server", "worker"]);
  const url = `https://localhost:${compose.env.HTTPS_PORT}`;
  await until(
    "Caddy's certificate",
    () => fetch(url, { tls: { rejectUnauthorized: false } }).catch(() => undefined),
    180,
  );
  const databaseUrl = `postgres://svc:${secrets.database_password}@127.0.0.1:${databasePort}/svc`;
  const [token] = await issueTokens(
    {
      SVC_DATABASE_URL: databaseUrl,
      SVC_KEY_SECRET: secrets.key_secret!,
      SVC_DOMAIN: "example.com",
      SVC_PUBLIC_URL: url,
      SVC_OIDC_ISSUER: "https://id.example.com",
    },
    1,
  );
  load = await Load.start({ url, databaseUrl, token: token! });
});
afterAll(async () => {
  await load?.[Symbol.asyncDispose]();
  await compose?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** Two releases as tags of a repository that is its own origin: this tree, and one with an additional revision. */
async function commitBoth(): Promise<void> {
  const git = (...args: string[]) =>
    done(["git", "-c", "user.name=test", "-c", "user.email=test@example.com", ...args], { cwd: directory });
  const commit = async (tag: string) => {
    await git("add", "--all");
    await git("commit", "--quiet", "--no-gpg-sign", "--message", tag);
    await git("tag", tag);
  };
  await git("init", "--quiet");
  await git("remote", "add", "origin", directory);
  await commit(older);
  const up = "alter table incident add column release_note text;\n";
  const down = "alter table incident drop column release_note;\n";
  const { id, manifest } = testRevision(newHead, [oldHead], up, down, { compatible: true });
  const revisions = join(directory, "drizzle/revisions");
  mkdirSync(join(revisions, id));
  writeFileSync(join(revisions, id, "up.sql"), up);
  writeFileSync(join(revisions, id, "down.sql"), down);
  writeFileSync(join(revisions, id, "manifest.json"), JSON.stringify(manifest));
  cpSync(join(revisions, oldHead, "snapshot.json"), join(revisions, id, "snapshot.json"));
  await commit(newer);
  await git("checkout", "--quiet", older);
}

/** The running containers, as `service image`. */
async function running(): Promise<string[]> {
  const containers = [...(await compose.containers("server")), ...(await compose.containers("worker"))];
  const names = containers.map((container) =>
    docker(
      "inspect",
      "-f",
      '{{index .Config.Labels "com.docker.compose.service"}} {{.Config.Image}}',
      container,
    ),
  );
  return (await Promise.all(names)).map((name) => name.trim()).sort();
}

const all = (image: string) => [
  ...Array<string>(3).fill(`server svc:${image}`),
  ...Array<string>(2).fill(`worker svc:${image}`),
];

test("upgrade: three servers and two workers move to the next release, and nothing is lost", async () => {
  expect(await running()).toEqual(all(older));
  const said: string[] = [];
  for (const block of blocksOf("Upgrade")) said.push(await type(block));
  expect(said[0]).toContain(newHead);
  expect(await running()).toEqual(all(newer));
  expect(await compose.exec("server", "svc", "database", "current")).toContain(`${newHead} (head)`);
  expect(await compose.exec("server", "svc", "--version")).toBe(`${version} (${newer})\n`);
  // Of the older release's service, before the upgrade, and of the newer release's service.
  const dumps = () => compose.exec("backup", "sh", "-c", "ls svc-*Z.dump | wc -l");
  await until("three dumps", async () => Number(await dumps()) === 3);
  const containers = () =>
    Promise.all(["server", "worker", "balancer", "proxy", "db"].map((one) => compose.containers(one)));
  const before = await containers();
  await compose.done("up", "--detach");
  expect(await containers()).toEqual(before);
  await compose.slotsLater(1);
  expect(load.failures).toEqual([]);
});

test("a roll of a release whose servers exit stops at once, keeps their logs, and the old ones run on", async () => {
  const broken = [
    "docker-compose.broken.yaml",
    `services: { server: { command: ["sh", "-c", "echo I am broken; exit 3"] } }\n`,
  ];
  writeFileSync(join(directory, broken[0]!), broken[1]!);
  const before = await compose.containers("server");
  const failure = await compose
    .type(`export COMPOSE_FILE="$COMPOSE_FILE:${broken[0]}"; timeout 120 deploy/containers/roll server\n`)
    .catch((error: Error) => error.message);
  expect(failure).toContain("ended with 1:");
  expect(failure).toMatch(
    /I am broken[\s\S]*roll: a new server failed \(see logs\/server\): the old containers keep running/,
  );
  expect(await compose.containers("server")).toEqual(before);
  const kept = readdirSync(join(directory, "logs/server")).filter((file) => file.endsWith(".log"));
  expect(kept.length).toBe(3);
  expect(readFileSync(join(directory, "logs/server", kept[0]!), "utf8")).toContain("I am broken");
  expect(load.failures).toEqual([]);
});

test("rollback: the older release reverts revisions that only the newer one has, and loses nothing", async () => {
  for (const block of blocksOf("Roll back")) await type(block);
  expect(await running()).toEqual(all(older));
  expect(await compose.exec("server", "svc", "database", "current")).toContain(`${oldHead} (head)`);
  await compose.slotsLater(1);
  expect(load.failures).toEqual([]);
});

test("acknowledged writes are there once, each slot ran, and each message was sent once", async () => {
  await load.stop();
  const { incidents, notes, deliveries } = load.acknowledged;
  expect(Math.min(incidents.length, notes.length / 3, deliveries.length)).toBeGreaterThan(30);
  expect(await accountOf(load, () => compose.logs("receiver"))).toEqual({
    notOnce: [],
    undone: [],
    received: [1, 1],
    slots: [],
    failed: [],
    passedOver: 0,
  });
});

test("with downtime: the commands for an incompatible revision, with the same two releases", async () => {
  const [checkout] = blocksOf("Upgrade");
  for (const block of [checkout!, ...blocksOf("Upgrade with an incompatible revision")]) await type(block);
  await compose.healthy(["server", "worker"]);
  expect(await running()).toEqual(all(newer));
  expect(await compose.exec("server", "svc", "database", "current")).toContain(`${newHead} (head)`);
});
