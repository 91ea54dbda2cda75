import { beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

// svc incident report.

let { server, admin, member } = {} as IncidentServer;
useIncidentServer(
  (given) => {
    ({ server, admin, member } = given);
  },
  { pluginDocumentResolver: "document-matcher" },
);

let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
  // Can be named as a commander.
  await cliUser(server, "alice@example.com");
});

const drafts = (home: string) => {
  const directory = join(home, "svc/drafts");
  return existsSync(directory) ? readdirSync(directory).map((file) => join(directory, file)) : [];
};

/** On a busy machine, the server may answer before it has found the commander, who is the reporter. */
const withCommander = (line: string, user = "\\w+@example.com") =>
  new RegExp(`^${line}Commander: (?:${user}|not found yet \\(svc incident view INC-\\d+\\))\n$`);

test("reports, and prints the name for other programs", async () => {
  const person = await cliUser(server, "frank@example.com");
  const ran = await person.svc("incident", "report", "Checkout is down", "-p", "urgent", "--use");
  const name = ran.stdout.trim();
  expect(ran).toEqual({
    code: 0,
    stdout: `${name}\n`,
    stderr: expect.stringMatching(withCommander(`${name}: Checkout is down\n`)),
  });
  expect((await person.svc("incident", "current", "--short")).stdout).toBe(`${name}\n`);
  expect(drafts(person.home)).toEqual([]);
});

test("takes a description, a commander and --restricted; -q prints only the name", async () => {
  const args = ["-d", "Since noon", "--restricted", "--commander", "alice", "-q", "-t", "Outage"];
  const { code, stdout, stderr } = await carol.svc("inc", "declare", "Secret", ...args);
  expect([code, stderr]).toEqual([0, ""]);
  const { body } = await member.call("GET", `/incidents/${stdout.trim().split("-")[1]}`);
  expect(body).toMatchObject({
    title: "Secret",
    description: "Since noon",
    visibility: "Restricted",
    commander: { email: "alice@example.com" },
  });
});

test("names the commander, and the documents that may help, which open by name", async () => {
  const { body: term } = await admin.call("POST", "/terms/", { text: "payment queue" });
  const runbook = { resource_type: "reference", term_ids: [term.id], weblink: "https://wiki.example/queue" };
  for (const name of ["Empty the queue", "Restart payments"])
    expect((await admin.call("POST", "/documents/", { ...runbook, name })).http).toBe(201);
  const { stderr, stdout } = await carol.svc(
    ...["inc", "report", "The payment queue is full", "-p", "urgent", "--commander", "alice"],
  );
  const name = stdout.trim();
  const lines = stderr.split("\n");
  expect(lines.slice(0, 3)).toEqual([
    `${name}: The payment queue is full`,
    expect.stringMatching(/^Commander: .*alice@example\.com/),
    `Documents that may help with ${name}:`,
  ]);
  expect(lines.slice(3).sort()).toEqual([
    "",
    expect.stringMatching(/^ {2}svc incident doc show \d+ {3}# Empty the queue$/),
    expect.stringMatching(/^ {2}svc incident doc show \d+ {3}# Restart payments$/),
  ]);
  const byName = await carol.svc("inc", "doc", "show", "-i", name, "restart Payments");
  expect(byName).toEqual({ code: 0, stdout: "https://wiki.example/queue\n", stderr: "" });
  const [, byNumber = ""] = /doc show (\d+) {3}# Restart/.exec(stderr) ?? [];
  expect(await carol.svc("inc", "doc", "show", "-i", name, byNumber)).toEqual(byName);
  expect((await carol.svc("inc", "doc", "list", name)).stderr).toContain("# Restart payments\n");
});

test.each([
  [[], "missing argument: TITLE"],
  [[" "], "TITLE: the title is empty"],
  [["INC-1"], "TITLE: INC-1 is an incident; to write a status report on it: svc incident update INC-1"],
  [["44", "-p", "Urgent"], "TITLE: 44 is an incident"],
  [["a".repeat(501)], "TITLE: the title is longer than 500 characters"],
  [["Two\nlines"], "TITLE: the title must be a single line of text"],
])("refuses %p", async (args, message) => {
  const { code, stderr } = await carol.svc("incident", "report", ...args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  expect(drafts(carol.home)).toEqual([]);
});

test("asks for what is missing on a terminal", async () => {
  const asked: string[] = [];
  const person = carol.with({
    canAsk: () => true,
    askText: async (question, fault) => {
      asked.push(question);
      expect(fault?.(" ")).toBe("the title is empty");
      return "Asked";
    },
    choose: async (question, choices) => {
      asked.push(question);
      return choices[0]!.value;
    },
  });
  expect((await person.svc("incident", "report")).stderr).toMatch(withCommander("INC-\\d+: Asked\n"));
  expect(asked).toEqual(["What is wrong?"]);
});

test("asks nothing on a terminal when title and priority are given", async () => {
  expect((await admin.call("POST", "/incident_types/", { name: "Zebra" })).http).toBe(201);
  const person = carol.with({
    canAsk: () => true,
    choose: async (question) => {
      throw new Error(question);
    },
  });
  expect(await person.svc("incident", "report", "Pasted", "-p", "urgent")).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      withCommander("Type: Outage \\(-t TYPE for another\\)\nINC-\\d+: Pasted\n"),
    ),
  });
  expect((await person.svc("incident", "report", "Pasted")).stderr).not.toContain("INC-");
});

