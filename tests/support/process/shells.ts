import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Shell, scripts } from "../../../cli/completion/scripts.ts";
import { testProgram } from "../cli/process.ts";
import { until } from "./until.ts";

const commands: Readonly<Record<Shell, (script: string) => [command: string[], first: string]>> = {
  bash: (script) => [["bash", "--norc", "--noprofile", "-i"], `source ${script}`],
  zsh: (script) => [["zsh", "-f", "-i"], `autoload -U compinit && compinit -u -D && source ${script}`],
  fish: (script) => [["fish", "--no-config", "-i"], `source ${script}`],
};

/**
 * A shell on a terminal, in an empty folder, with our completion and a `svc` that completes like ours (or, with
 * `candidates`, offers those that begin like the last word) but otherwise only records its arguments.
 */
export class CompletingShell {
  readonly folder: string;
  readonly #bin: string;
  readonly #notes: string;
  readonly #child: Bun.Subprocess;
  #screen = "";

  constructor(
    readonly shell: Shell,
    candidates?: readonly string[],
  ) {
    const directory = mkdtempSync(join(tmpdir(), "svc-shell-"));
    this.folder = join(directory, "here");
    this.#bin = join(directory, "bin");
    this.#notes = join(directory, "notes");
    for (const folder of [this.folder, this.#bin]) mkdirSync(folder);
    writeFileSync(this.#notes, "");
    const list = join(directory, "candidates");
    writeFileSync(list, candidates?.map((word) => `${word}\n`).join("") ?? "");
    const offer = `for last; do :; done
  echo words; while IFS= read -r word; do case $word in "$last"*) echo "$word";; esac; done < ${list}`;
    const answer = candidates ? offer : `${testProgram.join(" ")} "$@"`;
    // Each line is `?` for an answered completion, or the arguments.
    const svc = `#!/bin/sh
if [ "$1" = __complete ]; then
  ${answer}; echo '?' >> ${this.#notes}
else
  for word; do printf '%s|' "$word"; done >> ${this.#notes}; echo >> ${this.#notes}
fi
`;
    writeFileSync(join(this.#bin, "svc"), svc);
    chmodSync(join(this.#bin, "svc"), 0o755);
    const script = join(directory, "script");
    writeFileSync(script, scripts[shell]);
    const [command, first] = commands[shell](script);
    this.#child = Bun.spawn(command, {
      cwd: this.folder,
      env: { PATH: `${this.#bin}:${process.env.PATH}`, HOME: directory, TERM: "xterm", LANG: "C.UTF-8" },
      terminal: {
        cols: 200,
        rows: 50,
        data: (_terminal, data) => {
          this.#screen += Buffer.from(data).toString();
        },
      },
    });
    this.#type(`${first}\r`);
  }

  /** Types `text` and Enter, and waits at each tab for the completion. @returns the arguments of svc */
  async run(text: string): Promise<string[]> {
    // After a command has run, the first prompt has been drawn.
    const begun = this.#lines().length;
    this.#type("svc begin\r");
    await this.#noted(begun + 1);
    for (const [at, piece] of text.split("\t").entries()) {
      if (at > 0) {
        const asked = this.#lines().length;
        this.#type("\t");
        await this.#noted(asked + 1);
      }
      this.#type(piece);
    }
    const typed = this.#lines().length;
    this.#type("\r");
    await this.#noted(typed + 1);
    return this.#lines().at(-1)!.split("|").slice(0, -1);
  }

  [Symbol.dispose](): void {
    this.#child.kill("SIGKILL");
    rmSync(join(this.folder, ".."), { recursive: true, force: true });
  }

  #type(text: string): void {
    this.#child.terminal?.write(text);
  }

  #lines(): string[] {
    return readFileSync(this.#notes, "utf8").split("\n").slice(0, -1);
  }

  #noted(count: number): Promise<unknown> {
    return until(
      `${this.shell} to continue; its screen: ${this.#screen.slice(-500)}`,
      () => this.#lines().length >= count,
    );
  }
}
