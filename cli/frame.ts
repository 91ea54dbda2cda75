import type { Args, Command, CommandContext, LazyCommand } from "gunshi/bone";
import { lazy } from "gunshi/definition";
import { isArgsValidationError, isCommandNotFoundError, plugin } from "gunshi/plugin";
import { nearest } from "../platform/nearest.ts";
import { asTyped } from "./command_line.ts";
import { find, type Group, isGroup, type Leaf } from "./command_tree.ts";
import { MissingCommand, UsageError } from "./errors.ts";
import { commandHelp, groupHelp, kebab, metavar, optionNamed, positionalsOf, usageLine } from "./help.ts";
import type { Io } from "./io.ts";

/** `svc` without a command shows the help and succeeds. */
export function entry(io: Io, tree: Group): Command {
  return { name: "svc", run: async () => void io.stdout.write(await groupHelp([], tree)) };
}

/** The command tree in gunshi's terms. A command's file is loaded when the command is. */
export function subCommands(io: Io, group: Group, path: readonly string[] = []) {
  const commands: Record<string, Command | LazyCommand> = {};
  for (const [name, node] of Object.entries(group.commands)) {
    const at = [...path, name];
    commands[name] = isGroup(node) ? groupCommand(io, node, at) : leafCommand(io, node, name);
  }
  return commands;
}

function groupCommand(io: Io, group: Group, path: readonly string[]): Command {
  return {
    name: path.at(-1),
    subCommands: subCommands(io, group, path),
    run: () => {
      throw new MissingCommand(path);
    },
  };
}

function leafCommand(io: Io, leaf: Leaf, name: string): LazyCommand {
  const load = async (): Promise<Command> => {
    const { default: definition } = await leaf();
    return {
      name,
      args: kebabArgs(definition.args),
      run: async ({ values: { help: _, ...parsed }, positionals, commandPath, rest }) => {
        const values = Object.fromEntries(
          Object.entries(parsed).map(([key, value]) => [key, asTyped(value)]),
        );
        const isOwn = definition.rest === undefined;
        const given = positionals.length - commandPath.length;
        const options = isOwn ? withWords(definition.args, values, given, rest) : values;
        const { server, certificate } = options as Pick<Io, "server" | "certificate">;
        const own = { ...io, server, certificate };
        if (dependsOnClock(definition.args, options)) await setClock(own);
        await definition.run(options as never, own, rest);
      },
    };
  };
  return lazy(load, { name });
}

/** Whether a time was given, which is relative to now, or must not be in the future: the server records the result. */
function dependsOnClock(args: Args, options: Record<string, unknown>): boolean {
  const isTime = (name: string) => args[name]!.metavar === "TIME" && options[name] !== undefined;
  return args.server !== undefined && Object.keys(args).some(isTime);
}

async function setClock(io: Io): Promise<void> {
  const [{ askServerClock }, { chosenServer }] = await Promise.all([
    import("./client/server_clock.ts"),
    import("./client/session.ts"),
  ]);
  await askServerClock(io, chosenServer(io).server);
}

/** Adds the words that follow `--` to the positionals, even if they begin with a hyphen. */
function withWords(args: Args, values: Record<string, unknown>, given: number, words: readonly string[]) {
  const result = { ...values };
  const schemas = positionalsOf(args);
  for (const [at, word] of words.entries()) {
    const [name, { multiple }] = schemas[Math.min(given + at, schemas.length - 1)]!;
    result[name] = multiple ? [...((result[name] as string[] | undefined) ?? []), word] : word;
  }
  return result;
}

/** gunshi ignores `toKebab` on a lazy command, but not on an argument. */
function kebabArgs(args: Args): Args {
  return Object.fromEntries(
    Object.entries(args).map(([name, schema]) => [name, { ...schema, toKebab: true }]),
  );
}

/** Adds `--help` to every command, and rejects unknown commands, options and arguments. */
export function frame(io: Io, tree: Group) {
  return plugin({
    id: "svc:frame",
    name: "svc frame",
    setup(context) {
      context.addGlobalOption("help", { type: "boolean", short: "h", description: "Show this help" });
      context.decorateCommand((run) => async (ctx) => {
        const path = ctx.commandPath;
        const unknown = await unknownIn(ctx as unknown as CommandContext, tree);
        if (unknown !== undefined) throw new UsageError(asTyped(unknown), path);
        if (ctx.values.help) {
          io.stdout.write(await helpOf(path, tree));
          return;
        }
        const leaf = find(path, tree);
        const { rest } = leaf && !isGroup(leaf) ? (await leaf()).default : {};
        const invalid = invalidIn(ctx as unknown as CommandContext, rest);
        if (invalid !== undefined) throw new UsageError(asTyped(invalid), path);
        try {
          return await run(ctx);
        } catch (error) {
          if (error instanceof UsageError) error.path ??= path;
          throw error;
        }
      });
    },
  });
}

