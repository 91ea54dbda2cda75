import { afterAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../tests/support/e2e_until.ts";

/** What it does when it is disturbed. That it loses no request is tried with real containers, in tests/containers. */

const directory = mkdtempSync(join(tmpdir(), "svc-roll-"));
afterAll(() => rmSync(directory, { recursive: true }));
const containers = join(directory, "containers");
const bin = join(directory, "bin");
mkdirSync(bin);
// Each container is a file. `up` starts as many new ones as are missing; the file `health` says how they are.
const docker = `#!/bin/sh
cd ${containers}
case "$1 $2" in
  "compose ps") ls ;;
  "compose up")
    for word; do case $word in server=*) wanted=\${word#server=} ;; esac; done
    [ ! -e ../broken ] || exit 1
    n=0; while [ "$(ls | wc -l)" -lt "$wanted" ]; do n=$((n + 1)); touch "new$n"; done ;;
  inspect*) shift 2; for one; do [ "$one" = "{{.State.Health.Status}}" ] || cat ../health; done ;;
  "rm -f") shift 2; rm "$@" ;;
  rm*) shift; rm "$@" ;;
esac
`;
writeFileSync(join(bin, "docker"), docker, { mode: 0o755 });

beforeEach(() => {
  for (const name of ["containers", "broken"])
    rmSync(join(directory, name), { recursive: true, force: true });
  mkdirSync(containers);
  for (const name of ["old1", "old2"]) writeFileSync(join(containers, name), "");
});
const there = () => readdirSync(containers).sort();
const health = (word: string) => writeFileSync(join(directory, "health"), `${word}\n`);
const roll = () =>
  Bun.spawn(["sh", join(import.meta.dir, "roll"), "server"], {
    env: { PATH: `${bin}:${process.env.PATH}` },
    stdio: ["ignore", "ignore", "pipe"],
  });

test("new ones that are well take the place of the old ones", async () => {
  health("healthy");
  expect(await roll().exited).toBe(0);
  expect(there()).toEqual(["new1", "new2"]);
});

test("new ones that cannot be started: the old ones go on", async () => {
  writeFileSync(join(directory, "broken"), "");
  const rolling = roll();
  expect(await rolling.exited).toBe(1);
  expect(await new Response(rolling.stderr).text()).toEndWith("they cannot be started: the old ones go on\n");
  expect(there()).toEqual(["old1", "old2"]);
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "%s before the new ones are well takes them away again, and the old ones go on",
  async (signal) => {
    health("starting");
    const rolling = roll();
    await until("the new ones", () => there().length === 4);
    rolling.kill(signal);
    expect(await rolling.exited).toBe(1);
    expect(await new Response(rolling.stderr).text()).toEndWith("interrupted: the old ones go on\n");
    expect(there()).toEqual(["old1", "old2"]);
  },
);
