import type { VNode } from "preact";
import { render } from "preact-render-to-string";
import type { Actor } from "../../core/context.ts";
import { findOnlooker } from "../../core/incident/stream/onlooker.ts";
import { newSecret } from "../../platform/secret.ts";
import type { Deps } from "../../server/deps.ts";
import { Reader, type ReaderFacts } from "../parts/reader.ts";
import { type Piece, pieceOf } from "../pieces.ts";
import type { PageContent } from "../site.tsx";
import type { Visitor } from "../visitor.ts";

/** What the page of an incident is for one reader. */
export interface Rendered extends PageContent {
  content: VNode;
  names: ReaderFacts["names"];
  /** The people for whom it is different: those who take part, or did something. */
  involved: ReadonlySet<string>;
}

interface Shared {
  /** The id of the newest event of the incident, or of an earlier one, when it was made. */
  tail: number;
  /** By performance.now(). */
  madeAt: number;
  page: Promise<Omit<Rendered, "content" | "names"> & { pieces: (Piece | string)[] }>;
}

/** A few changes make no event, such as those of a cost or of a name in the catalog. */
const longestMilliseconds = 1000;
const mostPages = 50;

/** In place of what a form has of its reader. New in each process, so that no text contains them. */
const [csrfSlot, keySlot] = [newSecret(), newSecret()];
const slots = new RegExp(`(${csrfSlot}|${keySlot})`);

/** Sees what every member sees. */
const nobody: Actor = { kind: "user", user: "", groups: [], admin: false, expiresAt: new Date(0) };

/**
 * The pages of incidents for those who only look on. When something happens, all of them ask for the same page at the same
 * time: it is read and rendered once. Nothing in it is of one reader, and whether they may read it is asked for each.
 */
export class Onlookers {
  /** By incident and time zone, the oldest first. */
  readonly #pages = new Map<string, Shared>();

  constructor(
    private readonly deps: Deps,
    private readonly read: (actor: Actor, id: number) => Promise<Rendered>,
  ) {}

  /** @returns undefined for a reader who gets a page of their own @throws NotFound */
  async pageOf({ actor, timeZone, csrf }: Visitor, id: number): Promise<PageContent | undefined> {
    if (actor.admin) return undefined;
    const { tail, isOnlooker } = await findOnlooker(this.deps, actor, id);
    if (!isOnlooker) return undefined;
    const { pieces, involved, ...page } = await this.#shared(id, timeZone, tail);
    if (involved.has(actor.user)) return undefined;
    const filled = pieces.map((piece) =>
      piece === csrfSlot ? csrf : piece === keySlot ? crypto.randomUUID() : piece,
    );
    return { ...page, pieces: filled };
  }

  #shared(id: number, timeZone: string, tail: number): Shared["page"] {
    const key = `${id} ${timeZone}`;
    const known = this.#pages.get(key);
    const madeAt = performance.now();
    if (known && known.tail >= tail && madeAt - known.madeAt < longestMilliseconds) return known.page;
    const page = this.#make(id, timeZone);
    page.catch(() => this.#pages.delete(key));
    this.#pages.delete(key);
    this.#pages.set(key, { tail, madeAt, page });
    const [oldest] = this.#pages.keys();
    if (this.#pages.size > mostPages) this.#pages.delete(oldest!);
    return page;
  }

  async #make(id: number, timeZone: string): Shared["page"] {
    const { content, names, ...page } = await this.read(nobody, id);
    const now = this.deps.clock.now();
    const reader = {
      user: nobody.user,
      admin: false,
      now,
      timeZone,
      isZoneDefault: false,
      csrf: csrfSlot,
      formKey: keySlot,
      names,
    };
    const html = render(<Reader.Provider value={reader}>{content}</Reader.Provider>);
    return {
      ...page,
      pieces: html.split(slots).map((part) => (part === csrfSlot || part === keySlot ? part : pieceOf(part))),
    };
  }
}
