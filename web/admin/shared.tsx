import type { ComponentChildren } from "preact";
import { requireAdmin } from "../../core/context.ts";
import { FormKeys } from "../parts/form.tsx";
import { adminPath } from "../paths.ts";
import type { PageContent, Site, Submission, Visit } from "../site.tsx";
import type { Values } from "../values.ts";

const what = "open the administration";

/** A handler for a page of the administration. Others get 403. */
export const admins = (site: Site, work: (visit: Visit) => Promise<PageContent | Response>) =>
  site.read(async (visit) => {
    requireAdmin(visit.visitor.actor, what);
    const made = await work(visit);
    return made instanceof Response ? made : { ...made, here: "admin" };
  });

/** One for a form of it. */
export const adminsSubmit = (
  site: Site,
  work: (visit: Visit, values: Values, address: string) => Promise<Submission | PageContent>,
) =>
  site.submit(async (visit, values, address) => {
    requireAdmin(visit.visitor.actor, what);
    return work(visit, values, address);
  });

/** A table with these columns: label and class. */
export const Table = ({
  columns,
  children,
}: {
  columns: readonly (readonly [string, string?])[];
  children: ComponentChildren;
}) => (
  <table class="board bar">
    <thead>
      <tr>
        {columns.map(([label, kind]) => (
          <th key={label} scope="col" class={kind}>
            {label}
          </th>
        ))}
      </tr>
    </thead>
    <tbody>{children}</tbody>
  </table>
);

/** A button in a row, which sends the row's name. */
export const RowForm = ({
  action,
  name,
  value,
  button,
  label,
}: {
  action: string;
  name: string;
  value: string;
  button: string;
  label: string;
}) => (
  <form method="post" action={action}>
    <FormKeys />
    <input type="hidden" name={name} value={value} />
    <button type="submit" aria-label={label}>
      {button}
    </button>
  </form>
);

export const Crumb = () => (
  <p class="crumb">
    <a href={adminPath}>Administration</a>
  </p>
);
