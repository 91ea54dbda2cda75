import { isLoopbackHost } from "../../platform/address.ts";
import type { Environment } from "../../platform/variable.ts";

/** A server that runs in a container on this machine, as started by `docker compose up`. */
export interface Container {
  id: string;
  /** The server's port inside the container. */
  port: number;
}

/** The address at which we reach the server. */
export interface ServerAddress {
  host: string;
  port: number;
}

/**
 * Matches `0.0.0.0:5433->5432/tcp` in a comma-separated list: an address of this machine, then the container's port.
 */
const published = /(?:^|, )(?:\[?[0-9a-f.:]*\]?):(\d+)->(\d+)\/tcp/g;

/**
 * Returns the container that publishes the server's port on this machine; undefined if there is no such container, no
 * engine, or the server is elsewhere. A wrong container is noticed later, since only the right server knows our
 * snapshot.
 */
export async function containerAt(
  { host, port }: ServerAddress,
  env: Environment,
): Promise<Container | undefined> {
  if (!isLoopbackHost(host)) return undefined;
  const list = await output(["docker", "ps", "--no-trunc", "--format", "{{.ID}} {{.Ports}}"], env);
  for (const line of list?.split("\n") ?? []) {
    const [id = "", ...rest] = line.split(" ");
    for (const [, outside, inside] of rest.join(" ").matchAll(published))
      if (Number(outside) === port) return { id, port: Number(inside) };
  }
  return undefined;
}

/**
 * Ending `docker exec` does not end the process it runs, and a forgotten pg_dump keeps its locks. So a watcher inside
 * the container ends the process when our end of its standard input closes.
 */
const endsWithUs =
  'exec 3<&0; "$@" 3<&- </dev/null & child=$!; { cat <&3 >/dev/null; kill $child; } 2>/dev/null & wait $child';

/**
 * The start of a command that runs a tool in a container. Variables are passed by name and take their values from the
 * environment, since anyone could read an argument. `readsInput`: standard input is a file of ours, so the tool itself
 * notices its end.
 */
export function commandIn(
  { id }: Container,
  tool: string,
  { names = [], readsInput }: { names?: readonly string[]; readsInput: boolean },
): string[] {
  const variables = names.flatMap((name) => ["--env", name]);
  const wrapper = readsInput ? [] : ["sh", "-c", endsWithUs, "sh"];
  return ["docker", "exec", "--interactive", ...variables, id, ...wrapper, tool];
}

/** The version that the tool in the container reports. */
export async function versionIn({ id }: Container, tool: string, env: Environment) {
  return output(["docker", "exec", id, tool, "--version"], env);
}

/** Standard output of a command that succeeds; undefined if it fails or does not exist. */
async function output(command: string[], env: Environment): Promise<string | undefined> {
  const [program = "", ...args] = command;
  const path = Bun.which(program, { PATH: env.PATH ?? "" });
  if (path === null) return undefined;
  const child = Bun.spawn([path, ...args], {
    env: engineEnvironment(env),
    stdio: ["ignore", "pipe", "ignore"],
  });
  const text = await new Response(child.stdout).text();
  return (await child.exited) === 0 ? text : undefined;
}

const engineVariables = [
  "PATH",
  "HOME",
  "DOCKER_HOST",
  "DOCKER_CONTEXT",
  "DOCKER_CONFIG",
  "DOCKER_CERT_PATH",
  "DOCKER_TLS_VERIFY",
  "XDG_RUNTIME_DIR",
];

/** The variables that select the engine, and nothing else from our environment. */
export function engineEnvironment(env: Environment): Environment {
  return Object.fromEntries(engineVariables.map((name) => [name, env[name]]));
}
