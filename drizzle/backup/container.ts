import { isLoopbackHost } from "../../platform/address.ts";
import type { Environment } from "../../platform/variable.ts";

/** A server that runs in a container of this machine, as `docker compose up` starts it. */
export interface Container {
  id: string;
  /** Of the server, within the container. */
  port: number;
}

/** Where we reach the server. */
export interface ServerAddress {
  host: string;
  port: number;
}

/** `0.0.0.0:5433->5432/tcp` among others, apart by commas: an address of this machine, then the container's port. */
const published = /(?:^|, )(?:\[?[0-9a-f.:]*\]?):(\d+)->(\d+)\/tcp/g;

/**
 * The container that publishes the server's port on this machine; undefined when there is none, no engine, or the
 * server is elsewhere. That it is the very server shows itself: only there is our snapshot known.
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
 * Whoever loses patience with `docker exec` does not end what it runs, and a forgotten pg_dump keeps its locks. So it is
 * ended from within, when our end of its standard input is gone.
 */
const endsWithUs =
  'exec 3<&0; "$@" 3<&- </dev/null & child=$!; { cat <&3 >/dev/null; kill $child; } 2>/dev/null & wait $child';

/**
 * What begins the command of a tool in a container. Variables go by their names, and their values by the environment:
 * an argument could be read by everyone. `readsInput`: its standard input is a file of ours, whose end is its own.
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

/** What a tool in the container says that its version is. */
export async function versionIn({ id }: Container, tool: string, env: Environment) {
  return output(["docker", "exec", id, tool, "--version"], env);
}

/** Standard output of a command that succeeds; undefined of one that fails or is not there. */
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

/** Which engine it is, and what it needs to know of us: nothing else of our environment. */
export function engineEnvironment(env: Environment): Environment {
  const {
    PATH,
    HOME,
    DOCKER_HOST,
    DOCKER_CONTEXT,
    DOCKER_CONFIG,
    DOCKER_CERT_PATH,
    DOCKER_TLS_VERIFY,
    XDG_RUNTIME_DIR,
  } = env;
  return {
    PATH,
    HOME,
    DOCKER_HOST,
    DOCKER_CONTEXT,
    DOCKER_CONFIG,
    DOCKER_CERT_PATH,
    DOCKER_TLS_VERIFY,
    XDG_RUNTIME_DIR,
  };
}
