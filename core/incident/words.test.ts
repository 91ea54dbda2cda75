import { expect, test } from "bun:test";
import { folded } from "./timeline/fold.ts";
import { entryText, type TimelineEvent } from "./words.ts";

let nextId = 1;
const event = (actor: string, kind: string, description: string, data = {}): TimelineEvent => ({
  id: nextId++,
  at: "2026-11-20T12:00:00.000Z",
  actor,
  source: "core",
  kind,
  description,
  data,
  version: 1,
  edited_at: null,
  edited_by: null,
  withdrawn_at: null,
  redacted_at: null,
});
const note = (description: string, data = {}) => event("dana@example.com", "note", description, data);
const step = (description: string) => event("system", "step.done", description);
const textsOf = (events: TimelineEvent[]) => folded(events).map((entry) => entryText(entry, (at) => at));

test("who joins takes one line, with everything that the server does then", () => {
  expect(
    textsOf([
      event("dana@example.com", "participant.joined", "Bob joined", { participant_id: 3 }),
      event("dana@example.com", "role.assumed", "Bob became a participant", { participant_id: 3 }),
      step("Conversation members updated"),
      step("Conversation members updated"),
      step("Group members updated"),
      note("Rolled back"),
      step("Conversation members updated"),
    ]),
  ).toEqual([
    "Bob joined; Bob became a participant; Conversation members updated (2 times); Group members updated",
    "Rolled back",
    "Conversation members updated",
  ]);
});

test("a line for everything that somebody does or says, and for what somebody must see", () => {
  const events = [
    event("dana@example.com", "participant.joined", "Bob joined", { participant_id: 3 }),
    event("dana@example.com", "role.assumed", "Una became commander", { participant_id: 4 }),
    event("dana@example.com", "incident.stable", "Stable"),
    event("system", "step.failed", "Conversation: refused"),
    event("worker", "reminder.sent", "Reminder sent"),
    event("worker", "access.revoked", "Access revoked"),
    event("worker", "report.written", "Status report:\nConditions: Full"),
  ];
  expect(textsOf(events)).toEqual(events.map(({ description }) => description));
});

test("the server's work for one incident is not folded into the line of another", () => {
  const of = (incident: string, one: TimelineEvent) => ({ ...one, incident });
  const lines = folded([
    of("INC-7", event("dana@example.com", "incident.reported", "Reported")),
    of("INC-8", step("Conversation opened")),
    of("INC-8", step("Group created")),
    of("INC-7", step("Conversation opened")),
  ]);
  expect(lines.map(({ event: { incident }, more }) => [incident, more.length])).toEqual([
    ["INC-7", 0],
    ["INC-8", 1],
    ["INC-7", 0],
  ]);
});

test("messages and backdated notes are recognisable", () => {
  expect(
    textsOf([
      event("dana@example.com", "message.sent", "Who can help?"),
      event("dana@example.com", "message.sent", "Please join", { recipient: "bob@example.com" }),
      note("Alarm", { noted_at: "2026-11-20T14:00:00.000Z" }),
      note("Alarm", { noted_at: "then" }),
      { ...note("Alarm"), data: null as never },
    ]),
  ).toEqual([
    "says: Who can help?",
    "says to bob: Please join",
    "(backdated, written 2026-11-20T14:00:00.000Z) Alarm",
    "Alarm",
    "Alarm",
  ]);
});
