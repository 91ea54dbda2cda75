import { beforeAll, describe, expect, test } from "bun:test";
import { incidentPriorities, incidentTypes } from "../../core/populate/defaults.ts";
import { useDatabase } from "../../tests/support/database/database.ts";
import { type Example, readLoadedExample } from "../../tests/support/domain/example.ts";
import { trialUsers } from "../idp/users.ts";
import { loadExample } from "./load.ts";

const now = new Date("2026-11-20T12:00:00Z");

const client = useDatabase(2);
let example: Example;
beforeAll(async () => {
  await loadExample(client.db, now);
  example = await readLoadedExample(client.db);
});

describe("the example contains", () => {
  test("enough of everything", () => {
    const least = { incidents: 40, individuals: 25, teams: 6, services: 6, terms: 40, applications: 12 };
    for (const [key, count] of Object.entries(least)) {
      expect([key, example[key as "incidents"].length >= count]).toEqual([key, true]);
    }
    const days =
      (now.getTime() - Math.min(...example.incidents.map(({ reportedAt }) => +reportedAt))) / 86_400_000;
    expect(days).toBeGreaterThan(80);
    expect(days).toBeLessThan(91);
    expect(now.getTime() - Math.max(...example.incidents.map(({ reportedAt }) => +reportedAt))).toBeLessThan(
      6 * 3_600_000,
    );
  });

  test("every state, type, priority and visibility", () => {
    const seen = (key: "status" | "type" | "priority" | "visibility") =>
      [...new Set(example.incidents.map((one) => one[key]))].sort();
    expect(seen("status")).toEqual(["Active", "Closed", "Stable"]);
    expect(seen("visibility")).toEqual(["Open", "Restricted"]);
    expect(seen("type")).toEqual(incidentTypes.map(({ name }) => name).sort());
    expect(seen("priority")).toEqual(incidentPriorities.map(({ name }) => name).sort());
    expect(new Set(example.tasks.map(({ status }) => status)).size).toBe(3);
    expect(example.tasks.some(({ deletedAt }) => deletedAt !== null)).toBe(true);
    expect(example.events.some(({ kind }) => kind === "incident.reopened")).toBe(true);
    expect(example.participants.some(({ leftAt }) => leftAt !== null)).toBe(true);
  });

  test("someone with several roles at a time, and someone who returned", () => {
    const open = example.roles.filter(({ renouncedAt }) => renouncedAt === null);
    expect(new Set(open.map(({ participantId }) => participantId)).size).toBeLessThan(open.length);
    const pairs = example.participants.map((one) => `${one.incidentId} ${one.individualId}`);
    expect(new Set(pairs).size).toBeLessThan(pairs.length);
  });

  test("an active incident and an assigned task for each trial user", () => {
    const active = new Set(example.incidents.filter(({ status }) => status === "Active").map(({ id }) => id));
    for (const { email } of trialUsers) {
      const person = example.individuals.find((one) => one.email === email);
      const theirs = example.participants.filter(
        (one) => one.individualId === person?.id && one.leftAt === null && active.has(one.incidentId),
      );
      const tasks = example.tasks.filter(
        (one) => one.status === "Open" && one.assigneeIds.includes(person?.id ?? 0),
      );
      expect([email, theirs.length > 0, tasks.length > 0]).toEqual([email, true, true]);
    }
  });

  test("a Restricted incident with bob, and one without", () => {
    const bob = example.individuals.find(({ email }) => email === "bob@example.com")?.id;
    const restricted = example.incidents.filter(({ visibility }) => visibility === "Restricted");
    const his = restricted.filter(({ id }) =>
      example.participants.some(
        (one) => one.incidentId === id && one.individualId === bob && one.leftAt === null,
      ),
    );
    expect(his.length).toBeGreaterThan(0);
    expect(his.length).toBeLessThan(restricted.length);
  });
});

test("a Restricted incident's content appears in no document, message or report of others", () => {
  const restricted = example.incidents.filter(({ visibility }) => visibility === "Restricted");
  const hidden = new Set(restricted.map(({ id }) => id));
  const openConversations = new Set(
    example.conversations.filter(({ incidentId }) => !hidden.has(incidentId)).map(({ id }) => id),
  );
  const open = [
    ...example.documents
      .filter(({ incidentId }) => incidentId === null || !hidden.has(incidentId))
      .map(({ name, description, content }) => `${name}\n${description}\n${content}`),
    ...example.messages.filter((one) => openConversations.has(one.conversationId)).map(({ text }) => text),
    ...example.reports
      .filter(({ incidentId }) => !hidden.has(incidentId))
      .map(({ conditions, actions }) => `${conditions} ${actions}`),
  ].join("\n");
  const secrets = restricted.flatMap(({ id, title, description }) => [
    title,
    description,
    ...example.reports.filter(({ incidentId }) => incidentId === id).map(({ conditions }) => conditions),
  ]);
  const told = secrets.filter((secret) => secret !== "Stable." && open.includes(secret));
  expect([secrets.length > 20, told]).toEqual([true, []]);
  for (const { name } of restricted.map(({ id }) => ({ name: `INC-${id}` }))) {
    expect(open).not.toMatch(new RegExp(`${name}\\b`));
  }
});

test("the terms occur: each nested one, and most of the others", () => {
  const found = new Set(example.documents.flatMap(({ termIds }) => termIds));
  const words = example.terms.filter(({ id }) => found.has(id)).map(({ text }) => text);
  for (const word of ["data loss", "credential leak", "pii export", "leak", "export"])
    expect(words).toContain(word);
  expect(words.length).toBeGreaterThan(40);
  const texts = example.incidents.map(({ description }) => description.toLowerCase()).join("\n");
  expect(example.terms.filter(({ text }) => texts.includes(text.toLowerCase())).length).toBeGreaterThan(25);
});
