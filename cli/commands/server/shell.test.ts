import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { configHome } from "../../../tests/support/cli/io.ts";
import { svc, svcOnTerminal } from "../../../tests/support/cli/process.ts";
import { createTestDatabase, type TestDatabase } from "../../../tests/support/database/database.ts";

let database: TestDatabase;
let env: Record<string, string>;
beforeAll(async () => {
  database = await createTestDatabase();
  env = { SVC_DATABASE_URL: database.url, XDG_STATE_HOME: configHome(), NO_COLOR: "1" };
});
afterAll(() => database[Symbol.asyncDispose]());

const evaluate = (code: string, more: Record<string, string> = {}, ...args: string[]) =>
  // The scripts import files of svc.
  svc(["server", "shell", "--eval", code, ...args], { ...env, ...more }, join(import.meta.dir, "../../.."));

const parts = [
  "await db.$count(tables.incident)",
  "(await sql`select 41 as n`)[0].n + 1",
  "(await app.handle(new Request(config.publicUrl + '/healthcheck'))).status",
  "typeof (await services.document).createDocument",
  "clock.now() instanceof Date",
  "context.db === db",
];
test.each([
  [`const all: unknown[] = [${parts}]; String(all)`, "0,42,200,function,true,true"],
  ["import { Forbidden } from './platform/errors.ts'; new Forbidden('x').code", "forbidden"],
  ["await sql`select 41 as n`", "Result(1) [ { n: 41 } ]"],
  ["({ rows: [await sql`select 41 as n`] })", "{ rows: [ Result(1) [ { n: 41 } ] ] }"],
])("--eval: %s", async (code, value) => {
  expect(await evaluate(code)).toEqual({ code: 0, stdout: `${value}\n`, stderr: "" });
});

test("app answers at the public address, also with https", async () => {
  const code = "(await app.handle(new Request(config.publicUrl + '/healthcheck'))).status";
  const { stdout } = await evaluate(code, { SVC_PUBLIC_URL: "https://svc.example.com" });
  expect(stdout).toBe("200\n");
});

test("--eval without a value prints only the output of the code", async () => {
  expect(await evaluate("console.log('said'); undefined")).toEqual({ code: 0, stdout: "said\n", stderr: "" });
});

test("an exception of a script is shown in full, and the exit code is 1", async () => {
  const { code, stdout, stderr } = await evaluate("throw new Error('of mine')");
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("error: of mine");
  expect(stderr).toEndWith("svc: The script failed: its error is above\n");
  expect((await evaluate("let x =")).code).toBe(1);
});

test("a pipe is run as one script", async () => {
  const main = join(import.meta.dir, "../../main.ts");
  const script =
    "const [row] = await sql`select 1 as one`;\nfunction twice(n: number) {\n  return 2 * n;\n}\ntwice(row.one)\n";
  const child = Bun.spawn([process.execPath, "--no-env-file", main, "server", "shell"], {
    env: { PATH: process.env.PATH, ...env },
    stdin: new Blob([script]),
    stdout: "pipe",
  });
  expect(await new Response(child.stdout).text()).toBe("2\n");
  expect(await child.exited).toBe(0);
});

test("a database on another machine requires a confirmation", async () => {
  const far = { SVC_DATABASE_URL: "postgres://svc:hunter2@db.example/production" };
  const { code, stdout, stderr } = await evaluate("1", far);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toBe(
    "svc: The database production is on db.example, not on this machine. There is no terminal for the confirmation: add --yes\n",
  );
  expect((await evaluate("1", far, "--yes")).stdout).toBe("1\n");
  const terminal = svcOnTerminal(["server", "shell"], { ...env, ...far });
  await terminal.shows(/To continue, type its name \(production\): /);
  terminal.press("staging\r");
  expect(await terminal.exitCode()).toBe(1);
  expect(terminal.output()).toContain("The name does not match");
});

test("without a database, it names the missing variable", async () => {
  const { code, stderr } = await evaluate("1", { SVC_DATABASE_URL: "" });
  expect(code).toBe(1);
  expect(stderr).toContain("SVC_DATABASE_URL is not set");
});

test("on a terminal, it has a banner, await, multi-line input and a history, and survives errors", async () => {
  const terminal = svcOnTerminal(["server", "shell"], env);
  await terminal.shows(/svc shell:[\s\S]*config[\s\S]*services[\s\S]*svc> /);
  const type = async (line: string, answer: RegExp) => {
    terminal.press(`${line}\r`);
    await terminal.shows(answer);
  };
  await type("const rows = await sql`select 41 as n`", /n: 41/);
  await type("rows[0].n + 1", /\n42\r?\n/);
  await type("function three() {", /\n\S*\| /);
  await type("return 3 }", /undefined/);
  await type("three() * 3", /\n9\r?\n/);
  await type("nope.nope", /ReferenceError: nope is not defined/);
  await type("three() * 4", /\n12\r?\n/);
  // Each of these lines continues; an unclosed quote never does.
  for (const [line, next, answer] of [
    ["class Four {", "four = 4 }", /\[class Four\]/],
    ["`one", "two`", /'one\\ntwo'/],
    ["/* five", "*/ 555", /\n555\r?\n/],
    ["clock.", "now() instanceof Date && 666", /\n666\r?\n/],
  ] as const) {
    const seen = terminal.output().length;
    terminal.press(`${line}\r`);
    await terminal.shows(new RegExp(`^[\\s\\S]{${seen}}[\\s\\S]*\\n\\S*\\| `));
    await type(next, answer);
  }
  await type("'of seven", /SyntaxError: Unterminated string literal/);
  await type('1 "end of file"', /SyntaxError: Expected ";" but found/);
  await type("1 'to terminate multi-line comment'", /found "'to terminate multi-line comment'"/);
  await type("throw new Error('Unexpected end of file')", /Uncaught Error: Unexpected end of file/);
  await type("throw null", /Error: null was thrown/);
  await type("'on with ' + 8", /'on with 8'/);
  terminal.press(".exit\r");
  expect(await terminal.exitCode()).toBe(0);
  const file = join(env.XDG_STATE_HOME!, "svc/shell_history");
  expect(readFileSync(file, "utf8")).toContain("rows[0].n + 1");
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
});

test("syntax errors of a script are listed with their lines", async () => {
  const script = "let x = 1;\nlet x = 2;\nfoo(];\n";
  const faults = (name: string) =>
    `svc: ${name}:2:5: "x" has already been declared\nsvc: ${name}:3:5: Unexpected ]\n`;
  expect(await evaluate(script)).toEqual({ code: 1, stdout: "", stderr: faults("--eval") });
  const main = join(import.meta.dir, "../../main.ts");
  const piped = Bun.spawn([process.execPath, "--no-env-file", main, "server", "shell"], {
    env: { PATH: process.env.PATH, ...env },
    stdin: new Blob([script]),
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await new Response(piped.stderr).text()).toBe(faults("<stdin>"));
});
