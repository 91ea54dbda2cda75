import { describe, expect, mock, test } from "bun:test";
import { eq } from "drizzle-orm";
import { document, event, session } from "../drizzle/schema/index.ts";
import { PageReader } from "../tests/support/browser/reader.ts";
import { cliUser } from "../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../tests/support/http/incident_server.ts";
import { until } from "../tests/support/process/until.ts";
import { download } from "./download.ts";
import type { Site, Visit } from "./site.tsx";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { pluginConversation: "channel", pluginDocument: "markdown" },
);

test("an incident is exported as in the terminal, in each format", async () => {
  const { server, reported, member } = given;
  const [{ id, name }, other] = [await reported("Broken <b>"), await reported("Other")];
  const carol = await cliUser(server, "carol@example.com");
  const browser = await PageReader.signIn(server, "carol@example.com");
  const { incidentTypeId: incident_type_id, incidentPriorityId: incident_priority_id } = given.ids;
  const kind = { incident_type_id, incident_priority_id, visibility: "Restricted" };
  const { body: hidden } = await given.admin.call("POST", "/incidents/", { title: "Hidden", ...kind });
  for (const incident of [other.name, hidden.name])
    await given.admin.call("POST", `/incidents/${id}/links/`, { incident, kind: "related" });
  await member.call("POST", `/incidents/${id}/participants/`, { email: "alice@example.com" });
  await member.call("POST", `/incidents/${id}/reports/`, { conditions: "Bad", actions: "*All*", needs: "" });
  await carol.svc("inc", "task", "add", name, "| Call | them");
  await carol.svc("inc", "doc", "new", name, "Board", "--link", "https://example.com/d/1");
  await carol.svc("inc", "say", "-i", name, "Who can help?");
  await carol.svc("inc", "say", "-i", name, "--to", "alice", "Only you");
  const noted = await member.call("POST", `/incidents/${id}/events/`, { description: "Wrong" });
  await member.call("POST", `/incidents/${id}/events/${noted.body.id}/withdraw`, { version: 1 });
  // They write to the timeline, too.
  await until("the steps", async () => {
    const { body } = await member.call("GET", `/incidents/${id}`);
    // A failed attempt is repeated later than this test.
    const isOver = ({ state, attempts }: { state: string; attempts: number }) =>
      state === "Pending" ? attempts > 0 : state !== "Running";
    return body.steps.every(isOver);
  });
  // More than are read at once.
  await server.db.insert(event).values(
    Array.from({ length: 450 }, (_, at) => ({
      ...{ incidentId: id, at: new Date(server.clock.now().getTime() + at), actor: "system", source: "core" },
      ...{ kind: "step.done", description: `Line ${at}`, data: { camelCase: at } },
    })),
  );
  for (const format of ["md", "html", "json"]) {
    const file = await browser.open(`/app/incidents/${id}/export/${format}`);
    const { stdout } = await carol.svc("inc", "export", name, "--format", format);
    expect(file.html).toBe(stdout);
    for (const part of ["Who can help?", "Withdrawn by carol", "Line 449", "Other"])
      expect(file.html).toContain(format === "json" ? part.replace(/^Withdrawn.*/, "withdrawn_at") : part);
    for (const secret of ["Only you", "Hidden", hidden.name]) expect(file.html).not.toContain(secret);
    expect(file.headers.get("content-disposition")).toBe(`attachment; filename*=UTF-8''${name}.${format}`);
    expect(file.headers.get("x-content-type-options")).toBe("nosniff");
    expect(file.headers.get("cache-control")).toBe("no-store");
  }
  expect((await browser.open(`/app/incidents/${id}/export/xml`)).status).toBe(404);
  expect((await browser.open(`/app/incidents/${hidden.id}/export/md`)).status).toBe(404);
});

test("an export names a text whose plugin is not in use", async () => {
  const { server, reported } = given;
  const { id, name } = await reported("Elsewhere");
  const carol = await cliUser(server, "carol@example.com");
  const browser = await PageReader.signIn(server, "carol@example.com");
  await carol.svc("inc", "doc", "new", name, "Minutes");
  const elsewhere = { pluginSlug: "wiki", resourceId: "W1" };
  await server.db.update(document).set(elsewhere).where(eq(document.name, "Minutes"));
  for (const format of ["md", "html", "json"]) {
    const file = await browser.open(`/app/incidents/${id}/export/${format}`);
    const before = format === "json" ? '"content_error": "' : "The text could not be read: ";
    expect(file.html).toContain(`${before}The plugin that stores the text of this document is not enabled`);
  }
});

describe("a download", () => {
  const actor = { user: "carol@example.com", admin: false };
  const begin = (method: string, pieces: AsyncIterator<string>, admin = false) => {
    const timeouts: number[] = [];
    const visit = {
      request: new Request("http://svc.test/", { method }),
      server: { timeout: (_: Request, seconds: number) => timeouts.push(seconds) },
      visitor: { actor: { ...actor, admin } },
    };
    const site = { visitors: { find: async () => ({ actor }) } };
    const file = { name: "x.md", type: "text/markdown", pieces };
    return { timeouts, response: download(site as unknown as Site, visit as unknown as Visit, file) };
  };

  test("that nobody reads is closed, and waits as long as it needs for its next piece", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const pieces = (async function* () {
      yield "x".repeat(100_000);
      await promise;
      yield "end";
    })();
    const { timeouts, response } = begin("GET", pieces);
    const reader = response.body!.getReader();
    await reader.read();
    expect(timeouts.slice(0, 2)).toEqual([0, 240]);
    const rest = reader.read();
    await until("the next piece", async () => timeouts.length === 3);
    expect(timeouts[2]).toBe(0);
    resolve();
    await rest;
    expect(timeouts).toEqual([0, 240, 0, 240]);
  });

  test("fails when its reader is no longer an admin", async () => {
    const { response } = begin(
      "GET",
      (async function* () {
        for (let left = 9; left > 0; left -= 1) yield "x".repeat(100_000);
      })(),
      true,
    );
    const reader = response.body!.getReader();
    const all = async () => {
      while (!(await reader.read()).done);
    };
    await expect(all()).rejects.toThrow("The sign-in has ended");
  });

  test("is not begun by HEAD", async () => {
    const next = mock();
    const { timeouts, response } = begin("HEAD", { next });
    expect(response.headers.get("content-disposition")).toBe("attachment; filename*=UTF-8''x.md");
    expect([response.body, timeouts, next.mock.calls]).toEqual([null, [], []]);
  });
});

test("a download fails when its reader is signed out meanwhile", async () => {
  const { server, reported } = given;
  const { id } = await reported("Long");
  const long = "x".repeat(20_000);
  await server.db.insert(event).values(
    Array.from({ length: 5000 }, () => ({
      ...{ incidentId: id, at: server.clock.now(), actor: "system", source: "core", kind: "step.done" },
      ...{ description: long, data: {} },
    })),
  );
  const browser = await PageReader.signIn(server, "carol@example.com");
  const response = await browser.browser.request(`${server.url}/app/incidents/${id}/export/md`);
  const reader = response.body!.getReader();
  await reader.read();
  await server.db.update(session).set({ userName: null }).where(eq(session.userName, "carol@example.com"));
  const rest = async () => {
    while (!(await reader.read()).done);
  };
  await expect(rest()).rejects.toThrow();
});
