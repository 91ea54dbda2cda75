import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openSql, type Sql } from "../drizzle/client.ts";
import { writeRevision } from "../drizzle/revision/write.ts";
import drizzlePackage from "../node_modules/drizzle-orm/package.json" with { type: "json" };
import { build } from "../scripts/build.ts";
import * as support from "./support.ts";

const revisions = 200;
const rounds = 5;
const raceRounds = 20;
const racers = 4;
const dbmateVersion = "2.36.0";

/** A migration tool, set up with the same revisions as the others. */
interface Contender {
  name: string;
  about: string;
  /** Brings the database to the newest revision. */
  command: string[];
  cwd: string;
  env(url: string): Record<string, string>;
  /** Measured for information only, without a target. */
  information?: boolean;
}

interface Times {
  all: number[];
  nothing: number[];
  failures: number;
}

/** Measures a release's upgrade in a separate process, as each tool's user would run it, on a durable PostgreSQL. */
export async function benchMigrate(parts: AsyncDisposableStack): Promise<void> {
  const directory = await support.temporaryDirectory(parts);
  const url = await support.startDatabase(parts, directory);
  const contenders = await Promise.all([svc, alembic, dbmate, drizzle].map((prepare) => prepare(directory)));
  contenders.push(bareDbmate(directory, contenders[2]!));
  for (const { name, about } of contenders) console.log(`${name.padEnd(10)}${about}`);
  console.log(`server    PostgreSQL ${await support.postgresVersion(url)}, durable\n`);
  const times = contenders.map((): Times => ({ all: [], nothing: [], failures: 0 }));
  const admin = openSql(url, { max: 1 });
  parts.defer(() => admin.end({ timeout: 5 }));
  // Round 0 does not count, because the caches are cold for the first tool.
  for (let round = 0; round <= rounds; round += 1) {
    for (const [at, contender] of contenders.entries()) {
      const { all, nothing } = await inDatabase(admin, url, async (target) => ({
        all: await timeRun(contender, target),
        nothing: await timeRun(contender, target),
      }));
      if (round === 0) continue;
      times[at]!.all.push(all);
      times[at]!.nothing.push(nothing);
    }
  }
  for (let round = 0; round < raceRounds; round += 1) {
    for (const [at, contender] of contenders.entries()) {
      const codes = await inDatabase(admin, url, (target) =>
        Promise.all(Array.from({ length: racers }, () => run(contender, target).exited)),
      );
      if (codes.some((code) => code !== 0)) times[at]!.failures += 1;
    }
  }
  report(contenders, times);
}

function report(contenders: readonly Contender[], times: readonly Times[]): void {
  const ms = (values: number[]) => `${support.median(values).toFixed(0).padStart(6)} ms`;
  console.log(
    `${revisions} revisions of 3 statements; nothing to do; ${racers} at once, ${raceRounds} rounds`,
  );
  console.log(`cold processes, median of ${rounds}\n`);
  for (const [at, { name }] of contenders.entries()) {
    const { all, nothing, failures } = times[at]!;
    console.log(
      `${name.padEnd(10)}${ms(all)}  ${ms(nothing)}  ${String(failures).padStart(2)} of ${raceRounds} rounds failed`,
    );
  }
  console.log("");
  const [ours] = times as [Times];
  for (const [at, { name, information }] of contenders.entries()) {
    if (at === 0) continue;
    const ratios = (["all", "nothing"] as const).map(
      (what) => support.median(ours[what]) / support.median(times[at]![what]),
    );
    const text = ratios.map((ratio) => ratio.toFixed(2)).join("  ");
    const met = ratios.every((ratio) => ratio < 1);
    const aim = information ? "" : `   aim: faster in both (below 1), ${support.verdict(met)}`;
    console.log(`svc / ${name.padEnd(8)} ${text}${aim}`);
  }
  console.log(`svc, races that failed  ${ours.failures}   aim: 0, ${support.verdict(ours.failures === 0)}`);
}

async function inDatabase<T>(admin: Sql, url: string, use: (url: string) => Promise<T>): Promise<T> {
  const name = `bench_${crypto.randomUUID().slice(0, 8)}`;
  await admin`create database ${admin(name)} template template0`;
  try {
    const target = new URL(url);
    target.pathname = `/${name}`;
    return await use(target.href);
  } finally {
    await admin`drop database ${admin(name)} with (force)`;
  }
}

function run({ command, cwd, env }: Contender, url: string) {
  return Bun.spawn(command, {
    cwd,
    env: support.environment(env(url)),
    stdio: ["ignore", "ignore", "ignore"],
  });
}

async function timeRun(contender: Contender, url: string): Promise<number> {
  const started = performance.now();
  const code = await run(contender, url).exited;
  const milliseconds = performance.now() - started;
  if (code !== 0) throw new support.BenchError(`${contender.name} ended with ${code}`);
  return milliseconds;
}

/** The three statements of a revision, and those that revert them. */
function statements(n: number): { up: string[]; down: string[] } {
  return {
    up: [
      `create table t${n} (id bigint primary key, name text not null, at timestamptz not null default now())`,
      `create index t${n}_name_idx on t${n} (name)`,
      `alter table t${n} add column note text`,
    ],
    down: [`drop table t${n}`],
  };
}