test("a report whose answer is lost is kept, and sent again only once", async () => {
  const person = await cliUser(server, "grace@example.com");
  const losing = person.with({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (init.method !== "POST") return response;
      await response.text();
      throw Object.assign(new Error("lost"), { code: "ECONNRESET" });
    },
  });
  const { code, stderr } = await losing.svc("incident", "report", "Lost once", "-d", "Text");
  const [path = ""] = drafts(person.home);
  expect([code, stderr]).toEqual([
    1,
    `The report is kept. To send it: svc incident report --recover ${path}\nsvc: cannot reach ${server.url} (ECONNRESET)\n`,
  ]);
  const again = await person.svc("incident", "report", "--recover", path);
  expect(again).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(withCommander("INC-\\d+: Lost once\n")),
  });
  expect(drafts(person.home)).toEqual([]);
  const { body } = await member.call("GET", "/incidents/?q=%22lost+once%22");
  expect(body.items).toHaveLength(1);
});

test("succeeds, and prints the incident, also if --use cannot be stored", async () => {
  const person = await cliUser(server, "grace@example.com");
  writeFileSync(join(person.home, "file"), "");
  person.env.XDG_CONFIG_HOME = join(person.home, "file");
  const { code, stdout, stderr } = await person.svc("incident", "report", "Used", "--use", "--json");
  const { name } = JSON.parse(stdout);
  expect([code, stderr]).toEqual([
    0,
    expect.stringMatching(
      new RegExp(
        `^${name}: Used\nCommander: .*\nsvc: warning: \\S+incident\\.json: cannot be written \\(\\w+\\); ${name} is not in use\n$`,
      ),
    ),
  ]);
  expect(drafts(person.home)).toEqual([]);
});

test("that is refused is kept only if its text cannot be typed again", async () => {
  const person = carol.elsewhere();
  const stdin = person.with({ readStdin: async () => Buffer.from("From a pipe") });
  for (const words of [
    ["-p", "nope"],
    ["--commander", "nobody"],
  ]) {
    expect((await person.svc("inc", "report", "Typed", ...words)).stderr).not.toContain("kept");
    expect((await stdin.svc("inc", "report", "Piped", "-F", "-", ...words)).stderr).toStartWith(
      "The report is kept.",
    );
  }
  expect(drafts(person.home)).toHaveLength(2);
  expect(readFileSync(drafts(person.home)[0]!, "utf8")).toContain("From a pipe");
});

test("recovers nothing from another file", async () => {
  const path = join(carol.home, "other");
  writeFileSync(path, '{"title": 1}');
  const { code, stderr } = await carol.svc("incident", "report", "--recover", path);
  expect([code, stderr]).toEqual([1, `svc: ${path} is not a report that svc kept\n`]);
  expect(readFileSync(path, "utf8")).toBe('{"title": 1}');
});
