import { describe, expect, test } from "bun:test";
import { ids } from "../../tests/support/cli/database.ts";
import { runHere as svc } from "../../tests/support/cli/io.ts";
import { root } from "../tree.ts";
import { complete } from "./complete.ts";

/** The words that may follow; the last of `line` is what is being typed. */
const after = async (...line: string[]) => (await complete(line, root)).candidates.map(({ word }) => word);

describe("candidates", () => {
  test("commands, those of a group, and their beginnings", async () => {
    expect(await after("")).toEqual(Object.keys(root.commands));
    expect(await after("data")).toEqual(["database"]);
    expect(await after("database", "d")).toEqual(["downgrade", "dump", "drop"]);
    expect(await after("plugins", "")).toEqual(["list"]);
  });

  test("options, except given ones that cannot be repeated", async () => {
    expect(await after("--")).toEqual(["--help", "--version", "--certificate"]);
    expect(await after("--certificate", "whoa")).toEqual(["whoami"]);
    expect(await after("--certificate", "certificates", "")).toEqual(["list", "revoke"]);
    expect(await after("database", "--")).toEqual(["--help"]);
    const start = ["server", "start", "server/main:app"];
    expect(await after(...start, "--ssl-")).toEqual(["--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs"]);
    expect(await after(...start, "--ssl-keyfile", "k.pem", "--ssl-")).toEqual([
      "--ssl-certfile",
      "--ssl-ca-certs",
    ]);
    expect(await after(...start, "--ssl-keyfile=k.pem", "--ssl-k")).toEqual([]);
    expect(await after(...start, "--header", "a: b", "--hea")).toEqual(["--header"]);
    expect(await after(...start, "--no-a")).toEqual(["--no-access-log"]);
    expect(await after(...start, "--superv")).toEqual([]);
  });

  test("values of options, as the next word or after an equals sign", async () => {
    expect(await after("scheduler", "start", "--log-level", "")).toEqual([
      "trace",
      "debug",
      "info",
      "warn",
      "warning",
      "error",
      "fatal",
      "critical",
    ]);
    expect(await after("scheduler", "start", "--log-level=e")).toEqual(["--log-level=error"]);
    expect(await after("scheduler", "start", "--eager=")).toEqual([]);
    expect(await after("database", "revision", "-m", "x", "--autog")).toEqual(["--autogenerate"]);
  });

  test("tasks, revisions, shells", async () => {
    expect(await after("scheduler", "explain", "incident-task")).toEqual([
      "incident-task-reminders",
      "incident-task-sync",
    ]);
    expect(await after("scheduler", "explain", "term-sync", "")).toEqual([]);
    expect((await after("database", "downgrade", "2026")).toSorted()).toEqual(ids);
    expect(await after("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await after("help", "data")).toEqual(["database"]);
    expect(await after("help", "database", "")).toEqual([]);
  });

  test("files and folders are completed by the shell", async () => {
    const start = ["server", "start", "a:b"];
    expect(await complete([...start, "--ssl-keyfile", ""], root)).toEqual({
      candidates: [],
      places: "files",
    });
    expect((await complete([...start, "--uds="], root)).places).toBe("files");
    expect((await complete([...start, "--reload-dir", ""], root)).places).toBe("folders");
    expect((await complete(["up", "--data-dir", ""], root)).places).toBe("folders");
    expect((await complete([...start, ""], root)).places).toBeUndefined();
  });

  test("nothing after an unknown command", async () => {
    expect(await after("frobnicate", "")).toEqual([]);
    expect(await after("database", "__proto__", "")).toEqual([]);
    expect(await after("constructor", "")).toEqual([]);
    expect(await after("scheduler", "start", "--nope", "--log-level", "d")).toEqual(["debug"]);
    // After `--` there are no options.
    expect(await after("scheduler", "start", "--", "--l")).toEqual([]);
    expect(await after("scheduler", "start", "--", "calc")).toEqual(["calculate-incident-cost"]);
  });
});

test("the answer to a shell: the kind of path, then one candidate with its description per line", async () => {
  expect(await svc(["__complete", "database", "upg"])).toEqual({
    code: 0,
    stderr: "",
    stdout: "words\nupgrade\tUpgrade the schema to a newer revision\n",
  });
  expect(await svc(["__complete"])).toMatchObject({ code: 0, stdout: expect.stringContaining("\nlogin\t") });
});

test("a shell without a script", async () => {
  const { code, stderr } = await svc(["completion", "tcsh"]);
  expect([code, stderr.split("\n")[0]]).toEqual([2, "svc: SHELL must be one of bash, zsh, fish"]);
});
