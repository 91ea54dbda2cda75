import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fakeToken } from "../tests/support/cli/fake_server.ts";
import { wideTerminal } from "../tests/support/cli/incident_cli.ts";
import { testIo } from "../tests/support/cli/io.ts";
import type { Io } from "./io.ts";
import { run } from "./run.ts";
import { table } from "./table.ts";

async function linesOf(
  command: string,
  columns: number,
  more: Pick<Io, "fetch"> | object = {},
): Promise<string[]> {
  const stdout = wideTerminal(columns);
  const io = testIo({ ...more, stdout, env: { SVC_TOKEN: fakeToken() } });
  expect([await run(command.split(" "), io), io.out.stderr]).toEqual([0, ""]);
  return stdout.text.trimEnd().split("\n");
}
const headings = ([header = ""]: string[]) => header.split(/ {2,}/);
const widest = (lines: string[]) => Math.max(...lines.map((line) => Bun.stringWidth(line)));

test("a column is cut down to its least width before others are left out", () => {
  const columns = ["Key", { header: "Tries", leaveOut: 1 }, { header: "Error", flexible: true, least: 12 }];
  const at = (width: number) =>
    table(columns, [["a", "1", "no route to host"]], width)
      .trimEnd()
      .split("\n");
  expect(at(24)).toEqual(["Key  Tries  Error", "a    1      no route to…"]);
  expect(at(23)).toEqual(["Key  Error", "a    no route to host"]);
  expect(at(8)).toEqual(["Key  Er…", "a    no…"]);
});

test("columns without a value are left out before any other is cut", () => {
  const columns = ["Key", { header: "Role", flexible: true }, "Tries", "Error"];
  const at = (width: number) => table(columns, [["a", "orders-db-admin", "", ""]], width).split("\n")[0];
  expect(at(34)).toBe("Key  Role             Tries  Error");
  expect(at(33)).toBe("Key  Role");
  expect(table(columns, [], 12)).toBe("Key  …  Tri…\n");
});

describe("tables fit the terminal", () => {
  test("svc scheduler list, with all columns at 80", async () => {
    const lines = await linesOf("scheduler list", 80);
    expect(headings(lines)).toEqual(["Task Name", "Period", "At Time"]);
    expect(widest(lines)).toBeLessThanOrEqual(80);
    expect(widest(await linesOf("scheduler list", 40))).toBeLessThanOrEqual(40);
  });

  test.each(["plugin list", "server routes"])(
    "but not svc %s, whose descriptions and paths are of no use if they are cut",
    async (command) => {
      expect(await linesOf(command, 40)).toEqual(await linesOf(command, 500));
    },
  );

  const role = {
    slug: "orders-db",
    disabled: false,
    approval: "any_of_group",
    groups: ["*"],
    default_duration: 3600,
    max_duration: 28_800,
    incident_required: true,
    description: "Read and write the orders of all shops",
  };
  const common = { id: 1234, role: role.slug, user: "alice@example.com", incident: "INC-1044" };
  const at = "2026-01-02T03:04:05Z";
  const items = {
    list: role,
    requests: { ...common, duration: 5400, state: "Approved", break_glass: true, reason: "Rows are missing" },
    leases: {
      ...common,
      state: "Revoking",
      expires_at: at,
      end_reason: "incident_closed",
      attempts: 7,
      next_attempt_at: at,
      error: "the target does not answer",
    },
    "authority list": {
      kind: "ssh",
      name: "default",
      fingerprint: `SHA256:${"x".repeat(43)}`,
      active_at: at,
      expires_at: at,
      revoked_at: at,
    },
  };
  test.each([
    ["list", ["Role", "Approval", "Default", "Longest", "Incident", "Description"], ["Role", "Approval"]],
    ["requests", ["Id", "Role", "User", "Incident", "For", "State", "Reason"], ["Id", "Role"]],
    ["leases", ["Id", "Role", "State", "Expires", "Last Error"], ["Id", "Role", "State"]],
    ["authority list", ["Kind", "Name", "Fingerprint", "State"], ["Fingerprint"]],
  ] as const)("svc access %s", async (command, at80, at40) => {
    const fetch: Io["fetch"] = async (url) =>
      Response.json(
        url.endsWith("/whoami")
          ? { user: common.user, groups: [] }
          : { items: [items[command]], next_cursor: null },
      );
    const of = (columns: number) => linesOf(`access ${command}`, columns, { fetch });
    for (const [columns, expected] of [
      [80, at80],
      [40, at40],
    ] as const) {
      const lines = await of(columns);
      expect(headings(lines).slice(0, expected.length)).toEqual([...expected]);
      expect(widest(lines)).toBeLessThanOrEqual(columns);
    }
  });

  test("every command prints its table with printTable, but for values that are only useful as a whole", () => {
    const own = [...new Bun.Glob("**/*.ts").scanSync(import.meta.dir)].filter((file) => {
      const text = readFileSync(join(import.meta.dir, file), "utf8");
      return /stdout\.write\(\s*table\(/.test(text);
    });
    expect(own.filter((file) => !/^table(\.test)?\.ts$/.test(file)).sort()).toEqual([
      "commands/plugin/list.ts",
      "commands/server/config.ts",
      "commands/server/routes.ts",
    ]);
  });
});
