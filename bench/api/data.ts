import { copyIn } from "../../drizzle/backup/copy.ts";
import { openSql, type Sql } from "../../drizzle/client.ts";
import { randomOf } from "../random.ts";
import { retired, writerOf } from "./words.ts";

/** The numbers of the most numerous records; everything else follows from the incidents. */
export interface Size {
  incidents: number;
  documents: number;
}

const users = 1000;
const types = 8;
const priorities = 4;
const day = 86_400_000;
/** The time of the newest incident, fixed because changing times would change the query plans. */
const newest = Date.UTC(2026, 10, 1);

type Value = string | number | null;
type Rows = Generator<readonly Value[]>;

/** A table, the columns to write, and its rows. */
interface Load {
  table: string;
  columns: string;
  rows: (size: Size) => Rows;
}

const at = (time: number) => new Date(Math.floor(time)).toISOString();
const stamps = (time: number) => [at(time), at(time)] as const;
export const email = (person: number) => `user${person}@example.com`;

/** Three years of incidents, evenly distributed; ids are in order of the report. */
const reported = (id: number, { incidents }: Size) => newest - ((incidents - id) * 3 * 365 * day) / incidents;
/** One in ten. */
export const isRestricted = (id: number) => id % 10 === 7;
const statusOf = (id: number, { incidents }: Size) =>
  id > incidents * 0.995 ? "Active" : id > incidents * 0.99 ? "Stable" : "Closed";

/** The participants of an incident: three to seven, of whom the first commands and the second reported it. */
function participantsOf(id: number): number[] {
  const random = randomOf(`people ${id}`);
  const chosen = new Set<number>();
  const count = 3 + (id % 5);
  while (chosen.size < count) chosen.add(1 + Math.floor(random.between(0, users)));
  return [...chosen];
}

const loads: readonly Load[] = [
  {
    table: "individual",
    columns: "id, name, email, created_at, updated_at",
    *rows() {
      for (let id = 1; id <= users; id += 1) yield [id, `User ${id}`, email(id), ...stamps(newest)];
    },
  },
  {
    table: "incident_type",
    columns: "id, name, created_at, updated_at",
    *rows() {
      for (let id = 1; id <= types; id += 1) yield [id, `Type ${id}`, ...stamps(newest)];
    },
  },
  {
    table: "incident_priority",
    columns: "id, name, rank, reminder_hours, created_at, updated_at",
    *rows() {
      for (let id = 1; id <= priorities; id += 1) yield [id, `P${id}`, id, 4, ...stamps(newest)];
    },
  },
  {
    table: "incident",
    columns: `id, name, title, description, status, visibility, incident_type_id, incident_priority_id, reported_at,
      stable_at, closed_at, costed_basis, created_at, updated_at`,
    *rows(size) {
      const writer = writerOf("incident");
      for (let id = 1; id <= size.incidents; id += 1) {
        const time = reported(id, size);
        const status = statusOf(id, size);
        yield [
          id,
          `INC-${id}`,
          writer.words(6),
          writer.text(40),
          status,
          isRestricted(id) ? "Restricted" : "Open",
          1 + (id % types),
          1 + (id % priorities),
          at(time),
          status === "Active" ? null : at(time + day / 4),
          status === "Closed" ? at(time + day) : null,
          1,
          ...stamps(time),
        ];
      }
    },
  },
  {
    table: "participant",
    columns: "id, incident_id, individual_id, joined_at, left_at",
    *rows(size) {
      yield* eachParticipant(size, (id, incident, person, place) => {
        const time = reported(incident, size);
        return [[id, incident, person, at(time), place > 2 && id % 7 === 0 ? at(time + day / 2) : null]];
      });
    },
  },
  {
    table: "participant_role",
    columns: "participant_id, incident_id, role, assumed_at",
    *rows(size) {
      yield* eachParticipant(size, (id, incident, _, place) => {
        const role = (["commander", "reporter"] as const)[place] ?? "participant";
        return [[id, incident, role, at(reported(incident, size))]];
      });
    },
  },
  {
    table: "document",
    columns: `id, name, description, resource_type, plugin_slug, resource_id, weblink, incident_id, created_at,
      updated_at`,
    *rows(size) {
      const writer = writerOf("document");
      for (let id = 1; id <= size.documents; id += 1) {
        const incident = Math.ceil((id / size.documents) * size.incidents);
        const text = writer.text(28);
        const old = id <= size.documents / 20 && id % 5 === 0;
        yield [
          id,
          writer.words(5),
          old ? `${text} The ${retired} had it.` : text,
          id % 10 === 0 ? "reference" : id % 3 === 0 ? "review" : "incident",
          // One in ten is the incident's own text.
          ...(id % 10 === 1 ? ["markdown", String(id)] : [null, null]),
          `https://wiki.example.com/${id}`,
          id % 10 === 0 ? null : incident,
          ...stamps(reported(incident, size)),
        ];
      }
    },
  },
  {
    table: "task",
    columns: "incident_id, description, status, owner_id, resolve_by, resolved_at, created_at, updated_at",
    *rows(size) {
      const writer = writerOf("task");
      for (let id = 1; id <= size.incidents * 2; id += 1) {
        const incident = Math.ceil(id / 2);
        const time = reported(incident, size);
        const open = id % 4 === 0;
        yield [
          incident,
          writer.words(10),
          open ? "Open" : "Resolved",
          participantsOf(incident)[id % 3]!,
          at(time + day),
          open ? null : at(time + day / 2),
          ...stamps(time),
        ];
      }
    },
  },
  {
    table: "flow_step",
    columns: "incident_id, step, state, attempts, finished_at",
    *rows(size) {
      const steps = ["participants", "commander", "documents", "conversation:channel", "group:mailing-list"];
      for (let id = 1; id <= size.incidents; id += 1) {
        for (const step of steps) yield [id, `reported:${step}`, "Done", 1, at(reported(id, size) + 1000)];
      }
    },
  },
  {
    table: "conversation",
    columns: "incident_id, plugin_slug, created_at",
    *rows(size) {
      for (let id = 1; id <= size.incidents; id += 1) yield [id, "channel", at(reported(id, size))];
    },
  },
  {
    table: "participant_group",
    columns: "incident_id, plugin_slug, name, email, created_at",
    *rows(size) {
      for (let id = 1; id <= size.incidents; id += 1)
        yield [id, "mailing-list", `inc-${id}`, `inc-${id}@example.com`, at(reported(id, size))];
    },
  },
  {
    table: "recommendation",
    columns: "incident_id, document_id, individual_id, plugin_slug, reasons, created_at",
    *rows(size) {
      for (let id = 1; id <= size.incidents; id += 1) {
        const reasons = JSON.stringify([{ kind: "incident_type", id: 1 + (id % types), name: "Type" }]);
        const time = at(reported(id, size));
        const random = randomOf(`recommendation ${id}`);
        for (let nth = 0; nth < 3; nth += 1) {
          const document = 1 + Math.floor((random.between(0, 1) + nth) * (size.documents / 3 - 1));
          yield [id, document, null, "resolver", reasons, time];
        }
        for (const person of participantsOf(id).slice(0, 2))
          yield [id, null, person, "resolver", reasons, time];
      }
    },
  },
];

