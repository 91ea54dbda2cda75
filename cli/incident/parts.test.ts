import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drafts } from "../../tests/support/cli/drafts.ts";
import { type CliUser, cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import type { Io } from "../io.ts";
import { zonedTime } from "../when.ts";

// The parts of an incident: people with their roles, tasks, and documents.

let { server, admin, member, reported: report } = {} as IncidentServer;
useIncidentServer(
  (given) => {
    ({ server, admin, member, reported: report } = given);
  },
  { pluginDocument: "markdown" },
);

let carol: CliUser;
let erin: CliUser;
beforeAll(async () => {
  erin = await cliUser(server, "erin@example.com");
  carol = await cliUser(server, "carol@example.com");
});

/** An incident that Carol commands. */
const reported = (title?: string) => report(title, { commander: "carol@example.com" });

/** Who takes part, with the roles they have. */
async function peopleOf(id: number): Promise<Record<string, string[]>> {
  const { body } = await member.call("GET", `/incidents/${id}/participants/`);
  type Listed = {
    individual: { email: string };
    left_at: string | null;
    roles: { role: string; renounced_at: string | null }[];
  };
  const present = (body.items as Listed[]).filter(({ left_at }) => left_at === null);
  return Object.fromEntries(
    present.map(({ individual, roles }) => [
      individual.email.split("@")[0]!,
      roles
        .filter(({ renounced_at }) => renounced_at === null)
        .map(({ role }) => role)
        .sort(),
    ]),
  );
}

describe("people", () => {
  test("join and leave", async () => {
    const { id, name } = await reported();
    expect(await erin.svc("incident", "join", name)).toEqual({
      code: 0,
      stdout: "",
      stderr: `${name}: Broken\n`,
    });
    expect((await peopleOf(id)).erin).toEqual(["participant"]);
    expect((await erin.svc("inc", "leave", name)).code).toBe(0);
    expect((await peopleOf(id)).erin).toBeUndefined();
    const again = await erin.svc("inc", "leave", name);
    expect([again.code, again.stderr]).toEqual([
      expect.any(Number),
      expect.stringContaining("you do not take part"),
    ]);
    expect(again.code).not.toBe(0);
  });

  test("are added by name or address with a role, and removed", async () => {
    const { id, name } = await reported();
    const added = await carol.svc("inc", "add", name, "erin", "frank@example.com", "--role", "observer");
    expect([added.code, added.stderr]).toEqual([0, `${name}: Broken\n`]);
    expect(await peopleOf(id)).toMatchObject({ erin: ["observer"], frank: ["observer"] });
    const removed = await carol.svc("inc", "remove", "-i", name, "frank", "--json");
    expect(JSON.parse(removed.stdout).items).toHaveLength(1);
    expect((await peopleOf(id)).frank).toBeUndefined();
  });

  test("are not added at all if one of them is unknown", async () => {
    const { id, name } = await reported();
    const { code, stderr } = await carol.svc("inc", "add", name, "erin", "erni");
    expect([code, stderr]).toEqual([
      expect.any(Number),
      expect.stringMatching(/nobody is called "erni".*erin/),
    ]);
    expect((await peopleOf(id)).erin).toBeUndefined();
  });

  test("of whom only some could be added are announced", async () => {
    const { id, name } = await reported();
    let posts = 0;
    const failing = carol.with({
      fetch: async (url, init) => {
        if (init.method === "POST") posts += 1;
        if (posts < 3) return fetch(url, init);
        throw Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
      },
    });
    const ran = await failing.svc("inc", "add", name, "erin", "frank@example.com", "ivan@example.com");
    expect(ran).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining(
        `${name}: Broken\nOnly the first 2 of 3 were added.\nsvc: cannot reach`,
      ),
    });
    expect(Object.keys(await peopleOf(id))).toEqual(expect.arrayContaining(["erin", "frank"]));
  });

  test("who take part already, or have the role already, are reported, and the others are added", async () => {
    const { id, name } = await reported();
    const said = (...lines: string[]) => ({
      code: 0,
      stdout: "",
      stderr: [...lines, `${name}: Broken`, ""].join("\n"),
    });
    for (const [words, message] of [
      [["add", name, "erin", "carol"], `carol@example.com already takes part in ${name}`],
      [["add", name, "erin", "--role", "participant"], `erin@example.com is already participant of ${name}`],
      [["join", name, "--role", "commander"], `You are already commander of ${name}`],
      [["join", name], `You already take part in ${name}`],
      [["role", "give", name, "carol"], `carol@example.com is already commander of ${name}`],
      [["role", "take", name], `You are already commander of ${name}`],
    ] as const)
      expect(await carol.svc("inc", ...words)).toEqual(said(message));
    expect(await peopleOf(id)).toMatchObject({
      erin: ["participant"],
      carol: expect.arrayContaining(["commander"]),
    });
    const { stdout } = await carol.svc("inc", "join", name, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ individual: { email: "carol@example.com" } });
  });

  test("who do not take part, or do not have the role, are not removed", async () => {
    const { id, name } = await reported();
    await carol.svc("inc", "add", name, "erin");
    for (const [words, message] of [
      [["role", "drop", name, "scribe"], `you are not scribe of ${name}`],
      [["remove", name, "erin", "frank@example.com"], `frank@example.com does not take part in ${name}`],
      [["leave", name], `you command ${name}: first hand over, with svc incident role give -i ${name} USER`],
      [
        ["remove", name, "carol"],
        `carol@example.com commands ${name}: first hand over, with svc incident role give -i ${name} USER`,
      ],
    ] as const)
      expect(await carol.svc("inc", ...words)).toEqual({ code: 1, stdout: "", stderr: `svc: ${message}\n` });
    expect(await peopleOf(id)).toMatchObject({ erin: ["participant"] });
  });
});

