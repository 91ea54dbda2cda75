import { expect, test } from "bun:test";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { useFrontEnd } from "../../tests/support/http/front_end_server.ts";

const { site, server } = useFrontEnd();

/** Too large to be read within a test. */
const size = 64 * 1024 ** 3;

test("a file of 64 GB: HEAD reads nothing, GET streams it, and a range is sent alone", async () => {
  site.put("huge.bin", "");
  truncateSync(join(site.path, "huge.bin"), size);
  const heads = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      server().fetch("/huge.bin", { method: "HEAD", headers: at % 2 === 0 ? {} : { range: "bytes=0-4" } }),
    ),
  );
  for (const { status, headers } of heads)
    expect([status, headers.get("content-length"), headers.get("accept-ranges")]).toEqual([
      200,
      String(size),
      "bytes",
    ]);
  const before = process.memoryUsage.rss();
  const { body, headers } = await server().fetch("/huge.bin");
  expect(headers.get("content-length")).toBe(String(size));
  const reader = body!.getReader();
  for (let bytes = 0; bytes < 64 * 1024 ** 2;) bytes += (await reader.read()).value!.length;
  await reader.cancel();
  // The memory of client and server, which share this process.
  expect(process.memoryUsage.rss() - before).toBeLessThan(512 * 1024 ** 2);
  const last = await server().fetch("/huge.bin", { headers: { range: "bytes=-5" } });
  expect([last.status, (await last.bytes()).length]).toEqual([206, 5]);
});
