import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../tests/support/process/until.ts";

/** Interrupted and failing rolls. tests/containers tests with real containers that no request is lost. */

const directory = mkdtempSync(join(tmpdir(), "svc-roll-"));
afterAll(() => rmSync(directory, { recursive: true }));
const containers = join(directory, "containers");
const bin = join(directory, "bin");
mkdirSync(bin);
// Each container is a file with its restarts, state and health. `up` starts the missing containers, with the content of the
// file `begins`.
const docker = `#!/bin/sh
cd ${containers}
case "$*" in
  "compose ps"*) ls ;;
  "compose up"*)
    for word; do case $word in server=*) wanted=\${word#server=} ;; esac; done
    [ ! -e ../broken ] || exit 1
    n=0; while [ "$(ls | wc -l)" -lt "$wanted" ]; do n=$((n + 1)); cp ../begins "new$n"; done ;;
  "ps "*--all) ls ;;
  "ps "*) grep -Lw exited * || true ;;
  *Config.Labels*) echo project ;;
  *RestartCount*Health.Status*) shift 3; for one; do echo "$one $(cat "$one")"; done ;;
  *ExitCode*) echo "exited, exit code 1, 2 restarts" ;;
  *{{.Name}}*) echo "/$4" ;;
  inspect*) ;;
  logs*) for one; do :; done; echo "what $one said" ;;
  "rm -f"*) shift 2; rm "$@" ;;
esac
`;
writeFileSync(join(bin, "docker"), docker, { mode: 0o755 });

beforeEach(() => {
  for (const name of ["containers", "broken", "logs"])
    rmSync(join(directory, name), { recursive: true, force: true });
  mkdirSync(containers);
  for (const name of ["old1", "old2"]) writeFileSync(join(containers, name), "0 running healthy\n");
});
const there = () => readdirSync(containers).sort();
const kept = () => readdirSync(join(directory, "logs/server")).sort();
const newOnesAre = (state: string) => writeFileSync(join(directory, "begins"), `${state}\n`);
const roll = () =>
  Bun.spawn(["sh", join(import.meta.dir, "roll"), "server"], {
    cwd: directory,
    env: { PATH: `${bin}:${process.env.PATH}` },
    stdio: ["ignore", "ignore", "pipe"],
  });

test("healthy new containers replace the old ones, whose logs are kept", async () => {
  newOnesAre("0 running healthy");
  expect(await roll().exited).toBe(0);
  expect(there()).toEqual(["new1", "new2"]);
  expect(kept()).toEqual(["old1.json", "old1.log", "old2.json", "old2.log"]);
  expect(readFileSync(join(directory, "logs/server/old1.log"), "utf8")).toBe("what old1 said\n");
  expect(statSync(join(directory, "logs/server/old1.log")).mode & 0o077).toBe(0);
});

test("a container that was stopped before does not count as new", async () => {
  writeFileSync(join(containers, "stopped"), "0 exited\n");
  newOnesAre("0 running healthy");
  expect(await roll().exited).toBe(0);
  expect(there()).toEqual(["new1", "new2"]);
  expect(kept()).toContain("stopped.log");
});

test.each(["0 exited", "0 dead", "1 running starting", "3 restarting", "0 running unhealthy"])(
  "a new container that is '%s' stops the roll, shows its log, and leaves the old ones running",
  async (state) => {
    newOnesAre(state);
    const rolling = roll();
    expect(await rolling.exited).toBe(1);
    const said = await new Response(rolling.stderr).text();
    expect(said).toContain("roll: new1 (exited, exit code 1, 2 restarts):\nwhat new1 said\n");
    expect(said).toEndWith("roll: a new server failed (see logs/server): the old containers keep running\n");
    expect(there()).toEqual(["old1", "old2"]);
    expect(kept()).toEqual(["new1.json", "new1.log", "new2.json", "new2.log"]);
  },
);

test("if new containers cannot be started, the old ones keep running", async () => {
  writeFileSync(join(directory, "broken"), "");
  const rolling = roll();
  expect(await rolling.exited).toBe(1);
  expect(await new Response(rolling.stderr).text()).toEndWith(
    "the new containers cannot be started: the old containers keep running\n",
  );
  expect(there()).toEqual(["old1", "old2"]);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s before the new containers are healthy removes them, and the old ones keep running",
  async (signal) => {
    newOnesAre("0 running starting");
    const rolling = roll();
    await until("the new ones", () => there().length === 4);
    rolling.kill(signal);
    expect(await rolling.exited).toBe(1);
    expect(await new Response(rolling.stderr).text()).toEndWith(
      "interrupted: the old containers keep running\n",
    );
    expect(there()).toEqual(["old1", "old2"]);
  },
);
