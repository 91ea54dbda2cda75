import { closeSync, openSync, renameSync, rmSync, statSync, utimesSync, writeSync } from "node:fs";

const heartbeat = 500;

/**
 * Runs `work` while holding the lock file. The holder touches it continuously; a file that was not touched for `stale`
 * milliseconds of the waiter's clock belonged to a killed process, and is removed.
 */
export async function withLock(path, say, work, stale = 5000) {
  let seen;
  let since = performance.now();
  let told = false;
  while (!create(path)) {
    const modified = modifiedAt(path);
    if (modified !== seen) {
      seen = modified;
      since = performance.now();
    } else if (modified !== undefined && performance.now() - since > stale) {
      removeStale(path, modified);
      continue;
    }
    if (!told) say("another svc is installing the dependencies: waiting for it ...");
    told = true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const remove = () => rmSync(path, { force: true });
  const timer = setInterval(() => touch(path), heartbeat);
  process.once("exit", remove);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    process.removeListener("exit", remove);
    remove();
  }
}

function create(path) {
  try {
    const file = openSync(path, "wx");
    writeSync(file, `${process.pid}\n`);
    closeSync(file);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

function touch(path) {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch {
    // It is gone: somebody removed it by hand.
  }
}

/** A rename succeeds for one of several waiters. If it moved a newer lock than the stale one, it puts it back. */
function removeStale(path, modified) {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
    if (modifiedAt(aside) === modified) rmSync(aside, { force: true });
    else renameSync(aside, path);
  } catch {
    // Another waiter was first.
  }
}
