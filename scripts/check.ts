import { join } from "node:path";

const root = join(import.meta.dir, "..");
const bun = process.execPath;

/** The static checks. */
const checks: { name: string; command: string[]; fix?: string }[] = [
  { name: "format", command: [bun, "fmt", "--check"], fix: "npx bun fmt" },
  {
    name: "lint",
    command: [join(root, "node_modules/.bin/biome"), "check", "--error-on-warnings"],
    fix: "npx biome check --write",
  },
  { name: "types", command: [bun, "check"] },
];

/** Runs the checks at once, prints the output of failed ones, and returns the counts. */
export async function runChecks(): Promise<{ passed: number; failed: number }> {
  const results = await Promise.all(checks.map(runCheck));
  const passed = results.filter((good) => good).length;
  return { passed, failed: results.length - passed };
}

async function runCheck({ name, command, fix }: (typeof checks)[number]): Promise<boolean> {
  const started = performance.now();
  const child = Bun.spawn(command, { cwd: root, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const output = await Promise.all([child.stdout, child.stderr].map((stream) => new Response(stream).text()));
  const good = (await child.exited) === 0;
  const time = `[${Math.round(performance.now() - started)} ms]`;
  console.log(`(${good ? "pass" : "fail"}) ${name} ${time}${!good && fix ? `, try: ${fix}` : ""}`);
  if (!good) console.log(output.join("").trim());
  return good;
}

if (import.meta.main) {
  const { failed } = await runChecks();
  process.exit(failed > 0 ? 1 : 0);
}
