import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { eq } from "drizzle-orm";
import { incident } from "../../drizzle/schema/index.ts";
import { drafts } from "../../tests/support/cli/drafts.ts";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { testProgram } from "../../tests/support/cli/process.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";

// The words of a command line: which of them is the incident, and where the text comes from.

let { server, member, reported, notesOf } = {} as IncidentServer;
useIncidentServer(
  (given) => {
    ({ server, member, reported, notesOf } = given);
  },
  { pluginDocument: "markdown" },
);

let carol: CliUser;
/** The incident in use. */
let used: { id: number; name: string };
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
  used = await reported("In use");
  carol.env.SVC_INCIDENT = used.name;
});

const inc = (...words: string[]) => carol.svc("inc", ...words);
const piping = (text: string) => carol.with({ readStdin: async () => Buffer.from(text) });
const itemsOf = async (kind: string, id: number) =>
  (await member.call("GET", `/${kind}/?incident_id=${id}`)).body.items as Record<string, unknown>[];
/** Every text of an incident. */
const textsOf = async (id: number) => [
  ...(await notesOf(id)),
  ...(await itemsOf("tasks", id)).map(({ description }) => description),
  // Not its own, which is made with it.
  ...(await itemsOf("documents", id))
    .filter((one) => one.resource_type !== "incident")
    .map(({ name }) => name),
];

