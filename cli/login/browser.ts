import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import type { Environment } from "../../platform/variable.ts";

/**
 * The reason not to open a browser, or undefined to open one. `asked` is the value of `--browser` or `--no-browser`.
 *
 * Over SSH, it would open on the wrong machine, so only `--browser` opens one there, even if BROWSER is set. Without a
 * display, BROWSER may still name a program that works (a script, a text browser).
 */
export function reasonNotToOpen(
  asked: boolean | undefined,
  env: Environment,
  platform: NodeJS.Platform,
): "no-browser" | "ssh" | "no-display" | undefined {
  if (asked !== undefined) return asked ? undefined : "no-browser";
  if (env.SSH_CONNECTION || env.SSH_TTY) return "ssh";
  const hasDisplay = env.DISPLAY || env.WAYLAND_DISPLAY || env.WSL_DISTRO_NAME || env.WSL_INTEROP;
  if (platform === "linux" && !hasDisplay && !env.BROWSER) return "no-display";
  return undefined;
}

/**
 * Starts a browser without a shell: the address is a single argument.
 * @returns the reason if no browser was started, as soon as it is known. It stays pending otherwise, because an opener may
 * fail long after it was started.
 */
export async function openBrowser(url: string, env: Environment): Promise<string> {
  try {
    if (env.BROWSER) return await watch(start(browserCommand(env.BROWSER, url)));
    const { default: open } = await import("open");
    return await watch(await open(url));
  } catch (error) {
    return reason(error);
  }
}

/**
 * Parses BROWSER into words. `%s` stands for the address, which otherwise comes last. Of several commands (separated by
 * colons, as in xdg-open and Python), the first is used. A path that contains a space is one word.
 */
export function browserCommand(browser: string, url: string, isFile = isExecutable): string[] {
  if (isFile(browser)) return [browser, url];
  // A colon before `//` or a number belongs to an address that is an argument, before `\` to a Windows path.
  const first = browser.split(/:(?!\/\/|\d|\\)/).find((part) => part.trim()) ?? "";
  const words = first.trim().split(/\s+/);
  const command = words.map((word) => word.replaceAll("%s", () => url));
  return words.some((word) => word.includes("%s")) ? command : [...command, url];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Detached from our terminal, because it must outlive us and ignore our Ctrl-C. */
function start([command = "", ...args]: string[]) {
  const child = spawn(command, args, { stdio: "ignore", detached: true, shell: false });
  child.unref();
  return child;
}

type Child = ReturnType<typeof spawn>;

function watch(child: Child): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const ended = (code: number | null, signal: NodeJS.Signals | null) => {
    if (code !== 0) resolve(signal === null ? `exit code ${code}` : signal);
  };
  if (child.exitCode !== null || child.signalCode !== null) ended(child.exitCode, child.signalCode);
  child.once("error", (error) => resolve(reason(error)));
  child.once("exit", ended);
  return promise;
}

function reason(error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" && path ? `there is no ${path}` : (code ?? message);
}
