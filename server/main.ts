import { openServer } from "./open.ts";

/** The application as `svc server start server/main:app` serves it, set up by the environment and `.env`. */
export const app = await openServer();
