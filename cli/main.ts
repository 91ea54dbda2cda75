#!/usr/bin/env bun
import { release } from "../platform/build.ts";

const argv = process.argv.slice(2);

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that left early (`svc whoami | head -0`) is no fault of ours; half a script in a file would be.
  if (error.code !== "EPIPE") process.stderr.write(`svc: cannot write the output (${error.code})\n`);
  process.exit(error.code === "EPIPE" ? 0 : 1);
});
// Nobody is left to be told that.
process.stderr.on("error", () => {});

// Answered before anything else is loaded: scripts and shells ask it often.
if (argv[0] === "--version" || argv[0] === "-V") {
  process.stdout.write(`${release}\n`);
} else {
  const [{ run }, { systemIo }] = await Promise.all([import("./run.ts"), import("./io.ts")]);
  const code = await run(argv, systemIo());
  await ended(process.stdout);
  // What could not be written is told behind that. Talk is short: nobody has to wait until it is read.
  await new Promise(setImmediate);
  await new Promise((done) => process.stderr.write("", done));
  // Not left to an empty event loop: a browser's process or a kept connection must not hold the terminal.
  process.exit(code);
}

/** Resolves behind all that a slow reader has yet to take. An empty `write` is done at once, whatever waits before it. */
function ended(stream: NodeJS.WriteStream): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.end(resolve);
  return promise;
}
