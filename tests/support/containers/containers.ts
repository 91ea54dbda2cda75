import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { withLock } from "../../../scripts/bootstrap/lock.mjs";
import { until } from "../process/until.ts";
import { composeProgram } from "./engine.ts";
import { nameOfRun } from "./engine_leftovers.ts";
import { publishedPort } from "./network.ts";

const root = join(import.meta.dir, "../../..");

/** Part of the name of every object of these tests in an engine, which others may also use. */
export const runName = process.env.SVC_TEST_RUN ?? nameOfRun();

/** The image that is built first, and that the others are based on. */
export const testImage = runName;

export interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program until it exits. */
export async function say(
  command: string[],
  options: { cwd?: string; env?: Record<string, string | undefined> } = {},
): Promise<Said> {
  const { PATH, HOME } = process.env;
  const child = Bun.spawn(command, {
    cwd: options.cwd,
    env: { PATH, HOME, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stdout, stderr] = await Promise.all(
    [child.stdout, child.stderr].map((stream) => new Response(stream).text()),
  );
  return { code: await child.exited, stdout: stdout!, stderr: stderr! };
}

/** The same, for commands that must succeed. @returns its standard output @throws Error with its output */
export async function done(command: string[], options: Parameters<typeof say>[1] = {}): Promise<string> {
  const { code, stdout, stderr } = await say(command, options);
  if (code === 0) return stdout;
  throw new Error(`${command.join(" ")} ended with ${code}:\n${stdout}${stderr}`);
}

export const docker = (...args: string[]) => done(["docker", ...args]);

/** A container's output since then, on both streams. */
export async function saidBy(container: string, since: Date): Promise<string> {
  const { stdout, stderr } = await say(["docker", "logs", "--since", since.toISOString(), container]);
  return stdout + stderr;
}

/** Like a kill by the kernel; after `docker kill`, the container would not be restarted. */
export async function killHard(container: string): Promise<void> {
  const pid = (await docker("inspect", "-f", "{{.State.Pid}}", container)).trim();
  const aside = ["--rm", "--pid", "host", "--user", "0", "--cap-drop", "ALL", "--cap-add", "KILL"];
  await docker("run", ...aside, testImage, "sh", "-c", `kill -9 ${pid}`);
}

/** The files of a clone with everything committed, plus files that must not be in an image. */
export async function makeClone(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "svc-clone-"));
  const list = await done(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: root,
  });
  for (const path of list.split("\0").filter((path) => path && existsSync(join(root, path)))) {
    mkdirSync(join(directory, dirname(path)), { recursive: true });
    copyFileSync(join(root, path), join(directory, path));
  }
  // As umask 077 leaves files, of a user whom no container knows.
  for (const path of ["cli", "deploy", "drizzle", "package.json"]) {
    await done(["chmod", "-R", "go=", join(directory, path)]);
    if (process.getuid?.() === 0) await done(["chown", "-R", "12345:12345", join(directory, path)]);
  }
  mkdirSync(join(directory, "secrets"));
  for (const path of [".env", "svc-backup.dump", "secrets/key_secret"])
    writeFileSync(join(directory, path), "LEFT=private\n");
  return directory;
}

