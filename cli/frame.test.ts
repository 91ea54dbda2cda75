import { describe, expect, test } from "bun:test";
import { version } from "../package.json";
import { runHere as svc } from "../tests/support/cli/io.ts";
import { svc as spawned } from "../tests/support/cli/process.ts";

const COMMANDS = ["up", "login", "logout", "whoami", "token", "server", "database", "idp"];

describe("the version", () => {
  for (const option of ["--version", "-V"]) {
    test(option, async () => {
      expect(await spawned([option])).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
      const { stdout } = await spawned([option], { SVC_BUILD: "v2-3-g8489856" });
      expect(stdout).toBe(`${version} (v2-3-g8489856)\n`);
    });
  }
});

describe("help", () => {
  test("svc and svc --help print the same to stdout", async () => {
    const help = await svc(["--help"]);
    expect(help).toMatchObject({ code: 0, stderr: "" });
    expect(help.stdout).toStartWith(
      "Manage incidents from the command line\n\nUsage: svc COMMAND\n\nCommands:\n  up         ",
    );
    for (const name of COMMANDS) expect(help.stdout).toContain(`\n  ${name} `);
    expect(await svc([])).toEqual(help);
    expect(await svc(["-h"])).toEqual(help);
  });

  test("of a group", async () => {
    expect(await svc(["idp", "--help"])).toEqual({
      code: 0,
      stderr: "",
      stdout: `Run the trial sign-in provider

Usage: svc idp COMMAND

Commands:
  start   Start the trial sign-in provider

Options:
  -h, --help   Show this help

Run \`svc idp COMMAND --help\` for the help of a command.
`,
    });
  });

  test("of a group names a command once, with its other names", async () => {
    const { stdout } = await svc(["incident", "--help"]);
    expect(stdout).toContain("Commands:\n  report, declare   Report an incident\n  list  ");
  });

  test("of a command, without its argument", async () => {
    const { code, stdout, stderr } = await svc(["server", "start", "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toStartWith(`Start the server

Usage: svc server start APP [options]

Arguments:
  APP   Application to serve: <module>:<attribute>

Options:
  --host TEXT                           Address to listen on (default: 127.0.0.1)
`);
    expect(stdout).toContain("\n  --proxy-headers                       Trust X-Forwarded-For");
  });

  test("marks an argument that can be repeated", async () => {
    const usage = async (line: string) => (await svc([...line.split(" "), "--help"])).stdout.split("\n")[2];
    expect(await usage("incident add")).toBe("Usage: svc incident add USER... [options]");
    expect(await usage("incident role give")).toBe("Usage: svc incident role give USER [ROLE] [options]");
    expect(await usage("incident task assign")).toBe(
      "Usage: svc incident task assign TASK USER... [options]",
    );
  });

  test("shows both forms of a negatable option", async () => {
    expect((await svc(["login", "--help"])).stdout).toContain("\n  --[no-]browser   ");
  });
});

describe("an invalid command line exits with 2, and prints the error and the usage to stderr", () => {
  const wrong = async (line: string, fault: string, usage: string, more: string) => {
    const stderr = `svc: ${fault}\nUsage: ${usage}\nRun \`${more} --help\` for more.\n`;
    expect(await svc(line.split(" "))).toEqual({ code: 2, stdout: "", stderr });
  };
  const start = ["svc server start APP [options]", "svc server start"] as const;

  test("unknown command", () => wrong("frobnicate", "unknown command: frobnicate", "svc COMMAND", "svc"));
  test("unknown command, with a suggestion", () =>
    wrong("lgoin --force", "unknown command: lgoin. Did you mean login?", "svc COMMAND", "svc"));
  test("unknown command in a group", () =>
    wrong(
      "database upgrde",
      "unknown command: upgrde. Did you mean upgrade?",
      "svc database COMMAND",
      "svc database",
    ));
  test("unknown command with --help", () =>
    wrong("frobnicate --help", "unknown command: frobnicate", "svc COMMAND", "svc"));
  test("missing command, with those of the group", async () => {
    const { stdout: help } = await svc(["idp", "--help"]);
    expect(await svc(["idp"])).toEqual({ code: 2, stdout: "", stderr: `svc: missing command\n\n${help}` });
  });
  test("unknown option", () =>
    wrong(
      "login --forse",
      "unknown option: --forse. Did you mean --force?",
      "svc login [USER] [options]",
      "svc login",
    ));
  test("unknown short option", () =>
    wrong("whoami -x", "unknown option: -x", "svc whoami [options]", "svc whoami"));
  test("an option before its command", () =>
    wrong("--server http://a.example login", "unknown option: --server", "svc COMMAND", "svc"));
  test("missing argument", () => wrong("server start", "missing argument: APP", ...start));
  test("unexpected argument", () =>
    wrong("login alice bob", "unexpected argument: bob", "svc login [USER] [options]", "svc login"));
  test("unexpected argument after --", () =>
    wrong("token -- bob", "unexpected argument: bob", "svc token [options]", "svc token"));
  test("an option without its value", () =>
    wrong("server start a:b --host", "--host needs a value", ...start));
  test.each(["--server=", "--server "])("an option with an empty value: %p", (option) =>
    wrong(`whoami ${option}`, "--server needs a value", "svc whoami [options]", "svc whoami"),
  );
  test("a flag with a value", () =>
    wrong("server start a:b --proxy-headers=false", "--proxy-headers takes no value", ...start));
  test("an invalid choice", () =>
    wrong(
      "server start a:b --log-level loud",
      "--log-level must be one of trace, debug, info, warn, warning, error, fatal, critical",
      ...start,
    ));
  test("an invalid port", () =>
    wrong("server start a:b --port 65536", '--port: "65536" is not a port (0 to 65535)', ...start));
  test("an application without its attribute", () =>
    wrong("server start main.ts", 'APP: "main.ts" is not <module>:<attribute>', ...start));
});
