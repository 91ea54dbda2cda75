import { afterAll, beforeAll } from "bun:test";
import { frontEnd } from "../browser/front_end.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** A server for the tests of a file, which serves a front end of its own. */
export function useFrontEnd() {
  const site = frontEnd();
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ staticDir: site.path });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    site[Symbol.dispose]();
  });
  return { site, server: () => server };
}
