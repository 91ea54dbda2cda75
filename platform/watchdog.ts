import { Worker } from "node:worker_threads";

const tickMilliseconds = 500;

/** The thread's data. */
interface ThreadData {
  counter: SharedArrayBuffer;
  tickMilliseconds: number;
  seconds: number;
}

/**
 * Ends this process, with a line on stderr and exit code 1, if its event loop has not run for `seconds`. Nothing else
 * could, because its signal handlers do not run either. Time while the whole process is suspended (SIGSTOP, a paused
 * machine) does not count.
 *
 * @returns a function that stops the watchdog
 */
export function startWatchdog(seconds = 20): () => Promise<void> {
  const counter = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const ticks = new Int32Array(counter);
  const timer = setInterval(() => Atomics.add(ticks, 0, 1), tickMilliseconds).unref();
  const workerData: ThreadData = { counter, tickMilliseconds, seconds };
  // Passed as text, because the single executable has no file to load it from.
  const thread = new Worker(`(${watch})()`, { eval: true, workerData });
  thread.unref();
  return async () => {
    clearInterval(timer);
    await thread.terminate();
  };
}

/** Runs in a separate thread from its text, so it cannot use anything else in this file. */
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
      // struct pollfd of stderr, for POLLOUT: a stalled reader must not block this thread too.
      const stderr = new Uint8Array(new Int32Array([2, 4]).buffer);
      if (symbols.poll(ptr(stderr), 1n, 0) === 1) writeSync(2, line);
      // In a thread, process.exit only ends the thread; and process 1 of a container ignores SIGKILL from itself.
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
    const msg = `the event loop was blocked for ${workerData.seconds} s: this process exits`;
    end(`${JSON.stringify({ level: 60, time: new Date().toISOString(), msg })}\n`);
  }, workerData.tickMilliseconds);
}
