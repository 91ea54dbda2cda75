/**
 * `ask` for many: whoever asks while an answer is on its way gets that one, and a good one serves everybody for so many
 * milliseconds. A bad one serves nobody else: that it is over is seen at once.
 */
export function shared<T>(
  ask: () => Promise<T>,
  { goodFor, isGood, now = () => performance.now() }: Shared<T>,
): () => Promise<T> {
  let answer: Promise<T> | undefined;
  let until = Number.POSITIVE_INFINITY;
  return () => {
    if (answer && now() < until) return answer;
    const asked = ask();
    answer = asked;
    until = Number.POSITIVE_INFINITY;
    const forget = () => {
      answer = undefined;
    };
    asked.then((said) => {
      if (isGood(said)) until = now() + goodFor;
      else forget();
    }, forget);
    return asked;
  };
}

interface Shared<T> {
  goodFor: number;
  isGood(answer: T): boolean;
  /** Milliseconds of a clock that nobody sets. */
  now?(): number;
}
