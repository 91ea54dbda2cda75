import { run } from "./engine.ts";

/** Of what a run of the tests has in an engine; several may be at it at the same time. */
export function nameOfRun(): string {
  return `svc-test-${crypto.randomUUID().slice(0, 8)}`;
}
const anyRun = /svc-test-[0-9a-f]{8}/;

/**
 * What a run leaves in the engine. Disposing of it takes away every container, network, volume and image that has the name
 * of the run in its own, and the images without a name that came meanwhile: stages, and what was built twice. These stay
 * where another run may be building on them.
 */
export function leftoversOf(name: string): Disposable {
  const before = new Set(nameless());
  return {
    [Symbol.dispose]() {
      // Not by their image: another run's may be the same one by another name.
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

/** What is gone already, or belongs to somebody else by now, is none of our concern. */
function remove(command: string[], all: string[]): void {
  if (all.length > 0) run("docker", ...command, ...all);
}
