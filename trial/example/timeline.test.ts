import { beforeAll, expect, test } from "bun:test";
import { useDatabase } from "../../tests/support/database/database.ts";
import { type Example, readLoadedExample } from "../../tests/support/domain/example.ts";
import { loadExample } from "./load.ts";

const client = useDatabase(2);
let example: Example;
beforeAll(async () => {
  await loadExample(client.db, new Date("2026-11-20T12:00:00Z"));
  example = await readLoadedExample(client.db);
});

/** The state that results from one incident's timeline. */
function replay(events: Example["events"]) {
  const state = { status: "", stableAt: null as Date | null, closedAt: null as Date | null };
  const active = new Set<number>();
  const roles = new Set<string>();
  const ids: Record<string, number[]> = {};
  let commanders = 0;
  for (const { kind, at, data } of events) {
    const role = `${data.participant_id} ${data.role}`;
    const participant = Number(data.participant_id);
    if (kind === "incident.reported" || kind === "incident.reopened")
      Object.assign(state, { status: "Active", stableAt: null, closedAt: null });
    if (kind === "incident.stable") Object.assign(state, { status: "Stable", stableAt: at });
    if (kind === "incident.closed") Object.assign(state, { status: "Closed", closedAt: at });
    if (kind === "participant.joined") active.add(participant);
    if (kind === "participant.left") {
      expect(active.delete(participant)).toBe(true);
      // A participant gives up every role before leaving.
      expect([...roles].filter((one) => one.startsWith(`${participant} `))).toEqual([]);
    }
    if (kind === "role.assumed") {
      expect([active.has(participant), roles.has(role)]).toEqual([true, false]);
      roles.add(role);
    }
    if (kind === "role.renounced") expect(roles.delete(role)).toBe(true);
    commanders = [...roles].filter((one) => one.endsWith(" commander")).length;
    expect(commanders).toBeLessThanOrEqual(1);
    for (const [key, value] of Object.entries(data)) {
      if (!key.endsWith("_id")) continue;
      const known = ids[`${kind} ${key}`] ?? [];
      ids[`${kind} ${key}`] = [...known, Number(value)];
    }
  }
  return { ...state, active, roles, ids, commanders };
}

const idsOf = (rows: readonly { id: number }[]) => rows.map(({ id }) => id).sort((a, b) => a - b);

test("the timelines agree with the records they describe", () => {
  const { events } = example;
  for (const incident of example.incidents) {
    const { id, status, stableAt, closedAt, reportedAt } = incident;
    const of = <T extends { incidentId: number | null }>(rows: readonly T[]) =>
      rows.filter(({ incidentId }) => incidentId === id);
    const lines = of(events);
    const told = replay(lines);
    const listed = (key: string) => (told.ids[key] ?? []).toSorted((a, b) => a - b);
    expect(lines[0]).toMatchObject({ kind: "incident.reported", at: reportedAt });
    expect({ ...told }).toMatchObject({ status, stableAt, closedAt, commanders: 1 });
    const participants = of(example.participants);
    const roles = of(example.roles);
    expect([...told.active].sort()).toEqual(
      idsOf(participants.filter(({ leftAt }) => leftAt === null)).sort(),
    );
    expect([...told.roles].sort()).toEqual(
      roles
        .filter(({ renouncedAt }) => renouncedAt === null)
        .map(({ participantId, role }) => `${participantId} ${role}`)
        .sort(),
    );
    const changes = ["joined", "left"].flatMap((what) => listed(`participant.${what} participant_id`)).length;
    const roleChanges = ["assumed", "renounced"].flatMap((what) =>
      listed(`role.${what} participant_id`),
    ).length;
    const states = lines.filter(({ kind }) => /^incident\.(stable|closed|reopened)$/.test(kind)).length;
    expect(incident.costBasis).toBe(1 + changes + roleChanges + states);
    expect(incident.version).toBe(1 + states);
    for (const { id: participantId, joinedAt, leftAt } of participants) {
      const at = (kind: string) =>
        lines.find((one) => one.kind === kind && one.data.participant_id === participantId)?.at ?? null;
      expect([at("participant.joined"), at("participant.left")]).toEqual([joinedAt, leftAt]);
    }
    expect(listed("report.written report_id")).toEqual(idsOf(of(example.reports)));
    const inChannel = example.conversations.filter(({ incidentId }) => incidentId === id);
    const said = example.messages.filter(
      (one) =>
        inChannel.some((channel) => channel.id === one.conversationId) &&
        one.authorId !== null &&
        one.recipientId === null,
    );
    expect(listed("message.sent message_id")).toEqual(idsOf(said));
    expect(listed("document.created document_id")).toEqual(idsOf(of(example.documents)));
    expect(listed("task.created task_id")).toEqual(idsOf(of(example.tasks)));
    for (const [kind, statusOfTask] of [
      ["resolved", "Resolved"],
      ["cancelled", "Cancelled"],
    ]) {
      const tasks = of(example.tasks).filter((task) => task.status === statusOfTask);
      expect(listed(`task.${kind} task_id`)).toEqual(idsOf(tasks));
    }
    expect(listed("conversation.created conversation_id")).toEqual(idsOf(of(example.conversations)));
    expect(listed("group.created participant_group_id")).toEqual(idsOf(of(example.groups)));
  }
});

test("authors of reports and messages take part in the incident at that time", () => {
  const isIn = (incidentId: number | undefined, individualId: number | null, at: Date) =>
    example.participants.some(
      (one) =>
        one.incidentId === incidentId &&
        one.individualId === individualId &&
        one.joinedAt <= at &&
        (one.leftAt === null || one.leftAt >= at),
    );
  const incidentOf = new Map(example.conversations.map(({ id, incidentId }) => [id, incidentId]));
  const strangers = [
    ...example.reports.filter((one) => !isIn(one.incidentId, one.authorId, one.createdAt)),
    ...example.messages.filter(
      (one) => one.authorId !== null && !isIn(incidentOf.get(one.conversationId), one.authorId, one.at),
    ),
  ];
  expect(strangers).toEqual([]);
});

test("ids are consecutive", () => {
  for (const [key, rows] of Object.entries(example)) {
    expect([key, rows.map(({ id }) => id)]).toEqual([key, rows.map((_, index) => index + 1)]);
  }
});
