import { appendFileSync, readFileSync } from "node:fs";
import { extname } from "node:path";

/** Preloaded into a process. Writes the path of every module that it loads to the file SVC_TEST_MODULES. */
const log = process.env.SVC_TEST_MODULES!;
const LOADERS: Record<string, Bun.Loader> = { ".ts": "ts", ".json": "json" };

Bun.plugin({
  name: "record modules",
  setup(build) {
    build.onLoad({ filter: /\.(ts|js|mjs|cjs)$/ }, ({ path }) => {
      appendFileSync(log, `${path}\n`);
      return { contents: readFileSync(path, "utf8"), loader: LOADERS[extname(path)] ?? "js" };
    });
  },
});
