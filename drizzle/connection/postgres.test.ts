import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

// If a new version of postgres.js fails here, compare its sources with what this folder relies on: `forEachFn`, `queue`,
// `idleTimer`, `onexecute` and the option `socket` (sql.ts), when it notices the end of a connection (lost.ts, socket.ts), and
// that `closed` leaves its write buffer and timer as they were. Then update the hash.
test("the sources of postgres.js are those for which the patches were written", () => {
  const folder = join(import.meta.dir, "../../node_modules/postgres/src");
  const hash = new Bun.CryptoHasher("sha256");
  for (const file of ["connection.js", "index.js", "query.js", "queue.js", "result.js"])
    hash.update(readFileSync(join(folder, file)));
  expect(hash.digest("hex")).toBe("28319038b2476a139638fa2ae3bdfe5c642dd74f6e0414f56c35ab49ec9caf11");
});
