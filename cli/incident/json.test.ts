import { expect, test } from "bun:test";
import { join } from "node:path";
import { cliUser } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import type { Io } from "../io.ts";

let { server, admin } = {} as IncidentServer;
useIncidentServer(
  (given) => {
    ({ server, admin } = given);
  },
  { pluginDocument: "markdown" },
);

const page = await Bun.file(join(import.meta.dir, "../../docs/incidents.md")).text();

/** The fields that docs/incidents.md names for each command. */
const documented = new Map(
  [...page.matchAll(/^\| (`.+`) \| (.+) \|$/gm)].flatMap(([, commands = "", fields = ""]) =>
    wordsIn(commands).map((command) => [command, wordsIn(fields)] as const),
  ),
);

function wordsIn(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);
}

/** Names of a list's items, as of an object. */
function fieldsIn(value: unknown): string[] {
  const one = value as Record<string, unknown>;
  const nested = Array.isArray(one.items) ? (one.items as object[]).slice(0, 1) : [];
  return [one, ...nested].flatMap((part) => Object.keys(part));
}

test("--json prints the fields of docs/incidents.md", async () => {
  const [alice, erin] = [
    await cliUser(server, "alice@example.com", ["admin"]),
    await cliUser(server, "erin@example.com"),
  ];
  const unchecked = new Set(documented.keys());
  const check = async (command: string, ...args: string[]) => {
    const person = ["join", "leave", "role take", "role drop"].includes(command) ? erin : alice;
    const words = command.startsWith("svc ") ? command.slice(4) : `incident ${command}`;
    const ran = await person.svc(...words.split(" "), ...args, "--json");
    expect([command, ran.code, ran.stderr.includes('"error"')]).toEqual([command, 0, false]);
    const value = JSON.parse(ran.stdout.split(command === "watch" ? "\n" : "\0")[0]!);
    const wanted = documented.get(command)!.filter((field) => field !== "report_due_at");
    expect(fieldsIn(value), command).toEqual(expect.arrayContaining(wanted));
    unchecked.delete(command);
    return value;
  };
  const { name } = await check("report", "Documented", "-p", "urgent", "--use");
  erin.env.SVC_INCIDENT = name;
  await check("use", name);
  await check("current");
  await check("list");
  await check("add", "erin@example.com", "frank@example.com");
  await check("remove", "erin@example.com");
  await check("join");
  await check("role take", "scribe");
  await check("role drop", "scribe");
  await check("leave");
  await check("role give", "frank@example.com", "scribe");
  const { id: entry } = await check("note", "Text");
  await check("amend", `e${entry}`, "Other text");
  await check("history", `e${entry}`);
  await check("withdraw", `e${entry}`, "--yes");
  await check("redact", `e${entry}`, "--reason", "A password", "--yes");
  await check("say", "INC-1", "Text");
  await check("messages", "INC-1");
  await check("svc search", "Documented");
  await check("update", "-c", "Bad");
  await check("link", "INC-1");
  await check("unlink", "INC-1");
  expect((await admin.call("POST", "/services/", { name: "Database" })).http).toBe(201);
  await check("affected add", "Database");
  await check("affected remove", "Database");
  const { id } = await check("task add", "Do it");
  await check("task list");
  await check("task assign", String(id), "frank@example.com");
  await check("task done", String(id));
  await check("task reopen", String(id));
  await check("doc new", "Log", "--link", "https://docs.example/1");
  await check("doc list");
  const text = join(alice.home, "notes.md");
  await Bun.write(text, "Text");
  const { id: notes } = await check("doc new", "Notes", "-F", text);
  await check("doc show", String(notes));
  await Bun.write(text, "Other");
  await check("doc edit", String(notes), "-F", text);
  await check("doc history", String(notes));
  await check("doc redact", String(notes), "--version", "2", "--reason", "A password", "--yes");
  await check("stable");
  await check("edit", "--title", "Renamed");
  await check("status");
  const gone: Partial<Io> = { fetch: () => Promise.reject(new Error("gone")) };
  expect((await alice.with(gone).svc("inc", "report", "Lost", "-p", "urgent")).code).toBe(1);
  await check("drafts");
  await check("view");
  await check("export");
  await check("postmortem");
  await check("close", "-r", "Done");
  await check("watch", name, "--until", "closed");
  await check("reopen");
  expect([...unchecked]).toEqual([]);
});
