import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import type { Environment } from "../../platform/variable.ts";

/**
 * Why no browser should be opened; undefined when one should. `asked` is what `--browser` or `--no-browser` says.
 *
 * Over SSH it would open on the wrong machine, so there only `--browser` opens one, BROWSER or not. Without a display
 * BROWSER may still name something that works (a script, a text browser).
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
 * Starts a browser. Never through a shell: the address is one argument of its own.
 * @returns the reason, as soon as it is known, if none was started; it stays pending while all seems well, because an
 * opener may fail long after it was started.
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
 * The command that BROWSER means: words, in which `%s` stands for the address, which otherwise comes last. Of several
 * (separated by colons, as xdg-open and Python have it) it is the first. A path with a space in it is one word.
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

/** Detached, and with nothing of our terminal: it must outlive us, and must not answer to our Ctrl-C. */
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
