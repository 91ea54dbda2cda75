import { actionsIn, afterNoise, nameAt, splitStatements, wordsOf } from "./statements.ts";

/**
 * Whether the previous release still works after this SQL: everything it reads and writes still exists, and nothing new
 * is required of it. Conservative: a statement that is not known to be harmless counts as breaking.
 */
export function isAdditive(sql: string): boolean {
  const statements = splitStatements(sql).map(({ text }) => wordsOf(text));
  const created = new Set(
    statements
      .filter(([a, b, c]) => a === "CREATE" && b === "TABLE" && c !== "IF")
      .map((words) => nameAt(words, 2).name),
  );
  const nullable = new Set(statements.flatMap(nullableColumns));
  return statements.every((words) => isHarmless(words, created) || referencesFrom(words, created, nullable));
}

function isHarmless(words: readonly string[], created: ReadonlySet<string>): boolean {
  const [first, second] = words;
  if (first === "COMMENT") return true;
  if (refusesDeletions(words, created)) return false;
  if (first === "CREATE" && words.includes("INDEX")) {
    const table = nameAt(words, afterNoise(words, words.indexOf("ON") + 1));
    // A unique index may reject what the previous release writes, unless that release does not know the table.
    return created.has(table.name) || second !== "UNIQUE";
  }
  if (first === "CREATE") return ["TABLE", "SEQUENCE", "TYPE", "SCHEMA", "VIEW"].includes(second ?? "");
  if (first === "ALTER" && second === "TYPE") return words.includes("ADD") && words.includes("VALUE");
  if (first !== "ALTER" || second !== "TABLE") return false;
  const { name, end } = nameAt(words, afterNoise(words, 2));
  // The previous release does not know a table created here.
  return created.has(name) || addsOptionalColumns(words.slice(end));
}

/** Whether a new foreign key may keep the previous release from deleting records of a table that it knows. */
function refusesDeletions(words: readonly string[], created: ReadonlySet<string>): boolean {
  return words.some((word, at) => {
    if (word !== "REFERENCES") return false;
    const { name, end } = nameAt(words, at + 1);
    const next = words.indexOf("REFERENCES", end);
    const rest = words.slice(end, next < 0 ? undefined : next);
    const rule = rest[rest.indexOf("DELETE") + 1];
    return !created.has(name) && !(rest.includes("DELETE") && (rule === "CASCADE" || rule === "SET"));
  });
}

/** `ADD COLUMN a ..., ADD COLUMN b ...`, each nullable or with a default, and nothing else. */
function addsOptionalColumns(words: readonly string[]): boolean {
  return actionsIn(words).every((action) => {
    if (action[0] !== "ADD" || action[1] !== "COLUMN") return false;
    const required = action.includes("NOT") && action.includes("NULL");
    const filled = ["DEFAULT", "GENERATED", "SERIAL", "BIGSERIAL"].some((word) => action.includes(word));
    return (!required || filled) && !["UNIQUE", "CHECK", "PRIMARY"].some((word) => action.includes(word));
  });
}

/** The columns that a statement adds without a value, as `"table" "column"`: a release that does not know them leaves them NULL. */
function nullableColumns(words: readonly string[]): string[] {
  const { name, end } = nameAt(words, afterNoise(words, 2));
  if (words[0] !== "ALTER" || words[1] !== "TABLE" || !addsOptionalColumns(words.slice(end))) return [];
  return actionsIn(words.slice(end))
    .filter((action) => !["NOT", "DEFAULT", "GENERATED"].some((word) => action.includes(word)))
    .map((action) => `${name} ${nameAt(action, 2).name}`);
}

/** A foreign key of a column that the previous release leaves NULL, and that does not refuse its deletions. */
function referencesFrom(
  words: readonly string[],
  created: ReadonlySet<string>,
  nullable: ReadonlySet<string>,
): boolean {
  const { name, end } = nameAt(words, afterNoise(words, 2));
  const action = words.slice(end);
  const [add, constraint, , foreign, key, open, column = "", close] = action;
  return (
    `${words[0]} ${words[1]} ${add} ${constraint} ${foreign} ${key} ${open} ${close}` ===
      "ALTER TABLE ADD CONSTRAINT FOREIGN KEY ( )" &&
    actionsIn(action).length === 1 &&
    nullable.has(`${name} ${nameAt([column], 0).name}`) &&
    !refusesDeletions(words, created)
  );
}
