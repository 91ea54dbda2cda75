export function withLock<T>(
  path: string,
  say: (text: string) => void,
  work: () => Promise<T>,
  stale?: number,
): Promise<T>;
