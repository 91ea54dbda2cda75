import { expect, test } from "bun:test";
import type { IncidentFacts } from "../../plugin/facts.ts";
import { welcomeMessage } from "./conversation.ts";

const facts: IncidentFacts = {
  id: 1,
  name: "INC-1",
  title: "Disk full",
  description: "",
  status: "Active",
  visibility: "Open",
  type: { id: 1, name: "Data loss" },
  priority: { id: 1, name: "High", rank: 3 },
  terms: [],
  reportedAt: "2026-11-20T12:00:00.000Z",
  weblink: "https://svc.example.com/incidents/1",
};

test("the welcome shows the incident, its commander and a link", () => {
  const rita = { id: 1, name: "Rita", email: "rita@example.com" };
  const olga = { id: 2, name: "Olga", email: "olga@example.com" };
  expect(welcomeMessage({ ...facts, reporter: rita, commander: olga })).toEqual({
    subject: "INC-1: Disk full",
    text: "Type: Data loss, priority: High\n\nReporter: Rita\n\nCommander: Olga\n\nhttps://svc.example.com/incidents/1",
  });
  expect(welcomeMessage(facts).text).toContain("No commander yet");
});

test("a name is not interpreted as Markdown", () => {
  const name = "[Eve](https://evil.example) *`<b>|~_\\";
  const { text } = welcomeMessage({ ...facts, commander: { id: 1, name, email: "eve@example.com" } });
  expect(text).toContain("Commander: \\[Eve\\](https://evil.example) \\*\\`\\<b\\>\\|\\~\\_\\\\\n");
});
