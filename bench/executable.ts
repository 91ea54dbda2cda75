import { statSync } from "node:fs";
import { join, relative } from "node:path";
import { build } from "../scripts/build.ts";
import { root } from "./support.ts";

/** Returns `dist/svc`, built first if it is missing or older than its sources. */
export async function freshExecutable(): Promise<string> {
  const file = join(root, "dist/svc");
  const built = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (newestSource() > built) {
    console.log(`building ${relative(process.cwd(), file)}`);
    await build(file);
  }
  return file;
}

function newestSource(): number {
  const sources = new Bun.Glob("{cli,core,drizzle,plugins,server}/**/*.{ts,css,sql,json}").scanSync(root);
  const others = ["package.json", "package-lock.json", "scripts/build.ts"];
  const files = [...sources, ...others].filter((path) => !path.endsWith(".test.ts"));
  return Math.max(...files.map((path) => statSync(join(root, path)).mtimeMs));
}

export function describeExecutable(file: string): string {
  return `${relative(root, file)}, ${(Bun.file(file).size / 1e6).toFixed(0)} MB, Bun ${Bun.version}`;
}
