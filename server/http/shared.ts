/**
 * Shares the answers of `ask`: concurrent callers get the same answer, and a good one is cached for some milliseconds.
 * A bad one is not cached, so that a recovery is seen at once. `forget` drops a cached answer early.
 */
export function shared<T>(
  ask: () => Promise<T>,
  { goodFor, isGood, now = () => performance.now() }: Shared<T>,
): (() => Promise<T>) & { forget(): void } {
  let answer: Promise<T> | undefined;
  let until = Number.POSITIVE_INFINITY;
  const get = () => {
    if (answer && now() < until) return answer;
    const asked = ask();
    answer = asked;
    until = Number.POSITIVE_INFINITY;
    const drop = () => {
      if (answer === asked) answer = undefined;
    };
    asked.then((said) => {
      if (answer !== asked) return;
      if (isGood(said)) until = now() + goodFor;
      else drop();
    }, drop);
    return asked;
  };
  const forget = () => {
    answer = undefined;
  };
  return Object.assign(get, { forget });
}

interface Shared<T> {
  goodFor: number;
  isGood(answer: T): boolean;
  /** A monotonic clock in milliseconds. */
  now?(): number;
}
