import { OptionalKind, type TSchema } from "@sinclair/typebox";
import { variables } from "../core/config.ts";

/** Generates the table of docs/configuration.md from the list of variables. */
function configurationTable(): string {
  const rows = Object.values(variables).map(({ name, schema, about, secret }) => {
    const { default: value } = schema as TSchema;
    const fallback = OptionalKind in schema || value === undefined ? "" : `\`${value}\``;
    return `| \`${name}\`${secret ? " (secret)" : ""} | ${fallback} | ${about.replaceAll("|", "\\|")} |`;
  });
  return ["| variable | default | |", "| --- | --- | --- |", ...rows].join("\n");
}

const [begin, end] = [
  "<!-- configuration: written by `bun scripts/configuration_table.ts --write` -->",
  "<!-- /configuration -->",
];

/** Inserts the table between the marks of the page. @throws if the marks are missing */
export function withTable(page: string): string {
  const [head, rest] = page.split(begin);
  const [, tail] = rest?.split(end) ?? [];
  if (head === undefined || tail === undefined)
    throw new Error("docs/configuration.md has lost the marks of its configuration table");
  return `${head}${begin}\n\n${configurationTable()}\n\n${end}${tail}`;
}

if (import.meta.main) {
  const file = `${import.meta.dir}/../docs/configuration.md`;
  const page = withTable(await Bun.file(file).text());
  if (process.argv.includes("--write")) await Bun.write(file, page);
  else console.log(configurationTable());
}
