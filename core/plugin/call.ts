import type { TSchema } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { describeFault, fieldOf, framesOf, masked, saysPermanent } from "./mask.ts";
import {
  type MethodAnswer,
  type MethodInput,
  type MethodName,
  type PluginType,
  pluginMethods,
} from "./methods.ts";
import type { Revocable, Setting } from "./settings.ts";

/** A plugin that is chosen and set up. Only `callPlugin` calls its methods. */
export interface ActivePlugin<T extends PluginType = PluginType> {
  readonly slug: string;
  readonly title: string;
  readonly type: T;
  readonly methods: Readonly<Record<string, ((call: object) => unknown) | undefined>>;
  /** Values of its configuration that no text which leaves may hold. */
  readonly secrets: readonly string[];
  readonly timeoutMilliseconds: number;
  /** Of type credential: what can be set of each role. */
  readonly roleSettings?: readonly Setting[];
  /** Of type credential: whether what it issued can be ended early. */
  readonly revocable?: Revocable;
  /** Whoever watches the calls makes them. */
  readonly around?: Around;
}

export type Around = <V>(method: string, call: () => Promise<Outcome<V>>) => Promise<Outcome<V>>;

/**
 * - `missing`: the plugin does without this method
 * - `failed`: it threw
 * - `timeout`: it did not answer in time
 * - `aborted`: whoever asked no longer waits
 * - `nonsense`: its answer is not what the method must answer
 */
export type FailureReason = "missing" | "failed" | "timeout" | "aborted" | "nonsense";

export interface Failure {
  ok: false;
  reason: FailureReason;
  /** Whether the plugin says that it would fail each time. */
  permanent: boolean;
  /** What it says is wrong with the input, if it names a field. */
  field?: string;
  /** For people, and fit to be kept: which plugin and what happened, never a secret or a message of a library. */
  detail: string;
  /** For the log: where in its code it happened. */
  frames: readonly string[];
}

export type Outcome<V> = { ok: true; value: V } | Failure;

export interface CallOptions {
  signal?: AbortSignal;
  /** The same when a thing is tried again (see CallContext). Without one, the call is a thing of its own. */
  key?: string;
  timeoutMilliseconds?: number;
}

/**
 * Calls a method of a plugin, and always comes back: it throws nothing, and waits no longer than the plugin may take. What
 * comes back is a copy that fits the method's schema, so it may be stored and shown.
 *
 * A plugin that comes with svc runs in this process; one of a package runs in another (package.ts), which ends when it is
 * frozen.
 */
export async function callPlugin<T extends PluginType, M extends MethodName<T>>(
  plugin: ActivePlugin<T>,
  method: M,
  input: MethodInput<T, M>,
  options: CallOptions = {},
): Promise<Outcome<MethodAnswer<T, M>>> {
  const { signal, key = crypto.randomUUID(), timeoutMilliseconds = plugin.timeoutMilliseconds } = options;
  const failure = (reason: FailureReason, what: string, error?: unknown): Failure => ({
    ok: false,
    reason,
    permanent: saysPermanent(error),
    field: fieldOf(error),
    detail: `${plugin.slug} ${what}`,
    frames: framesOf(error, plugin.secrets),
  });
  const call = plugin.methods[method];
  if (call === undefined) return failure("missing", `does not know how to ${method}`);
  if (signal?.aborted) return failure("aborted", "was not asked: the work was stopped");

  const controller = new AbortController();
  const { promise: cut, resolve } = Promise.withResolvers<Failure>();
  const timer = setTimeout(
    () => resolve(failure("timeout", `did not answer within ${timeoutMilliseconds / 1000} s`)),
    timeoutMilliseconds,
  );
  const abort = () => resolve(failure("aborted", "was not waited for: the work was stopped"));
  signal?.addEventListener("abort", abort, { once: true });

  /** Never rejects: whoever has stopped waiting would leave the rejection unhandled. */
  const attempt = async (): Promise<Outcome<MethodAnswer<T, M>>> => {
    let answer: unknown;
    try {
      // A copy: facts are ours, and several plugins get them.
      answer = await call({ ...structuredClone(input), signal: controller.signal, key });
    } catch (error) {
      return failure("failed", `failed: ${describeFault(error, plugin.secrets)}`, error);
    }
    const checked = checkAnswer(schemaOf(plugin.type, method), answer);
    if ("fault" in checked) {
      return failure("nonsense", `returned an invalid answer: ${masked(checked.fault, plugin.secrets)}`);
    }
    return { ok: true, value: checked.value as MethodAnswer<T, M> };
  };
  try {
    const answered = () => Promise.race([attempt(), cut]);
    return await (plugin.around ? plugin.around(method, answered) : answered());
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    // Whatever it still does, nobody waits for it.
    controller.abort();
  }
}

function schemaOf(type: PluginType, method: string): TSchema {
  return (pluginMethods[type] as Record<string, TSchema>)[method]!;
}

/** A plain copy of the answer without what the schema does not know, or what is wrong with it. */
function checkAnswer(schema: TSchema, answer: unknown): { value: unknown } | { fault: string } {
  if (schema.type === "void") return { value: undefined };
  try {
    // First, so that nothing changes between being checked and being used.
    const value: unknown = structuredClone(answer);
    if (Value.Check(schema, value)) return { value: Value.Clean(schema, value) };
    const error = Value.Errors(schema, value).First();
    return { fault: `${error?.path || "the answer"}: ${error?.message ?? "not as it must be"}` };
  } catch {
    return { fault: "it is not plain data" };
  }
}
