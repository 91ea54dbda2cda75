/** The options that every command of the client has. */
export const clientArgs = {
  server: {
    type: "string",
    metavar: "URL",
    description: "The server (otherwise SVC_SERVER, the one last signed in to, http://127.0.0.1:8000)",
  },
  json: { type: "boolean", description: "Print JSON" },
} as const;
