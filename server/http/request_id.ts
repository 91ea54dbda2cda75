const prefix = crypto.randomUUID().slice(0, 13);
let count = 0;

/** An id under which the log, the answer's header and a problem's body speak of one request: process and number. */
export function newRequestId(): string {
  count += 1;
  return `${prefix}-${count.toString(36)}`;
}

/**
 * Whether the id that a proxy has given a request may be ours, so that its log and ours speak of one request. What does not
 * look like an id is passed over: it would stand in our log, in an answer's header and on a page.
 */
export function looksLikeRequestId(id: string): boolean {
  return /^[\w.:/+=@-]{1,128}$/.test(id);
}
