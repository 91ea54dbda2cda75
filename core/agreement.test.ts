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

test("processes with the same settings log no warning", async () => {
  expect(await started("worker", domain)).toEqual([]);
  expect(await started("server", domain)).toEqual([]);
  expect(await started("worker", domain)).toEqual([]);
});

test("a worker without the servers' domain logs a warning with both values", async () => {
  await started("server", domain);
  const [warning, ...more] = await started("worker", {});
  expect(more).toEqual([]);
  expect(warning).toMatch(
    /^SVC_DOMAIN is not set here and was "example\.com" for the server on \S+ \(pid \d+\) at \d{4}-\d\d-\d\dT\S+Z: give all servers and workers the same value, and restart those that have another one$/,
  );
  // And again at each start while they differ.
  expect(await started("server", domain)).toEqual([
    expect.stringContaining('SVC_DOMAIN is "example.com" here and was not set for the worker on '),
  ]);
});

test("a value changed in a rolling release logs one warning", async () => {
  const changed = { SVC_PUBLIC_URL: "https://new.example.com", SVC_TIMEZONE: "Europe/Berlin" };
  await started("server", {});
  expect((await started("server", changed)).map((line) => line.split(" ")[0])).toEqual([
    "SVC_PUBLIC_URL",
    "SVC_TIMEZONE",
  ]);
  expect(await started("server", changed)).toEqual([]);
  expect(await started("worker", changed)).toEqual([]);
});

test("a worker without the servers' key secret, or with another one, logs a warning without it", async () => {
  const [secret, other] = [
    "a-secret-for-tests-of-thirty-two-characters",
    "another-secret-of-thirty-two-characters",
  ];
  await started("server", { SVC_KEY_SECRET: secret });
  expect(await started("worker", { SVC_KEY_SECRET: secret })).toEqual([]);
  for (const variables of [undefined, { SVC_KEY_SECRET: other }]) {
    const [warning, ...more] = await started("worker", variables ?? {}, false);
    expect(more).toEqual([]);
    expect(warning).toMatch(/^SVC_KEY_SECRET is .* and was "fingerprint [0-9a-f]{12}" for the /);
    expect(warning).not.toContain("thirty-two");
  }
});

test("if two start at the same time, one logs a warning", async () => {
  const both = await Promise.all([started("server", domain), started("worker", {})]);
  expect(both.flat().length).toBe(1);
});

test("settings that only servers need are compared among servers", async () => {
  await started("server", { SVC_OIDC_ISSUER: "https://id.example.com" });
  expect(await started("worker", {})).toEqual([]);
  expect(await started("server", {})).toEqual([expect.stringContaining("SVC_OIDC_ISSUER is not set here")]);
});

test("a task run by hand logs a warning, and does not change the record", async () => {
  await started("server", domain);
  expect((await started("worker", {}, false)).length).toBe(1);
  expect(await started("worker", domain)).toEqual([]);
});

test("a process frozen during the comparison does not keep others from starting", async () => {
  await started("server", domain);
  await database.db.transaction(async (tx) => {
    await tx.select().from(setting).for("update");
    await expect(started("worker", domain)).rejects.toThrow();
  });
});
