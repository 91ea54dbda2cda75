import { afterAll, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** With fake programs: the state of the engine is the files of a folder. */

const directory = mkdtempSync(join(tmpdir(), "svc-engine-"));
afterAll(() => rmSync(directory, { recursive: true }));
const bin = join(directory, "bin");
const file = (name: string) => join(directory, name);
const starter = file("start.sh");
const kinds = ["containers", "networks", "volumes", "images", "nameless"];

beforeEach(() => {
  rmSync(directory, { recursive: true });
  for (const name of ["bin", ...kinds]) mkdirSync(file(name), { recursive: true });
  for (const name of ["bash", "grep", "ls", "rm", "touch"]) symlinkSync(Bun.which(name)!, join(bin, name));
});

function program(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\ncd ${directory}\n${script}`, { mode: 0o755 });
}

/** The engine runs if the file `engine` exists, and starts by creating it. */
function engine(starts: string): void {
  program(
    "docker",
    `case "$1 $2" in
  "info "*) [ -e engine ] || { echo "ERROR: no daemon" >&2; echo "a second line" >&2; exit 1; } ;;
  "ps --all") ls containers ;;
  "network ls") ls networks ;;
  "volume ls") ls volumes ;;
  "image ls") case "$3" in --format) ls images ;; *) ls nameless ;; esac ;;
  "rm --force") shift 3; cd containers; rm -r "$@" ;;
  "network rm") shift 2; cd networks; rm "$@" ;;
  "volume rm") shift 2; cd volumes; rm "$@" ;;
  "image rm") shift 2; [ "$1" != --force ] || shift; for one; do rm -f "images/$one" "nameless/$one"; done ;;
esac
`,
  );
  writeFileSync(starter, `cd ${directory}\ncase $1 in start) ${starts} ;; stop) rm engine ;; esac\n`);
}

/** The output of a process that does this with an engine, on a machine with only the programs above. */
function say(script: string, user = 0): string {
  const code = `
import { ensureEngine, NoEngineError } from "${join(import.meta.dir, "engine.ts")}";
import { leftoversOf } from "${join(import.meta.dir, "engine_leftovers.ts")}";
import { existsSync, writeFileSync } from "node:fs";
process.getuid = () => ${user};
try { ${script} } catch (error) { console.log(error instanceof NoEngineError ? "none" : "wrong", error.message); }`;
  const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", code], {
    env: { PATH: bin },
    cwd: directory,
  });
  return stdout.toString() + stderr.toString();
}
const use = `{ using engine = ensureEngine("${starter}"); console.log("used", existsSync("engine")); }`;

test("stops an engine that was started for the tests, and leaves one that ran before", () => {
  engine("touch engine");
  expect(say(use)).toBe("used true\n");
  expect(existsSync(file("engine"))).toBe(false);
  writeFileSync(file("engine"), "");
  expect(say(use)).toBe("used true\n");
  expect(existsSync(file("engine"))).toBe(true);
});

const none = "none The tests of the containers need a Docker engine, and none can be started here: ";

test("reports in one line if no engine can be started", () => {
  engine("exit 1");
  expect(say(use, 1000)).toBe(`${none}only root can start one\n`);
  // Installed, but refused by the kernel.
  engine("echo iptables: Permission denied >&2; echo did not start >&2; exit 1");
  program("dockerd", "");
  expect(say(use)).toBe(`${none}iptables: Permission denied; did not start\n`);
  rmSync(starter);
  expect(say(use)).toBe(`${none}ERROR: no daemon; a second line\n`);
});

test("fails if the engine cannot be used or installed", () => {
  engine("touch engine; echo no such image >&2; exit 1");
  program("dockerd", "");
  expect(say(use)).toBe("wrong The Docker engine cannot be used:\nno such image\n");
  engine("echo no route to host >&2; exit 1");
  rmSync(join(bin, "dockerd"));
  rmSync(file("engine"));
  expect(say(use)).toBe("wrong The Docker engine cannot be used:\nno route to host\n");
});

test("removes everything that a run created, and nothing else", () => {
  engine("exit 0");
  const [one, other] = ["svc-test-00000001", "svc-test-00000002"];
  const make = (kind: string, ...names: string[]) => {
    for (const name of names) writeFileSync(file(`${kind}/${name}`), "");
  };
  const left = () => kinds.map((kind) => readdirSync(file(kind)).sort());
  const runs = (name: string) =>
    say(`{ using left = leftoversOf("${name}"); writeFileSync("nameless/of-${name}", ""); }`);
  make("nameless", "before");
  for (const kind of kinds.slice(0, 4)) make(kind, `a-${one}-${kind}`, `a-${other}-${kind}`, "somebody's");
  expect(runs(one)).toBe("");
  // Another run may be building on the images without a name.
  expect(left()).toEqual([
    [`a-${other}-containers`, "somebody's"],
    [`a-${other}-networks`, "somebody's"],
    [`a-${other}-volumes`, "somebody's"],
    [`a-${other}-images`, "somebody's"],
    ["before", `of-${one}`],
  ]);
  expect(runs(other)).toBe("");
  const rest = ["somebody's"];
  expect(left()).toEqual([rest, rest, rest, rest, ["before", `of-${one}`]]);
});
