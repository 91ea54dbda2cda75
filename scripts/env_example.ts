import { join } from "node:path";
import { OptionalKind, type TSchema } from "@sinclair/typebox";
import { variables } from "../core/config.ts";

/** Of a comment without its mark. */
const width = 116;

/** Generates `.env.example`, with each variable's description and default, from the list of variables. */
export function envExample(): string {
  const blocks = Object.values(variables).map(({ name, schema, about, secret }) => {
    const { default: value } = schema as TSchema;
    const text = OptionalKind in schema || value === undefined ? "" : String(value);
    const file = secret ? [`# Secret: ${name}_FILE may name a file that holds it instead.`] : [];
    return [
      Bun.wrapAnsi(about, width).replace(/^/gm, "# "),
      ...file,
      `#${name}=${/[\s#]/.test(text) ? `"${text}"` : text}`,
    ].join("\n");
  });
  const head = [
    "# Copy this file to .env, and uncomment what you change. The environment overrides .env.",
    "# Variables of plugins: docs/plugins.md. Written by `bun scripts/env_example.ts --write`.",
  ].join("\n");
  return `${[head, ...blocks].join("\n\n")}\n`;
}

export const envExampleFile = join(import.meta.dir, "../.env.example");

if (import.meta.main) {
  if (process.argv.includes("--write")) await Bun.write(envExampleFile, envExample());
  else console.log(envExample());
}