/** The usage line that follows a usage error on stderr. */
export async function usageOf(path: readonly string[], tree: Group): Promise<string> {
  const node = find(path, tree);
  const command = node === undefined || isGroup(node) ? undefined : (await node()).default;
  return `Usage: ${usageLine(path, command)}\nRun \`${["svc", ...path].join(" ")} --help\` for more.\n`;
}

/** The help of the command or group at `path`. */
export async function helpOf(path: readonly string[], tree: Group): Promise<string> {
  const node = find(path, tree) ?? tree;
  return isGroup(node) ? await groupHelp(path, node) : commandHelp(path, (await node()).default);
}

/** The first command or option that does not exist. Checked before `--help`, which would hide the mistake. */
async function unknownIn(
  { validationError, tokens, commandPath }: CommandContext,
  tree: Group,
): Promise<string | undefined> {
  const errors = validationError?.errors ?? [];
  const option = errors.find((e) => isArgsValidationError(e) && e.code === "err:arg:unknown-option");
  const command = errors.find(isCommandNotFoundError);
  // gunshi reads an option before the command as the command.
  if (command !== undefined && (option === undefined || tokens[0]?.kind !== "option")) {
    const group = find(commandPath, tree);
    const instead = group && isGroup(group) ? group.instead?.[command.commandName] : undefined;
    const hint = instead ? `. Use instead: ${instead}` : didYouMean(command.commandName, command.candidates);
    return `unknown command: ${command.commandName}${hint}`;
  }
  if (option !== undefined) {
    const { rawName, candidates } = option.values as { rawName: string; candidates: string[] };
    const leaf = find(commandPath, tree);
    const { instead, args = {} } = leaf && !isGroup(leaf) ? (await leaf()).default : {};
    const hint = instead?.[rawName];
    if (hint) return `unknown option: ${rawName}. Use instead: ${hint}`;
    const similar = didYouMean(rawName, candidates);
    const text = positionalsOf(args).find(([, { metavar = "" }]) => /^(TEXT|TITLE|NAME)$/.test(metavar));
    const asText = text ? `. ${text[1].metavar} that begins with a hyphen goes after --` : "";
    return `unknown option: ${rawName}${similar || asText}`;
  }
  return undefined;
}

function didYouMean(name: string, candidates: readonly string[]): string {
  const match = nearest(name, candidates);
  return match === undefined ? "" : `. Did you mean ${match}?`;
}

/** The first argument that is missing, unexpected or of the wrong type. */
function invalidIn(ctx: CommandContext, restName: string | undefined): string | undefined {
  const { args, tokens, validationError, positionals, commandPath, rest } = ctx;
  const unexpected = unexpectedIn(restName === undefined ? ctx : { ...ctx, rest: [] });
  const hint = restName === undefined ? "" : ` (put ${restName} after --)`;
  if (unexpected !== undefined) return `unexpected argument: ${unexpected}${hint}`;
  if (restName !== undefined && rest.length === 0) return `missing argument: -- ${restName}`;
  for (const [at, token] of tokens.entries()) {
    const name = token.kind === "option" ? optionNamed(token.rawName ?? "", args) : undefined;
    if (name === undefined) continue;
    // gunshi drops these silently: `--json=false` would mean `--json`, and `--server=` the default server.
    if (args[name]?.type === "boolean" && token.inlineValue) return `--${kebab(name)} takes no value`;
    const value = token.inlineValue ? token.value : tokens[at + 1]?.value;
    if (args[name]?.type !== "boolean" && value === "") return `--${kebab(name)} needs a value`;
  }
  const words = positionalsOf(args).slice(0, positionals.length - commandPath.length + rest.length);
  const isGiven = (name: unknown) => restName === undefined && words.some(([word]) => word === name);
  const error: unknown = validationError?.errors.find(
    (one) =>
      !(isArgsValidationError(one) && one.code === "err:arg:required-positional" && isGiven(one.values.name)),
  );
  if (!isArgsValidationError(error)) return error instanceof Error ? error.message : undefined;
  const name = String(error.values.name);
  const schema = args[name];
  switch (error.code) {
    case "err:arg:required-positional":
      return `missing argument: ${schema ? metavar(name, schema) : name}`;
    case "err:arg:required-option":
      return `missing option: --${kebab(name)}`;
    case "err:arg:invalid-choice":
      return `--${kebab(name)} must be one of ${schema?.choices?.join(", ")}`;
    case "err:arg:invalid-type":
      if (error.values.actual === undefined) return `--${kebab(name)} needs a value`;
      return `--${kebab(name)} must be a ${error.values.expected}, not ${error.values.actual}`;
    case "err:arg:custom-parse":
      return `${schema?.type === "positional" ? metavar(name, schema) : `--${kebab(name)}`}: ${error.message}`;
    default:
      return error.message;
  }
}

function unexpectedIn({ args, positionals, rest, commandPath }: CommandContext): string | undefined {
  const schemas = positionalsOf(args);
  if (schemas.some(([, { multiple }]) => multiple)) return undefined;
  return [...positionals.slice(commandPath.length), ...rest][schemas.length];
}
