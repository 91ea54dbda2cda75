import { splitStatements, wordsOf } from "./statements.ts";

/**
 * Whether the release before this SQL works on the schema behind it as well: everything that it reads and writes is
 * still there, and what is new does not ask anything of it. On the safe side: what is not known to be harmless is not.
 */
export function isAdditive(sql: string): boolean {
  const statements = splitStatements(sql).map(({ text }) => wordsOf(text));
  const created = new Set(
    statements.filter(([a, b]) => a === "CREATE" && b === "TABLE").map(nameBehind("TABLE")),
  );
  return statements.every((words) => isHarmless(words, created));
}

/** The name behind a word of a statement, without its schema. */
function nameBehind(word: string): (words: readonly string[]) => string {
  return (words) => {
    let at = words.indexOf(word) + 1;
    for (const noise of ["ONLY", "IF", "NOT", "EXISTS"]) if (words[at] === noise) at += 1;
    while (words[at + 1] === ".") at += 2;
    return (words[at] ?? "").replaceAll('"', "").toUpperCase();
  };
}

function isHarmless(words: readonly string[], created: ReadonlySet<string>): boolean {
  const [first, second, third] = words;
  if (first === "COMMENT") return true;
  // The older release does not know these tables.
  if (first === "ALTER" && second === "TABLE" && created.has(nameBehind("TABLE")(words))) return true;
  if (first === "CREATE" && words.includes("INDEX") && created.has(nameBehind("ON")(words))) return true;
  if (first === "CREATE") {
    // A unique index or a trigger may refuse what the older release writes.
    if (second === "UNIQUE") return false;
    return ["TABLE", "INDEX", "SEQUENCE", "TYPE", "SCHEMA", "VIEW"].includes(second ?? "");
  }
  if (first === "ALTER" && second === "TYPE") return words.includes("ADD") && words.includes("VALUE");
  if (first === "ALTER" && second === "TABLE" && third !== undefined) return addsOptionalColumns(words);
  return false;
}

/** `ALTER TABLE t ADD COLUMN a ..., ADD COLUMN b ...`, each of them nullable or with a default. */
function addsOptionalColumns(words: readonly string[]): boolean {
  const actions: string[][] = [];
  let depth = 0;
  let from = words.indexOf("ADD");
  if (from < 0) return false;
  for (let at = from; at <= words.length; at += 1) {
    if (words[at] === "(") depth += 1;
    else if (words[at] === ")") depth -= 1;
    else if (at === words.length || (words[at] === "," && depth === 0)) {
      actions.push(words.slice(from, at));
      from = at + 1;
    }
  }
  return actions.every((action) => {
    if (action[0] !== "ADD" || action[1] !== "COLUMN") return false;
    const required = action.includes("NOT") && action.includes("NULL");
    const filled = ["DEFAULT", "GENERATED", "SERIAL", "BIGSERIAL"].some((word) => action.includes(word));
    return (!required || filled) && !["UNIQUE", "CHECK", "PRIMARY"].some((word) => action.includes(word));
  });
}