describe("a first word with the form of an ID is the incident", () => {
  const spellings: [string, (one: { id: number; name: string }) => string][] = [
    ["its name", ({ name }) => name],
    ["its name in lower case", ({ name }) => name.toLowerCase()],
    ["its number", ({ id }) => String(id)],
    ["its number with #", ({ id }) => `#${id}`],
    ["its URL", ({ id }) => `${server.url}/incidents/${id}`],
    ["the URL of one of its pages", ({ name }) => `${server.url}/incidents/${name}/timeline?from=1#top`],
    ["a quoted word with spaces around it", ({ id }) => ` ${id} `],
  ];

  test.each(spellings)("%s", async (_, spell) => {
    const other = await reported("Other");
    const word = spell(other);
    expect(await inc("view", word, "--json")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"${other.name}"`),
    });
    expect((await inc("note", word, "A", "secret")).stderr).toContain(`${other.name}: `);
    expect(await notesOf(other.id)).toEqual(["A secret"]);
  });

  test("for every command", async () => {
    const other = await reported("Other");
    const word = other.name.toLowerCase();
    for (const words of [
      ["note", word, "A", "secret"],
      ["note", "--", word, "-secret"],
      ["note", word, "--at", "1m", "--", "secret -x"],
      ["task", "add", word, "Do it"],
      ["doc", "new", word, "Log", "--link", "https://a.example/"],
    ])
      expect(await inc(...words)).toMatchObject({
        code: 0,
        stderr: expect.stringContaining(`${other.name}: `),
      });
    expect((await piping("piped").svc("inc", "note", word, "-")).code).toBe(0);
    const texts = ["A secret", "-secret", "secret -x", "Do it", "Log", "piped"];
    expect((await textsOf(other.id)).sort()).toEqual(texts.sort());
    for (const words of [
      ["add", word, "erin@example.com"],
      ["role", "take", word],
      ["role", "give", word, "erin@example.com", "scribe"],
      ["role", "drop", word, "reporter"],
      ["remove", word, "erin@example.com"],
      ["link", word, "INC-1"],
      ["unlink", word, "INC-1"],
      ["update", word, "-c", "Bad"],
      ["edit", word, "-p", "Urgent"],
      ["stable", word],
      ["task", "list", word],
      ["doc", "list", "-i", word],
      ["close", "-i", word],
    ])
      expect([words, await inc(...words)]).toEqual([words, expect.objectContaining({ code: 0 })]);
    expect(await textsOf(used.id)).toEqual([]);
  });

  test("and nothing is written if there is none that the user may see", async () => {
    const hidden = await reported("Hidden");
    const { body } = await member.call("GET", `/incidents/${hidden.id}`);
    await member.call("PUT", `/incidents/${hidden.id}`, { ...body, visibility: "Restricted" });
    const erin = await cliUser(server, "erin@example.com");
    erin.env.SVC_INCIDENT = used.name;
    for (const word of ["999999", "INC-999999", "#999999", String(hidden.id), hidden.name.toLowerCase()])
      for (const words of [
        ["note", word, "secret"],
        ["task", "add", word, "secret"],
        ["doc", "new", word, "secret"],
      ])
        expect(await erin.svc("inc", ...words)).toMatchObject({
          code: 1,
          stdout: "",
          stderr: expect.stringContaining("that you may see"),
        });
    expect(await textsOf(used.id)).toEqual([]);
  });

  test("also if it is the ID of none", async () => {
    for (const word of [
      "INC-044",
      "INC-44:",
      "INC-44,",
      "INC\u201144",
      "INC44",
      "INC 44",
      "INC_44",
      "INC\u221244",
      "INC-44.",
      "INC-44/",
      "[INC-44]",
      "(INC-44):",
      "#INC-44",
      "\u200b44",
      "incidents/44",
      "045",
      "0",
      "1234567890123456",
      "https://svc.example/incidents/44",
      "svc.example/incidents/INC-44",
    ])
      for (const words of [
        ["note", word, "secret"],
        ["task", "add", word, "secret"],
      ])
        expect(await inc(...words)).toMatchObject({
          code: 2,
          stdout: "",
          stderr: expect.stringMatching(/ is not an incident/),
        });
    expect(await textsOf(used.id)).toEqual([]);
  });
});

describe("a single word with the form of an ID", () => {
  test.each([
    ["note", "TEXT"],
    ["say", "TEXT"],
    ["task add", "TEXT"],
    ["doc new", "NAME"],
    ["add", "USER"],
    ["remove", "USER"],
    ["role give", "USER"],
    ["affected add", "NAME"],
    ["affected remove", "NAME"],
  ])("is ambiguous for %s", async (command, what) => {
    const words = command === "note" ? ["45", "inc-45", `${server.url}/incidents/45`] : ["45"];
    for (const word of words) {
      const person = carol.with({ canAsk: () => true });
      const { code, stderr } = await person.svc("inc", ...command.split(" "), "--", word);
      const start = `svc incident ${command}`;
      expect([code, stderr.split("\n")[0]]).toEqual([
        2,
        `svc: ${word} may be the incident or the ${what}: write ${start} ${word} ${what}, or ${start} -i ID ${word}`,
      ]);
    }
    expect(await textsOf(used.id)).toEqual([]);
  });

  test("is the text after -i, and the incident if the text comes from elsewhere", async () => {
    const [one, other] = [await reported(), await reported()];
    expect((await inc("note", "-i", one.name, "45")).code).toBe(0);
    expect((await inc("note", "-i", one.name, "INC-45", "is", "related")).code).toBe(0);
    expect((await piping("From stdin").svc("inc", "note", String(other.id), "-F", "-")).code).toBe(0);
    expect([await notesOf(one.id), await notesOf(other.id)]).toEqual([
      ["INC-45 is related", "45"],
      ["From stdin"],
    ]);
  });

  test("is the other incident for link, and the incident for a command whose words cannot be IDs", async () => {
    const other = await reported("Other", { commander: "erin@example.com" });
    expect((await inc("link", String(other.id))).stderr).toBe(`${used.name}: In use\n`);
    expect((await inc("role", "take", String(other.id))).stderr).toBe(`${other.name}: Other\n`);
  });
});

test("a number that is the id of one incident and in the name of another is refused", async () => {
  const [one, other] = [await reported("One"), await reported("Other")];
  // As if they had been reported at once.
  const { db } = server;
  const rename = (id: number, name: string) => db.update(incident).set({ name }).where(eq(incident.id, id));
  await rename(one.id, "INC-0");
  await rename(other.id, one.name);
  await rename(one.id, other.name);
  for (const word of [String(one.id), `#${one.id}`])
    expect(await inc("note", word, "secret")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        `${one.id} is the id of ${other.name}: write ${one.name} or ${other.name}, whichever you mean`,
      ),
    });
  const env = { ...carol.env };
  carol.env.SVC_INCIDENT = String(one.id);
  expect((await inc("note", "secret")).code).toBe(2);
  Object.assign(carol.env, env);
  // The URL is the API's, and takes the id.
  expect((await inc("note", `${server.url}/incidents/${one.id}`, "To One")).stderr).toContain(": One\n");
  expect((await inc("note", one.name, "To Other")).stderr).toContain(": Other\n");
  expect([await notesOf(one.id), await notesOf(other.id)]).toEqual([["To One"], ["To Other"]]);
});

test("numbers of tasks and documents are those of the server, unless -i names their incident", async () => {
  const [one, other] = [await reported(), await reported()];
  const task = (await inc("task", "add", one.name, "Do it")).stdout.trim();
  const doc = (await piping("Text").svc("inc", "doc", "new", one.name, "Log", "-")).stdout.trim();
  for (const [words, what] of [
    [["task", "done", task], "task"],
    [["task", "reopen", `#${task}`], "task"],
    [["task", "assign", task, "carol"], "task"],
    [["doc", "show", doc], "document"],
    [["doc", "edit", doc, "-"], "document"],
  ] as const) {
    const wrong = await piping("Wrong").svc("inc", ...words, "-i", other.name);
    const number = what === "task" ? task : doc;
    expect(wrong).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`svc: ${other.name} has no ${what} ${number}: svc incident`),
    });
    expect((await piping("Text").svc("inc", ...words, "-i", String(one.id))).code).toBe(0);
    expect((await piping("Text").svc("inc", ...words)).code).toBe(0);
  }
  expect((await inc("task", "done", one.name, task)).stderr).toContain("is not the number of a task");
  expect((await inc("doc", "show", "999999")).stderr).toContain("there is no document 999999");
});

