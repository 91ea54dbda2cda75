import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { effort, growth } from "../../../tests/support/database/effort.ts";
import { foldText } from "./fold.ts";
import { buildVocabulary, buildVocabularyBeside, type Vocabulary } from "./match.ts";

const found = (terms: string[], text: string) =>
  buildVocabulary(terms.map((text, id) => ({ id, text })))
    .find(text)
    .map((id) => terms[id]);

test("terms inside longer terms are found, too", () => {
  const terms = ["data loss", "credential leak", "pii export", "leak", "export"];
  const text = "A credential leak led to data loss in kafka and a pii export today";
  expect(found(terms, text)).toEqual(terms);
});

test("ids are ascending and unique, even for terms with the same spelling", () => {
  const terms = [
    { id: 9, text: "Leak" },
    { id: 2, text: "LEAK" },
    { id: 5, text: "a leak" },
  ];
  expect(buildVocabulary(terms).find("leak, a leak; leak")).toEqual([2, 5, 9]);
  expect(buildVocabulary([]).find("leak")).toEqual([]);
});

describe("is found", () => {
  test.each([
    ["leak", "(Leak)."],
    ["C++", "in C++, and"],
    ["R&D", "the r&d team"],
    [".NET", "use .NET"],
    ["straße", "STRASSE"],
    ["ΟΔΟΣ", "η οδος"],
    ["café", "cafe\u0301!"],
    ["office", "o\uFB03ce"],
    ["blast radius", "blast\u00A0\n -\tradius"],
    ["blast-radius", "Blast Radius"],
    ["runbook", "run\u00ADbook"],
    ["Ärger", "„ärger“"],
    ["ａｂｃ", "abc"],
    ["𝛼", "(α)"],
    ["istanbul", "İSTANBUL"],
    ["Iğdır", "ığdır"],
    ["𐐀", "𐐨"],
    ["leak", "leakage leak"],
    // Without spaces between words.
    ["障害", "大規模障害が発生"],
    ["障害", "サーバー障害2件"],
    ["データ漏洩", "個人データ漏洩について"],
    ["サーバー", "本番サーバーが落ちた"],
    ["kafka", "本番Kafkaクラスタで"],
    [".NET", "クラスタ.NETで"],
    ["𠮷野", "社員𠮷野家"],
    ["ข้อมูล", "การรั่วไหลของข้อมูลลูกค้า"],
    ["รั่ว", "ที่รั่วไหล"],
  ])("%p in %p", (term, text) => expect(found([term], text)).toEqual([term]));
});

describe("is not found", () => {
  test.each([
    ["leak", "leakage"],
    ["leak", "aleak"],
    ["leak", "leak2"],
    ["leak", "2leak"],
    ["C++", "C++11"],
    ["e", "e\u0335"],
    ["a", "𐐀a"],
    ["a", "a𐐀"],
    ["data loss", "dataloss"],
    ["ログ", "カタログ"],
    ["ログ", "ログイン"],
    ["サーバ", "サーバー"],
    ["ก", "ก่อน"],
    ["서버", "서버가"],
    ["---", "a --- b"],
    ["", "a  b"],
  ])("%p in %p", (term, text) => expect(found([term], text)).toEqual([]));
});

test("finds the same as a plain search for each term", () => {
  const piece = fc.constantFrom(
    "a",
    "b",
    "ab",
    "A",
    "é",
    "e\u0301",
    " ",
    "-",
    "–",
    "+",
    "𐐀",
    "𐐨",
    "1",
    "ß",
    "\n",
  );
  const text = (maxLength: number) => fc.array(piece, { maxLength }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(fc.array(text(5), { maxLength: 12 }), text(60), (terms, text) => {
      const vocabulary = buildVocabulary(terms.map((text, id) => ({ id, text })));
      expect(vocabulary.find(text)).toEqual(plainly(terms, text));
    }),
    { numRuns: 2000 },
  );
});

/** Each term at each place. */
function plainly(terms: string[], text: string): number[] {
  const folded = foldText(text);
  return terms.flatMap((term, id) => {
    const wanted = foldText(term);
    for (let at = 0; wanted !== "" && at + wanted.length <= folded.length; at += 1) {
      if (folded.slice(at, at + wanted.length) !== wanted) continue;
      const before = /[\p{L}\p{M}\p{N}]$/u.test(folded.slice(0, at));
      const after = /^[\p{L}\p{M}\p{N}]/u.test(folded.slice(at + wanted.length));
      if (!before && !after) return [id];
    }
    return [];
  });
}

/** Far above linear growth, and far below quadratic. */
const linear = 24;

test("more terms do not slow down reading, and building takes proportionally longer", () => {
  const words = Array.from({ length: 2000 }, (_, i) => `w${i.toString(36)}x`);
  const terms = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      id: i + 1,
      text: `${words[i % 2000]} ${words[(i * 7 + Math.floor(i / 2000)) % 2000]}`,
    }));
  const texts = Array.from({ length: 100 }, (_, d) =>
    Array.from({ length: 2000 }, (_, i) => words[(i * 7 + d) % 2000]).join(" "),
  );
  const [few, many] = [buildVocabulary(terms(250)), buildVocabulary(terms(10_000))];
  expect(texts.flatMap((text) => many.find(text))).not.toEqual([]);
  const reading = ({ find }: Vocabulary) => effort(() => texts.map(find));
  // Searching for each term separately would take forty times as long.
  expect(reading(many) / reading(few)).toBeLessThan(10);
  expect(growth((count) => buildVocabulary(terms(count)), 1250)).toBeLessThan(linear);
});

test("a text designed to be slow is not slow", () => {
  const terms = Array.from({ length: 250 }, (_, i) => ({ id: i, text: "a ".repeat(i + 1) }));
  const vocabulary = buildVocabulary(terms);
  expect(vocabulary.find("a ".repeat(10_000))).toHaveLength(250);
  expect(vocabulary.find("a".repeat(10_000))).toEqual([]);
  expect(growth((size) => vocabulary.find("a ".repeat(size)), 5000)).toBeLessThan(linear);
  expect(growth((size) => vocabulary.find("a".repeat(size)), 100_000)).toBeLessThan(linear);
  const marked = (size: number) => `a${"\u0301".repeat(size)}${"\u0316".repeat(size)}`;
  expect(growth((size) => vocabulary.find(marked(size)), 5000)).toBeLessThan(linear);
});

test("building many terms in steps lets other work run, with the same result", async () => {
  const terms = Array.from({ length: 3000 }, (_, i) => ({ id: i + 1, text: `term ${i} of many` }));
  let others = 0;
  let built = false;
  const turn = () => {
    if (built) return;
    others += 1;
    setImmediate(turn);
  };
  setImmediate(turn);
  const beside = await buildVocabularyBeside(terms);
  built = true;
  // A turn for each 500 terms, and for each 20,000 nodes.
  expect(others).toBeGreaterThanOrEqual(6);
  const text = "Term 7 of many, term 2999 of many";
  expect(beside.find(text)).toEqual(buildVocabulary(terms).find(text));
  expect(beside.find(text)).toEqual([8, 3000]);
});
