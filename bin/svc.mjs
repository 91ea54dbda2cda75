#!/usr/bin/env node
import { bootstrap } from "../scripts/bootstrap.mjs";

await bootstrap("cli/main.ts", process.argv.slice(2));
