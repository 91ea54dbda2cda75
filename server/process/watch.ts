import { existsSync, type FSWatcher, statSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

/** An editor writes a file in several steps, and a checkout writes many files. */
const settleMilliseconds = 50;
const ignored = /(^|[/\\])(node_modules|\.git|\.svc)([/\\]|$)|~$|\.sw[px]$/;

/** Calls `changed` shortly after a change of these files, or in these folders at any depth. */
export function watchFiles(paths: readonly string[], changed: () => void): Disposable {
  let timer: Timer | undefined;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(changed, settleMilliseconds);
  };
  const watchers = paths.flatMap((path) => watchOne(path, soon) ?? []);
  return {
    [Symbol.dispose]() {
      clearTimeout(timer);
      for (const watcher of watchers) watcher.close();
    },
  };
}

function watchOne(path: string, soon: () => void): FSWatcher | undefined {
  if (existsSync(path) && statSync(path).isDirectory()) {
    return watch(path, { recursive: true }, (_event, name) => {
      if (name === null || !ignored.test(name)) soon();
    });
  }
  // Watches the folder, because a file that is replaced or does not exist yet cannot be watched.
  const folder = dirname(path);
  if (!existsSync(folder)) return undefined;
  return watch(folder, (_event, name) => {
    if (name === basename(path)) soon();
  });
}
