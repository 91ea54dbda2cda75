import { beforeAll, describe, expect, test } from "bun:test";
import { individual } from "../../drizzle/schema/index.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { type CliUser, cliUser, patient } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { patienceMilliseconds } from "./names.ts";

let { server, admin, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, admin, member, ids } = given);
});

let carol: CliUser;
beforeAll(async () => {
  carol = patient(await cliUser(server, "carol@example.com"));
  const kind = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
  const report = (title: string, more: object = {}) =>
    member.call("POST", "/incidents/", { title, ...kind, commander: "carol@example.com", ...more });
  await report("Second");
  const people = [
    ["Dana", "dana@example.com"],
    ["Dan", "dan@example.com"],
    ["Dan", "dan@other.example.com"],
    ["Bobby", "$(ls)@example.com"],
    ["Ann\u0007\tWalls", "ann@example.com"],
  ];
  const now = server.clock.now();
  await server.db.insert(individual).values(
    people.map(([name, email]) => ({
      name: name!,
      email: email!,
      listed: true,
      createdAt: now,
      updatedAt: now,
    })),
  );
});

/** The candidates, with the last word being typed. */
async function after(person: CliUser, ...words: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await person.svc("__complete", ...words);
  expect([code, stderr]).toEqual([0, ""]);
  return stdout
    .split("\n")
    .slice(1, -1)
    .map((line) => line.split("\t")[0]!)
    .sort();
}

describe("the server completes", () => {
  test("incidents by name, in the case that is typed, and by number", async () => {
    expect(await after(carol, "inc", "view", "INC-")).toEqual(["INC-1", "INC-2"]);
    expect(await after(carol, "incident", "view", "inc-2")).toEqual(["inc-2"]);
    expect(await after(carol, "inc", "close", "2")).toEqual(["2"]);
    expect(await after(carol, "inc", "note", "IN")).toEqual(["INC-1", "INC-2"]);
    expect(await after(carol, "inc", "note", "--incident=INC-1")).toEqual(["--incident=INC-1"]);
    expect(await after(carol, "inc", "link", "INC-1", "INC-2")).toEqual(["INC-2"]);
    expect((await carol.svc("__complete", "inc", "view", "INC-2")).stdout).toBe(
      "words\nINC-2\tSecond (Active)\n",
    );
  });

  test("people by the part before the @, by their address if several have it", async () => {
    expect(await after(carol, "inc", "add", "dan")).toEqual([
      "dan@example.com",
      "dan@other.example.com",
      "dana",
    ]);
    expect(await after(carol, "inc", "add", "INC-1", "dana", "ali")).toEqual(["alice"]);
    expect(await after(carol, "inc", "role", "give", "1", "dana", "s")).toEqual(["scribe"]);
    expect(await after(carol, "inc", "list", "--commander", "dana@")).toEqual(["dana@example.com"]);
    expect(await after(carol, "inc", "say", "--to=DANA")).toEqual(["--to=DANA"]);
    expect(await after(carol, "inc", "role", "give", "dana", "s")).toEqual(["scribe"]);
    expect(await after(carol, "inc", "role", "give", "INC-1", "dana", "s")).toEqual(["scribe"]);
    expect(await after(carol, "inc", "role", "give", "dana", "scribe", "")).toEqual([]);
  });

  test("tasks and documents of the incident, types and priorities", async () => {
    expect(await after(carol, "inc", "task", "done", "")).toEqual([]);
    const env = { ...carol.env, SVC_INCIDENT: "INC-1" };
    Object.assign(carol.env, env);
    expect(await after(carol, "inc", "task", "done", "")).toEqual(["1"]);
    expect(await after(carol, "inc", "task", "assign", "1", "dana")).toEqual(["dana"]);
    delete carol.env.SVC_INCIDENT;
    expect(await after(carol, "inc", "report", "X", "-t", "O")).toEqual(["Outage"]);
    expect(await after(carol, "inc", "list", "--priority=U")).toEqual(["--priority=Urgent"]);
    expect(await after(carol, "inc", "list", "--status", "cl")).toEqual(["closed"]);
  });

  test("notes, reports and messages that the user wrote and can correct", async () => {
    const note = (by: typeof member, description: string) =>
      by.call("POST", "/incidents/2/events/", { description });
    const mine = (await note(member, "Mine")).body.id;
    const withdrawn = (await note(member, "Withdrawn")).body.id;
    await note(admin, "Not mine");
    expect(
      (await member.call("POST", `/incidents/2/events/${withdrawn}/withdraw`, { version: 1 })).http,
    ).toBe(200);
    expect(await after(carol, "inc", "amend", "-i", "INC-2", "e")).toEqual([`e${mine}`]);
    expect(await after(carol, "inc", "amend", "-i", "INC-2", `e${mine}`, "")).toEqual([]);
    expect(await after(carol, "inc", "withdraw", "-i", "INC-2", "")).toEqual([`e${mine}`]);
  });

  test("services and applications: those of the catalog to add, those of the incident to remove", async () => {
    for (const [path, name] of [
      ["services", "Checkout"],
      ["services", "Card payments"],
      ["applications", "Cart"],
    ])
      expect((await admin.call("POST", `/${path}/`, { name })).http).toBe(201);
    expect(await after(carol, "inc", "affected", "add", "c")).toEqual(["card payments", "cart", "checkout"]);
    expect(await after(carol, "inc", "affected", "add", "2", "Cart", "Ch")).toEqual(["Checkout"]);
    expect((await carol.svc("inc", "affected", "add", "2", "Cart")).code).toBe(0);
    expect(await after(carol, "inc", "affected", "remove", "2", "C")).toEqual(["Cart"]);
    expect(await after(carol, "inc", "affected", "remove", "-i", "INC-1", "C")).toEqual([]);
  });

  test("names with spaces, which the shells escape", async () => {
    for (const name of ["Data Loss", "Data $(ls)"])
      expect((await admin.call("POST", "/incident_types/", { name })).http).toBe(201);
    expect(await after(carol, "inc", "list", "-t", "da")).toEqual(["data Loss"]);
  });

  test("nothing that a shell would not take as a word", async () => {
    expect(await after(carol, "inc", "add", "$")).toEqual([]);
    const { stdout } = await carol.svc("__complete", "inc", "add", "an");
    expect(stdout).toMatch(/^words\nann\tAnn[^\p{Cc}]*Walls\n$/u);
  });
});

