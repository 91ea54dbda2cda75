import { Elysia } from "elysia";
import { applications } from "../../core/catalog/application.ts";
import { createRecord } from "../../core/catalog/create.ts";
import { definitions } from "../../core/catalog/definition.ts";
import { getRecord } from "../../core/catalog/get.ts";
import { incidentPriorities } from "../../core/catalog/incident_priority.ts";
import { incidentTypes } from "../../core/catalog/incident_type.ts";
import { individuals } from "../../core/catalog/individual.ts";
import { listRecords } from "../../core/catalog/list.ts";
import { removeRecord } from "../../core/catalog/remove.ts";
import type { CatalogRecord, CatalogTable, Columns, Resource } from "../../core/catalog/resource.ts";
import type { Rotation } from "../../core/catalog/rotation/rotation.ts";
import { services } from "../../core/catalog/service.ts";
import { teams } from "../../core/catalog/team.ts";
import { terms } from "../../core/catalog/term.ts";
import { updateRecord } from "../../core/catalog/update.ts";
import { visibilities } from "../../drizzle/schema/index.ts";
import { InvalidInput, NotFound, noRoute } from "../../platform/errors.ts";
import type { Deps } from "../../server/deps.ts";
import { mostChoices } from "../incident/choices.ts";
import { FormPage, type Trouble } from "../pages/forms.tsx";
import type { Field } from "../parts/form.tsx";
import { Clock } from "../parts/time.tsx";
import { adminPath } from "../paths.ts";
import { type PageContent, pathId, type Site, type Visit } from "../site.tsx";
import type { Values } from "../values.ts";
import { admins, adminsSubmit, Crumb } from "./shared.tsx";

const path = `${adminPath}/catalog`;

/** What a form writes of a record: by the name of its column. */
type Written = Record<string, unknown>;

/** A record with its columns, whatever they are. */
type Any = CatalogRecord & Written;

/** How a column is written. `parse` returns its value. */
interface Column extends Omit<Field, "value" | "name"> {
  parse(values: Values, name: string): unknown;
}

/** The boxes of a column: what their labels begin with, and the names of the records by id. A link without a box stays as it is. */
interface Boxes {
  about: string;
  names: ReadonlyMap<number, string>;
}

/** A kind of records. Its columns are in the order of the form; the first one is the name of a record. */
interface Kind {
  title: string;
  resource: Resource<CatalogTable, Columns, Written>;
  columns: Readonly<Record<string, Column>>;
  /** Columns with ids of other records, which have a box each. */
  links?: Readonly<Record<string, Boxes>>;
  /** Of a new record, what the form does not have. */
  blank: Written;
}

const line = (label: string, more: Partial<Column> = {}): Column => ({
  label,
  kind: "line",
  isRequired: true,
  parse: (values, name) => values.text(name),
  ...more,
});
const optional = (label: string, help?: string): Column =>
  line(label, { isRequired: false, help, parse: (values, name) => values.given(name) ?? null });
const prose: Column = line("Description", { kind: "text", isRequired: false });
const box = (label: string): Column => ({
  label,
  kind: "check",
  parse: (values, name) => values.isTicked(name),
});
const whole = (label: string, help: string): Column =>
  line(label, {
    help,
    parse: (values, name) => {
      const text = values.text(name).trim();
      if (!/^-?\d{1,9}$/.test(text)) throw new InvalidInput(name, `${label} is a whole number`);
      return Number(text);
    },
  });

/**
 * Templates and rotations stay as they are: the API writes them.
 *
 * @param written the kind whose form is shown: it alone gets its boxes and choices
 */
