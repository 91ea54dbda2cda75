#!/usr/bin/env node
// `node scripts/bootstrap.mjs <script> [arguments]`: gets Bun and the dependencies if they are missing, then runs the
// script in Bun. Plain JavaScript without dependencies, for Node 18 or newer and for Bun: it is what runs first.
import { argv } from "node:process";
import { pathToFileURL } from "node:url";
import { ensureInstalled, linkProgram, root, whyInstall } from "./bootstrap/install.mjs";
import { checkPorts, refuseKeptOptions } from "./bootstrap/ports.mjs";
import { becomeBun, fail } from "./bootstrap/run.mjs";

export async function bootstrap(script, args) {
  const interrupt = () => process.exit(130);
  process.once("SIGINT", interrupt);
  try {
    if (args[0] === "up") refuseKeptOptions(args.slice(1), process.env);
    if (args[0] === "up" && whyInstall(root)) await checkPorts(root, args.slice(1));
    await ensureInstalled(root);
    linkProgram(root);
    process.removeListener("SIGINT", interrupt);
    becomeBun(root, script, args);
  } catch (error) {
    fail(error.message);
  }
}

if (argv[1] && import.meta.url === pathToFileURL(argv[1]).href) {
  const [script, ...args] = argv.slice(2);
  if (script) await bootstrap(script, args);
  else fail("usage: node scripts/bootstrap.mjs <script> [arguments]");
}
