import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Transaction } from "../../drizzle/client.ts";
import { Refused, Unavailable } from "../../platform/errors.ts";
import { describeFault, fieldOf, framesOf, masked, retryAfterOf, saysPermanent } from "./mask.ts";
import {
  type MethodAnswer,
  type MethodInput,
  type MethodName,
  type PluginType,
  pluginMethods,
} from "./methods.ts";
import { TooLarge } from "./protocol.ts";
import type { CertifiedKey, Revocable, Setting } from "./settings.ts";

/** A plugin that is selected and set up. Only `callPlugin` calls its methods. */
export interface ActivePlugin<T extends PluginType = PluginType> {
  readonly slug: string;
  readonly title: string;
  readonly type: T;
  readonly methods: Readonly<Record<string, ((call: object) => unknown) | undefined>>;
  /** Its methods within a transaction, if they use nothing but our database. */
  readonly methodsWithin?: (db: Transaction) => ActivePlugin["methods"];
  /** Values of its configuration that must not appear in any text we publish. */
  readonly secrets: readonly string[];
  readonly timeoutMilliseconds: number;
  /** For type credential: the settings of each role. */
  readonly roleSettings?: readonly Setting[];
  /** For type credential: whether an issued credential can be ended early. */
  readonly revocable?: Revocable;
  /** For type credential: the kind of key that it certifies. */
  readonly publicKey?: CertifiedKey;
  /** Wraps each call, for telemetry. */
  readonly around?: Around;
}

export type Around = <V>(method: string, call: () => Promise<Outcome<V>>) => Promise<Outcome<V>>;

/**
 * - `missing`: the plugin does not implement this method
 * - `failed`: it threw
 * - `timeout`: it did not answer in time
 * - `aborted`: the caller stopped waiting
 * - `invalid_answer`: the answer does not match the method's schema
 */
export type FailureReason = "missing" | "failed" | "timeout" | "aborted" | "invalid_answer";

export interface Failure {
  ok: false;
  reason: FailureReason;
  /** Whether the plugin says that the call would fail every time. */
  permanent: boolean;
  /** For how many seconds the plugin asks us to wait before a retry. */
  retryAfter?: number;
  /** The input field that the plugin refuses, if it names one. */
  field?: string;
  /** For people, and safe to store: the plugin and what happened, never a secret or a library's message. */
  detail: string;
  /** For the log: where in the plugin's code it happened. */
  frames: readonly string[];
}

export type Outcome<V> = { ok: true; value: V } | Failure;

export interface CallOptions {
  signal?: AbortSignal;
  /** The same for every attempt at one operation (see CallContext). By default each call is its own operation. */
  key?: string;
  timeoutMilliseconds?: number;
  /** For a plugin with `methodsWithin`: calls it within this transaction, and waits until it has ended. */
  within?: Transaction;
}

/**
 * Calls a method of a plugin and always resolves: it never throws, and waits no longer than the plugin's timeout. The
 * value is a copy that matches the method's schema, so it may be stored and shown.
 *
 * A built-in plugin runs in this process. A third-party package runs in a separate process (package.ts), which is
 * killed if it freezes.
 */
export async function callPlugin<T extends PluginType, M extends MethodName<T>>(
  plugin: ActivePlugin<T>,
  method: M,
  input: MethodInput<T, M>,
  options: CallOptions = {},
): Promise<Outcome<MethodAnswer<T, M>>> {
  const { signal, key = crypto.randomUUID(), timeoutMilliseconds = plugin.timeoutMilliseconds } = options;
  const { within } = options;
  const failure = (reason: FailureReason, what: string, error?: unknown): Failure => ({
    ok: false,
    reason,
    permanent: saysPermanent(error),
    retryAfter: retryAfterOf(error),
    field: fieldOf(error),
    detail: `${plugin.slug} ${what}`,
    frames: framesOf(error, plugin.secrets),
  });
  const call = (within ? plugin.methodsWithin?.(within) : plugin.methods)?.[method];
  if (call === undefined) return failure("missing", `does not support ${method}`);
  if (signal?.aborted) return failure("aborted", "was not called: the work was cancelled");

  const controller = new AbortController();
  const { promise: cut, resolve } = Promise.withResolvers<Failure>();
  const timer = setTimeout(
    () => resolve(failure("timeout", `did not answer within ${timeoutMilliseconds / 1000} s`)),
    timeoutMilliseconds,
  );
  const abort = () => resolve(failure("aborted", "did not finish: the work was cancelled"));
  signal?.addEventListener("abort", abort, { once: true });

  /** Never rejects: the caller may have stopped waiting, which would leave a rejection unhandled. */
  const attempt = async (): Promise<Outcome<MethodAnswer<T, M>>> => {
    let answer: unknown;
    try {
      // A copy, because the facts are ours and several plugins get them.
      answer = await call({ ...structuredClone(input), signal: controller.signal, key });
    } catch (error) {
      return failure("failed", `failed: ${describeFault(error, plugin.secrets)}`, error);
    }
    const checked = checkAnswer(schemaOf(plugin.type, method), answer);
    if ("fault" in checked) {
      return failure(
        "invalid_answer",
        `returned an invalid answer: ${masked(checked.fault, plugin.secrets)}`,
      );
    }
    return { ok: true, value: checked.value as MethodAnswer<T, M> };
  };
  try {
    // Nothing may use the transaction's connection after it.
    const answered = () => (within ? attempt() : Promise.race([attempt(), cut]));
    return await (plugin.around ? plugin.around(method, answered) : answered());
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    // Nobody waits for what the method may still be doing.
    controller.abort();
  }
}

/** The error with which durable work ends because of a failed call. */
export function workErrorOf({ detail, permanent, retryAfter }: Failure): Unavailable {
  return permanent ? new Refused(detail) : new Unavailable(detail, { retryAfter });
}

function schemaOf(type: PluginType, method: string): TSchema {
  return (pluginMethods[type] as Record<string, TSchema>)[method]!;
}

/** Returns a plain copy of the answer without unknown properties, or what is wrong with it. */
function checkAnswer(schema: TSchema, answer: unknown): { value: unknown } | { fault: string } {
  if (schema.type === "void") return { value: undefined };
  if (answer instanceof TooLarge) return { fault: answer.fault };
  try {
    // Cloned first, so that nothing changes between the check and the use.
    const value: unknown = structuredClone(answer);
    if (Value.Check(schema, value)) return { value: Value.Clean(schema, value) };
    const error = Value.Errors(schema, value).First();
    if (schema.dropped) return { value: undefined };
    return { fault: `${error?.path || "the answer"}: ${error?.message ?? "not as it must be"}` };
  } catch {
    if (schema.dropped) return { value: undefined };
    return { fault: "it is not plain data" };
  }
}
