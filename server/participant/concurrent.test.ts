import { expect, test } from "bun:test";
import { lockIncident } from "../../core/incident/incident/lock.ts";
import { leaveIncident } from "../../core/incident/participant/leave.ts";
import { createLog } from "../../platform/log.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { signedIn } from "../../tests/support/domain/actor.ts";
import { type EmptyIncident, useEmptyIncident } from "../../tests/support/http/empty_incident.ts";
import {
  commandersOf,
  insertEmptyIncident,
  insertIndividual,
  letJoin,
  noPlugins,
  rowsOf,
  timelineOf,
} from "../../tests/support/http/participants.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";

let { server, member, ids, incidentId, path } = {} as EmptyIncident;
useEmptyIncident("participants", (given) => {
  ({ server, member, ids, incidentId, path } = given);
});

const joined = async (...roles: Parameters<typeof letJoin>[4] & string[]) => {
  const at = server.clock.now();
  return letJoin(server.db, incidentId, await insertIndividual(server.db, at), at, roles);
};
const post = (rest: string, body?: object) => member.call("POST", `${path}${rest}`, body);
const times = <T>(count: number, work: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => work(i)));
const statuses = (answers: { http: number }[]) => answers.map(({ http }) => http).sort();
const kinds = async () => (await timelineOf(server.db, incidentId)).map(({ kind }) => kind);

test("twenty concurrent invitations of one person create one participant", async () => {
  const answers = await times(20, () => post("/", { individual_id: ids.bob }));
  expect(statuses(answers)).toEqual([201, ...Array.from({ length: 19 }, () => 409)]);
  expect((await rowsOf(server.db, incidentId)).participants).toHaveLength(1);
  expect(await kinds()).toEqual(["participant.joined", "role.assumed"]);
});

test("twenty concurrent invitations of an unknown person create one individual, even in two incidents", async () => {
  const other = await insertEmptyIncident(server.db, ids, server.clock.now());
  const answers = await times(20, (i) =>
    member.call("POST", `/incidents/${i % 2 ? incidentId : other}/participants/`, { email: "unheard-of" }),
  );
  expect(statuses(answers)).toEqual([201, 201, ...Array.from({ length: 18 }, () => 409)]);
  const made = answers.filter(({ http }) => http === 201).map(({ body }) => body.individual.id);
  expect(new Set(made).size).toBe(1);
});

test("ten who take command concurrently do so in turn, and one ends up with it", async () => {
  const all = [await joined("commander"), ...(await times(9, () => joined("scribe")))];
  const before = (await kinds()).length;
  const answers = await times(9, (i) => post(`/${all[i + 1]}/roles`, { role: "commander" }));
  expect(statuses(answers)).toEqual(Array.from({ length: 9 }, () => 201));
  const [commander] = await commandersOf(server.db, incidentId);
  const handedOver = (await timelineOf(server.db, incidentId))
    .slice(before)
    .map(({ data }) => [data.from_participant_id, data.participant_id]);
  // Each took over from the previous one.
  expect(handedOver.map(([from]) => from)).toEqual([all[0], ...handedOver.slice(0, -1).map(([, to]) => to)]);
  expect(handedOver.at(-1)![1]).toBe(commander);
  const open = (await rowsOf(server.db, incidentId)).roles.filter(
    ({ role, renouncedAt }) => role === "commander" && renouncedAt === null,
  );
  expect(open).toHaveLength(1);
});

test("of ten who take over from the same commander, one succeeds", async () => {
  const first = await joined("commander");
  const all = await times(10, () => joined());
  const answers = await times(10, (i) => post(`/${all[i]}/roles`, { role: "commander", replaces: first }));
  expect(statuses(answers)).toEqual([201, ...Array.from({ length: 9 }, () => 409)]);
  const won = answers.find(({ http }) => http === 201)!.body.id;
  expect(await commandersOf(server.db, incidentId)).toEqual([won]);
});

test("taking command and leaving concurrently leaves no commander who has left", async () => {
  await joined("commander");
  for (let round = 0; round < 10; round += 1) {
    const id = await joined();
    const [taken, left] = await Promise.all([
      post(`/${id}/roles`, { role: "commander" }),
      post(`/${id}/leave`),
    ]);
    expect(statuses([taken!, left!])).toEqual(taken!.http === 201 ? [201, 409] : [200, 409]);
    const { participants } = await rowsOf(server.db, incidentId);
    const [commander] = await commandersOf(server.db, incidentId);
    expect(participants.find(({ id }) => id === commander)!.leftAt).toBeNull();
  }
});

test("joining and leaving concurrently leave at most one participation, and no role without one", async () => {
  for (let round = 0; round < 5; round += 1) {
    const individualId = await insertIndividual(server.db, server.clock.now());
    const id = await letJoin(server.db, incidentId, individualId, server.clock.now(), ["scribe"]);
    await times(12, (i) =>
      i % 2
        ? post("/", { individual_id: individualId, roles: ["liaison", "observer"] })
        : post(`/${id}/leave`),
    );
    const { participants, roles } = await rowsOf(server.db, incidentId);
    const theirs = participants.filter((row) => row.individualId === individualId);
    expect(theirs.filter(({ leftAt }) => leftAt === null).length).toBeLessThan(2);
    expect(theirs[0]!.leftAt).not.toBeNull();
    const gone = new Set(theirs.filter(({ leftAt }) => leftAt !== null).map(({ id }) => id));
    expect(roles.filter((row) => gone.has(row.participantId) && row.renouncedAt === null)).toEqual([]);
  }
});

test("twenty concurrent removals of one person succeed once", async () => {
  const id = await joined("scribe");
  const answers = await times(20, () => post(`/${id}/leave`));
  expect(statuses(answers)).toEqual([200, ...Array.from({ length: 19 }, () => 409)]);
  expect((await kinds()).filter((kind) => kind === "participant.left")).toHaveLength(1);
});

test("a person removed from a Restricted incident does not return through a request that was waiting", async () => {
  const at = server.clock.now();
  const alice = await personOf(server, "alice@example.com");
  const restricted = await insertEmptyIncident(server.db, ids, at, "Restricted");
  const participantId = await letJoin(server.db, restricted, ids.alice, at, ["scribe"]);
  const calls: ReturnType<Person["call"]>[] = [];
  await server.db.transaction(async (tx) => {
    await lockIncident(tx, "worker", restricted);
    const { clock, config } = server;
    const context = { db: tx, clock, config, log: createLog("silent"), plugins: noPlugins };
    const root = signedIn("root", { admin: true });
    await leaveIncident(context, root, { incidentId: restricted, participantId });
    calls.push(alice.call("POST", `/incidents/${restricted}/participants`, { individual_id: ids.alice }));
    await somebodyWaits(server.db);
  });
  expect((await calls[0])?.http).toBe(404);
  const { participants } = await rowsOf(server.db, restricted);
  expect(participants).toMatchObject([{ id: participantId, leftAt: at }]);
});
