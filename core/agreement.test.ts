import { beforeEach, expect, test } from "bun:test";
import { setting } from "../drizzle/schema/index.ts";
import { createLog } from "../platform/log.ts";
import { useDatabase } from "../tests/support/database/database.ts";
import { warnOfDisagreement } from "./agreement.ts";
import { readConfig } from "./config.ts";

const database = useDatabase(4);
beforeEach(async () => void (await database.db.delete(setting)));

/** Starts a process with these variables. @returns its warnings */
async function started(
  role: "server" | "worker",
  variables: Record<string, string>,
  record = true,
): Promise<string[]> {
  const lines: string[] = [];
  const log = createLog("warn", { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  await warnOfDisagreement({ db: database.db, config: readConfig(variables), log }, { role, record });
  return lines;
}

const domain = { SVC_DOMAIN: "example.com" };

test("processes with the same settings warn of nothing", async () => {
  expect(await started("worker", domain)).toEqual([]);
  expect(await started("server", domain)).toEqual([]);
  expect(await started("worker", domain)).toEqual([]);
});

test("a worker without the servers' domain is warned of, with the variable and both values", async () => {
  await started("server", domain);
  const [warning, ...more] = await started("worker", {});
  expect(more).toEqual([]);
  expect(warning).toMatch(
    /^SVC_DOMAIN is not set here and was "example\.com" for the server on \S+ \(pid \d+\) at \d{4}-\d\d-\d\dT\S+Z: give all servers and workers the same value, and restart those that have another one$/,
  );
  // And again at each start, for as long as they differ.
  expect(await started("server", domain)).toEqual([
    expect.stringContaining('SVC_DOMAIN is "example.com" here and was not set for the worker on '),
  ]);
});

test("a value that is changed in a rolling release is warned of once", async () => {
  const changed = { SVC_PUBLIC_URL: "https://new.example.com", SVC_TIMEZONE: "Europe/Berlin" };
  await started("server", {});
  expect((await started("server", changed)).map((line) => line.split(" ")[0])).toEqual([
    "SVC_PUBLIC_URL",
    "SVC_TIMEZONE",
  ]);
  expect(await started("server", changed)).toEqual([]);
  expect(await started("worker", changed)).toEqual([]);
});

test("of two that start at the same time, one is warned", async () => {
  const both = await Promise.all([started("server", domain), started("worker", {})]);
  expect(both.flat().length).toBe(1);
});

test("what only servers need is compared among servers", async () => {
  await started("server", { SVC_OIDC_ISSUER: "https://id.example.com" });
  expect(await started("worker", {})).toEqual([]);
  expect(await started("server", {})).toEqual([expect.stringContaining("SVC_OIDC_ISSUER is not set here")]);
});

test("a task that is run by hand is warned, and leaves the record alone", async () => {
  await started("server", domain);
  expect((await started("worker", {}, false)).length).toBe(1);
  expect(await started("worker", domain)).toEqual([]);
});

test("one that was frozen in the middle keeps no other from starting", async () => {
  await started("server", domain);
  await database.db.transaction(async (tx) => {
    await tx.select().from(setting).for("update");
    await expect(started("worker", domain)).rejects.toThrow();
  });
});
