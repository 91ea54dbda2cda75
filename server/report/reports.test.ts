import { describe, expect, test } from "bun:test";
import {
  type EmptyIncident,
  uncorrected,
  useEmptyIncident,
} from "../../tests/support/http/empty_incident.ts";
import { itemsOf } from "../../tests/support/http/pages.ts";
import { timelineOf } from "../../tests/support/http/participants.ts";

let { server, member, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("reports", (given) => {
  ({ server, member, incidentId, path } = given);
});

const report = { conditions: "Disk full", actions: "Freeing some", needs: "Disks" };

async function written(conditions = "Disk full"): Promise<number> {
  const { http, body } = await member.call("POST", `${path}/`, { ...report, conditions });
  expect(http).toBe(201);
  return body.id;
}

test("POST answers 201 with the report and its Location; the author is the actor", async () => {
  const { http, body, headers } = await member.call("POST", `${path}/`, report);
  expect(http).toBe(201);
  expect(body).toEqual({
    id: expect.any(Number),
    incident_id: incidentId,
    ...report,
    author: { id: expect.any(Number), name: "carol", email: "carol@example.com" },
    created_at: server.clock.now().toISOString(),
    event_id: expect.any(Number),
    ...uncorrected,
  });
  expect(headers.get("location")).toBe(`${path}/${body.id}`);
  expect(await member.call("GET", headers.get("location")!)).toMatchObject({ http: 200, body });
  expect(await timelineOf(server.db, incidentId)).toMatchObject([
    { kind: "report.written", actor: "carol@example.com", data: { report_id: body.id } },
  ]);
  expect((await member.call("GET", `/incidents/${incidentId}/events/`)).body.items).toMatchObject([
    {
      description: `Status report:\nConditions: ${report.conditions}\nActions: ${report.actions}\nNeeds: ${report.needs}`,
    },
  ]);
});

test("the timeline leaves out the parts of a report that are empty", async () => {
  await member.call("POST", `${path}/`, { conditions: "Full\nAgain", actions: "", needs: "Disks" });
  const { body } = await member.call("GET", `/incidents/${incidentId}/events/`);
  expect(body.items).toMatchObject([
    { description: "Status report:\nConditions: Full\nAgain\nNeeds: Disks" },
  ]);
});

test("the list is paged, newest first, even for reports of the same time", async () => {
  const all: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    all.push(await written(`Report ${i}`));
    if (i % 3 === 0) server.clock.advance(60);
  }
  const walk = async (sort: string) => {
    const reports = await itemsOf(member, `${path}/?limit=2${sort}`);
    return reports.map(({ id }) => id);
  };
  expect(await walk("")).toEqual(all.toReversed());
  expect(await walk("&sort=created_at")).toEqual(all);
  expect((await member.call("GET", `${path}/?q=disk`)).http).toBe(400);
  expect(await member.call("GET", `${path}/?sort=id`)).toMatchObject({ http: 400, body: { field: "sort" } });
});

describe("POST refuses", () => {
  test.each([
    ["no conditions", { conditions: undefined }, "conditions"],
    ["empty conditions", { conditions: "" }, "conditions"],
    ["conditions of spaces", { conditions: " \n\t " }, "conditions"],
    ["long conditions", { conditions: "zebra".repeat(4001) }, "conditions"],
    ["long actions", { actions: "zebra".repeat(4001) }, "actions"],
    ["long needs", { needs: "zebra".repeat(4001) }, "needs"],
    ["NUL", { actions: "zebra\0" }, "actions"],
    ["half a pair", { needs: "zebra\ud800" }, "needs"],
    ["a number", { needs: 1 }, "needs"],
    ["no actions", { actions: undefined }, "actions"],
    ["an author", { author_id: 1 }, "author_id"],
  ])("%s, naming the field but not the value", async (_, change, field) => {
    const answer = await member.call("POST", `${path}/`, { ...report, ...change });
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    expect(JSON.stringify(answer.body)).not.toContain("zebra");
    expect(await timelineOf(server.db, incidentId)).toEqual([]);
  });
});

test.each([
  "'; drop table status_report; --",
  "<script>alert(1)</script>",
  "# H\n\n- [ ] task @alice\n\n[x](javascript:alert(1))",
  "\\x00 \\u0000 \u202e\u0301\u{10ffff}\ufeff",
  " kept \n as it stands ",
])("%p is stored as plain text", async (text) => {
  const { http, body } = await member.call("POST", `${path}/`, {
    conditions: text,
    actions: text,
    needs: text,
  });
  expect([http, body.conditions, body.actions, body.needs]).toEqual([201, text, text, text]);
  expect((await member.call("GET", `${path}/${body.id}`)).body).toEqual(body);
});
