/**
 * `ask` for many: whoever asks while an answer is on its way gets that one, and a good one serves everybody for so many
 * milliseconds. A bad one serves nobody else: that it is over is seen at once. `forget` drops a good answer early.
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
  /** Milliseconds of a clock that nobody sets. */
  now?(): number;
}
