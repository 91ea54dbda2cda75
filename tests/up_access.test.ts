import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSvc } from "./support/cli/process.ts";
import { using } from "./support/database/backup.ts";
import { issueTrialToken } from "./support/process/trial_token.ts";
import { until } from "./support/process/until.ts";
import { environmentOf, startUp, type Up } from "./support/process/up.ts";

// "Try it" in docs/credentials.md, in a trial like that of `npm start`, with its worker.

setDefaultTimeout(60_000);

let directory: string;
let up: Up;
let environment: Record<string, string>;
let alice: Record<string, string>;
let bob: Record<string, string>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-up-access-"));
  up = startUp(join(directory, "data"), [], {});
  const address = await up.ready;
  environment = environmentOf(up.pid, "server start");
  const signedIn = async (user: string, groups: string[]) => ({
    SVC_SERVER: address,
    SVC_TOKEN: await issueTrialToken(environment, user, groups),
    HOME: directory,
    PATH: process.env.PATH!,
  });
  alice = await signedIn("alice@example.com", ["admin"]);
  bob = await signedIn("bob@example.com", []);
});
afterAll(async () => {
  await up?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const states = () =>
  using(environment.SVC_DATABASE_URL!, async (sql) => {
    const rows = await sql<{ state: string }[]>`select state from access_lease order by id`;
    return rows.map(({ state }) => state);
  });

test("in the trial, a user reads orders, changes them after an approval, and all access is revoked", async () => {
  const statement = "select current_user <> 'trial_broker' and count(*) > 0 from shop_order";
  const query = ["-c", statement, "--tuples-only", "--no-align"];
  const { stdout: tables } = await spawnSvc(
    ["access", "run", "trial-db", "--", "psql", "-c", "\\dt", "-tA"],
    bob,
  ).finished;
  expect(tables).toContain("shop_order");
  const read = await spawnSvc(["access", "run", "trial-db", "--", "psql", ...query], bob).finished;
  expect(read).toEqual({ code: 0, stdout: "t\n", stderr: "" });
  const refused = ["access", "run", "trial-db", "--", "psql", "-c", "delete from shop_order"];
  expect((await spawnSvc(refused, bob).finished).stderr).toContain("permission denied");
  const waiting = spawnSvc(
    [
      "access",
      "run",
      "trial-db-admin",
      "--incident",
      "INC-43",
      "--reason",
      "Find the stuck order",
      "--",
      "psql",
      "-c",
      "delete from shop_order where false",
    ],
    bob,
  );
  let number = "";
  await until("the request", async () => {
    const { stdout } = await spawnSvc(["access", "requests"], alice).finished;
    number = /^(\d+) /m.exec(stdout)?.[1] ?? "";
    return number !== "";
  });
  expect(await spawnSvc(["access", "approve", number], alice).finished).toMatchObject({ code: 0 });
  expect(await waiting.finished).toMatchObject({ code: 0, stdout: "DELETE 0\n" });
  await until(
    "all leases to be Revoked",
    async () => (await states()).every((state) => state === "Revoked"),
    30,
  );
  expect(await states()).toHaveLength(4);
});
