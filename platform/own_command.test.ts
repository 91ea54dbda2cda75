import { expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

test("an image, which has only the runtime folders, writes no revision and says why", async () => {
  const root = join(import.meta.dir, "..");
  const tree = mkdtempSync(join(tmpdir(), "svc-image-"));
  for (const name of ["cli", "core", "drizzle", "platform", "package.json", "bunfig.toml"])
    cpSync(join(root, name), join(tree, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(tree, "node_modules"));
  const command = [process.execPath, "--no-env-file", join(tree, "cli/main.ts"), "database"];
  for (const args of [["check"], ["revision", "-m", "x", "--autogenerate"], ["merge"]]) {
    const child = Bun.spawn([...command, ...args], { cwd: tree, stdout: "pipe", stderr: "pipe" });
    expect(await new Response(child.stderr).text()).toBe(
      "svc: Revisions are written in a clone of the source: this is an image\n",
    );
    expect(await child.exited).toBe(1);
  }
  rmSync(tree, { recursive: true });
});
