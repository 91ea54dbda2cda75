export interface TraceParent {
  traceId: string;
  spanId: string;
  traceFlags: number;
}

/**
 * Parses a `traceparent` (W3C Trace Context, 3.2). A later version may have more after another hyphen; version ff does
 * not exist, and all-zero ids are invalid.
 *
 * @returns undefined for a malformed one: a new trace starts here
 */
export function parseTraceParent(header: string | null | undefined): TraceParent | undefined {
  if (!header || header.length > 512) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] =
    header.match(/^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?$/) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  // The other flags have no meaning yet.
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1 };
}
