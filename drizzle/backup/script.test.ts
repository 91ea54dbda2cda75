import { expect, test } from "bun:test";
import fc from "fast-check";
import { copiedTable, EndOfScript, readScript, withoutPsql } from "./script.ts";

async function* inPieces(text: string, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length]!;
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function taken(text: string, sizes: readonly number[]): Promise<string[]> {
  const seen: string[] = [];
  await readScript(inPieces(text, sizes), {
    statements: async (sql) => void seen.push(sql.trim()),
    copy: async (statement, rows) => {
      const pieces: Uint8Array[] = [];
      for await (const piece of rows) {
        expect(piece.length).toBeGreaterThan(0);
        pieces.push(piece);
      }
      seen.push(`${statement}|${Buffer.concat(pieces)}`);
    },
  });
  return seen;
}

const script = `--
-- Dumped
\\restrict abc123

SET a = 1;

COPY public.empty (id) FROM stdin;
\\.


COPY public.some (id, "a b") FROM stdin;
1\t\\\\.
\\\\.\t\\N
COPY x FROM stdin;

\\.

SELECT setval('s', 1);
COPY public.last (id) FROM stdin;

\\.
\\unrestrict abc123
`;

test("statements and rows are separated, whatever the sizes of the pieces", async () => {
  const expected = [
    "--\n-- Dumped\n\nSET a = 1;",
    "COPY public.empty (id) FROM stdin;|",
    'COPY public.some (id, "a b") FROM stdin;|1\t\\\\.\n\\\\.\t\\N\nCOPY x FROM stdin;\n\n',
    "SELECT setval('s', 1);",
    "COPY public.last (id) FROM stdin;|\n",
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), async (sizes) => {
      expect(await taken(script, sizes)).toEqual(expected);
    }),
  );
});

test("names and strings may contain line breaks, semicolons and text like COPY or psql commands", async () => {
  const table = `"my;\n schema"."a\nCOPY b FROM stdin;\n"""`;
  const text = `SELECT pg_catalog.setval('"x;\n\\restrict y\nCOPY z FROM stdin;\n"', 1);\n\nCOPY ${table} ("c;\nd") FROM stdin;\n1\n\\.\n`;
  for (const size of [1, 3, 1000]) {
    expect(await taken(text, [size])).toEqual([
      `SELECT pg_catalog.setval('"x;\n\\restrict y\nCOPY z FROM stdin;\n"', 1);`,
      `COPY ${table} ("c;\nd") FROM stdin;|1\n`,
    ]);
  }
  expect(copiedTable(`COPY ${table} ("c;\nd") FROM stdin;`)).toEqual({
    schema: "my;\n schema",
    name: 'a\nCOPY b FROM stdin;\n"',
  });
  expect(copiedTable("COPY public.t  FROM stdin;")).toEqual({ schema: "public", name: "t" });
});

test("only psql's own two lines are removed from a script", () => {
  const body = "CREATE FUNCTION f() AS $$\n\\restrict other\n\\unrestrict abc\n$$;\n";
  expect(withoutPsql(`--\n-- Dump\n--\n\n\\restrict abc\n\n${body}\n--\n\n\\unrestrict abc\n\n`)).toBe(
    `\n${body}\n--\n`,
  );
  expect(withoutPsql(body)).toBe(body);
});

test("a script that ends among rows is incomplete", async () => {
  const cut = script.slice(0, script.indexOf("COPY x"));
  expect(taken(cut, [7])).rejects.toBeInstanceOf(EndOfScript);
  expect(taken("SELECT 1;\nSELECT 2", [7])).rejects.toBeInstanceOf(EndOfScript);
});

test("an endless line is refused before it exhausts memory", async () => {
  const endless = async function* () {
    for (let bytes = 0; bytes < 64 << 20; bytes += 1 << 20) yield Buffer.alloc(1 << 20, "x");
    throw new Error("read on");
  };
  const taker = { statements: async () => {}, copy: async () => {} };
  await expect(readScript(endless(), taker)).rejects.toThrow("a statement has no end");
});
