import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FakeServer } from "../tests/support/cli/fake_server.ts";
import { configHome } from "../tests/support/cli/io.ts";
import { spawnSvc } from "../tests/support/cli/process.ts";

const ROOT = join(import.meta.dir, "..");
const RECORDER = join(import.meta.dir, "../tests/support/cli/record_modules.ts");
const server = new FakeServer();
server.decide("success");
afterAll(() => server.stop());

/** The packages, and the folders of ours, that a command line loads, as the process itself sees it. */
async function loadedBy(...args: string[]): Promise<string[]> {
  const home = configHome();
  const log = join(home, "modules");
  const env = { XDG_CONFIG_HOME: home, SVC_TEST_MODULES: log, BROWSER: "true", SVC_SERVER: server.url };
  const token: Record<string, string> = args[0] === "whoami" ? { SVC_TOKEN: server.token } : {};
  const { code, stderr } = await spawnSvc(args, { ...env, ...token }, RECORDER).finished;
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  const names = readFileSync(log, "utf8").trim().split("\n").map(owner);
  return [...new Set(names)].sort();
}

function owner(path: string): string {
  const parts = path.slice(ROOT.length + 1).split("/");
  const start = parts.lastIndexOf("node_modules") + 1;
  if (start > 0) return parts.slice(start, start + (parts[start]!.startsWith("@") ? 2 : 1)).join("/");
  return parts.length > 1 ? `${parts[0]}/` : parts[0]!;
}

test("the version loads the name of the build and nothing else", async () => {
  expect(await loadedBy("--version")).toEqual(["cli/", "platform/"]);
});

test("help loads gunshi and nothing else", async () => {
  const expected = ["cli/", "gunshi", "platform/"];
  // The help of `svc up` names the trial users.
  expect(await loadedBy("--help")).toEqual([...expected, "trial/"]);
  expect(await loadedBy("database", "--help")).toEqual(expected);
  expect(await loadedBy("server", "--help")).toEqual(expected);
  expect(await loadedBy("scheduler", "--help")).toEqual(expected);
  expect(await loadedBy("login", "--help")).toEqual(expected);
  expect(await loadedBy("database", "upgrade", "--help")).toEqual(expected);
  expect(await loadedBy("server", "start", "--help")).toEqual(expected);
});

test("login loads neither the server nor the database", async () => {
  // Off a terminal there is no spinner, and BROWSER needs no opener.
  expect(await loadedBy("login", "alice")).toEqual(["cli/", "gunshi", "platform/"]);
});

test("whoami loads neither the server nor a library for requests", async () => {
  expect(await loadedBy("whoami")).toEqual(["cli/", "gunshi", "platform/"]);
});
