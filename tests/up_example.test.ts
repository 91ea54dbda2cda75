import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { using } from "./support/database/backup.ts";
import { createTestDatabase } from "./support/database/database.ts";
import { environmentOf, startUp, svc, type Up } from "./support/process/up.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-up-example-test-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const issuer = { SVC_OIDC_ISSUER: "https://id.example.com" };

/** The number of incidents in the database of a running trial. */
async function incidentsOf({ pid }: Up): Promise<number> {
  const { SVC_DATABASE_URL: url } = environmentOf(pid, "server start");
  return using(url!, async (sql) => (await sql`select from incident`).length);
}

test("example data is loaded, says how to start without, and its tasks keep their owners", async () => {
  await using up = startUp(join(directory, "data"));
  await up.ready;
  expect(up.output()).toMatch(
    /Example data loaded: 43 incidents \(to start without it: stop svc, delete .+, use --no-example\)/,
  );
  expect(await incidentsOf(up)).toBe(43);
  // Every part has the same settings.
  const server = environmentOf(up.pid, "server start");
  const worker = environmentOf(up.pid, "scheduler start");
  expect(server.SVC_DOMAIN).toBe("example.com");
  expect(worker).toEqual(server);
  const owners = () =>
    using(server.SVC_DATABASE_URL!, async (sql) => {
      const rows =
        await sql`select id, owner_id from task where document_id is not null and owner_id is not null`;
      return new Map(rows.map(({ id, owner_id }) => [id, owner_id]));
    });
  for (const part of ["server", "worker"])
    expect(readFileSync(join(directory, `data/log/${part}.log`), "utf8")).not.toContain("the same value");
  const before = await owners();
  expect(before.size).toBeGreaterThan(100);
  const sync = Bun.spawn([...svc, "scheduler", "start", "incident-task-sync", "--eager"], {
    env: worker,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said = await new Response(sync.stdout).text();
  const [, done] = /^incident-task-sync: (\d+) done, 0 skipped, 0 failed$/m.exec(said) ?? [];
  // Its slot may have come before, and the trial's worker has done it.
  const log = readFileSync(join(directory, "data/log/worker.log"), "utf8");
  const earlier = [...log.matchAll(/"task":"incident-task-sync",.*"done":(\d+),"skipped":0,"failed":0/g)];
  expect(Math.max(Number(done), ...earlier.map(([, count]) => Number(count)))).toBeGreaterThan(0);
  const after = await owners();
  expect([...before].filter(([id, owner]) => after.get(id) !== owner)).toEqual([]);
});

test("the next start loads none", async () => {
  await using next = startUp(join(directory, "data"));
  await next.ready;
  expect(next.output()).not.toContain("xample data");
  expect(await incidentsOf(next)).toBe(43);
});

test("loads no example data with --no-example, also at the next start", async () => {
  const data = join(directory, "none");
  {
    await using first = startUp(data, ["--no-example"], issuer);
    await first.ready;
    expect([first.output().includes("xample data"), await incidentsOf(first)]).toEqual([false, 0]);
  }
  await using next = startUp(data, [], issuer);
  await next.ready;
  expect(await incidentsOf(next)).toBe(0);
});

test("loads no example data into the database of SVC_DATABASE_URL, even if it is new", async () => {
  await using database = await createTestDatabase();
  await using up = startUp(join(directory, "other"), [], { ...issuer, SVC_DATABASE_URL: database.url });
  await up.ready;
  expect([up.output().includes("xample data"), await incidentsOf(up)]).toEqual([false, 0]);
});