async function kindsOf(
  deps: Deps,
  { visitor: { actor } }: Visit,
  written?: string,
): Promise<Record<string, Kind>> {
  const { domain } = deps.config;
  const onCall = services(deps.registry);
  const namesFor = async <T extends CatalogTable, C extends Columns, F extends object>(
    kinds: readonly string[],
    resource: Resource<T, C, F>,
    sort: "name" | "text" = "name",
  ) => {
    if (written === undefined || !kinds.includes(written)) return new Map<number, string>();
    const { items } = await listRecords(deps, actor, resource, { limit: mostChoices, sort, filters: {} });
    return new Map(items.map((item) => [item.id, String((item as Any)[sort])]));
  };
  const [serviceNames, types, priorities, words] = await Promise.all([
    namesFor(["types"], onCall),
    namesFor(["teams", "people"], incidentTypes),
    namesFor(["teams", "people"], incidentPriorities),
    namesFor(["teams", "people", "definitions"], terms, "text"),
  ]);
  const byTerm = { termIds: { about: "Term", names: words } };
  const reasons = {
    incidentTypeIds: { about: "For incidents of type", names: types },
    incidentPriorityIds: { about: "For incidents of priority", names: priorities },
    termIds: { about: "For incidents with the term", names: words },
  };
  const kind = <T extends CatalogTable, C extends Columns, F extends object>(
    title: string,
    resource: Resource<T, C, F>,
    columns: Kind["columns"],
    { links, ...blank }: Written & Pick<Kind, "links"> = {},
  ): Kind => ({ title, resource: resource as unknown as Kind["resource"], columns, links, blank });
  return {
    types: kind(
      "Incident types",
      incidentTypes,
      {
        name: line("Name"),
        description: prose,
        visibility: line("Visibility of its incidents", {
          kind: "choice",
          choices: visibilities.map((one) => [one, one]),
          parse: (values, name) => {
            const given = visibilities.find((one) => one === values.text(name));
            if (!given) throw new InvalidInput(name, "Choose one of the list");
            return given;
          },
        }),
        commanderServiceId: line("Commander", {
          kind: "choice",
          isRequired: false,
          choices: [
            ["", "the reporter"],
            ...[...serviceNames].map(([id, name]) => [String(id), `who is on call for ${name}`] as const),
          ],
          parse: (values, name) => (values.given(name) === undefined ? null : values.id(name)),
        }),
        postmortem: box("Closed incidents are due a post-mortem, also those closed before"),
      },
      { templates: [] },
    ),
    priorities: kind("Priorities", incidentPriorities, {
      name: line("Name"),
      description: prose,
      rank: whole("Rank", "Higher is more urgent"),
      reminderHours: whole("Hours between reminders", "To write a status report"),
      reporterCommands: box("The reporter commands, and nobody is called"),
    }),
    services: kind(
      "Services",
      onCall,
      {
        name: line("Name"),
        description: prose,
        pluginSlug: optional("On-call plugin", "Who is on call is asked there"),
        externalId: optional("Its name in that plugin"),
      },
      { rotation: null },
    ),
    teams: kind(
      "Teams",
      teams(domain),
      { name: line("Name"), description: prose, email: optional("E-mail address") },
      { links: reasons },
    ),
    people: kind(
      "People",
      individuals(domain),
      { name: line("Name"), email: line("User name or e-mail address") },
      { links: reasons },
    ),
    terms: kind("Terms", terms, {
      text: line("Term"),
      discoverable: box("Documents and descriptions are searched for it"),
    }),
    definitions: kind(
      "Definitions",
      definitions,
      { text: { ...prose, label: "Text", isRequired: true } },
      { links: byTerm },
    ),
    applications: kind("Applications", applications, {
      name: line("Name"),
      description: prose,
      uri: optional("Address"),
    }),
  };
}