describe("roles", () => {
  test("are taken, given and dropped", async () => {
    const { id, name } = await reported();
    expect((await erin.svc("inc", "role", "take", name, "scribe")).code).toBe(0);
    expect((await peopleOf(id)).erin).toContain("scribe");
    expect((await carol.svc("inc", "role", "give", name, "frank@example.com", "Liaison")).code).toBe(0);
    expect((await peopleOf(id)).frank).toContain("liaison");
    expect((await erin.svc("inc", "role", "drop", name, "scribe")).code).toBe(0);
    expect((await peopleOf(id)).erin).not.toContain("scribe");
  });

  test("of the commander that somebody else takes meanwhile are not taken from them", async () => {
    const { id, name } = await reported();
    await carol.svc("inc", "add", name, "erin", "frank@example.com");
    let isFirst = true;
    const slow = carol.with({
      fetch: async (url, init) => {
        if (init.method === "POST" && isFirst) {
          isFirst = false;
          expect((await erin.svc("inc", "role", "take", name)).code).toBe(0);
        }
        return fetch(url, init);
      },
    });
    expect(await slow.svc("inc", "role", "give", name, "frank@example.com")).toEqual({
      code: 1,
      stdout: "",
      stderr:
        `svc: erin@example.com has taken command of ${name} in the meantime; nothing was changed\n` +
        `To replace them: svc incident role give ${name} frank@example.com\n`,
    });
    expect((await peopleOf(id)).erin).toContain("commander");
  });

  test("that do not exist are refused", async () => {
    const { name } = await reported();
    expect(await erin.svc("inc", "role", "take", name, "boss")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('"boss" is not a role: it is one of commander, scribe'),
    });
  });
});