test("an incident is named once", async () => {
  for (const command of [
    "view",
    "close",
    "update",
    "edit",
    "stable",
    "reopen",
    "join",
    "leave",
    "export",
    "watch",
    "use",
  ])
    expect(await inc(command, "INC-1", "-i", used.name)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("give either ID or --incident"),
    });
  const person = carol.elsewhere();
  expect(await person.svc("inc", "use", "-i", used.name)).toMatchObject({ code: 0 });
  const watched = await person.svc("inc", "watch", "-i", "INC-0815", "--json");
  expect(watched).toMatchObject({ code: 2, stderr: expect.stringContaining("INC-0815") });
});

describe("- is a text from stdin", () => {
  const done = { code: 0, stderr: expect.stringContaining(": ") };

  test("for every command that takes a text", async () => {
    const { id, name } = await reported("First", { commander: "carol@example.com" });
    const svc = (text: string, ...words: string[]) => piping(text).svc("inc", ...words);
    const incident = async () => (await member.call("GET", `/incidents/${id}`)).body;
    const lastReport = async () =>
      (await member.call("GET", `/incidents/${id}/reports?limit=1`)).body.items[0];

    const before = drafts(carol.home);
    expect(await svc("note\n", "note", name, "-")).toMatchObject(done);
    expect(await notesOf(id)).toEqual(["note"]);
    expect(await svc("# Conditions\nBad\n# Actions\n# Needs\n", "update", name, "-")).toMatchObject(done);
    expect(await lastReport()).toMatchObject({ conditions: "Bad" });
    expect(await svc("Rolling\n# Needs\n", "update", name, "-c", "Better", "-a", "-")).toMatchObject(done);
    expect(await lastReport()).toMatchObject({
      conditions: "Better",
      actions: "Rolling\n# Needs",
      needs: "",
    });
    for (const [at, words] of [["-"], ["-d", "-"], ["-F", "-"]].entries()) {
      expect(await svc(`description ${at}\n`, "edit", name, ...words)).toMatchObject(done);
      expect(await incident()).toMatchObject({ description: `description ${at}` });
    }
    expect(await svc("So far\n", "edit", name, "-r", "-")).toMatchObject(done);
    expect(await incident()).toMatchObject({ resolution: "So far", description: "description 2" });
    for (const [at, words] of [["-"], ["-r", "-"], ["-F", "-"]].entries()) {
      expect(await svc(`resolution ${at}\n`, "close", name, ...words)).toMatchObject(done);
      expect(await incident()).toMatchObject({ resolution: `resolution ${at}`, status: "Closed" });
    }
    expect(await svc("a\ntask\n", "task", "add", name, "-")).toMatchObject(done);
    expect((await itemsOf("tasks", id))[0]).toMatchObject({ description: "a\ntask" });
    const { stdout } = await svc("# Log\n", "doc", "new", name, "The", "log", "-");
    expect((await itemsOf("documents", id))[0]).toMatchObject({ name: "The log" });
    expect((await inc("doc", "show", stdout.trim())).stdout).toBe("# Log\n");
    expect(await svc("# New\n", "doc", "edit", stdout.trim(), "-")).toMatchObject(done);
    expect((await inc("doc", "show", stdout.trim())).stdout).toBe("# New\n");
    for (const words of [["-"], ["-d", "-"], ["-F", "-"]]) {
      const made = await svc("description\n", "report", "Piped", "-p", "Urgent", "--json", ...words);
      expect(JSON.parse(made.stdout)).toMatchObject({ title: "Piped", description: "description" });
    }
    expect(drafts(carol.home)).toEqual(before);
  });

  test.each([
    [["note", "text", "-"], "give only one of TEXT, -, --file and --editor"],
    [["note", "-", "-F", "x"], "give only one of -, --file and --editor"],
    [["task", "add", "text", "-"], "give only one of TEXT, -, --file and --editor"],
    [["doc", "new", "Log", "-", "-e"], "give only one of -, --file and --editor"],
    [["doc", "new", "-"], "missing argument: NAME"],
    [["doc", "edit", "-"], "missing argument: DOCUMENT"],
    [["close", "-", "-r", "x"], "give only one of --resolution, -, --file and --editor"],
    [["close", "INC-1", "text"], "unexpected argument: text"],
    [["edit", "-", "-d", "x"], "give only one of --description, -, --file and --editor"],
    [["edit", "-", "-r", "-"], "only one text can come from stdin"],
    [["update", "-", "-c", "x"], "give either --conditions, --actions and --needs, or -, or --file"],
    [["update", "-c", "-", "-a", "-"], "only one text can come from stdin"],
    [["note", "-", "45"], "- is a text from stdin, and comes last"],
    [["doc", "new", "-", "Log"], "- is a text from stdin, and comes last"],
    [["close", "-", "INC-1"], "- is a text from stdin, and comes last"],
    [["report", "-", "-p", "Urgent"], "missing argument: TITLE"],
    [["report", "Down", "again", "-p", "Urgent"], "unexpected argument: again"],
    [["report", "Down", "-", "-d", "x", "-p", "Urgent"], "give only one of --description, -, --file"],
  ])("once, and in its place: %p", async (words, message) => {
    const ran = await piping("lost?").svc("inc", ...words);
    expect(ran).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) });
  });

  test("and a command that needs a text does not take it from stdin without -", async () => {
    const { id, name } = await reported();
    const person = piping("lost?");
    for (const [words, message] of [
      [["note", "-i", name], "missing argument: TEXT (or -, --file or --editor)"],
      [["task", "add", "-i", name], "missing argument: TEXT (or -, --file or --editor)"],
      [["update", name], "missing option: --conditions (or -, --file or --editor)"],
      [["update", name, "-a", "Something"], "missing option: --conditions"],
      [["edit", name], "nothing to change: give an option, or --editor"],
      [["doc", "edit", "1"], "missing option: --file"],
    ] as const)
      expect(await person.svc("inc", ...words)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(message),
      });
    expect((await member.call("GET", `/incidents/${id}`)).body.status).toBe("Active");
    expect(await textsOf(id)).toEqual([]);
    // A script with another use for its stdin.
    expect((await person.svc("inc", "note", "-i", name, "Text")).code).toBe(0);
    expect((await person.svc("inc", "doc", "new", name, "Link", "--link", "https://a.example/")).code).toBe(
      0,
    );
  });

  test("and replaces nothing if it is empty", async () => {
    const { id, name } = await reported();
    const { stdout } = await piping("Text").svc("inc", "doc", "new", name, "Log", "-");
    for (const words of [
      ["edit", name, "-"],
      ["edit", name, "-r", "-"],
      ["close", name, "-"],
      ["doc", "edit", stdout.trim(), "-"],
    ])
      expect(await piping(" \n").svc("inc", ...words)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("is empty: nothing was sent"),
      });
    expect((await member.call("GET", `/incidents/${id}`)).body).toMatchObject({
      description: "First",
      status: "Active",
    });
    expect((await inc("doc", "show", stdout.trim())).stdout).toBe("Text\n");
  });

  test("and is kept for the command that reads it, if nothing of it was sent", async () => {
    const person = carol.elsewhere().with({
      readStdin: async () => Buffer.from("Piped\n"),
      fetch: async () => Promise.reject(Object.assign(new Error("gone"), { code: "ECONNREFUSED" })),
    });
    for (const [words, again] of [
      [["task", "add", "INC-1", "-", "--assign", "erin"], "task add -i INC-1 --assign erin -F"],
      [["edit", "INC-1", "-r", "-", "-p", "Low"], "edit INC-1 --priority Low -F"],
      [["update", "INC-1", "-c", "Bad", "-a", "-"], "update INC-1 --conditions Bad --actions - <"],
      [["doc", "new", "INC-1", "Log", "-"], "doc new -i INC-1 Log --type reference -F"],
    ] as const) {
      const { code, stderr } = await person.svc("inc", ...words);
      const [, line = "", path = ""] = /To send it: svc incident (.*) (\S+)\n/.exec(stderr) ?? [];
      expect([code, line, readFileSync(path, "utf8")]).toEqual([1, again, "Piped\n"]);
    }
  });
});

