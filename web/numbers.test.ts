import { beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { incident, incidentType, service } from "../drizzle/schema/index.ts";
import { PageReader } from "../tests/support/browser/reader.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { rateGenerate: 100_000 },
);

let carol: PageReader;
let root: PageReader;
beforeAll(async () => {
  const { server, reported, member, ids } = given;
  carol = await PageReader.signIn(server);
  root = await PageReader.signIn(server, "root@example.com", ["admin"]);
  const reportedAt = new Date("2026-06-03T10:00:00Z");
  const set = (id: number, values: object) =>
    server.db
      .update(incident)
      .set({ reportedAt, ...values })
      .where(eq(incident.id, id));
  const { id } = await reported("Broken");
  await set(id, { status: "Stable", stableAt: new Date("2026-06-03T11:30:00Z") });
  const affected = { service_ids: [ids.serviceId], application_ids: [] };
  expect((await member.call("PUT", `/incidents/${id}/affected/`, affected)).http).toBe(200);
  // Of alice and bob.
  await set(ids.incidentId, { visibility: "Restricted", cost: 1234 });
  await server.db.update(incidentType).set({ name: "=Outage <b>, far" });
  await server.db.update(service).set({ name: "Storage & more" });
});

const days = "since=2026-06-01&until=2026-06-14";
const open = async (query: string, reader = carol) => {
  const { status, html } = await reader.open(`/app/numbers?${query}`);
  const [, main = ""] = html.split("<main");
  return { status, html, text: main.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ") };
};

describe("the numbers", () => {
  test("have a bar and a line for each week, and what they mean", async () => {
    const { status, html, text } = await open(days);
    expect(status).toBe(200);
    expect(text).toContain("1 incident reported from 2026-06-01 to 2026-06-14.");
    expect(html.match(/<rect .*?<\/rect>/g)).toEqual([
      '<rect x="0.1" y="0" width="0.8" height="1"><title>2026-06-01: 1</title></rect>',
      '<rect x="1.1" y="1" width="0.8" height="0"><title>2026-06-08: 0</title></rect>',
    ]);
    expect(text).toMatch(/2026-06-01 1 .*1h 30m \/ 1h 30m.* 2026-06-08 0 – – – – – 0 0 All 1 /);
    expect(text).toContain("From the report until somebody took the role of commander");
    expect(html).toContain('<input type="date" name="since" value="2026-06-01"');
  });

  test("have a line for each type, priority or service, and then a table of the weeks", async () => {
    for (const [by, name] of [
      ["type", "=Outage &lt;b>, far"],
      ["priority", "Urgent"],
      ["service", "Storage &amp; more"],
    ] as const) {
      const { html, text } = await open(`${days}&by=${by}`);
      expect(html).toContain(`<th scope="row" dir="auto">${name}</th><td class="num">1</td>`);
      expect(text).toContain("Week of Incidents 2026-06-01 1 2026-06-08 0");
      expect(html).toContain(`<option value="${by}" selected>`);
    }
  });

  test("count a Restricted incident for those who may read it, and say so", async () => {
    expect((await open(days)).text).toContain("Restricted incidents count only if you take part in them.");
    const { text } = await open(days, root);
    expect(text).toContain("2 incidents reported from");
    expect(text).toContain("Restricted incidents count, because you are an admin.");
  });

  test("can be downloaded as CSV", async () => {
    const { html } = await open(`${days}&by=type`);
    const address = /href="(\/app\/numbers\/csv[^"]*)"/.exec(html)![1]!.replaceAll("&amp;", "&");
    const { status, html: csv, headers } = await carol.open(address);
    expect([status, headers.get("content-type")]).toEqual([200, "text/csv; charset=utf-8"]);
    expect(headers.get("content-disposition")).toBe(
      "attachment; filename*=UTF-8''incidents-by-type-2026-06-01-2026-06-14.csv",
    );
    expect(csv.split("\r\n")).toEqual([
      expect.stringMatching(/^type,incidents,commander_incidents,/),
      expect.stringMatching(/^"'=Outage <b>, far",1,.*,1,5400,5400,/),
      "",
    ]);
  });

  test("are of twelve weeks up to today by default", async () => {
    const today = Temporal.PlainDate.from(given.server.clock.now().toISOString().slice(0, 10));
    const since = today.subtract({ days: today.dayOfWeek - 1, weeks: 11 });
    for (const query of ["", "since=&until=&by="]) {
      const { html } = await open(query);
      expect(html).toContain(`name="since" value="${since}"`);
      expect(html).toContain(`name="until" value="${today}"`);
    }
  });

  test("say that there are none", async () => {
    const { text, html } = await open("since=2026-05-01&until=2026-05-01");
    expect(text).toContain("No incidents were reported in these days.");
    expect(html).not.toContain("<svg");
  });

  test.each([
    ["since=2026-06-14&until=2026-06-01", "The range must end after it begins"],
    ["since=2020-06-14", "must not be longer than 5 years"],
    ["since=yesterday", "The field since must be a time"],
    ["since=9999-01-01&until=9999-12-31", "The range must end before the year 10000"],
    ["until=2026-02-30", "The field until must be a time"],
  ])("show the form again with the reason: %s", async (query, reason) => {
    const { status, html, text } = await open(query);
    expect(status).toBe(200);
    expect(text).toContain(reason);
    expect(html).toContain(`value="${query.split(/[=&]/)[1]}"`);
  });
});
