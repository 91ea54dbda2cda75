import { beforeAll, describe, expect, test } from "bun:test";
import { recordEvent } from "../../core/incident/timeline/event.ts";
import { conversation, conversationMessage } from "../../drizzle/schema/index.ts";
import {
  type CliUser,
  cliUser,
  fetchAt,
  patient,
  wideTerminal,
} from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import type { Io } from "../io.ts";

let { server, admin, member, reported } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, admin, member, reported } = given);
});

/** Takes part in nothing at first. */
let carol: CliUser;
/** Commands INC-1. */
let alice: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
  alice = await cliUser(server, "alice@example.com");
});

describe("svc incident list", () => {
  test("lists open incidents in columns, and with RFC 3339 for other programs", async () => {
    const { body } = await member.call("GET", "/incidents/1");
    const { code, stdout } = await alice.svc("incident", "list", "-S", "disk");
    expect(code).toBe(0);
    const [header, line] = stdout.split("\n");
    expect(header).toMatch(/^NAME {2,}STATUS {2,}PRIORITY {2,}TITLE {2,}COMMANDER {2,}REPORTED$/);
    expect(line).toMatch(/^INC-1 +Active +Urgent +Disk full /);
    expect(line).toEndWith(body.reported_at);
  });

  test("fits a terminal of 40 columns, whatever a title contains", async () => {
    const titles = [
      "データセンターの電源が落ちました。至急対応をお願いします",
      "הקופה לא עובדת מאז הבוקר ואף אחד לא יודע למה",
      "\u{1f469}\u200d\u{1f692} Feuer im Serverraum, bitte alle raus",
    ];
    for (const title of titles) await reported(title);
    const stdout = wideTerminal(40);
    expect((await carol.with({ stdout }).svc("incident", "list")).code).toBe(0);
    const lines = stdout.text.trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(3);
    for (const line of lines) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40);
    expect(lines[0]).toContain("TITLE");
    const wide = wideTerminal(200);
    await carol.with({ stdout: wide }).svc("incident", "list");
    for (const title of titles.slice(0, 2)) expect(wide.text).toContain(title);
    const ends = wide.text
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => Bun.stringWidth(line.replace(/\S+$/, "")));
    expect(new Set(ends).size).toBe(1);
  });

  test("leaves out the status where the title would not fit", async () => {
    const item = (await member.call("GET", "/incidents/INC-1")).body;
    const fetch = async () => Response.json({ items: [item], next_cursor: null });
    const shown = async (columns: number) => {
      const stdout = wideTerminal(columns);
      await carol.with({ fetch, stdout }).svc("incident", "list");
      return Bun.stripANSI(stdout.text);
    };
    expect(await shown(30)).toMatch(
      /^NAME {3}STATUS {2}TITLE +AGE\nINC-1 {2}Active {2}Disk full +\d+[smhd]\n$/,
    );
    expect(await shown(20)).toMatch(/^NAME {3}TITLE +AGE\nINC-1 {2}Disk fu… +\d+[smhd]\n$/);
  });

  test("never writes a title raw", async () => {
    // The API refuses control characters; a compromised server would not.
    const title = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe";
    const fetch = async () => {
      const { body } = await member.call("GET", "/incidents/");
      return Response.json({ ...body, items: [{ ...body.items[0], title }], next_cursor: null });
    };
    const { stdout } = await carol.with({ fetch }).svc("incident", "list", "-s", "active");
    expect(stdout).toContain("\ufffd]0;owned\ufffd");
    expect(stdout).not.toMatch(/[\x1b\x07\u202e]/);
  });

  test("filters", async () => {
    const names = async (...args: string[]) => {
      const { code, stdout, stderr } = await alice.svc("inc", "list", "--json", ...args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
      return JSON.parse(stdout).items.map(({ name }: { name: string }) => name);
    };
    expect(await names("--commander", "alice", "-s", "active", "-S", "disk")).toEqual(["INC-1"]);
    expect(await names("-s", "closed")).toEqual([]);
    expect(await names("-t", "outage", "-p", "URGENT", "-L", "1")).toHaveLength(1);
    expect(await names("--mine")).toContain("INC-1");
    expect(await names("--since", "1h", "-L", "200")).toContain("INC-1");
    const other = await cliUser(server, "heidi@example.com");
    expect(JSON.parse((await other.svc("inc", "list", "--mine", "--json")).stdout)).toEqual({ items: [] });
    expect(await other.svc("inc", "list", "--mine")).toEqual({
      code: 0,
      stdout: "",
      stderr: "No incidents found.\n",
    });
  });

  test.each([
    [["-s", "Broken"], "--status must be one of active, stable, closed, open, all"],
    [["-t", "Outrage"], '"Outrage" is not an incident type: did you mean Outage?'],
    [["-p", "Low"], '"Low" is not an incident priority: it is one of Urgent'],
    [["-L", "0"], "--limit must be 1 to 1000"],
    [["--since", "soon"], '--since: "soon" is not a time such as'],
    [["--since", "2026-02-30"], '--since: "2026-02-30" is not a time such as'],
  ])("refuses %p", async (args, message) => {
    const { code, stderr } = await carol.svc("incident", "list", ...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test("suggests only a limit that it accepts", async () => {
    const { items } = (await member.call("GET", "/incidents/?limit=1")).body;
    let pages = 0;
    const fetch = async (url: string) => {
      const limit = Number(new URL(url).searchParams.get("limit"));
      pages += 1;
      return Response.json({ items: Array(limit).fill(items[0]), next_cursor: String(pages) });
    };
    const hint = async (limit: string) =>
      (await carol.with({ fetch }).svc("inc", "list", "-L", limit)).stderr;
    expect(await hint("30")).toBe("There are more: --limit 60\n");
    expect(await hint("600")).toBe("There are more: --limit 1000\n");
    expect(await hint("1000")).toBe("There are more: add a filter, such as --since\n");
  });

  test("refuses a commander whom nobody knows, with a similar name", async () => {
    const { code, stderr } = await carol.svc("incident", "list", "--commander", "alcie");
    expect([code, stderr]).toEqual([
      1,
      'svc: nobody is called "alcie". Did you mean alice@example.com? Name somebody new by their e-mail address\n',
    ]);
  });
});

test("a word says that an incident is Restricted: when it is reported, in lists, views and exports, and before it is written to", async () => {
  const created = await admin.call("POST", "/incident_types/", {
    name: "Vulnerability",
    visibility: "Restricted",
  });
  expect(created.http).toBe(201);
  const flags = ["-t", "Vulnerability", "-p", "Urgent", "--commander", "me"];
  const { stderr, stdout } = await alice.svc("inc", "report", "Leak", ...flags);
  const name = stdout.trim();
  expect(stderr).toContain(`${name} is Restricted: only its participants and admins can see it\n`);
  expect((await alice.svc("inc", "report", "Open", "-p", "Urgent", "-t", "Outage")).stderr).not.toContain(
    "Restricted",
  );
  for (const columns of [80, 40, 30]) {
    const terminal = wideTerminal(columns);
    await alice.with({ stdout: terminal }).svc("inc", "list");
    expect(Bun.stripANSI(terminal.text)).toMatch(new RegExp(`^${name} .*\\[Restric`, "m"));
  }
  expect((await alice.svc("inc", "list")).stdout).toMatch(
    new RegExp(`^${name} .*\\[Restricted\\] Leak`, "m"),
  );
  expect((await alice.svc("inc", "status")).stdout).toMatch(new RegExp(`${name} .*\\[Restricted\\] Leak`));
  expect((await alice.svc("inc", "view", name)).stdout).toContain("Restricted to its participants");
  expect((await alice.svc("inc", "note", name, "Seen")).stderr).toBe(`${name}: [Restricted] Leak\n`);
  expect((await alice.svc("inc", "use", name)).stderr).toBe(`${name}: [Restricted] Leak\n`);
  expect((await alice.svc("inc", "current")).stdout).toBe(`${name}  Active  [Restricted] Leak\n`);
  await alice.svc("inc", "use", "--none");
  const labels: string[] = [];
  const choose: Io["choose"] = async (_, choices) => {
    labels.push(...choices.map(({ label }) => label));
    return choices[0]!.value;
  };
  await alice.with({ canAsk: () => true, choose }).svc("inc", "view");
  expect(labels).toContain(`${name}  [Restricted] Leak`);
  const { stdout: candidates } = await patient(alice).svc("__complete", "inc", "view", name);
  expect(candidates).toContain("[Restricted] Leak (Active)");
  expect((await alice.svc("inc", "export", name)).stdout).toContain("Restricted to its participants");
});

describe("svc incident messages", () => {
  test("reads the conversation, oldest first, and says that there are more", async () => {
    const { id, name } = await reported("Talk");
    expect(await carol.svc("inc", "messages", name)).toEqual({
      code: 0,
      stdout: "",
      stderr: "No messages found.\n",
    });
    const channel = { incidentId: id, pluginSlug: "channel", createdAt: server.clock.now() };
    const [opened] = await server.db.insert(conversation).values(channel).returning();
    const conversationId = opened!.id;
    const at = server.clock.now();
    const text = "**Disk full**\n\\[eu\\_1\\]\x1b[2J\u202egnp";
    await server.db.insert(conversationMessage).values({ conversationId, at, text });
    expect((await alice.svc("inc", "join", name)).code).toBe(0);
    for (const words of ["One\ntwo", "**Three** a\\_b"]) {
      server.clock.advance(1);
      expect((await carol.svc("inc", "say", "-i", name, words)).code).toBe(0);
    }
    server.clock.advance(1);
    expect((await carol.svc("inc", "say", "-i", name, "--to", "alice", "Only you")).code).toBe(0);
    const { stdout } = await alice.svc("inc", "messages", name);
    expect(stdout.replaceAll(/\S+Z/g, "TIME").replaceAll(/\(e\d+\)/g, "(ENTRY)")).toBe(
      [
        "svc, TIME\n  Disk full\n  [eu_1]\ufffd[2J\ufffdgnp\n",
        "carol, TIME (ENTRY)\n  One\n  two\n",
        "carol, TIME (ENTRY)\n  **Three** a\\_b\n",
        "carol to alice, TIME\n  Only you\n",
      ].join("\n"),
    );
    const bob = await cliUser(server, "bob@example.com");
    const some = await bob.svc("inc", "messages", name, "-L", "2", "--json");
    expect(some).toMatchObject({ code: 0, stderr: "There are more: --limit 4\n" });
    expect(JSON.parse(some.stdout).items.map(({ text }: { text: string }) => text)).toEqual([
      "One\ntwo",
      "**Three** a\\_b",
    ]);
    expect((await bob.svc("inc", "messages", name, "-L", "0")).code).toBe(2);
    for (const columns of [80, 40]) {
      const terminal = wideTerminal(columns);
      await alice.with({ stdout: terminal }).svc("inc", "messages", name);
      const widths = Bun.stripANSI(terminal.text)
        .split("\n")
        .map((line) => Bun.stringWidth(line));
      expect(Math.max(...widths)).toBeLessThanOrEqual(columns);
    }
  });
});

describe("svc incident view", () => {
  test("shows the roles, the last report, the open tasks and the last events", async () => {
    const { code, stdout } = await carol.svc("incident", "view", "INC-1");
    expect(code).toBe(0);
    for (const text of [
      /^INC-1 {2}Disk full\nActive · Urgent · Outage · Visible to everyone\nReported \S+Z by bob\n\nNo space left\n/,
      /\nRoles\n {2}commander {2}alice@example.com\n/,
      /\nLast report \(\w+, \S+Z\)\n {2}Conditions: Full\n {2}Actions: {4}Freeing\n {2}Needs: {6}Disks\n/,
      /\nOpen tasks \(1\)\n {2}1 {2}Free some {2}\(bob, /,
      /\nTimeline\n/,
    ])
      expect(stdout).toMatch(text);
  });

  test("breaks long lines at spaces on a terminal, under their beginning, and lists the commander first", async () => {
    const { id, name } = await reported("Slow");
    const words = "Orders fail since the release of 11:40 ".repeat(3);
    await member.call("POST", `/incidents/${id}/reports`, { conditions: words, actions: "", needs: "" });
    await member.call("POST", `/incidents/${id}/events`, { description: `${words}\n${words}` });
    for (const columns of [80, 40]) {
      const stdout = wideTerminal(columns);
      expect((await carol.with({ stdout }).svc("inc", "view", name)).code).toBe(0);
      const lines = Bun.stripANSI(stdout.text).split("\n");
      expect(Math.max(...lines.map((line) => Bun.stringWidth(line)))).toBeLessThanOrEqual(columns);
      const at = lines.findIndex((line) => line.startsWith("  Conditions: Orders fail"));
      expect(lines[at + 1]).toMatch(/^ {14}\S/);
      expect(lines[lines.indexOf("Roles") + 1]).toStartWith("  commander ");
    }
  });

  test("shows the last ten events, oldest first, and all with --timeline", async () => {
    const { id, name } = await reported("Long");
    for (let at = 1; at <= 60; at++) {
      await member.call("POST", `/incidents/${id}/events`, { description: `Note ${at}` });
      server.clock.advance(1);
    }
    const notes = async (...args: string[]) =>
      (await carol.svc("inc", "view", name, ...args)).stdout.match(/Note \d+/g)?.map(String);
    expect(await notes()).toEqual(Array.from({ length: 10 }, (_, at) => `Note ${51 + at}`));
    expect(await notes("--timeline")).toEqual(Array.from({ length: 60 }, (_, at) => `Note ${1 + at}`));
    // Also one that was just written on what happened before all others.
    for (let at = 61; at <= 110; at++)
      await member.call("POST", `/incidents/${id}/events`, { description: `Note ${at}` });
    expect((await carol.svc("inc", "note", name, "Note 111", "--at", "3h")).code).toBe(0);
    expect(await notes()).toEqual(["Note 111", ...Array.from({ length: 10 }, (_, at) => `Note ${101 + at}`)]);
    const narrow = wideTerminal(40);
    await carol.with({ stdout: narrow }).svc("inc", "view", name);
    expect(Bun.stripANSI(narrow.text).replaceAll(/\s+/g, " ")).toContain(
      `Not all of it: svc incident view ${name} --timeline `,
    );
  });

  test("shows what people said whole and first, whatever else happened since", async () => {
    const { id, name } = await reported("Loud");
    const path = `/incidents/${id}`;
    const at = new Date(server.clock.now().getTime() - 3_600_000).toISOString();
    await member.call("POST", `${path}/events/`, { description: "Alarm fired\nfor api-3", at });
    const report = { conditions: "Down\nin the north", actions: "Rolling back", needs: "" };
    await member.call("POST", `${path}/reports/`, report);
    await member.call("POST", `${path}/reports/`, { ...report, conditions: "Up" });
    const channel = { incidentId: id, pluginSlug: "channel", createdAt: server.clock.now() };
    await server.db.insert(conversation).values(channel);
    expect((await alice.svc("inc", "join", name)).code).toBe(0);
    expect((await alice.svc("inc", "say", "-i", name, "Who can help?")).code).toBe(0);
    expect((await carol.svc("inc", "join", name)).code).toBe(0);
    expect((await alice.svc("inc", "say", "-i", name, "--to", "carol", "Only you")).code).toBe(0);
    const data = { step: "joined" };
    for (let count = 0; count < 120; count++) {
      const kind = count % 2 === 0 ? "step.done" : "participant.left";
      const actor = count % 2 === 0 ? "system" : "erin@example.com";
      const at = server.clock.now();
      await recordEvent(server.db, { incidentId: id, at, actor, kind, description: `Moved ${count}`, data });
    }
    const shown = async (user: CliUser, ...args: string[]) => {
      const { stdout } = await user.svc("inc", "view", name, ...args);
      return stdout.slice(stdout.indexOf("\nTimeline\n"));
    };
    const view = await shown(carol);
    for (const text of [
      /\(backdated, written \S+Z\) Alarm fired\n {6}for api-3 \(e\d+\)\n/,
      /Status report:\n {6}Conditions: Down\n {6}in the north\n {6}Actions: Rolling back \(e\d+\)\n/,
      /Status report \(above\)\n/,
      / {2}says: Who can help\? \(e\d+\)\n/,
      / {2}says to carol: Only you\n/,
      new RegExp(`Not all of it: svc incident view ${name} --timeline\n`),
      /Moved 117; Moved 118\n.*Moved 119\n$/,
    ])
      expect(view).toMatch(text);
    expect(view.match(/Moved/g)!.length).toBeLessThan(25);
    expect(view.indexOf("Alarm")).toBeLessThan(view.indexOf("Status report"));
    const whole = await shown(carol, "--timeline");
    expect(whole).not.toContain("Not all of it");
    expect(whole.match(/Moved \d+$/gm)).toHaveLength(120);
    const other = await cliUser(server, "grace@example.com");
    expect(await shown(other)).toContain("Who can help?");
    expect(await shown(other, "--timeline")).not.toContain("Only you");
    const json = JSON.parse((await other.svc("inc", "view", name, "--json")).stdout);
    expect(json.events.length).toBeGreaterThan(124);
    expect(JSON.stringify(json)).not.toContain("Only you");
    expect(json.messages.map(({ text }: { text: string }) => text)).toContain("Who can help?");
  });

  test("watch --since reads as many pages as it needs, whatever is backdated", async () => {
    const { id, name } = await reported("Busy");
    const note = (description: string, at?: Date) =>
      member.call("POST", `/incidents/${id}/events`, { description, at: at?.toISOString() });
    const before = (seconds: number) => new Date(server.clock.now().getTime() - seconds * 1000);
    for (let at = 1; at <= 110; at++) await note(`Early ${at}`);
    server.clock.advance(300);
    for (let at = 1; at <= 110; at++) await note(`Late ${at}`, at === 105 ? before(86_400) : undefined);
    expect((await carol.svc("inc", "close", name)).code).toBe(0);
    let pages = 0;
    const counting = carol.with({
      fetch: async (url, init) => {
        if (url.includes("sort=-id")) pages += 1;
        return fetchAt(server, url, init);
      },
    });
    const ran = await counting.svc("inc", "watch", name, "--since", "2m", "--until", "closed");
    expect([ran.code, ran.stdout.match(/Late \d+/g)?.length, ran.stdout.includes("Early"), pages]).toEqual([
      0,
      109,
      false,
      2,
    ]);
    pages = 0;
    const all = await counting.svc("inc", "watch", name, "--since", "2d", "--until", "closed");
    expect([all.stdout.match(/(?:Late|Early) \d+/g)?.length, pages]).toEqual([220, 3]);
  });
});

describe("answers of another kind", () => {
  const answering = (answers: Record<string, unknown>) =>
    carol.with({
      fetch: async (url, init) => {
        const { pathname } = new URL(url);
        const answer = answers[pathname];
        if (answer instanceof Response) return answer;
        return answer === undefined ? fetch(url, init) : Response.json(answer);
      },
    });

  test("have an error that says so", async () => {
    const page = new Response("<html>Bad Gateway</html>", { status: 502 });
    expect((await answering({ "/incidents/": page }).svc("inc", "list")).stderr).toBe(
      `svc: ${server.url} is not available (HTTP 502)\n`,
    );
    for (const [command, path] of [
      ["list", "/incidents/"],
      ["view", "/incidents/INC-1"],
    ] as const) {
      const words = command === "view" ? [command, "INC-1"] : [command];
      const { code, stderr } = await answering({ [path]: { hello: 1 } }).svc("inc", ...words);
      expect([code, stderr]).toEqual([1, expect.stringContaining("; is it an svc server?\n")]);
    }
  });

  test("such as a page that repeats itself end a list", async () => {
    const { body } = await member.call("GET", "/incidents/?limit=1");
    const { stdout } = await answering({ "/incidents/": { ...body, next_cursor: "same" } }).svc(
      "inc",
      "list",
      "--json",
    );
    expect(JSON.parse(stdout).items).toHaveLength(2);
  });

  test("such as those of an older server leave out what it does not know", async () => {
    const unknown = () => Response.json({ code: "not_found", detail: "Not found" }, { status: 404 });
    const older = answering({ "/incidents/1/affected/": unknown(), "/incidents/1/links/": unknown() });
    expect(await older.svc("inc", "view", "1")).toMatchObject({ code: 0, stderr: "" });
    const again = answering({ "/incidents/1/affected/": unknown(), "/incidents/1/links/": unknown() });
    // No document plugin is enabled here.
    const warning = /^svc: warning: the text of document 1 could not be read: .*\n$/;
    expect(await again.svc("inc", "export", "1")).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(warning),
    });
    const { commander: _, ...incident } = (await member.call("GET", "/incidents/1")).body;
    const items = { items: [incident], next_cursor: null };
    expect((await answering({ "/incidents/": items }).svc("inc", "list")).code).toBe(0);
  });
});

test.each([
  ["resolve", "svc incident close -r TEXT"],
  ["create", "svc incident report TITLE"],
  ["ack", "svc incident join"],
])("%s, which people know from other programs, names our command", async (word, instead) => {
  const { code, stderr } = await carol.svc("incident", word);
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`unknown command: ${word}. Use instead: ${instead}\n`),
  ]);
});

