import { difference, type KitStatement } from "./kit.ts";
import { copyOf, type Schema } from "./snapshot.ts";
import type { Step } from "./write.ts";

/**
 * A walk from one schema to another, in steps that PostgreSQL allows. drizzle-kit writes the statements of a step, which
 * either adds or drops; what it would get wrong is written here, and assumed for its next step.
 */
export class Walk {
  constructor(
    private schema: Schema,
    private readonly order: Step[],
  ) {}

  get at(): Schema {
    return this.schema;
  }

  get steps(): readonly Step[] {
    return this.order;
  }

  /** `sort`: the keys of tables or views, in the order of their statements. */
  async to(
    edit: (schema: Schema) => void,
    note: (statement: KitStatement) => Partial<Step> = () => ({}),
    sort: readonly string[] = [],
  ): Promise<void> {
    const next = copyOf(this.schema);
    edit(next);
    const statements = await difference(this.schema, next);
    if (sort.length > 0) statements.sort((a, b) => sort.indexOf(a.table) - sort.indexOf(b.table));
    this.order.push(...statements.map((statement) => ({ sql: statement.sql, ...note(statement) })));
    this.schema = next;
  }

  /** Adds statements of our own, and makes the change that they make. */
  say(steps: readonly Step[], edit: (schema: Schema) => void = () => {}): void {
    this.order.push(...steps);
    edit(this.schema);
  }
}