/** What incidents refer to: a list of each kind, and forms to add, change and delete a record. */
export function catalogPages(site: Site) {
  const { deps } = site;

  async function kindOf(visit: Visit, isWritten = false): Promise<[string, Kind]> {
    const { kind = "" } = visit.params;
    const kinds = await kindsOf(deps, visit, isWritten ? kind : undefined);
    const found = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
    if (!found) throw new NotFound(noRoute);
    return [kind, found];
  }

  async function overview(visit: Visit): Promise<PageContent> {
    const kinds = await kindsOf(deps, visit);
    return { title: "Catalog", content: <Overview kinds={kinds} /> };
  }

  async function list(visit: Visit): Promise<PageContent> {
    const [name, kind] = await kindOf(visit);
    const cursor = visit.url.searchParams.get("cursor") ?? undefined;
    const [first = "name"] = Object.keys(kind.columns);
    const sort = Object.hasOwn(kind.resource.list.sorts, first) ? first : undefined;
    const query = { limit: mostChoices, sort, cursor, filters: {} };
    const page = await listRecords(deps, visit.visitor.actor, kind.resource, query);
    const records = page.items.map((item) => [item.id, nameOfRecord(kind, item as Any)] as const);
    return {
      title: kind.title,
      content: <List name={name} kind={kind} records={records} next={page.next_cursor} />,
    };
  }

  /** Undefined for a new one. @throws NotFound */
  async function recordOf(visit: Visit, { resource }: Kind): Promise<Any | undefined> {
    if (visit.params.id === "new") return undefined;
    const id = pathId(visit.params.id, `There is no such ${resource.one}`);
    return (await getRecord(deps, visit.visitor.actor, resource, id)) as Any;
  }

  async function form(
    visit: Visit,
    fill = (fields: readonly Field[]): { fields: readonly Field[]; trouble?: Trouble } => ({ fields }),
  ): Promise<PageContent> {
    const [name, kind] = await kindOf(visit, true);
    const record = await recordOf(visit, kind);
    const members = new Set((record?.rotation as Rotation | null | undefined)?.members);
    const people = new Map<number, string>();
    for (const id of members) {
      const person = await getRecord(deps, visit.visitor.actor, individuals(deps.config.domain), id);
      people.set(id, person.name);
    }
    return editing(name, kind, { record, people, ...fill(fieldsOf(kind, record)) });
  }

  const save = adminsSubmit(site, async (visit, values) => {
    const [name, kind] = await kindOf(visit);
    const { resource, columns, links = {}, blank } = kind;
    const record = await recordOf(visit, kind);
    const { actor } = visit.visitor;
    const linked = Object.keys(links);
    const sentBoxes = new Set(linked.flatMap((column) => boxesIn(values, column)));
    const isOther = (box: string) => !sentBoxes.has(box);
    return {
      run: async (context) => {
        const written = Object.fromEntries(
          Object.entries(columns).map(([column, { parse }]) => [column, parse(values, column)]),
        );
        for (const column of linked) {
          const before = (record?.[column] ?? []) as number[];
          const others = before.filter((id) => isOther(`${column}-${id}`));
          written[column] = [...others, ...values.ticked(column)];
        }
        if (record) {
          const change = { id: record.id, version: values.id("version"), fields: { ...record, ...written } };
          await updateRecord(context, actor, resource, change);
        } else await createRecord(context, actor, resource, { ...blank, ...written });
        return `${path}/${name}`;
      },
      again: (fill) =>
        form(visit, (fields) => {
          // A box that the sent form did not have shows what is stored.
          const isNew = (field: Field) =>
            linked.some((column) => field.name.startsWith(`${column}-`)) && isOther(field.name);
          const { fields: sent, trouble } = fill(fields.filter((field) => !isNew(field)));
          const filled = new Map(sent.map((field) => [field.name, field]));
          return { fields: fields.map((field) => filled.get(field.name) ?? field), trouble };
        }),
    };
  });

  async function deleting(visit: Visit, trouble?: Trouble): Promise<PageContent> {
    const [name, kind] = await kindOf(visit);
    const record = await recordOf(visit, kind);
    if (!record) throw new NotFound(noRoute);
    const title = `Delete ${nameOfRecord(kind, record)}?`;
    return {
      title,
      content: (
        <FormPage
          crumb={<Crumb />}
          title={title}
          button="Delete permanently"
          isDangerous
          action={`${path}/${name}/${record.id}/delete`}
          back={`${path}/${name}/${record.id}`}
          fields={[]}
          trouble={trouble}
        />
      ),
    };
  }

  const remove = adminsSubmit(site, async (visit, _, address) => {
    const [name, { resource, ...kind }] = await kindOf(visit);
    const record = await recordOf(visit, { resource, ...kind });
    if (!record) throw new NotFound(noRoute);
    return {
      run: async (context) => {
        await removeRecord(context, visit.visitor.actor, resource, { id: record.id, address });
        return `${path}/${name}`;
      },
      again: (fill) => deleting(visit, fill([]).trouble),
    };
  });

  return new Elysia({ name: "catalog pages", prefix: "/catalog" })
    .get("/", admins(site, overview))
    .get("/:kind", admins(site, list))
    .get(
      "/:kind/:id",
      admins(site, (visit) => form(visit)),
    )
    .post("/:kind/:id", save)
    .get(
      "/:kind/:id/delete",
      admins(site, (visit) => deleting(visit)),
    )
    .post("/:kind/:id/delete", remove);
}

