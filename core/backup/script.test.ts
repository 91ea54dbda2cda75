import { expect, test } from "bun:test";
import fc from "fast-check";
import { EndOfScript, readScript, withoutPsql } from "./script.ts";

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

test("statements and rows are told apart, however they arrive", async () => {
  const expected = [
    "--\n-- Dumped\n\\restrict abc123\n\nSET a = 1;",
    "COPY public.empty (id) FROM stdin;|",
    'COPY public.some (id, "a b") FROM stdin;|1\t\\\\.\n\\\\.\t\\N\nCOPY x FROM stdin;\n\n',
    "SELECT setval('s', 1);",
    "COPY public.last (id) FROM stdin;|\n",
  ].map((sql) => withoutPsql(sql));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), async (sizes) => {
      expect((await taken(script, sizes)).map((sql) => withoutPsql(sql))).toEqual(expected);
    }),
  );
});

test("a script that ends among rows is no whole one", async () => {
  const cut = script.slice(0, script.indexOf("COPY x"));
  expect(taken(cut, [7])).rejects.toBeInstanceOf(EndOfScript);
});
