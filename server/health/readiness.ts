import { Elysia } from "elysia";
import { type DatabaseState, isDiskFull, isReadOnly, type KeyState, keyState } from "../../core/readiness.ts";
import { isOutOfSpace, reasonOf } from "../../drizzle/database_error.ts";
import { type SchemaStatus, schemaStatus } from "../../drizzle/revision/status.ts";
import { withTimeLimit } from "../../platform/time_limit.ts";
import type { Deps } from "../deps.ts";
import { shared } from "../http/shared.ts";

export interface Readiness {
  ready: boolean;
  database: DatabaseState;
  keys: KeyState;
  /** Undefined when the database does not answer. */
  schema?: SchemaStatus;
}

/** Rechecks the disk after a request could not write. */
export const watchDisk = (check: ReadinessCheck) =>
  new Elysia({ name: "watch disk" }).onError({ as: "global" }, ({ error }) => {
    if (isOutOfSpace(error)) check.doubtDisk();
  });

const patienceMilliseconds = 3000;
/** How long the check waits for a connection that requests use, if these are answered: some probes wait only a second. */
const turnMilliseconds = 500;
/** The check needs no sign-in, so it must not keep the database busy. */
const goodMilliseconds = 100;
/** The check writes a megabyte, and PostgreSQL logs each such file with `log_temp_files = 0`. */
const diskGoodMilliseconds = 10_000;
const retryMilliseconds = 250;

const unreachable: Readiness = { ready: false, database: "unreachable", keys: "unknown" };

/**
 * Checks whether this process can serve. It logs every change of the answer, and each new reason while it cannot: the
 * first error often only says that a connection was closed, and the next one says why none can be opened.
 */
export class ReadinessCheck {
  /** The answer, shared by concurrent callers. Never rejects. */
  readonly now: () => Promise<Readiness>;
  readonly #diskFull: ReturnType<typeof shared<boolean>>;
  /** The pending question to the database, which outlasts a check that did not wait for it. */
  #asked: Promise<Readiness> | undefined;
  /** When it was asked, by `performance.now()`. */
  #askedAt = 0;
  /** The answer to the latest question that has one. */
  #latest: Readiness | undefined;
  /** Why the database could not be asked. */
  #reason: unknown;
  /** The last logged state. */
  #logged = "ready";
  /** The reasons logged since it was last ready. */
  readonly #reasons = new Set<string | undefined>();

  constructor(private readonly deps: Pick<Deps, "db" | "keys" | "log" | "databaseAnswer">) {
    this.#diskFull = shared(() => isDiskFull(deps.db), {
      goodFor: diskGoodMilliseconds,
      isGood: (full) => !full,
    });
    this.now = shared(() => this.#check(), { goodFor: goodMilliseconds, isGood: ({ ready }) => ready });
  }

  /** Call this after a write failed for lack of space: the next answer rechecks the disk. */
  doubtDisk(): void {
    this.#diskFull.forget();
  }

  /** Resolves when this process can serve. */
  async untilReady(): Promise<void> {
    while (!(await this.now()).ready) await Bun.sleep(retryMilliseconds);
  }

  async #check(): Promise<Readiness> {
    this.#reason = undefined;
    this.#asked ??= this.#ask();
    const asked = this.#asked;
    // The patience is that for the question, not for each check that waits for it.
    const rest = Math.max(0, this.#askedAt + patienceMilliseconds - performance.now());
    const turn = Math.min(turnMilliseconds, rest);
    const answer =
      (await withTimeLimit(turn, asked)) ??
      this.#whileBusy() ??
      (await withTimeLimit(rest - turn, asked)) ??
      this.#whileBusy();
    // The next question may get another connection.
    if (!answer) this.#asked = undefined;
    this.#log(answer ?? unreachable, this.#reason);
    return answer ?? unreachable;
  }

  /**
   * The latest answer, if PostgreSQL answers requests, so that the check only waits for its turn. A busy server must not
   * count as broken: the others would get its requests, too.
   */
  #whileBusy(): Readiness | undefined {
    return performance.now() - this.deps.databaseAnswer.at < patienceMilliseconds ? this.#latest : undefined;
  }

  #ask(): Promise<Readiness> {
    this.#askedAt = performance.now();
    const asked = this.#askDatabase().then((answer) => {
      if (this.#asked === asked) {
        this.#asked = undefined;
        this.#latest = answer;
      }
      return answer;
    });
    return asked;
  }

  async #askDatabase(): Promise<Readiness> {
    const { db, keys } = this.deps;
    try {
      const [schema, readOnly, full] = await Promise.all([
        schemaStatus(db),
        isReadOnly(db),
        this.#diskFull(),
      ]);
      const database = readOnly ? "read_only" : full ? "disk_full" : "ok";
      // Without our tables there are no keys to look for.
      const usable = schema.state === "ok" || schema.state === "ahead";
      const { state, error } = usable ? await keyState(keys) : { state: "unknown" as const };
      if (error !== undefined) this.#reason = error;
      return { ready: usable && database === "ok" && state === "ok", database, keys: state, schema };
    } catch (error) {
      this.#reason = error;
      return unreachable;
    }
  }

  #log({ ready, database, keys, schema }: Readiness, error: unknown): void {
    const revision = schema?.state;
    const state = ready ? "ready" : `${database} ${keys} ${revision}`;
    const why = reasonOf(error);
    const known = state === this.#logged && (ready || this.#reasons.has(why.reason));
    if (ready) this.#reasons.clear();
    else this.#reasons.add(why.reason);
    if (known) return;
    this.#logged = state;
    const { log } = this.deps;
    if (ready) log.info("ready to serve again");
    else if (database === "unreachable")
      log.warn({ err: error, ...why }, "not ready: the database does not answer");
    else log.warn({ err: error, database, keys, revision, ...why }, "not ready");
  }
}
