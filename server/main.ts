import { openServer } from "./open.ts";

/** The application that `svc server start server/main:app` serves, configured by the environment and `.env`. */
export const app = await openServer();
