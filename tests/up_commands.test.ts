import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { svc } from "./support/cli/process.ts";
import { createTestDatabase } from "./support/database/database.ts";
import { fromSource, startUp, type Up } from "./support/process/up.ts";

/** Administrative commands in the folder of a running trial. */

setDefaultTimeout(60_000);

let folder: string;
let up: Up;
let address: string;
let using: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "svc-trial-"));
  up = startUp(
    join(folder, ".svc"),
    ["--no-example"],
    {
      SVC_TIMEZONE: "Europe/Berlin",
      OTHERS_SECRET: "hunter2",
    },
    fromSource,
  );
  address = await up.ready;
  using = `svc: using the trial on ${address} (pid ${up.pid})\n`;
});
afterAll(async () => {
  await up[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

test.each([
  ["database current", /\(head\)\n$/],
  ["database history", /^Revision/],
  ["database check --drift", /.*/],
  ["scheduler status", /incident-daily-summary/],
  ["scheduler explain term-sync", /.*/],
  ["scheduler deliveries", /.*/],
  ["scheduler start calculate-incident-cost --eager", /.*/],
  ["server shell --eval config.timezone", /^Europe\/Berlin\n$/],
])("svc %s uses the trial, and says so in one line", async (line, expected) => {
  const { code, stdout, stderr } = await svc(line.split(" "), {}, folder);
  expect({ code, said: stderr.split("\n")[0] }).toEqual({ code: 0, said: using.trim() });
  expect(stdout).toMatch(expected);
  expect(stderr.split("using the trial")).toHaveLength(2);
});

test("svc server config shows the trial's settings, with secrets masked", async () => {
  const { code, stdout, stderr } = await svc(["server", "config", "--json"], {}, folder);
  expect({ code, stderr }).toEqual({ code: 0, stderr: using });
  const rows = JSON.parse(stdout) as { key: string; value: string; source: string }[];
  const row = (key: string) => rows.find((one) => one.key === key);
  expect(row("SVC_PUBLIC_URL")).toEqual({ key: "SVC_PUBLIC_URL", value: address, source: "trial" });
  expect(row("SVC_DATABASE_URL")).toMatchObject({ value: "********", source: "trial" });
  expect(row("SVC_TOKEN_LIFETIME")).toMatchObject({ source: "default" });
});

test("explicit variables take precedence", async () => {
  await using other = await createTestDatabase();
  const { code, stderr } = await svc(["database", "current"], { SVC_DATABASE_URL: other.url }, folder);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const zone = await svc(
    ["server", "shell", "--eval", "config.timezone"],
    { SVC_TIMEZONE: "Asia/Tokyo" },
    folder,
  );
  expect(zone).toEqual({ code: 0, stdout: "Asia/Tokyo\n", stderr: using });
});

test("the trial's settings are readable only by its user, and have no variables of other programs", () => {
  const file = join(folder, ".svc/up.json");
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  const text = readFileSync(file, "utf8");
  expect(text).not.toContain("hunter2");
  expect(text).not.toContain("PATH");
});

test("a killed trial is not used, and the error says how to start one", async () => {
  up.process.kill("SIGKILL");
  await up.exit;
  expect(await svc(["database", "current"], {}, folder)).toEqual({
    code: 1,
    stdout: "",
    stderr:
      "svc: SVC_DATABASE_URL is not set: set it to postgres://user:password@host:5432/name, or start a trial with an embedded database: npm start\n",
  });
});
