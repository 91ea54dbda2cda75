import type { Announcer } from "./connection/announce.ts";
import type { Database, Transaction } from "./database.ts";

type Announced = () => void;
type Config = Parameters<Database["transaction"]>[1];

const announcers = new WeakMap<Database | Transaction, Announcer>();
/** What each open transaction announces when it is committed. */
const pending = new WeakMap<Database | Transaction, Announced[]>();

/** Makes `announceAfterCommit` work for a database and its transactions. */
export function announceWith(db: Database, announcer: Announcer): void {
  announcers.set(db, announcer);
  const begin = db.transaction.bind(db);
  db.transaction = async <T>(work: (tx: Transaction) => Promise<T>, config?: Config) => {
    const announced: Announced[] = [];
    const result = await begin((tx) => {
      register(tx, announced, announcer);
      return work(tx);
    }, config);
    for (const announce of announced) announce();
    return result;
  };
}

/** A savepoint's announcements are those of its transaction. If only it is rolled back, a hint too many is sent. */
function register(tx: Transaction, announced: Announced[], announcer: Announcer): void {
  announcers.set(tx, announcer);
  pending.set(tx, announced);
  const begin = tx.transaction.bind(tx);
  tx.transaction = (work) =>
    begin((inner) => {
      register(inner, announced, announcer);
      return work(inner);
    });
}

/**
 * Sends a hint (connection/announce.ts) once the transaction is committed, or at once outside a transaction. Nothing is
 * sent for a transaction that is rolled back.
 */
export function announceAfterCommit(
  db: Database | Transaction,
  channel: string,
  subject: number,
  number: number,
): void {
  const announce = () => announcers.get(db)?.announce(channel, subject, number);
  const later = pending.get(db);
  if (later) later.push(announce);
  else announce();
}
