import { existsSync, type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** An editor writes a file in several steps, and a checkout writes many files. */
const settleMilliseconds = 50;
const ignored = /(^|[/\\])(node_modules|\.git|\.svc)([/\\]|$)|~$|\.sw[px]$/;

/** Whether a program is made of such files. A log in the same folder is not: each restart would write to it. */
export const isSource = (name: string): boolean => /\.([cm]?[jt]sx?|json|sql)$|(^|[/\\])\.env$/.test(name);

/** Calls `changed` shortly after a change of these files, or in these folders at any depth, of those that `counts`. */
export function watchFiles(
  paths: readonly string[],
  changed: () => void,
  counts: (name: string) => boolean = () => true,
): Disposable {
  let timer: Timer | undefined;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, settleMilliseconds);
  };
  const watchers = paths.flatMap((path) => watchOne(path, soon, counts) ?? []);
  return {
    [Symbol.dispose]() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

function watchOne(path: string, soon: () => void, counts: (name: string) => boolean): FSWatcher | undefined {
  if (existsSync(path) && statSync(path).isDirectory()) {
    return watch(path, { recursive: true }, (_event, name) => {
      if (name === null || (!ignored.test(name) && counts(name))) soon();
    });
  }
  // Watches the folder, because a file that is replaced or does not exist yet cannot be watched.
  const folder = dirname(path);
  if (!existsSync(folder)) return undefined;
  return watch(folder, (_event, name) => {
    if (name === basename(path)) soon();
  });
}
