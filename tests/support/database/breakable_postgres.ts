import { chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openSql, type Sql } from "../../../drizzle/client.ts";
import { chooseAccount } from "../../../drizzle/embedded/account.ts";
import { findBinaries } from "../../../drizzle/embedded/binaries.ts";
import { freePort } from "../../../platform/free_port.ts";
import { descendants, untilGone } from "../process/processes.ts";
import { until } from "../process/until.ts";
import { findDebianPostgres, findFaketime, missingDebianPostgres } from "../programs.ts";

const superuser = "svc";
const settings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: 100,
  max_prepared_transactions: 20,
  max_wal_size: "32MB",
  min_wal_size: "2MB",
  wal_level: "logical",
  fsync: "off",
  // In its directory, so that no file remains in /dev/shm.
  dynamic_shared_memory_type: "mmap",
};

/**
 * A PostgreSQL whose processes, clock and disk a test can break. Its disk is a tmpfs in a namespace, like that of
 * `startSmallDatabase`, but it survives a restart: a shell in the namespace starts PostgreSQL. All of it ends with this process.
 */
export class BreakablePostgres {
  private constructor(
    private readonly directory: string,
    private readonly bin: string,
    readonly port: number,
    private readonly shell: Bun.Subprocess<"pipe", "pipe", "inherit">,
    private readonly lines: AsyncIterator<string>,
  ) {}

  /** @param major 18: the embedded one. Otherwise, Debian's. */
  static async start(major: number): Promise<BreakablePostgres> {
    const bin = major === 18 ? dirname((await findBinaries()).postgres) : findDebianPostgres()?.directory;
    if (bin === undefined) throw new Error(missingDebianPostgres);
    const account = chooseAccount();
    const directory = await mkdtemp(join(tmpdir(), "svc-breakable-"));
    const disk = join(directory, "disk");
    await mkdir(disk);
    await writeFile(join(directory, "password"), superuser, { mode: 0o600 });
    await writeFile(join(directory, "clock"), "+0\n");
    if (account.owner)
      for (const path of [directory, disk, join(directory, "password")])
        await chown(path, account.owner.uid, account.owner.gid);
    const script = `
      mount -t tmpfs -o size=160m,mode=0700 svc-test "$1" || exit
      exec unshare --user --map-user="$2" --map-group="$3" -- sh -c '
        sh; kill -QUIT "$(head -n1 "$0/data/postmaster.pid")"; rm -rf "\${0%/*}" 2>/dev/null' "$1"`;
    const outer = `exec unshare --user --map-root-user --mount sh -c "$0" sh "$1" "$(id -u)" "$(id -g)"`;
    const shell = Bun.spawn([...account.prefix, "sh", "-c", outer, script, disk], {
      ...account.spawn,
      cwd: "/",
      env: { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const server = new BreakablePostgres(directory, bin, await freePort(), shell, linesOf(shell.stdout));
    await server.run(
      `${bin}/initdb -D ${disk}/data -U ${superuser} --pwfile=${directory}/password --auth=scram-sha-256 --locale=C --encoding=UTF8 --no-sync --wal-segsize=1 >${directory}/initdb.log`,
    );
    await server.up();
    return server;
  }

  /** For the superuser. */
  get url(): string {
    return `postgres://${superuser}:${superuser}@127.0.0.1:${this.port}/postgres`;
  }

  /** Runs a command beside PostgreSQL. @returns its last line of output */
  private async run(command: string): Promise<string> {
    this.shell.stdin.write(`{ ${command}\n} </dev/null; echo "code $?"\n`);
    await this.shell.stdin.flush();
    for (let last = ""; ;) {
      const { value, done } = await this.lines.next();
      if (done)
        throw new Error("This test needs the right to create namespaces, and to mount a tmpfs in them");
      if (value === "code 0") return last;
      if (value.startsWith("code ")) throw new Error(`${command}: ${value}`);
      last = value;
    }
  }

  /** Starts it if necessary, and waits until it answers. */
  async up(): Promise<void> {
    const library = findFaketime();
    if (library === undefined) throw new Error("libfaketime is not installed: apt-get install libfaketime");
    const flags = Object.entries(settings).map(([name, value]) => `-c ${name}='${value}'`);
    const clock = `LD_PRELOAD=${library} FAKETIME_TIMESTAMP_FILE=${this.directory}/clock FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1`;
    const command = `${clock} ${this.bin}/postgres -D ${this.directory}/disk/data -p ${this.port} ${flags.join(" ")}`;
    const answers = async () => {
      if (this.processes().length === 0) await this.run(`${command} >>${this.directory}/log 2>&1 &`);
      return await this.asking((sql) => sql`select`).catch(() => undefined);
    };
    await until("PostgreSQL to answer", answers, 60);
  }

  /** The postmaster is the first. */
  private processes() {
    return descendants(this.shell.pid).filter(({ command }) => /^(\S*\/)?postgres\b/.test(command));
  }

  /** Stops it: SIGINT is a fast shutdown, SIGQUIT an immediate one. */
  async down(signal: "SIGINT" | "SIGQUIT"): Promise<void> {
    const all = this.processes();
    if (all.length > 0) process.kill(all[0]!.pid, signal);
    await untilGone(all, 30);
  }

  /** Sends a signal to all its processes, or to one that serves a client. */
  signal(name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    const all = this.processes();
    for (const { pid } of name === "SIGKILL" ? all.slice(-1) : all)
      try {
        process.kill(pid, name);
      } catch {
        // It has ended.
      }
  }

  /** @param by in libfaketime's format: `-10m` */
  async moveClock(by: string): Promise<void> {
    await writeFile(join(this.directory, "clock"), `${by}\n`);
  }

  /** Leaves no space on its disk, so that it may crash, and frees the space. */
  async fillDisk(): Promise<void> {
    await this.run(`cat /dev/zero >${this.directory}/disk/filler 2>/dev/null || true`);
  }
  async emptyDisk(): Promise<void> {
    await this.run(`rm -f ${this.directory}/disk/filler`);
  }

  /** Queries it, as the superuser or another role. */
  async asking<T>(ask: (sql: Sql) => Promise<T>, role?: string): Promise<T> {
    const sql = openSql(this.url, { max: 1, connect_timeout: 5 });
    try {
      if (role !== undefined) await sql`set role ${sql(role)}`;
      return await ask(sql);
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGCONT");
    this.shell.stdin.end();
    await this.shell.exited;
    await rm(this.directory, { recursive: true, force: true });
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of stream) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
}
