import { describe, expect, test } from "bun:test";
import { shownRoles } from "../../core/incident/participant/participant.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { pagesOf } from "../../tests/support/http/pages.ts";
import {
  insertEmptyIncident,
  insertIndividual,
  letJoin,
  rowsOf,
} from "../../tests/support/http/participants.ts";

let { server, member, ids, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("participants", (given) => {
  ({ server, member, ids, incidentId, path } = given);
});

async function joined(): Promise<number> {
  const at = server.clock.now();
  return letJoin(server.db, incidentId, await insertIndividual(server.db, at), at, ["participant"]);
}

async function listed(query = ""): Promise<number[]> {
  const { http, body } = await member.call("GET", `${path}/?${query}`);
  expect(http).toBe(200);
  return body.items.map(({ id }: { id: number }) => id);
}

test("shows participants of this incident with their roles, filtered by `active`", async () => {
  const first = await joined();
  const second = await joined();
  const third = await joined();
  await member.call("POST", `${path}/${second}/leave`);
  await member.call("POST", `${path}/${third}/roles`, { role: "scribe" });
  const { body } = await member.call("GET", `${path}/`);
  for (const item of body.items) expect((await member.call("GET", `${path}/${item.id}`)).body).toEqual(item);
  expect(body.items.map(({ roles }: { roles: object[] }) => roles.length)).toEqual([1, 1, 2]);
  expect(await listed()).toEqual([first, second, third]);
  expect(await listed("sort=-id")).toEqual([third, second, first]);
  expect(await listed("active=true")).toEqual([first, third]);
  expect(await listed("active=false")).toEqual([second]);
  expect(await listed("active=true&sort=-id")).toEqual([third, first]);
});

test("limits a long history of roles to the current and most recent ones", async () => {
  const id = await joined();
  await member.call("POST", `${path}/${id}/roles`, { role: "liaison" });
  for (let i = 0; i < shownRoles + 5; i += 1) {
    server.clock.advance(60);
    await member.call("POST", `${path}/${id}/roles`, { role: "scribe" });
    await member.call("POST", `${path}/${id}/renounce`, { role: "scribe" });
  }
  await member.call("POST", `${path}/${id}/roles`, { role: "observer" });
  const rows = (await rowsOf(server.db, incidentId)).roles.map((row) => row.id);
  const { body } = await member.call("GET", `${path}/${id}`);
  // Two roles held from the start, and the last one.
  expect(body.roles.map((held: { id: number }) => held.id)).toEqual([
    ...rows.slice(0, 2),
    ...rows.slice(2 - shownRoles),
  ]);
  expect((await member.call("GET", `${path}/`)).body.items).toEqual([body]);
});

test("is paged, each participant once, while others join and leave", async () => {
  const all: number[] = [];
  for (let i = 0; i < 5; i += 1) all.push(await joined());
  for (const sort of ["id", "-id"]) {
    const seen: number[] = [];
    for await (const { items } of pagesOf(member, `${path}/?sort=${sort}&limit=2`)) {
      seen.push(...items.map(({ id }: { id: number }) => id));
      if (seen.length < 5) await joined();
    }
    expect(seen.filter((id) => all.includes(id))).toEqual(sort === "id" ? all : all.toReversed());
    expect(new Set(seen).size).toBe(seen.length);
  }
});

describe("refuses", () => {
  test.each([
    ["sort", "joined_at"],
    ["active", "yes"],
    ["active", ""],
    ["active", "TRUE"],
  ])("%s=%s", async (field, value) => {
    const answer = await member.call("GET", `${path}/?${new URLSearchParams({ [field]: value })}`);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    if (value.length > 4) expect(JSON.stringify(answer.body)).not.toContain(value);
  });

  test("a cursor of another incident, sort or filter", async () => {
    await joined();
    await joined();
    const { next_cursor } = (await member.call("GET", `${path}/?limit=1`)).body;
    await listed(`limit=2&cursor=${next_cursor}`);
    const other = await insertEmptyIncident(server.db, ids, server.clock.now());
    for (const foreign of [
      `${path}/?sort=-id&`,
      `${path}/?active=true&`,
      `/incidents/${other}/participants/?`,
      `/incidents/${incidentId}/events/?`,
    ]) {
      expect(await member.call("GET", `${foreign}cursor=${next_cursor}`)).toMatchObject({
        http: 400,
        body: { field: "cursor" },
      });
    }
  });
});

test("a path works with and without the trailing slash", async () => {
  const id = await joined();
  expect((await member.call("GET", path)).body).toEqual((await member.call("GET", `${path}/`)).body);
  expect((await member.call("POST", path, { individual_id: ids.bob })).http).toBe(201);
  expect((await member.call("GET", `${path}/${id}/`)).body.id).toBe(id);
  expect((await member.call("POST", `${path}/${id}/roles/`, { role: "scribe" })).http).toBe(201);
  expect((await member.call("POST", `${path}/${id}/renounce/`, { role: "scribe" })).http).toBe(200);
  expect((await member.call("POST", `${path}/${id}/leave/`)).http).toBe(200);
  for (const list of ["reports", "events", "messages"]) {
    const address = `/incidents/${incidentId}/${list}`;
    expect((await member.call("GET", address)).body).toEqual((await member.call("GET", `${address}/`)).body);
  }
});