function* eachParticipant(
  { incidents }: Size,
  rowsOf: (id: number, incident: number, person: number, place: number) => (readonly Value[])[],
): Rows {
  let id = 0;
  for (let incident = 1; incident <= incidents; incident += 1) {
    for (const [place, person] of participantsOf(incident).entries()) {
      id += 1;
      yield* rowsOf(id, incident, person, place);
    }
  }
}

/** Fills a database with COPY. Triggers compute the search vectors, as in production. */
export async function fill(url: string, size: Size): Promise<void> {
  const sql = openSql(url, { max: 1 });
  try {
    // Created after loading: updating a GIN index row by row takes several times as long.
    const indexes = await sql`
      select indexname as name, indexdef as definition from pg_indexes
      where schemaname = 'public' and indexdef like '%USING gin%'`;
    for (const { name } of indexes) await sql`drop index ${sql(name)}`;
    for (const { table, columns, rows } of loads) {
      await copyIn(sql, `copy ${table} (${columns}) from stdin`, pieces(rows(size)));
    }
    await sql.unsafe(`set maintenance_work_mem = '512MB'`);
    for (const { definition } of indexes) await sql.unsafe(definition);
    await countOn(sql, size);
    // Otherwise PostgreSQL would do it in the middle of a measurement.
    await sql`vacuum analyze`;
    await sql`checkpoint`;
  } finally {
    await sql.end({ timeout: 5 });
  }
}

/** Makes the next record get the next number. */
async function countOn(sql: Sql, { incidents }: Size): Promise<void> {
  for (const table of [
    "individual",
    "incident_type",
    "incident_priority",
    "incident",
    "participant",
    "document",
  ])
    await sql`select setval(pg_get_serial_sequence(${table}, 'id'), (select max(id) from ${sql(table)}))`;
  await sql`select setval('incident_name_seq', ${incidents})`;
}

const pieceLength = 500_000;

async function* pieces(rows: Rows): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  let piece = "";
  for (const row of rows) {
    // None of our texts contains a tab, a line break or a backslash.
    piece += `${row.map((value) => value ?? "\\N").join("\t")}\n`;
    if (piece.length < pieceLength) continue;
    yield encoder.encode(piece);
    piece = "";
  }
  yield encoder.encode(piece);
}