test("a hidden incident is one that does not exist, however it is named, searched for or completed", async () => {
  const { name, id } = await reported("Zebrafish tank leaks", { visibility: "Restricted" });
  const number = Number(name.split("-")[1]);
  const [known, unknown] = [name, `INC-${number + 70}`];
  const erin = await cliUser(server, "erin@example.com");
  const ran = async (incident: string, ...args: string[]) => {
    const words = args.map((word) => word.replace("NAME", incident));
    const answer = await erin.svc("incident", ...words);
    // The similar one that it suggests may be another.
    return JSON.stringify(answer)
      .replaceAll(incident, "NAME")
      .replace(/ Did you mean [^?]*\?/, "");
  };
  for (const args of [
    ["view", "NAME"],
    ["view", `${server.url}/incidents/NAME`],
    ["export", "NAME"],
    ["messages", "NAME"],
    ["use", "NAME"],
    ["join", "NAME"],
    ["add", "NAME", "erin"],
    ["note", "NAME", "Hello"],
    ["close", "NAME"],
    ["link", "INC-1", "NAME"],
    ["watch", "NAME", "--until", "closed"],
  ]) {
    const seen = await ran(known, ...args);
    expect(seen).toBe(await ran(unknown, ...args));
    expect(seen).toContain("there is no incident NAME that you may see");
  }
  erin.env.SVC_INCIDENT = name;
  const chosen = await erin.svc("incident", "view");
  expect(chosen.stderr).toStartWith(`svc: SVC_INCIDENT: there is no incident ${name} that you may see`);
  delete erin.env.SVC_INCIDENT;
  const everything = await Promise.all(
    [
      ["view", "Zebrafish"],
      ["view", `${name}0`],
      ["view", String(id)],
      ["list", "-s", "all"],
      ["list", "-s", "all", "-S", "Zebrafish"],
      ["list", "--commander", "carol@example.com"],
    ].map((args) => erin.svc("incident", ...args)),
  );
  expect(JSON.stringify(everything)).not.toContain("Zebrafish tank");
  for (const word of ["", "INC-", name, "z"])
    expect((await patient(erin).svc("__complete", "incident", "view", word)).stdout).not.toMatch(
      new RegExp(`Zebrafish|^${name}\\b`, "m"),
    );
  expect((await patient(carol).svc("__complete", "incident", "view", "INC-")).stdout).toContain("Zebrafish");
});
