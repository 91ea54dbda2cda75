import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readlinkSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { descendants, untilGone } from "../tests/support/process/processes.ts";
import { hydrateLinks } from "./embedded/binaries.ts";
import { EmbeddedPostgresError, startEmbeddedPostgres } from "./embedded.ts";

setDefaultTimeout(60_000);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-embedded-test-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

async function query(url: string, text: string) {
  const sql = postgres(url, { max: 1 });
  try {
    return await sql.unsafe(text);
  } finally {
    await sql.end();
  }
}

test("keeps its data between starts, and its password readable by the owner only", async () => {
  const kept = join(directory, "kept");
  const first = await startEmbeddedPostgres({ directory: kept, durable: false });
  await query(first.url, "create table thing as select 42 as number");
  await first.stop();
  const second = await startEmbeddedPostgres({ directory: kept, durable: false });
  const [row] = await query(second.url, "select number from thing");
  expect(row?.number).toBe(42);
  await expect(query(second.url.replace(/:[^:@]+@/, ":wrong@"), "select 1")).rejects.toThrow("password");
  await second.stop();
  expect(statSync(join(kept, "password")).mode & 0o077).toBe(0);
  await rm(join(kept, "password"));
  const third = startEmbeddedPostgres({ directory: kept });
  await expect(third).rejects.toBeInstanceOf(EmbeddedPostgresError);
  await expect(third).rejects.toThrow("password is missing");
});

test("a temporary server stops and removes its directory when its starter is killed", async () => {
  const temporary = join(directory, "temporary");
  const { child, address } = await startIn(temporary);
  expect(existsSync(join(temporary, "data"))).toBe(true);
  const all = descendants(child.pid!);
  // A process that is just being started has the command of its parent.
  expect(all.filter(({ command }) => command.includes("bin/postgres"))).not.toHaveLength(0);
  child.kill("SIGKILL");
  await untilGone(all);
  await untilRemoved(temporary);
  await expect(query(address, "select 1")).rejects.toThrow();
});

// Root has several ways to run it as another user (account.ts). These two can enter restricted directories such as
// `directory`; a normal user needs neither.
for (const tool of ["unshare", "setpriv"]) {
  test(`root needs no more than ${tool}`, async () => {
    const bin = join(directory, `bin-${tool}`);
    mkdirSync(bin);
    for (const name of ["sh", "sleep", "rm", "true", tool]) symlinkSync(Bun.which(name)!, join(bin, name));
    const { child } = await startIn(join(directory, tool), { PATH: bin });
    child.kill("SIGTERM");
    await untilRemoved(join(directory, tool));
  });
}

test("creates the links that npm did not create", async () => {
  const root = join(directory, "package");
  mkdirSync(join(root, "native/lib"), { recursive: true });
  const links = [{ source: "native/lib/libx.so.1.2", target: "native/lib/libx.so.1" }];
  writeFileSync(join(root, "native/pg-symlinks.json"), JSON.stringify(links));
  writeFileSync(join(root, "native/lib/libx.so.1.2"), "");
  await Promise.all([hydrateLinks(root), hydrateLinks(root)]);
  await hydrateLinks(root);
  expect(readlinkSync(join(root, "native/lib/libx.so.1"))).toBe("libx.so.1.2");
});

/** Starts a server in another process, which waits to be killed. */
async function startIn(path: string, env: Record<string, string> = {}) {
  const module = join(import.meta.dir, "embedded.ts");
  const program = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(module)});
    const { url } = await startEmbeddedPostgres({ directory: ${JSON.stringify(path)}, durable: false, temporary: true });
    console.log(url);
    setInterval(() => {}, 1000);`;
  const { PATH, TMPDIR } = process.env;
  const child = spawn(process.execPath, ["-e", program], { env: { PATH, TMPDIR, ...env } });
  const ended = new Promise((settle) => child.once("close", settle));
  let said = "";
  child.stderr.on("data", (chunk) => (said += chunk));
  const address = await new Promise<string>((settle, reject) => {
    child.stdout.once("data", (chunk) => settle(String(chunk).trim()));
    ended.then(() => reject(new Error(said)));
  });
  return { child, address };
}

async function untilRemoved(path: string): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (existsSync(path) && performance.now() < deadline) await Bun.sleep(20);
  expect(existsSync(path)).toBe(false);
}