/** A clone, and the image that `docker compose` builds there. */
export async function buildImage(): Promise<{ directory: string } & Disposable> {
  const directory = await makeClone();
  await buildOnce(testImage, directory);
  return { directory, [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

/**
 * Builds an image that several test files share, one at a time. Later builds are the same image from the cache: a second
 * build would move the name to another image, and the next `docker compose up` of the first one would replace its
 * containers.
 */
export async function buildOnce(image: string, directory: string): Promise<void> {
  await withLock(
    join(tmpdir(), `${image}.lock`),
    () => {},
    () => docker("build", "--quiet", "--tag", image, directory),
  );
}

/** A project of `docker compose` with separate ports and volumes; removed at the end, with its data. */
export class Compose implements AsyncDisposable {
  readonly #project = `${runName}-${crypto.randomUUID().slice(0, 8)}`;
  readonly #program = composeProgram();

  private constructor(
    readonly directory: string,
    readonly env: Record<string, string | undefined>,
    private readonly files: string[],
  ) {}

  static async in(
    directory: string,
    files: string[] = [],
    env: Record<string, string | undefined> = {},
  ): Promise<Compose> {
    const [port, idpPort] = [await publishedPort(), await publishedPort()];
    const ports = { TRIAL_PORT: String(port), TRIAL_IDP_PORT: String(idpPort) };
    return new Compose(directory, { ...ports, RELEASE_IMAGE: testImage, ...env }, files);
  }

  get url(): string {
    return `http://127.0.0.1:${this.env.TRIAL_PORT}`;
  }

  say(args: string[], env: Record<string, string> = {}): Promise<Said> {
    const files = this.files.flatMap((file) => ["-f", file]);
    const command = [...this.#program, "-p", this.#project, ...files, ...args];
    return say(command, { cwd: this.directory, env: { ...this.env, ...env } });
  }

  /**
   * Runs shell commands in the clone, with the project and its files in the environment.
   * @returns their standard output and standard error @throws Error with the output if one of them fails
   */
  async type(commands: string): Promise<string> {
    const env = {
      ...this.env,
      PATH: [...this.#shim(), process.env.PATH].join(delimiter),
      COMPOSE_PROJECT_NAME: this.#project,
      COMPOSE_FILE: this.files.join(":"),
    };
    const { code, stdout, stderr } = await say(["sh", "-eu", "-c", commands], { cwd: this.directory, env });
    if (code === 0) return stdout + stderr;
    throw new Error(`${commands}ended with ${code}:\n${stdout}${stderr}\n${await this.logs()}`);
  }

  /** If only the old docker-compose exists, a `docker` program that supports `compose`. */
  #shim(): string[] {
    const [first, second] = this.#program;
    if (second === "compose") return [];
    const folder = join(this.directory, ".shim");
    mkdirSync(folder, { recursive: true });
    const script = `#!/bin/sh
[ "$1" = compose ] && shift && exec ${first} "$@"
exec ${Bun.which("docker")} "$@"
`;
    writeFileSync(join(folder, "docker"), script, { mode: 0o755 });
    return [folder];
  }

  async done(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.say(args);
    if (code === 0) return stdout;
    throw new Error(
      `compose ${args.join(" ")} ended with ${code}:\n${stdout}${stderr}\n${await this.logs()}`,
    );
  }

  /** Runs in one of its containers; the old docker-compose supports only the first, which may have been replaced. */
  async exec(service: string, ...command: string[]): Promise<string> {
    const [container] = await this.containers(service);
    return docker("exec", container!, ...command);
  }

  async logs(...services: string[]): Promise<string> {
    return (await this.say(["logs", "--no-color", ...services])).stdout;
  }

  /** The containers of a service, including stopped ones. */
  async containers(service: string): Promise<string[]> {
    return (await this.done("ps", "--all", "--quiet", service)).split("\n").filter(Boolean);
  }

  /** Waits until every container of these services is healthy. */
  async healthy(services: string[], seconds = 300): Promise<void> {
    for (const service of services) {
      for (const container of await this.containers(service)) {
        await until(
          `${service} to be healthy`,
          async () =>
            (await docker("inspect", "-f", "{{.State.Health.Status}}", container)).trim() === "healthy",
          seconds,
        ).catch(async (error: Error) => {
          const health = await docker("inspect", "-f", "{{json .State.Health}}", container);
          throw new Error(`${error.message}: ${health}\n${await this.logs(service)}`);
        });
      }
    }
  }

  /** The time of the latest slot of the schedule, in milliseconds; 0 if it is unknown. */
  async latestSlot(): Promise<number> {
    const [container] = await this.containers("db");
    const query = "select extract(epoch from max(slot)) from run";
    const asked = ["psql", "-h", "/var/run/postgresql", "-U", "svc", "-d", "svc", "-tAc", query];
    const { stdout } = await say(["docker", "exec", container!, ...asked]);
    return Number(stdout) * 1000;
  }

  /** Waits for this many slots; there is one every 30 s. */
  async slotsLater(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const before = await until("the latest slot", () => this.latestSlot(), 180);
      await until("the next slot", async () => (await this.latestSlot()) > before, 180);
    }
  }

  /** The address range of the network that its services share by default. */
  get network(): string {
    return `${this.#project}_default`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.say(["down", "--volumes", "--remove-orphans", "--timeout", "2"]);
  }
}
