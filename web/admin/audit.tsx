import { Elysia } from "elysia";
import { audit, auditActions } from "../../core/audit.ts";
import { type AuditEntry, type AuditQuery, listAudit } from "../../core/audit_list.ts";
import { largestLimit } from "../../core/list/page.ts";
import { csvLine } from "../../platform/csv.ts";
import { InvalidInput, NotFound, noRoute } from "../../platform/errors.ts";
import { viewOf } from "../../server/audit/routes.ts";
import { addressOf } from "../../server/deps.ts";
import { download } from "../download.ts";
import { Alert, type Trouble } from "../pages/forms.tsx";
import { Clock } from "../parts/time.tsx";
import { adminPath } from "../paths.ts";
import type { PageContent, Site, Visit } from "../site.tsx";
import { Values } from "../values.ts";
import { admins, Crumb, Table } from "./shared.tsx";

const path = `${adminPath}/audit`;

/** The filters, by their names in the address. */
const filters = ["actor", "action", "subject", "since", "until"] as const;
const names: ReadonlySet<string> = new Set(filters);

/** The audit log, with its filters in the address, and as a file. */
export function auditPages(site: Site) {
  const { deps } = site;

  async function view(visit: Visit): Promise<PageContent> {
    const given = new Values(new Map(visit.url.searchParams));
    const shown = (found: Found) => ({ title: "Audit log", content: <Audit given={given} {...found} /> });
    try {
      const query = { ...queryOf(visit, given), cursor: given.given("cursor") };
      return shown({ page: await listAudit(deps, visit.visitor.actor, query) });
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      return shown({ trouble: error });
    }
  }

  /** All entries that the filters select, as they are read. */
  async function file(visit: Visit): Promise<Response> {
    const { actor } = visit.visitor;
    const format = formats.find(({ name }) => name === visit.params.format);
    if (!format) throw new NotFound(noRoute);
    const query = { ...queryOf(visit, new Values(new Map(visit.url.searchParams))), limit: largestLimit };
    const first = await listAudit(deps, actor, query);
    if (visit.request.method === "GET")
      await audit(deps.db, {
        at: deps.clock.now(),
        actor: actor.user,
        action: "audit.exported",
        address: addressOf(deps, visit.request, visit.server),
        data: Object.fromEntries([...visit.url.searchParams].filter(([name]) => names.has(name))),
      });
    async function* pieces() {
      yield format!.header;
      for (let page = first; ; page = await listAudit(deps, actor, { ...query, cursor: page.next_cursor! })) {
        yield page.items.map(format!.line).join("");
        if (page.next_cursor === null) return;
      }
    }
    return download(site, visit, { name: `audit.${format.name}`, type: format.type, pieces: pieces() });
  }

  return new Elysia({ name: "audit pages", prefix: "/audit" })
    .get("/", admins(site, view))
    .get("/download/:format", admins(site, file));
}

const formats = [
  {
    name: "csv",
    label: "CSV",
    type: "text/csv",
    header: csvLine(["at", "actor", "action", "subject", "address", "data"]),
    line: ({ at, actor, action, subject, address, data }: AuditEntry) =>
      csvLine([at.toISOString(), actor, action, subject, address, JSON.stringify(data)]),
  },
  {
    name: "jsonl",
    label: "JSON lines",
    type: "application/jsonl",
    header: "",
    line: (entry: AuditEntry) => `${JSON.stringify(viewOf(entry))}\n`,
  },
];

/** @throws InvalidInput */
function queryOf({ visitor: { timeZone } }: Visit, given: Values): AuditQuery {
  const typed = given.given("action");
  const action = auditActions.find((one) => one === typed);
  if (typed !== undefined && !action) throw new InvalidInput("action", "Choose one of the list");
  return {
    action,
    actor: given.given("actor"),
    subject: given.given("subject"),
    since: given.bound("since", timeZone),
    until: given.bound("until", timeZone),
  };
}

/** `trouble` is why a filter is refused. */
interface Found {
  page?: Awaited<ReturnType<typeof listAudit>>;
  trouble?: Trouble;
}

function Audit({ given, page, trouble }: Found & { given: Values }) {
  const chosen = new URLSearchParams(
    filters.flatMap((name) => {
      const value = given.given(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
  const linkTo = (to: string, more: Record<string, string> = {}) => {
    const query = new URLSearchParams([...chosen, ...Object.entries(more)]);
    return query.size === 0 ? to : `${to}?${query}`;
  };
  const line = (name: string, label: string, placeholder?: string) => (
    <input
      name={name}
      aria-label={label}
      placeholder={placeholder ?? label}
      value={given.given(name)}
      dir="auto"
    />
  );
  return (
    <>
      <Crumb />
      <div class="row head">
        <h1>Audit log</h1>
        {page &&
          formats.map(({ name, label }) => (
            <a key={name} class="button" href={linkTo(`${path}/download/${name}`)} download>
              {label}
            </a>
          ))}
      </div>
      <Alert trouble={trouble} />
      <form class="row filters bar" action={path}>
        {line("actor", "User")}
        <select name="action" aria-label="Action">
          <option value="">Action: any</option>
          {auditActions.toSorted().map((one) => (
            <option key={one} value={one} selected={one === given.given("action")}>
              {one}
            </option>
          ))}
        </select>
        {line("subject", "Subject")}
        {line("since", "Since", "Since 2026-11-27 14:05")}
        {line("until", "Until", "Until 2026-11-27 14:05")}
        <button type="submit">Filter</button>
      </form>
      {page?.items.length === 0 && (
        <p class="empty">{chosen.size > 0 ? "No entry matches these filters." : "The log is empty."}</p>
      )}
      {page && page.items.length > 0 && (
        <Table columns={[["Time"], ["User"], ["Action"], ["Subject", "wide"], ["Address", "wide"]]}>
          {page.items.map(({ id, at, actor, action, subject, address, data }) => (
            <tr key={id}>
              <td class="keep">
                <Clock at={at} />
              </td>
              <td dir="auto">{actor}</td>
              <td>
                {action} <Data of={data} />
              </td>
              <td class="wide" dir="auto">
                {subject}
              </td>
              <td class="wide keep">{address}</td>
            </tr>
          ))}
        </Table>
      )}
      {page?.next_cursor && (
        <p>
          <a href={linkTo(path, { cursor: page.next_cursor })}>Older</a>
        </p>
      )}
    </>
  );
}

function Data({ of }: { of: AuditEntry["data"] }) {
  const parts = Object.entries(of).map(
    ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  if (parts.length === 0) return null;
  return (
    <small class="quiet block" dir="auto">
      {parts.join(", ")}
    </small>
  );
}
