import type { ActivePlugin } from "../../core/plugin/call.ts";
import type { MethodAnswer, MethodInput, MethodName } from "../../core/plugin/methods.ts";
import type { CallContext, PluginType } from "../../core/plugin.ts";

export type FakeCall<T extends PluginType, M extends MethodName<T>> = MethodInput<T, M> & CallContext;

/**
 * What a method answers: the same function each time, or one for each call in turn. Where none is left, a call is one
 * that nobody expected.
 */
export type Script<T extends PluginType> = { [M in MethodName<T>]?: Answer<T, M> | Answer<T, M>[] };
type Answer<T extends PluginType, M extends MethodName<T>> = (
  call: FakeCall<T, M>,
) => MethodAnswer<T, M> | Promise<MethodAnswer<T, M>>;

export interface FakeOptions {
  slug?: string;
  timeoutMilliseconds?: number;
}

/** A plugin for tests, of which a test says what it answers, and which says what it was asked. */
export interface Fake<T extends PluginType> extends Disposable {
  readonly plugin: ActivePlugin<T>;
  /** Every call, also those that nobody expected. */
  readonly calls: readonly { method: MethodName<T>; call: CallContext & Record<string, unknown> }[];
  /** The calls of one method. */
  to<M extends MethodName<T>>(method: M): FakeCall<T, M>[];
  /** From now on it answers so, in these methods. */
  answer(script: Script<T>): void;
  /** Throws when there was a call that nobody expected: whoever calls plugins takes no notice of what they throw. */
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
    throw new Error(`${slug}: nobody expected a call of ${method}`);
  };
  const assertExpected = () => {
    if (unexpected.length > 0) throw new Error(`${slug}: nobody expected: ${unexpected.join(", ")}`);
  };
  return {
    plugin: {
      ...{ slug, title: slug, type, secrets: [], timeoutMilliseconds },
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