function fieldsOf({ columns, links = {} }: Kind, record: Any | undefined): Field[] {
  const shown = (value: unknown) =>
    value === true ? "on" : value === false ? undefined : String(value ?? "");
  return [
    ...(record
      ? [{ name: "version", label: "", kind: "hidden", value: String(record.version) } as const]
      : []),
    ...Object.entries(columns).map(([name, { parse: _, ...column }]) => {
      const value = record && shown(record[name]);
      const isListed = value === undefined || column.choices?.some(([one]) => one === value) !== false;
      // Of more services than the list has: saving must not choose another one.
      const choices = isListed ? column.choices : [...column.choices!, [value, value] as const];
      return { ...column, choices, name, value };
    }),
    ...Object.entries(links).flatMap(([column, { about, names }]) => {
      const linked = new Set((record?.[column] ?? []) as number[]);
      const ids = [...names.keys()].join(" ");
      return [
        { name: `${column}-boxes`, label: "", kind: "hidden", value: ids } as const,
        ...[...names].map(([id, name]): Field => {
          const value = linked.has(id) ? "on" : undefined;
          return { name: `${column}-${id}`, label: `${about} ${name}`, kind: "check", value };
        }),
      ];
    }),
  ];
}

/** The names of the boxes that a sent form had: other records may be the first ones by now. */
const boxesIn = (values: Values, column: string) =>
  values
    .text(`${column}-boxes`)
    .split(" ")
    .map((id) => `${column}-${id}`);

/** Of a definition, its beginning. */
function nameOfRecord({ columns }: Pick<Kind, "columns">, record: Any): string {
  const name = String(record[Object.keys(columns)[0]!]);
  return name.length > 200 ? `${name.slice(0, 200).toWellFormed()}…` : name;
}

/** What the form does not have: where the API sets it. */
function Unwritten({ record, people }: { record: Any; people: ReadonlyMap<number, string> }) {
  const { rotation, templates = [] } = record as {
    rotation?: Rotation | null;
    templates?: { resourceType: string; documentId: number }[];
  };
  const links: [string, string][] = rotation
    ? rotation.members.map((id) => [`${path}/people/${id}`, people.get(id)!])
    : templates.map(({ resourceType, documentId }) => [`/app/documents/${documentId}`, resourceType]);
  if (links.length === 0) return null;
  return (
    <>
      <p>
        {rotation ? (
          <>
            On call in turn, {rotation.shiftHours} hours each, since <Clock at={rotation.startsAt} />:
          </>
        ) : (
          "Templates of its documents:"
        )}
      </p>
      <ol class="list">
        {links.map(([href, label], index) => (
          <li key={index}>
            <a href={href} dir="auto">
              {label}
            </a>
          </li>
        ))}
      </ol>
      <p class="quiet">
        Saving keeps them. PUT /{rotation ? "services" : "incident_types"}/{record.id} changes them.
      </p>
    </>
  );
}

function editing(
  name: string,
  kind: Kind,
  {
    record,
    people,
    ...form
  }: {
    people: ReadonlyMap<number, string>;
    record: Any | undefined;
    fields: readonly Field[];
    trouble?: Trouble;
  },
): PageContent {
  const title = record ? nameOfRecord(kind, record) : `New ${kind.resource.one}`;
  const address = `${path}/${name}/${record?.id ?? "new"}`;
  return {
    title,
    content: (
      <FormPage
        crumb={<Crumb />}
        title={title}
        button={record ? "Save" : "Add"}
        action={address}
        back={`${path}/${name}`}
        {...form}
      >
        {record && (
          <>
            <Unwritten record={record} people={people} />
            <p>
              <a href={`${address}/delete`}>Delete</a>
            </p>
          </>
        )}
      </FormPage>
    ),
  };
}

function Overview({ kinds }: { kinds: Record<string, Kind> }) {
  return (
    <>
      <Crumb />
      <h1>Catalog</h1>
      <ul class="list">
        {Object.entries(kinds).map(([name, { title }]) => (
          <li key={name}>
            <a href={`${path}/${name}`} data-row>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function List({
  name,
  kind,
  records,
  next,
}: {
  name: string;
  kind: Kind;
  records: readonly (readonly [number, string])[];
  next: string | null;
}) {
  return (
    <>
      <Crumb />
      <div class="row head">
        <h1>{kind.title}</h1>
        <a class="button primary" href={`${path}/${name}/new`}>
          New {kind.resource.one}
        </a>
      </div>
      {records.length === 0 ? (
        <p class="empty">None yet.</p>
      ) : (
        <ul class="list">
          {records.map(([id, label]) => (
            <li key={id}>
              <a href={`${path}/${name}/${id}`} data-row dir="auto">
                {label}
              </a>
            </li>
          ))}
        </ul>
      )}
      {next && <a href={`${path}/${name}?cursor=${encodeURIComponent(next)}`}>More</a>}
    </>
  );
}
