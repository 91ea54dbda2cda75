import { isCancel, select, text } from "@clack/prompts";
import { Interrupted } from "./errors.ts";
import { type Choice, systemIo, whileTerminal } from "./io.ts";
import { canDraw } from "./screen.ts";

// Loaded only to ask: it costs 26 ms. On stderr, because stdout is for data.

const output = process.stderr;

/** A list to choose from with the arrow keys. On a terminal that cannot draw it: a numbered list. */
export async function choose<T>(question: string, choices: readonly Choice<T>[]): Promise<T> {
  if (!canDraw(output, process.env)) return chooseByNumber(question, choices);
  await discardTyped();
  const options = choices.map(({ label, hint }, at) => ({ value: at, label, ...(hint ? { hint } : {}) }));
  const chosen = await whileTerminal(() => select({ message: question, options, output, maxItems: 10 }));
  if (isCancel(chosen)) throw new Interrupted();
  return choices[chosen]!.value;
}

export async function askText(
  question: string,
  fault: (text: string) => string | undefined = () => undefined,
): Promise<string> {
  if (!canDraw(output, process.env)) return askLine(`${question} `, fault);
  const answer = await whileTerminal(() =>
    text({ message: question, output, validate: (value) => fault(value ?? "") }),
  );
  if (isCancel(answer)) throw new Interrupted();
  return answer ?? "";
}

const settleMilliseconds = 50;

/**
 * Discards what was typed before the question appeared: further lines of a pasted text would answer it unseen.
 *
 * @throws Interrupted if Ctrl-C is among it
 */
async function discardTyped(): Promise<void> {
  const { stdin } = process;
  let typed = "";
  const onData = (data: Buffer) => {
    typed += data.toString("latin1");
  };
  stdin.setRawMode(true);
  stdin.on("data", onData).resume();
  try {
    await whileTerminal(() => Bun.sleep(settleMilliseconds));
  } finally {
    stdin.off("data", onData).pause();
    stdin.setRawMode(false);
  }
  if (typed.includes("\x03")) throw new Interrupted();
  if (typed !== "") output.write("What was typed before this question is ignored.\n");
}

async function chooseByNumber<T>(question: string, choices: readonly Choice<T>[]): Promise<T> {
  const lines = choices.map(({ label, hint }, at) => `${at + 1}. ${label}${hint ? ` (${hint})` : ""}\n`);
  output.write(`${question}\n${lines.join("")}`);
  const number = await askLine("Number: ", (line) =>
    choices[Number(line) - 1] === undefined ? `1 to ${choices.length}` : undefined,
  );
  return choices[Number(number) - 1]!.value;
}

async function askLine(question: string, fault: (text: string) => string | undefined): Promise<string> {
  const { ask } = systemIo();
  for (;;) {
    const line = await ask(question);
    if (line === undefined) throw new Interrupted();
    const wrong = fault(line.trim());
    if (wrong === undefined) return line.trim();
    output.write(`${wrong}\n`);
  }
}