test("the text of an option may be empty, unlike other values", async () => {
  const { id, name } = await reported();
  const lastReport = async () => (await member.call("GET", `/incidents/${id}/reports?limit=1`)).body.items[0];
  for (const words of [
    ["-a", "", "--needs", ""],
    ["--actions=", "-n", ""],
  ]) {
    expect(await inc("update", name, "-c", "Bad", ...words)).toMatchObject({ code: 0 });
    expect(await lastReport()).toMatchObject({ conditions: "Bad", actions: "", needs: "" });
  }
  for (const [words, message] of [
    [["update", name, "-c", ""], "the report is empty"],
    [["close", name, "-r", ""], "the resolution is empty"],
    [["update", name, "-c", "Bad", "-n"], "--needs needs a value"],
    [["note", name, "Text", "--at", ""], "--at needs a value"],
    [["edit", name, "--server="], "--server needs a value"],
  ] as const)
    expect((await inc(...words)).stderr).toContain(message);
  expect((await inc("edit", name, "-d", "")).code).toBe(0);
  expect((await member.call("GET", `/incidents/${id}`)).body.description).toBe("");
});

test("a loop of the shell keeps its lines: a command without - leaves stdin alone", async () => {
  const loop = `while read -r line; do ${testProgram.join(" ")} inc report "$line" -p Urgent -q || exit; done`;
  const run = Bun.spawn(["sh", "-c", loop], {
    env: carol.env,
    stdin: Buffer.from("Alpha\nBravo\nCharlie\n"),
  });
  const names = (await new Response(run.stdout).text()).trim().split("\n");
  const titles = await Promise.all(
    names.map(async (name) => (await member.call("GET", `/incidents/${name}`)).body.title),
  );
  expect(titles).toEqual(["Alpha", "Bravo", "Charlie"]);
});
