import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type REPLServer, Recoverable, start } from "node:repl";
import { inspect } from "node:util";
import { runInThisContext } from "node:vm";
import { Glob } from "bun";
import { readConfig } from "../core/config.ts";
import { openDatabase, openSql, sessionSettings } from "../drizzle/client.ts";
import { placeOf } from "../drizzle/connection/address.ts";
import { singleAddress } from "../drizzle/connection/database_address.ts";
import { databaseMissing } from "../drizzle/connection/database_url.ts";
import * as tables from "../drizzle/schema/index.ts";
import { isLoopbackHost } from "../platform/address.ts";
import { systemClock } from "../platform/clock.ts";
import { ConfigurationError, SvcError } from "../platform/errors.ts";
import { createLog } from "../platform/log.ts";
import { sourceFaults } from "../platform/source_error.ts";
import type { Environment } from "../platform/variable.ts";
import { readHttpsUrls } from "./http/https_urls.ts";
import { createInspectionApp } from "./inspection.ts";

export interface ShellOptions {
  environment: Environment;
  /** Throws unless the user confirms working on this database on another host. */
  confirm: (host: string, name: string) => Promise<void>;
  /** A script to run instead of an interactive session. */
  script?: string;
  /** The script's name in error messages. */
  scriptName?: string;
  /** Receives the script's result. */
  write: (text: string) => void;
}

const banner = `svc shell: TypeScript with top-level await, and these globals:
  config    the configuration            app       the application: await app.handle(new Request(...))
  db        drizzle on the database      tables    its tables: await db.$count(tables.incident)
  sql       sql\`select 1\`                services  await services.document: the exports of core/incident/document
  context   the argument of services     clock     clock.now()
Press Ctrl-D to exit.
`;

/**
 * Runs TypeScript with the application context: a script, or an interactive session.
 * @throws ConfigurationError without a database; whatever the script throws
 */
export async function shell({
  environment,
  confirm,
  script,
  scriptName,
  write,
}: ShellOptions): Promise<void> {
  const config = readConfig(environment);
  if (!config.databaseUrl) throw new ConfigurationError([databaseMissing]);
  const url = await singleAddress(config.databaseDirectUrl ?? config.databaseUrl);
  const host = placeOf(url)?.host ?? "";
  if (!host.startsWith("/") && !isLoopbackHost(host)) await confirm(host, new URL(url).pathname.slice(1));
  const { db, close } = openDatabase(url, 2);
  const sql = openSql(url, { max: 1, connection: sessionSettings });
  const log = createLog(config.logLevel);
  const context = { db, clock: systemClock, config, log };
  const app = await createInspectionApp(environment);
  if (config.publicUrl.startsWith("https:")) readHttpsUrls(app);
  Object.assign(globalThis, {
    config,
    db,
    tables,
    sql,
    app,
    context,
    clock: systemClock,
    services: servicesOf(),
  });
  try {
    if (script === undefined) await startRepl(environment);
    else {
      const value = await evaluate(script).catch((error: unknown) => rethrow(error, scriptName));
      if (value !== undefined) write(`${typeof value === "string" ? value : display(value)}\n`);
    }
  } finally {
    await Promise.all([close(), sql.end({ timeout: 5 })]);
  }
}

const root = join(import.meta.dir, "..");

/**
 * The exports of each feature folder of `core` under the folder's name, as in `await services.document`; loaded on
 * first use.
 */
function servicesOf(): Record<string, Promise<Record<string, unknown>>> {
  const files = [...new Glob("core/*/**/*.ts").scanSync(root)].filter((file) => !file.endsWith(".test.ts"));
  const services = {};
  for (const [domain, paths] of Map.groupBy(files, (file) => basename(dirname(file)))) {
    const load = async () => {
      const modules: object[] = await Promise.all(paths.map((path) => import(join(root, path))));
      return Object.assign({}, ...modules);
    };
    Object.defineProperty(services, domain, { get: load, enumerable: true });
  }
  return services;
}

const transpiler = new Bun.Transpiler({ loader: "ts", replMode: true });

/**
 * Not `Bun.inspect`, which shows non-enumerable properties: rows of postgres.js refer to their connection, including
 * the key that cancels its queries.
 */
const display = (value: unknown) => inspect(value, { depth: 8, compact: 8 });

/** Evaluates TypeScript. */
const evaluate = async (code: string) => await run(transpiler.transformSync(code));

/** Evaluates a program in the global scope, so that its declarations persist. */
async function run(program: string): Promise<unknown> {
  const importModuleDynamically = (name: string) => import(Bun.resolveSync(name, process.cwd()));
  const result: unknown = await runInThisContext(program, {
    filename: "shell",
    importModuleDynamically: importModuleDynamically as never,
  });
  return (result as { value?: unknown } | undefined)?.value;
}

/** Prints all of an unexpected error, for the author of the script. */
function rethrow(cause: unknown, name?: string): never {
  if (cause instanceof SvcError) throw cause;
  const faults = sourceFaults(cause, name);
  if (faults.length > 0) throw new SvcError("invalid_input", faults.join("\n"), { cause });
  process.stderr.write(`${Bun.inspect(cause)}\n`);
  throw new SvcError("invalid_input", "The script failed: its error is above", { cause });
}

/** Reads and evaluates input until the user exits. */
async function startRepl(environment: Environment): Promise<void> {
  process.stdout.write(banner);
  const repl = start({
    prompt: "svc> ",
    useGlobal: true,
    eval: (code, _context, _file, done) => {
      const faults = faultsOf(code);
      if (faults.length > 0) {
        const fault = new SyntaxError(faults.map(({ message }) => message).join("; "));
        done(isUnfinished(code) ? new Recoverable(fault) : fault, undefined);
      } else
        evaluate(code).then(
          (value) => done(null, value),
          // A thrown null or undefined would otherwise count as no error.
          (error: unknown) => done((error ?? new Error(`${error} was thrown`)) as Error, undefined),
        );
    },
  });
  const ended = new Promise<void>((resolve) => repl.once("exit", resolve));
  keepHistory(repl, environment);
  await ended;
}

/** Returns the syntax errors of a program. */
function faultsOf(code: string): Error[] {
  try {
    transpiler.transformSync(code);
    return [];
  } catch (cause) {
    return cause instanceof AggregateError ? cause.errors : [cause as Error];
  }
}

/**
 * Whether the next line may complete the input. Of string literals, only a template literal can continue there, so
 * probing with a backtick tells.
 */
function isUnfinished(code: string): boolean {
  const fails = (text: string, what: RegExp) => faultsOf(text).some(({ message }) => what.test(message));
  // Messages quote the source, which may contain any of these phrases.
  const open = /^Unterminated/;
  return (
    fails(code, /^Unexpected end of file$|found end of file$|to terminate multi-line comment$/) ||
    (fails(code, open) && !fails(`${code}\``, open))
  );
}

/** A history that cannot be saved is reported, and does not stop the session. */
function keepHistory(repl: REPLServer, { XDG_STATE_HOME, HOME }: Environment): void {
  const folder = join(XDG_STATE_HOME || join(HOME || homedir(), ".local/state"), "svc");
  const complain = () => process.stderr.write("svc: cannot save the history of this shell\n");
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    repl.setupHistory(join(folder, "shell_history"), (error) => error && complain());
  } catch {
    complain();
  }
}
