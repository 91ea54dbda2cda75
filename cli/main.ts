#!/usr/bin/env bun
import { version } from "../package.json" with { type: "json" };

const argv = process.argv.slice(2);

// Answered before anything else is loaded: scripts and shells ask it often.
if (argv[0] === "--version" || argv[0] === "-V") {
  console.log(version);
} else {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // A reader that left early (`svc whoami | head -0`) is no fault of ours; half a script in a file would be.
    if (error.code !== "EPIPE") process.stderr.write(`svc: the output cannot be written (${error.code})\n`);
    process.exit(error.code === "EPIPE" ? 0 : 1);
  });
  const [{ run }, { systemIo }] = await Promise.all([import("./run.ts"), import("./io.ts")]);
  const code = await run(argv, systemIo());
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write("", done))),
  );
  // What could not be written is told behind that.
  await new Promise(setImmediate);
  // Not left to an empty event loop: a browser's process or a kept connection must not hold the terminal.
  process.exit(code);
}
