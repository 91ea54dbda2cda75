import type { ActivePlugin } from "../../core/plugin/call.ts";
import type { MethodAnswer, MethodInput, MethodName } from "../../core/plugin/methods.ts";
import type { CallContext, PluginType } from "../../core/plugin.ts";

export type FakeCall<T extends PluginType, M extends MethodName<T>> = MethodInput<T, M> & CallContext;

/**
 * The answers of a method: one function for all calls, or one for each call in turn. A call after the last one is
 * unexpected.
 */
export type Script<T extends PluginType> = { [M in MethodName<T>]?: Answer<T, M> | Answer<T, M>[] };
type Answer<T extends PluginType, M extends MethodName<T>> = (
  call: FakeCall<T, M>,
) => MethodAnswer<T, M> | Promise<MethodAnswer<T, M>>;

export interface FakeOptions {
  slug?: string;
  timeoutMilliseconds?: number;
}

/** A plugin for tests with scripted answers, which records its calls. */
export interface Fake<T extends PluginType> extends Disposable {
  readonly plugin: ActivePlugin<T>;
  /** Every call, including unexpected ones. */
  readonly calls: readonly { method: MethodName<T>; call: CallContext & Record<string, unknown> }[];
  /** The calls of one method. */
  to<M extends MethodName<T>>(method: M): FakeCall<T, M>[];
  /** Replaces the scripts of these methods. */
  answer(script: Script<T>): void;
  /** Throws if there was an unexpected call. The error of that call is not enough: callers of plugins catch errors. */
  assertExpected(): void;
}

export function fakePlugin<T extends PluginType>(
  type: T,
  methods: readonly MethodName<T>[],
  script: Script<T>,
  { slug = `fake-${type.replaceAll("_", "-")}`, timeoutMilliseconds = 30_000 }: FakeOptions,
): Fake<T> {
  type Answering = (call: CallContext) => unknown;
  const answers = new Map<string, Answering | Answering[]>();
  const calls: { method: MethodName<T>; call: CallContext & Record<string, unknown> }[] = [];
  const unexpected: string[] = [];
  const answer = (more: Script<T>) => {
    for (const [method, said] of Object.entries(more)) {
      answers.set(method, Array.isArray(said) ? [...(said as Answering[])] : (said as Answering));
    }
  };
  answer(script);
  const methodOf = (method: MethodName<T>) => (call: object) => {
    calls.push({ method, call: call as CallContext & Record<string, unknown> });
    const said = answers.get(method);
    const next = Array.isArray(said) ? said.shift() : said;
    if (next) return next(call as CallContext);
    unexpected.push(method);
    throw new Error(`${slug}: unexpected call of ${method}`);
  };
  const assertExpected = () => {
    if (unexpected.length > 0) throw new Error(`${slug}: unexpected calls: ${unexpected.join(", ")}`);
  };
  return {
    plugin: {
      slug,
      title: slug,
      type,
      secrets: [],
      timeoutMilliseconds,
      methods: Object.fromEntries(methods.map((method) => [method, methodOf(method)])),
    },
    calls,
    to: <M extends MethodName<T>>(method: M) =>
      calls.filter((one) => one.method === method).map(({ call }) => call as FakeCall<T, M>),
    answer,
    assertExpected,
    [Symbol.dispose]: assertExpected,
  };
}