describe("links", () => {
  test("are shown from both sides, and removed", async () => {
    const [one, other, third] = [await reported("One"), await reported("Other"), await reported("Third")];
    const linked = await carol.svc(
      "inc",
      "link",
      one.name,
      other.name,
      `${server.url}/incidents/${third.id}`,
    );
    expect(linked).toEqual({ code: 0, stdout: "", stderr: `${one.name}: One\n` });
    expect(await carol.svc("inc", "link", one.name, other.name)).toEqual({
      code: 0,
      stdout: "",
      stderr: `${one.name} is already linked with ${other.name}\n${one.name}: One\n`,
    });
    expect((await carol.svc("inc", "view", one.name)).stdout).toMatch(
      new RegExp(`\nRelated to ${other.name} {2}Other \\(Active\\)\nRelated to ${third.name} {2}Third `),
    );
    expect((await erin.svc("inc", "view", other.name)).stdout).toContain(
      `Related to ${one.name}  One (Active)\n`,
    );
    expect((await erin.svc("inc", "unlink", "-i", other.name, one.name)).code).toBe(0);
    const left = JSON.parse((await carol.svc("inc", "view", one.name, "--json")).stdout).links;
    expect(left).toMatchObject([{ kind: "related", incident: { name: third.name } }]);
  });

  test("of a duplicate have a direction", async () => {
    const [one, other] = [await reported("One"), await reported("Other")];
    const { code, stdout } = await carol.svc("inc", "link", one.name, other.name, "--duplicate", "--json");
    expect([code, JSON.parse(stdout).items[0].kind]).toEqual([0, "duplicate_of"]);
    expect((await carol.svc("inc", "link", one.name, other.name)).stderr).toContain("linked already");
    expect((await carol.svc("inc", "view", one.name)).stdout).toContain(`Duplicate of ${other.name}  Other`);
    expect((await carol.svc("inc", "view", other.name)).stdout).toContain(`Duplicated by ${one.name}  One`);
  });

  test("change nothing if one of the incidents is unknown, the same or not linked", async () => {
    const [one, other] = [await reported("One"), await reported("Other")];
    const refused = async (...words: string[]) => {
      const { code, stderr } = await carol.svc("inc", ...words);
      return [code, stderr];
    };
    expect(await refused("link", one.name, other.name, "INC-999999")).toEqual([
      1,
      expect.stringContaining("there is no incident INC-999999 that you may see"),
    ]);
    expect(await refused("link", one.name, one.name)).toEqual([
      1,
      expect.stringContaining(`${one.name} cannot be linked with itself`),
    ]);
    expect(await refused("unlink", one.name, other.name)).toEqual([
      1,
      expect.stringContaining(`${one.name} is not linked with ${other.name}`),
    ]);
    expect(await refused("link", "-i", one.name)).toEqual([
      2,
      expect.stringContaining("missing argument: OTHER"),
    ]);
    expect(await refused("link", one.name, other.name, "INC-1", "--duplicate")).toEqual([
      2,
      expect.stringContaining("duplicate of only one"),
    ]);
    expect((await member.call("GET", `/incidents/${one.id}/links/`)).body.items).toEqual([]);
  });
});

test("an incident names the services and applications that it affects", async () => {
  const { name } = await reported();
  for (const [path, called] of [
    ["services", "Checkout"],
    ["services", "Both"],
    ["applications", "Both"],
    ["applications", "Shop"],
  ])
    expect((await admin.call("POST", `/${path}/`, { name: called })).http).toBe(201);
  const add = (...words: string[]) => carol.svc("inc", "affected", "add", name, ...words);
  expect(await add("checkout", "Shop", "application:both")).toEqual({
    code: 0,
    stdout: "",
    stderr: `${name}: Broken\n`,
  });
  const shown = async () => /\nAffects .*/.exec((await carol.svc("inc", "view", name)).stdout)?.[0];
  expect(await shown()).toBe("\nAffects Checkout, Both, Shop");
  expect(await add("Both")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("write service:Both or application:Both"),
  });
  expect(await add("Chekout", "Shop")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no service or application "Chekout". Did you mean Checkout?'),
  });
  const removed = await carol.svc("inc", "affected", "remove", "-i", name, "Both", "shop", "--json");
  expect(JSON.parse(removed.stdout)).toMatchObject({ services: [{ name: "Checkout" }], applications: [] });
  expect((await carol.svc("inc", "affected", "remove", name, "Shop")).stderr).toContain(
    'there is no affected service or application "Shop"',
  );
  expect(await shown()).toBe("\nAffects Checkout");
});

