import { Worker } from "node:worker_threads";

const tickMilliseconds = 500;

/** What the thread gets. */
interface ThreadData {
  counter: SharedArrayBuffer;
  tickMilliseconds: number;
  seconds: number;
}

/**
 * Ends this process, with a line on stderr and exit code 1, when its event loop has not turned for `seconds`: nothing else
 * could, since its signal handlers do not run either. Time in which the whole process stands still (SIGSTOP, a paused
 * machine) does not count.
 *
 * @returns what ends the watch
 */
export function startWatchdog(seconds = 20): () => Promise<void> {
  const counter = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const ticks = new Int32Array(counter);
  const timer = setInterval(() => Atomics.add(ticks, 0, 1), tickMilliseconds).unref();
  const workerData: ThreadData = { counter, tickMilliseconds, seconds };
  // As text: the single executable has no file to load it from.
  const thread = new Worker(`(${watch})()`, { eval: true, workerData });
  thread.unref();
  return async () => {
    clearInterval(timer);
    await thread.terminate();
  };
}

/** Runs in a thread of its own, from its text: it can use nothing of this file. */
function watch(): void {
  const load = process.getBuiltinModule;
  const { workerData } = load("node:worker_threads") as { workerData: ThreadData };
  const { writeSync } = load("node:fs");
  const ticks = new Int32Array(workerData.counter);
  let seen = -1;
  let still = 0;
  const end = (line: string) => {
    try {
      const { dlopen, ptr } = load("bun:ffi" as "node:fs") as unknown as typeof import("bun:ffi");
      const { symbols } = dlopen(process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6", {
        poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
        _exit: { args: ["i32"], returns: "void" },
      });
      // struct pollfd of stderr, for POLLOUT: a reader that stands still must not hold this thread, too.
      const stderr = new Uint8Array(new Int32Array([2, 4]).buffer);
      if (symbols.poll(ptr(stderr), 1n, 0) === 1) writeSync(2, line);
      // In a thread, process.exit ends the thread; and process 1 of a container ignores its own SIGKILL.
      symbols._exit(1);
    } finally {
      process.kill(process.pid, "SIGKILL");
    }
  };
  setInterval(() => {
    const now = Atomics.load(ticks, 0);
    still = now === seen ? still + workerData.tickMilliseconds : 0;
    seen = now;
    if (still < workerData.seconds * 1000) return;
    const msg = `the event loop did not turn for ${workerData.seconds} s: this process ends itself`;
    end(`${JSON.stringify({ level: 60, time: new Date().toISOString(), msg })}\n`);
  }, workerData.tickMilliseconds);
}
