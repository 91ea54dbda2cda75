import { run } from "./engine.ts";

/** The name of a test run's objects in an engine; several runs may use it concurrently. */
export function nameOfRun(): string {
  return `svc-test-${crypto.randomUUID().slice(0, 8)}`;
}
const anyRun = /svc-test-[0-9a-f]{8}/;

/**
 * The objects that a run leaves in the engine. Disposing removes every container, network, volume and image with the run's
 * name in its name, and unnamed images that were created since: stages, and images that were built twice. Unnamed images
 * stay if another run may be building on them.
 */
export function leftoversOf(name: string): Disposable {
  const before = new Set(nameless());
  return {
    [Symbol.dispose]() {
      // Not by image, because another run may have the same image under another name.
      remove(["rm", "--force", "--volumes"], named(name, "ps", "--all", "--format", "{{.Names}}"));
      remove(["network", "rm"], named(name, "network", "ls", "--format", "{{.Name}}"));
      remove(["volume", "rm"], named(name, "volume", "ls", "--format", "{{.Name}}"));
      remove(["image", "rm", "--force"], named(name, ...images));
      if (list(...images).some((image) => anyRun.test(image))) return;
      remove(
        ["image", "rm"],
        nameless().filter((id) => !before.has(id)),
      );
    },
  };
}

const images = ["image", "ls", "--format", "{{.Repository}}:{{.Tag}}"];

function nameless(): string[] {
  return list("image", "ls", "--quiet", "--no-trunc", "--filter", "dangling=true");
}

function named(name: string, ...command: string[]): string[] {
  return list(...command).filter((one) => one.includes(name));
}

function list(...command: string[]): string[] {
  return run("docker", ...command)
    .stdout.split("\n")
    .filter(Boolean);
}

/** Ignores objects that are already gone or in use by others. */
function remove(command: string[], all: string[]): void {
  if (all.length > 0) run("docker", ...command, ...all);
}
