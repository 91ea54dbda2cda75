#!/usr/bin/env bun
import { version } from "../package.json" with { type: "json" };

const argv = process.argv.slice(2);

// Answered before anything else is loaded: scripts and shells ask it often.
if (argv[0] === "--version" || argv[0] === "-V") {
  console.log(version);
} else {
  // A reader that left early (`svc whoami | head -0`) is no fault of ours.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  const [{ run }, { systemIo }] = await Promise.all([import("./run.ts"), import("./io.ts")]);
  const code = await run(argv, systemIo());
  await Promise.all(
    [process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write("", done))),
  );
  // Not left to an empty event loop: a browser's process or a kept connection must not hold the terminal.
  process.exit(code);
}
