import { expect, test } from "bun:test";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

let { member, reported } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ member, reported } = given);
});

test.each([
  // As macOS writes the names of files.
  ["Cafe\u0301 closed", "café"],
  ["Müller's disk", "mu\u0308ller"],
  ["ＤＢ１ is down", "db1"],
  ["See https://pay.example.com/v1/charge?x=1", "https://pay.example.com/v1/charge?x=1"],
  ["See HTTP://pay.example.com/v2", "http://pay.example.com/v2"],
])("%p is found by %p", async (title, q) => {
  const { name } = await reported(title);
  for (const path of ["/incidents/", "/search"]) {
    const { body } = await member.call("GET", `${path}?q=${encodeURIComponent(q)}`);
    expect(JSON.stringify(body)).toContain(`"${name}`);
  }
});
