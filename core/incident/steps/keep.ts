import type { Transaction } from "../../../drizzle/client.ts";
import type { ActivePlugin } from "../../plugin/call.ts";
import type { MethodAnswer, MethodInput, MethodName, PluginType } from "../../plugin/methods.ts";
import { writeAs } from "../flow/lease.ts";
import { askEach, type StepRun } from "./ask.ts";

/** What was kept of an answer. */
interface Kept {
  /** What is invalid in it, in words for people. */
  faults: readonly string[];
}

/**
 * Calls the same method of several plugins concurrently. Each plugin's answer is kept regardless of the others, and of
 * a partly invalid answer the valid rest.
 *
 * @returns what was kept, and what went wrong in words for people
 */
export async function keepEach<T extends PluginType, M extends MethodName<T>, K extends Kept>(
  run: StepRun,
  {
    plugins,
    method,
    input,
    key,
  }: {
    plugins: readonly ActivePlugin<T>[];
    method: M;
    input: MethodInput<T, M>;
    key: string;
  },
  keep: (tx: Transaction, slug: string, answer: MethodAnswer<T, M>) => Promise<K>,
): Promise<{ kept: K[]; failures: string[] }> {
  const outcomes = await askEach(run, plugins, method, input, key);
  const kept: K[] = [];
  const failures: string[] = [];
  for (const [at, outcome] of outcomes.entries()) {
    if (!outcome.ok) {
      failures.push(outcome.detail);
      continue;
    }
    const { slug } = plugins[at]!;
    const one = await writeAs(run.context, run.claim, (tx) => keep(tx, slug, outcome.value));
    kept.push(one);
    failures.push(...one.faults.map((fault) => `${slug} ${fault}`));
  }
  return { kept, failures };
}