describe("tasks", () => {
  const tasksOf = async (id: number) => (await member.call("GET", `/tasks/?incident_id=${id}`)).body.items;

  test("are added, listed, assigned, resolved and opened again", async () => {
    const { id, name } = await reported();
    const added = await carol.svc(
      "inc",
      "task",
      "add",
      "-i",
      name,
      "Order",
      "disks\x1b[2J",
      "--assign",
      "erin",
      "--due",
      "2d",
    );
    const [task] = await tasksOf(id);
    expect(added).toEqual({
      code: 0,
      stdout: `${task.id}\n`,
      stderr: `${name}: Broken\nDue ${zonedTime(new Date(task.resolve_by))} (in 2d)\n`,
    });
    expect(Date.parse(task.resolve_by)).toBe(server.clock.now().getTime() + 2 * 86_400_000);
    const { stdout } = await carol.svc("inc", "task", "list", name);
    expect(stdout).toMatch(/^ID +STATUS +DESCRIPTION +ASSIGNEES +DUE\n\d+ +Open +Order disks/);
    expect(stdout).not.toContain("\x1b");
    expect((await carol.svc("inc", "task", "list", name, "--mine")).stderr).toContain("No tasks found");
    expect((await carol.svc("inc", "task", "assign", String(task.id), "carol")).code).toBe(0);
    expect(
      (await carol.svc("inc", "task", "assign", `#${task.id}`, "Erin@Example.com", "--remove")).code,
    ).toBe(0);
    expect((await tasksOf(id))[0].assignees).toMatchObject([{ email: "carol@example.com" }]);
    expect((await carol.svc("inc", "task", "list", name, "--mine")).stdout).toContain("Order");
    expect((await carol.svc("inc", "task", "done", String(task.id))).code).toBe(0);
    expect((await tasksOf(id))[0].status).toBe("Resolved");
    expect((await carol.svc("inc", "task", "list", name)).stdout).toBe("");
    expect((await carol.svc("inc", "task", "list", name, "--all")).stdout).toContain("Resolved");
    expect((await carol.svc("inc", "task", "reopen", String(task.id))).code).toBe(0);
    expect((await tasksOf(id))[0].status).toBe("Open");
  });

  test.each([
    [["task", "done", "x"], "is not the number of a task"],
    [["task", "done", "999999"], "there is no task 999999"],
    [["task", "add", "Order disks", "--due", "yesterday"], "--due"],
    [["task", "add", "Order disks", "--due", "2020-01-01"], "in the past"],
    [["task", "assign", "1"], "missing argument: USER"],
  ])("refuses %j", async (words, message) => {
    const { name } = await reported();
    carol.env.SVC_INCIDENT = name;
    const { code, stderr } = await carol.svc("inc", ...words);
    delete carol.env.SVC_INCIDENT;
    expect([code === 0, stderr]).toEqual([false, expect.stringContaining(message)]);
  });
});