describe("there is no candidate, and no message,", () => {
  const nothing = { code: 0, stdout: "words\n", stderr: "" };
  const completion = ["__complete", "inc", "view", "INC-"];

  test("without a sign-in, with an expired one, and with one that the server refuses", async () => {
    const person = carol.elsewhere();
    for (const token of ["", fakeToken({ seconds: -1 }), fakeToken(), "x"]) {
      person.env.SVC_TOKEN = token;
      expect(await person.svc(...completion)).toEqual(nothing);
    }
  });

  test("without a server, or with a wrong one", async () => {
    const person = carol.elsewhere();
    for (const url of ["http://127.0.0.1:1", "http://svc.invalid", "nonsense"]) {
      person.env.SVC_SERVER = url;
      expect(await person.svc(...completion)).toEqual(nothing);
    }
  });

  test("from a server that is slow, after the time that a user waits", async () => {
    const [late, asked] = [Promise.withResolvers<Response>(), Promise.withResolvers<void>()];
    using slow = Bun.serve({
      port: 0,
      fetch: () => {
        asked.resolve();
        return late.promise;
      },
    });
    const waited: number[] = [];
    const sleep = async (milliseconds: number) => {
      waited.push(milliseconds);
      await asked.promise;
    };
    const waiting = carol.elsewhere().with({ sleep });
    waiting.env.SVC_SERVER = slow.url.origin;
    expect(await waiting.svc(...completion)).toEqual(nothing);
    expect(waited).toEqual([patienceMilliseconds]);
    expect(patienceMilliseconds).toBeLessThan(300);
    late.resolve(new Response());
  });

  test("from a server that answers with nonsense", async () => {
    using wrong = Bun.serve({ port: 0, fetch: () => Response.json({ items: [{}, null] }) });
    using endless = Bun.serve({ port: 0, fetch: () => Response.json({ items: [], next_cursor: "x" }) });
    for (const { url } of [wrong, endless]) {
      carol.env.SVC_SERVER = url.origin;
      expect(await carol.svc(...completion)).toEqual(nothing);
    }
    carol.env.SVC_SERVER = server.url;
  });
});
