import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { upgrade } from "../../drizzle/revision/upgrade.ts";
import { contentOf, temporaryDirectory, using } from "../../tests/support/database/backup.ts";
import { startDebianPostgres } from "../../tests/support/database/debian_postgres.ts";

// docs/restore.md without an engine: its commands run in a folder like that of the container `tools`.

const page = await Bun.file(join(import.meta.dir, "../../docs/restore.md")).text();

let debian: Awaited<ReturnType<typeof startDebianPostgres>>;
beforeAll(async () => {
  debian = await startDebianPostgres();
  await upgrade({ url: debian.url });
});
afterAll(() => debian.stop());

async function toolsContainer() {
  const directory = await temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  await mkdir(at("backup"));
  const main = join(import.meta.dir, "../../cli/main.ts");
  await Bun.write(at("bin/svc"), `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`);
  await chmod(at("bin/svc"), 0o755);
  await Bun.write(at("secrets/database_url"), debian.url);
  // As in compose.production.yaml.
  const env = {
    PATH: `${at("bin")}:${debian.tools}:/usr/bin:/bin`,
    SVC_DATABASE_URL: "",
    SVC_DATABASE_URL_FILE: at("secrets/database_url"),
    SVC_DOMAIN: "example.com",
  };
  const run = (command: string) => {
    const here = command.replaceAll("/run/secrets", at("secrets")).replaceAll("/tmp/trial", at("trial"));
    const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", "-c", here], { cwd: at("backup"), env });
    expect({ command, exitCode, stderr: stderr.toString() }).toMatchObject({ command, exitCode: 0 });
    return stdout.toString();
  };
  run(`${join(import.meta.dir, "backup")} once`);
  const files = async () => (await readdir(at("backup"))).sort();
  return { run, files, [Symbol.asyncDispose]: () => directory[Symbol.asyncDispose]() };
}

test("the commands for compose.production.yaml restore a dump, and back up the old data", async () => {
  await using tools = await toolsContainer();
  const section = page.slice(
    page.indexOf("## compose.production.yaml"),
    page.indexOf("### On a new machine"),
  );
  const commands = [...section.matchAll(/^docker compose run --rm tools (.*)$/gm)].map(
    ([, command]) => command!,
  );
  expect(commands).toContain("svc database restore");
  const before = await contentOf(debian.url);
  await using(
    debian.url,
    (sql) =>
      sql`insert into audit_log (at, actor, action, data) values (now(), gen_random_uuid(), 'x', '{}')`,
  );
  const dump = (await tools.files()).find((name) => name.endsWith("Z.dump"));
  // Nobody can type the database's name.
  const output = commands.map((command) =>
    tools.run(`dump=${dump}; ${command.replace(/restore$/, "restore --yes")}`),
  );
  expect(output.join("")).toContain("Restored svc-backup.dump (");
  expect(output.join("")).toContain("no drift");
  expect(await contentOf(debian.url)).toEqual(before);
  expect(await tools.files()).toEqual(["before-restore.dump", dump!, "svc-backup.prom"]);
});

test("the test of a backup restores the newest dump into a second database", async () => {
  await using tools = await toolsContainer();
  const [, trial] = /tools sh -c '\n([^']*)'/.exec(page)!;
  await using(debian.url, (sql) => sql`create database svc_trial`);
  tools.run(trial!);
  const copy = Object.assign(new URL(debian.url), { pathname: "/svc_trial" }).href;
  expect(await contentOf(copy)).toEqual(await contentOf(debian.url));
});
