import { expect, test } from "bun:test";
import { cliUser, wideTerminal } from "../../../tests/support/cli/incident_cli.ts";
import { startTestServer } from "../../../tests/support/http/server.ts";

test("users list and end their sign-ins, and admins those of others", async () => {
  await using server = await startTestServer();
  const alice = await cliUser(server, "alice@example.com");
  const root = await cliUser(server, "root@example.com", ["admin"]);
  const listed = async (user: typeof alice, ...more: string[]) => {
    const ran = await user.svc("sign-ins", "list", "--json", ...more);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    return JSON.parse(ran.stdout).items as Record<string, unknown>[];
  };
  expect((await listed(alice)).map(({ kind, is_current }) => [kind, is_current]).sort()).toEqual([
    ["browser", false],
    ["terminal", true],
  ]);
  expect(await listed(alice, "--user", "root")).toEqual([]);
  expect(await listed(root)).toHaveLength(4);
  for (const { id } of await listed(root))
    expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
  const stdout = wideTerminal(200);
  await alice.with({ stdout }).svc("sign-ins", "list");
  expect(stdout.text).toMatch(/^ID +User +Kind +Admin +Created +Expires\n/);
  expect(stdout.text).toMatch(/alice@example.com +terminal \* +no /);

  const idOf = async (kind: string) =>
    (await listed(root, "--user", "alice")).find((one) => one.kind === kind)!.id as string;
  const browser = await idOf("browser");
  expect(await alice.svc("sign-ins", "revoke", browser)).toMatchObject({
    code: 0,
    stdout: `Ended ${browser}\n`,
  });
  const [ofRoot] = await listed(root, "--user", "root");
  for (const [words, code] of [
    [[], 2],
    [["7"], 2],
    [[browser, "--user", "alice"], 2],
    [[browser], 1],
    [[ofRoot!.id as string], 1],
    [["--user", "root"], 1],
  ] as const)
    expect([words, (await alice.svc("sign-ins", "revoke", ...words)).code]).toEqual([words, code]);
  expect(await root.svc("sign-ins", "revoke", "--user", "alcie")).toEqual({
    code: 0,
    stdout: "",
    stderr: "No sign-ins of alcie found.\n",
  });
  expect((await root.svc("sign-ins", "revoke", "--user", "alice")).stdout).toBe("Ended 1\n");
  expect((await alice.svc("whoami")).code).toBe(4);
});
