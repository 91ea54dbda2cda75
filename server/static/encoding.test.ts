import { expect, test } from "bun:test";
import { acceptedCodings, type Coding } from "./compressed.ts";

test.each<[string | null, Coding[]]>([
  [null, []],
  ["", []],
  ["identity", []],
  ["gzip, deflate, br, zstd", ["br", "zstd", "gzip"]],
  ["gzip", ["gzip"]],
  ["x-gzip", ["gzip"]],
  ["GZIP", ["gzip"]],
  ["gzip;q=1, br;q=0.5", ["gzip", "br"]],
  ["br;q=0", []],
  ["br;q=0, *", ["zstd", "gzip"]],
  ["*", ["br", "zstd", "gzip"]],
  ["*;q=0", []],
  ["gzip;q=0.000, br ; q=0.001", ["br"]],
  ["identity;q=1, gzip;q=0.5", []],
  ["identity;q=0.5, gzip", ["gzip"]],
  // A coding with an invalid weight is ignored.
  ["gzip;q=2, br", ["br"]],
  ["gzip;q=-1", []],
  ["gzip;x", []],
])("Accept-Encoding: %s", (header, codings) => expect(acceptedCodings(header)).toEqual(codings));
