export * from "./audit_log.ts";
export * from "./challenge.ts";
export * from "./session.ts";
export * from "./token.ts";