describe("documents", () => {
  test("are added with a link or a text, listed, printed and edited", async () => {
    const { name } = await reported();
    const link = "https://grafana.example.com/d/1";
    expect((await carol.svc("inc", "doc", "new", name, "Dashboard", "--link", link)).code).toBe(0);
    const file = join(carol.home, "notes.md");
    writeFileSync(file, "# Notes\n\nFirst\n");
    const made = await carol.svc("inc", "doc", "new", name, "Notes", "-F", file);
    expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\n$/) });
    const { stdout } = await carol.svc("inc", "doc", "list", name);
    expect(stdout).toMatch(/^ID +TYPE +NAME +LINK\n/);
    expect(stdout).toContain(link);
    expect((await carol.svc("inc", "doc", "show", "-i", name, "dashboard")).stdout).toBe(`${link}\n`);
    expect((await carol.svc("inc", "doc", "show", made.stdout.trim())).stdout).toBe("# Notes\n\nFirst\n");
    const edited = carol.with({
      canAsk: () => true,
      runOnTerminal: async (_, [path = ""]) => {
        writeFileSync(path, readFileSync(path, "utf8").replace("First", "Second"));
        return { code: 0 };
      },
    });
    expect((await edited.svc("inc", "doc", "edit", made.stdout.trim())).code).toBe(0);
    expect((await carol.svc("inc", "doc", "show", made.stdout.trim())).stdout).toBe("# Notes\n\nSecond\n");
    const piped = await carol
      .with({ runOnTerminal: () => Promise.reject(new Error("an editor opened")) })
      .svc("inc", "doc", "edit", made.stdout.trim());
    expect([piped.code, piped.stderr]).toEqual([2, expect.stringContaining("missing option: --file")]);
    const failing = carol.with({
      fetch: async (url, init) => {
        if (init.method !== "PUT") return fetch(url, init);
        throw Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
      },
      readStdin: async () => Buffer.from("Piped\n"),
    });
    const half = await failing.svc("inc", "doc", "new", "-i", name, "Half", "-F", "-");
    const [, id = "", again = ""] =
      /^Document (\d+) was created, without its text\.\nYour text is kept\. To send it: svc (.*)\n/.exec(
        half.stderr,
      ) ?? [];
    expect(again).toStartWith(`incident doc edit ${id} -F `);
    expect((await carol.svc(...again.split(" "))).code).toBe(0);
    expect((await carol.svc("inc", "doc", "show", id)).stdout).toBe("Piped\n");
    const refused = await failing.svc("inc", "doc", "new", "-i", name, "Bad", "--link", "no link", "-F", "-");
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/^Your text is kept\. To send it: svc incident doc new -i INC-\d+ Bad /),
    ]);
    const missing = await carol.svc("inc", "doc", "show", "-i", name, "Runbook");
    expect([missing.code === 0, missing.stderr]).toEqual([false, expect.stringContaining("has no document")]);
  });

  describe("with a text of several lines", () => {
    const piped = (who: CliUser, text: string) => who.with({ readStdin: async () => Buffer.from(text) });
    /** Returns the number of a document. */
    const newNotes = async (text: string) => {
      const { name } = await reported();
      const { stdout } = await piped(carol, text).svc("inc", "doc", "new", name, "Notes", "-F", "-");
      return stdout.trim();
    };
    const textOf = async (id: string, ...words: string[]) =>
      (await carol.svc("inc", "doc", "show", id, ...words)).stdout;
    /** An editor on a terminal, during whose first use somebody else writes a text. */
    const editing = (id: string, theirs: string, changes: ((text: string) => string)[]): Partial<Io> => ({
      canAsk: () => true,
      runOnTerminal: async (_, [path = ""]) => {
        if (changes.length === 2) await piped(erin, theirs).svc("inc", "doc", "edit", id, "-");
        writeFileSync(path, changes.shift()!(readFileSync(path, "utf8")));
        return { code: 0 };
      },
    });

    test("list their versions, print one, and restore it by an edit", async () => {
      const id = await newNotes("One\n");
      await piped(erin, "Two\n").svc("inc", "doc", "edit", id, "-");
      const { stdout } = await carol.svc("inc", "doc", "history", id);
      expect(stdout.replaceAll(/\d{4}-\S+/g, "TIME").split(/ *\n/)).toEqual([
        "VERSION  WRITTEN                   AUTHOR",
        "3        TIME  erin@example.com",
        "2        TIME  carol@example.com",
        "1        TIME  carol@example.com",
        "",
      ]);
      const more = await carol.svc("inc", "doc", "history", id, "-L", "2", "--json");
      expect(JSON.parse(more.stdout).items).toMatchObject([{ version: "3" }, { version: "2" }]);
      expect(more.stderr).toBe("There are more: --limit 4\n");
      const old = await textOf(id, "--version", "2");
      expect(old).toBe("One\n");
      expect((await piped(carol, old).svc("inc", "doc", "edit", id, "-")).code).toBe(0);
      expect(await textOf(id)).toBe("One\n");
      expect((await carol.svc("inc", "doc", "show", id, "--version", "9")).stderr).toStartWith(
        "svc: Version 9 of this text is not kept",
      );
      expect((await carol.svc("inc", "doc", "show", id, "--version", "0")).code).toBe(2);
      const redaction = { version: "3", reason: "A password" };
      expect((await admin.call("POST", `/documents/${id}/redact`, redaction)).http).toBe(200);
      const after = await carol.svc("inc", "doc", "history", id);
      expect(after.stdout.match(/\S+ *\S* \(redacted\)$/gm)).toEqual([
        expect.stringContaining("erin@example.com (redacted)"),
      ]);
    });

    test("merge a change with one that somebody else made meanwhile", async () => {
      const id = await newNotes("One\n\nTwo\n");
      const edit = editing(id, "Theirs\n\nTwo\n", [(text) => `${text}\nMine\n`, (text) => text]);
      const ran = await carol.with(edit).svc("inc", "doc", "edit", id);
      expect([ran.code, ran.stderr]).toEqual([
        0,
        expect.stringContaining(
          `The text of document ${id} has been changed by somebody else in the meantime: their changes and yours were merged.\n`,
        ),
      ]);
      expect(await textOf(id)).toBe("Theirs\n\nTwo\nMine\n");
    });

    test("open the editor with both versions of a line, and save the choice", async () => {
      const id = await newNotes("One\n\nTwo\n");
      const edit = editing(id, "Theirs\n\nTwo\n", [
        (text) => text.replace("One", "Mine"),
        (text) => {
          expect(text).toBe("<<<<<<< yours\nMine\n=======\nTheirs\n>>>>>>> theirs\n\nTwo\n");
          return "Theirs and mine\n\nTwo\n";
        },
      ]);
      const before = drafts(carol.home);
      const ran = await carol.with(edit).svc("inc", "doc", "edit", id);
      expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining("your editor opens with both")]);
      expect(await textOf(id)).toBe("Theirs and mine\n\nTwo\n");
      expect(drafts(carol.home)).toEqual(before);
    });

    test("refuse a choice that was not made, and keep the text", async () => {
      const id = await newNotes("One\n");
      const edit = editing(id, "Theirs\n", [() => "Mine\n", (text) => `${text}\nLater\n`]);
      const ran = await carol.with(edit).svc("inc", "doc", "edit", id);
      expect(ran).toMatchObject({
        code: 1,
        stderr: expect.stringContaining("line 1 of your text is still the marker of a conflict"),
      });
      expect(await textOf(id)).toBe("Theirs\n");
      const [, path = ""] = /To send it: .* -F (.*)\n/.exec(ran.stderr) ?? [];
      expect(readFileSync(path, "utf8")).toContain("Later");
    });

    test("keep the text if the editor fails with both versions", async () => {
      const id = await newNotes("One\n");
      const edit = editing(id, "Theirs\n", [() => "Mine\n", (text) => text]);
      let uses = 0;
      const failing: Partial<Io> = {
        ...edit,
        runOnTerminal: async (...words) => {
          const exit = await edit.runOnTerminal!(...words);
          uses += 1;
          return uses === 1 ? exit : { failed: "ENOENT" };
        },
      };
      const ran = await carol.with(failing).svc("inc", "doc", "edit", id);
      expect([ran.code, ran.stderr]).toEqual([1, expect.stringContaining("did not start (ENOENT)")]);
      const [, path = ""] = /To send it: .* -F (.*)\n/.exec(ran.stderr) ?? [];
      expect(readFileSync(path, "utf8")).toContain("Mine");
    });

    test("take the version that --version names for the base of a piped text", async () => {
      const id = await newNotes("One\n\nTwo\n\nThree\n");
      await piped(erin, "Theirs\n\nTwo\n\nThree\n").svc("inc", "doc", "edit", id, "-");
      const mine = piped(carol, "One\n\nTwo\n\nMine\n");
      expect((await mine.svc("inc", "doc", "edit", id, "--version", "2", "-")).code).toBe(0);
      expect(await textOf(id)).toBe("Theirs\n\nTwo\n\nMine\n");
    });

    test("take the version that was current before stdin was read for the base", async () => {
      const id = await newNotes("One\n\nTwo\n\nThree\n");
      let seen: (() => void) | undefined;
      const hasRead = new Promise<void>((resolve) => {
        seen = resolve;
      });
      const slow = carol.with({
        fetch: async (url, init) => {
          const answer = await fetch(url, init);
          if (url.endsWith("/content")) seen!();
          return answer;
        },
        readStdin: async () => {
          await hasRead;
          await piped(erin, "Theirs\n\nTwo\n\nThree\n").svc("inc", "doc", "edit", id, "-");
          return Buffer.from("One\n\nTwo\n\nMine\n");
        },
      });
      expect((await slow.svc("inc", "doc", "edit", id, "-")).code).toBe(0);
      expect(await textOf(id)).toBe("Theirs\n\nTwo\n\nMine\n");
    });
  });
});
