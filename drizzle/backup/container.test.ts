import { beforeAll, describe, expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { TestClock } from "../../tests/support/clock.ts";
import {
  contentOf,
  createHostile,
  hostileRevisions,
  temporaryDirectory,
  using,
} from "../../tests/support/database/backup.ts";
import { type DebianServer, debianServer } from "../../tests/support/database/debian_postgres.ts";
import { descendants, untilGone } from "../../tests/support/process/processes.ts";
import { containerAt } from "./container.ts";
import { dump } from "./dump.ts";
import { restore } from "./restore.ts";

/**
 * A fake container engine: `docker ps` prints `list`, and `docker exec` runs the tools in `tools`, with only the
 * variables passed to it. It logs its calls. The container tests use the real engine.
 */
async function fakeEngine(directory: string, list: string, tools: string): Promise<string> {
  const script = `#!/bin/bash
    echo "$*" >> ${directory}/calls
    if [ "$1" = ps ]; then /bin/cat ${directory}/list; exit; fi
    [ "$1" = exec ] || exit 1
    shift
    given=(PATH=${tools}:/usr/bin:/bin)
    while [ "\${1#-}" != "$1" ]; do
      if [ "$1" = --env ]; then shift; given+=("$1=\${!1}"); fi
      shift
    done
    shift
    exec /usr/bin/env -i "\${given[@]}" "$@"`;
  await Bun.write(join(directory, "list"), list);
  await Bun.write(join(directory, "docker"), script);
  await chmod(join(directory, "docker"), 0o755);
  return directory;
}

describe("the server's container", () => {
  const at = async (list: string, server: { host: string; port: number }) => {
    await using directory = await temporaryDirectory();
    return await containerAt(server, { PATH: await fakeEngine(directory.path, list, "/nowhere") });
  };
  const local = { host: "127.0.0.1", port: 5433 };

  test.each([
    ["a1 0.0.0.0:5433->5432/tcp, :::5433->5432/tcp", { id: "a1", port: 5432 }],
    ["a1 127.0.0.1:5433->5432/tcp", { id: "a1", port: 5432 }],
    ["a1 [::]:5433->6000/tcp", { id: "a1", port: 6000 }],
    [
      "web 0.0.0.0:8000->8000/tcp\na1 0.0.0.0:9000->9000/tcp, 0.0.0.0:5433->5432/tcp",
      { id: "a1", port: 5432 },
    ],
    ["a1 0.0.0.0:15433->5432/tcp", undefined],
    ["a1 5433/tcp", undefined],
    ["a1 0.0.0.0:5433->5432/udp", undefined],
    ["", undefined],
  ])("is found in docker ps: %p", async (list, container) => {
    expect(await at(list, local)).toEqual(container);
  });

  test("is not assumed for a remote server, whatever is published here", async () => {
    for (const host of ["db.example.com", "10.0.0.7", "127.0.0.1.example.com", "localhost.example.com"])
      expect(await at("a1 0.0.0.0:5433->5432/tcp", { ...local, host })).toBeUndefined();
    for (const host of ["localhost", "::1", "127.1.2.3"])
      expect(await at("a1 0.0.0.0:5433->5432/tcp", { ...local, host })).toMatchObject({ id: "a1" });
  });
});

describe("with only the tools of the server's container", () => {
  let debian: DebianServer;
  beforeAll(async () => {
    debian = await debianServer();
  });

  test("dump and restore keep the content, and no argument contains the password", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(debian.url);
    const revisions = hostileRevisions;
    const before = await contentOf(database.url);
    const { port, password } = new URL(database.url);
    const list = `web 0.0.0.0:1->1/tcp\na1 127.0.0.1:${port}->${port}/tcp`;
    const env = { PATH: await fakeEngine(directory.path, list, debian.tools) };
    const path = join(directory.path, "backup");
    const common = { url: database.url, path, env, tools: () => [], revisions };
    const dumped = await dump({ ...common, release: "1.2.3", clock: new TestClock() });
    expect(dumped.format).toBe("custom");
    await using(database.url, (sql) => sql`delete from seeded`);
    const { rows } = await restore({ ...common, confirm: async () => {} });
    expect(rows).toBe(dumped.rows);
    expect(await contentOf(database.url)).toEqual(before);
    const calls = await Bun.file(join(directory.path, "calls")).text();
    expect(calls).toContain("pg_dump");
    expect(calls).toContain("pg_restore");
    expect(calls).not.toContain(password);
    expect(calls).not.toContain(decodeURIComponent(password));
  });

  test("an interrupted dump stops its pg_dump, which would otherwise keep its locks", async () => {
    await using directory = await temporaryDirectory();
    await using database = await createHostile(debian.url);
    const revisions = hostileRevisions;
    const at = (name: string) => join(directory.path, name);
    for (const name of ["pg_dump", "pg_restore"]) {
      const script = `#!/bin/sh
        [ "$1" = --version ] && exec ${debian.tools}/${name} --version
        echo $$ > ${at("process")}.new && mv ${at("process")}.new ${at("process")}
        exec sleep 1000`;
      await Bun.write(at(`tools/${name}`), script);
      await chmod(at(`tools/${name}`), 0o755);
    }
    const { port } = new URL(database.url);
    const env = {
      PATH: await fakeEngine(directory.path, `a1 127.0.0.1:${port}->${port}/tcp`, at("tools")),
    };
    const stop = new AbortController();
    const options = { url: database.url, path: at("backup"), env, tools: () => [], revisions };
    const dumped = dump({ ...options, release: "1", clock: new TestClock(), signal: stop.signal });
    const ended = dumped.catch(() => "stopped");
    while (!(await Bun.file(at("process")).exists())) await Bun.sleep(10);
    const pid = Number(await Bun.file(at("process")).text());
    const tool = descendants(process.pid).filter((one) => one.pid === pid);
    expect(tool).toHaveLength(1);
    stop.abort();
    expect(await ended).toBe("stopped");
    await untilGone(tool);
  });
});
