/** The options of every command that talks to a server. */
export const clientArgs = {
  server: {
    type: "string",
    metavar: "URL",
    description: "Server (default: SVC_SERVER, the last one signed in to, or http://127.0.0.1:8000)",
  },
  json: { type: "boolean", description: "Print JSON" },
} as const;
