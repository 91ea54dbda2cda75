#!/usr/bin/env bun
import { release } from "../platform/build.ts";

const argv = process.argv.slice(2);

let isBroken = false;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  isBroken = true;
  // A command that reports it has more to do first (`writeOut`).
  if (process.stdout.listenerCount("error") > 1) return;
  // A reader may close the pipe early (`svc whoami | head -0`). Any other error leaves incomplete output.
  if (error.code !== "EPIPE") process.stderr.write(`svc: cannot write the output (${error.code})\n`);
  process.exit(error.code === "EPIPE" ? 0 : 1);
});
// There is nowhere left to report it.
process.stderr.on("error", () => {});

// Before anything else is loaded: scripts and shells run it often.
if (argv[0] === "--version" || argv[0] === "-V") {
  process.stdout.write(`${release}\n`);
} else if (!(argv[1] === "get" && (await shortcut()))) {
  const [{ run }, { systemIo }] = await Promise.all([import("./run.ts"), import("./io.ts")]);
  const code = await run(argv, systemIo());
  // After a failed write to a file, Bun does not call back.
  if (!isBroken) await ended(process.stdout);
  // Let the error handler above report a failed write, and flush its message.
  await new Promise(setImmediate);
  await new Promise((done) => process.stderr.write("", done));
  // A browser process or a kept connection would keep the event loop, and so the terminal, busy.
  process.exit(code);
}

/** Prints a cached credential without loading the rest: the AWS tools and kubectl run this each time they start. */
async function shortcut(): Promise<boolean> {
  const { printCached } = await import("./access/shortcut.ts");
  return printCached(argv, process.env, process.stdout);
}

/** Resolves when a slow reader has read everything. The callback of an empty `write` does not wait for that. */
function ended(stream: NodeJS.WriteStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.end(resolve);
  return promise;
}
