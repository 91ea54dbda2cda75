import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../process/until.ts";
import { proxyPrograms } from "../programs.ts";

export type ProxyName = keyof typeof proxyPrograms;

/** Writes the configuration into the folder, and completes it so that the proxy leaves the rest of the machine alone. */
function write(proxy: ProxyName, folder: string, text: string): string {
  mkdirSync(folder, { recursive: true });
  const file = join(folder, "configuration");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const whole = {
    haproxy: text,
    caddy: `{\n  admin off\n  auto_https off\n}\n${text}`,
    nginx: `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
      events {} http { access_log off; ${temporary.join(" ")} ${text} }`,
  };
  writeFileSync(file, whole[proxy]);
  return file;
}

const environment = (folder: string) => ({
  PATH: process.env.PATH,
  HOME: folder,
  XDG_DATA_HOME: folder,
  XDG_CONFIG_HOME: folder,
});

/** Loads the configuration in the proxy's check mode. Returns the exit code and the output. */
export function checkProxy(
  proxy: ProxyName,
  folder: string,
  text: string,
  more: Readonly<Record<string, string>> = {},
) {
  const file = write(proxy, folder, text);
  const args = {
    haproxy: ["-c", "-f", file],
    caddy: ["validate", "--adapter", "caddyfile", "--config", file],
    nginx: ["-t", "-p", folder, "-c", file, "-e", "stderr"],
  };
  const env = { ...environment(folder), ...more };
  const { exitCode, stdout, stderr } = Bun.spawnSync([proxyPrograms[proxy], ...args[proxy]], { env });
  return { exitCode, output: `${stdout}${stderr}` };
}

/** Starts the proxy with the configuration, and waits until `answers` returns a value. */
export async function startProxy(
  proxy: ProxyName,
  folder: string,
  text: string,
  answers: () => Promise<unknown>,
): Promise<AsyncDisposable> {
  const file = write(proxy, folder, text);
  const args = {
    haproxy: ["-db", "-f", file],
    caddy: ["run", "--adapter", "caddyfile", "--config", file],
    nginx: ["-p", folder, "-c", file, "-e", "stderr"],
  };
  const child = Bun.spawn([proxyPrograms[proxy], ...args[proxy]], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: Bun.file(join(folder, "stderr")),
    env: environment(folder),
  });
  await until(`${proxy} to answer`, async () => {
    if (child.exitCode !== null) throw new Error(readFileSync(join(folder, "stderr"), "utf8"));
    return await answers();
  });
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
