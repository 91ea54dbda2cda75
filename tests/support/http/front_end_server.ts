import { afterAll, beforeAll } from "bun:test";
import { frontEnd } from "../browser/front_end.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** Starts a server for a whole file, with a front end for tests. */
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
