import { afterEach, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident, incidentType } from "../../drizzle/schema/index.ts";
import { PageReader } from "../../tests/support/browser/reader.ts";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer((all) => {
  given = all;
});

let carol: CliUser;
beforeAll(async () => {
  const { server, reported, admin } = given;
  carol = await cliUser(server, "carol@example.com");
  const times = {
    reportedAt: new Date("2026-06-03T10:00:00Z"),
    stableAt: new Date("2026-06-03T11:30:00Z"),
    impactStartedAt: new Date("2026-06-03T09:00:00Z"),
    impactEndedAt: new Date("2026-06-03T11:00:00Z"),
  };
  const { id } = await reported("Broken");
  await server.db
    .update(incident)
    .set({ ...times, status: "Stable" })
    .where(eq(incident.id, id));
  const { body: secret } = await admin.call("POST", "/incidents/", {
    ...(await kinds(id)),
    title: "Leak",
    visibility: "Restricted",
  });
  await server.db.update(incident).set({ reportedAt: times.reportedAt }).where(eq(incident.id, secret.id));
  await server.db.update(incidentType).set({ name: '=cmd|" /C calc"!A0' });
});
const kinds = async (id: number) => {
  const { incident_type, incident_priority } = (await given.admin.call("GET", `/incidents/${id}`)).body;
  return { incident_type_id: incident_type.id, incident_priority_id: incident_priority.id };
};

const timeZone = process.env.TZ;
afterEach(() => {
  process.env.TZ = timeZone ?? "UTC";
});

const range = ["--since", "2026-06-01T00:00:00Z", "--until", "2026-06-15T00:00:00Z"];
const note = "Restricted incidents count only if you take part in them.\n";

test("shows a line for each group, and a total", async () => {
  const { code, stdout, stderr } = await carol.svc("stats", ...range);
  expect([code, stderr]).toEqual([0, note]);
  expect(stdout.trimEnd().split("\n")).toEqual([
    expect.stringMatching(/^WEEK +INCIDENTS +COMMANDER +REPORT +STABLE +CLOSE +IMPACT +COST +TASKS$/),
    expect.stringMatching(/^2026-06-01 +1 .* 1h 30m \/ 1h 30m +2h \/ 2h +\d+ +0$/),
    expect.stringMatching(/^2026-06-08 +0 +0 +0$/),
    expect.stringMatching(/^total +1 .* 1h 30m \/ 1h 30m +2h \/ 2h +\d+ +0$/),
  ]);
});

test("prints CSV that a spreadsheet takes for text, or JSON", async () => {
  const csv = await carol.svc("stats", ...range, "--by", "type", "--csv");
  expect(csv.stdout).toStartWith("type,incidents,commander_incidents,");
  expect(csv.stdout).toContain(`\r\n"'=cmd|"" /C calc""!A0",1,`);
  expect(csv.stderr).toBe(note);
  const json = JSON.parse((await carol.svc("stats", ...range, "--by", "type", "--json")).stdout);
  expect(json).toMatchObject({ by: "type", restricted: "own", total: { incidents: 1 } });
  expect(json.weeks).toEqual([
    { week: "2026-06-01", incidents: 1 },
    { week: "2026-06-08", incidents: 0 },
  ]);
});

test("a range of days has the numbers of the page: whole days in UTC, with the last one", async () => {
  const reader = await PageReader.signIn(given.server);
  for (const zone of ["Asia/Kolkata", "America/New_York"]) {
    process.env.TZ = zone;
    for (const [since, until, count] of [
      ["2026-06-01", "2026-06-03", 1],
      ["2026-06-03", "2026-06-03", 1],
      ["2026-06-01", "2026-06-02", 0],
      ["2026-06-04", "2026-06-14", 0],
    ] as const) {
      const page = await reader.open(`/app/numbers/csv?since=${since}&until=${until}`);
      const { stdout } = await carol.svc("stats", "--since", since, "--until", until, "--csv");
      expect([zone, since, until, stdout]).toEqual([zone, since, until, page.html]);
      expect(page.html.split(/\r\n2026-\d\d-\d\d,1,/)).toHaveLength(1 + count);
    }
  }
});

test("says that there is nothing, also on a terminal", async () => {
  const empty = ["--since", "2026-05-01T00:00:00Z", "--until", "2026-05-02T00:00:00Z"];
  const { code, stdout, stderr } = await carol.svc("stats", ...empty);
  expect([code, stdout]).toEqual([0, ""]);
  expect(stderr).toMatch(/^No incidents were reported from 2026-0\S+ \S+ to 2026-05-0\S+ \S+\.\n/);
});

test.each([
  [["--csv", "--json"], "--csv and --json exclude each other"],
  [["--since", "2026-06-02", "--until", "2026-06-01"], "must end after it begins"],
  [["--since", "2020-01-01"], "longer than 5 years"],
  [["--since", "never"], "--since"],
])("refuses %p", async (args, reason) => {
  const { code, stdout, stderr } = await carol.svc("stats", ...args);
  expect([code !== 0, stdout]).toEqual([true, ""]);
  expect(stderr).toContain(reason);
});
