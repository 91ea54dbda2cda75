import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { noteStatements } from "../../tests/support/database/statements.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import { type Block, StreamClient } from "../../tests/support/http/stream.ts";
import { until } from "../../tests/support/process/until.ts";

let { server, member, admin, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("stream", (given) => {
  ({ server, member, admin, incidentId, path } = given);
});

const note = async (description: string) => {
  const { http, body } = await member.call("POST", `/incidents/${incidentId}/events/`, { description });
  expect(http).toBe(201);
  return body;
};
const follow = (headers?: Record<string, string>, query = "") =>
  StreamClient.open(member, `${path}${query}`, headers);

test("a stream begins with the id of the newest event, and shows later ones in the format of the list", async () => {
  const first = await note("before");
  const stream = await follow();
  expect(stream.response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(stream.response.headers.get("cache-control")).toBe("no-store, no-transform");
  expect(stream.response.headers.get("x-accel-buffering")).toBe("no");
  expect(await stream.next()).toEqual({ retry: "1000", id: String(first.id) });
  const second = await note("The disk is full.\nAgain. \r \u0085 \u2028 \u2029 data: x");
  const { id, event, data } = (await stream.next()) as Required<Block>;
  expect({ id, event, data: JSON.parse(data) }).toEqual({
    id: String(second.id),
    event: "event",
    data: second,
  });
  const { items } = (await member.call("GET", `/incidents/${incidentId}/events/?limit=1`)).body;
  expect(JSON.parse(data)).toEqual(items[0]);
  expect(data).not.toMatch(/[\r\u0085\u2028\u2029]/);
  stream.leave();
});

test("an incident without events begins at 0", async () => {
  const stream = await follow();
  expect(await stream.next()).toMatchObject({ id: "0" });
  expect((await note("first")).description).toBe("first");
  expect(await stream.data()).toMatchObject({ description: "first" });
  stream.leave();
});

test("Last-Event-ID resumes after that event, without gaps or repetition", async () => {
  const ids = [];
  for (const text of ["a", "b", "c"]) ids.push((await note(text)).id);
  const stream = await follow({ "last-event-id": String(ids[0]) });
  expect((await stream.data()).description).toBe("b");
  expect((await stream.data()).description).toBe("c");
  await note("d");
  expect((await stream.data()).description).toBe("d");
  stream.leave();
});

test("`after` is for clients that cannot send the header, which takes precedence", async () => {
  const ids = [];
  for (const text of ["a", "b", "c"]) ids.push((await note(text)).id);
  const all = await follow({}, "?after=0");
  for (const text of ["a", "b", "c"]) expect((await all.data()).description).toBe(text);
  all.leave();
  const resumed = await follow({ "last-event-id": String(ids[1]) }, "?after=0");
  expect((await resumed.data()).description).toBe("c");
  resumed.leave();
});

test.each(["x", "-1", "1.5", "01", "9".repeat(16), "1 2"])("Last-Event-ID %p is refused", async (id) => {
  const answer = await member.call("GET", path, undefined, { "last-event-id": id });
  expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field: "Last-Event-ID" } });
  expect((await member.call("GET", `${path}?after=${id}`)).http).toBe(400);
});

test("hundreds of missed events arrive in order, while more are written", async () => {
  const sent: string[] = [];
  for (let i = 0; i < 250; i++) sent.push(`${i}`);
  for (const text of sent.slice(0, 240)) await note(text);
  const stream = await follow({}, "?after=0");
  const writing = (async () => {
    for (const text of sent.slice(240)) await note(text);
  })();
  const seen: string[] = [];
  while (seen.length < sent.length) seen.push((await stream.data()).description);
  await writing;
  expect(seen).toEqual(sent);
  stream.leave();
});

test("all followers of an incident see the same events, and none of another incident", async () => {
  const streams = [await follow(), await StreamClient.open(admin, path), await follow()];
  const other = await member.call("GET", "/incidents/?limit=1");
  expect(other.http).toBe(200);
  await note("for all");
  for (const stream of streams) expect((await stream.data()).description).toBe("for all");
  for (const stream of streams) stream.leave();
});

describe("after a restore, whose events get smaller ids than those already sent,", () => {
  /** Takes the events after this one back, as the restore of an older backup does. */
  const restoreTo = async (id: number) => {
    await server.db.execute(sql`delete from event where id > ${id}`);
    await server.db.execute(sql`select setval(pg_get_serial_sequence('event', 'id'), ${id})`);
  };

  /**
   * The streams have been checked, as they are periodically, and at once when the server listens again: the check after the
   * next one has begun.
   */
  const checked = async () => {
    const statements = noteStatements(server.db);
    const checks = () => statements.filter((statement) => statement.includes('from "token"')).length;
    for (const wanted of [1, 2]) {
      await server.db.execute(sql`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'svc listen' and datname = current_database()`);
      await until("a check", () => checks() >= wanted);
    }
  };

  test("an open stream shows the new ones", async () => {
    const first = await note("kept");
    const stream = await follow();
    for (const text of ["lost", "lost, too"]) {
      await note(text);
      expect((await stream.data()).description).toBe(text);
    }
    await checked();
    await restoreTo(first.id);
    await checked();
    expect(await note("new")).toMatchObject({ id: first.id + 1 });
    expect(await stream.data()).toMatchObject({ id: first.id + 1, description: "new" });
    stream.leave();
  });

  test("a client resumes with an id that does not exist yet", async () => {
    const first = await note("kept");
    const { id: lost } = await note("lost");
    await restoreTo(first.id);
    const stream = await follow({ "last-event-id": String(lost + 10) });
    expect(await stream.next()).toMatchObject({ id: String(first.id) });
    await note("new");
    expect(await stream.data()).toMatchObject({ id: first.id + 1, description: "new" });
    stream.leave();
  });

  test("the stream of all incidents ends, so that its clients read everything again", async () => {
    const first = await note("kept");
    const board = await StreamClient.open(member, "/incidents/stream");
    await note("lost");
    expect(await board.data()).toMatchObject({ id: incidentId });
    await checked();
    await restoreTo(first.id);
    expect(await board.data()).toBeUndefined();
  });
});
