import { randomBytes } from "node:crypto";
import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chooseAccount } from "../../../drizzle/embedded/account.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../drizzle/embedded.ts";
import { findDebianPostgres, findFaketime, missingDebianPostgres } from "../programs.ts";

/** A server of Debian's PostgreSQL, which is older than the embedded one and has client tools. */
export interface DebianServer {
  /** For a superuser. */
  url: string;
  major: number;
  /** The directory of pg_dump and pg_restore. */
  tools: string;
}

let started: Promise<DebianServer> | undefined;

/**
 * The server of the run, which scripts/test.ts starts, or one for this process, with which it is removed. Other tests use
 * it at the same time: a test that changes more than its own databases and roles starts a server.
 */
export async function debianServer(): Promise<DebianServer> {
  const url = process.env.SVC_TEST_DEBIAN_URL;
  if (url !== undefined) {
    const { directory: tools, major } = installed();
    return { url, major, tools };
  }
  started ??= startDebianPostgres();
  return await started;
}

/**
 * Starts a temporary server. It is separate from any cluster of this machine, and is removed with this process, even if
 * that is killed.
 *
 * @param wrongBy the offset of its clock in libfaketime's format: `-10m`
 * @param parent of its directory
 * @throws Error with the command to install it
 */
export async function startDebianPostgres(
  wrongBy?: string,
  parent = tmpdir(),
): Promise<DebianServer & EmbeddedPostgres> {
  const { directory: tools, major } = installed();
  const directory = await mkdtemp(join(parent, "svc-debian-"));
  try {
    await initialise(directory, tools);
    const binaries = {
      initdb: join(tools, "initdb"),
      postgres: wrongBy
        ? await withClock(join(directory, "postgres"), join(tools, "postgres"), wrongBy)
        : join(tools, "postgres"),
      pgCtl: join(tools, "pg_ctl"),
    };
    const server = await startEmbeddedPostgres({ directory, binaries, durable: false, temporary: true });
    return { ...server, major, tools };
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
}

function installed(): NonNullable<ReturnType<typeof findDebianPostgres>> {
  const found = findDebianPostgres();
  if (!found) throw new Error(missingDebianPostgres);
  return found;
}

/** Writes a program that runs another one with a wrong clock. */
async function withClock(path: string, program: string, wrongBy: string): Promise<string> {
  const library = findFaketime();
  if (library === undefined) throw new Error("libfaketime is not installed: apt-get install libfaketime");
  const environment = `LD_PRELOAD=${library} FAKETIME=${wrongBy} FAKETIME_DONT_FAKE_MONOTONIC=1`;
  await writeFile(path, `#!/bin/sh\nexec env ${environment} ${program} "$@"\n`, { mode: 0o755 });
  return path;
}

/** Like drizzle/embedded.ts, without the settings that this version does not support. */
async function initialise(directory: string, tools: string): Promise<void> {
  const account = chooseAccount();
  const [data, password] = [join(directory, "data"), join(directory, "password")];
  await writeFile(password, `${randomBytes(24).toString("hex")}\n`, { mode: 0o600 });
  await mkdir(data, { mode: 0o700 });
  if (account.owner) {
    for (const path of [directory, data, password]) await chown(path, account.owner.uid, account.owner.gid);
  }
  const flags = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-instructions", "--no-sync"];
  const command = [
    join(tools, "initdb"),
    `--pgdata=${data}`,
    "--username=svc",
    `--pwfile=${password}`,
    ...flags,
  ];
  const { spawnSync } = await import("node:child_process");
  const [program, ...args] = [...account.prefix, ...command];
  const { status, stderr } = spawnSync(program!, args, {
    ...account.spawn,
    encoding: "utf8",
    env: { LC_ALL: "C" },
  });
  if (status !== 0) throw new Error(`initdb failed: ${stderr}`);
}