const numbers = Array.from({ length: revisions }, (_, at) => at + 1);
const id = (n: number) => `2026${String(n).padStart(10, "0")}`;

async function svc(directory: string): Promise<Contender> {
  const folder = join(directory, "svc-revisions");
  for (const n of numbers) {
    const { up, down } = statements(n);
    const parents = n === 1 ? [] : [`${id(n - 1)}_t`];
    const sql = { up: up.map((one) => `${one};`).join("\n"), down: `${down[0]};` };
    await writeRevision(folder, {
      id: `${id(n)}_t`,
      message: `table ${n}`,
      parents,
      snapshot: {},
      createdAt: new Date(),
      ...sql,
    });
  }
  const file = join(directory, "svc");
  await build(file, { directory: folder });
  return {
    name: "svc",
    about: `svc database upgrade, the executable, Bun ${Bun.version}`,
    command: [file, "database", "upgrade"],
    cwd: directory,
    env: (url) => ({ SVC_DATABASE_URL: url }),
  };
}

async function alembic(directory: string): Promise<Contender> {
  const program = support.ensureProgram("alembic", ["python3-psycopg2"]);
  const cwd = join(directory, "alembic");
  await mkdir(join(cwd, "migrations/versions"), { recursive: true });
  await writeFile(join(cwd, "alembic.ini"), "[alembic]\nscript_location = migrations\n");
  await writeFile(
    join(cwd, "migrations/env.py"),
    `import os
from alembic import context
from sqlalchemy import create_engine, pool
engine = create_engine(os.environ["DATABASE_URL"], poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
`,
  );
  for (const n of numbers) {
    const { up, down } = statements(n);
    const body = (list: string[]) => list.map((one) => `    op.execute(${JSON.stringify(one)})`).join("\n");
    await writeFile(
      join(cwd, `migrations/versions/${id(n)}_t.py`),
      `from alembic import op\nrevision = "${id(n)}"\ndown_revision = ${n === 1 ? "None" : `"${id(n - 1)}"`}\ndef upgrade():\n${body(up)}\ndef downgrade():\n${body(down)}\n`,
    );
  }
  return {
    name: "Alembic",
    about: `${support.firstLine([program, "--version"])}, psycopg2, a transaction for each revision`,
    command: [program, "upgrade", "head"],
    cwd,
    env: (url) => ({ DATABASE_URL: url.replace("postgres:", "postgresql+psycopg2:") }),
  };
}

async function dbmate(directory: string): Promise<Contender> {
  const cwd = join(directory, "dbmate");
  await mkdir(join(cwd, "migrations"), { recursive: true });
  const npm = ["npm", "install", "--silent", "--no-save", "--prefix", cwd, `dbmate@${dbmateVersion}`];
  const installed = Bun.spawnSync(npm, { env: process.env, stdio: ["ignore", "ignore", "inherit"] });
  if (installed.exitCode !== 0) throw new support.BenchError("dbmate could not be installed from npm");
  for (const n of numbers) {
    const { up, down } = statements(n);
    const list = (all: string[]) => all.map((one) => `${one};`).join("\n");
    await writeFile(
      join(cwd, `migrations/${id(n)}_t.sql`),
      `-- migrate:up\n${list(up)}\n\n-- migrate:down\n${list(down)}\n`,
    );
  }
  const program = join(cwd, "node_modules/.bin/dbmate");
  return {
    name: "dbmate",
    about: `${support.firstLine([program, "--version"])}, as npm installs it`,
    command: [program, "--migrations-dir", "migrations", "--no-dump-schema", "migrate"],
    cwd,
    env: (url) => ({ DATABASE_URL: `${url}?sslmode=disable` }),
  };
}

/** For information: the program without npm's wrapper, which starts Node first. */
function bareDbmate(directory: string, dbmate: Contender): Contender {
  const program = `dbmate/node_modules/@dbmate/${process.platform}-${process.arch}/bin/dbmate`;
  const [, ...args] = dbmate.command;
  const about = "its program without npm's command around it; for information";
  return {
    ...dbmate,
    name: "(dbmate)",
    about,
    command: [join(directory, program), ...args],
    information: true,
  };
}

async function drizzle(directory: string): Promise<Contender> {
  const cwd = join(directory, "drizzle");
  await mkdir(join(cwd, "migrations/meta"), { recursive: true });
  const entries = numbers.map((n) => ({
    idx: n - 1,
    version: "7",
    when: n,
    tag: `${id(n)}_t`,
    breakpoints: true,
  }));
  await writeFile(
    join(cwd, "migrations/meta/_journal.json"),
    JSON.stringify({ version: "7", dialect: "postgresql", entries }),
  );
  for (const n of numbers) {
    await writeFile(
      join(cwd, `migrations/${id(n)}_t.sql`),
      statements(n).up.join(";\n--> statement-breakpoint\n"),
    );
  }
  const program = join(support.root, "bench/drizzle_migrate.ts");
  await copyFile(join(support.root, "bunfig.toml"), join(cwd, "bunfig.toml"));
  return {
    name: "drizzle",
    about: `migrate() of drizzle-orm ${drizzlePackage.version}, postgres.js, Bun ${Bun.version}`,
    command: [process.execPath, program, join(cwd, "migrations")],
    cwd,
    env: (url) => ({ DATABASE_URL: url }),
  };
}
